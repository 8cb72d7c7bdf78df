"""The correlation matrix: against other libraries, against known laws, its cells; how much a page of many weighs."""

import itertools
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats.contingency import association

from sfumato import MaxEntropy
from sfumato.evaluate.coded_tables import read_codes
from sfumato.io.sources import open_source
from sfumato.report import write_report
from sfumato.report.matrix import MOST_COLUMNS, correlation, correlation_ratio, cramers_v, fit_name, matrix_of
from sfumato.schema.schema import Schema

N = 4_000
CATEGORIES = ["a", "b", "c"]
COLUMNS = {
    "x": {"kind": "continuous", "lower": -6, "upper": 6, "nullable": True},
    "y": {"kind": "continuous", "lower": -6, "upper": 6},
    "c": {"kind": "categorical", "categories": CATEGORIES},
    "d": {"kind": "categorical", "categories": [f"v{i}" for i in range(40)]},
}


def frame(sign=1.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    y = 0.6 * sign * x + 0.8 * rng.normal(size=N)
    c = np.where(rng.random(N) < 0.7, np.digitize(x, [-0.5, 0.5]), rng.integers(0, 3, N))
    found = pd.DataFrame({"x": x, "y": y, "c": np.array(CATEGORIES)[c], "d": [f"v{i}" for i in rng.integers(0, 40, N)]})
    return found.assign(x=found["x"].where(rng.random(N) > 0.1))


def coded(table, schema):
    return read_codes(open_source(table), schema)


def test_correlations_are_those_of_pandas():
    data = frame()
    assert correlation(data["x"].to_numpy(), data["y"].to_numpy()) == pytest.approx(data["x"].corr(data["y"]))
    assert correlation(np.ones(5), np.arange(5.0)) == 0.0
    assert correlation(np.full(5, np.nan), np.arange(5.0)) == 0.0


def test_associations_of_labels_are_those_of_scipy_and_numpy_less_their_bias():
    data = frame()
    codes = data["c"].astype("category").cat.codes.to_numpy().astype(np.int64)
    split = (data["y"] > 0).to_numpy().astype(np.int64)
    with_bias = association(pd.crosstab(codes, split).to_numpy(), method="cramer")
    assert cramers_v(codes, split) == pytest.approx(with_bias, abs=0.001)
    assert cramers_v(codes, split) < with_bias
    groups = data.groupby("c")["y"]
    between = float(np.sum(groups.size() * (groups.mean() - data["y"].mean()) ** 2))
    ratio = np.sqrt(between / float(np.sum((data["y"] - data["y"].mean()) ** 2)))
    assert correlation_ratio(codes, data["y"].to_numpy()) == pytest.approx(ratio, abs=0.001)
    assert correlation_ratio(codes, data["y"].to_numpy()) < ratio


def test_what_tells_all_is_one_and_what_is_independent_is_near_zero():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 20, 500)
    assert cramers_v(labels, (labels + 3) % 20) == pytest.approx(1.0)
    assert correlation_ratio(labels, labels.astype(float)) == pytest.approx(1.0)
    apart = [cramers_v(labels, rng.integers(0, 20, 500)) ** 2 for _ in range(200)]
    biased = association(np.histogram2d(labels, rng.integers(0, 20, 500), 20)[0].astype(int), method="cramer") ** 2
    assert np.mean(apart) < 0.1 * biased
    ratios = [correlation_ratio(labels, rng.normal(size=500)) ** 2 for _ in range(200)]
    assert np.mean(ratios) < 0.5 * 19 / 500  # which the plain ratio has
    for other in (cramers_v, correlation_ratio):
        assert other(np.zeros(9, dtype=np.int64), np.arange(9) if other is cramers_v else np.arange(9.0)) == 0.0


