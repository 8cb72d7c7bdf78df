"""Excel workbooks (`.xlsx`): the first sheet, its first row the names, every other that is not empty a record.

Every cell is read as text, as a CSV file would hold it: what type Excel gave a cell decides nothing about others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import pyarrow as pa

from sfumato.errors import ConfigError
from sfumato.io.chunks import Chunk, Source, attempt, check_names, table_chunks
from sfumato.io.frames import cell_text
from sfumato.io.rows import text_tables
from sfumato.io.stored import StoredFile

if TYPE_CHECKING:
    from collections.abc import Sequence


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ExcelSource(Source):
    """The first sheet of a workbook, which is held in memory during a pass.

    Attributes:
        file: the workbook.
    """

    file: StoredFile

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        rows = _rows(self.file)
        next(rows)
        records = (row for row in rows if any(cell != "" for cell in row))
        yield from table_chunks(text_tables(records, self.names, chunk_rows=self.chunk_rows), columns, self.chunk_rows)

    def size(self) -> int:
        """Bytes of the file."""
        return self.file.size


def open_excel(file: StoredFile, *, chunk_rows: int) -> ExcelSource:
    """Read the first row of a workbook's first sheet.

    Raises:
        ConfigError: python-calamine is not installed.
        DataError: it is no workbook, or a column has no name or the name of another.
    """
    _require_calamine()
    message = f"Expected {file.name} to be an Excel workbook without a password, got another or a damaged file."
    header = attempt(lambda: next(_rows(file), []), message)
    names = ["" if name is None else name for name in map(cell_text, header)]
    check_names(names, file.name)
    storage = dict.fromkeys(names, pa.string())
    return ExcelSource(label=file.name, container="csv", storage=storage, chunk_rows=chunk_rows, file=file)


def _rows(file: StoredFile) -> Iterator[Sequence[object]]:
    """Yield the rows of the first sheet. An empty cell is an empty text."""
    from python_calamine import CalamineWorkbook

    with file.reading() as raw, CalamineWorkbook.from_filelike(raw) as book:
        yield from book.get_sheet_by_index(0).iter_rows()


def _require_calamine() -> None:
    missing = False
    try:
        import python_calamine  # noqa: F401
    except ImportError:
        missing = True
    if missing:
        raise ConfigError("Excel files need python-calamine, which is not installed. Run pip install 'sfumato[excel]'.")
