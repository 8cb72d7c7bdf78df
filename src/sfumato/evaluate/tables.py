"""Tables as columns of codes, read whole: what all scores are computed from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast, final

import numpy as np
import pyarrow as pa

from sfumato.columns.coding import code_column
from sfumato.columns.kinds import LevelKind, NumericKind
from sfumato.columns.set_kind import ItemSet
from sfumato.errors import ConfigError, DataError
from sfumato.io.sources import Source
from sfumato.records.outside import INSIDE, outside_marks
from sfumato.schema.schema import Schema

_STATES = 1 << 32  # scikit-learn's random states are smaller
Encode = Callable[[LevelKind | NumericKind, np.ndarray], np.ndarray]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedTable:
    """Columns of one length n in memory; the repr shows their names only.

    Args:
        columns: column name to codes, shape (n,).
        n_rows: n, at least 1.
        label: what it is called in messages.
        outside: of the columns with cells outside the schema, `outside_marks`, shape (n,).
    """

    columns: Mapping[str, np.ndarray]
    n_rows: int
    label: str = "the table"
    outside: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"CodedTable(columns={list(self.columns)!r})"

    def keep(self, rows: np.ndarray) -> CodedTable:
        """The table of the rows where `rows`, shape (n,), is true."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        outside = {name: marks[rows] for name, marks in self.outside.items()}
        return CodedTable(columns=columns, n_rows=int(np.count_nonzero(rows)), label=self.label, outside=outside)

    @property
    def outside_shares(self) -> dict[str, float]:
        """Column name to the share of its cells that are outside the schema, where there are any. NOT private."""
        return {name: float(np.mean(marks != INSIDE)) for name, marks in self.outside.items()}


def random_state(seed: int) -> int:
    """Return the seed as scikit-learn takes it, in [0, 2^32)."""
    return seed % _STATES


def table_kinds(schema: Schema) -> dict[str, LevelKind | NumericKind]:
    """Name to kind of the columns that are compared: the released ones.

    Raises:
        ConfigError: one of them holds images or sets.
    """
    kinds = {}
    for name in schema.released:
        kind = schema.columns[name]
        if not isinstance(kind, LevelKind | NumericKind):
            what = "sets" if isinstance(kind, ItemSet) else "images"
            raise ConfigError(f"Expected a table's schema to evaluate, got {what} in column {name!r}.")
        kinds[name] = kind
    return kinds


def read_codes(source: Source, schema: Schema, encode: Encode | None = None) -> CodedTable:
    """Read the released columns of a schema from a source, as `code_column` codes them.

    Args:
        source: where to read.
        schema: which columns, and their kinds. A cell outside its domain is coded into it, and marked.
        encode: applied to the codes of every chunk, e.g. to keep less of them.

    Raises:
        SchemaError: a column is not in the source.
        ConfigError: the schema has columns of images or sets.
        DataError: the source cannot be read, or has no rows.
    """
    kinds = table_kinds(schema)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in kinds}
    outside: dict[str, list[np.ndarray]] = {}
    n_rows = 0
    for chunk in source.chunks(list(kinds)):
        for name, kind in kinds.items():
            column = cast("pa.ChunkedArray", chunk.columns[name])
            codes = code_column(kind, column, missing=schema.missing)
            parts[name].append(codes if encode is None else encode(kind, codes))
            marks = outside_marks(kind, column, missing=schema.missing)
            if marks.any() or name in outside:  # a column without such cells needs no marks
                outside.setdefault(name, [np.zeros(n_rows, dtype=np.int8)]).append(marks)
        n_rows += chunk.n_rows
    if not n_rows:
        raise DataError(f"Expected rows to evaluate in {source.label}, got none.")
    # popped one by one: a column is never held twice beside the others
    columns = {name: np.concatenate(parts.pop(name)) for name in kinds}
    marked = {name: np.concatenate(some) for name, some in outside.items()}
    return CodedTable(columns=columns, n_rows=n_rows, label=source.label, outside=marked)
