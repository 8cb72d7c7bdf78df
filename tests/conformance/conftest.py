"""Fixtures of this folder."""

from fixtures.accounting import remembered_accounts
from fixtures.sampling import small_simulations

__all__ = ["remembered_accounts", "small_simulations"]
