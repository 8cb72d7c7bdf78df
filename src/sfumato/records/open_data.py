"""Records before their schema is known: every cell a number, a text, or missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import is_text, plain, read_floats, read_text, total, without_tokens
from sfumato.columns.open import Open
from sfumato.columns.storage import canonical_text, has_canonical_text
from sfumato.columns.text_forms import is_truth
from sfumato.columns.wall_clock import moments_of, read_microseconds
from sfumato.columns.written import Written
from sfumato.io.chunks import Chunk, Source
from sfumato.records.engine import Engine, Rows
from sfumato.records.private import PrivateData
from sfumato.records.source_records import SourceRecords
from sfumato.schema.schema import Schema


@final
class OpenData(SourceRecords):
    """Records of a source as numbers and texts: of the open columns only, at most `max_rows` of each unit.

    A column comes as float64, NaN where it holds no number (integer, continuous; of dates, the year), or as objects:
    text, or None where it is missing (all other kinds). What a cell becomes depends on that cell alone.

    Args:
        source: where the records lie.
        schema: what is public of them.
        engine: sums over the records, on workers; by default they are summed here.

    Raises:
        SchemaError: the source has not the columns of the schema.
    """

    def __init__(self, source: Source, schema: Schema, engine: Engine | None = None) -> None:
        PrivateData(source, schema)
        super().__init__(source, schema, engine)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of the open columns; without any, of one released column, for counting records."""
        message = f"Cannot read the columns of {self._source.label}. Please report their types: a fit reads any cell."
        return self._coded(self._source, message)

    def _coded_names(self) -> list[str]:
        return list(self._schema.open) or [self._schema.released[0]]

    def _code(self, chunk: Chunk) -> Rows:
        missing, opened = self._schema.missing_in(self._source), self._schema.of_kind(Open)
        return {
            name: _values_totally(opened.get(name, _LABELS), chunk.columns[name], missing)
            for name in self._coded_names()
        }


_LABELS = Open(kind="categorical")
_AS_NUMBERS = ("integer", "continuous", "datetime")


def numbers_of(texts: np.ndarray, written: Written | None = None) -> np.ndarray:
    """Return texts as float64, NaN where one is no number or None; total. Truth values are words here."""
    cells = pa.array(texts, pa.string())
    numbers = Open(kind="continuous", written=written)
    return np.where(is_truth(read_text(cells)), np.nan, _total(numbers, cells, ()))


def years_of(texts: np.ndarray, format: str | None) -> np.ndarray:
    """Return the year of texts that are dates, float64, NaN where one is no date or None; total."""
    read = lambda cells: _years(*read_microseconds(cells, (), format))  # noqa: E731
    return total(read, pa.array(texts, pa.string()), lambda n: np.full(n, np.nan))


def _years(micros: np.ndarray, valid: np.ndarray) -> np.ndarray:
    return np.where(valid, micros.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970, np.nan)


def _values_totally(kind: Open, column: pa.ChunkedArray | np.ndarray, missing: tuple[str, ...]) -> np.ndarray:
    chunks = [pa.array(column)] if isinstance(column, np.ndarray) else column.chunks
    return np.concatenate([_total(kind, chunk, missing) for chunk in chunks])


def _total(kind: Open, cells: pa.Array, missing: tuple[str, ...]) -> np.ndarray:
    """Read cells; those that Arrow refuses are missing."""
    none, dtype = (np.nan, np.float64) if kind.kind in _AS_NUMBERS else (None, object)
    return total(lambda part: _values(kind, part, missing), cells, lambda n: np.full(n, none, dtype=dtype))


def _values(kind: Open, cells: pa.Array, missing: tuple[str, ...]) -> np.ndarray:
    if kind.kind in ("integer", "continuous"):
        return read_floats(cells, missing, kind.written)
    if kind.kind == "datetime":
        steps, valid = kind.between(2000, 2000).read(cells, missing)
        return _years(moments_of(steps, kind.resolution), valid)
    cells = plain(cells)
    if pa.types.is_dictionary(cells.type):
        cells = plain(cells.dictionary_decode())
    if is_text(cells.type):
        text = without_tokens(read_text(cells), missing)
    elif has_canonical_text(cells.type):
        text = without_tokens(canonical_text(cells), missing)
    else:
        text = pa.nulls(len(cells), pa.string())
    return np.array(text.to_pylist(), dtype=object)
