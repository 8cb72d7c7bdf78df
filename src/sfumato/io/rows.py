"""Rows of Python cells as columns of text, cell by cell: of spreadsheets, and of databases whose cells have types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from sfumato.io.frames import cell_text


def text_tables(rows: Iterable[Sequence[object]], names: Sequence[str], *, chunk_rows: int) -> Iterator[pa.Table]:
    """Yield rows as tables of text; a cell that has no text is missing.

    Args:
        rows: as many cells each as there are names; what is missing at the end of a row is null.
        names: of the columns.
        chunk_rows: the most rows of one table.
    """
    kept: list[Sequence[object]] = []
    for row in rows:
        kept.append(row)
        if len(kept) == chunk_rows:
            yield _table(kept, names)
            kept = []
    if kept:
        yield _table(kept, names)


def _table(rows: list[Sequence[object]], names: Sequence[str]) -> pa.Table:
    columns = [
        pa.array([cell_text(row[i]) if i < len(row) else None for row in rows], pa.string()) for i in range(len(names))
    ]
    return pa.table(columns, names=list(names))
