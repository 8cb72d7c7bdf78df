"""Estimates about the units of linked rows: what the records say without noise, and intervals with it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fixtures import linked, linked_rules, tables, two_tables
from fixtures.command_line import call
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.errors import ConfigError, EstimateError, ReleaseError

__all__ = ["call"]
N = 3_000
COUNT = "number of visits"


@pytest.fixture(scope="module")
def records():
    return two_tables.tables(N, 1)


@pytest.fixture(scope="module")
def silent(records):
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=2_000)
    return method.fit(records, schema=two_tables.schema(N), seed=1)


def units(records) -> pd.DataFrame:
    """A row per person: constants, number of rows, and the first row."""
    first = linked.in_order(records["visits"]).groupby("patient").first()
    persons = records["persons"].set_index("patient")
    sizes = records["visits"].groupby("patient").size().reindex(persons.index, fill_value=0)
    return persons.assign(**{COUNT: sizes}).join(first)


def test_without_noise_they_are_those_of_the_records(records, silent):
    real = units(records)
    asked = silent.units
    assert asked.columns == ("sex", "born", COUNT, "level of score", "trend of score", "day", "score", "state")
    for column in ("born", COUNT, "day", "score"):
        assert asked.mean(column).value == pytest.approx(real[column].mean(), rel=0.01)
    assert asked.share({"sex": "f"}).value == pytest.approx((real["sex"] == "f").mean(), abs=1e-6)
    assert asked.count({"state": "a"}).value == pytest.approx((real["state"] == "a").sum(), rel=1e-3)
    by_sex = asked.mean(COUNT, by="sex")
    for sex in "fm":
        assert by_sex[sex].value == pytest.approx(real.loc[real["sex"] == sex, COUNT].mean(), rel=0.01)
    assert asked.correlation("born", "score").value == pytest.approx(real["born"].corr(real["score"]), abs=0.02)


@pytest.mark.slow
@pytest.mark.audit
def test_replicates_are_units(records):
    release = MaxEntropy(epsilon=8.0, delta=1e-6).fit(records, schema=two_tables.schema(N), seed=1)
    drawn = release.units.replicates(2, n=20, seed=1)
    assert [len(table) for table in drawn] == [20, 20]
    assert list(drawn[0].columns) == list(release.units.columns)
    without = drawn[0][COUNT] == 0
    assert drawn[0].loc[without, "state"].isna().all()


def test_of_what_else_there_are_none(silent):
    with pytest.raises(ConfigError, match=r"release\.units"):
        silent.mean(COUNT)
    with pytest.raises(EstimateError, match=r"release\.units"):
        silent.replicates(2)
    with pytest.raises(ConfigError, match="'patient'"):
        silent.units.mean("patient")
    plain = MaxEntropy(epsilon=1.0, calibration_rows=100)
    release = plain.fit(tables.frame(200), seed=1, schema=tables.schema(), n_public=200)
    with pytest.raises(ConfigError, match="single rows"):
        _ = release.units


@pytest.mark.slow
def test_the_command(call, silent, tmp_path):
    silent.save(tmp_path / "r.sfm")
    told = call("estimate", tmp_path / "r.sfm", "--units", "mean", COUNT, "--json").json
    assert told["value"] == silent.units.mean(COUNT).value
    assert "--units" in call("estimate", tmp_path / "r.sfm", "mean", COUNT).err
    listed = call("estimate", tmp_path / "r.sfm", "--units", "--list", "--json").json
    assert {"first": COUNT, "kind": "mean"}.items() <= next(a for a in listed["answers"] if a["first"] == COUNT).items()


def test_arrays_of_a_stranger_are_refused(silent):
    broken = {key: array for key, array in silent.parameters.items() if not key.endswith(".shares")}
    with pytest.raises((ReleaseError, EstimateError)):
        replace(silent, parameters=broken).units.mean("born")


@pytest.mark.slow
def test_intervals_cover():
    """60 draws and fits: an interval of 95 % covers fewer than 52 of them once in 3,000 times."""
    everyone = linked.in_order(linked.visits(200_000, 7)).groupby("patient")
    first = everyone.first()
    true = everyone.size().mean(), (first["sex"] == "f").mean(), first["score"].mean()
    covered = np.zeros(3)
    for seed in range(60):
        data = linked.visits(2_000, 100 + seed)
        release = MaxEntropy(epsilon=1.0, delta=1e-6).fit(data, schema=linked.schema(units=2_000), seed=seed)
        asked = release.units
        answers = asked.mean("number of rows of patient"), asked.share({"sex": "f"}), asked.mean("score")
        for place, (answer, value) in enumerate(zip(answers, true, strict=True)):
            low, high = answer.interval()
            covered[place] += low <= value <= high
    assert covered.min() >= 52, covered


def test_columns_in_order_and_computed_ones_are_themselves_and_no_distances():
    """Under rules a later date is measured as its distance, and a difference is not measured at all."""
    rows = linked_rules.visits()
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=400)
    release = method.fit(rows, schema=Schema.from_dict(linked_rules.DOCUMENT), seed=1)
    first = rows.sort_values("admitted", kind="stable").groupby("who").first()
    for name in ("admitted", "discharged", "stay", "age"):
        assert release.units.mean(name).value == pytest.approx(first[name].mean(), rel=0.01)
        assert release.mean(name).value == pytest.approx(rows.groupby("who").head(4)[name].mean(), rel=0.05)
    assert release.units.share({"pregnant": "yes"}).value == pytest.approx(
        (first["pregnant"] == "yes").mean(), abs=1e-3
    )


def test_under_rules_a_unit_without_rows_lacks_all_of_a_row():
    """Columns in order, computed and derived: each is missing of whom has no row, though none may be in a row."""
    records = linked_rules.tables()
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=1_000)
    release = method.fit(records, schema=Schema.from_dict(linked_rules.TABLES), seed=1)
    first = records["visits"].sort_values("admitted", kind="stable").groupby("who").first()
    real = records["people"].set_index("who").join(first)
    for name in ("admitted", "discharged", "stay", "age"):
        assert release.units.mean(name).value == pytest.approx(real[name].mean(), rel=0.01)
    for name, label in {"pregnant": "yes", "ward": "child", "length": "short"}.items():
        assert release.units.share({name: label}).value == pytest.approx((real[name] == label).mean(), abs=0.01)
        assert release.units.share({name: None}).value == pytest.approx(1 / 3, abs=0.01)
    with pytest.raises(ConfigError, match="missing cells, got 'sex'"):
        release.units.share({"sex": None})
