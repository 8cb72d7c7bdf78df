"""The accountant of privacy-loss distributions: that of `dp-accounting`, quicker, and with subsets.

`dp-accounting` inverts the privacy loss of a Gaussian release at one ε of the grid after the other, which is most of
the time of a small fit. Here the same formulas take the whole grid at once; `tests/privacy/test_pld.py` holds the
result to the library's. It composes T equal steps by the T-th power of a Fourier transform, which in 64 bits misses
δ by up to 5e-17·T, upwards or downwards by the processor: of 30,000 steps at δ = 1e-9 by a seventh of a percent. Here
the transform has the machine's extended precision, and bounds on what is left of that error, and on that of composing
different stages, are added to δ. All else is the library's: the bounds of the grid, the pessimistic rounding, the
composition of different stages.

The privacy-loss distribution of a uniform subset under replace-one, which `dp-accounting` lacks.

m of n records are drawn without replacement, and a Gaussian release of their sum has replace distance Δ in units of its
noise. With γ = m/n and δ_Δ the Gaussian curve, one step satisfies

    δ(ε) ≤ γ·δ_Δ(log(1 + (e^ε − 1)/γ)) for ε ≥ 0,   δ(ε) = 1 − e^ε + e^ε δ(−ε) for ε < 0,

and this curve belongs to one dominating pair, so T adaptive steps are bounded by its T-fold composition. Proof:
docs/proofs/mixing.md. Add/remove has no such account: there the size of the subset would tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard, cast

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.common import compute_self_convolve_bounds
from dp_accounting.pld.pld_pmf import DensePLDPmf, PLDPmf, create_pmf_pessimistic_connect_dots_fixed_gap
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss
from dp_accounting.privacy_accountant import NeighboringRelation
from scipy import fft
from scipy.special import log_ndtr, ndtr

NEGLIGIBLE = 1e-15
"""Mass beyond the last point of the grid of one step."""
_MOST_POINTS = 10_000_000


def gaussian_delta(distance: float, epsilons: np.ndarray) -> np.ndarray:
    """Return δ(ε) of N(Δ, 1) against N(0, 1): Φ(Δ/2 − ε/Δ) − e^ε Φ(−Δ/2 − ε/Δ)."""
    first = ndtr(distance / 2 - epsilons / distance)
    return np.maximum(first - np.exp(epsilons + log_ndtr(-distance / 2 - epsilons / distance)), 0.0)


def subset_delta(share: float, distance: float, epsilons: np.ndarray) -> np.ndarray:
    """Return the bound on δ(ε) of one step, for ε ≥ 0.

    Args:
        share: γ = subset size ÷ number of units, in (0, 1].
        distance: replace distance Δ in units of the noise.
        epsilons: ε ≥ 0, nats.
    """
    return share * gaussian_delta(distance, np.log1p(np.expm1(epsilons) / share))


def subset_distribution(share: float, distance: float, interval: float) -> PrivacyLossDistribution:
    """Return the privacy-loss distribution of one step on a grid, pessimistically.

    The curve is connected by straight lines in e^ε between the points of the grid, which lie above it, and the masses
    read off the slopes. The side of negative losses is built by symmetry: differences of δ there lose too many digits.

    Args:
        share: γ in (0, 1].
        distance: replace distance Δ in units of the noise.
        interval: grid step, nats.
    """
    n = _last_point(share, distance, interval)
    losses = interval * np.arange(n + 1)
    deltas = subset_delta(share, distance, losses)
    widths = np.exp(losses[:-1]) * np.expm1(interval)
    slopes = np.append(np.diff(deltas) / widths, 0.0)  # of δ against e^ε, between neighbouring points
    masses = np.maximum(np.diff(slopes), 0.0)  # p_k e^{−ε_k}, k = 1 … n
    above, below = masses * np.exp(losses[1:]), masses
    infinite = float(deltas[-1])
    middle = max(1 - infinite - float(above.sum()) - float(below.sum()), 0.0)
    probabilities = np.concatenate([below[::-1], [middle], above])
    return PrivacyLossDistribution(DensePLDPmf(interval, -n, probabilities, infinite, pessimistic_estimate=True))


def _last_point(share: float, distance: float, interval: float) -> int:
    """Return the first point of the grid at which δ is negligible."""
    low, high = 0, 1
    while high < _MOST_POINTS and subset_delta(share, distance, np.array([high * interval]))[0] >= NEGLIGIBLE:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        negligible = subset_delta(share, distance, np.array([middle * interval]))[0] < NEGLIGIBLE
        low, high = (low, middle) if negligible else (middle, high)
    return high


TAIL = 1e-15
"""Mass beyond the ends of a composition, as in the library."""
_NO_POWER = 70.0  # e^-70 is nothing, even in extended precision
STEP_ROUNDING = 2 * float(np.finfo(np.longdouble).eps)
"""The rounding of a sampled step, in δ: twice the most that was found, which is at δ near 1."""
LARGEST_STEP_ROUNDING = 2 * float(np.finfo(np.float64).eps)
"""The same on a machine without extended precision."""
COMPOSITION_ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""The rounding of composing one stage with the others, in δ: twice the most that was found, at δ near 1."""


