"""Scores of data sets of mixtures, against records mixed here."""

import numpy as np
import pandas as pd
import pytest

from sfumato import Schema
from sfumato.errors import DataError
from sfumato.evaluate import mixture_scores
from sfumato.evaluate.mixtures import record_vectors

SCHEMA = Schema.from_dict(
    {
        "rows": 4000,
        "columns": {
            "a": {"kind": "continuous", "lower": -4, "upper": 4},
            "b": {"kind": "continuous", "lower": -4, "upper": 4},
            "y": {"kind": "categorical", "categories": ["n", "p"]},
        },
    }
)


def _frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    points = rng.normal(0, 0.7, (n, 2)) + np.where(y, 1.0, -1.0)[:, None]
    return pd.DataFrame({"a": points[:, 0], "b": points[:, 1], "y": np.where(y, "p", "n")})


def _mixed(frame: pd.DataFrame, n: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    x, y = record_vectors(frame, SCHEMA, "y")
    rng = np.random.default_rng(9)
    members = rng.integers(len(x), size=(n, 4))
    features = x[members].mean(axis=1) + noise * rng.standard_normal((n, x.shape[1]))
    return features, y[members].mean(axis=1)


def test_good_mixtures_teach_nearly_as_much_as_records() -> None:
    frame, test = _frame(4000, 0), _frame(4000, 1)
    features, labels = _mixed(frame, 20_000, 0.1)
    found = mixture_scores(frame, features, labels, schema=SCHEMA, target="y", noise_std=0.1, test=test)
    assert found["private"] is False
    assert found["rows"] == {"real": 4000, "mixtures": 20_000}
    assert found["fidelity"]["mean_entry"] < 0.01
    assert found["fidelity"]["classes"] < 0.02
    # least squares is Fisher's rule here: Φ(√2/0.7) of balanced classes is 0.978
    assert found["utility"]["real"]["accuracy"] > 0.95
    assert found["utility"]["accuracy"] > found["utility"]["real"]["accuracy"] - 0.02
    assert found["utility"]["scored_on"] == "test"


def test_a_shift_shows_in_the_means_and_no_labels_teach_nothing() -> None:
    frame = _frame(2000, 0)
    shifted = _mixed(frame, 2000, 0.0)[0] + 0.25
    found = mixture_scores(frame, shifted, np.zeros((2000, 0)), schema=SCHEMA, target="y", noise_std=0.0)
    assert found["fidelity"]["mean_entry"] == pytest.approx(0.25, abs=0.02)
    assert found["fidelity"]["classes"] is None
    assert found["utility"] is None


def test_no_rows_are_no_records() -> None:
    with pytest.raises(DataError, match="got none"):
        record_vectors(_frame(0, 0), SCHEMA, "y")
