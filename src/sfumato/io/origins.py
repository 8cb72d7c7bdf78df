"""From cells to records: where the type of a column comes from, and what of a cell that leaves to be read.

A record is a function of its own cells only if no other cell had a part in how they are stored. Three origins of a
column's type say whether one could:

    text       every cell is its own text: CSV, JSON lines, spreadsheets, SQLite
    declared   the container says the type before there is a cell: Parquet, Arrow, polars, nullable pandas types
    inferred   the type follows from all cells together: NumPy's numbers in pandas frames, and files that pandas wrote

Of an inferred type one missing cell turns whole numbers of 64 bits into floats, and those of 2^53 and more into others.
Such columns are therefore read as the floats they would have become, whatever they are stored as: the cells of two
neighbours come out alike. Proof: docs/proofs/cells.md.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.facts import LARGEST_EXACT

INFERRED_DTYPES = frozenset({"int64", "uint64", "float64", "object"})
"""pandas' names of types that follow from all cells of a column; `Int64`, `string` and Arrow's are declared."""


def pandas_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that pandas stored in a type it had inferred, by the metadata it writes.

    Args:
        schema: of a file or a table.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"id": [1, 2], "code": pd.array([1, None], "Int64")})
        >>> sorted(pandas_columns(pa.Schema.from_pandas(frame)))
        ['id']
    """
    written = (schema.metadata or {}).get(b"pandas")
    entries: Any = None
    if written is not None:
        try:
            entries = json.loads(written)["columns"]
        except (ValueError, LookupError, TypeError, RecursionError):  # a stranger may have written it
            entries = None
    if not isinstance(entries, list):
        return frozenset()
    named = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
    return frozenset(entry["name"] for entry in named if entry.get("numpy_type") in INFERRED_DTYPES)


def as_inferred(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return cells of an inferred type as they would be beside a missing one: whole numbers of 64 bits as floats.

    Where all are below 2^53 in size, both say the same, and the cells stay as they are.

    Privacy: none (a function of each cell; which type they come in says nothing that their values do not).

    Args:
        column: n cells of any type.
    """
    if types.is_dictionary(column.type):
        if not _is_wide(column.type.value_type) or not any(_is_large(part.dictionary) for part in column.chunks):
            return column
        return as_inferred(pa.chunked_array([part.dictionary_decode() for part in column.chunks]))
    if not _is_wide(column.type) or not any(map(_is_large, column.chunks)):
        return column
    return column.cast(pa.float64(), safe=False)


def _is_wide(kind: pa.DataType) -> bool:
    return types.is_int64(kind) or types.is_uint64(kind)


def _is_large(numbers: pa.Array) -> bool:
    span = pc.min_max(numbers).as_py()
    return span["max"] is not None and max(abs(span["min"]), abs(span["max"])) > LARGEST_EXACT
