"""Distances between dates: read from each record's own two dates, and given back to the dates of samples."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.columns.dates import DateTime
from sfumato.lenses.chain import plain_records, plain_schema
from sfumato.schema.distances import Distance
from sfumato.schema.schema import Schema

N = 300
TWO = (("2020-01-01", "2022-12-31"), ("2020-06-01", "2023-06-30"))
BOUNDS = {"month": (("1990-01-01", "2022-12-31"), ("1991-06-01", "2023-06-30"))}


def kind(lower, upper, resolution="day", **more):
    return DateTime(lower=lower, upper=upper, resolution=resolution, **more)


def distance(resolution="day", **more):
    one, other = BOUNDS.get(resolution, TWO)
    return Distance(
        "begun", "ended", "ended: time since begun", (kind(*one, resolution, **more), kind(*other, resolution, **more))
    )


def whole_codes(of, rng, n=500):
    """Codes of dates in steps of their kind, some missing."""
    first, last = of.bounds
    codes = np.rint(rng.random(n) * (last - first)) / (last - first)
    return np.where(rng.random(n) < 0.1, np.nan, codes)


def steps_of(of, codes):
    first, last = of.bounds
    return np.rint(codes * (last - first)) + first


@pytest.mark.parametrize("resolution", ["month", "week", "day", "minute", "second"])
def test_distances_are_those_of_the_dates(resolution):
    own, rng = distance(resolution), np.random.default_rng(0)
    codes = [whole_codes(of, rng) for of in own.kinds]
    read = own.read(*codes)
    apart = steps_of(own.kinds[1], codes[1]) - steps_of(own.kinds[0], codes[0])
    np.testing.assert_allclose(own.beside.decoded(read)[0][~np.isnan(read)], apart[~np.isnan(apart)])
    np.testing.assert_array_equal(np.isnan(read), np.isnan(codes[0]) | np.isnan(codes[1]))
    assert np.nanmin(read) >= 0
    assert np.nanmax(read) <= 1


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("resolution", ["month", "day", "minute"])
def test_dates_at_their_own_distances_are_themselves(resolution, back):
    own, rng = distance(resolution), np.random.default_rng(1)
    codes = [whole_codes(of, rng) for of in own.kinds]
    start, end = codes[::-1] if back else codes
    np.testing.assert_allclose(own.moved(start, end, own.read(*codes), rng, back=back), end, atol=1e-9)


def test_a_distance_is_read_from_its_own_record_alone():
    """No record of a chunk decides how another one's distance is coded."""
    own, rng = distance(), np.random.default_rng(2)
    codes = [whole_codes(of, rng) for of in own.kinds]
    together = own.read(*codes)
    for i in range(50):
        np.testing.assert_array_equal(own.read(codes[0][i : i + 1], codes[1][i : i + 1]), together[i : i + 1])


def code_of(of, day):
    first, last = of.bounds
    return ((np.datetime64(day, "D").astype(int)) - first) / (last - first)


def apart_code(own, days):
    return (days - own.beside.lower) / (own.beside.upper - own.beside.lower)


def test_dates_go_to_the_distances_that_are_drawn():
    own, rng = distance(), np.random.default_rng(3)
    start = np.full(4, code_of(own.kinds[0], "2021-03-01"))
    end = np.full(4, code_of(own.kinds[1], "2022-10-01"))
    gaps = np.array([0, 1, 5, -9])
    moved = steps_of(own.kinds[1], own.moved(start, end, apart_code(own, gaps), rng))
    np.testing.assert_array_equal(moved - steps_of(own.kinds[0], start), gaps)


def test_a_distance_that_is_as_coarse_leaves_a_date_as_it_is():
    own, rng = distance(), np.random.default_rng(4)
    start, end = (np.array([code_of(of, day)]) for of, day in zip(own.kinds, ("2020-07-01", "2022-07-11"), strict=True))
    np.testing.assert_allclose(own.moved(start, end, apart_code(own, np.array([700])), rng), end, atol=1e-12)


def test_a_day_and_more_later_a_moment_has_its_own_time():
    own, rng = distance("minute"), np.random.default_rng(5)
    first = [of.bounds[0] for of in own.kinds]
    day = np.datetime64("2021-03-01", "m").astype(int)
    start = np.array([(day + 9 * 60 - first[0]) / (own.kinds[0].bounds[1] - first[0])])
    end = np.array([(day + 400 * 1_440 + 11 * 60 - first[1]) / (own.kinds[1].bounds[1] - first[1])])
    moved = steps_of(own.kinds[1], own.moved(start, end, apart_code(own, np.array([3 * 1_440 + 200.0])), rng))
    assert moved[0] == day + 3 * 1_440 + 11 * 60
    short = steps_of(own.kinds[1], own.moved(start, end, apart_code(own, np.array([200.0])), rng))
    assert short[0] == day + 9 * 60 + 200


def test_missing_dates_stay_missing_and_others_take_a_distance_of_another_row():
    own, rng = distance(nullable=True), np.random.default_rng(6)
    start = np.full(5, code_of(own.kinds[0], "2021-03-01"))
    end = np.array([0.1, 0.2, np.nan, 0.9, 0.3])
    apart = apart_code(own, np.array([4.0, 4.0, 4.0, np.nan, 4.0]))
    moved = own.moved(start, end, apart, rng)
    np.testing.assert_array_equal(np.isnan(moved), np.isnan(end))
    gaps = (steps_of(own.kinds[1], moved) - steps_of(own.kinds[0], start))[[0, 1, 3, 4]]
    np.testing.assert_array_equal(gaps, 4)


