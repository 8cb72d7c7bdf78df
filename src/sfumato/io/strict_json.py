"""JSON that everybody reads alike: every key once, every number finite, and no deeper than any reader goes."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MOST_VALUES = 4_000_000
"""The most values of a document: about 500 MiB while it is read."""


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Return the object that a text of anyone holds.

    A key that stands twice is refused: readers differ in which of its values they take.

    Raises:
        ValueError: it is no JSON in UTF-8, no object, or not strict; the message shows nothing of it.
    """
    fault = ""
    value: Any = None
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        check_values(text)
        value = json.loads(text, object_pairs_hook=unique_pairs, parse_constant=no_constant, parse_float=_finite)
    except TooLargeError as error:
        fault = str(error)
    except RepeatedKeyError:
        fault = "a key given twice"
    except (ValueError, RecursionError):
        fault = "no valid JSON"
    if not fault and not isinstance(value, dict):
        fault = "no mapping"
    if fault:
        raise ValueError(fault)
    return value


class TooLargeError(ValueError):
    """A document has more values than are read."""


def check_values(text: str) -> None:
    """Refuse a text of too many values, without reading it: before each there is a bracket, a brace or a comma.

    Raises:
        TooLargeError: it may have more than `MOST_VALUES`.
    """
    if sum(map(text.count, "[{,")) > MOST_VALUES:
        raise TooLargeError(f"more than {MOST_VALUES:,} values")


class RepeatedKeyError(ValueError):
    """An object has a key twice."""


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's keys and values: what `json.loads` calls, `object_pairs_hook`."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise RepeatedKeyError
    return content


def no_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities, which are no JSON: what `json.loads` calls, `parse_constant`."""
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # such as 1e999
        raise ValueError
    return number
