"""Estimates about tables below a table: what the records say without noise, and intervals that know persons."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fixtures import alike
from fixtures.command_line import call
from fixtures.database import hospital, ruled_document, ruled_hospital, schema
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.functions import SharedPart
from sfumato.inference.linked_rows import LinkedMeasurements, LinkedQuestions, _Model, questions_of
from sfumato.inference.noisy_totals import UnitSums
from sfumato.lenses.chain import plain_schema
from sfumato.records.database_records import DatabaseData
from sfumato.records.table_sources import TableSources, open_records
from sfumato.release.unit_releases import steps_of, units_of
from sfumato.schema.branch_schemas import branch_views

__all__ = ["call"]
N = 2_000
COUNT = "number of measurements"


def rows_of(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Rows of measurements with those above."""
    return tables["measurements"].merge(tables["visits"], on="visit").merge(tables["persons"], on="person")


@pytest.fixture(scope="module")
def records():
    return alike.tables(N, 1)


@pytest.fixture(scope="module")
def silent(records):
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=2_000)
    return method.fit(records, schema=alike.schema(N), seed=1)


@pytest.fixture(scope="module")
def noisy():
    """Of which one visit of a person counts whole, and one measurement after the first of a visit."""
    method = MaxEntropy(epsilon=3.0, delta=1e-6, calibration_rows=1_000)
    return method.fit(hospital(N, 1), schema=schema(N, visits={"weight": 2}), seed=1)


def test_without_noise_they_are_those_of_the_records(records, silent):
    rows, asked = rows_of(records), silent.table("measurements")
    assert asked.mean("value").value == pytest.approx(rows["value"].mean(), rel=1e-3)
    assert asked.count().value == pytest.approx(len(rows), rel=1e-6)
    assert asked.share({"flag": "high"}).value == pytest.approx((rows["flag"] == "high").mean(), abs=1e-6)
    assert asked.share({"ward": "a"}).value == pytest.approx((rows["ward"] == "a").mean(), abs=1e-6)
    assert asked.share({"sex": "f"}).value == pytest.approx((rows["sex"] == "f").mean(), abs=1e-6)
    assert asked.quantile("value").value == pytest.approx(rows["value"].median(), abs=0.1)
    assert asked.variance("value").value == pytest.approx(rows["value"].var(), rel=0.02)
    pairs = asked.crosstab("ward", "flag")
    for pair, of_pair in rows.groupby(["ward", "flag"]):
        assert pairs[pair].value == pytest.approx(len(of_pair), rel=0.02)
    by_flag = asked.mean("value", by="flag").difference("high", "low").value
    of_flags = rows.groupby("flag")["value"].mean()
    assert by_flag == pytest.approx(of_flags["high"] - of_flags["low"], rel=0.05)
    slope = np.polyfit(rows["value"], rows["sex"] == "f", 1)[0]
    assert asked.ols("sex ~ value").params["value"] == pytest.approx(-slope, abs=3e-3)


def test_without_noise_rows_above_are_those_of_the_records(records, silent):
    visits, asked = records["visits"], silent.table("measurements").units
    sizes = records["measurements"].groupby("visit").size().reindex(visits["visit"], fill_value=0)
    assert asked.mean(COUNT).value == pytest.approx(sizes.mean(), rel=1e-3)
    assert asked.count().value == pytest.approx(len(visits), rel=1e-6)
    assert asked.share({"ward": "a"}).value == pytest.approx((visits["ward"] == "a").mean(), abs=1e-6)


def test_errors_are_those_of_persons_and_not_of_rows(records, silent):
    """By the records' own persons; rows taken for independent ones have half of it."""
    rows, asked = rows_of(records), silent.table("measurements")
    answers = {
        "value": (asked.mean("value"), rows["value"]),
        "square": (asked.variance("value"), (rows["value"] - rows["value"].mean()) ** 2),
        "high": (asked.share({"flag": "high"}), (rows["flag"] == "high").astype(float)),
        "ward": (asked.share({"ward": "a"}), (rows["ward"] == "a").astype(float)),
    }
    for name, (answer, values) in answers.items():
        of_persons = (values - values.mean()).groupby(rows["person"]).sum()
        right, naive = np.sqrt((of_persons**2).sum()) / len(rows), values.std() / np.sqrt(len(rows))
        assert answer.parts["sampling"] == pytest.approx(right, rel=0.08), name
        assert answer.parts["sampling"] > 1.3 * naive, name


