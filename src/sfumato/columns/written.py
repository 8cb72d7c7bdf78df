"""How numbers are written as text: the decimal mark, groups of thousands, what stands around the digits, the sign.

Public facts that a schema declares. What a text reads as depends on that text and on these facts alone: what is not
written so is tried as a plain number (`1234.5`), as dates are tried as ISO 8601.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.facts import shown
from sfumato.errors import SchemaError

DECIMALS = (".", ",")
THOUSANDS = ("", ",", ".", " ", "'", "\u2019", "\u00a0", "\u202f", "_")
_SPACES = " \u00a0\u202f"
_LONGEST = 16
_NOT_AROUND = re.compile(r"[0-9,.\"\r\n\t\x00-\x1f\x7f]|^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[+\-]$")
_POWER = "(?:[eE][+-]?[0-9]+)?"
_KEYS = ("decimal", "thousands", "prefix", "suffix", "negative", "percent", "currency")
_TURNED = {
    "parentheses": (rf"^([^()+0-9-]*)\(([^()+-]+{_POWER}[^()+-]*)\)([^()+0-9-]*)$", r"-\1\2\3"),
    "trailing": (rf"^([^()+-]*[0-9]{_POWER}[^()+-]*)-([^()+0-9-]*)$", r"-\1\2"),
}
"""Sign of negative numbers → a pattern of texts that have it, and such a text with a minus before all."""
NEGATIVES = ("leading", *_TURNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How the numbers of a column are written as text; None is what is not said.

    Attributes:
        decimal: the mark before decimals, `.` or `,`.
        thousands: what parts groups of three digits: a comma, a point, a space, an apostrophe, `_`; empty for nothing.
        prefix: what stands before the digits, such as `$`; it may be missing. Empty for nothing.
        suffix: what stands behind them, such as `%` or ` €`; it may be missing. Empty for nothing.
        negative: the sign of negative numbers: a `leading` minus, a `trailing` one, or `parentheses` around them.

    Example:
        >>> Written(decimal=",", thousands=".", suffix=" €").text("-3668.35")
        '-3.668,35 €'
        >>> Written(prefix="$", negative="parentheses").number("($12.50)")
        '-12.50'
        >>> Written(decimal=",", thousands=",")
        Traceback (most recent call last):
            ...
        sfumato.errors.SchemaError: Expected thousands other than decimal, got ',' for both. Correct one of them.
    """

    decimal: str | None = None
    thousands: str | None = None
    prefix: str | None = None
    suffix: str | None = None
    negative: str | None = None

    def __post_init__(self) -> None:
        faults = [
            f"Expected {name} to be one of {', '.join(map(repr, known))}, got {shown(getattr(self, name))}."
            for name, known in (("decimal", DECIMALS), ("thousands", THOUSANDS), ("negative", NEGATIVES))
            if getattr(self, name) not in (None, *known)
        ]
        faults += [
            f"Expected {name} to be a short text without digits, points, commas, quotes and signs, got {shown(text)}."
            for name, text in (("prefix", self.prefix), ("suffix", self.suffix))
            if text is not None
            and not (isinstance(text, str) and len(text) <= _LONGEST and not _NOT_AROUND.search(text))
        ]
        if self.negative == "parentheses" and set("()") & {*(self.prefix or ""), *(self.suffix or "")}:
            faults.append("Expected prefix and suffix without parentheses beside negative: parentheses. Leave one out.")
        if not faults and self.decimal is not None and self.thousands == self.decimal:
            faults = [f"Expected thousands other than decimal, got {self.thousands!r} for both. Correct one of them."]
        if faults:
            raise SchemaError(" ".join(faults))

    @classmethod
    def of(cls, entry: object, faults: list[str]) -> Written | None:
        """Read an entry of a schema document, or note what is wrong with it; None of one that states nothing.

        `percent: true` is the suffix `%`, and `currency: "$"` the prefix `$`.
        """
        if entry is None or isinstance(entry, Written):
            return entry if entry else None
        if not isinstance(entry, Mapping):
            faults.append(f'Expected written to be a mapping such as {{decimal: ","}}, got {shown(entry)}.')
            return None
        facts, wrong = dict(entry), [key for key in entry if key not in _KEYS]
        faults += [f"Expected the keys {', '.join(_KEYS)} in written, got {shown(key)}. Correct it." for key in wrong]
        _spell_out(facts, faults)
        if wrong or faults:
            return None
        try:
            return cls(**facts) or None
        except SchemaError as error:
            faults.append(str(error))
        return None

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return bool(self.to_dict())

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as everywhere else: a point, and nothing around."""
        around = self.thousands or self.prefix or self.suffix
        return self.decimal in (None, ".") and self.negative in (None, "leading") and not around

    def over(self, table: Written) -> Written:
        """Return these facts, and a table's where nothing is said.

        Raises:
            SchemaError: groups would be parted by the decimal mark.
        """
        merged = table.to_dict() | self.to_dict()
        if merged.get("thousands") == merged.get("decimal", "."):
            if self.thousands is not None or self.decimal is None:
                raise SchemaError("Expected thousands other than decimal, a point unless declared. Declare it.")
            merged["thousands"] = ""  # a column that turns the table's decimal mark around has no groups
        return Written(**merged)

    def to_dict(self) -> dict[str, str]:
        """Return the facts that are stated, as plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}

    def plain(self, text: pa.Array) -> pa.Array:
        """Return texts as plain numbers where they are written so, and as they are where not; element by element."""
        if self.is_plain:
            return text
        parts = pc.extract_regex(with_leading_minus(text, self.negative), pattern=self._pattern)
        whole = parts.field("whole")
        if self.thousands:
            whole = pc.replace_substring_regex(whole, pattern=_any_of(self.thousands), replacement="")
        signs, after = (parts.field("sign"), parts.field("inner")), (parts.field("rest"), parts.field("part"))
        joined = pc.binary_join_element_wise(*signs, whole, *after, pa.scalar("", text.type))
        joined = pc.replace_substring(joined, ",", ".") if self.decimal == "," else joined
        return pc.if_else(pc.fill_null(parts.is_valid(), False), joined, text)

    def number(self, text: str) -> str:
        """Return one text as a plain number where it is written so."""
        return str(self.plain(pa.array([text.strip()], pa.string()))[0].as_py())

    def text(self, number: str) -> str:
        """Return a plain number (`-1234.5`) as it is written in the column."""
        sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
        whole, point, decimals = digits.partition(".")
        if self.thousands and whole.isdecimal():
            whole = f"{int(whole):,}".replace(",", self.thousands)
        mark = (self.decimal or ".") if point else ""
        before, body, behind = self.prefix or "", f"{whole}{mark}{decimals}", self.suffix or ""
        if sign and self.negative == "parentheses":
            return f"({before}{body}{behind})"
        return f"{before}{body}-{behind}" if sign and self.negative == "trailing" else f"{sign}{before}{body}{behind}"

    @property
    def _pattern(self) -> str:
        digits = "[0-9]+"
        if self.thousands:
            digits = f"[0-9]{{1,3}}(?:{_any_of(self.thousands)}[0-9]{{3}})+|[0-9]+"
        mark = re.escape(self.decimal or ".")
        body = rf"(?:(?P<whole>{digits})(?P<rest>(?:{mark}[0-9]*)?{_POWER})|(?P<part>{mark}[0-9]+{_POWER}))"
        around = [_quoted((text or "").strip()) for text in (self.prefix, self.suffix)]
        before, behind = (rf"[\s\p{{Z}}]*(?:{text})?[\s\p{{Z}}]*" for text in around)
        return rf"^(?P<sign>[+-]?){before}(?P<inner>[+-]?){body}{behind}$"


