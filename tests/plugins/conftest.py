"""Fixtures of this folder."""

from fixtures.command_line import call
from fixtures.packages import site
from fixtures.sampling import small_simulations

__all__ = ["call", "site", "small_simulations"]
