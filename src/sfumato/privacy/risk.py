"""The best attacker: his true positives at a share of false alarms, and his advantage over a coin.

An attacker looks at a release and names those whose data are in it. Of a mechanism with the curve δ(ε), for every
ε ≥ 0, whoever wrongly names a share α of those outside finds at most

    min(e^ε α + δ(ε), 1 − e^−ε (1 − α − δ(ε)))

of those inside (Wasserman and Zhou 2010, arXiv:0811.2501; Dong, Roth and Su 2022, arXiv:1905.02383). The least over
all ε is the trade-off curve. Gaussian releases of all records have it in closed form, Φ(Φ⁻¹(α) + μ); with samples or
subsets δ(ε) is that of the privacy-loss distribution, rounded upwards, on a grid that is halved until what is left is
3e-7; of searches, that of Rényi DP. Post-processing of a plan: no record is read. Proof: docs/proofs/risk.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sfumato._lazy import later
from sfumato.errors import ConfigError, UnsupportedEventError, require_open_unit
from sfumato.privacy.accounting import composed_pld, composed_rdp, events_of_fits, interval_for, merged
from sfumato.privacy.plan import Neighbours, Plan

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent
    from scipy import optimize, special
else:
    optimize, special = later("scipy.optimize"), later("scipy.special")

_SETTLED = 9e-7  # of a figure; a halved grid is four times nearer, so that a third of it is left
_MOST_HALVINGS = 6
_MOST_POINTS = 2_500_000  # of a grid: beyond, seconds and gigabytes; what is left stays an upper bound
_TAIL = 1e-9  # of each stage, into every figure
_LARGEST_GRID = 30.0  # nats: beyond, e^−ε is nothing beside 1e-6
_LARGEST_EPSILON = 60.0  # beyond, e^−ε is nothing beside 1e-6
_PROBES = tuple(np.concatenate([[0.0], np.geomspace(1e-4, _LARGEST_EPSILON, 150)]))


class TradeOff(Protocol):
    """The most that an attacker finds."""

    def true_positive_rate(self, fpr: float) -> float:
        """Return the largest share of those inside that is found, at a share `fpr` of false alarms in (0, 1)."""
        ...

    @property
    def advantage(self) -> float:
        """The largest difference of the two shares, in [0, 1]; a coin has 0."""
        ...


@dataclass(frozen=True, slots=True)
class GaussianTradeOff:
    """That of N(μ, 1) against N(0, 1), beside what is shown with probability `extra_delta`.

    Attributes:
        mu: privacy loss μ, no unit: √Σ (distance ÷ standard deviation of the noise)² of all releases.
        extra_delta: additive part p of δ.
    """

    mu: float
    extra_delta: float = 0.0

    def true_positive_rate(self, fpr: float) -> float:
        """See `TradeOff`."""
        rest = 1 - self.extra_delta
        direct = self.extra_delta + special.ndtr(special.ndtri(min(fpr / rest, 1.0)) + self.mu)
        mirrored = 1 - rest * special.ndtr(special.ndtri(max(rest - fpr, 0.0)) - self.mu)
        return float(min(direct, mirrored, 1.0))

    @property
    def advantage(self) -> float:
        """See `TradeOff`: δ at ε = 0."""
        if self.mu == 0:
            return self.extra_delta
        shifted = math.log1p(-self.extra_delta) / self.mu
        inside = special.ndtr(self.mu / 2 - shifted) - (1 - self.extra_delta) * special.ndtr(-self.mu / 2 - shifted)
        return float(min(inside + self.extra_delta, 1.0))


@dataclass(frozen=True, slots=True)
class GridTradeOff:
    """That of a curve δ(ε) on a grid of ε ≥ 0, whose first point is 0: both as arrays (points,)."""

    epsilons: np.ndarray
    deltas: np.ndarray

    def true_positive_rate(self, fpr: float) -> float:
        """See `TradeOff`."""
        direct, mirrored = _lines(self.epsilons, self.deltas, fpr)
        return float(np.clip(min(direct.min(), mirrored.min()), fpr, 1.0))

    @property
    def advantage(self) -> float:
        """See `TradeOff`."""
        return float(min(_difference(self.epsilons, self.deltas).min(), 1.0))


@dataclass(frozen=True, slots=True)
class BoundTradeOff:
    """That of any bound δ(ε), a function of ε ≥ `least`, nats."""

    delta: Callable[[float], float]
    least: float = 0.0

    def true_positive_rate(self, fpr: float) -> float:
        """See `TradeOff`."""
        return max(self._least(lambda epsilon: float(min(_lines(epsilon, self.delta(epsilon), fpr)))), fpr)

    @property
    def advantage(self) -> float:
        """See `TradeOff`."""
        return self._least(lambda epsilon: float(_difference(epsilon, self.delta(epsilon))))

    def _least(self, bound: Callable[[float], float]) -> float:
        """Return the least value of a bound: of probes, then between the neighbours of the best one."""
        probes = [self.least + probe for probe in _PROBES]
        values = [bound(probe) for probe in probes]
        best = int(np.argmin(values))
        ends = probes[max(best - 1, 0)], probes[min(best + 1, len(probes) - 1)]
        nearer = optimize.minimize_scalar(bound, bounds=ends, method="bounded", options={"xatol": 1e-9})
        return min(values[best], float(nearer.fun), 1.0)


def _lines(epsilon: np.ndarray | float, delta: np.ndarray | float, fpr: float) -> tuple[np.ndarray, np.ndarray]:
    """Return both tangents at `fpr`."""
    return np.exp(np.minimum(epsilon, 700.0)) * fpr + delta, 1 - np.exp(-epsilon) * (1 - fpr - delta)  # type: ignore[operator]


def _difference(epsilon: np.ndarray | float, delta: np.ndarray | float) -> np.ndarray:
    """Return the largest difference of the two shares under (ε, δ): tanh(ε/2) + 2δ/(1 + e^ε)."""
    return np.tanh(np.divide(epsilon, 2)) + 2 * delta / (1 + np.exp(np.minimum(epsilon, 700.0)))


@lru_cache(maxsize=64)
def trade_off(plan: Plan, neighbours: Neighbours | None = None) -> TradeOff:
    """Return the trade-off curve of a plan.

    Args:
        plan: the calibrated plan.
        neighbours: whom the attacker tells apart: in or out (add/remove), or one value from another (replace-one); by
            default the plan's own relation.

    Raises:
        UnsupportedEventError: the plan has no account under that relation.
    """
    relation = plan.neighbours if neighbours is None else neighbours
    if plan.repetitions is not None:
        return _search(plan, relation)
    whole = merged([plan], relation)
    if len(whole.stages) == 1 and whole.stages[0].inclusion is None:
        return GaussianTradeOff(1 / whole.stages[0].noise_multiplier, whole.extra_delta)
    # privacy-loss distributions, on a grid that is halved until figures settle
    interval = interval_for(whole)
    curve = _on_grid(whole, relation, interval)
    for _ in range(_MOST_HALVINGS):
        if 2 * len(curve.epsilons) > _MOST_POINTS:
            break
        interval /= 2
        coarser, curve = curve, _on_grid(whole, relation, interval)
        if max(abs(a - b) for a, b in zip(_figures(curve), _figures(coarser), strict=True)) <= _SETTLED:
            break
    return curve


def trade_off_of_fits(plans: Sequence[Plan], neighbours: Neighbours) -> TradeOff:
    """Return the trade-off curve of all fits of the same data together, as their ledger accounts for them.

    Args:
        plans: the plan of every fit, whether it ended or not.
        neighbours: the relation of the ledger.

    Raises:
        UnsupportedEventError: a plan has no account under that relation.
    """
    if not plans:
        return GaussianTradeOff(0.0)
    if len(plans) == 1:
        return trade_off(plans[0], neighbours)
    if all(plan.repetitions is None for plan in plans):
        return trade_off(merged(plans, neighbours), neighbours)
    events, extra = events_of_fits(plans, neighbours)
    return _with_extra(_renyi(events), extra)


def _figures(curve: GridTradeOff) -> list[float]:
    return [curve.advantage, *map(curve.true_positive_rate, (0.001, 0.01, 0.05, 0.25))]


def _on_grid(plan: Plan, relation: Neighbours, interval: float) -> GridTradeOff:
    epsilons, deltas = composed_pld(plan, relation, interval, tail=_TAIL).curve(_LARGEST_GRID)
    extra = plan.extra_delta
    if extra == 0:
        return GridTradeOff(epsilons, deltas)
    # at ε = 0 the events are asked a little below 0, where δ is at most 1 − e^ε = p more
    shifted = np.concatenate([[0.0], epsilons - math.log1p(-extra)])
    return GridTradeOff(shifted, np.minimum(np.concatenate([[deltas[0] + extra], deltas]) + extra, 1.0))


def _search(plan: Plan, relation: Neighbours) -> TradeOff:
    """Return the curve of a plan that repeats stages, by Rényi DP; replacing as in `replacing_account`."""
    if relation is Neighbours.ADD_REMOVE:
        return _with_extra(_renyi(plan.events()), plan.extra_delta)
    if all(stage.inclusion is None and not stage.extra_delta for stage in plan.stages):
        return trade_off(Plan(stage.nearer(stage.replace_distance) for stage in plan.stages))
    removed = _with_extra(_renyi(plan.events()), plan.extra_delta)
    half = removed.delta
    return BoundTradeOff(lambda epsilon: (1 + math.exp(epsilon / 2)) * half(epsilon / 2), 2 * removed.least)


def _renyi(events: Sequence[DpEvent]) -> Callable[[float], float]:
    accountant = composed_rdp(events)
    if accountant is None:
        raise UnsupportedEventError("Expected events with an account by Rényi DP, got others.")
    return lru_cache(maxsize=4096)(lambda epsilon: float(accountant.get_delta(epsilon)))


def _with_extra(delta: Callable[[float], float], extra: float) -> BoundTradeOff:
    shift = math.log1p(-extra)
    return BoundTradeOff(lambda epsilon: delta(max(epsilon + shift, 0.0)) + extra, -shift)


@dataclass(frozen=True, slots=True)
class Advantage:
    """In place of an ε: the most by which the best attacker's true positives may exceed his false alarms.

    Args:
        most: in (0, 1); a coin has 0.

    Raises:
        ConfigError: it is outside its domain.

    Example:
        >>> from sfumato import Advantage
        >>> Advantage(0.1)
        Advantage(most=0.1)
    """

    most: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", require_open_unit(advantage=self.most))

    def of(self, curve: TradeOff) -> float:
        """Return the figure of a trade-off curve that is to be at most `most`."""
        return curve.advantage

    def mu(self, figure: float) -> float:
        """Return μ of the Gaussian release that has this figure."""
        return float(2 * special.ndtri((1 + figure) / 2))


@dataclass(frozen=True, slots=True)
class TruePositiveRate:
    """In place of an ε: the most that the best attacker may find, at a share of false alarms.

    Args:
        most: share of those inside, in (fpr, 1).
        fpr: share of those outside whom he wrongly names, in (0, 1).

    Raises:
        ConfigError: an argument is outside its domain.

    Example:
        >>> from sfumato import TruePositiveRate
        >>> TruePositiveRate(0.1, fpr=0.05)
        TruePositiveRate(most=0.1, fpr=0.05)
    """

    most: float
    fpr: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", require_open_unit(tpr=self.most))
        object.__setattr__(self, "fpr", require_open_unit(fpr=self.fpr))
        if self.most <= self.fpr:
            raise ConfigError(f"Expected tpr above fpr, which a coin reaches, got tpr={self.most:g}, fpr={self.fpr:g}.")

    def of(self, curve: TradeOff) -> float:
        """Return the figure of a trade-off curve that is to be at most `most`."""
        return curve.true_positive_rate(self.fpr)

    def mu(self, figure: float) -> float:
        """Return μ of the Gaussian release that has this figure."""
        return float(special.ndtri(figure) - special.ndtri(self.fpr))


Risk = Advantage | TruePositiveRate
