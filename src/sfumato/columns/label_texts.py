"""Texts of labels: which are different values, and as what a storage type holds them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.canonical import canonical, may_be_written_otherwise
from sfumato.columns.cells import is_bytes, is_text
from sfumato.columns.facts import shown


def values_of_texts(texts: Sequence[str], storage: pa.DataType) -> pa.Array | None:
    """Return texts as values of a type, or None if one of them is no such value."""
    read = _value_reader_of(storage)
    try:
        return None if read is None else pa.array([read(text) for text in texts], storage)
    except (ValueError, TypeError, LookupError, ArithmeticError, pa.ArrowException):
        return None


def canonical_faults(labels: Sequence[str]) -> list[str]:
    """Return why labels cannot be told apart by their canonical texts, if they cannot."""
    if not any(may_be_written_otherwise(label) for label in labels):
        return []
    texts = canonical(pa.array(labels, pa.string())).to_pylist()
    if None in texts:
        wide = labels[texts.index(None)]
        return [
            f"Expected `exact: true` beside labels that are numbers of 2^53 and more, such as {shown(wide)}, which a "
            "program may have rounded. Declare it if the column was text from the start."
        ]
    first: dict[str | None, str] = {}
    for label, text in zip(labels, texts, strict=True):
        if first.setdefault(text, label) != label:
            return [
                f"Expected labels that are different values, got {shown(first[text])} and {shown(label)}, which a "
                "program may write for each other. Remove one, or declare `exact: true` if the column was text from "
                "the start."
            ]
    return []


def _value_reader_of(storage: pa.DataType) -> Callable[[str], object] | None:
    """Return the map from a label to a value of a type; None if no label is such a value."""
    if is_text(storage):
        return str.encode if is_bytes(storage) else str
    if types.is_integer(storage):
        return int
    if types.is_floating(storage):
        return np.float16 if types.is_float16(storage) else float
    if types.is_boolean(storage):
        return lambda text: {"true": True, "false": False}[text.lower()]
    if types.is_decimal(storage):
        return Decimal
    if types.is_date(storage):
        return dt.date.fromisoformat
    if types.is_time(storage):
        return dt.time.fromisoformat
    return dt.datetime.fromisoformat if types.is_timestamp(storage) else None