def test_rows_are_counted_and_clipped_as_they_were_measured(noisy):
    """What the parts say of the records' own rows is off what was released by the stated noise, and no more."""
    measured = questions_of(noisy.table("measurements")).measured
    source, view = open_records(hospital(N, 1), noisy.schema), branch_views(noisy.schema)["measurements"]
    assert isinstance(measured, LinkedMeasurements)
    assert isinstance(source, TableSources)
    data = DatabaseData(source, noisy.schema)
    own = _Model.of(measured.linked, data.sequences(view))
    assert measured.linked.steps is not None
    of_units = measured.unit_part, units_of(measured.release), own.units, own.unit_owners, 5
    steps = steps_of(measured.release, plain_schema(measured.linked.steps))
    for model, released, rows, owners, most in (of_units, (measured.step_part, steps, own.steps, own.step_owners, 10)):
        assert isinstance(model, SharedPart)
        assert model.room < model.most == most
        part = SharedPart(released, "", rows, UnitSums(owners, N), most, [], {})
        assert part.products is not None
        entries = [e.whole[part.base.of(e.cells)] for e in part.products.query.features]
        vectors = np.concatenate(entries, axis=1) * part.products.query.unit
        missed = part.products.pooled - (vectors * part.clipping[:, None]).T @ vectors
        upper = np.triu_indices(len(missed), 1)
        off = np.concatenate([np.diag(missed), np.sqrt(2) * missed[upper]]) / np.sqrt(part.products.variance)
        assert 0.7 < np.mean(off**2) < 1.4
        counted = [
            (t.value - np.bincount(part.base.of(t.axes[0]), part.row_counts, t.value.size)) / np.sqrt(t.variance)
            for t in part.tables
            if t.axes
        ]
        assert 0.8 < np.mean(np.concatenate(counted) ** 2) < 1.25


def test_what_lies_between_two_columns_of_rows_above_is_refused(noisy):
    asked = noisy.table("measurements")
    for part in (asked, asked.units):
        with pytest.raises(EstimateError, match="'at', of which the fit measured where it lies between 'start'"):
            part.mean("at")


@pytest.mark.slow
def test_under_rules_and_between_two_columns_rows_are_those_of_the_records():
    tables, document = ruled_hospital(600, 1), ruled_document(600)
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=600)
    release = method.fit(tables, schema=Schema.from_dict(document), seed=1)
    rows, asked = rows_of(tables), release.table("measurements")
    for name in ("value", "reported", "stay", "score"):
        assert asked.mean(name).value == pytest.approx(rows[name].mean(), rel=0.01)
    first = rows.groupby("visit").first()
    assert asked.units.mean("reported").value == pytest.approx(first["reported"].mean(), rel=0.01)


def test_a_table_three_below_has_answers():
    """Persons, visits, measurements, and findings of these."""
    tables = alike.tables(600, 2)
    rows = tables["measurements"].reset_index(names="measurement")
    rng = np.random.default_rng(1)
    of = np.repeat(np.arange(len(rows)), rng.integers(0, 3, len(rows)))
    finding = (rows["value"].to_numpy()[of] + rng.normal(0, 1, of.size)).clip(0, 20).round(2)
    findings = pd.DataFrame({"measurement": of, "finding": finding})
    entries = {**alike.TABLES, "findings": {"of": "measurements", "max_rows": 2, "columns": ["finding"]}}
    entries["measurements"] = {**entries["measurements"], "key": "measurement"}
    entries["persons"] = {**entries["persons"], "rows": 600}
    columns = {**alike.COLUMNS, "measurement": "identifier", "finding": alike.COLUMNS["value"]}
    known = Schema.from_dict({"tables": entries, "columns": columns})
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=600)
    release = method.fit({**tables, "measurements": rows, "findings": findings}, schema=known, seed=1)
    answer, whole = release.table("findings").mean("finding"), findings["finding"]
    assert answer.value == pytest.approx(whole.mean(), rel=0.01)
    person = rows.merge(tables["visits"], on="visit")["person"].to_numpy()[of]
    right = np.sqrt(((whole - whole.mean()).groupby(person).sum() ** 2).sum()) / len(whole)
    assert answer.parts["sampling"] == pytest.approx(right, rel=0.2)


