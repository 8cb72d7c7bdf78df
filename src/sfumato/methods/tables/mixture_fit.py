"""A mixture of products fitted to noisy moments of pairs of columns: the nearest law, which contradicts nothing.

    L = ½ Σ_{i<j} w ‖F_iᵀ Q_i diag(π) Q_jᵀ F_j − V_ij‖² + ½ Σ_j w_j ‖Q_j π − m_j‖² + λ Σ_k π_k Σ_j KL(Q_kj ‖ m_j)

where V are the moments, w one over their variances and m the columns' shares; Q_kj = softmax(log m_j + B_j θ). λ is the
price, in nats, of what a component says of a column. A moment that no law has leaves a residual: nothing diverges.

Free: uses released values only. Reference: Kingma and Ba 2015 (Adam).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.maths.constants import DESCENT
from sfumato.models.tables.product_mixture import ProductMixture

_FLOAT = np.float32
_TINY = 1e-9
_LEAST_LOG = -25.0
_FLOOR = 1e-20  # squared gradients of components without weight: denormal numbers are 10 to 20 times slower


@dataclass(frozen=True, slots=True)
class PairTargets:
    """What a law is fitted to.

    Attributes:
        shares: of each column's codes, shape (r_j,) each, above 0.
        features: F_j, functions of each column's codes, shape (r_j, q_j) each.
        values: V, moments of all features, shape (d, d), symmetric.
        precision: 1 ÷ variance of each, shape (d, d); 0 where it was not measured, as within a column.
        share_precision: 1 ÷ variance of a column's shares, shape (p,).
        bases: B_j, in which logits move, shape (r_j, b_j) each.
    """

    shares: tuple[np.ndarray, ...]
    features: tuple[np.ndarray, ...]
    values: np.ndarray
    precision: np.ndarray
    share_precision: np.ndarray
    bases: tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class MixtureEffort:
    """How a mixture is fitted.

    Attributes:
        components: R.
        steps: of the descent.
        independence: λ.
    """

    components: int = 200
    steps: int = 800
    independence: float = 20.0


def fit_mixture(
    targets: PairTargets,
    effort: MixtureEffort,
    rng: np.random.Generator,
    renewed: Callable[[ProductMixture], PairTargets | None] | None = None,
) -> ProductMixture:
    """Return the mixture at the end of the descent, raked to the columns' shares.

    Args:
        targets: moments and shares.
        effort: how many components and steps.
        rng: of the start (public).
        renewed: gives the targets of the steps that follow, by the law that those before ended at, or None for the
            same; a few times.
    """
    descent, each = _Descent(targets, effort, rng), max(effort.steps // (DESCENT.renewals + 1), 1)
    for step in range(effort.steps):
        if renewed is not None and step % each == 0 < step < each * (DESCENT.renewals + 1):
            targets = renewed(_raked(descent.law(), targets.shares)) or targets
            descent.aim(targets)
        descent.take(step)
    return _raked(descent.law(), targets.shares)


def rank_bumps(shares: np.ndarray, ordered: int) -> np.ndarray:
    """Return a basis of bumps over ranks at scales 1, ½, ¼, …, each scale smaller than the one before, shape (r, b).

    Args:
        shares: of the runs, shape (r,), those without an order last: each has an indicator of its own.
        ordered: how many have an order.
    """
    mass = shares[:ordered] / shares[:ordered].sum()
    # halfway between rank and place: a run of much mass, or of little, is still told from those beside it
    middle = (np.cumsum(mass) - mass / 2 + (np.arange(ordered) + 0.5) / ordered) / 2
    bumps = [(middle - 0.5) * np.sqrt(12)]
    for scale in range(1, min(DESCENT.finest, int(np.ceil(np.log2(max(ordered, 2))))) + 1):
        width = 2.0**-scale
        for centre in np.arange(width / 2, 1, width):
            bump = np.exp(-0.5 * ((middle - centre) / (DESCENT.width * width)) ** 2)
            if np.ptp(bump) > DESCENT.least_bump:
                bumps.append((bump - bump.mean()) * 2.0 ** (-(scale - 1) * DESCENT.smoother / 2))
    rest = shares.size - ordered
    basis = np.zeros((shares.size, len(bumps) + rest))
    basis[:ordered, : len(bumps)] = np.array(bumps).T
    basis[ordered:, len(bumps) :] = np.eye(rest)
    return basis


class _Descent:
    """Parameters on their way: logits of every column's tables, one column after the other, and then of the weights."""

    def __init__(self, targets: PairTargets, effort: MixtureEffort, rng: np.random.Generator) -> None:
        self._targets, self._effort = targets, effort
        self._logs = [np.log(m)[:, None].astype(_FLOAT) for m in targets.shares]
        self._shares = [m[:, None].astype(_FLOAT) for m in targets.shares]
        self._features = [f.astype(_FLOAT) for f in targets.features]
        self._bases = [b.astype(_FLOAT) for b in targets.bases]
        self.aim(targets)
        self._blocks = _slices([f.shape[1] for f in targets.features])
        self._places = _slices([basis.shape[1] for basis in targets.bases])
        size = self._places[-1].stop + 1
        self._logits = np.zeros((size, effort.components), _FLOAT)
        for basis, place in zip(self._bases, self._places, strict=True):
            scale = DESCENT.spread / max(1.0, float(np.sqrt((basis**2).sum(axis=1).mean())))
            self._logits[place] = scale * rng.standard_normal((basis.shape[1], effort.components))
        self._first, self._second = np.zeros_like(self._logits), np.zeros_like(self._logits)
        self._slopes = np.zeros_like(self._logits)
        self._means = np.zeros((self._blocks[-1].stop, effort.components), _FLOAT)

    def aim(self, targets: PairTargets) -> None:
        """Take moments to be fitted to; of the same functions and shares."""
        self._values, self._precision = targets.values.astype(_FLOAT), targets.precision.astype(_FLOAT)

    def _tables(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return Q of every column, and log Q ÷ m."""
        tables, ratios = [], []
        for log, basis, place in zip(self._logs, self._bases, self._places, strict=True):
            x = basis @ self._logits[place]
            x += log
            x -= x.max(axis=0)
            np.maximum(x, _FLOAT(_LEAST_LOG), out=x)
            powers = np.exp(x)
            sums = powers.sum(axis=0)
            powers /= sums
            x -= np.log(sums)
            x -= log
            tables.append(powers)
            ratios.append(x)
        return tables, ratios

    def take(self, step: int) -> None:
        """Take one step down."""
        self._slope()
        part, slopes, scratch = step / self._effort.steps, self._slopes, self._slopes
        fall = (
            1.0
            if part < DESCENT.annealed
            else max(DESCENT.last_step, 1 - (part - DESCENT.annealed) / (1 - DESCENT.annealed))
        )
        rate = _FLOAT(DESCENT.rate * fall / (1 - DESCENT.first ** (step + 1)))
        scale = _FLOAT(1 / (1 - DESCENT.second ** (step + 1)))
        self._first *= _FLOAT(DESCENT.first)
        self._first += _FLOAT(1 - DESCENT.first) * slopes
        np.square(slopes, out=scratch)
        scratch *= _FLOAT(1 - DESCENT.second)
        scratch += _FLOAT(_FLOOR)
        self._second *= _FLOAT(DESCENT.second)
        self._second += scratch
        np.multiply(self._second, scale, out=scratch)
        np.sqrt(scratch, out=scratch)
        scratch += _FLOAT(_TINY)
        np.divide(self._first, scratch, out=scratch)
        scratch *= rate
        self._logits -= scratch

    def _slope(self) -> None:
        """Put the gradients of L in all logits in their place."""
        weights = _softmax(self._logits[-1])
        tables, ratios = self._tables()
        of_means, of_weights = self._of_moments(weights, tables)
        pull = _FLOAT(self._effort.independence)
        for j, (table, ratio) in enumerate(zip(tables, ratios, strict=True)):
            missed = table @ weights
            missed -= self._shares[j][:, 0]
            missed *= _FLOAT(self._targets.share_precision[j])
            of_weights += missed @ table
            ratio *= pull
            of_weights += np.einsum("rk,rk->k", table, ratio)
            ratio += missed[:, None] + pull
            own = self._features[j] @ of_means[self._blocks[j]]
            own += ratio
            own -= np.einsum("rk,rk->k", table, own)
            own *= table
            np.matmul(self._bases[j].T, own, out=self._slopes[self._places[j]])
            self._slopes[self._places[j]] *= weights
        self._slopes[-1] = weights * (of_weights - (weights * of_weights).sum())

    def _of_moments(self, weights: np.ndarray, tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of the squares in a component's means of features ÷ its weight, and in the weights."""
        means = self._means
        for features, table, block in zip(self._features, tables, self._blocks, strict=True):
            np.matmul(features.T, table, out=means[block])
        missed = (means * weights) @ means.T
        missed -= self._values
        missed *= self._precision
        back = missed @ means
        return back, np.einsum("dk,dk->k", means, back) / 2

    def law(self) -> ProductMixture:
        """Return the mixture where the parameters are."""
        logits, tables = self._logits.astype(np.float64), []
        for m, basis, place in zip(self._targets.shares, self._targets.bases, self._places, strict=True):
            tables.append(_softmax(np.log(m)[:, None] + basis @ logits[place]))
        return ProductMixture(_softmax(logits[-1]), tuple(tables))


def _slices(sizes: Sequence[int]) -> list[slice]:
    """Return where parts of these sizes lie, one after the other."""
    return [slice(int(a), int(b)) for a, b in pairwise(np.cumsum([0, *sizes]))]


def _softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=0))
    return powers / powers.sum(axis=0)


def _raked(law: ProductMixture, shares: Sequence[np.ndarray]) -> ProductMixture:
    """Return the law with these shares, as near as a few rounds bring it."""
    tables = []
    for table, wanted in zip(law.tables, shares, strict=True):
        for _ in range(DESCENT.raked):
            table = table * (wanted / np.maximum(table @ law.weights, 1e-30))[:, None]
            table = table / table.sum(axis=0)
        tables.append(table)
    return ProductMixture(law.weights, tuple(tables))
