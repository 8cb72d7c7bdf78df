"""Releases of small tables, fitted once for each file."""

import numpy as np
import pytest

from fixtures import tables
from fixtures.releases import SMALL, fit, small_frame
from fixtures.sampling import few_simulations, small_blocks
from sfumato.estimators import DPGaussianMixture
from sfumato.release_front import Release

__all__ = ["few_simulations", "small_blocks"]


@pytest.fixture(scope="module")
def small(remembered_accounts) -> Release:
    return fit(small_frame(), SMALL, "label")


@pytest.fixture(scope="module")
def people(remembered_accounts) -> Release:
    return fit(tables.frame(), tables.schema(), "income")


@pytest.fixture(scope="module")
def pictures(remembered_accounts) -> Release:
    return fit(tables.images(), tables.image_schema())


@pytest.fixture(scope="module")
def decoded() -> Release:
    """A network's."""
    pytest.importorskip("torch", reason="networks need the extra nets")
    from fixtures.methods import QUICK

    return QUICK["p3gm"](epsilon=1.0).fit(small_frame(), schema=SMALL, target="label", seed=1)


@pytest.fixture(scope="module")
def networks() -> Release:
    """A mixture of networks."""
    pytest.importorskip("torch", reason="networks need the extra nets")
    from fixtures.methods import QUICK

    return QUICK["dpgm, machines"](epsilon=1.0).fit(small_frame(), schema=SMALL, target="label", seed=1)


@pytest.fixture(scope="module")
def points() -> Release:
    """An estimator's."""
    rows = np.random.default_rng(0).standard_normal((200, 2))
    return DPGaussianMixture(2, iterations=2, bounds=(-3.0, 3.0), n_public=200, seed=0).fit(rows).release()
