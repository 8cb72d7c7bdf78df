"""A release says where its model is not what was measured, and says nothing where it is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.errors import ModelWarning
from sfumato.inference import agreement
from sfumato.inference.agreement import LEVEL, Disagreement, disagreements, in_words, warn_of_disagreements

N = 4_000
SCHEMA = {"columns": {"g": ["a", "b", "c"], "x": (-5, 5), "y": (-20, 20)}, "rows": N}


def people(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    g = rng.choice(3, N, p=[0.6, 0.3, 0.1])
    x = (rng.normal(size=N) + g).clip(-5, 5)
    return pd.DataFrame({"g": np.array(["a", "b", "c"])[g], "x": x, "y": (2 * x + rng.normal(size=N)).clip(-20, 20)})


@pytest.fixture(scope="module")
def release():
    return sfumato.fit(people(), SCHEMA, epsilon=1.0, delta=1e-6, seed=1)


def with_parameters(release, **arrays):
    broken = replace(release, parameters={**release.parameters, **arrays})
    broken.__dict__.pop("_disagreements", None)
    return broken


def test_a_model_that_has_what_was_measured(release):
    assert disagreements(release) == release.disagreements() == ()
    assert in_words(release) == ""


def test_noise_is_no_disagreement():
    """At the level of all comparisons not one fit in thousands differs by noise alone."""
    for seed in range(12):
        found = sfumato.fit(people(seed), SCHEMA, epsilon=0.3, delta=1e-6, seed=seed).disagreements()
        assert found == (), [str(one) for one in found]


@pytest.mark.parametrize(
    ("column", "array"), [("g", "column.0.table"), ("x", "column.1.table"), ("y", "column.2.table")]
)
def test_a_column_that_is_another(release, column, array):
    """Columns are raked to their tables."""
    broken = with_parameters(release, **{array: release.parameters[array][::-1].copy()})
    assert column in {one.columns[0] for one in broken.disagreements() if len(one.columns) == 1}
    assert all(one.chance < LEVEL for one in broken.disagreements())


def test_a_mean_is_told_in_the_columns_own_numbers(release):
    found = with_parameters(release, **{"column.1.table": release.parameters["column.1.table"][::-1].copy()})
    compared = [one for part in agreement._parts(found) for one in agreement._Comparison(part).all()]
    (mean,) = [one for one in compared if one.columns == ("x",) and one.what == "mean"]
    assert mean.model == pytest.approx(float(found.sample(20_000, seed=0)["x"].mean()), abs=0.1)
    assert mean.measured == pytest.approx(people()["x"].mean(), abs=0.2)
    assert "x: " in in_words(found)


def test_columns_that_do_not_go_together_any_more(release):
    broken = with_parameters(release, weights=np.zeros_like(release.parameters["weights"]))
    assert ("x", "y") in {one.columns for one in broken.disagreements()}
    assert "x and y: together otherwise" in in_words(broken)


def test_it_is_said(release):
    broken = with_parameters(release, weights=np.zeros_like(release.parameters["weights"]))
    with pytest.warns(ModelWarning, match="not what was measured"):
        warn_of_disagreements(broken)
    assert "not what was measured" in broken._repr_html_()
    assert "not what was measured" not in release._repr_html_()


def test_words_of_a_difference():
    assert str(Disagreement(("dose",), "mean", 1.25, 3.62, 0.05, 0.0)).startswith("dose: mean 1.25")


def test_sets_whose_model_is_another():
    """Of sets alone shares of items and of pairs are compared."""
    rng = np.random.default_rng(0)
    held = rng.random((3_000, 8)) < np.linspace(0.5, 0.05, 8)
    held[:, 7] |= held[:, 0]  # two that go together
    baskets = pd.DataFrame({"basket": [np.flatnonzero(row).tolist() for row in held]})
    schema = {"rows": len(held), "columns": {"basket": {"kind": "set", "n_items": 8, "max_length": 8}}}
    release = sfumato.LatentClasses(epsilon=3.0, delta=1e-6, n_classes=4).fit(baskets, schema=schema, seed=0)
    assert release.disagreements() == ()
    broken = with_parameters(release, item_shares=release.parameters["item_shares"][:, ::-1].copy())
    assert {one.columns for one in broken.disagreements()} == {("basket",)}
    assert "basket" in in_words(broken)


def test_sets_of_which_no_item_was_counted(tmp_path):
    """There is nothing to compare, and a page is made."""
    rng = np.random.default_rng(0)
    baskets = pd.DataFrame({"basket": [np.flatnonzero(row).tolist() for row in rng.random((400, 4)) < 0.4]})
    schema = {"rows": 400, "columns": {"basket": {"kind": "set", "n_items": 4, "max_length": 4}}}
    release = sfumato.DPGM(epsilon=2.0, delta=1e-5, n_clusters=2, epochs=1).fit(baskets, schema=schema, seed=0)
    assert release.disagreements() == ()
    release.report(tmp_path / "page.html")
