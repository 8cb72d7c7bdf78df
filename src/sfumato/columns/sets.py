"""Columns whose cells are sets of items: baskets, visited places, diagnoses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, NoReturn, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.canonical import canonical
from sfumato.columns.cells import (
    is_scalar,
    is_text,
    looked_up,
    plain,
    read_text,
    total,
    valid_mask,
    values_of,
    without_tokens,
)
from sfumato.columns.facts import flag, label_text, labels_text, shown, whole_number
from sfumato.columns.kind import ColumnKind, Fault, refuse, settle
from sfumato.columns.levels import MISSING, UNKNOWN, Categorical
from sfumato.columns.numbers import Integer
from sfumato.columns.storage import as_dictionary, from_text, has_text, text_of

_WHOLE = r"^(?:0|[1-9][0-9]{0,8})$"
_EXACT_FLOAT16 = 2048
_LONGEST_SEPARATOR = 8


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSet(ColumnKind):
    """A set of items out of a closed list, at most `max_length` of them.

    A cell's items are taken in its own order: an item outside the list becomes `other` or is left out, an item that
    came before is left out, and of what remains the first `max_length` are kept. No other record has a part in it.

    Attributes:
        max_length: the most items of one set that are used.
        items: the items, as canonical text; or
        n_items: their number, where they are the whole numbers 0, 1, …, n_items − 1.
        other: the item that stands for every item outside the list; among the items or, if these are listed, one more.
        id: column of a long table, of one row per item, that says whose set a row belongs to; None where a cell holds
            a whole set.
        separator: what stands between the items of a cell of text; None where sets are lists.
        exact: whether items, and the ids of a long table, were text from the start: see `Categorical`.

    Example:
        >>> ItemSet(items=("bread", "milk"), other="else", max_length=5).size
        3
    """

    name: ClassVar[str] = "set"
    holds: ClassVar[str] = "sets of items"

    max_length: int
    items: tuple[str, ...] | None = None
    n_items: int | None = None
    other: str | None = None
    id: str | None = None
    separator: str | None = None
    exact: bool = False

    MOST_ITEMS: ClassVar[int] = 2**24

    def __post_init__(self) -> None:
        faults: list[str] = []
        if (self.items is None) == (self.n_items is None):
            faults.append(f"Expected either items or n_items, got {'neither' if self.items is None else 'both'}.")
        items = None
        if self.items is not None:
            items = labels_text("items", "an item", self.items, faults, hint="For 0 to n - 1 declare n_items.")
            if not faults and not 1 <= len(items) <= self.MOST_ITEMS:
                faults.append("Expected 1 to 2^24 items.")
        n_items = None if self.n_items is None else whole_number("n_items", self.n_items, faults)
        max_length = whole_number("max_length", self.max_length, faults)
        other = None if self.other is None else label_text("other", self.other, faults)
        if self.id is not None and (not isinstance(self.id, str) or not self.id):
            faults.append(f"Expected id to name a column, got id={shown(self.id)}.")
        if not faults:
            _check_sizes(n_items, max_length, other, faults)
        if not faults and self.separator is not None:
            _check_separator(self.separator, self.id, (*(items or ()), other or ""), faults)
        exact = flag(self.exact, faults, "exact")
        refuse(faults)
        settle(self, items=items, n_items=n_items, max_length=max_length, other=other, exact=exact)
        if items is not None:
            _levels(self)  # which refuses items that cannot be told apart

    @property
    def is_counted(self) -> bool:
        """Whether the items are whole numbers from 0."""
        return self.n_items is not None

    @property
    def is_listed(self) -> bool:
        """Whether a cell is a list of items: no text, and no item of a long table."""
        return self.id is None and self.separator is None

    @property
    def size(self) -> int:
        """Number of codes of items, `other` included."""
        return self.n_items or len(self.labels or ())

    @property
    def longest(self) -> int:
        """The most items that a set can hold."""
        return min(self.max_length, self.size)

    @property
    def cell_bytes(self) -> int:
        """The longest items, as many as a set can hold; of items that are numbers, the sampler's width is the bound."""
        sizes = sorted((len(text.encode("utf-8", "surrogatepass")) for text in self.labels or ()), reverse=True)
        between = len((self.separator or "").encode())
        return 64 + sum(sizes[: self.longest]) + between * self.longest

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The items in code order, `other` included; None where they are whole numbers from 0."""
        if self.items is None or self.other is None or self.other in self.items:
            return self.items
        return (*self.items, self.other)

    def code(self, column: pa.Array | pa.ChunkedArray | np.ndarray, *, missing: Sequence[str]) -> CodedSets:
        """Return the sets of n cells of any type; lists hold sets, and text with a separator; all else is empty.

        No value, a value that is no list, and a list of nothing known are the empty set.
        """
        cells = pa.array(column) if isinstance(column, np.ndarray) else column
        chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
        return CodedSets.concatenate([_code_chunk(self, chunk, missing) for chunk in chunks])

    def decode(self, codes: CodedSets, storage: pa.DataType) -> pa.Array:
        """Return sets as lists of exactly the storage type, or as text with the separator between items."""
        if self.separator is not None and not is_set_storage(storage):
            lists = replace(self, separator=None).decode(codes, pa.list_(pa.string()))
            text = pc.binary_join(lists, self.separator)
            if types.is_dictionary(storage):
                return as_dictionary(from_text(text, storage.value_type), storage)
            return from_text(text, storage)
        if self.is_counted:
            whole, absent = codes.codes.astype(np.int64), np.zeros(codes.codes.size, dtype=bool)
            items = _numbers(self).to_storage(whole, absent, storage.value_type)
        else:
            items = _levels(self).decode(codes.codes, storage.value_type)
        if types.is_large_list(storage):
            return pa.LargeListArray.from_arrays(pa.array(codes.offsets), items, type=storage)
        return pa.ListArray.from_arrays(pa.array(codes.offsets.astype(np.int32)), items, type=storage)

    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return why sets cannot be stored in a type, or None if they can."""
        if self.separator is not None and is_text(storage.value_type if types.is_dictionary(storage) else storage):
            return None
        if not is_set_storage(storage):
            return (
                f"Expected lists of items for kind set, got type {storage}. Store the sets as a list column; for a "
                "table with one row per item, declare `id:`, the column that says whose item it is; for text, declare "
                "`separator:`, what stands between items."
            )
        if not self.is_counted:
            return _levels(self).storage_fault(storage.value_type)
        items = storage.value_type
        values = items.value_type if types.is_dictionary(items) else items
        if types.is_boolean(values) or (types.is_float16(values) and self.size > _EXACT_FLOAT16):
            return f"Expected items that type {items} can hold, got n_items={self.size}. Store them as integers."
        return _numbers(self).storage_fault(items)

    def reading_fault(self, storage: pa.DataType) -> str | None:
        """Return why no cell of a type can be a set."""
        if is_set_storage(storage) or types.is_null(values_of(storage)):  # no cell has a value: one may bring the type
            return None
        if self.separator is not None and is_scalar(storage):
            return None
        return self.storage_fault(storage)

    @property
    def sample_type(self) -> pa.DataType:
        """Lists of whole numbers, or of what the labels are; text, if a separator is declared."""
        if self.separator is not None:
            return pa.string()
        return pa.list_(pa.int64() if self.is_counted else _levels(self).sample_type)

    def problems(
        self, column: pa.ChunkedArray | np.ndarray, missing: Sequence[str]
    ) -> Iterator[tuple[Fault, pa.Array]]:
        """Yield cells without a set, items outside the list, and sets that are too long."""
        for chunk in () if isinstance(column, np.ndarray) else column.chunks:
            cells = plain(chunk)
            _, items = _parts(self, cells)
            whole = replace(self, max_length=self.size).code(cells, missing=missing)
            valid = valid_mask(cells)
            if self.separator is not None and is_text(cells.type):
                tokens = [token for token in missing if token]  # an empty text is the empty set
                valid = valid_mask(without_tokens(read_text(cells), tokens))
            yield "missing", cells.filter(pa.array(~valid))
            yield "unknown", items.filter(pa.array(find_items(self, items, missing) == UNKNOWN))
            yield "clamped", cells.filter(pa.array(whole.lengths > self.max_length))

    def becomes(self, fault: Fault) -> str:
        """Say what a fit makes of a set with a fault."""
        unknown = "left out" if self.other is None else f"the item {self.other!r}"
        return {"missing": "the empty set", "unknown": unknown}.get(fault, f"the first {self.max_length} items")


