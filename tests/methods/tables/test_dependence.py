"""MaxEntropy keeps what columns have to do with each other: the small form of benchmarks/dependence.py."""

import functools
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns.kinds import Categorical, Continuous
from sfumato.evaluate import total_variation

N = 20_000
DELTA = 1e-5


def pairs(d: int, rho: float) -> tuple[pd.DataFrame, Schema]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, d))
    x[:, 1::2] = rho * x[:, ::2] + np.sqrt(1 - rho**2) * x[:, 1::2]
    frame = pd.DataFrame(x.clip(-6, 6), columns=[f"x{i}" for i in range(d)])
    return frame, Schema(columns={name: Continuous(lower=-6, upper=6) for name in frame}, rows=N)


def customers() -> tuple[pd.DataFrame, Schema]:
    """Rules (an extra is "none" if and only if the line is), and a number that is the product of two others."""
    rng = np.random.default_rng(1)
    line = rng.choice(["none", "slow", "fast"], N, p=[0.2, 0.35, 0.45])
    extras = {f"extra{i}": np.where(line == "none", "none", np.where(rng.random(N) < 0.4, "yes", "no")) for i in (0, 1)}
    contract = rng.choice(["month", "year"], N, p=[0.6, 0.4])
    tenure = 72 * rng.beta(np.where(contract == "year", 3, 1), 1.5)
    monthly = np.select([line == "none", line == "slow"], [20, 60], 90) + rng.normal(0, 5, N)
    leaves = rng.random(N) < np.where((contract == "month") & (line == "fast"), 0.5, 0.1)
    numbers = {"tenure": tenure, "monthly": monthly.clip(0, 150), "total": (tenure * monthly).clip(0, 10_000)}
    frame = pd.DataFrame(
        {"line": line, **extras, "contract": contract, **numbers, "leaves": np.where(leaves, "y", "n")}
    )
    bounds = {"tenure": 72, "monthly": 150, "total": 10_000}
    kinds = {
        name: Continuous(lower=0, upper=bounds[name])
        if name in bounds
        else Categorical(categories=tuple(sorted(set(frame[name]))))
        for name in frame
    }
    return frame, Schema(columns=kinds, rows=N)


@functools.cache
def release(make, *arguments, epsilon: float | None, target: str | None = None):
    """The release of a table, fitted once, to fewer simulated rows than by default, to be quick."""
    frame, schema = make(*arguments)
    rows = 6_000 if epsilon is None else 2_000
    method = MaxEntropy(epsilon=epsilon or NonPrivate(), delta=DELTA, calibration_rows=rows)
    return frame, schema, method.fit(frame, schema=schema, target=target, seed=0)


def kept(d: int, rho: float, epsilon: float | None) -> float:
    """The mean over pairs of what is left of their correlation."""
    frame, _, model = release(pairs, d, rho, epsilon=epsilon)
    real, found = (table.corr().to_numpy() for table in (frame, model.sample(N // 2, seed=0)))
    even = np.arange(0, d, 2)
    return float(np.mean(found[even, even + 1] / real[even, even + 1]))


@pytest.mark.parametrize(
    ("d", "rho", "epsilon", "least"),
    [
        pytest.param(20, 0.55, 1.0, 0.85, marks=(pytest.mark.slow, pytest.mark.audit)),
        pytest.param(42, 0.55, 1.0, 0.85, marks=pytest.mark.slow),
        (8, 0.55, None, 0.98),
        (2, 0.97, None, 0.97),
    ],
)
def test_correlations_are_kept(d, rho, epsilon, least):
    assert least <= kept(d, rho, epsilon) <= 1.05


@pytest.mark.slow
@pytest.mark.audit
def test_more_epsilon_keeps_no_less_of_correlations():
    shares = [kept(20, 0.55, epsilon) for epsilon in (0.3, 1.0)]
    assert all(after >= before - 0.03 for before, after in pairwise(shares)), shares


@pytest.mark.slow
@pytest.mark.audit
def test_more_epsilon_keeps_no_less_of_a_table():
    far, together = [], []
    for epsilon in (1.0, 10.0, None):
        frame, schema, model = release(customers, epsilon=epsilon, target="leaves")
        made = model.sample(N, seed=0)
        far.append(total_variation(frame, made, schema=schema, k=2))
        together.append(made["tenure"].corr(made["total"]))
    assert all(after <= before + 0.002 for before, after in pairwise(far)), far
    assert all(after >= before - 0.03 for before, after in pairwise(together)), together


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize("target", [None, "leaves"])
def test_pairs_of_labels_and_numbers_without_noise(target):
    # 80,000 rows drawn from the table itself are .007 away, its halves .025 from each other
    frame, schema, model = release(customers, epsilon=None, target=target)
    distance = total_variation(frame, model.sample(4 * N, seed=0), schema=schema, k=2)
    assert distance <= 0.02


@pytest.mark.slow
@pytest.mark.audit
def test_rules_are_kept_without_noise():
    made = release(customers, epsilon=None)[2].sample(N, seed=0)
    none = made["line"] == "none"
    broken = (none != (made["extra0"] == "none")) | (none != (made["extra1"] == "none"))
    assert float(broken.mean()) <= 0.01
