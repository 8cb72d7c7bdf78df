"""Intervals of tables of few records, where noise is as large as what a model may be off by."""

import numpy as np

from fixtures.parts import COLUMNS, law
from sfumato import MaxEntropy, Schema

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
