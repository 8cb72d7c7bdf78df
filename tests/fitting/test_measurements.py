"""The confidence intervals of docs/measurements.md cover what they say, over many releases of small tables."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sfumato import MaxEntropy
from sfumato.columns.kinds import Categorical
from sfumato.schema.schema import Schema

PAGE = Path(__file__).parents[2] / "docs" / "measurements.md"
ROWS, SHARE = 1_000, 0.3
SCHEMA = Schema(
    columns={"sex": Categorical(categories=("f", "m")), "income": Categorical(categories=("low", "high"))}, rows=ROWS
)
FALSE_ALARM = 1e-5


def table(rng):
    sex = np.where(rng.random(ROWS) < SHARE, "f", "m")
    return pd.DataFrame({"sex": sex, "income": np.where(rng.random(ROWS) < 0.4, "high", "low")})


def intervals(release):
    """Run the page's example of an interval, in two parts."""
    scope = {"release": release}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        if "interval" in block:
            exec(block, scope)
    return scope["interval"], scope["population_interval"]


def check_coverage(fits):
    """The number of intervals that cover is binomial: fail outside its central 1 − 1e-5, twice."""
    covered = np.zeros(2, dtype=int)
    for seed in range(fits):
        frame = table(np.random.default_rng(seed))
        # a fresh seed of the noise each, so that a fit is reproducible
        release = MaxEntropy(epsilon=0.5).fit(frame, schema=SCHEMA, target="income", seed=seed)
        wanted = ((frame["sex"] == "f").mean(), SHARE)
        covered += [low <= share <= high for (low, high), share in zip(intervals(release), wanted, strict=True)]
    least, most = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], fits, 0.95)
    assert ((least <= covered) & (covered <= most)).all(), covered


@pytest.mark.slow
def test_coverage():
    # seeds are fixed; a new set of them would fail with probability below 2e-5
    check_coverage(60)


@pytest.mark.slow
def test_coverage_of_many():
    check_coverage(1_000)