def gaussian_distribution(
    noise_multiplier: float, probability: float, interval: float, relation: NeighboringRelation, *, tail: float = 0.0
) -> PrivacyLossDistribution:
    """Return the privacy-loss distribution of one Gaussian release of a Poisson sample, pessimistically.

    It is what `dp_accounting.pld.privacy_loss_distribution.from_gaussian_mechanism` returns.

    Args:
        noise_multiplier: standard deviation of the noise, in units of the add/remove sensitivity.
        probability: that a record is in the sample, in (0, 1].
        interval: grid step, nats.
        relation: add/remove or replace-one.
        tail: δ beyond the ends of the grid; with 0, the library's ends.

    Raises:
        ValueError: another relation.
    """
    if relation not in (NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE):
        raise ValueError(f"Expected add/remove or replace-one, got {relation!r}.")
    if relation is NeighboringRelation.REPLACE_ONE:
        return PrivacyLossDistribution(_on_grid(noise_multiplier, probability, interval, AdjacencyType.REPLACE, tail))
    removed = _on_grid(noise_multiplier, probability, interval, AdjacencyType.REMOVE, tail)
    if probability == 1:
        return PrivacyLossDistribution(removed)
    return PrivacyLossDistribution(removed, _on_grid(noise_multiplier, probability, interval, AdjacencyType.ADD, tail))


def _on_grid(
    noise_multiplier: float, probability: float, interval: float, adjacency: AdjacencyType, tail: float
) -> PLDPmf:
    loss = GaussianPrivacyLoss(noise_multiplier, sampling_prob=probability, adjacency_type=adjacency)
    bounds = loss.connect_dots_bounds()
    assert bounds.epsilon_lower is not None
    assert bounds.epsilon_upper is not None
    if tail:
        return _by_cells(loss, interval, bounds.epsilon_lower, bounds.epsilon_upper, tail)
    low, high = math.floor(bounds.epsilon_lower / interval), math.ceil(bounds.epsilon_upper / interval)
    deltas = divergences(loss, interval * np.arange(low, high + 1))
    # dense: to compose a sparse one with itself T times, the library first computes its size to the power T
    return create_pmf_pessimistic_connect_dots_fixed_gap(interval, low, high, deltas).to_dense_pmf()


