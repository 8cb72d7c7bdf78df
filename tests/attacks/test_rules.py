"""Neighbours under a schema with rules, that release the same: sensitivities hold, and nothing else is different.

The record that one of them has more, or other, breaks every rule, or lies in a corner of what they leave free.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="networks need the extra nets")

from fixtures.methods import PLUGINS, QUICK
from fixtures.ruled import RULES, hospital, hospital_schema
from harness.coupling import attack, leaves
from sfumato.schema.schema import Schema

pytestmark = pytest.mark.usefixtures("coarse_accounts")
SCHEMA = hospital_schema(rows=70)
FRAME = hospital(70)
QUICKEST = ("max-entropy", "independent-items", *PLUGINS)
METHODS = [
    name if name in QUICKEST else pytest.param(name, marks=(pytest.mark.audit, pytest.mark.slow)) for name in QUICK
]
RECORDS = {
    "breaks all": {
        "admitted": pd.Timestamp("2024-12-31"), "discharged": pd.Timestamp("2024-01-01"), "stay": 10**6,
        "intensive": -4, "age": -7, "group": "senior", "drugs": 1e9, "other": np.nan, "total": -1.0, "sex": "male",
        "pregnant": "yes", "ward": "none", "bed": "day", "back": "yes",
    },
    "the longest stay": {
        "admitted": pd.Timestamp("2024-01-01"), "discharged": pd.Timestamp("2025-06-30"), "stay": 365,
        "intensive": 365, "age": 100, "group": "senior", "drugs": 1e3, "other": 1e3, "total": 2e3, "sex": "male",
        "pregnant": None, "ward": "none", "bed": "none", "back": "yes",
    },
    "nothing to read": {
        "admitted": pd.NaT, "discharged": pd.NaT, "stay": 0, "intensive": 0, "age": 0, "group": "x", "drugs": np.nan,
        "other": np.nan, "total": np.nan, "sex": None, "pregnant": "?", "ward": None, "bed": None, "back": None,
    },
}  # fmt: skip


def with_record(record: dict, frame: pd.DataFrame = FRAME, place: int | None = None) -> pd.DataFrame:
    """The frame with a record at its end, or in the place of one; types stay."""
    rest = frame if place is None else frame.drop(index=frame.index[place])
    return pd.concat([rest, pd.DataFrame([record])[list(frame)]], ignore_index=True).astype(frame.dtypes.to_dict())


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("target", [None, "back"])
@pytest.mark.parametrize("method", METHODS)
def test_records_that_rules_know_nothing_of(monkeypatch, method, target, record):
    def fit(data):
        make = QUICK[method]
        sampled = isinstance(make, partial) and "batch_size" in make.keywords
        made = make(epsilon=2.0, **({"batch_size": 60} if sampled else {}))
        return leaves(made.fit(data, schema=SCHEMA, target=target, seed=1))

    frame = with_record(RECORDS["the longest stay"])
    attack(monkeypatch, fit, frame, with_record(RECORDS[record], frame))
    attack(monkeypatch, fit, frame, with_record(RECORDS[record], frame, len(frame) - 1), replaced=True)


def test_units(monkeypatch):
    """Several rows of one unit are summed after the map."""
    schema = hospital_schema()
    document = schema.to_dict()
    document["columns"] = {"id": {"kind": "identifier"}, **document["columns"]}
    document |= {"unit": {"column": "id", "max_rows": 2}, "rows": 35}
    united = Schema.from_dict(document)
    assert len(united.rules) == len(RULES)
    frame = FRAME.assign(id=np.arange(len(FRAME)) // 2)
    more = pd.concat([frame] + [with_record(record).iloc[[-1]].assign(id=99) for record in RECORDS.values()])

    def fit(data):
        return leaves(QUICK["max-entropy"](epsilon=2.0).fit(data, schema=united, target="back", seed=1))

    attack(monkeypatch, fit, frame, more.reset_index(drop=True))
