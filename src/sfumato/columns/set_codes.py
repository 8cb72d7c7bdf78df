"""Cells that hold sets of items ↔ codes of the public items, totally.

Any cell becomes a set within its domain: no value, a value that is no list, and a list of nothing known are the empty
set. What a cell becomes depends on that cell and on public facts alone.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NoReturn, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import dictionary_indices, is_text, plain, read_text, valid_mask, without_tokens
from sfumato.columns.kinds import Categorical, Integer
from sfumato.columns.levels import MISSING, UNKNOWN, canonical_text, decode_levels, find_levels, has_canonical_text
from sfumato.columns.levels import storage_fault as level_storage_fault
from sfumato.columns.set_kind import ItemSet
from sfumato.columns.storage import numeric_storage_fault, store_integer
from sfumato.errors import ConfigError

_WHOLE = r"^(?:0|[1-9][0-9]{0,8})$"
_EXACT_FLOAT16 = 2048


@final
class CodedSets:
    """n sets of item codes, one after the other; it shows nothing of them.

    Attributes:
        offsets: where each set begins, shape (n + 1,), int64, from 0.
        codes: the items of all sets, int32; within a set ascending, each once.
    """

    __slots__ = ("codes", "offsets")

    def __init__(self, offsets: np.ndarray, codes: np.ndarray) -> None:
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.codes = np.asarray(codes, dtype=np.int32)

    @classmethod
    def of(cls, owners: np.ndarray, codes: np.ndarray, n: int) -> CodedSets:
        """Return n sets from (owner, code) pairs that are sorted by owner."""
        counts = np.bincount(owners, minlength=n)
        return cls(np.concatenate([[0], np.cumsum(counts)]), codes)

    @classmethod
    def concatenate(cls, parts: Sequence[CodedSets]) -> CodedSets:
        """Return the sets of all parts in order."""
        lengths = np.concatenate([np.zeros(0, dtype=np.int64), *(part.lengths for part in parts)])
        codes = np.concatenate([np.zeros(0, dtype=np.int32), *(part.codes for part in parts)])
        return cls(np.concatenate([[0], np.cumsum(lengths)]), codes)

    @property
    def lengths(self) -> np.ndarray:
        """Number of items of each set, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> np.ndarray:
        """Which set each code belongs to, as long as `codes`."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, rows: np.ndarray | slice) -> CodedSets:
        """Return some of the sets: a slice, a mask of shape (n,), or places."""
        places = np.arange(len(self))[rows]
        lengths = self.lengths[places]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        starts = np.repeat(self.offsets[places] - offsets[:-1], lengths)
        return CodedSets(offsets, self.codes[starts + np.arange(offsets[-1])])

    def __repr__(self) -> str:
        return "CodedSets()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("CodedSets is not picklable or copyable: it holds records.")


def code_sets(kind: ItemSet, column: pa.Array | pa.ChunkedArray, *, missing: Sequence[str]) -> CodedSets:
    """Return the sets of a column.

    Privacy: none (pure function); set i depends on cell i alone.

    Args:
        kind: the declared kind.
        column: n cells of any Arrow type; lists hold sets, all else is the empty set.
        missing: text that stands for no item where items are stored as text.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return CodedSets.concatenate([_code_chunk(kind, chunk, missing) for chunk in chunks])


def decode_sets(kind: ItemSet, sets: CodedSets, storage: pa.DataType) -> pa.Array:
    """Return sets as lists of exactly the storage type, which `set_storage_fault` accepts."""
    items = store_items(kind, sets.codes, storage.value_type)
    if types.is_large_list(storage):
        return pa.LargeListArray.from_arrays(pa.array(sets.offsets), items, type=storage)
    return pa.ListArray.from_arrays(pa.array(sets.offsets.astype(np.int32)), items, type=storage)


