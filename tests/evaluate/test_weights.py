"""Scores of weighted rows: those of the population that they stand for, row by row."""

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, Schema
from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import DataError, SchemaError
from sfumato.evaluate import classifier_scores, correlation_differences, evaluate, total_variation
from sfumato.evaluate.coded_tables import read_codes
from sfumato.io.sources import open_source
from sfumato.report.write import write_report

COLUMNS = {
    "x": Continuous(lower=-4, upper=4),
    "y": Continuous(lower=-6, upper=6),
    "g": Categorical(categories=("a", "b")),
    "h": Categorical(categories=("c", "d", "e")),
    "w": Integer(lower=0, upper=8),
}
SCHEMA = Schema(columns=COLUMNS, weight="w", rows=2_000)
PLAIN = Schema(columns={name: kind for name, kind in COLUMNS.items() if name != "w"}, rows=2_000)


def survey(n=2_000, seed=0):
    """Whoever has a large x is drawn seldom, and weighs much."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).clip(-4, 4)
    w = np.clip(np.rint(np.exp(x)), 0, 8).astype(int)
    g = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * x)), "b", "a")
    h = np.where(rng.random(n) < 0.5, np.where(g == "a", "c", "d"), "e")
    return pd.DataFrame({"x": x, "y": (x + rng.normal(size=n)).clip(-6, 6), "g": g, "h": h, "w": w})


def repeated(frame):
    return frame.loc[frame.index.repeat(frame["w"])].drop(columns="w").reset_index(drop=True)


@pytest.fixture(scope="module")
def real():
    return survey()


@pytest.fixture(scope="module")
def rows():
    return survey(seed=1).drop(columns="w")


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_weight_is_so_many_rows(real, rows, k):
    weighted = total_variation(real, rows, schema=SCHEMA, k=k)
    assert weighted == pytest.approx(total_variation(repeated(real), rows, schema=PLAIN, k=k), abs=1e-12)
    assert weighted > total_variation(real.drop(columns="w"), rows, schema=PLAIN, k=k) + 0.03
    assert total_variation(real, repeated(real), schema=SCHEMA, k=k) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("gaps", [False, True])
def test_correlations_are_those_of_so_many_rows(real, rows, gaps):
    def nullable(schema):
        kinds = {**schema.columns, "x": Continuous(lower=-4, upper=4, nullable=True)}
        return Schema(columns=kinds, rows=2_000, weight=schema.weight)

    frame = real.assign(x=real["x"].where(np.arange(len(real)) % 5 > 0)) if gaps else real
    ours, theirs = (
        correlation_differences(table, rows, schema=nullable(schema))
        for table, schema in ((frame, SCHEMA), (repeated(frame), PLAIN))
    )
    for measure in ("pearson", "cramers_v"):
        assert ours[measure]["mean"] == pytest.approx(theirs[measure]["mean"], abs=1e-9)
        assert ours[measure]["worst"] == theirs[measure]["worst"]


def test_classifiers_are_scored_by_weight(real, rows):
    ours = classifier_scores(rows, real, schema=SCHEMA, target="g")
    theirs = classifier_scores(rows, repeated(real), schema=PLAIN, target="g")
    for key in ("auroc", "auprc", "accuracy"):
        assert ours[key] == pytest.approx(theirs[key], abs=1e-9)


def test_rows_are_drawn_by_weight(real):
    table = read_codes(open_source(real), SCHEMA)
    drawn = table.population(0)
    assert drawn.weights is None
    assert drawn.n_rows == table.n_rows
    mean = np.average(table.columns["x"], weights=real["w"])
    assert drawn.columns["x"].mean() == pytest.approx(mean, abs=0.003)
    assert not np.isin(table.columns["x"][real["w"] == 0], drawn.columns["x"]).any()


@pytest.mark.slow
def test_all_scores_and_a_page(real, tmp_path):
    release = MaxEntropy(epsilon=50.0, delta=1e-6, calibration_rows=2_000).fit(real, schema=SCHEMA, seed=0)
    scores = release.evaluate(real, target="g", train_rows=500)
    unweighted = evaluate(real.drop(columns="w"), release.sample(seed=0), schema=PLAIN, target="g", train_rows=500)
    assert scores["fidelity"]["tvd_1way"] < 0.04 < unweighted["fidelity"]["tvd_1way"]
    assert scores["fidelity"]["log_likelihood"]["real"] is not None
    assert 0.5 < scores["utility"]["clustering"]["real"] <= 1
    write_report(release, tmp_path / "page.html", real=real, target="g", train_rows=500)
    assert "not private" in (tmp_path / "page.html").read_text().casefold()


def test_rows_without_their_weights_are_refused(real, rows):
    with pytest.raises(SchemaError, match="got no column 'w'"):
        evaluate(real.drop(columns="w"), rows, schema=SCHEMA)
    with pytest.raises(DataError, match="weights above 0 in column 'w'"):
        evaluate(real.assign(w=0), rows, schema=SCHEMA)
