"""Records of a CSV file with more or fewer cells than the header has names: read by themselves, or left out.

A record whose cells beyond the header are all empty (a delimiter ends each line) is that record without them. Any other
is left out. Which of the two follows from the record and the header alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from sfumato.io.csv_record_ends import NO_RECORD, left_out


@dataclass(slots=True, repr=False)
class OddRecords:
    """The records of one pass that have another number of cells than the header.

    Attributes:
        delimiter: what parts the cells.
        names: the columns, in the header's order.
        numbers: the places of these records among all, from 1, in ascending order; those not yet passed.
        cells: of those that can be read, their cells by place.
        notes: if `counts`, the places of all, what is odd about them, and whether they can be read.
        counts: whether to keep that.
    """

    delimiter: str
    names: Sequence[str]
    counts: bool = False
    numbers: list[int] = field(default_factory=list)
    cells: dict[int, list[str]] = field(default_factory=dict)
    notes: list[tuple[int, str, bool]] = field(default_factory=list)
    _passed: int = 0

    def note(self, row: pa_csv.InvalidRow) -> Literal["skip"]:
        """Take note of a record; the parser goes on without it."""
        number = row.number
        self.numbers.append(number)
        cells = read_long(row.text, self.delimiter, len(self.names)) if row.actual_columns > len(self.names) else None
        if cells is not None:
            self.cells[number] = cells
        if self.counts:
            is_none = row.text == left_out(self.delimiter, len(self.names)).decode()
            self.notes.append((number, NO_RECORD if is_none else f"{row.actual_columns} cells", cells is not None))
        return "skip"

    def placed(self, batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the parser's records with those that are read by themselves, all in the order of the file."""
        for batch in batches:
            regular = np.zeros(0, dtype=np.int64)
            if batch.num_rows:
                regular = self._places(batch.num_rows)
                self._passed = int(regular[-1])
            self._pass_odd()
            yield self._merged(pa.Table.from_batches([batch]), regular, columns)
        self._passed = max([self._passed, *self.numbers])
        rest = self._taken(columns)
        if rest is not None:
            yield rest[0]

    def _places(self, count: int) -> np.ndarray:
        """Return the places of the next records of the right length."""
        ahead = np.array([number for number in self.numbers if number > self._passed], dtype=np.int64)
        candidates = np.arange(self._passed + 1, self._passed + 1 + count + ahead.size)
        return np.setdiff1d(candidates, ahead, assume_unique=True)[:count]

    def _pass_odd(self) -> None:
        """Go on over the odd records that follow at once."""
        for number in self.numbers:
            if number == self._passed + 1:
                self._passed = number

    def _taken(self, columns: Sequence[str]) -> tuple[pa.Table, np.ndarray] | None:
        """Take out the odd records that were passed; return those that can be read, with their places."""
        passed = [number for number in self.numbers if number <= self._passed]
        self.numbers = self.numbers[len(passed) :]
        places = [number for number in passed if number in self.cells]
        if not places:
            return None
        rows = [self.cells.pop(number) for number in places]
        index = {name: place for place, name in enumerate(self.names)}
        cells = {name: pa.array([row[index[name]] for row in rows], pa.string()) for name in columns}
        return pa.table(cells), np.array(places)

    def _merged(self, table: pa.Table, places: np.ndarray, columns: Sequence[str]) -> pa.Table:
        odd = self._taken(columns)
        if odd is None:
            return table
        order = np.argsort(np.concatenate([places, odd[1]]), kind="stable")
        return pa.concat_tables([table.select(columns), odd[0]]).take(pa.array(order))


def read_long(text: str, delimiter: str, columns: int) -> list[str] | None:
    """Return the cells of a record with cells beyond the header's, if those are all empty; else None.

    Example:
        >>> read_long("34;f;", ";", 2), read_long("34;f;note", ";", 2)
        (['34', 'f'], None)
    """
    try:
        cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (csv.Error, StopIteration):  # a cell beyond the bound of that parser
        return None
    extra = cells[columns:]
    return cells[:columns] if extra and not any(cell.strip() for cell in extra) else None
