"""Fixtures of this folder."""

from fixtures.accounting import remembered_accounts
from fixtures.command_line import call

__all__ = ["call", "remembered_accounts"]
