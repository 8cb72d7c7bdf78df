"""Databases from end to end: four tables in, four tables out, and every key resolves."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures.database import document, hospital, schema
from sfumato import MaxEntropy, Schema
from sfumato.errors import ConfigError
from sfumato.release import blocks

N = 3000


@pytest.fixture(scope="module")
def tables():
    return hospital(N, 1)


@pytest.fixture(scope="module")
def release(tables):
    method = MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=4000)
    return method.fit(tables, schema=schema(N, visits={"weight": 2}), seed=1)


@pytest.fixture(scope="module")
def sample(release):
    return release.sample(3000, seed=2)


def test_tables_come_back_with_their_columns_and_keys(tables, sample):
    assert list(sample) == ["persons", "visits", "measurements", "drugs"]
    assert list(sample["visits"]) == ["visit", "person", "start", "end", "score", "state"]
    assert {name: set(frame) for name, frame in sample.items()} == {name: set(f) for name, f in tables.items()}
    assert sample["persons"]["person"].tolist() == list(range(1, 3001))
    assert sample["visits"]["visit"].is_unique
    assert sample["visits"]["person"].isin(sample["persons"]["person"]).all()
    assert sample["measurements"]["visit"].isin(sample["visits"]["visit"]).all()
    assert sample["drugs"]["person"].isin(sample["persons"]["person"]).all()
    assert sample["visits"].groupby("person").size().max() <= 5
    assert sample["measurements"].groupby("visit").size().max() <= 3


def test_events_lie_within_their_visit_and_nothing_follows_an_end(sample):
    joined = sample["measurements"].merge(sample["visits"], on="visit")
    assert ((joined["start"] <= joined["at"]) & (joined["at"] <= joined["end"])).all()
    assert (sample["visits"]["start"] <= sample["visits"]["end"]).all()
    dead = (sample["visits"]["state"] == "dead").astype(int)
    assert dead.any()
    assert (dead.groupby(sample["visits"]["person"]).cumsum() - dead == 0).all()
    assert sample["visits"].groupby("person")["start"].is_monotonic_increasing.all()


def figures(tables):
    visits = tables["visits"].merge(tables["persons"], on="person")
    values = tables["measurements"].merge(visits, on="visit")
    counts = [
        tables[name].groupby("person").size().reindex(tables["persons"]["person"], fill_value=0).to_numpy()
        for name in ("visits", "drugs")
    ]
    men = visits.groupby("sex")["score"].mean()
    return {
        "visits": counts[0].mean(),
        "drugs": counts[1].mean(),
        "values": len(values) / len(visits),
        "together": np.corrcoef(*counts)[0, 1],
        "value and score": np.corrcoef(values["value"], values["score"])[0, 1],
        "men less women": (men["m"] - men["f"]) / 10,
    }


def test_tables_go_together_as_they_do(tables, sample):
    real, made = figures(tables), figures(sample)
    for name in real:
        assert made[name] == pytest.approx(real[name], abs=0.25), name
    assert made["visits"] == pytest.approx(real["visits"], abs=0.12)


def test_given_units_have_what_is_given(release):
    women = release.sample(200, given={"sex": "f"}, seed=1)
    assert (women["persons"]["sex"] == "f").all()
    assert len(women["visits"]) > 200
    with pytest.raises(ConfigError, match="of the table 'persons', got 'score'"):
        release.sample(5, given={"score": 3.0})
    with pytest.raises(ConfigError, match="Use table_batches"):
        release.batches(5)


def test_a_saved_release_draws_the_same_and_first_rows_do_not_depend_on_n(release, sample, tmp_path, monkeypatch):
    release.save(tmp_path / "a.sfm")
    back = sfumato.load(tmp_path / "a.sfm")
    for name, frame in back.sample(3000, seed=2).items():
        pd.testing.assert_frame_equal(frame, sample[name])
    fewer = back.sample(100, seed=2)
    persons = sample["persons"]["person"] <= 100
    pd.testing.assert_frame_equal(fewer["persons"], sample["persons"][persons])
    mine = sample["visits"]["person"] <= 100
    pd.testing.assert_frame_equal(fewer["visits"], sample["visits"][mine])
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 64)
    parts = list(back.table_batches(150, seed=2))
    assert len(parts) == 3
    keys = np.concatenate([part["visits"].column("visit").to_numpy() for part in parts])
    assert np.unique(keys).size == keys.size


def test_samples_are_written_to_a_folder(release, tmp_path):
    release.write_sample(tmp_path / "out", 20, seed=1)
    names = sorted(path.name for path in (tmp_path / "out").glob("*.csv"))
    assert names == ["drugs.csv", "measurements.csv", "persons.csv", "visits.csv"]
    assert len(pd.read_csv(tmp_path / "out" / "persons.csv")) == 20


def test_each_table_is_asked_by_itself(release, tables):
    visits = release.table("visits")
    score = visits.mean("score")
    assert abs(score.value - tables["visits"]["score"].mean()) < 4 * score.std_error
    men = release.table("persons").share({"sex": "m"})
    assert abs(men.value - (tables["persons"]["sex"] == "m").mean()) < 4 * men.std_error
    with pytest.raises(ConfigError, match=r"release.table\(NAME\)"):
        release.mean("score")
    value = release.table("measurements").mean("value")
    assert abs(value.value - tables["measurements"]["value"].mean()) < 4 * value.std_error
    with pytest.raises(ConfigError, match="got 'visit'"):
        release.table("visit")


def test_columns_are_listed_and_shown_by_table(release, tmp_path):
    names = ["sex", "age", "start", "end", "score", "state", "at", "value", "drug"]
    assert release.columns()["column"].tolist() == names
    card = release._repr_html_()
    assert [card.count(f"Table <code>{name}</code>") for name in ("persons", "visits", "measurements", "drugs")] == [
        1
    ] * 4
    with pytest.raises(ConfigError, match="got one of a database"):
        _ = release.units


def test_scores_compare_every_table(tables, sample):
    scores = sfumato.evaluate.evaluate(tables, sample, schema=schema(N))
    assert scores["units"] == {"real": N, "synthetic": 3000}
    assert set(scores["tables"]) == {"visits", "measurements", "drugs"}
    rows = scores["tables"]["visits"]["rows_a_unit"]
    assert rows["synthetic"] == pytest.approx(rows["real"], abs=0.12)
    assert set(scores["tables"]["visits"]["numbers"]["score"]["further_back"]) == {2, 3}
    same = sfumato.evaluate.evaluate(tables, tables, schema=schema(N))
    assert same["tables"]["measurements"]["first_rows"] == {"tvd_1way": 0, "tvd_2way": 0}


@pytest.mark.parametrize("columns", [["sex", "age"], ["sex"]])
def test_a_target_is_the_class_of_units(columns, tmp_path):
    tables, entry = hospital(800, 2), document(800, persons={"columns": columns})
    entry["columns"] = {**entry["columns"], **({} if "age" in columns else {"age": "identifier"})}
    known = Schema.from_dict(entry)
    method = MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=300)
    method.fit(tables, schema=known, target="sex", seed=1).save(tmp_path / "r.sfm")
    release = sfumato.load(tmp_path / "r.sfm")
    some = release.sample(class_counts={"f": 60, "m": 240}, seed=1)
    assert some["persons"]["sex"].value_counts().to_dict() == {"m": 240, "f": 60}
    assert some["visits"]["person"].isin(some["persons"]["person"]).all()
    scores = some["visits"].merge(some["persons"], on="person").groupby("sex")["score"].mean()
    assert 3 < scores["m"] - scores["f"] < 14
    assert set(release.sample(40, given={"sex": "f"}, seed=1)["persons"]["sex"]) == {"f"}
    share = release.table("persons").share({"sex": "m"})
    assert abs(share.value - (tables["persons"]["sex"] == "m").mean()) < 4 * share.std_error


@pytest.mark.parametrize(("unit", "rests"), [(None, True), ("person", False)])
def test_a_plan_says_whether_keys_alone_tell_whose_rows_are(unit, rests):
    known = schema(N, measurements={} if unit is None else {"unit": unit})
    lines = MaxEntropy(epsilon=1.0, delta=1e-6).description(known).assumptions
    assert any("Rows below visits are found by its key alone" in line for line in lines) == rests


def test_a_plan_says_what_is_seen_between_tables():
    """Of fewer persons less: three standard errors are kept, two are not."""

    def forecast(n):
        stages = MaxEntropy(epsilon=1.0, delta=1e-6).describe_plan(schema(n))["stages"]
        return {stage["name"]: stage["forecast"] for stage in stages}

    words = forecast(4000)
    assert "of a correlation" in words["visits, first rows: second moments"]
    assert "say of it" not in words["visits, first rows: second moments"]
    drugs = words["drugs, first rows: second moments"]
    assert "what visits, measurements say of it is kept beyond a correlation of about ±0." in drugs
    assert drugs != forecast(20_000)["drugs, first rows: second moments"]
    assert (
        "kept beyond a correlation of about ±1, mostly lost below" in forecast(300)["drugs, first rows: second moments"]
    )
