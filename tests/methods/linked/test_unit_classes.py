"""A constant of units as target: the class of a unit, on a law whose columns go together otherwise in each class."""

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures import linked, linked_rules, two_tables
from fixtures.costly import slow_after
from sfumato import MaxEntropy, NonPrivate, Schema, load
from sfumato.errors import ConfigError, ReleaseError, SampleWarning
from sfumato.methods.linked import recipe
from sfumato.release import blocks

FEW, SLOPE = 2_000, 0.3
METHOD = MaxEntropy(epsilon=NonPrivate(), calibration_rows=12_000)


def crossed(frame: pd.DataFrame) -> pd.DataFrame:
    """The visits where later years of birth have higher scores of women, and lower ones of men."""
    slope = np.where(frame["sex"] == "f", 2 * SLOPE, 0.0)
    return frame.assign(score=(frame["score"] + slope * (frame["born"] - 1965)).clip(0, 100).round(1))


def slopes(rows: pd.DataFrame) -> dict[str, float]:
    """Score by year of birth, in first rows of each sex."""
    first = rows.drop_duplicates("patient")
    return {sex: float(np.polyfit(own["born"], own["score"], 1)[0]) for sex, own in first.groupby("sex")}


@pytest.fixture(scope="module")
def frame():
    return crossed(linked.in_order(linked.visits(FEW)))


@pytest.fixture(scope="module")
def release(frame):
    return METHOD.fit(frame, schema=linked.schema(units=FEW), target="sex", seed=0)


@pytest.fixture(scope="module")
def both():
    tables = two_tables.tables(FEW)
    return METHOD.fit(tables, schema=two_tables.schema(FEW), target="sex", seed=0)


def test_the_law_comes_back_in_each_class(frame, release):
    plain = METHOD.fit(frame, schema=linked.schema(units=FEW), seed=0)
    rows, without = release.sample(8_000, seed=1), plain.sample(8_000, seed=1)
    real, made = linked.figures(frame), linked.figures(rows)
    assert made["constants"] == 1
    assert made["rows"] == pytest.approx(real["rows"], abs=0.05)
    assert made["correlation"] == pytest.approx(real["correlation"], abs=0.02)
    assert linked.apart(real, made) < 0.03
    share = [table.drop_duplicates("patient")["sex"].eq("f").mean() for table in (frame, rows)]
    assert share[1] == pytest.approx(share[0], abs=0.005)
    assert slopes(frame) == pytest.approx({"f": 0.4, "m": -0.2}, abs=0.05)
    assert slopes(rows) == pytest.approx(slopes(frame), abs=0.08)
    assert abs(slopes(without)["f"] - slopes(without)["m"]) < 0.25, "classes are not told apart without a target"


def test_later_rows_depend_on_the_class_as_without_a_target(frame, release):
    def by_class(rows):
        later = rows[rows.groupby("patient").cumcount() > 0]
        states = pd.crosstab(later["sex"], later["state"], normalize="index").to_numpy()
        return later.groupby("sex")["score"].mean().to_numpy(), states

    frame = frame.assign(state=np.where((frame["sex"] == "f") & (frame["state"] == "d"), "a", frame["state"]))
    found = METHOD.fit(frame, schema=linked.schema(units=FEW), target="sex", seed=0).sample(8_000, seed=1)
    (real, states), (made, drawn) = by_class(frame), by_class(found)
    np.testing.assert_allclose(made, real, atol=1.0)
    np.testing.assert_allclose(drawn, states, atol=0.03)
    assert drawn[0, 3] < 0.01


def test_a_target_costs_as_much_as_none():
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    plain, by_class = (method.plan(linked.schema(), target=target) for target in (None, "sex"))
    assert plain == by_class


@pytest.mark.parametrize("counts", [{"f": 300, "m": 41}, {"m": 5}, {"f": 0}], ids=str)
def test_as_many_units_of_each_class_as_are_asked_for(release, both, counts, monkeypatch):
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 64)
    exactly = {label: n for label, n in counts.items() if n}
    rows = release.sample(class_counts=counts, seed=1)
    assert rows.drop_duplicates("patient")["sex"].value_counts().to_dict() == exactly
    assert rows["patient"].drop_duplicates().tolist() == list(range(1, sum(counts.values()) + 1))
    tables = both.sample(class_counts=counts, seed=1)
    assert tables["persons"]["sex"].value_counts().to_dict() == exactly
    assert tables["visits"]["patient"].isin(tables["persons"]["patient"]).all()


