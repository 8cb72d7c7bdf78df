"""The privacy test harness: what every mechanism and every statistic has to pass.

A `StatisticCase` names a statistic and a pool of records that includes the worst ones its author could think of. A
`MechanismCase` names a mechanism run on it. The checks below try to refute what their docstrings claim. Every random
check has a false-alarm rate of at most 1e-6 and a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from sfumato.columns.sets import CodedSets
from sfumato.mechanisms.noise import SeededNoise
from sfumato.mechanisms.queries import Noisy
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.engine import Exact, Rows, Statistic, reduce

FALSE_ALARM = 1e-7
_OF_EACH_PART = 2_000
STAGE = "stage"


class FakeRecords:
    """Coded rows in chunks, as `reduce` reads them."""

    def __init__(self, chunks: Sequence[Rows], max_rows_per_unit: int = 1) -> None:
        self.chunks = list(chunks)
        self.max_rows_per_unit = max_rows_per_unit

    def coded(self):
        return iter(self.chunks)


def join(records: Sequence[Rows]) -> Rows:
    """One chunk out of several records or chunks."""
    return {name: _joined([r[name] for r in records]) for name in records[0]}


def _joined(columns):
    return CodedSets.concatenate(columns) if isinstance(columns[0], CodedSets) else np.concatenate(columns)


def empty_like(record: Rows) -> Rows:
    return {name: column[:0] for name, column in record.items()}


@dataclass(frozen=True)
class StatisticCase:
    """A statistic, and single records (chunks of one row) that try to break its bounds.

    `attained` is the part of the replace bound that some pair of the pool has to reach: a bound that no pair comes
    near is a wrong bound, or a weak pool.
    """

    name: str
    statistic: Statistic
    pool: list[Rows]
    attained: float = 0.95


def contribution(statistic: Statistic, record: Rows) -> np.ndarray:
    """What one record adds, alone. Symmetric matrices are measured by svec, whose norm is Frobenius's."""
    total = statistic.zero()
    statistic.add(total, record)
    if statistic.step is None:
        return total.ravel()
    assert np.array_equal(total, np.rint(total)), "contributions are not whole numbers"
    return (total * statistic.step).ravel()


def check_norm_property(case: StatisticCase) -> None:
    """Every record's contribution is finite and within `norm_bound`; some record comes near it."""
    norms = np.array([np.linalg.norm(contribution(case.statistic, r)) for r in case.pool])
    assert np.isfinite(norms).all()
    assert norms.max() <= case.statistic.norm_bound, "a contribution is longer than its bound"
    assert norms.max() >= case.attained * case.statistic.norm_bound, "the norm bound is not tight on this pool"


def check_locality(case: StatisticCase, rng: np.random.Generator) -> None:
    """Adding a record changes the sum by exactly its own contribution, whatever else is there and however chunked."""
    base = join([case.pool[i] for i in rng.integers(0, len(case.pool), 40)])
    without = case.statistic.zero()
    case.statistic.add(without, base)
    for record in case.pool[:50]:
        alone = contribution(case.statistic, record)
        together, apart = (case.statistic.zero() for _ in range(2))
        case.statistic.add(together, join([base, record]))
        case.statistic.add(apart, record)
        case.statistic.add(apart, base)
        if case.statistic.step is None:
            scale = max(1.0, float(np.abs(together).max()))
            np.testing.assert_allclose((together - without).ravel(), alone, atol=1e-9 * scale)
            np.testing.assert_allclose(together, apart, atol=1e-9 * scale)
            continue
        # whole numbers: exact, to the last bit
        np.testing.assert_array_equal(((together - without) * case.statistic.step).ravel(), alone)
        np.testing.assert_array_equal(together, apart)


def check_empty(case: StatisticCase) -> None:
    """No record, no contribution; and an empty chunk is no chunk."""
    total = case.statistic.zero()
    case.statistic.add(total, empty_like(case.pool[0]))
    assert not total.any()


def search_neighbours(case: StatisticCase) -> float:
    """Largest distance between two records' contributions: within `replace_bound`, and near it."""
    contributions = np.array([contribution(case.statistic, r) for r in case.pool])
    squares = np.einsum("ij,ij->i", contributions, contributions)
    squared = squares[:, None] + squares[None, :] - 2 * contributions @ contributions.T
    largest = float(np.sqrt(max(squared.max(), 0.0)))
    assert largest <= case.statistic.replace_bound * (1 + 1e-9), "two records are further apart than the bound"
    assert largest >= case.attained * case.statistic.replace_bound, "no pair of this pool comes near the bound"
    return largest


@dataclass(frozen=True)
class MechanismCase:
    """A mechanism: `run(exact, stage=, ledger=, noise=) -> Noisy`, on a statistic of a few records."""

    name: str
    run: Callable[..., Noisy]
    statistic: StatisticCase
    symmetric: bool = False