def _check_sizes(n_items: int | None, max_length: int, other: str | None, faults: list[str]) -> None:
    if n_items is not None and not 1 <= n_items <= ItemSet.MOST_ITEMS:
        faults.append(f"Expected n_items between 1 and 2^24, got {n_items=}.")
    if max_length < 1:
        faults.append(f"Expected max_length of at least 1, got {max_length=}.")
    if n_items is not None and other is not None and not (other.isdecimal() and int(other) < n_items):
        faults.append(f"Expected other to be one of the items 0 to n_items - 1, got other={shown(other)}.")
    if n_items is not None and other is not None and not faults and other != str(int(other)):
        faults.append(f"Expected other to be a plain whole number, got other={shown(other)}.")


def _check_separator(separator: object, id_column: str | None, items: Sequence[str], faults: list[str]) -> None:
    if not isinstance(separator, str) or not 1 <= len(separator) <= _LONGEST_SEPARATOR:
        faults.append(f"Expected separator to be text of 1 to {_LONGEST_SEPARATOR} signs, got {shown(separator)}.")
    elif any(sign.isdigit() for sign in separator):
        faults.append(f"Expected separator without digits, got {separator!r}.")
    elif id_column is not None:
        faults.append("Expected either separator or id, got both: with an id, a cell is one item.")
    elif any(_mark(separator) in item for item in items):
        faults.append(f"Expected no item to hold the separator {_mark(separator)!r}, got one that does.")


