"""Contributions as whole numbers of a public step: their bounds are checked exactly, and their sums are exact.

    x ∈ ℝᵈ, ‖x‖ ≤ C    →    N ∈ ℤᵈ,   Σⱼ Nⱼ² ≤ 4^bits,   x ≈ N·C/2^bits

The sum of squares is a sum of integers below 2^53: the inequality holds of the numbers in memory, whatever rounding
came before. Proof: docs/proofs/grid.md.

What one record may contribute: clipping to a norm, totally.

Any input, NaN and overflow included, comes out within the bound: one bad record cannot poison a sum.
"""

from __future__ import annotations

from collections.abc import Callable

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


LINEAR_BITS = 26
"""Of vectors that are summed: the sum of their squares stays below 2^53."""
PRODUCT_BITS = 18
"""Of vectors whose products are summed, at most: 2^16 products stay below 2^53, and 2^27 below 2^63."""
MOST_ROWS = 1 << 36
"""Most rows that a fit takes: so many contributions of `LINEAR_BITS` stay below 2^63."""
_SPARE_BITS = 3  # the true number of rows may be eight times the public one before a sum of products runs over
_ROWS_AT_ONCE = 2048


def step_of(bound: float, bits: int = LINEAR_BITS) -> float:
    """Return the worth of 1 in `whole_rows`: bound ÷ 2^bits."""
    return bound * 2.0**-bits


def product_bits(n_public: int, weight_bits: int = 0) -> int:
    """Return the bits of vectors whose products are summed over so many rows: 18 up to 2^24, and 12 at `MOST_ROWS`.

    Each product is at most 4^bits, so that 8·n_public of them stay below 2^63. With weights both share the 36 bits of
    products, as a finer step would leave the largest noise no room.

    Args:
        n_public: the public number of rows, from 1 to `MOST_ROWS`.
        weight_bits: of the weights with which products are multiplied.
    """
    return (min(2 * PRODUCT_BITS, 63 - _SPARE_BITS - (n_public - 1).bit_length()) - weight_bits) // 2


def whole_rows(vectors: np.ndarray, clip_norm: float, bits: int = LINEAR_BITS) -> np.ndarray:
    """Return records, clipped to norm C, as whole numbers of C/2^bits: of norm at most 2^bits, exactly.

    Entries are rounded to the nearest whole number; where that makes a record too long, toward zero. An entry that is
    zero stays zero, and none changes its sign. What becomes of a record depends on that record alone.

    Privacy: none (a per-record map); it makes the norm bound of what follows true, to the last bit.

    Args:
        vectors: records, shape (n, d), data units; one that is not finite becomes zero.
        clip_norm: C > 0, data units.
        bits: at most 26.

    Returns:
        Whole numbers in float64, shape (n, d).
    """
    scaled = clip_rows(vectors, clip_norm)
    scaled *= 2.0**bits / clip_norm
    most = 4.0**bits
    whole = np.rint(scaled)
    for i in np.flatnonzero(_squares(whole) > most):
        whole[i] = np.trunc(scaled[i])
    whole[_squares(whole) > most] = 0.0  # never, by the margin of clipping; but then it need not be trusted
    return whole


def _squares(whole: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", whole, whole)


def row_by_row(function: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Return function(rows), computed in blocks of one shape, so that a row's result does not depend on the others.

    Linear algebra libraries choose the order of summation by the shape: the last bits of a row's result could change
    with the number of rows, and a rounding with them.

    Args:
        function: arrays of shape (n, …) → arrays of n rows, row by row but for the last bits.
        rows: shape (n, …).
    """
    block = np.zeros((_ROWS_AT_ONCE, *rows.shape[1:]), dtype=rows.dtype)
    parts = []
    for start in range(0, max(len(rows), 1), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        block[: len(part)] = part
        parts.append(function(block)[: len(part)])
    return np.concatenate(parts) if len(parts) > 1 else parts[0]