def test_the_stated_noise_is_what_redrawn_noise_moves(noisy):
    estimator = LinkedQuestions(noisy.table("measurements")).estimator(("value",), "table")
    calibration, rng = estimator.calibration, np.random.default_rng(3)
    values = questions_of(noisy.table("measurements")).measured.frame["value"].to_numpy()
    functions = np.column_stack([np.ones_like(values), values])
    moved = np.array([calibration.redraw(rng) @ functions for _ in range(300)])
    stated = np.sqrt(np.diag(calibration.variances(functions).noise))
    assert moved.std(axis=0) == pytest.approx(stated, rel=0.15)


def test_what_was_not_measured_is_refused(noisy):
    asked = noisy.table("measurements")
    for ask in (lambda: asked.mean("value", by="sex"), lambda: asked.correlation("value", "score")):
        with pytest.raises(EstimateError, match=r"share the bound of 1 of up to 10 of a unit.* Fit with a larger"):
            ask()
    with pytest.raises(EstimateError, match=r"share the bound of 1 of up to 5 of a unit"):
        asked.units.mean("score", by="sex")
    with pytest.raises(ConfigError, match=r"release\.units"):
        asked.mean(COUNT)
    with pytest.raises(EstimateError, match="rows above of which a unit has several"):
        asked.units.replicates(2)
    with pytest.raises(ConfigError, match="got 'valu'"):
        asked.units.mean("valu")
    note = asked.mean("value").rests_on
    assert note.startswith("Errors are those of independent rows of 'persons'")
    assert "Of a row above at most 3 rows count. " in note


def test_rows_that_noise_hides_are_refused(noisy, monkeypatch):
    levels = type(noisy._sampler).levels
    monkeypatch.setattr(type(noisy._sampler), "levels", lambda self, n, rng: _without(levels(self, n, rng)))
    with pytest.raises(EstimateError, match="none that stand out of noise"):
        LinkedQuestions(noisy.table("measurements"))
    monkeypatch.setattr("sfumato.inference.linked_rows._MOST_ROWS", 1 << 12)
    with pytest.raises(EstimateError, match="some tens"):
        LinkedQuestions(noisy.table("measurements"))


def _without(levels):
    level = levels["measurements"]
    none = {name: codes[:0] for name, codes in level.codes.items()}
    levels["measurements"] = replace(level, above=level.above[:0], owners=level.owners[:0], codes=none)
    return levels


def test_the_command_and_the_list(call, noisy, tmp_path):
    noisy.save(tmp_path / "r.sfm")
    asked = noisy.table("measurements")
    told = call("estimate", tmp_path / "r.sfm", "--table", "measurements", "mean", "value", "--json").json
    assert told["value"] == asked.mean("value").value
    above = call("estimate", tmp_path / "r.sfm", "--table", "measurements", "--units", "mean", COUNT, "--json").json
    assert above["value"] == asked.units.mean(COUNT).value
    listed = asked.answers(most_pairs=0).set_index(["kind", "first"])
    assert listed.loc[("mean", "value"), "answered"] == "yes"
    assert "between 'start' and 'end'" in listed.loc[("mean", "at"), "why"]


@pytest.mark.slow
def test_intervals_cover():
    """60 draws and fits: an interval of 95 % covers fewer than 52 of them once in 3,000 times."""
    everyone = rows_of(alike.tables(200_000, 7))
    true = {"mean": everyone["value"].mean(), "high": (everyone["flag"] == "high").mean()}
    true |= {"median": everyone["value"].median(), "variance": everyone["value"].var()}
    covered = dict.fromkeys(true, 0)
    for seed in range(60):
        method = MaxEntropy(epsilon=3.0, delta=1e-6)
        release = method.fit(alike.tables(N, 300 + seed), schema=alike.schema(N), seed=seed)
        asked = release.table("measurements")
        answers = {"mean": asked.mean("value"), "high": asked.share({"flag": "high"})}
        answers |= {"median": asked.quantile("value"), "variance": asked.variance("value")}
        for name, answer in answers.items():
            low, high = answer.interval()
            covered[name] += low <= true[name] <= high
    assert min(covered.values()) >= 52, covered


def test_a_table_is_not_saved_without_the_whole(noisy, tmp_path):
    """What is saved alone would not know whose rows are whose."""
    for name in ("visits", "measurements"):
        with pytest.raises(ConfigError, match=f"whole release to save, got its table '{name}'"):
            noisy.table(name).save(tmp_path / "part.sfm")
        with pytest.raises(ConfigError, match="Save the whole"):
            noisy.table(name).to_bytes()
    assert not list(tmp_path.iterdir())