def _by_cells(loss: GaussianPrivacyLoss, interval: float, low: float, high: float, tail: float) -> DensePLDPmf:
    """Return `_on_grid` by masses between the points of the grid and not by differences of δ.

    Those lose so many digits that of thousands of steps a finer grid is worse. What both laws have between two points
    stands at the two, so that both keep their mass there: the same pessimistic curve. Beyond the ends δ is `tail`.
    """
    coarse = np.linspace(low, high, 2001)
    deltas = divergences(loss, coarse)
    high = float(coarse[deltas <= tail].min(initial=high))
    low = float(coarse[(coarse < 0) & (deltas + np.expm1(coarse) <= tail)].max(initial=low))
    first = math.floor(low / interval)
    epsilons = interval * np.arange(first, math.ceil(high / interval) + 1)
    with np.errstate(invalid="ignore"):
        outcomes = _outcomes(loss, epsilons)
    q, adjacency = loss.sampling_prob, loss.adjacency_type
    if q < 1 and adjacency is AdjacencyType.REMOVE:
        outcomes = np.where(epsilons <= math.log1p(-q), np.inf, outcomes)
    if q < 1 and adjacency is AdjacencyType.ADD:
        outcomes = np.where(epsilons >= -math.log1p(-q), -np.inf, outcomes)
    edges = np.concatenate([[np.inf], outcomes, [-np.inf]]) / loss.standard_deviation
    step = (loss.sensitivity or 1.0) / loss.standard_deviation
    upper = _masses(edges, 0.0 if adjacency is AdjacencyType.ADD else -step, q)
    lower = _masses(edges, 0.0 if adjacency is AdjacencyType.REMOVE else step, q)
    infinite = max(upper[-1] - math.exp(epsilons[-1]) * lower[-1], 0.0)
    inner = upper[1:-1]
    right = np.clip((inner - np.exp(epsilons[:-1]) * lower[1:-1]) / -math.expm1(-interval), 0, inner)
    masses = np.concatenate([[upper[0]], right])
    masses[:-1] += inner - right
    masses[-1] += upper[-1] - infinite
    return DensePLDPmf(interval, first, masses, infinite, pessimistic_estimate=True)


def _masses(edges: np.ndarray, mean: float, probability: float) -> np.ndarray:
    """Return the mass between falling edges of (1 − q) N(0, 1) + q N(mean, 1), from the nearer tail of each."""

    def between(shift: float) -> np.ndarray:
        at = edges - shift
        return np.where(at[1:] > 0, ndtr(-at[1:]) - ndtr(-at[:-1]), ndtr(at[:-1]) - ndtr(at[1:]))

    return (1 - probability) * between(0.0) + probability * between(mean) if mean else between(0.0)


def divergences(loss: GaussianPrivacyLoss, epsilons: np.ndarray) -> np.ndarray:
    """Return δ at each ε: `loss.get_delta_for_epsilon(epsilons)`."""
    q, adjacency = loss.sampling_prob, loss.adjacency_type
    deltas, within = np.zeros(len(epsilons)), np.ones(len(epsilons), dtype=bool)
    if q < 1 and adjacency is AdjacencyType.ADD:  # beyond, every outcome is likelier with the record
        within = epsilons < -math.log1p(-q)
    elif q < 1 and adjacency is AdjacencyType.REMOVE:
        within = epsilons > math.log1p(-q)
        deltas[~within] = -np.expm1(epsilons[~within])
    inside = epsilons[within]
    cutoffs = _outcomes(loss, inside)
    deltas[within] = loss.mu_upper_cdf(cutoffs) - np.exp(inside + loss.mu_lower_log_cdf(cutoffs))
    if not np.isfinite(deltas).all():
        raise FloatingPointError("A privacy loss could not be computed. Nothing was charged.")
    return np.clip(deltas, 0, 1)


def _outcomes(loss: GaussianPrivacyLoss, epsilons: np.ndarray) -> np.ndarray:
    """Return the outcome at which the privacy loss is ε, for each ε; above it, the loss is smaller."""
    q, distance, variance = loss.sampling_prob, loss.sensitivity, loss.standard_deviation**2
    assert distance is not None  # the base class allows none
    if loss.adjacency_type is AdjacencyType.REPLACE:
        if q == 1:
            return -epsilons * variance / distance / 2
        with np.errstate(divide="ignore"):  # at ε = 0 the logarithm is −∞, and the outcome 0
            half = np.abs(epsilons) / 2
            log_sinh = half + np.log1p(-np.exp(-2 * half)) - math.log(2)
        log_sinh += 0.5 * distance**2 / variance + math.log1p(-q) - math.log(q)
        inverse = np.logaddexp(0.5 * np.logaddexp(0, 2 * log_sinh), log_sinh)
        return variance / distance * (-np.sign(epsilons) * inverse - epsilons / 2)
    added = loss.adjacency_type is AdjacencyType.ADD
    losses = -epsilons if added else epsilons
    if q < 1:
        losses = _without_sampling(q, losses)
    outcomes = -0.5 * distance - (-losses if added else losses) * variance / distance
    return distance + outcomes if added else outcomes


