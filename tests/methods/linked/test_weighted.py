"""Weighted linked rows: units of the weighted population, with their rows; of a law with known answers."""

from dataclasses import replace

import numpy as np
import pytest

from fixtures import linked, two_tables
from fixtures.costly import slow_after
from sfumato import MaxEntropy, NonPrivate, Schema, load
from sfumato.errors import ConfigError, ReleaseError, SchemaError
from sfumato.evaluate import evaluate
from sfumato.report.write import write_report

N = 6_000
PARTS = ("units: ", "steps: ")


def document(tables: bool = False):
    source = two_tables.DOCUMENT if tables else linked.DOCUMENT
    found = {
        **source,
        "columns": {**source["columns"], "w": {"kind": "continuous", "lower": 0, "upper": 10}},
        "weight": "w",
    }
    if tables:
        persons = {"key": "patient", "rows": N, "columns": ["sex", "born", "w"]}
        return {**found, "tables": {"persons": persons, "visits": source["tables"]["visits"]}}
    return {**found, "unit": {**source["unit"], "units": N, "constant": ["sex", "born", "w"]}}


def survey(n=N, seed=0):
    """Women weigh 2 and men 8: of the population, 45·2 ÷ (45·2 + 55·8) are women."""
    frame = linked.visits(n, seed)
    return frame.assign(w=np.where(frame["sex"] == "f", 2.0, 8.0))


WOMEN = 0.45 * 2 / (0.45 * 2 + 0.55 * 8)


@pytest.fixture(scope="module", params=slow_after(1, [NonPrivate(), 8.0]), ids=["no noise", "noise"])
def release(request):
    method = MaxEntropy(epsilon=request.param, delta=1e-6, calibration_rows=4_000)
    return method.fit(survey(), schema=Schema.from_dict(document()), seed=0)


def test_samples_are_units_of_the_population(release):
    sample = release.sample(6_000, seed=1)
    assert list(sample.columns) == ["patient", "day", "sex", "born", "score", "state"]
    of_units = sample.groupby("patient")["sex"].first()
    assert abs((of_units == "f").mean() - WOMEN) < 0.03
    real, made = (linked.figures(frame) for frame in (linked.in_order(linked.visits(20_000, 5)), sample))
    assert abs(made["rows"] - real["rows"]) < 0.15
    assert abs(made["correlation"] - real["correlation"]) < 0.08
    assert abs(made["gap"] - real["gap"]) < 4
    assert linked.apart(real, made) < 0.08
    assert made["constants"] == 1
    later = sample[sample.groupby("patient").cumcount() > 0]
    assert abs((later["sex"] == "f").mean() - WOMEN) < 0.04


def test_steps_count_by_the_weight_and_do_not_have_it(release):
    """A column that is nearly constant, or nearly another one, would only bring noise into the walks."""
    queries = {part: [m.query for m in release.measurements if m.name.startswith(part)] for part in PARTS}
    columns = {part: {cells.column for q in found for cells in q.cells} for part, found in queries.items()}
    assert "w" in columns["units: "]
    assert "w" not in columns["steps: "]
    assert {q.weight for found in queries.values() for q in found} == {"w"}
    assert release.sampler["weight"] == "w"
    with pytest.raises(ReleaseError, match="constant column as the weight"):
        replace(release, sampler={**release.sampler, "weight": "score"}).sample(3)


def test_a_weight_of_one_value_leaves_the_rows_of_a_unit_as_they_are():
    """Of the bound's half: noise is that of half the units, and their law is no other."""
    frame = linked.visits(N).assign(w=5.0)
    method = MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=4_000)
    real = linked.figures(linked.in_order(linked.visits(20_000, 5)))
    made = linked.figures(method.fit(frame, schema=Schema.from_dict(document()), seed=3).sample(8_000, seed=1))
    assert abs(made["correlation"] - real["correlation"]) < 0.08
    assert abs(made["gap"] - real["gap"]) < 4
    assert linked.apart(real, made) < 0.08


def test_estimates_of_units_are_of_the_population(release, tmp_path):
    answer = release.units.share({"sex": "f"})
    assert abs(answer.value - WOMEN) < 0.03
    low, high = answer.interval()
    assert low < WOMEN + 0.01
    assert high > WOMEN - 0.01
    release.save(tmp_path / "r.sfm")
    again = load(tmp_path / "r.sfm")
    assert again.certificate.weight.column == "w"
    assert again.units.share({"sex": "f"}).value == answer.value
    write_report(again, tmp_path / "page.html")


def test_two_tables_weigh_persons():
    tables = two_tables.tables(N)
    tables["persons"]["w"] = np.where(tables["persons"]["sex"] == "f", 2.0, 8.0)
    method = MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=4_000)
    found = method.fit(tables, schema=Schema.from_dict(document(tables=True)), seed=0).sample(6_000, seed=1)
    assert list(found["persons"].columns) == ["patient", "sex", "born"]
    assert abs((found["persons"]["sex"] == "f").mean() - WOMEN) < 0.03
    with_visits = found["persons"]["patient"].isin(found["visits"]["patient"])
    assert abs((~with_visits).mean() - (0.3 * WOMEN + 0.1 * (1 - WOMEN))) < 0.03


def test_what_is_refused(release, tmp_path):
    found = document()
    with pytest.raises(SchemaError, match="'w' outside constant of unit"):
        Schema.from_dict({**found, "unit": {**found["unit"], "constant": ["sex"]}})
    alone = {"column": "patient", "max_rows": 6, "constant": ["w"]}
    with pytest.raises(SchemaError, match="the weight alone among the constants"):
        Schema.from_dict({**found, "unit": alone})
    for ask in (
        lambda: evaluate(survey(50), survey(50), schema=release.schema),
        lambda: write_report(release, tmp_path / "p.html", real=survey(50)),
    ):
        with pytest.raises(ConfigError, match="without weights of linked rows for evaluation of real rows"):
            ask()
