"""Fixtures of this folder."""

from fixtures.accounting import coarse_accounts
from fixtures.sampling import small_simulations

__all__ = ["coarse_accounts", "small_simulations"]
