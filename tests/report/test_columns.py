"""Columns and pairs as shares of cells: what stands beside the pictures."""

import numpy as np
import pandas as pd
import pytest

from fixtures import tables
from sfumato import MaxEntropy
from sfumato.evaluate.fidelity import read_bins
from sfumato.io.sources import open_source
from sfumato.report.columns import Bin, ColumnFigure, joint_figures
from sfumato.report.write import page_content
from sfumato.schema.schema import Schema

SCHEMA = Schema.from_dict({"columns": {"ward": ["a", "b"], "sex": ["f", "m"], "old": "boolean"}, "rows": 400})


def test_pairs_are_beside_independent_columns():
    data = pd.DataFrame(
        {"ward": ["a"] * 200 + ["b"] * 200, "sex": ["f", "m"] * 200, "old": [True] * 200 + [False] * 200}
    )
    bins = read_bins(open_source(data), SCHEMA)
    apart, together = joint_figures(bins, SCHEMA, [("ward", "sex"), ("ward", "old")])
    assert apart.distance == pytest.approx(0)
    assert together.distance == pytest.approx(0.5)
    assert np.abs(together.differences) == pytest.approx(0.25)
    assert together.differences.sum() == pytest.approx(0)
    assert together.strongest in (
        f"strongest: {one} with {other}, {sign}25.0 percentage points"
        for one, other, sign in (("a", "true", "+"), ("a", "false", "-"), ("b", "true", "-"), ("b", "false", "+"))
    )


def test_noise_is_half_an_interval_beside_a_share():
    wide = tuple(Bin(str(i), 0.1, low=0.0, high=0.5) for i in range(10))
    assert ColumnFigure("x", "integer", None, wide).noise == "10 % ± 40: noise is larger than a share"
    narrow = tuple(Bin(str(i), 0.5, low=0.48, high=0.52) for i in range(2))
    assert ColumnFigure("x", "boolean", None, narrow).noise == "50 % ± 2"
    assert ColumnFigure("x", "boolean", None, (Bin("a", 1.0),)).noise == ""


def test_heat_maps_are_of_pairs_beyond_the_noise():
    rng = np.random.default_rng(0)
    ward = rng.choice(["a", "b"], 400)
    data = pd.DataFrame({"ward": ward, "sex": rng.choice(["f", "m"], 400), "old": ward == "a"})
    release = MaxEntropy(epsilon=20.0).fit(data, schema=SCHEMA)
    content = page_content(release, real=None, test=None, target=None, train_rows=None, seed=0)
    lines = {line.names: line for line in content["pair_lines"]}
    assert lines["ward", "old"].stands_out
    assert all(lines[figure.names].stands_out for figure in content["joint"])
    assert content["joint"][0].names == ("ward", "old")
    assert set(content["noise"]) == {"ward", "sex", "old"}


def test_spreads_of_dates_are_lengths_of_time():
    release = MaxEntropy(epsilon=20.0).fit(tables.frame(), schema=tables.schema())
    content = page_content(release, real=None, test=None, target=None, train_rows=None, seed=0)
    dates = [answer for question, _, _, answer in content["answer_rows"] if "standard deviation" in answer]
    assert dates
    assert all(text.endswith(("days", "hours", "minutes", "seconds")) for text in dates)
