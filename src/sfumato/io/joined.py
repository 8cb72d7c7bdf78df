"""Several files as one table: a glob, a list, a folder of Parquet, with the columns that its sub-folders name.

The pieces are read one after the other, each by the types of its own: a file's types may follow from one of its cells,
and must not change how the cells of another file are read. Chunks of other types follow each other.

A file's type may follow from one of its cells, so types that differ are no fault: cells become text, each by itself,
and one that has none is missing, as it is in a file of that type alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import joined, plain, values_of
from sfumato.columns.kind import ColumnKind
from sfumato.columns.open import Identifier
from sfumato.columns.sets import ItemSet, is_set_storage, list_parts
from sfumato.columns.storage import has_text, text_of
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Chunk, Note, Source, table_chunks
from sfumato.io.csv_form import CsvForm


def common_type(first: pa.DataType, second: pa.DataType, *, lists: bool = False) -> pa.DataType | None:
    """Return the type in which cells of two types are read alike; None for images beside other cells.

    Args:
        first: of some cells.
        second: of others.
        lists: whether the column holds sets, so that what is no list is missing; else what is a list is.
    """
    first, second = values_of(first), values_of(second)
    if types.is_null(first) or first == second:
        return second
    if types.is_null(second):
        return first
    if isinstance(first, pa.BaseExtensionType) or isinstance(second, pa.BaseExtensionType):
        return None
    if is_set_storage(first) and is_set_storage(second):
        return pa.large_list(common_type(first.value_type, second.value_type) or pa.string())
    if lists and (is_set_storage(first) or is_set_storage(second)):
        return pa.large_list((first if is_set_storage(first) else second).value_type)
    return pa.string()


def of_one_type(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Return arrays of any types, at least one, as arrays of one type."""
    kind = arrays[0].type
    for array in arrays[1:]:
        kind = kind if array.type == kind else common_type(kind, array.type) or pa.string()
    return [array if array.type == kind else _as_type(array, kind) for array in arrays]


