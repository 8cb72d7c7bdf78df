"""Checks on arrays that a stranger may have written."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from sfumato.errors import ReleaseError


def require_array(
    arrays: Mapping[str, np.ndarray], name: str, dtype: type, shape: tuple[int | None, ...]
) -> np.ndarray:
    """Return the named array if it has this dtype and shape (None is any size) and only finite values.

    Raises:
        ReleaseError: it is missing or has not.
    """
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != len(shape):
        raise malformed(name)
    require_well_formed(all(want in (None, have) for want, have in zip(shape, array.shape, strict=True)), name)
    require_well_formed(bool(np.isfinite(array).all()), name)
    return array


def require_well_formed(fine: bool, name: str) -> None:
    """Raise ReleaseError about the named array unless it is fine."""
    if not fine:
        raise malformed(name)


def malformed(name: str) -> ReleaseError:
    """Return the error about a malformed array."""
    return ReleaseError(
        f"Expected a well-formed array {name!r} in the release, got something else. "
        "The file is damaged or was not written by Sfumato."
    )


def require_shares(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Return the named vector of shares, normalised; they have to be ≥ 0 and sum to 1."""
    shares = require_array(arrays, name, np.float64, (None,))
    require_well_formed(shares.size >= 1 and add_to_one(shares), name)
    return shares / shares.sum()


def add_to_one(shares: np.ndarray) -> bool:
    """Whether entries along the last axis are ≥ 0 and sum to 1."""
    # entries of at most 2 do not overflow in the sum
    inside = bool(((shares >= 0) & (shares <= 2)).all())
    return inside and bool((np.abs(shares.sum(axis=-1) - 1) < 1e-6).all())


def indicators(codes: np.ndarray, n: int) -> np.ndarray:
    """Return whether each row has each code, shape (N, n), of codes in 0..n-1, shape (N,)."""
    table = np.zeros((codes.size, n))
    table[np.arange(codes.size), codes] = 1.0
    return table


def sparse_indicators(codes: np.ndarray, chosen: np.ndarray, values: np.ndarray | None = None) -> sparse.csc_array:
    """Return whether each row has each of some codes, each chosen once, shape (N, k); times values, if given.

    Takes memory for the rows alone, however many codes there are.
    """
    order = np.argsort(chosen, kind="stable")
    places = np.searchsorted(chosen[order], codes)
    rows = np.flatnonzero(np.append(chosen[order], -1)[places] == codes)  # codes are none below 0
    entries = np.ones(rows.size) if values is None else values[rows]
    return sparse.csc_array((entries, (rows, order[places[rows]])), shape=(codes.size, chosen.size))
