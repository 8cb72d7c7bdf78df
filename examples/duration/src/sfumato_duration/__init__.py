"""Durations in minutes, written `1:30` or `PT1H30M`, as a kind of column: docs/plugins.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sfumato.plugins import SchemaError, WholeKind, read_parsed, store_integer

CLOCK = re.compile(r"([0-9]{1,6}):([0-5][0-9])")
ISO = re.compile(r"PT(?=[0-9])(?:([0-9]{1,6})H)?(?:([0-9]{1,8})M)?")


def minutes_of(text: str) -> int | None:
    """Return the minutes that a text says, None if it is no duration."""
    match = CLOCK.fullmatch(text) or ISO.fullmatch(text)
    return None if match is None else 60 * int(match[1] or 0) + int(match[2] or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration(WholeKind):
    """A duration between two public bounds, to the minute. Columns of numbers are minutes."""

    name: ClassVar[str] = "duration"

    lower: str
    upper: str
    nullable: bool = False

    def __post_init__(self) -> None:
        for bound in (self.lower, self.upper):
            if not isinstance(bound, str) or minutes_of(bound) is None:
                raise SchemaError(
                    "Expected lower and upper to be durations, such as 1:30 or PT1H30M. Put them in quotes."
                )
        if not isinstance(self.nullable, bool) or self.bounds[0] > self.bounds[1]:
            raise SchemaError("Expected lower <= upper, and nullable to be true or false.")

    @property
    def bounds(self) -> tuple[int, int]:
        return minutes_of(self.lower) or 0, minutes_of(self.upper) or 0

    def read(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        return read_parsed(cells, missing, minutes_of)

    def store(self, values: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
        return store_integer(values, absent, storage, self.text_of)

    def text_of(self, value: int) -> str:
        return f"{value // 60}:{value % 60:02}"

    def whole_of(self, column: str, value: object, faults: list[str]) -> int | None:
        minutes = minutes_of(value.strip()) if isinstance(value, str) else None
        if minutes is None:
            faults.append(f"Expected {column} to be a duration, such as 1:30 or PT1H30M.")
        return minutes
