"""Fits of neighbours with two dates: whatever these are, and whether they are, nothing else reaches the release."""

import numpy as np
import pandas as pd
import pytest

from harness.coupling import attack, leaves
from sfumato import MaxEntropy, Schema

pytestmark = pytest.mark.usefixtures("coarse_accounts")
FEW = 70
DATE = {"kind": "datetime", "lower": "2020-01-01", "upper": "2022-12-31"}
COST = {"kind": "integer", "lower": 0, "upper": 200}
SCHEMA = Schema.from_dict({"rows": FEW, "columns": {"a": DATE, "b": {**DATE, "nullable": True}, "cost": COST}})


def stays():
    """Admissions, and discharges some days later."""
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1_000, FEW), "D")
    stay = rng.poisson(4, FEW)
    return pd.DataFrame({"a": day, "b": day + pd.to_timedelta(stay, "D"), "cost": stay * 10})


ODD = {
    "far before": (pd.Timestamp("2022-12-31"), pd.Timestamp("2020-01-01")),
    "missing": (pd.NaT, pd.NaT),
    "one is missing": (pd.Timestamp("2021-01-01"), pd.NaT),
    "out of bounds": (pd.Timestamp("1700-01-01"), pd.Timestamp("2200-01-01")),
}


@pytest.mark.parametrize("odd", ODD)
def test_one_record_more_or_another_stays_within_what_is_charged(monkeypatch, odd):
    frame = stays()
    other = frame[:1].assign(a=[ODD[odd][0]], b=[ODD[odd][1]], cost=10**6)

    def fit(data):
        method = MaxEntropy(epsilon=2.0, delta=1e-6, calibration_rows=60)
        return leaves(method.fit(data, schema=SCHEMA, seed=1))

    attack(monkeypatch, fit, frame, pd.concat([frame, other], ignore_index=True))
    attack(monkeypatch, fit, frame, pd.concat([frame[1:], other], ignore_index=True), replaced=True)