def test_persons_without_visits_are_as_many_in_each_class(both):
    made = both.sample(class_counts={"f": 3_000, "m": 3_000}, seed=2)
    real = two_tables.with_visits(two_tables.tables(FEW))
    assert two_tables.with_visits(made) == pytest.approx(real, abs=0.03)
    assert made["visits"]["state"].notna().all()


def test_units_that_take_the_place_of_others_are_of_their_class(both, monkeypatch):
    """First rows that are drawn again, of a law where every row says the class."""
    tables = two_tables.tables(FEW)
    sex = tables["visits"]["patient"].map(tables["persons"].set_index("patient")["sex"])
    tables["visits"]["state"] = np.where(sex == "f", "a", "d")
    tables["visits"] = tables["visits"].drop_duplicates("patient")
    schema = two_tables.schema(FEW, max_rows=1)
    found = METHOD.fit(tables, schema=schema, target="sex", seed=0)
    made = found._sampler.units(6_000, np.random.default_rng(0)).rows
    assert (made["state"][made["sex"] == 0] == 0).mean() > 0.97
    assert (made["state"][made["sex"] == 1] == 3).mean() > 0.97


def test_class_counts_beside_given_constants_and_rules():
    found = MaxEntropy(epsilon=3.0, delta=1e-6, calibration_rows=500).fit(
        linked_rules.visits(), schema=Schema.from_dict(linked_rules.DOCUMENT), target="sex", seed=0
    )
    rows = found.sample(class_counts={"f": 7, "m": 400}, given={"age": 30}, seed=1)
    assert linked_rules.keeps_all(rows)
    assert set(rows["age"]) == {30}
    assert rows.drop_duplicates("who")["sex"].value_counts().to_dict() == {"f": 7, "m": 400}
    with pytest.raises(ConfigError, match="either class_counts or a given 'sex'"):
        found.sample(class_counts={"f": 3}, given={"sex": "f"})


@pytest.mark.slow
def test_workers_draw_the_same_and_files_come_back(release, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 16_384)  # as workers have it
    release.save(tmp_path / "r.sfm")
    counts = {"f": 15_000, "m": 5_000}
    one = pa.concat_tables(release.batches(class_counts=counts, seed=5))
    assert pa.concat_tables(load(tmp_path / "r.sfm").batches(class_counts=counts, seed=5, workers=2)).equals(one)


@pytest.mark.parametrize("tables", [False, True], ids=["one table", "two tables"])
def test_a_target_that_varies_is_refused_before_anything_is_charged(tables, tmp_path):
    data, schema = (two_tables.tables(50), two_tables.schema(50)) if tables else (linked.visits(50), linked.schema())
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    with pytest.raises(ConfigError, match=r"which has no one class of it\. Make 'state' a constant of the unit, or"):
        method.fit(data, schema=schema, target="state", ledger=tmp_path / "rows.ledger")
    assert not (tmp_path / "rows.ledger").exists()
    with pytest.raises(ConfigError, match="for a target that varies from row to row"):
        method.plan(schema, target="day")


def test_a_number_as_target_has_no_classes(frame):
    found = MaxEntropy(epsilon=3.0, delta=1e-6, calibration_rows=500)
    release = found.fit(frame, schema=linked.schema(units=FEW), target="born", seed=0)
    assert release.sample(20, seed=0)["patient"].nunique() == 20
    with pytest.raises(ConfigError, match="release without one"):
        release.sample(class_counts={1950: 3})


