"""Fixtures of this folder."""

from fixtures.accounting import remembered_accounts
from fixtures.command_line import call
from fixtures.packages import site
from fixtures.sampling import small_simulations

__all__ = ["call", "remembered_accounts", "site", "small_simulations"]
