"""Intervals of tables of few records, where noise is as large as what a model may be off by."""

import numpy as np
import pandas as pd
import pytest

from fixtures.parts import COLUMNS, law
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns import Categorical, Integer
from sfumato.errors import EstimateError

MEAN, FITS, N = 2.7, 40, 120


def test_a_model_that_was_fitted_to_noise_is_taken_to_be_off_by_it():
    errors = []
    for seed in range(FITS):
        rows = law(N, 0, np.random.default_rng([11, seed]))
        release = MaxEntropy(epsilon=1.0, delta=1e-5).fit(rows, schema=Schema(columns=COLUMNS, rows=N), seed=seed)
        answer = release.mean("x")
        errors.append((answer.value - MEAN) / answer.std_error)
    assert (np.abs(errors) < 1.96).mean() >= 0.88
    assert 0.6 < np.std(errors) < 1.3, "it was 1.6 where noise was not a part of the model's error"
    assert abs(np.mean(errors)) < 0.4, "nor is an answer pulled to where the model has its mean without noise"


def pair(n, rng):
    """Two labels of three levels, .66 of one given the other, among columns that go with nothing."""
    first = rng.integers(0, 3, n)
    second = np.where(rng.random(n) < 0.66, first, (first + rng.integers(1, 3, n)) % 3)
    others = {f"o{place}": rng.integers(0, 3, n) for place in range(10)}
    return pd.DataFrame(
        {name: np.array(list("abc"))[codes] for name, codes in {"c": first, "r": second, **others}.items()}
    )


def test_a_strong_pair_among_many_columns_is_covered():
    """Noise on products is many times that on counts, and the model leaves out most of what it hides."""
    errors = []
    for seed in range(24):
        frame = pair(1_000, np.random.default_rng([7, seed]))
        columns = {name: Categorical(categories=("a", "b", "c")) for name in frame}
        release = MaxEntropy(epsilon=1.0, delta=1e-5).fit(frame, schema=Schema(columns=columns, rows=1_000), seed=seed)
        answer = release.share({"c": "a", "r": "a"}, target="table")
        errors.append((answer.value - ((frame["c"] == "a") & (frame["r"] == "a")).mean()) / answer.std_error)
    assert (np.abs(errors) < 1.96).mean() >= 0.88
    assert abs(np.mean(errors)) < 0.5, "nor is it pulled to where the model has the pair independent"


def test_a_column_that_noise_hid_but_for_one_value_is_refused_and_not_exact():
    """Seven rows of ten are 0, and the model of this seed draws nothing else: the mean was 0 ± 0, the share 1 ± 0."""
    rng, schema = np.random.default_rng([5, 3, 100]), Schema(columns={"x": Integer(lower=0, upper=300)}, rows=100)
    rows = np.where(rng.random(100) < 0.7, 0, rng.exponential(40, 100))
    frame = pd.DataFrame({"x": np.clip(np.round(rows), 0, 300).astype(int)})
    release = MaxEntropy(epsilon=0.5, delta=1e-5).fit(frame, schema=schema, seed=1)
    assert set(release.sample(2_000, seed=0)["x"]) == {0}, "another seed shows it"
    for ask in (
        lambda: release.mean("x"),
        lambda: release.variance("x"),
        lambda: release.quantile("x", 0.5),
        lambda: release.share({"x": (0, 0)}),
    ):
        with pytest.raises(EstimateError, match="all but one value"):
            ask()
    constant = MaxEntropy(epsilon=NonPrivate()).fit(0 * frame, schema=schema)
    assert (constant.mean("x").value, constant.mean("x").std_error) == (0, 0), "without noise it is exact"
