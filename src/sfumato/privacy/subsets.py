"""The privacy-loss distribution of a uniform subset under replace-one, which `dp-accounting` lacks.

m of n records are drawn without replacement, and a Gaussian release of their sum has replace distance Δ in units of its
noise. With γ = m/n and δ_Δ the Gaussian curve, one step satisfies

    δ(ε) ≤ γ·δ_Δ(log(1 + (e^ε − 1)/γ)) for ε ≥ 0,   δ(ε) = 1 − e^ε + e^ε δ(−ε) for ε < 0,

and this curve belongs to one dominating pair, so T adaptive steps are bounded by its T-fold composition. Proof:
docs/proofs/mixing.md. Add/remove has no such account: there the size of the subset would tell.
"""

from __future__ import annotations

import numpy as np
from dp_accounting.pld.pld_pmf import DensePLDPmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
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
