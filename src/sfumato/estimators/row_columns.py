"""Columns beside rows: whose each row is, and how many of the population it stands for, read cell by cell.

Which rows of a unit count, and how much a row counts by its weight, follows from its own cells alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.columns.cells import joined
from sfumato.columns.kinds import Continuous
from sfumato.errors import ConfigError, require_integer
from sfumato.estimators.records import WEIGHT, NumericRecords, X
from sfumato.io.chunks import Source, attempt
from sfumato.io.sources import open_source
from sfumato.lenses.weights import fractions
from sfumato.privacy.certificate_form import Weighting
from sfumato.records.engine import Rows
from sfumato.records.units import UnitRows
from sfumato.schema.schema_facts import Weight
from sfumato.schema.unit import Unit

CELLS = "cells"


class _ColumnRecords(NumericRecords):
    """Rows with a column beside them, whose cells are read once.

    Args:
        records: all rows.
        source: of one column.
    """

    def __init__(self, records: NumericRecords, source: Source) -> None:
        self.dimension, self.names, self.weight = records.dimension, records.names, records.weight
        self._records, self._source = records, source
        self._cells: Any = None

    def _chunks(self) -> Iterator[tuple[Any, Rows]]:
        """Yield chunks of rows, with their cells."""
        start = 0
        for rows in self._records.coded():
            stop = start + len(rows[X])
            yield self._cells[start:stop], rows
            start = stop


class UnitRecords(_ColumnRecords):
    """Rows of units, at most `max_rows` of each; a row of nobody is left out.

    Args:
        records: all rows.
        source: of one column, whose each row is.
        unit: its name, and the most rows of a unit that count.
    """

    def __init__(self, records: NumericRecords, source: Source, unit: Unit) -> None:
        super().__init__(records, source)
        self.unit, self._chosen = unit, None

    _chosen: UnitRows | None

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of rows that count; a missing cell is NaN."""
        if self._chosen is None:
            self._chosen = attempt(self._choice, "Cannot read the units of rows. Please report their type.")
        keeper = self._chosen.keeper()
        return (keeper.rows_of(cells, rows) for cells, rows in self._chunks())

    def _choice(self) -> UnitRows:
        cells = [joined(chunk.columns[CELLS]) for chunk in self._source.chunks([CELLS])]
        self._cells = pa.chunked_array(cells, type=None if cells else pa.string())
        units = UnitRows(self.max_rows_per_unit, ("",))
        for cells, _ in self._chunks():
            units.count(cells)
        if not units.all_fit:
            for cells, rows in self._chunks():
                units.collect(cells, rows)
            units.choose()
        return units


class WeightedRecords(_ColumnRecords):
    """Rows that count by weights ÷ their bound, at most once: each by its own cell alone, as a schema's weights do.

    Args:
        records: all rows.
        source: of one column, each row's weight.
        weight: its name and bound.
    """

    def __init__(self, records: NumericRecords, source: Source, weight: Weighting) -> None:
        super().__init__(records, source)
        self.weight, self._kind = weight, Continuous(lower=0, upper=weight.upper, nullable=True)
        self._kind.check_readable(weight.column, source.storage[CELLS])

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of rows, with their weights ÷ the bound."""
        if self._cells is None:
            self._cells = attempt(self._parts, "Cannot read the weights of rows. Please report their type.")
        return ({**rows, WEIGHT: parts} for parts, rows in self._chunks())

    def _parts(self) -> np.ndarray:
        chunks = self._source.chunks([CELLS])
        parts = [fractions(self._kind.code(chunk.columns[CELLS], missing=("",))) for chunk in chunks]
        return np.concatenate([np.zeros(0), *parts])


def of_weights(
    records: NumericRecords,
    data: Any,  # noqa: ANN401
    weights: Any,  # noqa: ANN401
    upper: float | None,
) -> NumericRecords:
    """Rows that count by weights, where these are given; the rows themselves where they are not.

    Args:
        records: of the data.
        data: with a length.
        weights: each row's, a list, array or column of numbers; None where each row counts once.
        upper: the largest weight that counts, public; required beside `weights`.

    Raises:
        ConfigError: one of both is missing, or as `cells_beside` and `column_of`.
        SchemaError: the bound is no number above 0, or the cells are of a type that has no numbers.
    """
    if weights is None:
        if upper is not None:
            raise ConfigError("Expected sample_weight beside weight_upper, got weight_upper alone. Name the weights.")
        return records
    if upper is None:
        raise ConfigError(
            "Expected weight_upper beside sample_weight: the largest weight that counts, fixed without looking at the "
            "weights. Got none."
        )
    source = cells_beside(data, weights, "sample_weight", "numbers")
    column = column_of(weights, records, "weight")
    bound = Weight(column=column, upper=upper).upper
    assert bound is not None
    return WeightedRecords(records, source, Weighting(column=column, upper=float(bound)))


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
        ConfigError: one of both is missing, as `cells_beside` and `column_of`, or a name is missing where a ledger
            needs it.
    """
    if units is None:
        if max_rows is not None:
            raise ConfigError("Expected units beside max_rows, got max_rows alone. Name whose each row is.")
        return records
    if max_rows is None:
        raise ConfigError("Expected max_rows beside units: how many rows of one unit may count at most. Got none.")
    require_integer(at_least=1, max_rows=max_rows)
    source = cells_beside(data, units, "units", "names or whole numbers")
    if in_ledger and not _own_name(units):
        raise ConfigError(
            "Expected units with a name beside a ledger, which tells whether two fits protect the same units by it: a "
            "column of a frame, as in units=frame['patient'], or pandas.Series(units, name='patient'). Got none."
        )
    return UnitRecords(records, source, Unit(column=column_of(units, records, "unit"), max_rows=max_rows))