def test_what_follows_from_the_numbers_of_rows_is_read_off_beside_a_class(monkeypatch):
    laws, original = [], recipe.room_of
    monkeypatch.setattr(
        recipe,
        "room_of",
        lambda fit, names, sizes, law, n: laws.append((law, n)) or original(fit, names, sizes, law, n),
    )
    frame = linked.visits(FEW)
    weights = frame.assign(w=np.where(frame["sex"] == "f", 2.0, 8.0))
    weighted = {**linked.DOCUMENT, "weight": "w"}
    weighted["unit"] = {**linked.DOCUMENT["unit"], "units": FEW, "constant": ["born", "sex", "w"]}
    weighted["columns"] = {**linked.DOCUMENT["columns"], "w": {"kind": "continuous", "lower": 0, "upper": 10}}
    method = dataclasses.replace(METHOD, calibration_rows=300)
    for target in ("sex", None):
        method.fit(frame, schema=linked.schema(units=FEW), target=target, seed=0)
        method.fit(weights, schema=Schema.from_dict(weighted), target=target, seed=0)
    np.testing.assert_allclose(laws[0][0], linked.ROWS, atol=0.02)
    for (of_class, n), (plain, m) in zip(laws[:2], laws[2:], strict=True):
        np.testing.assert_allclose(of_class, plain, atol=1e-3)
        assert n == pytest.approx(m, rel=1e-6)


def test_damaged_releases_are_refused(release, both):
    def with_target(found, part, target):
        sampler = {**found.sampler, part: {**found.sampler[part], "target": target}}
        return dataclasses.replace(found, sampler=sampler)

    for found in (release, both):
        for part, target in (("units", "state"), ("units", "nowhere"), ("steps", "state")):
            with pytest.raises(ReleaseError):
                with_target(found, part, target).check()
    turned = {**both.parameters, "units.order": both.parameters["units.order"][::-1].copy()}
    with pytest.raises(ReleaseError):
        dataclasses.replace(both, parameters=turned).check()


@pytest.mark.parametrize("columns", slow_after(1, [["sex", "state"], ["sex", "state", "score"], ["sex"]]), ids=str)
def test_every_row_of_a_unit_is_also_one_of_another_unit(release, columns):
    n = 4_000 if "score" in columns else 400  # of tenths of a point, others are alike among many
    rows = release.sample(n, seed=3, unique_rows="drop", unique_columns=columns)
    assert rows["patient"].drop_duplicates().tolist() == list(range(1, n + 1))
    assert rows.groupby(columns)["patient"].nunique().min() > 1
    assert (rows.groupby("patient")["day"].diff().dropna() >= 0).all()
    pd.testing.assert_frame_equal(
        rows, release.sample(n, seed=3, unique_rows="drop", unique_columns=columns), obj="the same seed"
    )


def test_units_are_whole_and_those_that_were_drawn(release, monkeypatch):
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 64)
    columns = ["sex", "state", "born"]
    rows = release.sample(300, seed=3, unique_rows="drop", unique_columns=columns)
    drawn = release.sample(300 * 16, seed=3)
    assert rows["patient"].nunique() == 300
    every = drawn.groupby("patient").apply(lambda own: tuple(own.itertuples(index=False, name=None)))
    stay = rows.groupby("patient").apply(lambda own: tuple(own.itertuples(index=False, name=None)))
    walks = {tuple(row[1:] for row in walk) for walk in every}
    assert all(tuple(row[1:] for row in walk) in walks for walk in stay)


def test_persons_without_rows_are_like_others_without(both):
    columns = ["sex", "born", "state"]
    made = both.sample(300, seed=1, unique_rows="drop", unique_columns=columns)
    persons, visits = made["persons"], made["visits"]
    assert len(persons) == 300
    rows = visits.merge(persons, on="patient")
    assert rows.groupby(columns)["patient"].nunique().min() > 1
    alone = persons[~persons["patient"].isin(visits["patient"])]
    assert len(alone) > 20
    assert alone.groupby(["sex", "born"])["patient"].nunique().min() > 1
    assert both.sample(40, seed=1, unique_rows="drop", unique_columns=["state"])["persons"].shape[0] == 40


def test_too_few_units_are_told(release):
    with pytest.warns(SampleWarning, match=r"Expected 50 units without unique rows, got \d+: too few of \d+ that"):
        rows = release.sample(50, seed=1, unique_rows="drop")
    assert rows["patient"].nunique() < 50
    with pytest.raises(ConfigError, match="class_counts"):
        release.sample(class_counts={"f": 3}, unique_rows="drop")
    assert len(release.sample(0, seed=1, unique_rows="drop", unique_columns=["sex"])) == 0
