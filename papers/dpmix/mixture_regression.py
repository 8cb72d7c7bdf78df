"""Least squares from noisy mixtures, by stochastic gradients whose bias is corrected.

    J(W) = ‖WX − Y‖²/(2n);   g = (Wx' − y')x'ᵀ,   V = ℓ(g − W diag(σ²)),   W ← W − V/(λt)

A mixture's noise adds W diag(σ²) to the expected gradient, which V takes away. What is left is

    E[V] = c∇J(W) + ℓ c'(Wx̄ − ȳ)x̄ᵀ,   c = (n−ℓ)/(n−1) of subsets, 1 − ℓ/n of Poisson samples; ℓc' ≥ ℓ − 1

so records have to be centred publicly, or have a constant feature without noise: then its second term is 0 at the
optimum. Source: Theorems 2 and 5 of Lee et al. (ISIT 2019), which leave that term out, and print the least singular
value of X for λ where the proof needs the least eigenvalue of XXᵀ/n.
"""

from __future__ import annotations

import numpy as np

from sfumato.errors import ConfigError, require_integer, require_positive


def sgd_on_mixtures(
    features: np.ndarray,
    labels: np.ndarray,
    *,
    degree: int,
    noise_std: float | np.ndarray,
    curvature: float,
    radius: float,
    corrected: bool = True,
) -> np.ndarray:
    """Return the weights W after one pass, one step per mixture, in their order.

    Privacy: none is spent: mixtures are released, and the other arguments are public. E[J(W) − J*] ≤ Q(1 + ln T)/T.

    Args:
        features: mixtures x', shape (T, d_X).
        labels: y', shape (T, d_Y).
        degree: ℓ.
        noise_std: σ_X of the features' noise, one number or one per feature; 0 for a constant feature.
        curvature: λ, at most the least eigenvalue of XXᵀ/n. A setting: of the records it would be a statistic.
        radius: weights are kept to this Frobenius norm; a setting, large enough for the optimum. The proof needs one.
        corrected: whether the bias is taken away; False for comparison.

    Returns:
        W, shape (d_Y, d_X).

    Raises:
        ConfigError: shapes that do not fit, or a number outside its domain.
    """
    require_integer(at_least=1, degree=degree)
    require_positive(curvature=curvature)
    require_positive(radius=radius)
    if features.ndim != 2 or labels.ndim != 2 or len(features) != len(labels):
        raise ConfigError(f"Expected features (T, d_X) and labels (T, d_Y), got {features.shape} and {labels.shape}.")
    noise = np.broadcast_to(np.asarray(noise_std, dtype=np.float64), features.shape[1:])
    if not (np.isfinite(noise).all() and (noise >= 0).all()):
        raise ConfigError("Expected noise_std to be finite and at least 0.")
    bias = noise**2 if corrected else np.zeros_like(noise)
    weights = np.zeros((labels.shape[1], features.shape[1]))
    for t, (x, y) in enumerate(zip(features.astype(np.float64), labels.astype(np.float64), strict=True), start=1):
        gradient = np.outer(weights @ x - y, x) - weights * bias
        weights -= degree / (curvature * t) * gradient
        norm = np.sqrt(np.vdot(weights, weights))
        if norm > radius:
            weights *= radius / norm
    return weights
