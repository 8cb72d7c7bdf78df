"""Which measured functions of a record an estimate about some columns rests on.

Counts of runs and cells of these columns, and products of two features of theirs. Features are turned first: the
symmetric noise of a second moment has the same law in every orthonormal basis, so that a column of many features is
kept to the few directions that say what is asked of it, each with the same noise as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.errors import EstimateError
from sfumato.inference.measured import Measured, Totals
from sfumato.maths.arrays import indicators

FEWEST_ROWS = 3
"""Of the model, that a function is not 0 in: of others it says nothing."""
_DIRECTIONS = {1: 8, 2: 6, 3: 5, 4: 4}  # of a numeric column, by the number of columns together
_FEWEST_DIRECTIONS = 3
_MOST_LEVELS = 25  # labels of which all features are kept: of two such columns, as many products as can be solved for
_TINY = 1e-6
_FEW_CLASSES = 6
_MOST_PRODUCTS = 400
_MOST_TOGETHER = 26  # columns, beside the target, of which one direction each has so many products
_MOST_SOLVED = 700  # where all labels are kept: those of two columns of 24

CellFunctions = Sequence[np.ndarray]
"""Functions of a column's cells, each of shape (cells,)."""


def measured_functions(measured: Measured, asked: Mapping[str, CellFunctions]) -> Totals:
    """Return the noisy totals that say something of some columns together.

    Args:
        measured: what a release holds.
        asked: the columns, and of each what is asked of it first: such as its values, or a level's indicator.
    """
    places = [measured.names.index(name) for name in asked if name != measured.class_column]
    by_class = measured.class_column in asked
    parts = [_size(measured, places, by_class)]
    parts += [_runs(measured, j, by_class) for j in places]
    if len(asked) == 1:
        parts += [_cells(measured, j) for j in places]
    if places:
        most = _kept(measured, places, by_class)
        parts += _products(measured, places, [asked[measured.names[j]] for j in places], most, by_class)
    return Totals.joined(parts).seen(FEWEST_ROWS)


def all_functions(measured: Measured, asked: Mapping[str, CellFunctions]) -> Totals:
    """Return the noisy totals that say most of all columns together, as many as can be solved for.

    Of few columns several directions of each, and by class; of more without the class, and at the least one direction
    of each column with one of each other.

    Args:
        measured: what a release holds.
        asked: of the columns, what is asked of each first.

    Raises:
        EstimateError: there are more columns than that.
    """
    places = list(range(len(measured.names)))
    by_class = measured.class_column is not None and measured.layout.n_classes <= _FEW_CLASSES
    parts = [_runs(measured, j, by_class) for j in places]
    most, by_class = _of_all(measured, places, by_class)
    functions = [list(asked[measured.names[j]])[:kept] for j, kept in zip(places, most, strict=True)]
    parts += _products(measured, places, functions, most, by_class)
    return Totals.joined(parts).seen(FEWEST_ROWS)


def refuse_many_columns(measured: Measured) -> None:
    """Refuse to ask of all columns together where these are too many.

    Raises:
        EstimateError: they are.
    """
    _of_all(measured, list(range(len(measured.names))), by_class=False)


def _of_all(measured: Measured, places: list[int], by_class: bool) -> tuple[list[int], bool]:
    """Return how many directions of each column are kept where all are asked of, and whether by class."""
    k = measured.layout.n_classes
    widths = [measured.moments.vectors[j].shape[1] for j in places]
    for own in (True, False) if by_class else (False,):
        matrices = 1 + k if own and measured.by_class is not None else 1
        for most in range(_DIRECTIONS[2], 0, -1):
            d = sum(min(width, most) for width in widths) + (k if own else 1)
            if matrices * d * (d + 1) // 2 <= _MOST_PRODUCTS:
                return [most] * len(places), own
    raise EstimateError(
        f"Expected a release of at most {_MOST_TOGETHER} columns for replicates, got {len(places)}: they would hold no "
        "noise of how columns go together, and analyses of them would be too sure. Ask the release, or fit fewer "
        "columns."
    )


