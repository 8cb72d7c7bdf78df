"""Fixtures of this folder."""

from fixtures.command_line import call

__all__ = ["call"]