def test_where_most_rows_have_no_distance_their_dates_stay():
    own, rng = distance(nullable=True), np.random.default_rng(7)
    start, end = np.full(5, 0.4), np.linspace(0.1, 0.9, 5)
    np.testing.assert_array_equal(own.moved(start, end, np.full(5, np.nan), rng), end)
    moved = own.moved(start, end, np.where(np.arange(5) == 2, apart_code(own, 3.0), np.nan), rng)
    np.testing.assert_array_equal(np.delete(moved, 2), np.delete(end, 2))
    assert moved[2] != end[2]


def test_dates_stay_within_their_bounds():
    own, rng = distance(), np.random.default_rng(8)
    start, end = np.linspace(0, 1, 200), rng.random(200)
    moved = own.moved(start, end, apart_code(own, rng.integers(-900, 900, 200).astype(float)), rng)
    assert moved.min() >= 0
    assert moved.max() <= 1


def described(**columns):
    return Schema.from_dict({"rows": N, "columns": columns})


def entry(lower="2020-01-01", upper="2022-12-31", **more):
    return {"kind": "datetime", "lower": lower, "upper": upper, **more}


def test_which_dates_have_a_distance():
    pairs = described(a=entry(), born=entry("1910-01-01"), b=entry(nullable=True), c=entry()).distances
    assert {later: d.earlier for later, d in pairs.items()} == {"b": "a", "c": "b"}
    schema = described(a=entry(), b=entry())
    assert plain_schema(schema).released == ("a", "b", "b: time since a")
    assert not described(a=entry(), b=entry(resolution="minute")).distances
    assert not described(a=entry(), b=entry("2023-01-01", "2023-12-31")).distances
    assert not described(
        a=entry(), b=entry(format="%H:%M", lower="08:00", upper="19:00", resolution="minute")
    ).distances
    assert not described(a=entry(resolution="month", upper="2020-12-31"), b=entry(resolution="month")).distances
    ruled = Schema.from_dict({
        "rows": N, "columns": {"a": entry(), "b": entry(), "c": entry()}, "rules": [{"order": ["a", "b"]}],
    })  # fmt: skip
    assert {later: d.earlier for later, d in ruled.distances.items()} == {"c": "a"}
    assert not Schema.from_dict({
        "unit": {"column": "id", "max_rows": 3, "order": "a", "units": 9},
        "columns": {"id": {"kind": "identifier"}, "a": entry(), "b": entry()},
    }).distances  # fmt: skip


def test_records_have_their_distance_beside_them():
    schema = described(a=entry(), b=entry())
    rows = plain_records(schema, {"a": np.array([0.0, 0.5]), "b": np.array([0.0, 0.25])})
    own = schema.distances["b"]
    assert own.beside.decoded(rows["b: time since a"])[0].tolist() == [0, -274]


def stays(n=N, seed=0):
    """Admissions, and discharges some days later."""
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1_000, n), "D")
    stay = rng.poisson(4, n)
    return pd.DataFrame({"a": day, "b": day + pd.to_timedelta(stay, "D"), "cost": stay * 10 + rng.integers(0, 9, n)})


STAYS = {"a": entry(), "b": entry(nullable=True), "cost": {"kind": "integer", "lower": 0, "upper": 200}}


@pytest.fixture(scope="module")
def release():
    method = sfumato.MaxEntropy(epsilon=3.0, delta=1e-5, calibration_rows=5_000)
    return method.fit(stays(4_000), schema={"rows": 4_000, "columns": STAYS}, seed=0)


def test_stays_are_stays(release):
    rows = release.sample(4_000, seed=1)
    assert list(rows.columns) == list(STAYS)
    stay = (rows["b"] - rows["a"]).dt.days
    assert (stay < 0).mean() < 0.01
    assert stay.median() == pytest.approx(4, abs=1)
    assert rows["cost"].corr(stay) > 0.8
    assert rows["b"].isna().mean() < 0.02


def test_given_dates_hold_and_others_lie_at_their_distances(release):
    for given in ({"a": "2021-05-05"}, {"b": "2021-05-05"}):
        rows = release.sample(300, given=given, seed=2)
        (name,) = given
        assert rows[name].astype(str).unique().tolist() == ["2021-05-05"]
        stay = (rows["b"] - rows["a"]).dt.days
        assert stay.median() == pytest.approx(4, abs=1)
        assert (stay < 0).mean() < 0.02
    both = release.sample(300, given={"a": "2021-05-05", "b": "2021-05-14"}, seed=3)
    assert both["cost"].median() == pytest.approx(94, abs=25)
    before = release.sample(20, given={"a": "2021-05-05", "b": "2021-05-01"}, seed=3)  # no row has such a distance
    assert (before["b"] < before["a"]).all()


def test_estimates_and_replicates_know_of_it(release):
    frame = stays(4_000)
    low, high = release.mean("b").interval()
    assert low <= frame["b"].mean() <= high
    for rows in release.replicates(2, seed=4, n=500):
        assert ((rows["b"] - rows["a"]).dt.days < 0).mean() < 0.02


def test_a_release_comes_back_from_its_file(release, tmp_path):
    release.save(tmp_path / "r.sfm")
    again = sfumato.load(tmp_path / "r.sfm")
    pd.testing.assert_frame_equal(again.sample(200, seed=5), release.sample(200, seed=5))
