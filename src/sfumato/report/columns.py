"""Columns and pairs of columns as shares of cells, and items of sets: what the page's small pictures show.

With real rows or sets the figures are NOT private; of synthetic ones alone they are functions of the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.columns.kind import TabularKind
from sfumato.evaluate.coded_tables import CodedTable, table_kinds
from sfumato.evaluate.counting_queries import counting_query_errors, read_sets
from sfumato.evaluate.fidelity import BINS, column_sets, n_bins, set_distance
from sfumato.evaluate.fidelity import distance as total_variation
from sfumato.models.sets import SetEncoder
from sfumato.schema.schema import Schema

MOST_BINS = 21
"""Columns of more levels show the commonest, and the rest together."""

MOST_PAIRS = 100
PICTURED_PAIRS = 9
Ends = Callable[[str, TabularKind, np.ndarray, int], tuple[np.ndarray, np.ndarray] | None]
"""From a column, its kind, the map from bins to shown cells and their number to both ends of the cells' intervals."""
_OTHERS = "all others"
_OUTSIDE = "not in the schema"
MOST_ITEMS = 20
MOST_LENGTHS = 21
_FREQUENT, _FEWEST_ITEMS = 100, 3


@dataclass(frozen=True, slots=True)
class Bin:
    """A cell of a column: its label, and the share of rows in it (`real` is None without real rows).

    `low` and `high` are the ends of the interval of the records' own share; None if there is none.
    """

    label: str
    synthetic: float
    real: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ColumnFigure:
    """A column: its kind in a word, the total variation to the real rows if there are any, and its cells."""

    name: str
    kind: str
    distance: float | None
    bins: tuple[Bin, ...]

    @property
    def noise(self) -> str:
        """A typical share of a cell, and half its 95 % interval, in words; empty where there are no intervals."""
        # an interval that begins at 0 is cut there
        ends = [(b, b.high, b.low) for b in self.bins if b.high is not None and b.low is not None]
        halves = [high - b.synthetic if low <= 0 else (high - low) / 2 for b, high, low in ends]
        if not halves:
            return ""
        share, half = 100 / len(self.bins), 100 * max(float(np.median(halves)), 0.0)
        return f"{share:.2g} % ± {half:.2g}" + (": noise is larger than a share" if half > share else "")


@dataclass(frozen=True, slots=True)
class PairFigure:
    """A pair of columns: total variation, and per cell by how much a share is larger than another (None: not drawn).

    The shares are synthetic and real ones, or synthetic ones and those of columns that are independent.
    """

    names: tuple[str, str]
    distance: float
    labels: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    differences: np.ndarray | None = None

    @property
    def strongest(self) -> str:
        """The cell of the largest difference, in words."""
        if self.labels is None or self.differences is None:
            return ""
        row, column = np.unravel_index(np.argmax(np.abs(self.differences)), self.differences.shape)
        one, other = self.labels[0][row], self.labels[1][column]
        return f"strongest: {one} with {other}, {100 * self.differences[row, column]:+.1f} percentage points"


def column_figures(
    synthetic: CodedTable, real: CodedTable | None, schema: Schema, ends: Ends | None = None
) -> list[ColumnFigure]:
    """Return every released column, worst first if there are real rows, else in the schema's order."""
    figures = []
    for name, kind in table_kinds(schema).items():
        tables = [synthetic] if real is None else [synthetic, real]
        merge, labels = _shown_bins(kind, [table.columns[name] for table in tables])
        shares = [t.shares(merge[t.columns[name]], len(labels)) for t in tables]
        known = None if ends is None else ends(name, kind, merge, len(labels))
        bins = share_bins(labels, shares)
        if known is not None:
            ends_of = zip(bins, *(some.tolist() for some in known), strict=True)
            bins = tuple(b if np.isnan(low) else replace(b, low=low, high=high) for b, low, high in ends_of)
        distance = None if real is None else set_distance(real, synthetic, [name], schema)
        figures.append(ColumnFigure(name, kind.name, distance, bins))
    return figures if real is None else sorted(figures, key=lambda f: -(f.distance or 0.0))


def share_bins(labels: Sequence[str], shares: Sequence[np.ndarray]) -> tuple[Bin, ...]:
    """Return the bins of shares of synthetic rows, and of real ones if these are given too, shape (bins,) each."""
    return tuple(Bin(label, *map(float, values)) for label, *values in zip(labels, *shares, strict=True))


def pair_figures(synthetic: CodedTable, real: CodedTable, schema: Schema) -> tuple[list[PairFigure], int]:
    """Return the worst pairs of columns, the first few with pictures, and how many pairs were compared."""
    kinds = table_kinds(schema)
    names = list(kinds)
    if len(names) < 2:
        return [], 0
    sets = [(names[i], names[j]) for i, j in column_sets(len(names), 2)]
    scored = sorted(((set_distance(real, synthetic, pair, schema), pair) for pair in sets), key=lambda s: -s[0])
    figures = []
    for rank, (distance, pair) in enumerate(scored[:MOST_PAIRS]):
        if rank >= PICTURED_PAIRS:
            figures.append(PairFigure(pair, distance))
            continue
        merged = [_shown_bins(kinds[name], [t.columns[name] for t in (synthetic, real)]) for name in pair]
        shares = [_joint(table, pair, merged) for table in (synthetic, real)]
        figures.append(PairFigure(pair, distance, (merged[0][1], merged[1][1]), shares[0] - shares[1]))
    return figures, len(scored)


