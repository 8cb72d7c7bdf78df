"""Several files as one table: a glob, a list, a folder of Parquet, with the columns that its sub-folders name.

The pieces are read one after the other, each by the types of its own. Where these differ, all pieces become text, cell
by cell: a file's types may follow from one of its cells, and must not change how the cells of another file are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.canonical import canonical_text, has_canonical_text
from sfumato.columns.cells import joined, plain, values_of
from sfumato.columns.identifiers import Identifier
from sfumato.columns.kind import ColumnKind
from sfumato.columns.sets import is_set_storage, list_parts
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Chunk, Column, Source, table_chunks
from sfumato.io.csv_form import CsvForm


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class JoinedSource(Source):
    """Files of one format, one after the other.

    Attributes:
        files: the files.
        folders: for each file, the values that its folders give to columns (`year=2024`).
        partial: columns that only some pieces have, each with the name of a file that lacks it.
        dictionaries: whether text may come dictionary-encoded.
    """

    files: tuple[Source, ...]
    folders: tuple[Mapping[str, str | None], ...]
    partial: Mapping[str, str]
    dictionaries: bool = False

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source of these columns, if every piece has them."""
        for name, kind in columns.items():
            if name in self.partial and not isinstance(kind, Identifier):
                raise SchemaError(
                    f"Expected every file of {self.label} to have column {name!r}, got none in {self.partial[name]}."
                )
        return self._of([piece.under(columns) for piece in self.files])

    def read_as(self, form: CsvForm) -> Source:
        """Return the source of CSV text in a declared form."""
        return self._of([piece.read_as(form) for piece in self.files])

    def found_form(self) -> CsvForm:
        """Return the form of the first file. Not private."""
        return self.files[0].found_form()

    def measured(self) -> Source:
        """Return the source with the storage types that its records tell. Not private."""
        return self._of([piece.measured() for piece in self.files])

    def skipped(self) -> Iterator[str]:
        """Yield the records of all files that cannot be read. Not private."""
        for file in self.files:
            yield from (f"{file.label}, {text}" for text in file.skipped())

    def shortened(self) -> Iterator[str]:
        """Yield the records of all files that are read without their last cells. Not private."""
        for file in self.files:
            yield from (f"{file.label}, {text}" for text in file.shortened())

    def size(self) -> int:
        """Bytes of all files."""
        return sum(piece.size() for piece in self.files)

    @property
    def in_files(self) -> bool:
        """Whether other processes can read all files."""
        return all(file.in_files for file in self.files)

    def with_dictionaries(self) -> Source:
        """Return the source whose text comes dictionary-encoded, if all files can give it so."""
        files = tuple(file.with_dictionaries() for file in self.files)
        alike = all(file is not own for file, own in zip(files, self.files, strict=True))
        return replace(self, files=files, dictionaries=True) if alike else self

    def pieces(self) -> Sequence[Source]:
        """Return a source for every piece of every file, with the columns and types of all."""
        return tuple(
            replace(self, files=(piece,), folders=(folder,))
            for file, folder in zip(self.files, self.folders, strict=True)
            for piece in file.pieces()
        )

    def _of(self, pieces: Sequence[Source]) -> Source:
        if all(piece is own for piece, own in zip(pieces, self.files, strict=True)):
            return self
        storage, partial = _met(pieces, self.folders, self.label)
        return replace(self, files=tuple(pieces), storage=storage, partial=partial)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self._tables(columns), columns, self.chunk_rows)

    def _tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        for piece, folder in zip(self.files, self.folders, strict=True):
            own = [name for name in columns if name not in folder]
            for chunk in piece.chunks(own or piece.names[:1]):
                yield pa.table({name: self._column(name, chunk, folder) for name in columns})

    def _column(self, name: str, chunk: Chunk, folder: Mapping[str, str | None]) -> pa.Array:
        if name in folder:
            return pa.repeat(pa.scalar(folder[name], pa.string()), chunk.n_rows)
        column = chunk.columns[name]
        if not isinstance(column, np.ndarray) and self.dictionaries and isinstance(column.type, pa.DictionaryType):
            return self._with_dictionary(name, column)
        return converted(column, self.storage[name])

    def _with_dictionary(self, name: str, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Return a column as it comes, where it comes so from all files, or as text."""
        kind = column.type
        if kind == self.storage[name] or all(file.storage.get(name) == kind.value_type for file in self.files):
            return column
        return converted(column.cast(kind.value_type), self.storage[name])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class JoinedEntries(JoinedSource):
    """Files of which each says how many records it has, whatever their cells hold."""

    counts_entries: ClassVar[bool] = True


def open_joined(
    pieces: Sequence[Source], folders: Sequence[Mapping[str, str | None]], label: str, *, chunk_rows: int
) -> JoinedSource:
    """Join files to one table.

    Args:
        pieces: at least one.
        folders: for each piece, the columns that its folders give.
        label: what messages call the table.
        chunk_rows: the most rows of one chunk.

    Raises:
        DataError: the pieces are of several formats or partitions, have no column in common, or one of types that do
            not go together.
    """
    if len({piece.container for piece in pieces}) > 1:
        raise DataError(f"Expected the files of {label} to have one format, got several. Name those of one.")
    if len({frozenset(folder) for folder in folders}) > 1:
        raise DataError(f"Expected every file of {label} to lie in folders of the same columns, such as year=2024.")
    storage, partial = _met(pieces, folders, label)
    made = JoinedEntries if all(piece.counts_entries for piece in pieces) else JoinedSource
    return made(
        label=label,
        container=pieces[0].container,
        storage=storage,
        chunk_rows=chunk_rows,
        files=tuple(pieces),
        folders=tuple(folders),
        partial=partial,
    )


def converted(column: Column, storage: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return a column in the type that its files have in common, cell by cell."""
    if not isinstance(column, np.ndarray) and column.type == storage:
        return column
    return _as_type(joined(column), storage)


def _as_type(cells: pa.Array, storage: pa.DataType) -> pa.Array:
    cells = plain(cells)
    if types.is_null(cells.type):
        return pa.nulls(len(cells), storage)
    if is_set_storage(storage):
        lengths, items = list_parts(cells)
        ends = pa.array([0, *lengths.cumsum().tolist()], pa.int64())
        made = pa.LargeListArray.from_arrays(ends, _as_type(items, storage.value_type))
        return pa.LargeListArray.from_arrays(ends, made.values, mask=cells.is_null()) if cells.null_count else made
    if not types.is_string(storage):
        return cells.cast(storage)
    return canonical_text(cells).cast(pa.string())


def _met(
    pieces: Sequence[Source], folders: Sequence[Mapping[str, str | None]], label: str
) -> tuple[dict[str, pa.DataType], dict[str, str]]:
    """Return the types of the columns that all pieces have, and who lacks the others."""
    storage: dict[str, pa.DataType] = {}
    partial: dict[str, str] = {}
    for name in dict.fromkeys(name for piece in pieces for name in piece.storage):
        lacking = next((piece.label for piece in pieces if name not in piece.storage), None)
        if lacking is not None:
            partial[name] = lacking
            continue
        storage[name] = pieces[0].storage[name]
        for piece in pieces[1:]:
            met = _meet(storage[name], piece.storage[name])
            if met is None:
                raise DataError(
                    f"Expected column {name!r} to have types that go together in all files of {label}, got "
                    f"{piece.storage[name]} in {piece.label} and another in the files before it."
                )
            storage[name] = met
    storage |= dict.fromkeys(folders[0], pa.string())
    if not storage and partial:
        raise DataError(f"Expected the files of {label} to have a column in common, got none.")
    return storage, {name: file for name, file in partial.items() if name not in storage}


def _meet(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type in which cells of two types are read alike; None if there is none."""
    if first == second:
        return first
    first, second = values_of(first), values_of(second)
    if types.is_null(first) or first == second:
        return second
    if types.is_null(second):
        return first
    if is_set_storage(first) and is_set_storage(second):
        items = _meet(first.value_type, second.value_type)
        return None if items is None else pa.large_list(items)
    return pa.string() if has_canonical_text(first) and has_canonical_text(second) else None