def _as_type(cells: pa.Array, storage: pa.DataType) -> pa.Array:
    """Return cells in a type that `common_type` gave, each by itself; what that type cannot say is missing."""
    cells = plain(cells)
    if types.is_null(cells.type):
        return pa.nulls(len(cells), storage)
    if is_set_storage(storage):
        if not is_set_storage(cells.type):
            return pa.nulls(len(cells), storage)
        lengths, items = list_parts(cells)
        ends = pa.array([0, *lengths.cumsum().tolist()], pa.int64())
        lists = pa.LargeListArray.from_arrays(ends, _as_type(items, storage.value_type))
        return pa.LargeListArray.from_arrays(ends, lists.values, mask=cells.is_null()) if cells.null_count else lists
    if not types.is_string(storage):
        return cells.cast(storage)
    if types.is_dictionary(cells.type):
        return _as_type(cells.dictionary, storage).take(cells.indices)
    return text_of(cells).cast(pa.string()) if has_text(cells.type) else pa.nulls(len(cells), storage)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class JoinedSource(Source):
    """Files of one format, one after the other.

    Attributes:
        files: the files.
        folders: for each file, the values that its folders give to columns (`year=2024`).
        partial: columns that only some pieces have, each with the name of a file that lacks it.
    """

    files: tuple[Source, ...]
    folders: tuple[Mapping[str, str | None], ...]
    partial: Mapping[str, str]

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source of these columns, if every piece has them."""
        for name, kind in columns.items():
            if name in self.partial and not isinstance(kind, Identifier):
                raise SchemaError(
                    f"Expected every file of {self.label} to have column {name!r}, got none in {self.partial[name]}."
                )
        pieces = [piece.under(columns) for piece in self.files]
        return self._of(pieces, {name for name, kind in columns.items() if isinstance(kind, ItemSet)})

    def read_as(self, form: CsvForm) -> Source:
        """Return the source of CSV text in a declared form."""
        return self._of([piece.read_as(form) for piece in self.files])

    def found_form(self) -> CsvForm:
        """Return the form of the first file. Not private."""
        return self.files[0].found_form()

    def measured(self) -> Source:
        """Return the source with the storage types that its records tell. Not private."""
        return self._of([piece.measured() for piece in self.files])

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the records of all files that are not read, or not whole. Not private."""
        for file in self.files:
            yield from (f"{file.label}, {text}" for text in file.notes(what))

    def size(self) -> int:
        """Bytes of all files."""
        return sum(piece.size() for piece in self.files)

    @property
    def in_files(self) -> bool:
        """Whether other processes can read all files."""
        return all(file.in_files for file in self.files)

    def with_dictionaries(self) -> Source:
        """Return the source whose text may come dictionary-encoded."""
        return replace(self, files=tuple(file.with_dictionaries() for file in self.files))

    def pieces(self) -> Sequence[Source]:
        """Return a source for every piece of every file, with the columns and types of all."""
        return tuple(
            replace(self, files=(piece,), folders=(folder,))
            for file, folder in zip(self.files, self.folders, strict=True)
            for piece in file.pieces()
        )

    def _of(self, pieces: Sequence[Source], lists: Container[str] = ()) -> Source:
        if not lists and all(piece is own for piece, own in zip(pieces, self.files, strict=True)):
            return self
        storage, partial = _met(pieces, self.folders, self.label, lists)
        return replace(self, files=tuple(pieces), storage=storage, partial=partial)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self._tables(columns), columns, self.chunk_rows)

    def _tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        for piece, folder in zip(self.files, self.folders, strict=True):
            own = [name for name in columns if name not in folder]
            for chunk in piece.chunks(own or piece.names[:1]):
                yield pa.table({name: self._column(name, chunk, folder) for name in columns})

    def _column(self, name: str, chunk: Chunk, folder: Mapping[str, str | None]) -> pa.Array | pa.ChunkedArray:
        if name in folder:
            return pa.repeat(pa.scalar(folder[name], pa.string()), chunk.n_rows)
        column = chunk.columns[name]
        return _as_type(joined(column), self.storage[name]) if isinstance(column, np.ndarray) else column


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
        DataError: the pieces are of several formats or partitions, have no column in common, or images in some only.
    """
    if len({piece.container for piece in pieces}) > 1:
        raise DataError(f"Expected the files of {label} to have one format, got several. Name those of one.")
    if len({frozenset(folder) for folder in folders}) > 1:
        raise DataError(f"Expected every file of {label} to lie in folders of the same columns, such as year=2024.")
    storage, partial = _met(pieces, folders, label)
    kind = JoinedEntries if all(piece.counts_entries for piece in pieces) else JoinedSource
    return kind(
        label=label,
        container=pieces[0].container,
        storage=storage,
        chunk_rows=chunk_rows,
        missing_as_text=pieces[0].missing_as_text,
        files=tuple(pieces),
        folders=tuple(folders),
        partial=partial,
    )


def _met(
    pieces: Sequence[Source], folders: Sequence[Mapping[str, str | None]], label: str, lists: Container[str] = ()
) -> tuple[dict[str, pa.DataType], dict[str, str]]:
    """Return the types of the columns that all pieces have, those of `lists` sets, and who lacks the others."""
    storage: dict[str, pa.DataType] = {}
    partial: dict[str, str] = {}
    for name in dict.fromkeys(name for piece in pieces for name in piece.storage):
        lacking = next((piece.label for piece in pieces if name not in piece.storage), None)
        if lacking is not None:
            partial[name] = lacking
            continue
        storage[name] = pieces[0].storage[name]
        for piece in pieces[1:]:
            met = common_type(storage[name], piece.storage[name], lists=name in lists)
            if met is None:
                raise DataError(
                    f"Expected column {name!r} to hold images in all files of {label} or in none, got both. Name those "
                    "of one kind."
                )
            storage[name] = met
    storage |= dict.fromkeys(folders[0], pa.string())
    if not storage and partial:
        raise DataError(f"Expected the files of {label} to have a column in common, got none.")
    return storage, {name: file for name, file in partial.items() if name not in storage}
