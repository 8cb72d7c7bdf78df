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

from sfumato.data.cells import dictionary_indices, is_bytes, is_text, plain, read_text, valid_mask
from sfumato.data.dates import wall_clock_text
from sfumato.data.facts import canonical_number, shown
from sfumato.data.kinds import Boolean, LevelKind, Ordinal, level_labels, n_levels

UNKNOWN, MISSING = -1, -2
"""Marks of `find_levels` for a value that is no label, and for no value at all."""

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
        return _find_text(kind, read_text(cells), missing)
    canonical = _canonical_text_of(storage)
    if canonical is None:
        return np.where(valid_mask(cells), UNKNOWN, MISSING).astype(np.int32)
    coded = cells.dictionary_encode()
    found = _find_text(kind, canonical(coded.dictionary), ())
    return np.append(found, np.int32(MISSING))[dictionary_indices(coded)]


def decode_levels(kind: LevelKind, codes: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return the labels of codes in exactly the storage type; the missing level is null."""
    labels = stored_labels(kind, storage.value_type if types.is_dictionary(storage) else storage)
    whole = np.clip(np.asarray(codes).astype(np.int64), 0, n_levels(kind) - 1)
    places = pa.array(whole, mask=whole >= len(labels))
    if not types.is_dictionary(storage):
        return labels.take(places)
    indices = places.cast(storage.index_type)
    return pa.DictionaryArray.from_arrays(indices, labels, ordered=storage.ordered)


@lru_cache(maxsize=256)
def stored_labels(kind: LevelKind, storage: pa.DataType) -> pa.Array:
    """Return the labels of a kind as values of a storage type.

    Raises:
        ValueError: a label has no value in that type; the text is not fit to be shown.
    """
    if isinstance(kind, Boolean) and not is_text(storage):
        return pa.array([0, 1], pa.int8()).cast(storage)
    labels = level_labels(kind)
    if is_text(storage):
        text = pa.array(labels, pa.string())
        return text.cast(pa.binary()).cast(storage) if is_bytes(storage) else text.cast(storage)
    read = _value_reader_of(storage)
    return pa.array([read(label) for label in labels], storage)


def storage_fault(kind: LevelKind, storage: pa.DataType) -> str | None:
    """Return why the labels of a kind cannot be stored in a type, or None if they can."""
    values = storage
    if types.is_dictionary(storage):
        values = storage.value_type
        capacity = 2 ** (
            storage.index_type.bit_width - types.is_signed_integer(storage.index_type)
        )
        if len(level_labels(kind)) > capacity:
            return (
                f"Expected at most {capacity} labels for type {storage}, "
                f"got {len(level_labels(kind))}. Store the column as plain text."
            )
    try:
        stored = stored_labels(kind, values)
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
        stored = None
    if stored is not None:
        back = find_levels(kind, stored, ())
        wrong = np.flatnonzero(back != np.arange(len(back)))
        if wrong.size == 0:
            return None
        label = level_labels(kind)[int(wrong[0])]
    else:
        label = _first_unfit(kind, values)
    return (
        f"Expected labels that type {storage} can hold, got {shown(label)}. "
        "Declare a label of that type, or store the column as text."
    )


def _first_unfit(kind: LevelKind, storage: pa.DataType) -> str:
    read = _value_reader_of(storage)
    for label in level_labels(kind):
        try:
            pa.array([read(label)], storage)
        except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
            return label
    return level_labels(kind)[0]


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


def _canonical_text_of(storage: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    """Return the map from values of a type to canonical text; None if the type has none."""
    if types.is_integer(storage) or types.is_boolean(storage) or types.is_date32(storage):
        return lambda values: values.cast(pa.string())
    if types.is_floating(storage):
        return _float_text
    if types.is_decimal(storage):
        return lambda values: _each(values, lambda number: format(number.normalize() + 0, "f"))
    if types.is_date64(storage) or types.is_timestamp(storage):
        return wall_clock_text
    return None


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


def _value_reader_of(storage: pa.DataType) -> Callable[[str], object]:
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
    if types.is_timestamp(storage):
        return dt.datetime.fromisoformat
    raise TypeError(f"no labels in type {storage}")
