"""One type for cells that lie in several: of files of one table, of batches, of the parts of a long table.

A file's type may follow from one of its cells, so types that differ are no fault: cells become text, each by itself,
and one that has none is missing, as it is in a file of that type alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import joined, plain, values_of
from sfumato.columns.sets import is_set_storage, list_parts
from sfumato.columns.storage import canonical_text, has_canonical_text
from sfumato.io.chunks import Column


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


def converted(column: Column, storage: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return a column in a type that `common_type` gave, cell by cell; what that type cannot say is missing."""
    if not isinstance(column, np.ndarray) and column.type == storage:
        return column
    return _as_type(joined(column), storage)


def _as_type(cells: pa.Array, storage: pa.DataType) -> pa.Array:
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
    return canonical_text(cells).cast(pa.string()) if has_canonical_text(cells.type) else pa.nulls(len(cells), storage)
