"""Cells of categorical, ordinal and boolean columns to level codes and back.

A cell is first given its canonical text (`1` for the integer 1 and the float 1.0, `true` for a
boolean), so one list of labels describes a column however it is stored.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import dictionary_indices, is_bytes, is_text, plain, read_text, valid_mask
from sfumato.columns.dates import wall_clock_text
from sfumato.columns.facts import canonical_number, shown
from sfumato.columns.kinds import Boolean, LevelKind, Ordinal, level_labels, n_levels
from sfumato.errors import SchemaError

UNKNOWN, MISSING = -1, -2
"""Marks of `find_levels` for a value that is no label, and for no value at all."""

_WHOLE = r"^(0|-?[1-9][0-9]*)\.0+$"

_TRUE = ("true", "yes", "y", "t", "1")
_FALSE = ("false", "no", "n", "f", "0")


def missing_code(kind: LevelKind) -> int:
    """Return the code of a missing cell: the missing level, else `other`, else the fallback."""
    if kind.nullable:
        return n_levels(kind) - 1
    return _other_code(kind, _fallback_code(kind))


def unknown_code(kind: LevelKind) -> int:
    """Return the code of an undeclared value: `other`, else missing, else the fallback."""
    return _other_code(kind, missing_code(kind))


def code_levels(kind: LevelKind, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return the int32 level code of each cell of a column stored in any type."""
    places = find_levels(kind, cells, missing)
    places[places == UNKNOWN] = unknown_code(kind)
    places[places == MISSING] = missing_code(kind)
    return places


