"""Log-likelihood of held-out rows: against densities that are known."""

import math

import numpy as np
import pandas as pd
import pytest

from sfumato import Schema
from sfumato.evaluate import evaluate, log_likelihood

SCHEMA = Schema.from_dict(
    {
        "rows": 3000,
        "columns": {
            "a": {"kind": "continuous", "lower": -10, "upper": 10},
            "b": {"kind": "continuous", "lower": 0, "upper": 5, "nullable": True},
            "c": {"kind": "categorical", "categories": ["x", "y"]},
        },
    }
)


def _frame(seed: int, shift: float = 0.0, n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.normal(shift, 1, n), "b": rng.normal(2.5, 0.5, n), "c": rng.choice(["x", "y"], n)})


def test_a_good_sample_reaches_the_entropy_of_the_law() -> None:
    found = log_likelihood(_frame(1), _frame(2), schema=SCHEMA, real=_frame(3), components=1)
    spreads = 1 / 20, 0.5 / 5
    expected = -sum(0.5 * math.log(2 * math.pi * math.e * (s**2 + 1e-4)) for s in spreads)
    assert found["synthetic"] == pytest.approx(expected, abs=0.06)
    assert found["real"] == pytest.approx(expected, abs=0.06)
    assert found["columns"] == 2


def test_a_shifted_sample_is_less_likely_and_missing_rows_are_left_out() -> None:
    near, far = (
        log_likelihood(_frame(1), _frame(2, shift), schema=SCHEMA, components=1)["synthetic"] for shift in (0, 1)
    )
    assert near - far == pytest.approx(0.5, abs=0.12)  # half the squared shift in deviations
    holes = _frame(2).assign(b=lambda f: f["b"].where(np.arange(len(f)) % 2 == 0))
    assert log_likelihood(_frame(1), holes, schema=SCHEMA, components=1)["synthetic"] == pytest.approx(near, abs=0.05)


def test_one_value_alone_has_a_bounded_density() -> None:
    flat = _frame(0).assign(a=0.0, b=1.0)
    found = log_likelihood(flat, flat, schema=SCHEMA)["synthetic"]
    assert found == pytest.approx(-math.log(2 * math.pi * 1e-4), rel=1e-3)


def test_tables_without_numbers_have_none() -> None:
    schema = Schema.from_dict({"rows": 10, "columns": {"c": {"kind": "categorical", "categories": ["x", "y"]}}})
    found = log_likelihood(_frame(0), _frame(1), schema=schema)
    assert (found["synthetic"], found["real"], found["columns"]) == (None, None, 0)


def test_evaluate_says_it() -> None:
    found = evaluate(_frame(1, n=300), _frame(2, n=300), schema=SCHEMA, test=_frame(3, n=100))
    assert found["fidelity"]["log_likelihood"]["synthetic"] == pytest.approx(
        log_likelihood(_frame(3, n=100), _frame(2, n=300), schema=SCHEMA)["synthetic"]
    )
