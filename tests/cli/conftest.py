"""Fixtures of this folder."""

from fixtures.command_line import call
from fixtures.sampling import small_simulations

__all__ = ["call", "small_simulations"]
