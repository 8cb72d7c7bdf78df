"""Values that a caller fixes, read strictly: unlike a record's cell, a caller's mistake is an error."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np
import pyarrow as pa

from sfumato.columns.coding import decode_column
from sfumato.columns.dates import parse_dates
from sfumato.columns.facts import label_text, microseconds_since_epoch, real_number, shown, whole_number
from sfumato.columns.kinds import (
    MICROSECONDS,
    ColumnKind,
    Continuous,
    DateTime,
    Integer,
    LevelKind,
    NumericKind,
    level_labels,
    tick_range,
)
from sfumato.columns.levels import find_levels, missing_code
from sfumato.columns.numbers import code_whole, snapped
from sfumato.columns.storage import store_continuous, store_datetime, store_integer
from sfumato.errors import ConfigError

_MOST_LABELS_SHOWN = 12
_ROUNDING = 1e-3  # of a resolution: float32 numbers are no exact multiples


@dataclass(frozen=True, slots=True)
class GivenValue:
    """One value of a column's domain.

    Attributes:
        code: as `sfumato.columns.coding` codes cells.
        stored: the value itself in the column's storage type, shape (1,).
    """

    code: float
    stored: pa.Array


def read_given(name: str, kind: ColumnKind, value: object, storage: pa.DataType) -> GivenValue:
    """Read a value that the caller gives for a column.

    Args:
        name: of the column, for messages.
        kind: its kind.
        value: a label, a number, a date, or text that reads as one; None or NaN for missing.
        storage: type of the column in samples.

    Raises:
        ConfigError: the value is not one that the column can have.
    """
    if not isinstance(kind, LevelKind | NumericKind):
        raise ConfigError(f"Expected given columns of labels, numbers or dates, got {name!r}. Leave it out.")
    if isinstance(value, np.generic):
        value = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value.item()
    if _is_missing(value):
        return _missing(name, kind, storage)
    faults: list[str] = []
    if isinstance(kind, LevelKind):
        code = _level(name, kind, value, faults)
        given = GivenValue(code, decode_column(kind, np.array([code]), storage))
    elif isinstance(kind, Integer):
        given = _integer(name, kind, value, storage, faults)
    elif isinstance(kind, Continuous):
        given = _continuous(name, kind, value, storage, faults)
    else:
        given = _moment(name, kind, value, storage, faults)
    if faults:
        raise ConfigError(faults[0])
    return given


def text_or_missing(kind: ColumnKind, text: str, missing: Sequence[str]) -> str | None:
    """Return text as it is, or None if it stands for no value: as cells of text files are read."""
    if isinstance(kind, LevelKind) and text in level_labels(kind):
        return text
    return None if text in missing else text


def _is_missing(value: object) -> bool:
    # pandas' NA and NaT belong to a library that need not be loaded
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def _missing(name: str, kind: LevelKind | NumericKind, storage: pa.DataType) -> GivenValue:
    if not kind.nullable:
        raise ConfigError(f"Expected a value for {name!r}, got none. The schema's {name!r} is not nullable.")
    code = float(missing_code(kind)) if isinstance(kind, LevelKind) else math.nan
    return GivenValue(code, decode_column(kind, np.array([code]), storage))


def _level(name: str, kind: LevelKind, value: object, faults: list[str]) -> float:
    text = label_text(name, value, faults)
    code = -1 if faults else int(find_levels(kind, pa.array([text]), ())[0])
    if code < 0:
        labels = [repr(label) for label in level_labels(kind)[:_MOST_LABELS_SHOWN]]
        more = ", …" if len(level_labels(kind)) > len(labels) else ""
        faults[:] = [f"Expected one of {', '.join(labels)}{more} for {name!r}, got {shown(value)}."]
    return float(max(code, 0))


def _outside(name: str, kind: NumericKind, value: object) -> str:
    return f"Expected {kind.lower} <= {name} <= {kind.upper}, got {name}={shown(value)}."


def _integer(name: str, kind: Integer, value: object, storage: pa.DataType, faults: list[str]) -> GivenValue:
    number = whole_number(name, _number(value), faults)
    if not faults and not kind.lower <= number <= kind.upper:
        faults.append(_outside(name, kind, value))
    if faults:
        return GivenValue(0.0, pa.nulls(1))
    values = np.array([number])
    code = code_whole(values, np.array([True]), lower=kind.lower, upper=kind.upper, nullable=kind.nullable)
    return GivenValue(float(code[0]), store_integer(values, np.array([False]), storage))


def _continuous(name: str, kind: Continuous, value: object, storage: pa.DataType, faults: list[str]) -> GivenValue:
    number = real_number(name, value, faults)
    if not faults and not kind.lower <= number <= kind.upper:
        faults.append(_outside(name, kind, value))
    nearest = 0.0 if faults else float(snapped(kind, np.array([number]))[0])
    if not faults and abs(nearest - number) > _ROUNDING * (kind.resolution or 0.0):
        faults.append(f"Expected {name} to be a multiple of {kind.resolution!r}, got {name}={shown(value)}.")
    if faults:
        return GivenValue(0.0, pa.nulls(1))
    span = kind.upper - kind.lower
    code = (nearest - kind.lower) / span if span > 0 else 0.0
    return GivenValue(code, store_continuous(kind, np.array([nearest]), np.array([False]), storage))


def _moment(name: str, kind: DateTime, value: object, storage: pa.DataType, faults: list[str]) -> GivenValue:
    micros, step = _microseconds(kind, value), MICROSECONDS[kind.resolution]
    first, last = tick_range(kind)
    if micros is None:
        faults.append(f"Expected {name} to be a date or time without offset, got {name}={shown(value)}.")
    elif not first <= micros // step <= last:
        faults.append(_outside(name, kind, value))
    elif micros % step:
        faults.append(f"Expected {name} to be a whole {kind.resolution}, got {name}={shown(value)}.")
    if faults or micros is None:
        return GivenValue(0.0, pa.nulls(1))
    ticks = np.array([micros // step])
    code = code_whole(ticks, np.array([True]), lower=first, upper=last, nullable=kind.nullable)
    return GivenValue(float(code[0]), store_datetime(kind, np.array([micros]), np.array([False]), storage))


def _microseconds(kind: DateTime, value: object) -> int | None:
    """Return wall-clock microseconds since 1970, or None if the value is no date."""
    if isinstance(value, str):
        for form in {kind.format, None}:
            micros, valid = parse_dates(pa.array([value.strip()]), form)
            if valid[0]:
                return int(micros[0])
        return None
    if isinstance(value, datetime):
        return microseconds_since_epoch(value) if value.tzinfo is None else None
    if isinstance(value, date):
        return microseconds_since_epoch(datetime(value.year, value.month, value.day))
    return None


def _number(value: object) -> object:
    """Return the number that text reads as, whole where it can be; anything else as it is."""
    if isinstance(value, str):
        for read in (int, float):
            with contextlib.suppress(ValueError):
                return read(value)
    return value
