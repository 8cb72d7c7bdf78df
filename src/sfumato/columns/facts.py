"""Reading the facts that people write down about a column, and noting what is wrong with them.

Each reader returns the fact in its one canonical form. A fact that cannot be read adds a sentence
to `faults`; what is returned then is never used.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np

_INT64 = range(-(2**63), 2**63)
EPOCH = datetime(1970, 1, 1)
LARGEST_EXACT = 2**53 - 1
"""The largest whole number that no other one is rounded to in 64-bit floats."""


def shown(value: object) -> str:
    """Return a short text for a setting in a message; nested values are named by type only."""
    if isinstance(value, (str, int, float, bool, date)) or value is None:
        text = repr(value)
        return text if len(text) <= 80 else f"{text[:77]}..."
    return f"a {type(value).__name__}"


def grouped(number: float, form: str = "") -> str:
    """Return a number with commas between thousands, from five digits on: of four, as years have, none.

    Example:
        >>> grouped(1925), grouped(20_190), grouped(-1925.5, ".1f")
        ('1925', '20,190', '-1925.5')
    """
    text = f"{number:,{form}}"
    return text if len(text.partition(".")[0].lstrip("-")) > len("9,999") else text.replace(",", "")


def label_text(name: str, value: object, faults: list[str]) -> str:
    """Return the canonical text of a label written by hand, noting a fault if it has none."""
    value = plain_value(value)
    if isinstance(value, float | date) and value != value:  # NaN, and the NaT of pandas, which is a date
        faults.append(f"Expected {name} to be a label, got a missing one. Leave it out, and declare `nullable: true`.")
        return ""
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, (int, float)):
        text = canonical_number(value)
    elif isinstance(value, date):
        text = value.isoformat(" ").removesuffix(" 00:00:00") if isinstance(value, datetime) else value.isoformat()
    else:
        faults.append(f"Expected {name} to be text, got {shown(value)}. Put it in quotes.")
        return ""
    if not text.isascii() and text != text.encode("utf-8", "replace").decode():
        faults.append(f"Expected {name} to be valid Unicode, got {text!a}.")
    return text


def labels_text(name: str, each: str, values: object, faults: list[str], *, hint: str = "") -> tuple[str, ...]:
    """Return the canonical texts of a list of different labels, noting what is wrong with it.

    Args:
        name: what the list is called.
        each: what one of them is called, with its article.
        values: the labels.
        faults: gets a sentence for every fault.
        hint: what else to do, if it is no list.
    """
    if isinstance(values, str | bytes | set | frozenset) or not isinstance(values, Iterable):
        what = "a set, which has no order" if isinstance(values, set | frozenset) else shown(values)
        faults.append(f"Expected {name} to be a list, got {what}. {hint}".rstrip())
        return ()
    labels = tuple(label_text(each, label, faults) for label in values)
    if len(set(labels)) < len(labels) and not faults:
        known: set[str] = set()
        twice = next(label for label in labels if label in known or known.add(label))
        faults.append(f"Expected each {each.split()[-1]} once, got {twice!r} twice. Remove one.")
    return labels


def plain_value(value: object) -> object:
    """Return the Python value of a numpy scalar, and anything else as it is."""
    if isinstance(value, np.floating) and value.dtype.itemsize < 8:
        return float(str(value))  # by the digits of its own width, as cells are read
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item() if np.datetime_data(value)[0] != "D" else value.item()
    return value.item() if isinstance(value, np.generic) else value


def float_text(value: float) -> str:
    """Return the canonical text of a float; of one that may be another whole number, rounded, one with an exponent.

    Example:
        >>> float_text(5.0), float_text(0.25), float_text(2.0**53)
        ('5', '0.25', '9.007199254740992e+15')
    """
    if abs(value) <= LARGEST_EXACT or not math.isfinite(value):
        return canonical_number(value)
    return np.format_float_scientific(value, trim="-")


def canonical_number(value: float) -> str:
    """Return the canonical text of a number: `1` for 1.0, else the shortest that reads back."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return repr(value)


def whole_number(name: str, value: object, faults: list[str]) -> int:
    """Return a whole number that fits int64, noting a fault if it is none."""
    number = None
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    elif hasattr(value, "__index__") and not isinstance(value, bool):
        number = int(value)  # type: ignore[call-overload]
    if number is None:
        faults.append(f"Expected {name} to be a whole number, got {name}={shown(value)}.")
        return 0
    if number not in _INT64:
        faults.append(f"Expected {name} to fit in 64 bits, got {name}={shown(value)}.")
    return number


def real_number(name: str, value: object, faults: list[str]) -> float:
    """Return a finite float, noting a fault if it is none."""
    number = math.nan
    if isinstance(value, str) or (hasattr(value, "__float__") and not isinstance(value, bool)):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        faults.append(f"Expected {name} to be a finite number, got {name}={shown(value)}.")
    return number


def moment_text(name: str, value: object, faults: list[str]) -> str:
    """Return a bound as ISO text; a bare date stays a bare date."""
    value = plain_value(value)
    text = value.isoformat() if isinstance(value, date) else value
    moment = None
    if isinstance(text, str):
        text = text.strip()
        with contextlib.suppress(ValueError):
            moment = datetime.fromisoformat(text)
    if moment is None or moment.tzinfo is not None:
        faults.append(f"Expected {name} to be a date or time without offset, such as 2020-01-31, got {shown(value)}.")
        return ""
    return str(text)


def microseconds_since_epoch(moment: datetime) -> int:
    """Return wall-clock microseconds since 1970-01-01."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def as_fraction(value: float) -> Fraction:
    """Return the shortest decimal that reads back as `value`, exactly: 0.1 is one tenth."""
    return Fraction(repr(float(value)))


def decimals_of(resolution: float) -> int:
    """Return how many decimals print a multiple of `resolution` exactly."""
    exponent = Decimal(repr(float(resolution))).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def check_order(lower: float, upper: float, faults: list[str]) -> None:
    """Note a fault unless lower <= upper."""
    if not lower <= upper:
        faults.append(f"Expected lower <= upper, got lower={lower!r}, upper={upper!r}. Swap them.")


def flag(value: object, faults: list[str], name: str = "nullable") -> bool:
    """Return a fact that is true or false, noting a fault unless it is."""
    value = plain_value(value)
    if not isinstance(value, bool):
        faults.append(f"Expected {name} to be true or false, got {shown(value)}.")
    return value is True
