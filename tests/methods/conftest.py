"""Fixtures of this folder."""

from fixtures.accounting import remembered_accounts

__all__ = ["remembered_accounts"]
