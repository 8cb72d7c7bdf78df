"""Fixtures of this folder."""

import pytest

from fixtures.accounting import coarse_accounts
from fixtures.sampling import small_simulations

__all__ = ["coarse_accounts", "small_simulations"]


@pytest.fixture(scope="module", autouse=True)
def quick_accounts(coarse_accounts):
    """What is charged is the plan, whatever the grid of its account."""
