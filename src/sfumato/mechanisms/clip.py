"""What one record may contribute: clipping to a norm, totally.

Any input, NaN and overflow included, comes out within the bound: one bad record cannot poison a sum.
"""

from __future__ import annotations

import numpy as np

from sfumato.errors import require_positive

# Rounding in the norm and in the product is below 1e-12 for any dimension in use; the margin keeps it inside the bound.
SAFETY = 1 - 1e-6
_FAR = 1e100  # norms between 1/_FAR and this have squares that neither overflow nor vanish


def clip_factors(norms: np.ndarray, clip_norm: float) -> np.ndarray:
    """Return min(1, C/‖x‖) per record, less a margin for rounding; 0 where the norm is not finite.

    Args:
        norms: ℓ2 norms, shape (n,).
        clip_norm: bound C > 0, data units.
    """
    clip_norm = require_positive(clip_norm=clip_norm)
    factors = np.zeros(norms.shape)
    inside = norms <= clip_norm
    factors[inside] = SAFETY
    outside = (norms > clip_norm) & np.isfinite(norms)
    factors[outside] = SAFETY * clip_norm / norms[outside]
    return factors


def clip_rows(vectors: np.ndarray, clip_norm: float) -> np.ndarray:
    """Return records shrunk to ℓ2 norm at most C: x·min(1, C/‖x‖); a record that is not finite becomes zero.

    Privacy: none (a per-record map); it makes the norm bound of what follows true.

    Args:
        vectors: records, shape (n, d), data units.
        clip_norm: bound C > 0, data units.

    Returns:
        A new float64 array of shape (n, d), every row of norm at most C.
    """
    # row after row in memory: otherwise the order in which a norm is added up would depend on who else is there
    clipped = np.array(vectors, dtype=np.float64, order="C")
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", clipped, clipped))
    # row by row, so that no record changes what becomes of another: squares that overflow or vanish go the long way
    odd = ~((norms <= _FAR * min(1.0, clip_norm)) & ((norms >= 1 / _FAR) | (clip_norm >= 1 / _FAR)))
    clipped *= clip_factors(np.where(odd, 0.0, norms), clip_norm)[:, None]
    if odd.any():
        clipped[odd] = _clipped_with_care(np.array(vectors[odd], dtype=np.float64, order="C"), clip_norm)
    return clipped


def _clipped_with_care(vectors: np.ndarray, clip_norm: float) -> np.ndarray:
    """Return records of any floats shrunk to norm at most C, without overflow; rows that are not finite become zero."""
    vectors[~np.isfinite(vectors).all(axis=1)] = 0.0
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    scaled = vectors / scale[:, None]
    relative = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    with np.errstate(over="ignore"):
        norms = relative * scale
    # so far outside that the factor itself would lose digits: take the direction first
    huge = norms / _FAR > clip_norm
    clipped = vectors * clip_factors(norms, clip_norm)[:, None]
    clipped[huge] = scaled[huge] * (SAFETY * clip_norm / relative[huge])[:, None]
    return clipped
