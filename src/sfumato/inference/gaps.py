"""The model's rows without a value in a column, with the other cells of rows that have one.

A model of pairs takes a row without a value of x for one with a mean x: there the others go together as they do with x
held, and calibration, which knows only sums over all rows, would put what is wrong about them into the rows that have a
value. So the other cells of such a row are taken from one that has a value and is about as likely to have none, as its
other cells say; calibration then brings in what was measured of missing cells and each other column. Where no row is
about as likely, as where a rule says when a cell is empty, the row stays as it is.

Free: uses released values only.
Reference: Rosenbaum and Rubin 1983 (matching on the propensity score).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_CALIPER = 0.05  # difference of the chances
_NEIGHBOURS = 16
_TIE = 1e-6
_RIDGE = 1e-3  # of the mean variation of a feature


def fill_gaps(
    cells: np.ndarray,
    features: Sequence[tuple[int, np.ndarray]],
    missing: Sequence[int | None],
    rng: np.random.Generator,
) -> np.ndarray:
    """Return rows with the other cells of rows that have a value, where a row has none.

    Args:
        cells: of each row in each column, shape (N, columns).
        features: of the rows, shape (N, q) each, with the column that they follow from.
        missing: the missing cell of each column, None where there is none.
        rng: source of (public) randomness.
    """
    nullable = [j for j, cell in enumerate(missing) if cell is not None and (cells[:, j] == cell).any()]
    if not nullable:
        return cells
    gaps = np.stack([cells[:, j] == missing[j] for j in nullable], axis=1)
    chances = _chances(features, nullable, gaps)
    cells = cells.copy()
    for place, j in enumerate(nullable):
        others = np.delete(gaps, place, axis=1)
        patterns = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1)
        for pattern in np.unique(patterns[gaps[:, place]]):
            alike = patterns == pattern
            takers, donors = (np.flatnonzero(alike & members) for members in (gaps[:, place], ~gaps[:, place]))
            takers, givers = _matched(chances[:, place], takers, donors, rng)
            own = cells[takers, j]
            cells[takers] = cells[givers]
            cells[takers, j] = own
    return cells


def _chances(features: Sequence[tuple[int, np.ndarray]], nullable: list[int], gaps: np.ndarray) -> np.ndarray:
    """Return each row's chance to have no value in a column as the other columns say it, shape (N, nullable)."""
    rows = np.concatenate([own for _, own in features], axis=1)
    rows = rows - rows.mean(axis=0)
    owner = np.repeat([j for j, _ in features], [own.shape[1] for _, own in features])
    moments, wanted = rows.T @ rows, rows.T @ gaps
    moments += _RIDGE * np.trace(moments) / max(len(moments), 1) * np.eye(len(moments))
    chances = np.repeat(gaps.mean(axis=0)[None, :], len(rows), axis=0)
    for place, j in enumerate(nullable):
        others = np.flatnonzero(owner != j)
        if others.size:
            chances[:, place] += rows[:, others] @ np.linalg.solve(
                moments[np.ix_(others, others)], wanted[others, place]
            )
    return chances


def _matched(
    chances: np.ndarray, takers: np.ndarray, donors: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that find another about as likely, and for each one of its nearest such rows."""
    if not (takers.size and donors.size):
        return takers[:0], donors[:0]
    chances = chances + _TIE * rng.random(chances.size)  # rows alike are as likely to be taken
    donors = donors[np.argsort(chances[donors], kind="stable")]
    places = np.searchsorted(chances[donors], chances[takers])
    places = places + rng.integers(-_NEIGHBOURS // 2, _NEIGHBOURS // 2 + 1, takers.size)
    chosen = donors[np.clip(places, 0, donors.size - 1)]
    near = np.abs(chances[chosen] - chances[takers]) <= _CALIPER
    return takers[near], chosen[near]
