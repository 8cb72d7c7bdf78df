"""A table of a known law, and releases of it."""

import numpy as np
import pandas as pd
import pytest

from fixtures.accounting import coarse
from fixtures.sampling import moderate_effort
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns import Categorical, Continuous

N = 5_000


def law(n=N, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random(n) < 0.4
    x = rng.normal(size=n) + 0.5 * z
    u = 0.4 * x + rng.normal(size=n)
    y = 0.5 * x + 0.3 * z - 0.25 * x * z + 0.2 * u + rng.normal(size=n)
    w = rng.random(n) < 1 / (1 + np.exp(-(0.8 * x - 0.4 * u - 0.3)))
    return pd.DataFrame(
        {
            "x": np.clip(x, -5, 6), "u": np.clip(u, -6, 6), "y": np.clip(y, -7, 7),
            "z": np.where(z, "b", "a"), "w": np.where(w, "yes", "no"),
        }
    )  # fmt: skip


def schema(n=N):
    return Schema(
        columns={
            "x": Continuous(lower=-5, upper=6), "u": Continuous(lower=-6, upper=6), "y": Continuous(lower=-7, upper=7),
            "z": Categorical(categories=("a", "b")), "w": Categorical(categories=("no", "yes")),
        },
        rows=n,
    )  # fmt: skip


@pytest.fixture(scope="session")
def table():
    return law()


@pytest.fixture(scope="session")
def release(table):
    """At ε = 1, with the class z; seeded, as bounds of tests are of estimates that noise moves."""
    with pytest.MonkeyPatch.context() as patch, coarse():
        moderate_effort(patch)
        return MaxEntropy(epsilon=1.0).fit(table, schema=schema(), target="z", seed=1)


@pytest.fixture(scope="session")
def exact(table):
    """Without noise: what is left is the model's cells and clipping."""
    with pytest.MonkeyPatch.context() as patch, coarse():
        moderate_effort(patch)
        return MaxEntropy(epsilon=NonPrivate()).fit(table, schema=schema(), target="z")