def with_leading_minus(text: pa.Array, negative: str | None) -> pa.Array:
    """Return texts whose sign stands elsewhere with a minus before all, the others as they are; element by element."""
    if negative not in _TURNED:
        return text
    pattern, turned = _TURNED[negative]
    return pc.replace_substring_regex(text, pattern=pattern, replacement=turned)


def _any_of(mark: str) -> str:
    """Return a pattern of a mark: one space stands for all that do not break a line too, one apostrophe for both."""
    if mark in _SPACES:
        return f"[{_SPACES}]"
    return "['\u2019]" if mark in "'\u2019" else re.escape(mark)


def _quoted(text: str) -> str:
    # \Q…\E as RE2 has it; `_NOT_AROUND` lets a backslash in, hence no raw quoting
    return "".join(c if c.isalnum() or not c.isascii() else "\\" + c if c != " " else " " for c in text)


def _spell_out(facts: dict[Any, Any], faults: list[str]) -> None:
    """Replace `percent` and `currency` by the suffix and the prefix that they stand for."""
    if "percent" in facts:
        percent = facts.pop("percent")
        if not isinstance(percent, bool):
            faults.append(f"Expected percent to be true or false, got {shown(percent)}.")
        elif "suffix" in facts:
            faults.append("Expected percent or suffix, got both. Leave percent out.")
        facts["suffix"] = "%" if percent is True else ""
    if "currency" in facts:
        if "prefix" in facts:
            faults.append("Expected currency or prefix, got both. Leave currency out.")
        facts["prefix"] = facts.pop("currency")
