"""Tables as columns of codes, read whole: what all scores are computed from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast, final

import numpy as np
import pyarrow as pa

from sfumato.data.coding import code_column
from sfumato.data.kinds import LevelKind, NumericKind
from sfumato.data.schema import Schema
from sfumato.data.set_kind import ItemSet
from sfumato.data.sources import Source
from sfumato.errors import ConfigError, DataError

Encode = Callable[[LevelKind | NumericKind, np.ndarray], np.ndarray]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedTable:
    """Columns of one length n in memory; the repr shows their names only.

    Args:
        columns: column name to codes, shape (n,).
        n_rows: n, at least 1.
    """

    columns: Mapping[str, np.ndarray]
    n_rows: int

    def __repr__(self) -> str:
        return f"CodedTable(columns={list(self.columns)!r})"

    def keep(self, rows: np.ndarray) -> CodedTable:
        """The table of the rows where `rows`, shape (n,), is true."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return CodedTable(columns=columns, n_rows=int(np.count_nonzero(rows)))


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
        schema: which columns, and their kinds. A cell outside its domain is coded into it.
        encode: applied to the codes of every chunk, e.g. to keep less of them.

    Raises:
        SchemaError: a column is not in the source.
        ConfigError: the schema has columns of images or sets.
        DataError: the source cannot be read, or has no rows.
    """
    kinds = table_kinds(schema)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in kinds}
    n_rows = 0
    for chunk in source.chunks(list(kinds)):
        n_rows += chunk.n_rows
        for name, kind in kinds.items():
            column = cast("pa.ChunkedArray", chunk.columns[name])
            codes = code_column(kind, column, missing=schema.missing)
            parts[name].append(codes if encode is None else encode(kind, codes))
    if not n_rows:
        raise DataError(f"Expected rows to evaluate in {source.label}, got none.")
    # popped one by one: a column is never held twice beside the others
    return CodedTable(columns={name: np.concatenate(parts.pop(name)) for name in kinds}, n_rows=n_rows)
