"""Small degenerate tables: what is charged ends in a release, which answers or refuses in sentences."""

import pytest

from fixtures.degenerate import SHAPES, quick_accounts, run
from fixtures.sampling import small_simulations

__all__ = ["small_simulations"]

FEW = {"table": 12, "linked": 2, "estimator": 12, "sets": 6, "weighted": 4, "tuned": 4, "images": 6, "database": 1}
MANY = 100


@pytest.fixture(scope="module")
def charged():
    with quick_accounts() as stages:
        yield stages


CASES = [
    pytest.param(shape, seed, marks=pytest.mark.slow if seed >= FEW.get(shape, 0) else ())
    for shape in SHAPES
    for seed in range(MANY)
]


@pytest.mark.parametrize(("shape", "seed"), CASES)
@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_a_charged_fit_ends_in_a_release(charged, shape, seed):
    assert run(seed, charged, shape) in {"release", "refused", "not accepted"}


def test_cases_are_fitted_and_not_refused_alone(charged):
    assert "release" in {run(seed, charged, "estimator") for seed in range(5)}