def find_levels(kind: LevelKind, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return for each cell the int32 code of its label, or UNKNOWN, or MISSING."""
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        found = find_levels(kind, cells.dictionary, missing)
        return np.append(found, np.int32(MISSING))[dictionary_indices(cells)]
    if is_text(storage):
        return _find_written(kind, read_text(cells), missing)
    if not has_canonical_text(storage):
        return np.where(valid_mask(cells), UNKNOWN, MISSING).astype(np.int32)
    coded = cells.dictionary_encode()
    found = _find_text(kind, canonical_text(coded.dictionary), ())
    return np.append(found, np.int32(MISSING))[dictionary_indices(coded)]


def decode_levels(kind: LevelKind, codes: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return the labels of codes in exactly the storage type; the missing level is null."""
    if types.is_string_view(storage) or types.is_binary_view(storage):
        base = pa.string() if types.is_string_view(storage) else pa.binary()
        return decode_levels(kind, codes, base).cast(storage)  # Arrow takes nothing from a view
    labels = stored_labels(kind, storage.value_type if types.is_dictionary(storage) else storage)
    whole = np.clip(np.asarray(codes).astype(np.int64), 0, n_levels(kind) - 1)
    places = pa.array(whole, mask=whole >= len(labels))
    if not types.is_dictionary(storage):
        return labels.take(places)
    indices = places.cast(storage.index_type)
    return pa.DictionaryArray.from_arrays(indices, labels, ordered=storage.ordered)


@lru_cache(maxsize=256)
def stored_labels(kind: LevelKind, storage: pa.DataType) -> pa.Array:
    """Return the labels of a kind as values of a storage type that `storage_fault` accepts."""
    stored = _stored(_label_texts(kind, storage), storage)
    if stored is None:
        raise SchemaError(storage_fault(kind, storage))
    return stored


def storage_fault(kind: LevelKind, storage: pa.DataType) -> str | None:
    """Return why the labels of a kind cannot be stored in a type, or None if they can."""
    values = storage
    if types.is_dictionary(storage):
        values = storage.value_type
        index = storage.index_type
        capacity = 2 ** (index.bit_width - types.is_signed_integer(index))
        if len(level_labels(kind)) > capacity:
            return (
                f"Expected at most {capacity} labels for type {storage}, "
                f"got {len(level_labels(kind))}. Store the column as plain text."
            )
    unfit = _first_unfit(kind, values)
    if unfit is None:
        return None
    return (
        f"Expected labels that type {storage} can hold, got {shown(unfit)}. "
        "Declare a label of that type, or store the column as text."
    )


def _first_unfit(kind: LevelKind, storage: pa.DataType) -> str | None:
    """Return the first label that does not come back from a storage type as itself."""
    labels, texts = level_labels(kind), _label_texts(kind, storage)
    stored = _stored(texts, storage)
    if stored is None:
        alone = (label for label, t in zip(labels, texts, strict=True) if not _stored((t,), storage))
        return next(alone, labels[0])
    back = find_levels(kind, stored, ())
    wrong = np.flatnonzero(back != np.arange(len(back)))
    return labels[int(wrong[0])] if wrong.size else None


def _stored(texts: Sequence[str], storage: pa.DataType) -> pa.Array | None:
    """Return texts as values of a type, or None if one of them is no such value."""
    read = _value_reader_of(storage)
    if read is not None:
        try:
            return pa.array([read(text) for text in texts], storage)
        except (ValueError, TypeError, LookupError, ArithmeticError, pa.ArrowException):
            return None
    return None


def _label_texts(kind: LevelKind, storage: pa.DataType) -> tuple[str, ...]:
    if isinstance(kind, Boolean) and not (is_text(storage) or types.is_boolean(storage)):
        return ("0", "1")
    return level_labels(kind)


def _find_text(kind: LevelKind, text: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return label codes of canonical text; a missing token that is a label counts as it."""
    if isinstance(kind, Boolean):
        text = pc.utf8_lower(text)
    tokens = tuple(token.lower() for token in missing) if isinstance(kind, Boolean) else missing
    labels, codes = _label_table(kind)
    places = pc.index_in(text, value_set=labels.cast(text.type))
    found = codes[places.fill_null(len(labels)).to_numpy(zero_copy_only=False)]
    absent = ~valid_mask(text)
    if tokens:
        is_token = pc.is_in(text, value_set=pa.array(tokens, text.type))
        absent |= is_token.to_numpy(zero_copy_only=False) & (found == UNKNOWN)
    found[absent] = MISSING
    return found


def _find_written(kind: LevelKind, text: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return label codes of text as it was written, where what is no label may be a whole number written as `1.0`."""
    found = _find_text(kind, text, missing)
    if (found == UNKNOWN).any():  # pandas writes numbers so where a cell of the column is missing
        whole = pc.replace_substring_regex(text, pattern=_WHOLE, replacement=r"\1")
        found = np.where(found == UNKNOWN, _find_text(kind, whole, ()), found)
    return found


@lru_cache(maxsize=256)
def _label_table(kind: LevelKind) -> tuple[pa.Array, np.ndarray]:
    """Return the texts that name a level, and their codes with UNKNOWN after the last."""
    if isinstance(kind, Boolean):
        labels = pa.array((*_FALSE, *_TRUE), pa.string())
        codes = [0] * len(_FALSE) + [1] * len(_TRUE)
    else:
        labels = pa.array(level_labels(kind), pa.string())
        codes = range(len(labels))
    return labels, np.array([*codes, UNKNOWN], dtype=np.int32)


def _fallback_code(kind: LevelKind) -> int:
    return (len(level_labels(kind)) - 1) // 2 if isinstance(kind, Ordinal) else 0


def _other_code(kind: LevelKind, default: int) -> int:
    if isinstance(kind, Boolean) or kind.other is None:
        return default
    if kind.other in kind.categories:
        return kind.categories.index(kind.other)
    return len(kind.categories)


def has_canonical_text(storage: pa.DataType) -> bool:
    """Whether values of a type can be categories."""
    return (
        is_text(storage)
        or types.is_integer(storage)
        or types.is_boolean(storage)
        or types.is_floating(storage)
        or types.is_decimal(storage)
        or types.is_date(storage)
        or types.is_timestamp(storage)
    )


def canonical_text(values: pa.Array) -> pa.Array:
    """Return the canonical text of values of a type that has one; NaN has none.

    Most types are turned into text value by value: pass distinct values.
    """
    storage = values.type
    if is_text(storage):
        return read_text(values)
    if types.is_floating(storage):
        return _float_text(values)
    if types.is_decimal(storage):
        return _each(values, lambda number: format(number.normalize() + 0, "f"))
    if types.is_date64(storage) or types.is_timestamp(storage):
        return wall_clock_text(values)
    return values.cast(pa.string())


def _each(values: pa.Array, text: Callable[..., str | None]) -> pa.Array:
    listed = values.to_pylist()
    return pa.array([None if value is None else text(value) for value in listed], pa.string())


def _float_text(values: pa.Array) -> pa.Array:
    """Return numbers as text by the digits of their own width: float32 0.1 is `0.1`."""
    if types.is_float64(values.type):
        return _each(values, lambda number: None if number != number else canonical_number(number))
    width = np.float16 if types.is_float16(values.type) else np.float32
    return _each(
        values,
        lambda number: None if number != number else canonical_number(float(str(width(number)))),
    )


def _value_reader_of(storage: pa.DataType) -> Callable[[str], object] | None:
    """Return the map from a label to a value of a type; None if no label is such a value."""
    if is_text(storage):
        return str.encode if is_bytes(storage) else str
    if types.is_integer(storage):
        return int
    if types.is_floating(storage):
        return np.float16 if types.is_float16(storage) else float
    if types.is_boolean(storage):
        return {"true": True, "false": False}.__getitem__
    if types.is_decimal(storage):
        return Decimal
    if types.is_date(storage):
        return dt.date.fromisoformat
    return dt.datetime.fromisoformat if types.is_timestamp(storage) else None
