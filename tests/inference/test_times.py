"""Dates in answers: means and quantiles are dates, their errors times; and shares of missing cells."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.cards.html import figure
from sfumato.errors import ConfigError, UnknownGroupError
from sfumato.inference.questions import Questions
from sfumato.inference.table_measurements import MODEL_ROWS
from sfumato.inference.times import shown

N = 3_000
START = pd.Timestamp("2020-01-01")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    sex = rng.choice(["f", "m"], N)
    hours = rng.integers(0, 300 * 24, N) + np.where(sex == "f", 1_000, 0)
    return pd.DataFrame(
        {
            "day": START + pd.to_timedelta(hours // 24, "D"),
            "time": START + pd.to_timedelta(hours, "h"),
            "sex": sex,
            "pay": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "town": np.where(rng.random(N) < 0.1, None, rng.choice(["a", "b"], N)),
            "whole": rng.random(N),
        }
    )


@pytest.fixture(scope="module")
def release(table: pd.DataFrame) -> sfumato.Release:
    dates = {"kind": "datetime", "lower": "2019-06-01", "upper": "2021-06-01"}
    number = {"kind": "continuous", "lower": -5, "upper": 5, "nullable": True}
    columns = {
        "day": dates, "time": {**dates, "resolution": "hour"}, "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "pay": number, "town": {"kind": "categorical", "categories": ["a", "b"], "nullable": True}, "whole": number,
    }  # fmt: skip
    return sfumato.fit(table, {"rows": N, "columns": columns}, epsilon=4.0, delta=1e-5)


@pytest.mark.parametrize("name", ["day", "time"])
def test_means_and_quantiles_of_dates_are_dates(release, table, name) -> None:
    for found, true in (
        (release.mean(name), table[name].mean()),
        (release.quantile(name, 0.25), table[name].quantile(0.25)),
    ):
        assert isinstance(found.value, pd.Timestamp)
        assert isinstance(found.std_error, pd.Timedelta)
        assert abs(found.value - true) < 5 * found.std_error < pd.Timedelta("40D")
        low, high = found.interval()
        assert low < found.value < high
        assert str(found.value.date()) in str(found)
        assert pd.Timestamp(json.loads(json.dumps(found.to_dict()))["value"]) == found.value


def test_differences_of_dates_are_times_and_variances_are_in_days(release, table) -> None:
    found = release.mean("time", by="sex")
    difference = found["f"].value - found["m"].value
    assert abs(difference - pd.Timedelta(hours=1_000)) < pd.Timedelta("25D")
    assert found.to_frame().dtypes.map(lambda d: d.kind).tolist() == ["M", "m", "M", "M"]
    true = table["time"].std() / pd.Timedelta("1D")
    for name in ("day", "time"):
        assert np.sqrt(release.variance(name).value) == pytest.approx(true, rel=0.1)


@pytest.mark.slow
def test_cards_and_lists_show_dates(release) -> None:
    listed = release.answers()
    mean = listed[(listed["kind"] == "mean") & (listed["first"] == "day")].iloc[0]
    assert isinstance(mean["value"], pd.Timestamp)
    for shown_object in (release.mean("day"), release.mean("day", by="sex"), listed):
        assert "2020-0" in shown_object._repr_html_()


def test_shares_of_missing_cells(release, table) -> None:
    for name in ("pay", "town"):
        found = release.share({name: None})
        assert abs(found.value - table[name].isna().mean()) < 5 * found.std_error
    both = release.share({"town": None, "sex": "f"})
    assert abs(both.value - (table["town"].isna() & (table["sex"] == "f")).mean()) < 5 * both.std_error
    assert release.share({"pay": float("nan")}) == release.share({"pay": None}) == release.share({"pay": pd.NA})
    assert set(release.share({"pay": None}, by="sex")) == {"f", "m"}
    assert release.count({"town": None}).value == pytest.approx(N * 0.1, rel=0.3)
    # declared to be missing at times, and never is: the noisy count says so
    never = release.share({"whole": None})
    assert never.interval(0.999)[0] == 0.0
    assert 0 <= never.value < 0.02
    assert never.std_error > 0
    with pytest.raises(ConfigError, match="nullable"):
        release.share({"sex": None})


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_share_hardly_drawn_is_the_noisy_count_alone(release, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """How many of the model's rows a share near 0 has is chance: no fewer than three are asked, and none refuses."""
    drawn = np.arange(MODEL_ROWS) < rows
    monkeypatch.setattr(Questions, "having", lambda *_: drawn)
    never = release.share({"whole": None})
    assert "Measured: a noisy count of whole." in never.rests_on
    assert 0 <= never.value < 0.02
    assert never.std_error > 0


def test_a_mean_says_over_whom_it_is_taken(release, table) -> None:
    over = re.search(r"Over the rows where .pay. is not missing, about (\d+) % of all\.", release.mean("pay").rests_on)
    assert over is not None
    assert abs(int(over[1]) - 80) <= 4
    assert "Over the rows where 'pay' is not missing. " in release.mean("pay", by="sex").rests_on
    assert "missing" not in release.mean("day").rests_on


def test_a_group_that_is_not_there_is_said_and_get_works(release) -> None:
    found = release.mean("pay", by="sex")
    with pytest.raises(UnknownGroupError, match="one of the groups 'f', 'm', got 'x'"):
        found["x"]
    with pytest.raises(UnknownGroupError):
        found[["f"]]
    assert found.get("x") is None
    assert "x" not in found


def test_numbers_are_written_out() -> None:
    assert [shown(value, 4) for value in (23_813.4, 1_925.27, -0.000123456)] == ["23,810", "1925", "-0.0001235"]
    assert figure(23_813.4) == "23800"


def test_moments_are_shown_as_exactly_as_they_are_known() -> None:
    value = pd.Timestamp("2020-02-03 04:05:06")
    assert shown(value, error=pd.Timedelta("2D")) == "2020-02-03"
    assert shown(value, error=pd.Timedelta("2h")) == "2020-02-03 04:05"
    assert shown(pd.Timedelta("36h"), 2) == "1.5 days"
    assert shown(pd.Timedelta("90s"), 2) == "1.5 minutes"
    assert shown(float("nan")) == shown(pd.NaT) == shown(None) == "–"