def _without_sampling(q: float, losses: np.ndarray) -> np.ndarray:
    """Return log(1 + (e^ε − 1)/q), in the library's order of operations: of many steps, an ulp each would show."""
    scaled, least = losses + math.log(1 / q), math.log(1 / q - 1)
    with np.errstate(divide="ignore"):
        result = scaled + np.log1p(-np.exp(np.minimum(least - scaled, 0)))
    result = np.where(losses == 0, math.log(1 / q + (1 - 1 / q)), result)
    return np.where(np.isclose(losses, math.log(1 - q), rtol=1e-9, atol=0), -math.inf, result)


def self_composed(step: PrivacyLossDistribution, count: int, tail: float = TAIL) -> PrivacyLossDistribution:
    """Return the privacy-loss distribution of `count` equal steps, above the exact one by what rounding may have cost.

    Privacy: none (pure function); pessimistic if `step` is.

    Args:
        step: dense.
        count: at least 1.
        tail: mass of the largest losses that may be taken for infinite ones, which is pessimistic; the more, the less
            memory.
    """
    removed = _power(step._pmf_remove, count, tail)
    return (
        PrivacyLossDistribution(removed)
        if step._symmetric
        else PrivacyLossDistribution(removed, _power(step._pmf_add, count, tail))
    )


def _power(step: PLDPmf, count: int, tail: float) -> PLDPmf:
    if count == 1:
        return step
    assert isinstance(step, DensePLDPmf)
    first, last = compute_self_convolve_bounds(cast("list[float]", step._probs), count, tail)
    size = fft.next_fast_len(max(last - first + 1, step.size), real=True)
    transform = np.asarray(fft.rfft(step._probs.astype(np.longdouble), size))
    magnitudes = np.maximum(np.abs(transform).astype(np.float64), np.finfo(np.float64).tiny)
    counted = count * np.log(magnitudes) > -_NO_POWER  # only the low frequencies, of many steps
    powers = np.where(counted, transform, 0)
    powers[counted] **= count
    probabilities = np.roll(np.asarray(fft.irfft(powers, size)), -first)[: last - first + 1].astype(np.float64)
    infinite = tail + count * STEP_ROUNDING - math.expm1(count * math.log1p(-step._infinity_mass))
    return DensePLDPmf(
        step._discretization,
        step._lower_loss * count + first,
        np.maximum(probabilities, 0),
        infinite,
        step._pessimistic_estimate,
    )


