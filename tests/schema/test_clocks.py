"""Times of day beside dates: read from each moment alone, and given back to the moments of samples."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from harness.coupling import check_sensitivities, coupled
from sfumato.columns.dates import DateTime
from sfumato.lenses.chain import plain_schema
from sfumato.schema.distances import Clock
from sfumato.schema.schema import Schema

RESOLUTIONS = ["hour", "minute", "second", "millisecond", "microsecond"]
N = 4_000


def kind(resolution="hour", lower="2019-12-31 07:00", upper="2022-03-01 20:00", **more):
    return DateTime(lower=lower, upper=upper, resolution=resolution, **more)


def clock(resolution="hour", **more):
    return Clock("seen", kind(resolution, **more), "seen: time of day")


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_a_moment_at_its_own_time_is_itself(resolution):
    own = clock(resolution, nullable=True)
    codes = np.append(np.random.default_rng(0).random(500), np.nan)
    first, last = own.kind.bounds
    exact = np.rint(codes * (last - first)) / (last - first)
    np.testing.assert_array_equal(own.set(exact, own.read(exact)), exact)


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_times_are_those_of_the_moments(resolution):
    own = clock(resolution)
    moments = pd.Series(pd.to_datetime(["2020-02-29 00:00:00", "2021-07-01 08:30:30", "2022-02-01 23:59:59"]))
    step = {"hour": moments.dt.hour, "minute": moments.dt.hour * 60 + moments.dt.minute}
    expected = step.get(resolution, step["minute"])
    codes = own.kind.code(_arrow(moments), missing=())
    np.testing.assert_allclose(own.read(codes) * own.beside.upper, expected)
    noon = 12 if resolution == "hour" else 12 * 60
    moved = own.kind.decode(own.set(codes, np.full(3, noon / own.beside.upper)), _arrow(moments).type)
    assert pd.Series(moved.to_pandas()).dt.hour.tolist() == [12, 12, 12]
    assert pd.Series(moved.to_pandas()).dt.date.tolist() == moments.dt.date.tolist()


def _arrow(moments):
    import pyarrow as pa

    return pa.array(moments.astype("datetime64[us]"))


def test_moments_stay_within_their_bounds():
    own = clock()
    ends = np.array([0.0, 1.0])
    for time in (0.0, 1.0):
        moved = own.set(ends, np.full(2, time))
        assert moved.min() >= 0
        assert moved.max() <= 1


def schema(**more):
    columns = {"age": {"kind": "integer", "lower": 0, "upper": 120}, "seen": kind().to_dict()}
    return Schema.from_dict({"rows": N, "columns": columns, **more})


def test_which_columns_have_a_clock():
    assert list(schema().clocks) == ["seen"]
    assert plain_schema(schema()).released == ("age", "seen", "seen: time of day")
    for other in (
        kind("day"),
        kind(lower="2020-01-01 08:00", upper="2020-01-02 08:00"),
        kind(format="%H:%M", lower="08:00", upper="19:00"),
    ):
        assert not Schema(columns={"seen": other}, rows=9).clocks
    assert not Schema.from_dict({
        "unit": {"column": "id", "max_rows": 3, "order": "seen", "units": 9},
        "columns": {"id": {"kind": "identifier"}, "seen": kind().to_dict()},
    }).clocks  # fmt: skip


def visits(seed=0):
    """Ages, and visits between eight and eleven; the old come early."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, N)
    hour = np.where(age > 60, rng.integers(8, 10, N), rng.integers(10, 12, N))
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, N), "D")
    return pd.DataFrame({"age": age, "seen": day + pd.to_timedelta(hour, "h")})


@pytest.mark.slow
@pytest.mark.parametrize("ruled", [False, True], ids=["plain", "rules"])
def test_visits_stay_in_opening_hours(ruled):
    frame, described = visits(), schema()
    if ruled:
        frame = frame.assign(years=frame["age"] + 1)
        columns = {**described.to_dict()["columns"], "years": {"kind": "integer", "lower": 0, "upper": 121}}
        described = Schema.from_dict({"rows": N, "columns": columns, "rules": [{"order": ["age", "years"]}]})
    release = sfumato.fit(frame, described, epsilon=10.0, delta=1e-5, seed=0)
    rows = release.sample(2_000, seed=1)
    assert list(rows.columns) == list(frame.columns)
    assert rows["seen"].dt.hour.between(8, 11).mean() > 0.97
    early = rows["seen"].dt.hour < 10
    assert rows["age"][early].mean() - rows["age"][~early].mean() > 15  # of the records: 36
    given = release.sample(50, given={"seen": "2021-05-05 09:00"})
    assert given["seen"].astype(str).unique().tolist() == ["2021-05-05 09:00:00"]


def test_one_record_more_stays_within_what_is_charged(monkeypatch):
    frame = visits()[:300]
    more = pd.concat([frame, frame[:1].assign(seen=pd.Timestamp("2020-06-01 23:00"))], ignore_index=True)

    def fit(data):
        return sfumato.fit(data, schema(), epsilon=1.0, delta=1e-6, seed=1)

    _, _, tape = coupled(monkeypatch, fit, frame, more, more=1)
    # what a record may add is attained: a norm, and its quotient, are rounded
    assert check_sensitivities(tape, replaced=False) <= 1 + 2 * np.finfo(float).eps
