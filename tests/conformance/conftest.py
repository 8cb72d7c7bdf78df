"""Fixtures of this folder."""

from fixtures.sampling import small_simulations

__all__ = ["small_simulations"]