def column_of(cells: Any, records: NumericRecords, otherwise: str) -> str:  # noqa: ANN401
    """Return the name of a column of cells beside rows: of a column of a frame its own, else one that no other has.

    Raises:
        ConfigError: its own name is that of a feature, or of the weights.
    """
    taken = {*records.columns, *([] if records.weight is None else [records.weight.column])}
    if own := _own_name(cells):
        if own in taken:
            raise ConfigError(
                f"Expected rows without the column of each row's {otherwise}, got {own!r} among them. Leave it out."
            )
        return own
    while otherwise in taken:
        otherwise += "'"
    return otherwise


def _own_name(cells: Any) -> str:  # noqa: ANN401
    own = getattr(cells, "name", None)
    return own if isinstance(own, str) else ""


def cells_beside(data: Any, cells: Any, argument: str, form: str) -> Source:  # noqa: ANN401
    """Return cells, one of each row of data, as a table of one column, `CELLS`; none is looked at.

    Args:
        data: with a length.
        cells: a list, array or column.
        argument: what they are called.
        form: what each may be, in words.

    Raises:
        ConfigError: data without a length, cells without an order, or not as many as rows.
    """
    if not hasattr(data, "__len__") or isinstance(data, str):
        raise ConfigError(
            f"Expected an array or a frame beside {argument}, got other data. Name the column of a file in a schema: "
            "the commands take one."
        )
    expected = f"Expected {argument} to be {form}, one of each row, got something else."
    source = attempt(lambda: open_source(_table(cells, expected)), expected)
    if attempt(lambda: len(cells), expected) != len(data):
        raise ConfigError(f"Expected as many {argument} as rows, got another number. Give one of each row.")
    return source


def _table(cells: Any, expected: str) -> Any:  # noqa: ANN401
    """Return cells as a table of one column, in which each is read by itself.

    NumPy would make one type of all cells of a list: a name among numbers would change how these are written.
    """
    if isinstance(cells, pd.Series | pd.Index):
        return pd.DataFrame({CELLS: pd.Series(cells.array)})
    if isinstance(cells, pa.Array | pa.ChunkedArray):
        return pa.table({CELLS: cells})
    if (polars := sys.modules.get("polars")) and isinstance(cells, polars.Series):
        return polars.DataFrame({CELLS: cells})
    if isinstance(cells, np.ndarray) and cells.ndim == 1:
        if not isinstance(cells, np.ma.MaskedArray):
            return pd.DataFrame({CELLS: cells})
        cells = [
            None if is_masked else cell for cell, is_masked in zip(cells.data, np.ma.getmaskarray(cells), strict=True)
        ]
    if not isinstance(cells, list):
        raise ConfigError(expected)  # of no order, or of other axes
    return pd.DataFrame({CELLS: _objects(cells)})


def _objects(cells: list[Any]) -> pd.Series:
    objects = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):  # a list as a whole would be spread over the array
        objects[i] = cell
    return pd.Series(objects, dtype=object)