def joint_figures(synthetic: CodedTable, schema: Schema, pairs: Sequence[tuple[str, str]]) -> list[PairFigure]:
    """Return how much more often two values come together than if the columns were independent, for some pairs."""
    kinds, figures = table_kinds(schema), []
    for pair in pairs:
        merged = [_shown_bins(kinds[name], [synthetic.columns[name]]) for name in pair]
        shares = _joint(synthetic, pair, merged)
        apart = shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))
        figures.append(PairFigure(pair, float(np.abs(apart).sum()) / 2, (merged[0][1], merged[1][1]), apart))
    return figures


def _joint(table: CodedTable, pair: Sequence[str], merged: Sequence[tuple[np.ndarray, tuple[str, ...]]]) -> np.ndarray:
    (first, rows), (second, columns) = merged
    cell = first[table.columns[pair[0]]] * len(columns) + second[table.columns[pair[1]]]
    return table.shares(cell, len(rows) * len(columns)).reshape(len(rows), len(columns))


def _shown_bins(kind: TabularKind, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the map from bins to shown bins, shape (n_bins,), and the labels of these."""
    # that of missing cells only where there may be some
    labels, size = [*kind.parts(BINS), *(["missing"] if kind.nullable else [])], n_bins(kind)
    outside = size - 1
    merge = np.full(size, len(labels) - 1)
    if kind.is_numeric:
        places = [i for i, label in enumerate(labels) if label]  # narrow bins may hold no value
        labels = [labels[i] for i in places]
        merge[:] = np.searchsorted(places, np.arange(size), side="right") - 1
    elif len(labels) <= MOST_BINS:
        merge[: len(labels)] = np.arange(len(labels))
    else:
        counts = np.sum([np.bincount(column, minlength=size) / len(column) for column in columns], axis=0)
        commonest = np.sort(np.argsort(-counts[: len(labels)], kind="stable")[: MOST_BINS - 1])
        labels = [*(labels[i] for i in commonest), _OTHERS]
        merge[:] = len(commonest)
        merge[commonest] = np.arange(len(commonest))
    if any((column == outside).any() for column in columns):
        merge[outside] = len(labels)
        labels = [*labels, _OUTSIDE]
    return merge, tuple(labels)


def set_content(synthetic: object, real: object, *, schema: Schema, seed: int) -> dict[str, Any]:
    """Return the page's content on sets: figures of the one column, and errors of counting queries beside real sets.

    Raises:
        SchemaError, DataError: the real sets cannot be read under the schema.
    """
    encoder = SetEncoder.of(schema)
    matrices = [read_sets(synthetic, schema, encoder)]
    if real is not None:
        matrices.append(read_sets(real, schema, encoder))
    figures = [_lengths(matrices, encoder), _items(matrices, encoder)]
    content: dict[str, Any] = {"columns": sorted(figures, key=lambda figure: -(figure.distance or 0.0))}
    if real is not None and encoder.dimension >= _FEWEST_ITEMS:
        frequent = min(_FREQUENT, encoder.dimension)
        content["frequent_items"] = frequent
        content["queries"] = counting_query_errors(real, synthetic, schema=schema, n_frequent=frequent, seed=seed)
    return content


def _lengths(matrices: list[sparse.csr_array], encoder: SetEncoder) -> ColumnFigure:
    """How many items a set holds: total variation, and shares of sets."""
    longest = min(encoder.kind.max_length, MOST_LENGTHS - 1)
    lengths = [np.minimum(np.diff(m.indptr), longest) for m in matrices]
    shares = [np.bincount(some, minlength=longest + 1) / max(1, len(some)) for some in lengths]
    last = f"{longest} or more" if longest < encoder.kind.max_length else f"{longest}"
    return _figure(f"{encoder.name}: how many items", "lengths", [*map(str, range(longest)), last], shares)


def _items(matrices: list[sparse.csr_array], encoder: SetEncoder) -> ColumnFigure:
    """Which items the sets' places hold: total variation over all items, pictured for the commonest."""
    totals = [np.asarray(m.sum(axis=0), dtype=np.float64).ravel() for m in matrices]
    shares = [total / max(1.0, float(total.sum())) for total in totals]
    commonest = np.sort(np.argsort(-np.sum(shares, axis=0), kind="stable")[:MOST_ITEMS])
    known = encoder.kind.labels
    labels = [str(i) if known is None else known[i] for i in commonest.tolist()]
    others = len(commonest) < encoder.dimension
    rest = [max(0.0, float(share.sum() - share[commonest].sum())) for share in shares]
    shown = [
        np.append(share[commonest], left) if others else share[commonest]
        for share, left in zip(shares, rest, strict=True)
    ]
    empty = [not total.any() for total in totals]
    distance = None
    if len(shares) == 2:  # nothing is as far as can be from something
        distance = float(empty[0] != empty[1]) if any(empty) else total_variation(*shares)
    figure = _figure(f"{encoder.name}: which items", "items", [*labels, *(["all others"] if others else [])], shown)
    return replace(figure, distance=distance)


def _figure(name: str, kind: str, labels: list[str], shares: list[np.ndarray]) -> ColumnFigure:
    """Of shares of synthetic sets, and of real ones if there are any."""
    distance = None if len(shares) == 1 else total_variation(*shares)
    return ColumnFigure(name, kind, distance, share_bins(labels, shares))
