"""Rows of units for estimators: the name of whose each row is, read cell by cell, and which rows count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.columns.cells import joined
from sfumato.errors import ConfigError, require_integer
from sfumato.estimators.records import ArrayRecords, NumericRecords, SourceRecords, X
from sfumato.io.chunks import Source, attempt
from sfumato.io.sources import open_source
from sfumato.records.engine import Rows
from sfumato.records.units import UnitRows
from sfumato.schema.unit import Unit

_UNIT_NAME = "unit"
_EXPECTED = "Expected units to be names or whole numbers, one of each row, got something else."


class UnitRecords:
    """Rows of units, at most `max_rows` of each: which, follows from the unit's own rows alone.

    Args:
        records: all rows.
        names: of one column, whose each row is; a row of nobody is left out.
        unit: its name, and the most rows of a unit that count.
    """

    def __init__(self, records: ArrayRecords | SourceRecords, names: Source, unit: Unit) -> None:
        self.dimension, self.names = records.dimension, records.names
        self.unit, self.max_rows_per_unit = unit, unit.max_rows
        self._records, self._source = records, names
        self._names: pa.ChunkedArray | None = None
        self._chosen: UnitRows | None = None

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of rows that count; a missing cell is NaN."""
        if self._chosen is None:
            self._chosen = attempt(self._choice, "Cannot read the units of rows. Please report their type.")
        keeper = self._chosen.keeper()
        return (keeper.rows_of(cells, rows) for cells, rows in self._chunks())

    def _choice(self) -> UnitRows:
        cells = [joined(chunk.columns[_UNIT_NAME]) for chunk in self._source.chunks([_UNIT_NAME])]
        self._names = pa.chunked_array(cells, type=None if cells else pa.string())
        units = UnitRows(self.max_rows_per_unit, ("",))
        for cells, _ in self._chunks():
            units.count(cells)
        if not units.all_fit:
            for cells, rows in self._chunks():
                units.collect(cells, rows)
            units.choose()
        return units

    def _chunks(self) -> Iterator[tuple[pa.ChunkedArray, Rows]]:
        start = 0
        assert self._names is not None
        for rows in self._records.coded():
            n = len(rows[X])
            yield self._names.slice(start, n), rows
            start += n


def of_units(
    records: NumericRecords,
    data: Any,  # noqa: ANN401
    units: Any,  # noqa: ANN401
    max_rows: int | None,
    *,
    in_ledger: bool,
) -> NumericRecords:
    """Rows of units, where these are named; the rows themselves where they are not.

    Args:
        records: of the data.
        data: with a length.
        units: whose each row is: a list, array or column of names or whole numbers; None where each row is by itself.
        max_rows: the most rows of a unit that count; required beside `units`.
        in_ledger: whether a ledger is charged, which knows units by the name of their column.

    Raises:
        ConfigError: one of both is missing, there are not as many names as rows, they have no order, or the name of
            their column is that of a feature, or missing where a ledger needs it.
    """
    if units is None:
        if max_rows is not None:
            raise ConfigError("Expected units beside max_rows, got max_rows alone. Name whose each row is.")
        return records
    if not isinstance(records, ArrayRecords | SourceRecords) or not hasattr(data, "__len__") or isinstance(data, str):
        raise ConfigError(
            "Expected an array or a frame beside units, got other data. Name the unit of a file in a schema: the "
            "commands take one."
        )
    if max_rows is None:
        raise ConfigError("Expected max_rows beside units: how many rows of one unit may count at most. Got none.")
    column = _column_name(units, records.names or (), in_ledger=in_ledger)
    unit = Unit(column=column, max_rows=require_integer(at_least=1, max_rows=max_rows))
    names = attempt(lambda: open_source(_table(units)), _EXPECTED)
    if attempt(lambda: len(units), _EXPECTED) != len(data):
        raise ConfigError("Expected as many units as rows, got another number. Name whose each row is.")
    return UnitRecords(records, names, unit)


def _column_name(units: Any, features: tuple[str, ...], *, in_ledger: bool) -> str:  # noqa: ANN401
    """Return the name of the units' column: of a column of a frame its own."""
    own = getattr(units, "name", None)
    if isinstance(own, str) and own:
        if own in features:
            raise ConfigError(f"Expected rows without the column of their units, got {own!r} among them. Leave it out.")
        return own
    if in_ledger:
        raise ConfigError(
            "Expected units with a name beside a ledger, which tells whether two fits protect the same units by it: a "
            "column of a frame, as in units=frame['patient'], or pandas.Series(units, name='patient'). Got none."
        )
    column = _UNIT_NAME
    while column in features:
        column += "'"
    return column


def _table(units: Any) -> Any:  # noqa: ANN401
    """Return units as a table of one column, in which each cell is read by itself.

    NumPy would make one type of all cells of a list: a name among numbers would change how these are written.
    """
    if isinstance(units, pd.Series | pd.Index):
        return pd.DataFrame({_UNIT_NAME: pd.Series(units.array)})
    if isinstance(units, pa.Array | pa.ChunkedArray):
        return pa.table({_UNIT_NAME: units})
    if (polars := sys.modules.get("polars")) and isinstance(units, polars.Series):
        return polars.DataFrame({_UNIT_NAME: units})
    if isinstance(units, np.ndarray) and units.ndim == 1:
        if not isinstance(units, np.ma.MaskedArray):
            return pd.DataFrame({_UNIT_NAME: units})
        units = [
            None if is_masked else cell for cell, is_masked in zip(units.data, np.ma.getmaskarray(units), strict=True)
        ]
    if not isinstance(units, list):
        raise ConfigError(_EXPECTED)  # of no order, or of other axes
    return pd.DataFrame({_UNIT_NAME: _objects(units)})


def _objects(cells: list[Any]) -> pd.Series:
    objects = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):  # a list as a whole would be spread over the array
        objects[i] = cell
    return pd.Series(objects, dtype=object)