def test_lines_and_pictures_of_two_tables():
    schema = Schema.from_dict({"columns": COLUMNS})
    synthetic, real = coded(frame(-1.0, 1), schema), coded(frame(), schema)
    found = matrix_of(synthetic, real, schema)
    assert found is not None
    worst = found.lines[0]
    assert (worst.names, worst.measure) == (("x", "y"), "correlation")
    assert worst.real == pytest.approx(0.6, abs=0.04)
    assert worst.synthetic == pytest.approx(-0.6, abs=0.04)
    assert [p.title for p in found.pictures] == ["Real rows", "Synthetic rows", "Synthetic less real"]
    assert found.pictures[2].top == pytest.approx(1.2, abs=0.1001)
    assert "x and y" in found.pictures[2].says
    measures = {line.names: line.measure for line in found.lines}
    assert measures["x", "c"] == "correlation ratio"
    assert measures["c", "d"] == "Cramér’s V"
    assert next(line for line in found.lines if line.names == ("c", "d")).real == pytest.approx(0, abs=0.05)
    strongest = found.pictures[0].shades[-1]
    assert (strongest.kind, strongest.strength) == ("more", round(10 * 0.6 / found.pictures[0].top))
    signs = [{s.kind for s in p.shades} for p in found.pictures]
    assert signs[0] == {"more"}
    assert "less" in signs[1]
    drawn = [cell for s in found.pictures[1].shades for cell in re.findall(r"M(\d+) (\d+)", s.path)]
    assert ("0", "1") in drawn  # x in the row of y
    assert {(row, column) for column, row in drawn} == set(drawn)
    assert all(column != row for column, row in drawn)
    told = {(v.x, v.y - 3): v.text for v in found.pictures[1].values}
    x, y = (name.place for name in found.names[:2])
    assert told[x, y] == told[y, x] == f"{worst.synthetic:.2f}".replace("-0", "−")
    assert len(drawn) == len(set(drawn))


def test_few_and_many_columns():
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(MOST_COLUMNS + 9)]
    data = pa.table({name: rng.integers(0, 2, 50).astype(bool) for name in names})
    schema = Schema.from_dict({"columns": dict.fromkeys(names, "boolean")})
    found = matrix_of(coded(data, schema), None, schema, names[-1])
    assert found is not None
    assert (len(found.names), found.n_left_out) == (MOST_COLUMNS, 9)
    assert found.names[-1].text == names[-1]
    assert len(found.pictures) == 1
    two = Schema.from_dict({"columns": dict.fromkeys(names[:2], "boolean")})
    assert matrix_of(coded(data, two), None, two) is None


def test_cells_that_the_schema_has_no_place_for():
    schema = Schema.from_dict({"columns": COLUMNS})
    odd = frame().assign(c=lambda f: f["c"].where(f["y"] < 0.5, "unknown"))
    plain, found = (matrix_of(coded(data, schema), None, schema) for data in (frame(), odd))
    assert plain is not None
    assert found is not None
    values = [{line.names: line.synthetic for line in m.lines} for m in (plain, found)]
    assert values[1]["y", "c"] > values[0]["y", "c"] + 0.2  # a label of their own
    assert values[1]["x", "y"] == values[0]["x", "y"]


def test_names_are_shortened_to_their_room():
    assert fit_name("age") == "age"
    wide, narrow = fit_name("W" * 70), fit_name("i" * 70)
    assert wide.endswith("…")
    assert len(wide) < len(narrow) < 20


# from the release alone sixty columns of intervals take ten seconds
@pytest.mark.parametrize("beside", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.slow
def test_a_page_of_sixty_columns_weighs_less_than_a_megabyte(tmp_path, beside):
    rng = np.random.default_rng(0)
    names = [f"a_column_of_no_short_name_{i}" for i in range(60)]
    kinds = [{"kind": "continuous", "lower": 0, "upper": 1}, {"kind": "categorical", "categories": list("abcdefgh")}]
    schema = Schema.from_dict(
        {"rows": 400, "columns": {n: k for n, k in zip(names, itertools.cycle(kinds), strict=False)}}
    )
    data = pd.DataFrame(
        {n: rng.random(400) if i % 2 == 0 else rng.choice(list("abcdefgh"), 400) for i, n in enumerate(names)}
    )
    release = MaxEntropy(epsilon=1.0).fit(data, schema=schema)
    write_report(release, tmp_path / "p.html", real=data if beside else None)
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert 100_000 < len(text.encode()) < 1_000_000
    assert text.count('class="matrix"') == (3 if beside else 1)
    assert f"of {60 * 59 // 2}</summary>" in text
