"""Checks on arrays that a stranger may have written; functions of rows of which most are 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from sfumato.errors import ReleaseError

Functions: TypeAlias = np.ndarray | Any
"""Of rows, shape (N, k): a `sparse.csc_array`, of whose shape types say nothing, where most are 0."""
_JITTER = 1e-9
_FILLED = 0.1  # of the rows, in which a function is not 0: products of more of them are faster of whole arrays


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


def dense(functions: Functions) -> np.ndarray:
    """Return functions as an array."""
    return functions if isinstance(functions, np.ndarray) else functions.toarray()


class CentredRows:
    """Functions of rows about their means, of which no copy is made: means are taken off what is computed.

    Attributes:
        means: shape (k,).
        rows: the functions, shape (N, k).
    """

    def __init__(self, functions: Functions) -> None:
        self.means = np.asarray(functions.mean(axis=0)).reshape(-1)
        self.rows: Functions = functions if isinstance(functions, np.ndarray) else sparse.csr_array(functions)

    def __len__(self) -> int:
        return self.rows.shape[0]

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        return self.rows @ other - self.means @ other

    def along(self, others: Functions) -> np.ndarray:
        """Return the sums of products of others, shape (N, m), with these, shape (m, k)."""
        return dense(others.T @ self.rows) - np.outer(others.sum(axis=0), self.means)

    @cached_property
    def _moments(self) -> Functions:
        if isinstance(self.rows, np.ndarray):
            return (self.rows.T @ self.rows) / len(self)
        filled = np.bincount(self.rows.indices, minlength=self.means.size)
        n = int(np.searchsorted(filled, _FILLED * len(self)))
        few, many = self.rows[:, :n], self.rows[:, n:].toarray()
        corner = few.T @ many
        return sparse.block_array([[few.T @ few, corner], [corner.T, many.T @ many]], format="csc") / len(self)

    @property
    def variances(self) -> np.ndarray:
        """The variance of each."""
        return self._moments.diagonal() - self.means**2

    def moved(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors, shape (m, k), times the covariance."""
        return vectors @ self._moments - np.outer(vectors @ self.means, self.means)

    def law(self, scale: float, more: float) -> np.ndarray:
        """Return scale·covariance + more·means·meansᵀ."""
        return scale * dense(self._moments) + (more - scale) * np.outer(self.means, self.means)

    def floor(self, scale: float, more: float) -> float:
        """Return what is added to the diagonal of a law so that it can be solved."""
        trace = float((scale * self.variances + more * self.means**2).sum())
        return _JITTER * max(trace / max(self.means.size, 1), 1e-12)

    def solver(self, scale: float, more: float, noise: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return the inverse of a law with noise of these variances, as a function of vectors, shapes (k,) or (k, m).

        Where functions are mostly 0, those with fewest other entries first, so are their moments.
        """
        noise = noise + self.floor(scale, more)
        if isinstance(self.rows, np.ndarray):
            return partial(linalg.cho_solve, linalg.cho_factor(self.law(scale, more) + np.diag(noise), lower=True))
        moments = sparse.csc_array(scale * self._moments + sparse.diags_array(noise))
        solve = splu(moments, "NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve
        own, factor = solve(self.means), more - scale
        factor /= 1 + factor * float(self.means @ own)

        def solved(wanted: np.ndarray) -> np.ndarray:
            first = solve(np.ascontiguousarray(wanted))
            return first - factor * np.multiply.outer(own, self.means @ first)

        return solved


def shares_among(shares: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return shares among some cells, even ones where these have none."""
    own = np.where(some, shares, 0.0)
    total = own.sum()
    return np.where(total > 0, own / np.where(total > 0, total, 1.0), some / some.sum())