def _kept(measured: Measured, places: list[int], by_class: bool) -> list[int]:
    """Return how many directions of each column are kept: all of few labels, unless that is too much to solve for."""
    few = _DIRECTIONS.get(len(places), _FEWEST_DIRECTIONS)
    widths = [measured.moments.vectors[j].shape[1] for j in places]
    all_of_few = [
        width if _counted(measured, j) and width < _MOST_LEVELS else few
        for j, width in zip(places, widths, strict=True)
    ]
    sizes = [min(width, most) for width, most in zip(widths, all_of_few, strict=True)]
    k = measured.layout.n_classes if by_class else 0
    matrices = 1 + k if k and measured.by_class is not None else 1
    d = sum(sizes) + k
    inside = sum(size * (size + 1) // 2 for j, size in zip(places, sizes, strict=True) if _counted(measured, j))
    return all_of_few if matrices * (d * (d + 1) // 2 - inside) <= _MOST_SOLVED else [few] * len(places)


def _size(measured: Measured, places: list[int], by_class: bool) -> Totals:
    """Return the number of records, or of each class, as all other columns' counts say it."""
    k = measured.layout.n_classes
    rows = measured.classes.size
    precision, total = 0.0, np.zeros(k)
    for j, table in enumerate(measured.run_counts):
        if j not in places:
            precision += 1 / table.shape[1]
            total += table.sum(axis=1) / table.shape[1]
    if not precision:
        empty = np.zeros(0)
        return Totals(np.zeros((rows, 0)), empty, empty)
    variance = measured.run_variance / precision
    if by_class:
        return Totals(indicators(measured.classes, k), total / precision, np.full(k, variance))
    return Totals(np.ones((rows, 1)), total.sum(keepdims=True) / precision, np.full(1, k * variance))


def _runs(measured: Measured, j: int, by_class: bool) -> Totals:
    """Return the counts of a column's runs, by class if the class is asked of."""
    table, runs = measured.run_counts[j], measured.runs[j][measured.cells(j)]
    k, r = table.shape
    if by_class:
        found = indicators(measured.classes * r + runs, k * r)
        return Totals(found, table.reshape(-1), np.full(k * r, measured.run_variance))
    return Totals(indicators(runs, r), table.sum(axis=0), np.full(r, k * measured.run_variance))


def _cells(measured: Measured, j: int) -> Totals:
    """Return the counts of a column's cells."""
    counts = measured.cell_counts[j]
    found = indicators(measured.cells(j), counts.size)
    return Totals(found, counts, np.full(counts.size, measured.cell_variance))


def _products(
    measured: Measured, places: list[int], asked: Sequence[CellFunctions], most: Sequence[int], by_class: bool
) -> list[Totals]:
    """Return the second moments of the columns' features, turned, clipped as they were measured."""
    d = measured.moments.dimension
    ends = np.cumsum([0, *(v.shape[1] for v in measured.moments.vectors)])
    turned, values = [], []
    for j, functions, kept in zip(places, asked, most, strict=True):
        own = directions(measured.moments.vectors[j], functions, measured.chain.columns[j].shares, kept)
        block = np.zeros((d, own.shape[1]))
        block[ends[j] : ends[j + 1]] = own
        turned.append(block)
        values.append((measured.moments.vectors[j] @ own)[measured.cells(j)])
    turned, values = _with_classes(measured, turned, values, int(ends[len(measured.names)]), by_class)
    turn, vectors = np.concatenate(turned, axis=1), np.concatenate(values, axis=1)
    rows, columns = _pairs([own.shape[1] for own in values], [_counted(measured, j) for j in places])
    products = vectors[:, rows] * vectors[:, columns] * measured.clipping[:, None]
    part = np.where(rows == columns, 1.0, 0.5)  # of the noise variance, off the diagonal
    if measured.by_class is None:
        return [Totals(products, _entries(measured.pooled, turn, rows, columns), part * measured.pooled_variance)]
    if not by_class:
        k = len(measured.by_class)
        summed_variance = k * measured.class_variance
        share = measured.pooled_variance / max(measured.pooled_variance + summed_variance, 1e-300)
        value = (1 - share) * measured.pooled + share * measured.by_class.sum(axis=0)
        variance = (1 - share) ** 2 * measured.pooled_variance + share**2 * summed_variance
        return [Totals(products, _entries(value, turn, rows, columns), part * variance)]
    found = [Totals(products, _entries(measured.pooled, turn, rows, columns), part * measured.pooled_variance)]
    for c, matrix in enumerate(measured.by_class):
        own = products * (measured.classes == c)[:, None]
        found.append(Totals(own, _entries(matrix, turn, rows, columns), part * measured.class_variance))
    return found


def _with_classes(
    measured: Measured, turned: list[np.ndarray], values: list[np.ndarray], start: int, by_class: bool
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Add the class's indicators, where moments have them; or their sum, which is the same for all rows."""
    k = measured.layout.n_classes
    if len(measured.moments.vectors) == len(measured.names):
        return turned, values
    own = np.eye(k) if by_class else np.full((k, 1), 1 / np.sqrt(k))
    block = np.zeros((measured.moments.dimension, own.shape[1]))
    block[start : start + k] = own
    return [*turned, block], [*values, (measured.moments.vectors[-1] @ own)[measured.classes]]


def _counted(measured: Measured, j: int) -> bool:
    """Whether counts say what products of a column with itself would."""
    return not measured.layout.features[j].numeric


def _pairs(sizes: list[int], counted: list[bool]) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of entries i ≤ j, without those inside columns of labels; classes come last, with no flag."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    alone = np.append(counted, np.ones(len(sizes) - len(counted), dtype=bool))[owner].astype(bool)
    rows, columns = np.triu_indices(owner.size)
    kept = (owner[rows] != owner[columns]) | ~alone[rows]
    return rows[kept], columns[kept]


def _entries(matrix: np.ndarray, turn: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return (turn.T @ matrix @ turn)[rows, columns]


def directions(vectors: np.ndarray, asked: CellFunctions, shares: np.ndarray, most: int) -> np.ndarray:
    """Return orthonormal directions of a column's entries, shape (q, r): first those nearest to what is asked.

    Args:
        vectors: entries of each cell, shape (c, q).
        asked: functions of the cells.
        shares: P(cell), shape (c,).
        most: of directions, beside those that are asked for; labels of few levels keep all.
    """
    q = vectors.shape[1]
    root = np.sqrt(np.maximum(shares, 0.0))[:, None]
    design = np.concatenate([np.ones((len(vectors), 1)), vectors], axis=1)
    wanted = []
    for function in asked:
        function = np.nan_to_num(function)
        found = np.linalg.lstsq(design * root, function * root[:, 0], rcond=1e-9)[0]
        wanted.append(found[1:])
    spread = np.maximum(shares, 0.0) @ vectors**2
    wanted += list(np.eye(q)[np.argsort(-spread, kind="stable")])
    basis: list[np.ndarray] = []
    for vector in wanted:
        if len(basis) >= min(q, max(most, len(asked))):
            break
        size = np.linalg.norm(vector)
        for _ in range(2):
            for other in basis:
                vector = vector - (vector @ other) * other
        norm = np.linalg.norm(vector)
        if norm > _TINY * max(size, 1e-300) and norm > 1e-12:
            basis.append(vector / norm)
    return np.array(basis).reshape(len(basis), q).T  # q is 0 where a column has no feature left
