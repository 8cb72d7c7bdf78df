"""The total map between a stored column and its codes in a public domain.

Any cell of any Arrow type gets a code, never an exception: a value outside the domain is clamped
or goes to `other`, text that is no number counts as missing, and a missing cell of a column that
is not nullable gets a public stand-in. What a cell becomes depends on that cell and on public
facts alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import total
from sfumato.columns.dates import code_dates, decode_dates
from sfumato.columns.kinds import (
    ColumnKind,
    Continuous,
    Integer,
    LevelKind,
    NumericKind,
    level_labels,
    n_levels,
)
from sfumato.columns.levels import code_levels, decode_levels, missing_code
from sfumato.columns.levels import storage_fault as level_storage_fault
from sfumato.columns.numbers import code_continuous, code_integer, decode_continuous, decode_whole
from sfumato.columns.set_codes import set_storage_fault
from sfumato.columns.set_kind import ItemSet
from sfumato.columns.storage import (
    numeric_storage_fault,
    store_continuous,
    store_datetime,
    store_integer,
)
from sfumato.errors import ConfigError, SchemaError

__all__ = [
    "check_storage",
    "code_column",
    "decode_column",
    "level_labels",
    "n_levels",
]


def code_column(kind: ColumnKind, column: pa.Array | pa.ChunkedArray, *, missing: Sequence[str]) -> np.ndarray:
    """Return the codes of a column.

    Privacy: none (pure function); row i of the result depends on cell i alone.

    Args:
        kind: the declared kind of the column; any but image, set and identifier.
        column: n cells of any Arrow type.
        missing: text that stands for no value where the column is stored as text.

    Returns:
        Shape (n,). Level kinds: int32 codes in [0, n_levels(kind)). Numeric kinds: float64 in
        [0, 1], the position between the bounds after rounding to the resolution; NaN for a missing
        cell of a nullable column.

    Raises:
        ConfigError: the kind has no codes.
    """
    if not isinstance(kind, LevelKind | NumericKind):
        raise ConfigError(_not_coded(kind))
    if isinstance(column, pa.ChunkedArray):
        parts = [_code_totally(kind, chunk, missing) for chunk in column.chunks]
        return np.concatenate(parts) if parts else _missing_codes(kind, 0)
    return _code_totally(kind, column, missing)


def decode_column(kind: ColumnKind, codes: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return the values of codes as an array of exactly the storage type.

    The inverse of `code_column` for values of the domain at the declared resolution. Codes outside
    the domain are clamped. Text storage gets integers as `17`, continuous values with the decimals
    of their resolution, booleans as `true` and `false`, and dates by their `format` or ISO 8601.

    Args:
        kind: the declared kind of the column; any but image, set and identifier.
        codes: shape (n,), as `code_column` returns.
        storage: a type that `check_storage` accepts.

    Raises:
        ConfigError: the kind has no codes.
    """
    if isinstance(kind, LevelKind):
        return decode_levels(kind, codes, storage)
    if isinstance(kind, NumericKind):
        return _decode_numbers(kind, np.asarray(codes, dtype=np.float64), storage)
    raise ConfigError(_not_coded(kind))


def check_storage(name: str, kind: ColumnKind, storage: pa.DataType) -> None:
    """Refuse a kind whose values cannot be stored in a column's type; reads no cell.

    Raises:
        SchemaError: `decode_column` could not keep the type; the message says what to declare.
    """
    fault = None
    if isinstance(kind, LevelKind):
        fault = level_storage_fault(kind, storage)
    elif isinstance(kind, NumericKind):
        fault = numeric_storage_fault(kind, storage)
    elif isinstance(kind, ItemSet):
        fault = set_storage_fault(kind, storage)
    if fault is not None:
        raise SchemaError(f"Column {name!r}: {fault}")


def _not_coded(kind: object) -> str:
    name = type(kind).__name__
    return f"Expected a kind that is coded cell by cell, got {name}. Leave such a column out."


def _code_totally(kind: LevelKind | NumericKind, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Code cells; those that Arrow refuses are missing."""
    return total(lambda part: _code(kind, part, missing), cells, lambda n: _missing_codes(kind, n))


def _code(kind: LevelKind | NumericKind, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    if isinstance(kind, LevelKind):
        return code_levels(kind, cells, missing)
    if isinstance(kind, Integer):
        return code_integer(kind, cells, missing)
    if isinstance(kind, Continuous):
        return code_continuous(kind, cells, missing)
    return code_dates(kind, cells, missing)


def _missing_codes(kind: LevelKind | NumericKind, n: int) -> np.ndarray:
    if isinstance(kind, LevelKind):
        return np.full(n, missing_code(kind), dtype=np.int32)
    return _code(kind, pa.nulls(n), ())


def _decode_numbers(kind: NumericKind, codes: np.ndarray, storage: pa.DataType) -> pa.Array:
    if isinstance(kind, Integer):
        bounds = {"lower": kind.lower, "upper": kind.upper}
        return store_integer(*decode_whole(codes, **bounds, nullable=kind.nullable), storage)
    if isinstance(kind, Continuous):
        return store_continuous(kind, *decode_continuous(kind, codes), storage)
    return store_datetime(kind, *decode_dates(kind, codes), storage)
