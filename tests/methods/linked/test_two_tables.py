"""Two tables with a key from end to end: persons, of whom some have no visit, and their visits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures import linked_rules
from fixtures.costly import slow_after
from fixtures.linked import apart, figures
from fixtures.two_tables import joined, schema, tables, with_visits
from sfumato import DPMix, EstimateCount, MaxEntropy, NonPrivate, Schema, fit, load, tune
from sfumato.errors import ConfigError, ReleaseError
from sfumato.release import blocks

FEW = 1_500


@pytest.fixture(scope="module")
def frames():
    return tables(FEW)


@pytest.fixture(scope="module")
def release(frames):
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=12_000)
    return method.fit(frames, schema=schema(FEW), seed=0)


def check_law(frames, made, *, tolerance: float):
    real = figures(joined(frames))
    found = figures(joined(made))
    assert found["rows"] == pytest.approx(real["rows"], abs=2 * tolerance)
    assert found["correlation"] == pytest.approx(real["correlation"], abs=tolerance)
    assert apart(real, found) <= tolerance
    assert with_visits(made) == pytest.approx(with_visits(frames), abs=tolerance)
    assert found["least gap"] >= 0
    for name in ("sex", "born"):
        assert pd.to_numeric(made["persons"][name].replace({"f": 0, "m": 1})).mean() == pytest.approx(
            pd.to_numeric(frames["persons"][name].replace({"f": 0, "m": 1})).mean(), abs=0.03 if name == "sex" else 1.5
        )


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_without_noise_the_law_comes_back(frames, release):
    check_law(frames, release.sample(8_000, seed=1), tolerance=0.03)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("seed", [1, 2])
def test_the_law_at_epsilon_1(seed):
    frames = tables(20_000)
    found = MaxEntropy(epsilon=1.0, delta=1e-6).fit(frames, schema=schema(), seed=seed)
    check_law(frames, found.sample(20_000, seed=seed), tolerance=0.05)


def test_both_tables_come_back_with_their_columns_and_keys(frames, release):
    made = release.sample(500, seed=2)
    assert list(made) == ["persons", "visits"]
    assert {name: list(table.columns) for name, table in made.items()} == {
        "persons": ["patient", "sex", "born"],
        "visits": ["patient", "day", "score", "state"],
    }
    assert made["persons"]["patient"].tolist() == list(range(1, 501)), "every person once, with visits or without"
    visits = made["visits"].groupby("patient")
    assert set(made["visits"]["patient"]) < set(made["persons"]["patient"])
    assert visits.size().between(1, 6).all()
    assert (visits["day"].diff().dropna() >= 0).all()
    assert not made["visits"].isna().to_numpy().any(), "no value is missing in columns that cannot"
    for name, table in frames.items():
        assert (made[name].dtypes == table[made[name].columns].dtypes).all()


def test_the_first_persons_do_not_depend_on_how_many(release):
    many, few = release.sample(300, seed=3), release.sample(40, seed=3)
    for name, table in few.items():
        pd.testing.assert_frame_equal(many[name][many[name]["patient"] <= 40].reset_index(drop=True), table)
    assert [len(table) for table in release.sample(0).values()] == [0, 0]
    assert len(release.sample(seed=0)["persons"]) == FEW


@pytest.mark.slow
def test_batches_of_both_go_on_and_workers_draw_the_same(release, monkeypatch):
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 16_384)  # as workers have it
    one = list(release.table_batches(20_000, seed=5))
    two = list(release.table_batches(20_000, seed=5, workers=2))
    for name in ("persons", "visits"):
        whole = pa.concat_tables([part[name] for part in one])
        assert pa.concat_tables([part[name] for part in two]).equals(whole)
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 64)
    small = list(release.table_batches(300, seed=4))
    assert max(part["visits"].num_rows for part in small) <= 64
    assert pa.concat_tables([part["persons"] for part in small])["patient"].to_pylist() == list(range(1, 301))


def test_batches_are_the_rows_with_the_columns_of_their_unit(release):
    rows = pa.concat_tables(release.batches(200, seed=6)).to_pandas()
    made = release.sample(200, seed=6)
    assert list(rows.columns) == ["patient", "day", "sex", "born", "score", "state"]
    found = made["visits"].merge(made["persons"], on="patient")[list(rows.columns)]
    pd.testing.assert_frame_equal(rows, found, check_dtype=False)


def test_given_columns_of_persons_hold(release):
    made = release.sample(3_000, seed=7, given={"sex": "f"})
    assert set(made["persons"]["sex"]) == {"f"}
    assert with_visits(made)["f"] == pytest.approx(0.7, abs=0.05)
    with pytest.raises(ConfigError, match="given columns that are constant, got 'state'"):
        release.sample(3, given={"state": "a"})


def test_what_samples_of_two_tables_cannot_have_is_refused(release):
    with pytest.raises(ConfigError, match="class_counts for a release with a target"):
        release.sample(class_counts={"f": 3})
    with pytest.raises(ConfigError, match="of the release, got 'patient'"):
        release.sample(3, unique_rows="drop", unique_columns=["patient"])


def test_releases_are_saved_and_come_back(release, tmp_path):
    release.save(tmp_path / "r.sfm")
    back = load(tmp_path / "r.sfm")
    assert back.schema == release.schema
    assert back.schema.database == release.schema.database
    for name, table in release.sample(50, seed=1).items():
        pd.testing.assert_frame_equal(back.sample(50, seed=1)[name], table)
    back.write_sample(tmp_path / "out", 20, seed=1)
    for name, table in release.sample(20, seed=1).items():
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "out" / f"{name}.csv"), table, check_dtype=False)
    with pytest.raises(ConfigError, match="a folder without a suffix for several tables"):
        back.write_sample(tmp_path / "rows.csv", 20)


def test_the_price_is_that_of_one_record(frames):
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=300)
    found = method.fit(frames, schema=schema(FEW), seed=0)
    assert found.certificate.unit.name == "patient"
    assert found.certificate.n_public == FEW
    assert [stage.name for stage in found.certificate.stages] == [
        "units: marginals", "units: second moments", "steps: marginals", "steps: second moments"
    ]  # fmt: skip
    assert method.plan(schema(FEW, max_rows=60)).stages == method.plan(schema(FEW)).stages


@pytest.mark.parametrize(
    "visits",
    slow_after(2, [{"order": None}, {"by": "id"}, {"max_rows": 1}, {"max_rows": 2}]),
    ids=["no order", "key", "1", "2"],
)
def test_other_shapes(frames, visits):
    rows = frames["visits"].rename(columns={"patient": visits.get("by", "patient")})
    method = MaxEntropy(epsilon=5.0, calibration_rows=300)
    found = method.fit({**frames, "visits": rows}, schema=schema(FEW, **visits), seed=0)
    made = found.sample(300, seed=0)
    key = visits.get("by", "patient")
    assert made["visits"].groupby(key).size().max() <= visits.get("max_rows", 6)
    assert 150 < made["visits"][key].nunique() < 300
    assert len(made["persons"]) == 300


@pytest.mark.parametrize("kept", ["none", "all"])
def test_where_nobody_or_everybody_has_visits(frames, kept):
    """The ends: tables without any visit, or in which every person has one."""
    visits = frames["visits"] if kept == "all" else frames["visits"][:0]
    persons = frames["persons"]
    if kept == "all":
        persons = persons[persons["patient"].isin(visits["patient"])]
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=500)
    made = method.fit({"persons": persons, "visits": visits}, schema=schema(FEW), seed=0).sample(400, seed=0)
    assert len(made["persons"]) == 400
    assert made["visits"]["patient"].nunique() == pytest.approx(400 if kept == "all" else 0, abs=20)
    assert not made["visits"].isna().to_numpy().any()


@pytest.mark.slow
def test_a_number_of_persons_is_bought_and_a_missing_one_is_named(frames):
    with pytest.raises(ConfigError, match="`rows:` into the table 'persons'"):
        MaxEntropy(epsilon=1.0).fit(frames, schema=schema(None))
    method = MaxEntropy(epsilon=20.0, delta=1e-6, calibration_rows=300)
    found = method.fit(frames, schema=schema(None), n_public=EstimateCount(), seed=0)
    assert found.certificate.n_public == pytest.approx(FEW, abs=100), "persons without visits are counted"


def test_the_front_door_takes_both_tables_and_buys_no_declared_number(frames):
    found = fit(frames, schema(FEW), epsilon=2.0, seed=0, settings={"calibration_rows": 300})
    assert found.certificate.n_public == FEW
    assert found.certificate.stages[0].name == "units: marginals"
    assert len(found.sample(10)["persons"]) == 10


def test_the_same_bits_whatever_the_order_of_the_files(frames):
    def arrays(both):
        method = MaxEntropy(epsilon=2.0, calibration_rows=300)
        return method.fit(both, schema=schema(FEW), seed=4).parameters

    one = arrays(frames)
    other = arrays({name: table.iloc[::-1] for name, table in frames.items()})
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name])


def test_rules_hold_between_persons_and_visits():
    rows = linked_rules.visits()
    tables = {
        "persons": {"key": "who", "rows": linked_rules.N, "columns": ["sex", "age"]},
        "stays": {"of": "persons", "max_rows": 4, "order": "admitted"},
    }
    document = {key: value for key, value in linked_rules.DOCUMENT.items() if key != "unit"}
    found = Schema.from_dict({**document, "tables": tables})
    persons = rows.groupby("who")[["sex", "age"]].first().reset_index()
    stays = rows.drop(columns=["sex", "age"]).query("who % 5 != 0")
    method = MaxEntropy(epsilon=5.0, calibration_rows=300)
    made = method.fit({"persons": persons, "stays": stays}, schema=found, seed=0).sample(1_000, seed=0)
    assert made["persons"]["who"].tolist() == list(range(1, 1_001))
    both = made["stays"].merge(made["persons"], on="who")
    assert both["who"].nunique() == pytest.approx(800, abs=60)
    assert (both["stay"] == both["discharged"] - both["admitted"]).all()
    assert (both["discharged"] >= both["admitted"]).all()
    assert not ((both["pregnant"] == "yes") & (both["sex"] == "m")).any()
    assert ((both["age"] < 18) == (both["ward"] == "child")).all()


def test_values_that_may_be_missing_stay_missing():
    rng, n = np.random.default_rng(0), 800
    persons = pd.DataFrame({"id": np.arange(n), "town": rng.choice(["x", "y", None], n)})
    rows = pd.DataFrame({"id": rng.integers(0, n, n), "note": rng.choice(["p", None], n), "grade": rng.random(n)})
    found = Schema.from_dict(
        {
            "tables": {
                "people": {"key": "id", "rows": n, "columns": ["town"]},
                "tests": {"of": "people", "max_rows": 3},
            },
            "columns": {
                "id": "identifier",
                "town": {"kind": "categorical", "categories": ["x", "y"], "nullable": True},
                "note": {"kind": "categorical", "categories": ["p"], "nullable": True},
                "grade": {"kind": "continuous", "lower": 0, "upper": 1},
            },
        }
    )
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=500)
    made = method.fit({"people": persons, "tests": rows}, schema=found, seed=0).sample(4_000, seed=0)
    assert made["people"]["town"].isna().mean() == pytest.approx(1 / 3, abs=0.05)
    assert made["tests"]["note"].isna().mean() == pytest.approx(0.5, abs=0.05)
    assert not made["tests"]["grade"].isna().any()
    share = rows["id"].nunique() / n
    assert made["tests"]["id"].nunique() / 4_000 == pytest.approx(share, abs=0.03)


def test_its_card_shows_what_is_sampled(release):
    assert "score" in release._repr_html_()
    assert "tables:" in release.schema._repr_html_()


def test_damaged_releases_are_refused(release):
    turned = {**release.parameters, "units.order": release.parameters["units.order"][::-1].copy()}
    with pytest.raises(ReleaseError):
        dataclasses.replace(release, parameters=turned).check()
    one_table = dataclasses.replace(release.schema, unit=dataclasses.replace(release.schema.unit, tables=None))
    with pytest.raises(ReleaseError):
        dataclasses.replace(release, schema=one_table).check()


def test_each_table_may_be_asked(release):
    assert release.table("visits") is release
    assert release.table("persons").mean("born").value == release.units.mean("born").value
    with pytest.raises(ConfigError, match="a table of the release, 'persons', 'visits', got 'visit'"):
        release.table("visit")


def test_what_does_not_read_two_tables_says_so(frames):
    found = schema(FEW)
    with pytest.raises(ConfigError, match="for the method dpmix, got the tables 'persons'"):
        DPMix(epsilon=1.0).fit(frames, schema=found)
    with pytest.raises(ConfigError, match=r"for criteria of acceptance, got the tables .persons., .visits."):
        tune(frames, method=[MaxEntropy(epsilon=1.0)], schema=found, accept=[{"marginal_error": 0.1}])
    with pytest.raises(ConfigError, match=r"the two tables .* got a DataFrame"):
        MaxEntropy(epsilon=1.0).fit(frames["visits"], schema=found)
