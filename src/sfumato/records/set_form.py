"""Synthetic sets in the form the records came in: a list column, or a long table of one row per item."""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sfumato.columns.kinds import ColumnKind
from sfumato.columns.set_codes import list_parts
from sfumato.columns.set_kind import ItemSet
from sfumato.errors import SchemaError
from sfumato.io.set_arrays import N_ITEMS
from sfumato.schema.schema import Schema

_FIRST_ID = 1
_MOST_IDS = 2**31 - 1


def as_written(table: pa.Table, schema: Schema, storage: Mapping[str, pa.DataType], start: int) -> pa.Table:
    """Return decoded records as samples are written.

    Sets of a long table become rows of a number and an item, so that an empty set has no row.

    Args:
        table: the released columns; sets as lists.
        schema: of the release.
        storage: types of the columns of samples; of sets, the type of the lists.
        start: place of the first record among all of the sample.
    """
    for place, name in enumerate(table.column_names):
        kind = schema.columns[name]
        if not isinstance(kind, ItemSet):
            continue
        if kind.id is not None:
            return _long(name, kind.id, table.column(name), storage[kind.id], start)
        field = pa.field(name, table.schema.field(place).type, metadata={N_ITEMS: str(_n_items(kind))})
        table = table.set_column(place, field, table.column(name))
    return table


def written_types(schema: Schema, storage: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Return the types of the columns of samples, where `storage` has those of lists."""
    return {name: kind.value_type if _is_long(schema.columns[name]) else kind for name, kind in storage.items()}


def _is_long(kind: ColumnKind) -> bool:
    return isinstance(kind, ItemSet) and kind.id is not None


def _n_items(kind: ItemSet) -> int:
    """Return how many columns the items need as a matrix: 1 more than the largest, where they are numbers."""
    if kind.items is None:
        return kind.size
    labels = (*kind.items, *(() if kind.other is None else (kind.other,)))
    return max((int(label) + 1 for label in labels if label.isdecimal()), default=0)


def _long(name: str, id_column: str, column: pa.ChunkedArray, ids: pa.DataType, start: int) -> pa.Table:
    lengths, items = list_parts(column.combine_chunks())
    owners = np.repeat(np.arange(lengths.size) + start + _FIRST_ID, lengths)
    return pa.table({id_column: number_ids(pa.array(owners), ids), name: items})


def check_ids(storage: pa.DataType) -> None:
    """Refuse a type of ids that cannot number the sets of a sample.

    Raises:
        SchemaError: names the type.
    """
    number_ids(pa.array([_MOST_IDS]), storage)


def number_ids(numbers: pa.Array, storage: pa.DataType) -> pa.Array:
    """Return whole numbers in a storage type of ids.

    Raises:
        SchemaError: the type holds no numbers.
    """
    values = storage.value_type if isinstance(storage, pa.DictionaryType) else storage
    made = None
    try:
        text = pa.types.is_binary(values) or pa.types.is_large_binary(values)
        made = numbers.cast(pa.string()).cast(values) if text else numbers.cast(values)
        made = made.dictionary_encode().cast(storage) if isinstance(storage, pa.DictionaryType) else made
    except pa.ArrowException:
        made = None
    if made is None:
        raise SchemaError(
            f"Expected an id column of numbers or text wide enough for the samples, got type {storage}. Store it as "
            "text or 64-bit integers."
        )
    return made
