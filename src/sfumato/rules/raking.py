"""Rows chosen so that shares of single columns stay what they were before rows were made to keep rules.

Mending moves shares: what breaks an implication moves one way only. Of more rows than are needed, those are taken whose
weights bring the shares back as far as rules allow: iterative proportional fitting (Deming and Stephan 1940), which is
the law nearest to that of the mended rows among those with these shares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.columns.bounded import Values
from sfumato.rules.cells import Column, Table

_ROUNDS = 12
_BINS = 24


def share_codes(before: Table, after: Table, names: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return per column the codes of its cells before and after: levels, or bins of numbers with one for missing."""
    codes = []
    for name in names:
        old, new = before[name], after[name]
        if isinstance(old, Values):
            known = old.values[~old.absent]
            edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1])) if known.size else np.zeros(0)
            codes.append((_binned(old, edges), _binned(new, edges)))
        else:
            assert isinstance(new, np.ndarray)
            codes.append((old, new))
    return codes


def _binned(column: Column, edges: np.ndarray) -> np.ndarray:
    assert isinstance(column, Values)
    return np.where(column.absent, edges.size + 1, np.searchsorted(edges, column.values, side="left"))


def raked(codes: Sequence[tuple[np.ndarray, np.ndarray]], first: np.ndarray, *, most: float) -> np.ndarray:
    """Return weights of n mended rows, mean 1, under which they have the shares of the rows before.

    Args:
        codes: per column, codes of the rows before and of the n mended ones.
        first: weights to begin with, shape (n,), above 0.
        most: what a weight may be at most: a row is taken once.
    """
    n = first.size
    weights = first * (n / first.sum())
    for _ in range(_ROUNDS):
        for before, after in codes:
            levels = int(max(before.max(initial=0), after.max(initial=0))) + 1
            target = np.bincount(before, minlength=levels) / max(before.size, 1)
            share = np.bincount(after, weights, minlength=levels) / weights.sum()
            scale = np.divide(target, share, out=np.ones(levels), where=share > 0)
            weights *= scale[after]
            total = weights.sum()
            weights = np.minimum(weights * (n / total), most) if total > 0 else first
    return weights * (n / weights.sum())


def chosen(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n different places, going up, each as likely as its weight says where that is at most 1.

    Systematic sampling; of fewer rows with a weight than are needed, others are taken too.
    """
    if n >= weights.size:
        return np.arange(weights.size)
    weights = np.maximum(weights, 1e-9)
    likely = weights * (n / weights.sum())
    while (likely > 1).any():  # what is taken for sure leaves its part to the others
        sure = likely >= 1
        rest = weights[~sure].sum()
        likely = np.where(sure, 1.0, weights * ((n - sure.sum()) / rest))
    steps = np.floor(np.cumsum(likely) + rng.random())
    places = np.flatnonzero(np.diff(np.concatenate([[0.0], steps])) > 0)
    # rounding of the sum may leave one too many or too few
    if places.size > n:
        return places[:n]
    if places.size < n:
        others = np.setdiff1d(np.arange(weights.size), places)
        places = np.sort(np.concatenate([places, others[: n - places.size]]))
    return places
