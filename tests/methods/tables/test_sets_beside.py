"""Sets beside other columns: items go with numbers, labels and each other as among the records."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures.set_tables import ITEMS, held, people, set_schema
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns import Integer, ItemSet

ROWS = 20_000


def figures(frame):
    """Shares of items, of pairs of items, and how items go with age and sex."""
    table = held(frame)
    female = frame["sex"].to_numpy() == "f"
    shares = table.mean()
    pairs = pd.Series(
        {f"{a}, {b}": (table[a] & table[b]).mean() for i, a in enumerate(ITEMS) for b in ITEMS[:i]}, dtype=float
    )
    ages = table.apply(lambda item: np.corrcoef(item, frame["age"])[0, 1])
    sexes = table[female].mean() - table[~female].mean()
    return shares, pairs, ages, sexes


@pytest.mark.parametrize(
    ("epsilon", "most"), [(NonPrivate(), (0.012, 0.012, 0.035, 0.025)), (1.0, (0.015, 0.015, 0.05, 0.035))], ids=str
)
def test_items_go_with_age_and_sex(epsilon, most):
    frame = people(ROWS)
    release = MaxEntropy(epsilon=epsilon, delta=1e-6).fit(frame, schema=set_schema(ROWS), seed=0)
    sample = release.sample(ROWS, seed=1)
    for name, ours, theirs, far in zip(
        ("shares", "pairs", "age", "sex"), figures(sample), figures(frame), most, strict=True
    ):
        assert (ours - theirs).abs().max() < far, name
    # the law is there to be missed: diabetes is with high blood pressure alone, which is with age
    assert figures(frame)[2]["I10"] > 0.35
    assert figures(frame)[3]["F32"] > 0.25


def test_estimates_of_items():
    frame = people(ROWS)
    release = MaxEntropy(epsilon=1.0, delta=1e-6).fit(frame, schema=set_schema(ROWS), target="sex", seed=0)
    table, female = held(frame), frame["sex"] == "f"
    for asked, share in (
        ({"diagnoses": "E11"}, table["E11"].mean()),
        ({"diagnoses": ["I10", "E11"]}, (table["I10"] & table["E11"]).mean()),
        ({"diagnoses": "F32", "sex": "f"}, (table["F32"] & female).mean()),
    ):
        found = release.share(asked, target="table")
        assert abs(found.value - share) < 4 * found.std_error, asked
        assert found.std_error < 0.006
    assert abs(release.share({"diagnoses": "F32"}, by="sex")["f"].value - table["F32"][female].mean()) < 0.02
    assert abs(release.count({"diagnoses": "J45"}).value - table["J45"].sum()) < 300


@pytest.mark.slow
def test_sets_longer_than_max_length_are_cut_in_records_and_samples():
    frame = people(4_000)
    schema = set_schema(4_000, max_length=1)
    release = MaxEntropy(epsilon=50.0, delta=1e-6).fit(frame, schema=schema, seed=0)
    sample = release.sample(4_000, seed=0)
    assert max(map(len, sample["diagnoses"])) == 1
    first = frame.assign(diagnoses=[cell[:1] for cell in frame["diagnoses"]])
    assert (held(sample).mean() - held(first).mean()).abs().max() < 0.03


BASKETS = Path(os.environ.get("SFUMATO_DATA", "../shared/data")) / "retail_transactions.npz"
COMMON = (32, 38, 39, 41, 48)  # the best-sold articles, which publications on these data name: a public list


@pytest.mark.slow
@pytest.mark.skipif(not BASKETS.is_file(), reason="no shared data")
def test_real_baskets_and_their_sizes():
    """Belgian supermarket baskets (Brijs 1999): shares of common items, pairs, and how items go with baskets' sizes."""
    data = np.load(BASKETS)
    numbers = data["item_id"][data["indices"]].astype(str)
    starts = data["indptr"]
    baskets = [numbers[a:b].tolist() for a, b in pairwise(starts)]
    table = pa.table({"size": np.diff(starts), "items": baskets})
    kind = ItemSet(items=tuple(map(str, COMMON)), max_length=len(COMMON))
    schema = Schema(columns={"size": Integer(lower=0, upper=80), "items": kind}, rows=88_000)
    release = MaxEntropy(epsilon=1.0, delta=1e-6).fit(table, schema=schema, seed=0)
    frames = [rows.to_pandas() for rows in (table, release.sample(88_000, seed=1))]
    real, ours = (held(frame, "items", kind.items) for frame in frames)
    assert (real.mean() - ours.mean()).abs().max() < 0.01
    for i, one in enumerate(kind.items):
        for other in kind.items[:i]:
            assert abs((real[one] & real[other]).mean() - (ours[one] & ours[other]).mean()) < 0.01
        sizes = [
            frame["size"].clip(upper=80)[item[one]].mean() for frame, item in zip(frames, (real, ours), strict=True)
        ]
        assert abs(sizes[0] - sizes[1]) < 0.6
