"""Whether numbers of linked rows have levels, units that differ by more than their rows, and lie around these.

Rows that have nothing to do with each other make means of a law that follows from the rows' own: it is simulated. What
the released law of units' means spreads beyond that, as a part of what it would if all rows of a unit were alike, is
about the intraclass correlation (Fisher 1925). Where it is small, a unit's mean says next to nothing that its rows do
not, and rows drawn given it would be made alike by it: the columns of the history are left idle.

Spreads are those of ranks among the rows, as what noise puts far out would be most of a variance.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.lenses.date_columns import present_shares
from sfumato.maths.constants import LEVELS
from sfumato.maths.streams import public_stream
from sfumato.records.histories import off_lines
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.linked import LinkedTables


def without_levels(
    tables: LinkedTables, columns: Sequence[ColumnGrid], shares: Sequence[np.ndarray], entry: float
) -> frozenset[str]:
    """The numbers whose histories say nothing, or less than their noise takes away.

    Args:
        tables: of linked rows.
        columns: of units.
        shares: P(cell) of each, released.
        entry: noise of the mean product of two features, by which a level is known.
    """
    least, most = LEVELS.least_alike + LEVELS.alike_of_noise * entry, LEVELS.most_alike + LEVELS.most_of_noise * entry
    cells = {column.name: (column, law) for column, law in zip(columns, shares, strict=True)}
    return frozenset(
        name
        for name, own in tables.histories.items()
        if not least <= alike(tables, cells[tables.count], cells[name], cells[own.level]) <= most
    )


def alike(
    tables: LinkedTables,
    number: tuple[ColumnGrid, np.ndarray],
    rows: tuple[ColumnGrid, np.ndarray],
    means: tuple[ColumnGrid, np.ndarray],
) -> float:
    """How much alike the rows of a unit are, 0 as if drawn by themselves, 1 if all are the same; NaN if not told.

    Args:
        tables: of linked rows.
        number: the column of units' numbers of rows, and P(cell).
        rows: a column of first rows.
        means: that of units' means.
    """
    values, law = _middles(rows[0]), present_shares(*rows)
    sizes = np.rint(_middles(number[0]) * (tables.max_rows - tables.fewest)).astype(np.int64) + tables.fewest
    of_sizes = np.where(sizes > 0, present_shares(*number), 0.0)
    if not (law.sum() > 0 and of_sizes.sum() > 0 and present_shares(*means).sum() > 0):
        return float("nan")
    ranks = np.cumsum(law) - law / 2
    rng = public_stream(LEVELS.seed)
    k = rng.choice(sizes, LEVELS.simulated, p=of_sizes / of_sizes.sum())
    sample = values[rng.choice(values.size, int(k.sum()), p=law / law.sum())]
    apart = np.add.reduceat(sample, np.cumsum(k) - k) / k
    of_means = np.interp(_middles(means[0]), values, ranks)
    spreads = [
        _variance(ranks, law),
        _variance(np.interp(apart, values, ranks), np.ones(apart.size)),
        _variance(of_means, present_shares(*means)),
    ]
    whole = spreads[0] - spreads[1]
    # of means that spread as rows do, such as those of a number that is mostly 0, ranks do not tell
    return (spreads[2] - spreads[1]) / whole if whole > LEVELS.least_told * spreads[0] else float("nan")


def without_offsets(
    tables: LinkedTables, columns: Sequence[ColumnGrid], shares: Sequence[np.ndarray]
) -> frozenset[str]:
    """The numbers whose law is not that of a line and an offset from it, such as those that are mostly 0.

    Args:
        tables: of linked rows.
        columns: of steps.
        shares: P(cell) of each, released.
    """
    cells = {column.name: (column, law) for column, law in zip(columns, shares, strict=True)}
    return frozenset(name for name in tables.histories if _apart(tables, cells, name) > LEVELS.most_apart)


def _apart(tables: LinkedTables, cells: Mapping[str, tuple[ColumnGrid, np.ndarray]], name: str) -> float:
    """The part of a number's law that lies elsewhere if lines and offsets have nothing to do with each other."""
    own, rng, n = tables.histories[name], public_stream(LEVELS.seed), LEVELS.simulated
    parts = [cells[part] for part in (tables.count, own.line, own.offset, name)]
    laws = [present_shares(*part) for part in parts]
    if not all(law.sum() > 0 for law in laws):
        return 1.0
    codes = [
        _middles(column)[rng.choice(law.size, n, p=law / law.sum())]
        for (column, _), law in zip(parts[:3], laws[:3], strict=True)
    ]
    sizes = np.rint(codes[0] * (tables.max_rows - 2)).astype(np.int64) + 2
    together = off_lines(codes[2], codes[1], sizes - rng.integers(2, sizes + 1) + 1)
    column, law = parts[3][0], laws[3] / laws[3].sum()
    simulated = np.bincount(column.cells(together), minlength=column.n_cells)[: law.size] / n
    both = (law + simulated) / 2
    runs = np.minimum(((np.cumsum(both) - both / 2) * LEVELS.runs).astype(np.int64), LEVELS.runs - 1)
    return float(np.abs(np.bincount(runs, law - simulated)).sum() / 2)


def _middles(column: ColumnGrid) -> np.ndarray:
    """The codes of the middles of cells that hold numbers."""
    assert column.edges is not None
    assert column.steps is not None
    return (column.edges[:-1] + column.edges[1:] - 1) / 2 / max(column.steps.last, 1)


def _variance(values: np.ndarray, weights: np.ndarray) -> float:
    mean = np.average(values, weights=weights)
    return float(np.average((values - mean) ** 2, weights=weights))