def ledger_for(noise_multiplier: float, replace_distance: float = 2.0, count: int = 1) -> Ledger:
    stage = Stage(name=STAGE, noise_multiplier=noise_multiplier, replace_distance=replace_distance, count=count)
    return Ledger(Plan([stage]), None)


def released(
    case: MechanismCase, chunk: Rows, noise: Any, noise_multiplier: float, unit_rows: int = 1
) -> tuple[Noisy, np.ndarray]:
    """Run the mechanism once; return what it released and the exact value (known to the test only)."""
    exact = reduce(case.statistic.statistic, FakeRecords([chunk], unit_rows))
    ledger = ledger_for(noise_multiplier)
    noisy = case.run(exact, stage=STAGE, ledger=ledger, noise=noise)
    ledger.close()
    return noisy, exact.open_in_mechanism()


def free_coordinates(noise: np.ndarray, noise_std: float, symmetric: bool) -> np.ndarray:
    """Noise in coordinates where it should be iid standard normal: svec for symmetric matrices."""
    if not symmetric:
        return noise.ravel() / noise_std
    d = noise.shape[-1]
    rows, columns = np.triu_indices(d)
    np.testing.assert_array_equal(noise, np.swapaxes(noise, -1, -2))
    scale = np.where(rows == columns, 1.0, np.sqrt(2))
    return (noise[..., rows, columns] * scale / noise_std).ravel()