def store_items(kind: ItemSet, codes: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return the items of codes in a storage type."""
    if kind.is_counted:
        return store_integer(codes.astype(np.int64), np.zeros(codes.size, dtype=bool), storage)
    return decode_levels(_levels(kind), codes, storage)


def set_storage_fault(kind: ItemSet, storage: pa.DataType) -> str | None:
    """Return why sets cannot be stored in a type, or None if they can."""
    if not is_set_storage(storage):
        return (
            f"Expected lists of items for kind set, got type {storage}. Store the sets as a list column; for a table "
            "with one row per item, declare `id:`, the column that says whose item it is."
        )
    return item_storage_fault(kind, storage.value_type)


def item_storage_fault(kind: ItemSet, storage: pa.DataType) -> str | None:
    """Return why the items cannot be stored in a type, or None if they can."""
    if not kind.is_counted:
        return level_storage_fault(_levels(kind), storage)
    values = storage.value_type if types.is_dictionary(storage) else storage
    if types.is_boolean(values) or (types.is_float16(values) and kind.size > _EXACT_FLOAT16):
        return f"Expected items that type {storage} can hold, got n_items={kind.size}. Store them as integers."
    return numeric_storage_fault(Integer(lower=0, upper=kind.size - 1), storage)


def is_set_storage(storage: pa.DataType) -> bool:
    """Whether cells of a type are lists of any length."""
    return types.is_list(storage) or types.is_large_list(storage)


def plain_list_type(storage: pa.DataType) -> pa.DataType:
    """Return the list type of the same items, whatever its field was called."""
    return pa.large_list(storage.value_type) if types.is_large_list(storage) else pa.list_(storage.value_type)


def find_items(kind: ItemSet, values: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return the int32 code of each item, or UNKNOWN, or MISSING; total.

    Where Arrow refuses some values, they are halved until they stand alone: those are missing.
    """
    try:
        return _find(kind, values, missing)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  whatever the text of the exception, it may hold a cell
        pass
    if len(values) <= 1:
        return np.full(len(values), MISSING, dtype=np.int32)
    middle = len(values) // 2
    halves = values.slice(0, middle), values.slice(middle)
    return np.concatenate([find_items(kind, half, missing) for half in halves])


def known_codes(kind: ItemSet, found: np.ndarray) -> np.ndarray:
    """Return what `find_items` found with UNKNOWN made `other`, if there is one, and else negative."""
    if kind.other is None:
        return found
    labels = None if kind.items is None else (*kind.items, kind.other)
    code = int(kind.other) if labels is None else labels.index(kind.other)
    return np.where(found == UNKNOWN, np.int32(code), found)


def list_parts(cells: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the length of each list, 0 where there is none, and the items of all of them."""
    cells = plain(cells)
    if not is_set_storage(cells.type):
        return np.zeros(len(cells), dtype=np.int64), pa.nulls(0)
    lengths = pc.list_value_length(cells).cast(pa.int64()).fill_null(0)
    return lengths.to_numpy(zero_copy_only=False), cells.flatten()


def _distinct(owners: np.ndarray, codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return owners and codes without those that came before in the same set, in their order."""
    _, first = np.unique(owners * np.int64(size) + codes, return_index=True)
    first.sort()
    return owners[first], codes[first]


def _code_chunk(kind: ItemSet, cells: pa.Array, missing: Sequence[str]) -> CodedSets:
    lengths, values = list_parts(cells)
    n = lengths.size
    codes = known_codes(kind, find_items(kind, values, missing))
    owners = np.repeat(np.arange(n), lengths)
    owners, codes = _distinct(owners[codes >= 0], codes[codes >= 0], kind.size)
    starts = np.searchsorted(owners, np.arange(n))
    kept = np.arange(owners.size) - starts[owners] < kind.max_length
    owners, codes = owners[kept], codes[kept]
    return CodedSets.of(owners, codes[np.lexsort((codes, owners))], n)


def _find(kind: ItemSet, values: pa.Array, missing: Sequence[str]) -> np.ndarray:
    if kind.items is not None:
        return find_levels(_levels(kind), values, missing)
    values = plain(values)
    if types.is_dictionary(values.type):
        found = _find(kind, values.dictionary, missing)
        return np.append(found, np.int32(MISSING))[dictionary_indices(values)]
    valid = valid_mask(values)
    if types.is_integer(values.type):
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        inside = (numbers >= 0) & (numbers < kind.size)
        found = np.where(inside, numbers, UNKNOWN).astype(np.int32)
        found[~valid] = MISSING
        return found
    if is_text(values.type):
        return _find_whole(without_tokens(read_text(values), missing), kind.size)
    if not has_canonical_text(values.type):
        return np.where(valid, UNKNOWN, MISSING).astype(np.int32)
    coded = values.dictionary_encode()
    found = _find_whole(canonical_text(coded.dictionary), kind.size)
    return np.append(found, np.int32(MISSING))[dictionary_indices(coded)]


def _find_whole(text: pa.Array, size: int) -> np.ndarray:
    is_whole = pc.match_substring_regex(text, _WHOLE)
    numbers = pc.if_else(is_whole, text, pa.scalar("-1", text.type)).cast(pa.int64())
    found = numbers.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int32)
    found[found >= size] = UNKNOWN
    return found


@lru_cache(maxsize=64)
def _levels(kind: ItemSet) -> Categorical:
    if kind.items is None:
        raise ConfigError("Expected listed items, got counted ones.")
    return Categorical(categories=kind.items, other=kind.other)
