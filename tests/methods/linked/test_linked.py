"""Linked rows from end to end: a law with known answers, and all that a release does."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures.linked import apart, figures, in_order, schema, visits
from sfumato import DPMix, EstimateCount, IndependentItems, MaxEntropy, NonPrivate, Schema, load, tune
from sfumato.errors import ConfigError, EstimateError, ReleaseError
from sfumato.evaluate import evaluate
from sfumato.fitting import account
from sfumato.mechanisms import queries
from sfumato.release import blocks
from sfumato.report import write_report

FEW = 1_500


@pytest.fixture(scope="module")
def frame():
    return visits(FEW)


@pytest.fixture(scope="module")
def release(frame):
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=12_000)
    return method.fit(frame, schema=schema(units=FEW), seed=0)


def test_without_noise_the_law_comes_back(frame, release):
    rows = release.sample(8_000, seed=1)
    real, made = figures(in_order(frame)), figures(rows)
    assert made["rows"] == pytest.approx(real["rows"], abs=0.05)
    assert made["correlation"] == pytest.approx(real["correlation"], abs=0.02)
    assert apart(real, made) < 0.03
    assert made["gap"] == pytest.approx(real["gap"], abs=2.0)
    assert made["drift"] == pytest.approx(real["drift"], abs=0.7)
    assert made["least gap"] >= 0
    assert made["constants"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_law_at_epsilon_1(seed):
    frame = visits(20_000)
    rows = MaxEntropy(epsilon=1.0, delta=1e-6).fit(frame, schema=schema(), seed=seed).sample(20_000, seed=seed)
    real, made = figures(in_order(frame)), figures(rows)
    assert made["rows"] == pytest.approx(real["rows"], abs=0.1)
    assert made["correlation"] == pytest.approx(real["correlation"], abs=0.05)
    assert apart(real, made) <= 0.05
    assert made["constants"] == 1
    assert made["least gap"] >= 0


@pytest.mark.slow
def test_a_place_of_a_hundred_is_kept_as_often_as_it_was():
    """No transition of 10,000 stands out of the noise; that people stay does."""
    rng, n = np.random.default_rng(0), 6_000
    shares = np.arange(100, 0, -1) / 5_050
    places, parts = rng.choice(100, n, p=shares), []
    for when in range(5):
        parts.append(pd.DataFrame({"who": np.arange(n), "when": when, "place": places.astype(str)}))
        places = np.where(rng.random(n) < 0.5, places, rng.choice(100, n, p=shares))
    document = {
        "unit": {"column": "who", "max_rows": 5, "order": "when", "units": n},
        "columns": {
            "who": "identifier",
            "when": {"kind": "integer", "lower": 0, "upper": 9},
            "place": {"kind": "categorical", "categories": [str(place) for place in range(100)]},
        },
    }
    method = MaxEntropy(epsilon=1.0, delta=1e-6, level_groups=100)
    rows = method.fit(pd.concat(parts), schema=Schema.from_dict(document), seed=1).sample(4_000, seed=1)
    before = rows.groupby("who")["place"].shift()
    assert (rows["place"] == before)[before.notna()].mean() == pytest.approx(0.507, abs=0.12)


def test_units_are_numbered_and_their_rows_in_order(release):
    rows = release.sample(500, seed=2)
    assert list(rows.columns) == ["patient", "day", "sex", "born", "score", "state"]
    assert rows["patient"].is_monotonic_increasing
    assert sorted(set(rows["patient"])) == list(range(1, 501))
    assert (rows.groupby("patient")["day"].diff().dropna() >= 0).all()
    assert rows.groupby("patient").size().between(1, 6).all()
    assert rows["patient"].dtype == np.int64


def test_the_first_units_do_not_depend_on_how_many(release):
    many, few = release.sample(300, seed=3), release.sample(40, seed=3)
    pd.testing.assert_frame_equal(many[many["patient"] <= 40], few)
    assert len(release.sample(0)) == 0
    assert release.sample(seed=0)["patient"].nunique() == FEW, "by default the public number of units"


def test_batches_are_small_and_go_on(release, monkeypatch):
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 64)
    batches = list(release.batches(300, seed=4))
    assert max(batch.num_rows for batch in batches) <= 64
    ids = pa.concat_tables(batches)["patient"].to_numpy()
    assert (np.diff(ids) >= 0).all()
    assert set(ids) == set(range(1, 301))


@pytest.mark.slow
def test_workers_draw_the_same(release, monkeypatch):
    monkeypatch.setattr("sfumato.release.blocks.SAMPLE_BLOCK", 16_384)  # as workers have it
    one = pa.concat_tables(release.batches(20_000, seed=5))
    assert pa.concat_tables(release.batches(20_000, seed=5, workers=2)).equals(one)


def test_given_constants_hold_in_all_rows(release):
    rows = release.sample(400, seed=6, given={"sex": "f", "born": 1950})
    assert set(rows["sex"]) == {"f"}
    assert set(rows["born"]) == {1950}
    plain = release.sample(4_000, seed=6).query("sex == 'f' and 1945 < born < 1955")
    assert rows["score"].mean() == pytest.approx(plain["score"].mean(), abs=3)


@pytest.mark.parametrize("column", ["score", "day"])
def test_given_columns_that_vary_are_refused(release, column):
    with pytest.raises(ConfigError, match=f"Expected given columns that are constant, got '{column}'"):
        release.sample(3, given={column: 5})


def test_what_samples_of_linked_rows_cannot_have_is_refused(release):
    with pytest.raises(ConfigError, match="class_counts for a release with a target"):
        release.sample(class_counts={"f": 3})
    with pytest.raises(ConfigError, match="'patient'"):
        release.sample(3, given={"patient": 3})


def test_releases_are_saved_and_come_back(release, tmp_path):
    release.save(tmp_path / "r.sfm")
    back = load(tmp_path / "r.sfm")
    pd.testing.assert_frame_equal(back.sample(50, seed=1), release.sample(50, seed=1))
    assert back.schema == release.schema
    back.write_sample(tmp_path / "rows.csv", 20, seed=1)
    assert pd.read_csv(tmp_path / "rows.csv")["patient"].iloc[-1] == 20


def test_the_certificate_protects_the_unit_at_the_price_of_one_record(frame):
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=500)
    found = method.fit(frame, schema=schema(units=FEW), seed=0)
    assert found.certificate.unit.name == "patient"
    assert found.certificate.n_public == FEW
    plan = method.plan(schema(units=FEW))
    stages = [stage.name for stage in found.certificate.stages]
    assert stages == ["units: marginals", "units: second moments", "steps: marginals", "steps: second moments"]
    assert stages == [stage.name for stage in plan.stages]
    many = method.plan(schema(units=FEW, max_rows=60))
    assert many.stages == plan.stages, "noise does not grow with the rows of a unit"
    names = {m.name for m in found.measurements}
    assert {f"{t}: {n}" for t in ("units", "steps") for n in ("counts of cells", "second moments")} <= names
    assert method.describe_plan(schema(units=FEW))["stages"][2]["forecast"]
    assert method.epsilon_for(schema(units=FEW), target_error=0.05) > 0


@pytest.mark.slow
def test_a_checkpoint_goes_on_and_draws_nothing_twice(frame, tmp_path, monkeypatch):
    method, path = MaxEntropy(epsilon=2.0, calibration_rows=300), tmp_path / "fit.ckpt"
    drawn = []
    second = queries.noisy_second_moment

    def ends(exact, *, stage, **rest):
        drawn.append(stage)
        if stage.startswith("steps"):
            raise KeyboardInterrupt
        return second(exact, stage=stage, **rest)

    monkeypatch.setattr(account, "noisy_second_moment", ends)
    with pytest.raises(KeyboardInterrupt):
        method.fit(frame, schema=schema(units=FEW), checkpoint=path)
    monkeypatch.setattr(account, "noisy_second_moment", second)
    first = method.fit(frame, schema=schema(units=FEW), checkpoint=path)
    again = method.fit(frame, schema=schema(units=FEW), checkpoint=path)
    assert drawn == ["units: second moments", "steps: second moments"]
    for name, values in first.parameters.items():
        np.testing.assert_array_equal(values, again.parameters[name])


@pytest.mark.slow
def test_given_constants_with_workers_and_in_blocks(release, monkeypatch):
    one = pa.concat_tables(release.batches(20_000, seed=5, given={"sex": "m"}))
    assert set(one["sex"].to_pylist()) == {"m"}
    assert one["patient"][-1].as_py() == 20_000


def test_the_same_bits_whatever_the_order_of_the_file(frame):
    def arrays(rows):
        method = MaxEntropy(epsilon=2.0, calibration_rows=300)
        return method.fit(rows, schema=schema(units=FEW), seed=4).parameters

    one, other = arrays(frame), arrays(in_order(frame).iloc[::-1])
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name])


@pytest.mark.slow
def test_a_number_of_units_is_bought_and_missing_ones_are_named(frame):
    with pytest.raises(ConfigError, match="public number of units"):
        MaxEntropy(epsilon=1.0).fit(frame, schema=schema(units=None))
    method = MaxEntropy(epsilon=20.0, delta=1e-6, calibration_rows=300)
    found = method.fit(frame, schema=schema(units=None), n_public=EstimateCount(), seed=0)
    assert found.certificate.n_public == pytest.approx(FEW, abs=100)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "rows"), [({"max_rows": 1}, 1), ({"max_rows": 2}, 2), ({"order": None}, 6), ({"constant": []}, 6)], ids=str
)
def test_other_shapes_of_units(frame, unit, rows):
    method = MaxEntropy(epsilon=5.0, calibration_rows=300)
    made = method.fit(frame, schema=schema(units=FEW, **unit), seed=0).sample(200, seed=0)
    assert made.groupby("patient").size().max() <= rows
    assert made["patient"].nunique() == 200


@pytest.mark.parametrize("max_rows", [2, 6])
def test_units_of_one_row_each_are_fitted(frame, max_rows):
    """Their releases may say that there are no steps at all: the third and fourth are bought all the same."""
    method = MaxEntropy(epsilon=2.0, delta=1e-6, calibration_rows=300)
    singles = frame.drop_duplicates("patient")[:500]
    made = method.fit(singles, schema=schema(units=500, max_rows=max_rows), seed=1).sample(200, seed=0)
    assert made.groupby("patient").size().mean() < 1.1


def test_missing_values_dates_and_text_ids_hold():
    rng, n = np.random.default_rng(0), 600
    frame = pd.DataFrame(
        {
            "who": [f"p{i}" for i in rng.integers(0, n // 3, n)],
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "town": rng.choice(["x", "y"], n),
            "note": rng.choice(["p", "q", None], n),
            "value": np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
        }
    )
    frame.loc[rng.random(n) < 0.1, "seen"] = pd.NaT
    document = {
        "unit": {"column": "who", "max_rows": 4, "order": "seen", "constant": ["town"], "units": 200},
        "columns": {
            "who": "identifier",
            "seen": {"kind": "datetime", "lower": "2024-01-01", "upper": "2024-12-31", "nullable": True},
            "town": {"kind": "categorical", "categories": ["x", "y"]},
            "note": {"kind": "categorical", "categories": ["p", "q"], "nullable": True},
            "value": {"kind": "continuous", "lower": 0, "upper": 1, "nullable": True},
        },
    }
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=1_000)
    with pytest.warns(UserWarning, match="published"):
        found = method.fit(frame, schema=Schema.from_dict(document), seed=0, as_source=True)
    made = found.sample(2_000, seed=0)
    assert made["who"].iloc[-1] == "2000", "numbers in the type that names came in"
    assert made[["seen", "note", "value"]].isna().mean().between(0.03, 0.5).all()
    for _, rows in made.groupby("who"):
        seen = rows["seen"].to_numpy()
        known = seen[~np.isnat(seen)]
        assert (np.diff(known) >= np.timedelta64(0)).all()
        assert not np.isnat(seen[: known.size]).any(), "rows without an order come last"


def test_other_methods_are_refused_before_a_record_is_read(frame):
    linked = schema(units=FEW)
    for method in (DPMix(epsilon=1.0), IndependentItems(epsilon=1.0)):
        with pytest.raises(ConfigError, match=f"without linked rows for the method {method.method}"):
            method.fit(frame, schema=linked)


def test_what_does_not_read_linked_rows_yet_says_so(frame, release, tmp_path):
    with pytest.raises(ConfigError, match="no target beside linked rows"):
        evaluate(frame, frame, schema=release.schema, target="sex")
    with pytest.raises(ConfigError, match="no target beside linked rows"):
        write_report(release, tmp_path / "r.html", real=frame, target="sex")
    with pytest.raises(ConfigError, match="without linked rows for criteria of acceptance"):
        tune(frame, method=[MaxEntropy(epsilon=1.0)], schema=release.schema, accept=[{"marginal_error": 0.1}])
    with pytest.raises(EstimateError, match="got one of linked rows"):
        release.replicates(2)


def test_damaged_releases_are_refused(release):
    for sampler in (
        {**release.sampler, "steps": None},
        {**release.sampler, "units": {**release.sampler["units"], "target": "state"}},
        {"name": "linked_table"},
    ):
        with pytest.raises(ReleaseError):
            dataclasses.replace(release, sampler=sampler).check()
    turned = {**release.parameters, "steps.order": release.parameters["steps.order"][::-1].copy()}
    with pytest.raises(ReleaseError, match="draws the row before first"):
        dataclasses.replace(release, parameters=turned).check()
    with pytest.raises(ReleaseError):
        dataclasses.replace(release, schema=dataclasses.replace(release.schema, unit=None)).check()


@pytest.mark.parametrize("linking", [{"order": "when"}, {"constant": ["sex"]}], ids=["order", "constant"])
def test_moments_finer_than_a_day(linking, tmp_path):
    rng, units = np.random.default_rng(0), np.repeat(np.arange(200), 3)
    hours = pd.to_timedelta(rng.integers(0, 24 * 300, units.size), "h")
    rows = pd.DataFrame(
        {"person": units, "when": pd.Timestamp("2020-01-01") + hours, "sex": np.array(["f", "m"])[units % 2]}
    )
    when = {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31 23:00", "resolution": "hour"}
    columns = {"person": "identifier", "when": when, "sex": {"kind": "categorical", "categories": ["f", "m"]}}
    unit = {"column": "person", "max_rows": 3, "units": 200, **linking}
    method = MaxEntropy(epsilon=5.0, delta=1e-6, calibration_rows=300)
    method.fit(rows, schema=Schema.from_dict({"columns": columns, "unit": unit}), seed=1).save(tmp_path / "r.sfm")
    made = load(tmp_path / "r.sfm").sample(50, seed=2)
    assert made.groupby("person")["sex"].nunique().max() == 1 or "order" in linking
    assert made["when"].dt.hour.nunique() > 12
    if "order" in linking:
        assert made.groupby("person")["when"].apply(lambda of: of.is_monotonic_increasing).all()


@pytest.mark.parametrize("most", [6, 15])
def test_dates_of_a_year_do_not_heap_on_its_last_day(most):
    """Rows at any day of a year: distances add up to days behind it, where no record is."""
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(FEW), rng.integers(max(most - 10, 1), most + 1, FEW))
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 365, owner.size), "D")
    year = {"kind": "datetime", "lower": "2021-01-01", "upper": "2021-12-31"}
    unit = {"column": "person", "max_rows": most, "order": "day", "units": FEW}
    known = Schema.from_dict({"unit": unit, "columns": {"person": "identifier", "day": year}})
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    rows = method.fit(pd.DataFrame({"person": owner, "day": days}), schema=known, seed=0).sample(seed=1)
    assert np.mean(rows["day"] == "2021-12-31") < 0.015  # .003 in records; .1 and .04 where days behind count as it
    assert np.all(in_order(rows.rename(columns={"person": "patient"}))["day"].to_numpy() == rows["day"].to_numpy())