class GridPLDAccountant(PLDAccountant):
    """The PLD accountant with the distributions above, and Gaussian releases of subsets under replace-one.

    The event of a subset is `SampledWithoutReplacementDpEvent(n, m, GaussianDpEvent(1/Δ))`: as for the Rényi
    accountant, its multiplier is relative to the replace distance. `tail`: of `self_composed`.
    """

    tail = TAIL

    def _maybe_compose(self, event: dp_event.DpEvent, count: int, do_compose: bool):  # noqa: ANN202 - the base's type
        if (
            self.neighboring_relation is NeighboringRelation.REPLACE_ONE
            and isinstance(event, dp_event.SampledWithoutReplacementDpEvent)
            and _has_noise(event.event)
            and 0 < event.sample_size <= event.source_dataset_size
        ):
            if do_compose:
                share = event.sample_size / event.source_dataset_size
                step = subset_distribution(share, 1 / event.event.noise_multiplier, self._value_discretization_interval)
                self._add(self_composed(step, count, self.tail))
            return None
        if _has_noise(event):
            if do_compose:
                self._add(self._gaussian(event.noise_multiplier / math.sqrt(count), 1))
            return None
        if isinstance(event, dp_event.PoissonSampledDpEvent) and event.sampling_probability and _has_noise(event.event):
            if do_compose:
                tail = self.tail / count if self.tail > TAIL else 0.0
                step = self._gaussian(event.event.noise_multiplier, event.sampling_probability, tail)
                self._add(self_composed(step, count, self.tail))
            return None
        return super()._maybe_compose(event, count, do_compose)

    def curve(self, largest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return ε (m,) from 0 on the grid to the largest loss, or to `largest` nats, and δ at each.

        δ is the larger of both directions.
        """
        sides = [self._pld._pmf_remove] if self._pld._symmetric else [self._pld._pmf_remove, self._pld._pmf_add]
        sides = [side.to_dense_pmf() for side in sides]
        end = min(
            math.ceil(largest / self._value_discretization_interval),
            max(side._lower_loss + side.size for side in sides),
        )
        epsilons = self._value_discretization_interval * np.arange(max(end, 0) + 1)
        deltas = [_divergences_on_grid(side, len(epsilons)) for side in sides]
        return epsilons, np.maximum.reduce(deltas)

    def _gaussian(self, noise_multiplier: float, probability: float, tail: float = 0.0) -> PrivacyLossDistribution:
        relation = self.neighboring_relation
        return gaussian_distribution(
            noise_multiplier, probability, self._value_discretization_interval, relation, tail=tail
        )

    def _add(self, step: PrivacyLossDistribution) -> None:
        removed = _with_rounding(step._pmf_remove)
        added = () if step._symmetric else (_with_rounding(step._pmf_add),)
        self._pld = self._pld.compose(PrivacyLossDistribution(removed, *added))


def _with_rounding(step: PLDPmf) -> PLDPmf:
    """Return a stage above what composing it in 64 bits may understate."""
    step = step.to_dense_pmf()
    infinite = step._infinity_mass + COMPOSITION_ROUNDING
    return DensePLDPmf(step._discretization, step._lower_loss, step._probs, infinite, step._pessimistic_estimate)


def _divergences_on_grid(side: DensePLDPmf, points: int) -> np.ndarray:
    """Return δ (points,) at ε = 0, 1, … grid steps: the mass above, less e^ε times that of the other side."""
    losses = side._lower_loss + np.arange(side.size)
    masses = np.asarray(side._probs)[losses > 0]
    losses = losses[losses > 0]
    above, other = np.zeros(points), np.zeros(points)
    if len(losses):
        steps = side._discretization
        upper = np.cumsum(masses[::-1])[::-1]
        lower = np.cumsum((masses * np.exp(-steps * losses))[::-1])[::-1]
        first = np.maximum(np.arange(points) - losses[0] + 1, 0)
        within = first < len(losses)
        above[within], other[within] = upper[first[within]], lower[first[within]]
        other *= np.exp(steps * np.arange(points))
    return np.clip(side._infinity_mass + above - other, 0.0, 1.0)


def merged_gaussians(events: Iterable[dp_event.DpEvent]) -> list[dp_event.DpEvent]:
    """Return events that cost the same, with one in place of all unsampled Gaussian releases.

    Releases with multipliers σ_i, adaptively chosen or not, are one with 1/σ² = Σ 1/σ_i²: nothing is rounded, and one
    distribution is made in place of several.
    """
    squares, others = 0.0, []
    for event in events:
        inner, count = (event.event, event.count) if isinstance(event, dp_event.SelfComposedDpEvent) else (event, 1)
        if _has_noise(inner):
            squares += count / inner.noise_multiplier**2
        else:
            others.append(event)
    return [*others, dp_event.GaussianDpEvent(1 / math.sqrt(squares))] if squares else others


def _has_noise(event: dp_event.DpEvent) -> TypeGuard[dp_event.GaussianDpEvent]:
    return isinstance(event, dp_event.GaussianDpEvent) and event.noise_multiplier > 0
