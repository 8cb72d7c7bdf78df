"""Settings of all tests."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from fixtures.accounting import coarse, remember
from fixtures.sampling import moderate_effort

ROOMS = (
    "cli", "data_ledger", "estimators", "fitting", "holders", "inference", "lenses", "methods", "release",
    "report", "studio",
)  # fmt: skip
LIGHT = frozenset({*ROOMS, "test_combined_release.py", "test_verification.py"})
"""Where tests ask fits what they answer, sample and refuse: no more effort is taken than that needs."""

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
        if room(request) != "privacy":
            remember(patch.setattr)
        yield


@pytest.fixture(scope="module", autouse=True)
def light_effort(request):
    """Account on a coarse grid and fit on fewer simulated rows, unless a module has `FULL_EFFORT`."""
    if room(request) not in LIGHT or getattr(request.module, "FULL_EFFORT", False):
        yield
        return
    with pytest.MonkeyPatch.context() as patch, coarse():
        moderate_effort(patch)
        yield


def room(request) -> str:
    return request.path.relative_to(Path(__file__).parent).parts[0]
