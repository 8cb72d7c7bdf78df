"""Long tables of sets: one row per item, and a column that says whose item it is.

All rows of one id are one record, wherever they lie, in the order of the table; rows without an id are left out. The
rows of an id may be scattered over the whole file, so it is read several times, each time for a part of the ids, and
only the items of these are in memory. How often follows from the size of the file; it changes the order of the
records, on which nothing depends, and the time, which is outside the guarantee.

Synthetic sets in the form the records came in: a list column, or a long table of one row per item.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.cells import joined
from sfumato.columns.sets import ItemSet, list_parts, plain_list_type
from sfumato.errors import SchemaError
from sfumato.io.baskets import N_ITEMS
from sfumato.io.chunks import Chunk, Column, Note, Source
from sfumato.io.joined import of_one_type
from sfumato.io.picture_cells import with_pictures
from sfumato.records.units import unit_names
from sfumato.schema.schema import Schema

_PART_BYTES = 1 << 26  # of a file; its cells take several times that in memory


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LongSource(Source):
    """The sets of a long table; its storage says that the column of items holds lists.

    Attributes:
        rows: the table itself.
        id_column: whose item a row holds.
        item_column: the item.
        missing: text that stands for no id.
        exact: whether ids are compared letter by letter.
        parts: how often the table is read, each time for other ids.
    """

    rows: Source
    id_column: str
    item_column: str
    missing: tuple[str, ...]
    exact: bool = False
    parts: int = 1

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the rows that are not read, or not whole. Not private."""
        return self.rows.notes(what)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        for part in range(self.parts):
            yield from self._sets(part, columns)

    def _sets(self, part: int, columns: tuple[str, ...]) -> Iterator[Chunk]:
        """Yield the sets of the ids of one part."""
        ids, items = self._part(part)
        # which id each row has, counted in the order of their first rows, and the first row of each
        owners = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        rank = np.unique(owners, return_index=True)[1]
        order = np.argsort(owners, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=rank.size))])
        values = items.take(pa.array(order)) if order.size else items
        for start in range(0, rank.size, self.chunk_rows):
            stop = min(start + self.chunk_rows, rank.size)
            low, high = offsets[start], offsets[stop]
            lists = pa.LargeListArray.from_arrays(
                pa.array(offsets[start : stop + 1] - low), values.slice(low, high - low)
            )
            cells: dict[str, Column] = {
                self.id_column: pa.chunked_array([ids.take(pa.array(rank[start:stop]))]),
                self.item_column: pa.chunked_array([lists]),
            }
            yield Chunk(columns={name: cells[name] for name in columns}, n_rows=stop - start)

    def _part(self, part: int) -> tuple[pa.Array, pa.Array]:
        """Return ids and items of the rows of one part, as clean names and as stored."""
        ids: list[pa.Array] = []
        items: list[pa.Array] = []
        for chunk in self.rows.chunks([self.id_column, self.item_column]):
            names = unit_names(joined(chunk.columns[self.id_column]), self.missing, exact=self.exact)
            keep = names.is_valid()
            if self.parts > 1:
                keep = pc.and_(keep, pa.array(_parts_of(names, self.parts) == part))  # type: ignore[attr-defined]
            ids.append(names.filter(keep))
            items.append(joined(chunk.columns[self.item_column]).filter(keep))
        if not ids:
            return pa.array([], pa.large_string()), joined(pa.chunked_array([], self.rows.storage[self.item_column]))
        return pa.concat_arrays(ids), pa.concat_arrays(of_one_type(items))


def as_records(source: Source, schema: Schema) -> Source:
    """Return the source of the records that a schema describes: its declared storage, and long tables as sets.

    Raises:
        SchemaError: the source cannot hold such columns.
    """
    source = with_pictures(source.under(schema.columns), schema.columns)
    for name, kind in schema.of_kind(ItemSet).items():
        if kind.id is not None:
            return _grouped(source, name, kind.id, schema)
    return source


def _grouped(source: Source, name: str, id_column: str, schema: Schema) -> Source:
    if isinstance(source, LongSource) or not {name, id_column} <= source.storage.keys():
        return source  # what is absent is named where columns are checked
    for column, what in ((id_column, "names or numbers"), (name, "one item per row")):
        kind = source.storage[column]
        if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise SchemaError(
                f"Expected column {column!r} of a table with one row per item to hold {what}, got cells of type "
                f"{kind}. If a cell holds a whole set, leave out `id`."
            )
    storage = {**source.storage, name: plain_list_type(pa.list_(source.storage[name]))}
    return LongSource(
        **source.outline(storage=storage),
        rows=source,
        id_column=id_column,
        item_column=name,
        missing=(*schema.missing_in(source, id_column), ""),
        exact=schema.is_exact(name),
        parts=1 + source.size() // _PART_BYTES,
    )


def _parts_of(names: pa.Array, parts: int) -> np.ndarray:
    """Return the part that each id is in, shape (n,)."""
    coded = names.dictionary_encode()
    of_name = [zlib.crc32(repr(name).encode("utf-8", "replace")) % parts for name in coded.dictionary.to_pylist()]
    return np.array([*of_name, 0])[
        coded.indices.fill_null(len(of_name)).to_numpy(zero_copy_only=False).astype(np.int64)
    ]


_FIRST_ID = 1
MOST_IDS = 2**31 - 1


def as_written(table: pa.Table, schema: Schema, storage: Mapping[str, pa.DataType], start: int) -> pa.Table:
    """Return decoded records as samples are written.

    Sets of a long table become rows of a number and an item, so that an empty set has no row.

    Args:
        table: the released columns; sets as lists.
        schema: of the release.
        storage: types of the columns of samples; of sets, the type of the lists.
        start: place of the first record among all of the sample.
    """
    for name, kind in schema.of_kind(ItemSet).items():
        if kind.id is not None:
            lengths, items = list_parts(table.column(name).combine_chunks())
            owners = np.repeat(np.arange(lengths.size) + start + _FIRST_ID, lengths)
            return pa.table({kind.id: number_ids(pa.array(owners), storage[kind.id]), name: items})
        if not kind.is_listed:
            continue
        place = table.column_names.index(name)
        field = pa.field(name, table.schema.field(place).type, metadata={N_ITEMS: str(_n_items(kind))})
        table = table.set_column(place, field, table.column(name))
    return table


def written_types(schema: Schema, storage: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Return the types of the columns of samples, where `storage` has those of lists."""
    long = {name for name, kind in schema.of_kind(ItemSet).items() if kind.id is not None}
    return {name: kind.value_type if name in long else kind for name, kind in storage.items()}


def _n_items(kind: ItemSet) -> int:
    """Return how many columns the items need as a matrix: 1 more than the largest, where they are numbers."""
    if kind.labels is None:
        return kind.size
    return max((int(label) + 1 for label in kind.labels if label.isdecimal()), default=0)


def number_ids(numbers: pa.Array, storage: pa.DataType) -> pa.Array:
    """Return whole numbers in a storage type of ids.

    Raises:
        SchemaError: the type holds no numbers.
    """
    values = storage.value_type if isinstance(storage, pa.DictionaryType) else storage
    with contextlib.suppress(pa.ArrowException):
        text = pa.types.is_binary(values) or pa.types.is_large_binary(values)
        ids = numbers.cast(pa.string()).cast(values) if text else numbers.cast(values)
        return ids.dictionary_encode().cast(storage) if isinstance(storage, pa.DictionaryType) else ids
    raise SchemaError(
        f"Expected an id column of numbers or text wide enough for the samples, got type {storage}. Store it as "
        "text or 64-bit integers."
    )
