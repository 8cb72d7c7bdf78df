"""Rows of the model that the measurements ask for: where counts show records, and those without a value in a column.

A weight cannot bring a row that is not there: what the fit took for noise would be missing from every answer, whatever
was counted. So single cells that stand out of their noise get rows, and so do neighbouring cells of numbers that do so
together: a group spread over twenty cells of fifty records each is nothing cell by cell in noise of eighteen.

A model of pairs takes a row without a value of x for one with a mean x: there the others go together as they do with x
held, and calibration, which knows only sums over all rows, would put what is wrong about them into the rows that have a
value. So the other cells of such a row are taken from one that has a value and is about as likely to have none, as its
other cells say; calibration then brings in what was measured of missing cells and each other column. Where no row is
about as likely, as where a rule says when a cell is empty, the row stays as it is.

Free: uses released values only.
Reference: Rosenbaum and Rubin 1983 (matching on the propensity score).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Feature = tuple[int, np.ndarray, np.ndarray]
_CALIPER = 0.05  # difference of the chances
_NEIGHBOURS = 16
_TIE = 1e-6
_BLOCK = 512  # rows, whose features are held: all would be hundreds of megabytes
_RIDGE = 1e-3  # of the mean variation of a feature
_STANDS_OUT = 5.0  # deviations of the noise: of a thousand cells of noise not one in three hundred releases has one
_TOGETHER = 3.5  # the same of neighbouring cells, of which there are fewer sums
_WIDTHS = (2, 4, 8, 16, 32)  # runs of cells that are looked at together
_MOST_GROUPS = 8
_LACKING = 0.5  # share of the records counted in a window of which the model has no more
_FEWEST = 3
_LARGEST = 0.1  # share of all rows that one cell may take
_NO_NOISE = 1e-6  # variance of a count


def fill_gaps(
    cells: np.ndarray, features: Iterable[Feature], missing: Sequence[int | None], rng: np.random.Generator
) -> np.ndarray:
    """Return rows with the other cells of rows that have a value, where a row has none.

    Args:
        cells: of each row in each column, shape (N, columns).
        features: a column, numbers of each of its cells, shape (c, q), and the cell of each row, shape (N,).
        missing: the missing cell of each column, None where there is none.
        rng: source of (public) randomness.
    """
    nullable = [j for j, cell in enumerate(missing) if cell is not None and (cells[:, j] == cell).any()]
    if not nullable:
        return cells
    gaps = np.stack([cells[:, j] == missing[j] for j in nullable], axis=1)
    chances = _chances(list(features), nullable, gaps)
    cells = cells.copy()
    numbers = rng.integers(1, 1 << 63, len(nullable), dtype=np.uint64)
    patterns = np.zeros(len(gaps), dtype=np.uint64)  # modulo 2^64: rows of one number have gaps in the same columns
    for gap, number in zip(gaps.T, numbers, strict=True):
        patterns[gap] += number
    for place, j in enumerate(nullable):
        others = patterns - (gap := gaps[:, place]) * numbers[place]
        for pattern in np.intersect1d(others[gap], others[~gap]):
            alike = others == pattern
            takers, donors = (np.flatnonzero(alike & members) for members in (gap, ~gap))
            takers, givers = _matched(chances[:, place], takers, donors, rng)
            own = cells[takers, j]
            cells[takers] = cells[givers]
            cells[takers, j] = own
    return cells


def _chances(features: Sequence[Feature], nullable: list[int], gaps: np.ndarray) -> np.ndarray:
    """Return each row's chance to have no value in a column as the other columns say it, shape (N, nullable)."""
    owner = np.repeat([j for j, _, _ in features], [vectors.shape[1] for _, vectors, _ in features])
    means = np.concatenate([vectors[cells].mean(axis=0) for _, vectors, cells in features])
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(gaps), _BLOCK)]

    def rows(block: slice) -> np.ndarray:
        return np.concatenate([vectors[cells[block]] for _, vectors, cells in features], axis=1) - means

    sums = np.zeros((owner.size, owner.size + len(nullable)))
    for block in blocks:
        sums += (own := rows(block)).T @ np.concatenate([own, gaps[block]], axis=1)
    np.fill_diagonal(sums, np.diagonal(sums) + _RIDGE * (np.trace(sums) or 1.0) / max(owner.size, 1))
    inverse = np.linalg.inv(sums[:, : owner.size])
    slopes = inverse @ np.where(owner[:, None] == nullable, 0.0, sums[:, owner.size :])
    for place, j in enumerate(nullable):  # the inverse without a column's own features, from that with them
        own = np.flatnonzero(owner == j)
        slopes[:, place] -= inverse[:, own] @ np.linalg.solve(inverse[np.ix_(own, own)], slopes[own, place])
    shares = gaps.mean(axis=0)
    return np.concatenate([shares + rows(block) @ slopes for block in blocks])


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


