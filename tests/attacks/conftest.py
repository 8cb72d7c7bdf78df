"""Fixtures of this folder."""

import pytest

from fixtures.accounting import forget
from fixtures.sampling import small_simulations
from sfumato.privacy import accounting

__all__ = ["coarse_accounts", "small_simulations"]


@pytest.fixture(scope="module")
def coarse_accounts():
    """Accounts on a coarse grid, which only ask for a little more noise: for tests that do not look at ε."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounting, "DEFAULT_INTERVAL", 1e-2)
        patch.setattr(accounting, "_FINEST_INTERVAL", 1e-2)
        forget()
        yield
    forget()
