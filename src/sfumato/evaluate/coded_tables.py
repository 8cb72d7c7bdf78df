"""Tables as columns of codes, read whole, which all scores are computed from; and as the features of classifiers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast, final

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from sfumato.columns.canonical import canonical
from sfumato.columns.cells import plain
from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import Categorical, LevelKind
from sfumato.columns.open import Open
from sfumato.columns.storage import has_text, text_of
from sfumato.desk.drafting import draft_schema
from sfumato.desk.validation import INSIDE, outside_marks
from sfumato.errors import ConfigError, DataError
from sfumato.io.sources import Source, open_source
from sfumato.lenses.weights import fractions
from sfumato.maths.streams import public_stream
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import readable_weight_kind
from sfumato.schema.set_columns import itemised

_MOST_LABELS = 10_000
_REST = "other"
_STATES = 1 << 32  # scikit-learn's random states are smaller
Encode = Callable[[TabularKind, np.ndarray], np.ndarray]


def closed_schema(schema: Schema, real: Source, synthetic: Source | None = None) -> Schema:
    """Return a schema of which every column is declared: the open ones by the real rows.

    A fit estimates the facts of such columns, and leaves out what names people; scores are not private anyway.

    Args:
        schema: what is known.
        real: the real rows.
        synthetic: the synthetic ones; of single rows an open column that they do not have is left out.

    Raises:
        ConfigError: an open column is no column of a table, or nothing is left to compare.
        DataError: the real rows cannot be read.
    """
    if not schema.open:
        return schema
    own = real.measured().names
    shared = own if synthetic is None else [name for name in synthetic.measured().names if name in own]
    drafted = draft_schema(real, exact=True, names_are_public=True).schema.columns
    columns = dict(schema.columns)
    for name, kind in schema.of_kind(Open).items():
        if name in own and (name in shared or schema.linked):
            columns[name] = _closed_kind(
                name, kind, drafted.get(name), real, schema.missing_of.get(name, schema.missing)
            )
        elif not schema.linked:
            del columns[name]
    if not any(name in columns for name in schema.released):
        raise ConfigError("Expected two tables that have a column in common, got none. Has each a header line?")
    sources = {name: source for name, source in schema.sources.items() if name in columns}
    return dataclasses.replace(schema, columns=columns, sources=sources, accept=(), questions=())


def not_compared(schema: Schema, sources: dict[str, Source]) -> dict[str, list[str]]:
    """Return the columns of each table that scores leave out, because the schema or the other table lacks them."""
    return {
        name: [column for column in source.measured().names if column not in schema.columns]
        for name, source in sources.items()
    }


def _closed_kind(name: str, kind: Open, drafted: object, source: Source, missing: Sequence[str]) -> TabularKind:
    """Return the kind of an open column of the real rows."""
    if kind.kind == "categorical" and not isinstance(drafted, LevelKind):
        return Categorical(categories=_labels(name, source, missing), other=_REST, nullable=True)
    if not isinstance(drafted, TabularKind):
        raise ConfigError(f"Expected a column of labels, numbers or dates to evaluate, got {name!r}. Declare its kind.")
    if kind.written is not None and hasattr(drafted, "written"):
        return dataclasses.replace(drafted, written=kind.written)  # type: ignore[type-var] - a kind of numbers
    return drafted


def _labels(name: str, source: Source, missing: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a column, at most ten thousand of them, sorted."""
    labels: set[str | None] = set()
    for chunk in source.chunks([name]):
        column = chunk.columns[name]
        for cells in [] if isinstance(column, np.ndarray) else column.chunks:
            values = plain(cells)
            if has_text(values.type):
                labels.update(canonical(text_of(values.unique())).to_pylist())
    known = sorted(label for label in labels if label is not None and label not in (*missing, _REST))
    return tuple(known[:_MOST_LABELS]) or ("no label",)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedTable:
    """Columns of one length n in memory; the repr shows their names only.

    Args:
        columns: column name to codes, shape (n,).
        n_rows: n, at least 1.
        label: what it is called in messages.
        outside: of the columns with cells outside the schema, `outside_marks`, shape (n,).
        weights: ÷ their bound, shape (n,); None where every row counts once.
    """

    columns: Mapping[str, np.ndarray]
    n_rows: int
    label: str = "the table"
    outside: Mapping[str, np.ndarray] = field(default_factory=dict)
    weights: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"CodedTable(columns={list(self.columns)!r})"

    def keep(self, rows: np.ndarray) -> CodedTable:
        """The table of the rows where `rows`, shape (n,), is true; or of rows by their places."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        outside = {name: marks[rows] for name, marks in self.outside.items()}
        n_rows = int(np.count_nonzero(rows)) if rows.dtype == bool else rows.size
        weights = None if self.weights is None else self.weights[rows]
        return CodedTable(columns=columns, n_rows=n_rows, label=self.label, outside=outside, weights=weights)

    def population(self, seed: int) -> CodedTable:
        """As many rows, each as often as its weight says: a systematic draw in random order; itself without weights."""
        if self.weights is None:
            return self
        rng = public_stream(seed)
        order = rng.permutation(self.n_rows)
        ends = np.cumsum(self.weights[order])
        points = (np.arange(self.n_rows) + rng.random()) * (ends[-1] / self.n_rows)
        places = order[np.minimum(np.searchsorted(ends, points, side="right"), self.n_rows - 1)]
        return replace(self.keep(places), weights=None)

    @property
    def total(self) -> float:
        """The number of rows, or the sum of their weights."""
        return self.n_rows if self.weights is None else float(self.weights.sum())

    def counts(self, cells: np.ndarray, size: int, start: int = 0) -> np.ndarray:
        """Rows, or their weights, in each cell, shape (size,): of the rows from `start` on, whose cells these are."""
        weights = None if self.weights is None else self.weights[start : start + cells.size]
        return np.bincount(cells, weights, minlength=size)

    def shares(self, cells: np.ndarray, size: int) -> np.ndarray:
        """Parts of all rows, or of their weights, in each cell, shape (size,)."""
        return self.counts(cells, size) / self.total

    @property
    def outside_shares(self) -> dict[str, float]:
        """Column name to the share of its cells that are outside the schema, where there are any. NOT private."""
        return {name: float(np.mean(marks != INSIDE)) for name, marks in self.outside.items()}


def random_state(seed: int) -> int:
    """The seed as scikit-learn takes it, in [0, 2^32)."""
    return seed % _STATES


def table_kinds(schema: Schema) -> dict[str, TabularKind]:
    """Name to kind of the columns that are compared: the released ones, of sets beside others each item, and words.

    Raises:
        ConfigError: one of them holds images, or sets alone.
    """
    released = itemised(schema)
    kinds = {name: kind for name, kind in released.items() if isinstance(kind, TabularKind)}
    for name in released:
        if name not in kinds:
            what = released[name].holds.partition(" of ")[0]
            raise ConfigError(f"Expected a table's schema to evaluate, got {what} in column {name!r}.")
    return kinds


def read_codes(data: object, schema: Schema, encode: Encode = lambda _, codes: codes) -> CodedTable:
    """Read the released columns of a schema, as their kinds code them.

    Args:
        data: a source, or anything else that `open_source` reads.
        schema: which columns, and their kinds. A cell outside its domain is coded into it, and marked.
        encode: applied to the codes of every chunk, e.g. to keep less of them.

    Where the schema has a weight and the source its column, rows count by their weights.

    Raises:
        SchemaError: a column is not in the source.
        ConfigError: the schema has columns of images or sets.
        DataError: the source cannot be read, or has no rows, or none that counts.
    """
    source = open_source(data, csv=schema.reader.csv)
    kinds, weighing, weights = table_kinds(schema), _weighing(source, schema), list[np.ndarray]()
    parts: dict[str, list[np.ndarray]] = {name: [] for name in kinds}
    outside: dict[str, list[np.ndarray]] = {}
    n_rows = 0
    tabular, sets, words = schema.of_kind(TabularKind), schema.set_columns, schema.word_columns
    missing = {name: schema.missing_in(source, name) for name in (*schema.released, *weighing)}
    for chunk in source.under(schema.columns).chunks([*schema.released, *weighing]):
        for name, kind in weighing.items():
            weights.append(fractions(kind.code(chunk.columns[name], missing=missing[name])))
        for name, column in sets.items():
            cells = column.truth_values(column.kind.code(chunk.columns[name], missing=missing[name]))
            for item, codes in cells.items():
                parts[item].append(encode(kinds[item], codes))
        for name, kind in tabular.items():
            column = cast("pa.ChunkedArray", chunk.columns[name])
            codes = kind.code(column, missing=missing[name])
            for own, cells in (words[name].split(codes) if name in words else {name: codes}).items():
                parts[own].append(encode(kinds[own], cells))
            marks = outside_marks(kind, column, missing=missing[name])
            if marks.any() or name in outside:  # a column without such cells needs no marks
                outside.setdefault(name, [np.zeros(n_rows, dtype=np.int8)]).append(marks)
        n_rows += chunk.n_rows
    if not n_rows:
        raise DataError(f"Expected rows to evaluate in {source.label}, got none.")
    # popped one by one: a column is never held twice beside the others
    columns = {name: np.concatenate(parts.pop(name)) for name in kinds}
    marked = {name: np.concatenate(some) for name, some in outside.items()}
    whole = np.concatenate(weights) if weighing else None
    if whole is not None and not whole.sum() > 0:
        raise DataError(f"Expected weights above 0 in column {next(iter(weighing))!r} of {source.label}, got none.")
    return CodedTable(columns=columns, n_rows=n_rows, label=source.label, outside=marked, weights=whole)


def _weighing(source: Source, schema: Schema) -> dict[str, TabularKind]:
    """The column of weights, if the source has one; samples have none, and count once."""
    if schema.weight is None or schema.weight.column not in source.storage:
        return {}
    return {schema.weight.column: readable_weight_kind(schema)}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureMap:
    """A map from coded tables to feature matrices, fixed by a training table.

    A level column becomes one-hot over the schema's levels, its missing level included; zeros for no label. A numeric
    column is standardised by the training table's mean and deviation; a missing number becomes
    that mean, and if the column is nullable a further feature says so.

    Args:
        kinds: the feature columns, in order.
        moments: of each numeric column's codes in the training table, the mean and the standard deviation (÷ n), 1
            where it would be 0.
    """

    kinds: Mapping[str, TabularKind]
    moments: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, table: CodedTable, kinds: Mapping[str, TabularKind]) -> FeatureMap:
        """The map that a training table fixes."""
        moments = {name: _mean_and_deviation(table.columns[name]) for name, kind in kinds.items() if kind.is_numeric}
        return cls(kinds=kinds, moments=moments)

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(kind.width for kind in self.kinds.values())

    def matrix(self, table: CodedTable) -> sp.csr_matrix:
        """Features of the rows of a table, shape (n, width), float64."""
        blocks = list(self._blocks(table))
        places, values = (np.stack(side, axis=1).ravel() for side in zip(*blocks, strict=True))
        starts = np.arange(table.n_rows + 1) * len(blocks)
        matrix = sp.csr_matrix((values, places, starts), shape=(table.n_rows, self.width))
        matrix.eliminate_zeros()
        return matrix

    def _blocks(self, table: CodedTable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (feature number, value) of one possibly nonzero feature per row at a time."""
        start = 0
        ones = np.ones(table.n_rows)
        for name, kind in self.kinds.items():
            codes = table.columns[name]
            if not kind.is_numeric:
                yield start + np.minimum(codes, kind.width - 1).astype(np.int32), ones * (codes < kind.width)
            else:
                missing = np.isnan(codes)
                mean, deviation = self.moments[name]
                score = (codes - mean) / deviation
                place = np.full(table.n_rows, start, dtype=np.int32)
                yield place, np.where(missing, 0.0, score)
                if kind.nullable:
                    yield place + 1, missing.astype(np.float64)
            start += kind.width


def _mean_and_deviation(codes: np.ndarray) -> tuple[float, float]:
    known = codes[~np.isnan(codes)]
    if not len(known) or known.min() == known.max():
        # exactly: rounding can give a constant column a mean beside it, and a deviation above 0
        return (float(known[0]) if len(known) else 0.0), 1.0
    # of values far below the bounds the square of the deviation may underflow
    return float(known.mean()), float(known.std()) or float(np.ptp(known))
