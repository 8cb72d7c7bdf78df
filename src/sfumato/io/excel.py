"""Excel workbooks (`.xlsx`): the first sheet, its first row that is not empty the names, every later one a record.

Every cell is read as text, as a CSV file would hold it: what type Excel gave a cell decides nothing about others. A
sheet is read as a stream, within the columns of the names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import pyarrow as pa

from sfumato.io.chunks import Chunk, Source, attempt, batched, check_names, table_chunks
from sfumato.io.sheet import sheet_rows
from sfumato.io.stored import StoredFile
from sfumato.io.workbook import Workbook

_NEAR = 100  # columns behind those of the header in which other cells are looked for
_PART_CHARACTERS = 16 << 20  # of text in rows that are not yet a table


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ExcelSource(Source):
    """The first sheet of a workbook.

    Attributes:
        file: the workbook.
        first: the number of the first column, from 0.
    """

    file: StoredFile
    first: int

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self._tables(), columns, self.chunk_rows)

    def _tables(self) -> Iterator[pa.Table]:
        records = _rows(self.file, self.first, len(self.names))
        next(records)
        sized = ((row, sum(map(len, row))) for row in records)
        for rows in batched(sized, self.chunk_rows, _PART_CHARACTERS):
            cells = [pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)]
            yield pa.table(cells, names=list(self.names))

    def beside(self) -> Iterator[str]:
        """Yield the rows that hold something near the columns of the header, and under no name."""
        last = self.first + len(self.names)
        rows = _rows(self.file, 0, last + _NEAR)
        next(rows)
        for number, row in enumerate(rows, 1):
            if any(row[: self.first]) or any(row[last:]):
                yield f"row {number} below the header"

    def size(self) -> int:
        """Bytes of the file."""
        return self.file.size


def open_excel(file: StoredFile, *, chunk_rows: int) -> ExcelSource:
    """Read the names of a workbook's first sheet.

    Raises:
        DataError: it is no workbook, or a column has no name or the name of another.
    """
    message = f"Expected {file.name} to be an Excel workbook without a password, got another or a damaged file."
    header = attempt(lambda: next(_rows(file), []), message)
    first = next((place for place, name in enumerate(header) if name), 0)
    last = max((place for place, name in enumerate(header) if name), default=-1)
    names = header[first : last + 1]
    check_names(names, file.name)
    storage = dict.fromkeys(names, pa.string())
    return ExcelSource(label=file.name, container="csv", storage=storage, chunk_rows=chunk_rows, file=file, first=first)


def _rows(file: StoredFile, *columns: int) -> Iterator[list[str]]:
    """Yield the rows of the first sheet within these columns, the first and how many; within all if none are named."""
    with file.reading() as raw:
        book = Workbook(raw)
        within = dict(zip(("first", "width"), columns, strict=False))
        with book.texts() as texts:
            yield from sheet_rows(book.sheet(), texts, book.styles, **within)