@dataclass(frozen=True, slots=True)
class ColumnCounts:
    """Noisy counts of one column's cells and of runs of them.

    Attributes:
        cells: shape (c,).
        cell_variance: of their noise.
        runs: noisy counts of runs, shape (r,).
        run_variance: of their noise.
        run_of: run of each cell, shape (c,).
        ordered: the runs that follow each other, from the first: 0 of labels; a missing cell is none of them.
    """

    cells: np.ndarray
    cell_variance: float
    runs: np.ndarray
    run_variance: float
    run_of: np.ndarray
    ordered: int

    @property
    def together(self) -> tuple[np.ndarray, np.ndarray]:
        """How many records each run holds, by both counts of it, and the variance of that, shape (r,) each."""
        sizes = np.bincount(self.run_of, minlength=self.runs.size)
        sums = np.bincount(self.run_of, self.cells, minlength=self.runs.size)
        precise, coarse = 1 / max(self.run_variance, _NO_NOISE), 1 / (sizes * max(self.cell_variance, _NO_NOISE))
        return (self.runs * precise + sums * coarse) / (precise + coarse), 1 / (precise + coarse)


def with_support(
    cells: np.ndarray, columns: Sequence[ColumnCounts | None], size: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the model's rows, some of them moved to where there are records and hardly a row.

    Args:
        cells: of each row in each column, shape (N, columns).
        columns: the noisy counts of the first columns; None of one that has none.
        size: number of records.
        rng: source of (public) randomness.
    """
    cells, n_rows = cells.copy(), len(cells)
    for j, column in enumerate(columns):
        if column is None:
            continue
        drawn_rows = np.bincount(cells[:, j], minlength=column.cells.size)
        for cell, count in _single(column, drawn_rows):
            n = min(max(round(count / max(size, _NO_NOISE) * n_rows), _FEWEST), int(_LARGEST * n_rows))
            cells[rng.choice(n_rows, n, replace=False), j] = cell
        for _ in range(_MOST_GROUPS):
            drawn_rows = np.bincount(cells[:, j], minlength=column.cells.size)
            shares, lack = _group(column, drawn_rows * (size / n_rows), size / n_rows)
            n = min(round(lack / max(size, _NO_NOISE) * n_rows), n_rows // 3)
            if n < _FEWEST:
                break
            cells[rng.choice(n_rows, n, replace=False), j] = rng.choice(shares.size, n, p=shares)
    return cells


def _single(column: ColumnCounts, drawn_rows: np.ndarray) -> list[tuple[int, float]]:
    """Return the cells that stand out of noise by themselves or as their run, and have hardly a row."""
    counts, (totals, variances) = column.cells, column.together
    lacking = []
    for run, total in enumerate(totals):
        members = np.flatnonzero(column.run_of == run)
        if drawn_rows[members].sum() >= _FEWEST:
            least = _STANDS_OUT * max(column.cell_variance, _NO_NOISE) ** 0.5
            lacking += [(int(c), float(counts[c])) for c in members if drawn_rows[c] < _FEWEST and counts[c] > least]
        elif total > _STANDS_OUT * variances[run] ** 0.5:
            # of the run's cells only the largest: the others are as likely noise
            lacking.append((int(members[np.argmax(counts[members])]), float(total)))
    return lacking


def _group(column: ColumnCounts, model_counts: np.ndarray, each: float) -> tuple[np.ndarray, float]:
    """Return how the window that lacks most rows is shared among cells, shape (c,), and how many records it lacks.

    Args:
        column: its counts.
        model_counts: records of each cell as the model has them, shape (c,).
        each: records that a row of the model stands for.
    """
    totals, variances = (counts[: column.ordered] for counts in column.together)
    model = np.bincount(column.run_of, model_counts, minlength=column.runs.size)[: column.ordered]
    best, chosen, lack = _TOGETHER, None, 0.0
    for width in _WIDTHS:
        if width > column.ordered:
            break
        counted, had, noise = (
            np.convolve(values, np.ones(width), "valid") for values in (totals, model, variances + each * model)
        )
        deviations = np.where(had <= _LACKING * counted, (counted - had) / np.sqrt(noise), 0.0)
        place = int(np.argmax(deviations))
        if deviations[place] > best:
            best, chosen, lack = deviations[place], slice(place, place + width), float(counted[place] - had[place])
    shares = np.zeros(column.cells.size)
    if chosen is None:
        return shares, 0.0
    for run in range(column.ordered)[chosen]:
        members = np.flatnonzero(column.run_of == run)
        own = np.maximum(column.cells[members], 0.0) if members.size > 1 else np.ones(1)
        own = own if own.sum() else np.ones(members.size)
        shares[members] = max(totals[run] - model[run], 0.0) * own / own.sum()
    return (shares / shares.sum(), lack) if shares.sum() else (shares, 0.0)
