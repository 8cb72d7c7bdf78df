"""Records before their schema is known: every cell a number, a text, or missing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.columns.canonical import canonical_text, has_canonical_text
from sfumato.columns.cells import is_text, plain, read_text, total, without_tokens
from sfumato.columns.number_cells import read_floats
from sfumato.columns.open import OpenKind
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.records.engine import Engine, Rows, Statistic
from sfumato.records.private import PrivateData
from sfumato.records.units import Keeper, UnitRows
from sfumato.schema.schema import Schema


@final
class OpenData:
    """Records of a source as numbers and texts: of the open columns only, at most `max_rows` of each unit.

    A column comes as float64, NaN where it holds no number (integer, continuous), or as objects: text, or None where it
    is missing (all other kinds). What a cell becomes depends on that cell alone.

    Args:
        source: where the records lie.
        schema: what is public of them.
        engine: sums over the records, on workers; by default they are summed here.

    Raises:
        SchemaError: the source has not the columns of the schema.
    """

    def __init__(self, source: Source, schema: Schema, engine: Engine | None = None) -> None:
        PrivateData(source, schema)
        self._source, self._schema, self._engine = source, schema, engine
        self._units: UnitRows | None = None

    @property
    def schema(self) -> Schema:
        """What is public of them."""
        return self._schema

    @property
    def source(self) -> Source:
        """The source."""
        return self._source

    @property
    def max_rows_per_unit(self) -> int:
        """Most records that one unit contributes."""
        unit = self._schema.unit
        return 1 if unit is None else unit.max_rows

    @property
    def read_columns(self) -> list[str]:
        """The open columns; without any, one released column, for counting records; and that of the unit."""
        unit = self._schema.unit
        return [*self._read_names(), *([] if unit is None else [unit.column])]

    def over(self, piece: Source) -> OpenData:
        """Return the records of a part of the source, to be summed where they are."""
        part = copy.copy(self)
        part._source, part._engine, part._units = piece, None, None
        return part

    def summed(self, statistic: Statistic, width: int | None = None) -> np.ndarray | None:
        """Return the sum by the engine, if there is one: see `SummedElsewhere`."""
        if self._engine is None or self._schema.unit is not None:
            return None  # which rows of a unit count depends on all of them: in pieces, each piece would keep its own
        return self._engine.summed(statistic, self, width)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of the open columns; without any, of one released column, for counting records."""
        message = f"Cannot read the columns of {self._source.label}. Please report their types: a fit reads any cell."
        keeper = self._keeper()
        for chunk in self._source.chunks(self.read_columns):
            yield attempt(lambda chunk=chunk: self._kept(chunk, keeper), message)

    def _read_names(self) -> list[str]:
        return list(self._schema.open) or [self._schema.released[0]]

    def _kept(self, chunk: Chunk, keeper: Keeper | None) -> Rows:
        rows, unit = self._code(chunk), self._schema.unit
        return rows if keeper is None or unit is None else keeper.kept(chunk.columns[unit.column], rows)

    def _code(self, chunk: Chunk) -> Rows:
        schema, opened = self._schema, self._schema.open
        return {
            name: _values_totally(opened.get(name, "categorical"), chunk.columns[name], schema.missing)
            for name in self._read_names()
        }

    def _keeper(self) -> Keeper | None:
        """Return what chooses the rows of units in one pass; which rows these are is found out in the first."""
        schema = self._schema
        if schema.unit is None:
            return None
        if self._units is None:
            self._units = UnitRows.of(self._source, schema.unit, schema.missing, self.read_columns, self._code)
        return self._units.keeper()

    def __repr__(self) -> str:
        return f"OpenData({', '.join(self._schema.open)})"


_TRUTHS = {"false", "true", "False", "True", "FALSE", "TRUE"}


def numbers_of(texts: np.ndarray) -> np.ndarray:
    """Return texts as float64, NaN where one is no number or None; total. Truth values are words here."""
    truths = np.array([text is not None and text in _TRUTHS for text in texts], dtype=bool)
    return np.where(truths, np.nan, _total("continuous", pa.array(texts, pa.string()), ()))


def _values_totally(kind: OpenKind, column: pa.ChunkedArray | np.ndarray, missing: tuple[str, ...]) -> np.ndarray:
    chunks = [pa.array(column)] if isinstance(column, np.ndarray) else column.chunks
    return np.concatenate([_total(kind, chunk, missing) for chunk in chunks])


def _total(kind: OpenKind, cells: pa.Array, missing: tuple[str, ...]) -> np.ndarray:
    """Read cells; those that Arrow refuses are missing."""
    none, dtype = (np.nan, np.float64) if kind in ("integer", "continuous") else (None, object)
    return total(lambda part: _values(kind, part, missing), cells, lambda n: np.full(n, none, dtype=dtype))


def _values(kind: OpenKind, cells: pa.Array, missing: tuple[str, ...]) -> np.ndarray:
    if kind in ("integer", "continuous"):
        return read_floats(cells, missing)
    cells = plain(cells)
    if pa.types.is_dictionary(cells.type):
        cells = plain(cells.dictionary_decode())
    if is_text(cells.type):
        text = without_tokens(read_text(cells), missing)
    elif has_canonical_text(cells.type):
        text = canonical_text(cells)
    else:
        text = pa.nulls(len(cells), pa.string())
    return np.array(text.to_pylist(), dtype=object)
