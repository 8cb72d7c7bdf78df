"""Settings of all tests."""

import numpy as np
import pytest
from hypothesis import settings

from fixtures.accounting import remember

# how long an example takes says more of the machine's other work than of the code
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def fresh_random_numbers(request, monkeypatch):
    """Start a module's own generator anew, so that no test depends on which others ran before it."""
    if hasattr(request.module, "RNG"):
        monkeypatch.setattr(request.module, "RNG", np.random.default_rng(0))


@pytest.fixture(scope="module", autouse=True)
def remembered_accounts(request):
    """Account for each plan once a process: the figures are those of the real functions, which are pure."""
    with pytest.MonkeyPatch.context() as patch:
        if "/tests/privacy/" not in str(request.path):
            remember(patch.setattr)
        yield