def _mark(separator: str) -> str:
    """Return the mark that cells are cut at: blanks around it are those around items, which do not count."""
    return separator.strip() or separator


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
    return total(lambda part: _find(kind, part, missing), values, lambda n: np.full(n, MISSING, dtype=np.int32))


def list_parts(cells: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the length of each list, 0 where there is none, and the items of all of them."""
    cells = plain(cells)
    if not is_set_storage(cells.type):
        return np.zeros(len(cells), dtype=np.int64), pa.nulls(0)
    lengths = pc.list_value_length(cells).cast(pa.int64()).fill_null(0)
    return lengths.to_numpy(zero_copy_only=False), cells.flatten()


def _parts(kind: ItemSet, cells: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the number of items in each cell, and the items of all of them: of lists, and of text that is split."""
    cells = plain(cells)
    if kind.separator is None or is_set_storage(cells.type):
        return list_parts(cells)
    if types.is_dictionary(cells.type):
        cells = plain(cells).dictionary_decode()
    if not is_scalar(cells.type):
        return list_parts(cells)
    # a cell is one value to the program that wrote it, even where its text has the separator in it
    texts = canonical(text_of(cells), exact=kind.exact)
    lengths, items = list_parts(pc.split_pattern(texts, _mark(kind.separator)))
    return lengths, pc.utf8_trim_whitespace(items)


def _code_chunk(kind: ItemSet, cells: pa.Array, missing: Sequence[str]) -> CodedSets:
    lengths, values = _parts(kind, cells)
    n = lengths.size
    codes = find_items(kind, values, missing)
    if kind.other is not None:
        other = int(kind.other) if kind.labels is None else kind.labels.index(kind.other)
        codes = np.where(codes == UNKNOWN, np.int32(other), codes)
    owners = np.repeat(np.arange(n), lengths)[codes >= 0]
    codes = codes[codes >= 0]
    # without those that came before in the same set
    first = np.sort(np.unique(owners * np.int64(kind.size) + codes, return_index=True)[1])
    owners, codes = owners[first], codes[first]
    starts = np.searchsorted(owners, np.arange(n))
    within = np.arange(owners.size) - starts[owners] < kind.max_length
    owners, codes = owners[within], codes[within]
    return CodedSets.of(owners, codes[np.lexsort((codes, owners))], n)


def _find(kind: ItemSet, values: pa.Array, missing: Sequence[str]) -> np.ndarray:
    if kind.items is not None:
        return _levels(kind).find(values, missing)
    values = plain(values)
    if types.is_dictionary(values.type):
        return looked_up(_find(kind, values.dictionary, missing), values, MISSING)
    valid = valid_mask(values)
    if types.is_integer(values.type):
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        inside = (numbers >= 0) & (numbers < kind.size)
        codes = np.where(inside, numbers, UNKNOWN).astype(np.int32)
        codes[~valid] = MISSING
        return codes
    if is_text(values.type):
        return _find_whole(without_tokens(read_text(values), missing), kind.size)
    if not has_text(values.type):
        return np.where(valid, UNKNOWN, MISSING).astype(np.int32)
    coded = values.dictionary_encode()
    return looked_up(_find_whole(text_of(coded.dictionary), kind.size), coded, MISSING)


def _find_whole(text: pa.Array, size: int) -> np.ndarray:
    names = pc.coalesce(canonical(text), text)  # a number of 2^53 or more is none of the items
    is_whole = pc.match_substring_regex(names, _WHOLE)
    numbers = pc.if_else(is_whole, names, pa.scalar("-1", names.type)).cast(pa.int64())
    codes = numbers.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int32)
    codes[codes >= size] = UNKNOWN
    return codes


@lru_cache(maxsize=64)
def _levels(kind: ItemSet) -> Categorical:
    assert kind.items is not None, "counted items are no labels"
    return Categorical(categories=kind.items, other=kind.other, exact=kind.exact)


@lru_cache(maxsize=64)
def _numbers(kind: ItemSet) -> Integer:
    return Integer(lower=0, upper=kind.size - 1)