def coordinate_parts(case: MechanismCase, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Places, among the free coordinates, of those that code treats alike: each has to have the law by itself."""
    if not case.symmetric:
        step = np.broadcast_to(0.0 if case.statistic.statistic.step is None else case.statistic.statistic.step, shape)
        return {f"step {value:.3g}": np.flatnonzero(step.ravel() == value) for value in np.unique(step)}
    rows, columns = np.triu_indices(shape[-1])
    matrix = np.repeat(np.arange(int(np.prod(shape[:-2]))), rows.size)
    diagonal = np.tile(rows == columns, matrix[-1] + 1)
    parts = {f"matrix {k}": np.flatnonzero(matrix == k) for k in np.unique(matrix)}
    return parts | {"diagonal": np.flatnonzero(diagonal), "off the diagonal": np.flatnonzero(~diagonal)}


def check_noise_law(case: MechanismCase, *, noise_multiplier: float = 3.0, at_least: int = 5_000) -> None:
    """The noise is N(0, (multiplier × bound)²), independent of the value; two thirds and 3/2 of it are rejected.

    Kolmogorov-Smirnov against the normal law, false-alarm rate 1e-7, on at least 5,000 coordinates, and on at least
    2,000 of each step, of each matrix and of diagonals: at that size the wrong scales are rejected with certainty for
    all practical purposes.
    """
    exact = reduce(case.statistic.statistic, FakeRecords([join(case.statistic.pool[:20])]))
    draws: list[np.ndarray] = []
    parts, noise = coordinate_parts(case, exact.open_in_mechanism().shape), SeededNoise(0)
    fewest = min((part.size for part in parts.values() if part.size), default=0)
    for _ in range(at_least):
        ledger = ledger_for(noise_multiplier)
        noisy = case.run(exact, stage=STAGE, ledger=ledger, noise=noise)
        ledger.close()
        assert noisy.noise_std == noise_multiplier * case.statistic.statistic.norm_bound
        assert noisy.symmetric == case.symmetric
        draws.append(free_coordinates(noisy.value - exact.open_in_mechanism(), noisy.noise_std, case.symmetric))
        if sum(map(len, draws)) >= at_least and len(draws) * fewest >= _OF_EACH_PART:
            break
    accept_only_unit_scale(np.concatenate(draws))
    for part in parts.values():
        if part.size:
            accept_only_unit_scale(np.concatenate([drawn[part] for drawn in draws]))


def check_noise_independent(case: MechanismCase, *, runs: int = 200, coordinates: int = 200) -> None:
    """No two coordinates of a release share their noise, nor two releases that follow each other.

    Correlations of some coordinates over many releases: 7 standard deviations of their law where there is none.
    """
    chunk, noise = join(case.statistic.pool[:5]), SeededNoise(1)
    exact = reduce(case.statistic.statistic, FakeRecords([chunk]))
    ledger = ledger_for(3.0, count=runs)
    draws = []
    for _ in range(runs):
        noisy = case.run(exact, stage=STAGE, ledger=ledger, noise=noise)
        draws.append(free_coordinates(noisy.value - exact.open_in_mechanism(), noisy.noise_std, case.symmetric))
    some = np.random.default_rng(0).permutation(draws[0].size)[:coordinates]
    found = np.array(draws)[:, some]
    most = 7 / np.sqrt(runs)
    if some.size > 1:
        correlations = np.corrcoef(found, rowvar=False)
        assert np.abs(correlations[~np.eye(some.size, dtype=bool)]).max() < most, "two coordinates share their noise"
    following = (found[1:] * found[:-1]).mean(axis=0)
    assert np.abs(following).max() < 1.5 * most, "two releases share their noise"


def accept_only_unit_scale(standard: np.ndarray) -> None:
    """Accept a sample as standard normal; reject it as normal with 2/3 or 3/2 of that standard deviation."""
    assert stats.kstest(standard, "norm").pvalue > FALSE_ALARM
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(standard * wrong, "norm").pvalue < FALSE_ALARM


def gaussian_delta(noise_multiplier: float) -> Callable[[float], float]:
    """δ(ε) of the Gaussian event that is charged: privacy-loss distribution N(μ²/2, μ²), μ = 1/multiplier."""
    mu = 1 / noise_multiplier

    def delta(epsilon):
        return stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)

    return delta


def worst_neighbours(case: MechanismCase) -> tuple[Rows, Rows]:
    """Some records with the longest one of the pool, and without it."""
    statistic = case.statistic.statistic
    norms = [np.linalg.norm(contribution(statistic, record)) for record in case.statistic.pool]
    base = join(case.statistic.pool[:3])
    return join([base, case.statistic.pool[int(np.argmax(norms))]]), base


def check_distinguisher(
    case: MechanismCase,
    chunk: Rows,
    neighbour: Rows,
    *,
    noise_multiplier: float,
    delta_of: Callable[[float], float],
    runs: int = 20_000,
    noise_factor: float = 1.0,
) -> None:
    """The best threshold test between neighbours never does better than the account allows.

    For a Gaussian mechanism the likelihood ratio is a threshold on the projection to the difference of the exact
    values. For every threshold and ε of a grid, a Clopper-Pearson lower bound of P(A) − e^ε P'(A) has to stay below
    the certified δ(ε), in both directions. Each of the two bounds is at level 1e-7 ÷ (thresholds).
    `noise_factor` shrinks the noise, to show that the test can fail.
    """
    first, second = _projections(case, chunk, neighbour, noise_multiplier, runs, noise_factor)
    compare_samples(first, second, delta_of)


def compare_samples(
    first: np.ndarray,
    second: np.ndarray,
    delta_of: Callable[[float], float],
    epsilons: Sequence[float] = (0.25, 0.5, 1.0, 2.0),
) -> None:
    """Refuse two samples of one number, of neighbours, that a threshold tells apart better than δ(ε) allows."""
    runs = len(first)
    thresholds = np.quantile(np.concatenate([first, second]), np.linspace(0.02, 0.98, 25))
    level = FALSE_ALARM / len(thresholds)
    for one, other in ((first, second), (-second, -first)):
        cuts = thresholds if one is first else -thresholds
        for cut in cuts:
            low = stats.beta.ppf(level, (one > cut).sum(), runs - (one > cut).sum() + 1) if (one > cut).any() else 0.0
            high = stats.beta.ppf(1 - level, (other > cut).sum() + 1, max(runs - (other > cut).sum(), 1e-9))
            for epsilon in epsilons:
                assert low - np.exp(epsilon) * high <= delta_of(epsilon), "distinguished beyond the account"


def _projections(case, chunk, neighbour, noise_multiplier, runs, noise_factor):
    outputs = []
    exacts = [released(case, rows, SeededNoise(0), noise_multiplier)[1] for rows in (chunk, neighbour)]
    direction = (exacts[0] - exacts[1]).ravel()
    direction = direction / np.linalg.norm(direction)
    for side, rows in enumerate((chunk, neighbour)):
        exact = reduce(case.statistic.statistic, FakeRecords([rows]))
        noise = SeededNoise(10 + side)
        ledger = ledger_for(noise_multiplier, count=runs)
        values = np.empty(runs)
        for i in range(runs):
            noisy = case.run(exact, stage=STAGE, ledger=ledger, noise=noise)
            error = noisy.value - exacts[side]
            values[i] = direction @ (exacts[side] + noise_factor * error).ravel()
        outputs.append(values)
    return outputs[0], outputs[1]


def make_exact(
    value: np.ndarray, norm_bound: float = 1.0, replace_distance: float = 2.0, step: float | None = 1.0
) -> Exact:
    """An exact statistic of whole numbers; of floats, if the step is None."""
    whole = value if step is None else np.asarray(value).astype(np.int64)
    return Exact(whole, name="test value", norm_bound=norm_bound, replace_distance=replace_distance, step=step)
