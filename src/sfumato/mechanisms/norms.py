"""How long contributions are, and their clipped sum: one Gaussian event for both.

    H̃ = Σᵢ e_b(i) + (m/w₀) Z,      b(i) the bin of ‖gᵢ‖
    S̃/C = Σᵢ clip(gᵢ, C)/C + (m/w₁) Z',    w₀² + w₁² = 1,   C from earlier releases

Proof: docs/proofs/clip_norms.md.
"""

from __future__ import annotations

import numpy as np

from sfumato.errors import ConfigError, require_open_unit
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy, noisy_sum
from sfumato.privacy.ledger import Ledger
from sfumato.records.engine import Exact


def norm_bins(norms: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the bin of each norm: (e₍ⱼ₋₁₎, eⱼ], zeros in the first, what is above all edges in the last.

    Args:
        norms: shape (n,).
        edges: upper ends of the bins, ascending, shape (w,).
    """
    return np.minimum(np.searchsorted(edges, norms), edges.size - 1)


def joint_weights(share: float) -> tuple[float, float]:
    """Return (w₀, w₁) of counts that take `share` of the squared budget of a step, and of the sum."""
    share = require_open_unit(share=share)
    return float(np.sqrt(share)), float(np.sqrt(1 - share))


def noisy_norms_and_sum(
    counts: np.ndarray,
    sums: np.ndarray,
    *,
    share: float,
    stage: str,
    ledger: Ledger,
    noise: NoiseSource,
    sampling_probability: float | None = None,
    slack: float = 0.0,
) -> tuple[Noisy, Noisy]:
    """Release how many norms lie in each bin, and the sum of clipped vectors, of the same records.

    A record adds a 1 to one cell of `counts`, and to `sums` a vector of norm at most 1: its clipped vector ÷ the clip
    norm of its part. Clip norms are public or functions of earlier releases. By rounding, two neighbours' sums may be
    `slack` further apart than that: bounds are those of vectors of norm 1 + slack.

    Privacy: one event of the stage, `Gaussian(m)`, sampled if the stage is. A record's joint contribution (w₀e_b, w₁v)
        has norm at most √(w₀² + w₁²) = 1 (of vectors of norm 1 + s: √(w₀² + w₁²(1 + s)²), and the noise is that much
        more); replace distance √(2w₀² + 4w₁²) at most. The counts have noise multiplier
        m/w₀ and the sum m/w₁: blocks of these are one Gaussian of ((w₀/m)² + (w₁/m)²)^(-1/2) = m.
        Proof: docs/proofs/clip_norms.md.

    Args:
        counts: exact, any shape: parts × bins.
        sums: exact, in units of clip norms, shape (p,).
        share: of the squared budget of the event that counts take, in (0, 1).
        stage: name of the stage to charge.
        ledger: charged once, before noise is drawn.
        noise: the source of randomness.
        sampling_probability: of the Poisson sample that both are of; None for all records.
        slack: what rounding adds to the sensitivity of the sums, in clip norms, at least 0.

    Returns:
        Noisy counts and noisy sums, the weights taken off.

    Raises:
        ConfigError: sums that are no vector, before anything is charged.
        LedgerError: the plan has another stage next. Nothing was released.
    Reference: Acs et al. 2018 (DPNorm), with the two releases merged; Andrew et al. 2021, arXiv:1905.03871.
    """
    w0, w1 = joint_weights(share)
    if sums.ndim != 1:
        raise ConfigError(f"Expected the sums as one vector, got {sums.ndim} axes.")
    exact = joint_exact(counts, sums, share, sampling_probability, slack)
    noisy = noisy_sum(exact, stage=stage, ledger=ledger, noise=noise)
    first = noisy.value[: counts.size].reshape(counts.shape) / w0
    return Noisy(first, noisy.noise_std / w0), Noisy(noisy.value[counts.size :] / w1, noisy.noise_std / w1)


def joint_exact(
    counts: np.ndarray, sums: np.ndarray, share: float, sampling_probability: float | None = None, slack: float = 0.0
) -> Exact:
    """Return (w₀ counts, w₁ sums) as one exact statistic, of the bounds that its weights say: norm √(w₀² + w₁²) = 1.

    With slack s, the sums of a record count as vectors of norm 1 + s.
    """
    w0, w1 = joint_weights(share)
    longest = w1 * (1 + slack)
    norm_bound = float(np.hypot(w0, longest))
    return Exact(
        np.concatenate([w0 * counts.ravel(), w1 * sums]),
        name="norms and clipped sum",
        norm_bound=norm_bound,
        replace_distance=float(np.sqrt(2 * w0**2 + 4 * longest**2)) / norm_bound,
        sampling_probability=sampling_probability,
    )
