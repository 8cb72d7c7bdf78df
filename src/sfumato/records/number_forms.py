"""How the numbers of a text column seem to be written: for drafts, hence for the data holder's own screen.

Nothing a fit or a release reads comes from here: a fit reads what the schema declares.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.number_cells import read_floats
from sfumato.columns.written import DECIMALS, THOUSANDS, Written

_MOST_DECIMALS = 6
_SPACE = "[ \u00a0\u202f]?"
_MONEY = r"(?:R\$|US\$|[$€£¥₹₩₽₺]|CHF|EUR|USD|GBP|SEK|NOK|DKK|kr|zł|Kč|Ft)"
_AROUND = (
    rf"^(?P<sign>-?)(?P<prefix>(?:{_MONEY}{_SPACE})?)(?P<inner>-?)"
    rf"(?P<core>[0-9](?:[0-9.,'’_ \x{{a0}}\x{{202f}}]*[0-9])?)(?P<suffix>(?:{_SPACE}(?:%|{_MONEY}))?)$"
)


@dataclass(slots=True)
class Span:
    """The numbers of some texts, read in one way.

    Attributes:
        lowest: the smallest.
        highest: the largest.
        decimals: the most decimals.
        has_decimals: whether one had a decimal mark.
        has_groups: whether one had groups of thousands.
    """

    lowest: float = np.inf
    highest: float = -np.inf
    decimals: int = 0
    has_decimals: bool = False
    has_groups: bool = False


@dataclass(slots=True)
class NumberForms:
    """In which ways all texts of a column so far read as numbers.

    Attributes:
        spans: per decimal mark and mark of thousands under which every text is a number, what they span.
        prefix: what stands before some of them.
        suffix: what stands behind some of them.
    """

    spans: dict[tuple[str, str], Span] = field(
        default_factory=lambda: {(d, t): Span() for d in DECIMALS for t in THOUSANDS if t != d}
    )
    prefix: str = ""
    suffix: str = ""

    def seed(self, lowest: float | None, highest: float | None, decimals: int | None) -> None:
        """Take in plain numbers that were seen before: of those with decimals, the mark is a point."""
        if lowest is None or highest is None:
            return
        if decimals is None or decimals > 0:
            self.spans = {(d, t): span for (d, t), span in self.spans.items() if d == "."}
        for span in self.spans.values():
            span.lowest, span.highest, span.decimals = lowest, highest, decimals or 0
            span.has_decimals = bool(decimals)

    def add(self, text: pa.Array) -> None:
        """Take in texts, none missing."""
        if not self.spans:
            return
        found = pc.extract_regex(text.cast(pa.string()), pattern=_AROUND)
        around = {name: self._around(name, found.field(name)) for name in ("prefix", "suffix")}
        if found.null_count or None in around.values():
            self.spans = {}
            return
        self.prefix, self.suffix = str(around["prefix"]), str(around["suffix"])
        negative = pc.not_equal(pc.binary_join_element_wise(found.field("sign"), found.field("inner"), ""), "")
        signs = np.where(negative.to_numpy(zero_copy_only=False), -1.0, 1.0)
        kept = {}
        for (decimal, thousands), span in self.spans.items():
            if _noted(found.field("core"), signs, decimal, thousands, span):
                kept[decimal, thousands] = span
        self.spans = kept

    def _around(self, name: str, texts: pa.Array) -> str | None:
        """Return the one text that stands there, if any does; None for several."""
        seen = {text for text in pc.unique(texts).to_pylist() if text} | ({getattr(self, name)} - {""})
        return next(iter(seen), "") if len(seen) <= 1 else None

    def readings(self) -> dict[tuple[str, str], Span]:
        """Return the ways of reading in which every mark that is assumed occurs."""
        return {
            (decimal, thousands): span
            for (decimal, thousands), span in self.spans.items()
            if span.lowest <= span.highest
            and (not thousands or span.has_groups)
            and (decimal == "." or span.has_decimals)
            and span.decimals <= _MOST_DECIMALS
        }

    def chosen(self, decimal: str | None) -> tuple[Written, Span] | None:
        """Return how the column is written, and what it spans; None if its texts are no numbers.

        Args:
            decimal: the mark of the table's other columns, for what can be read in two ways (`1,234`); by default that
                is a group of thousands.
        """
        readings = self.readings()
        if not readings:
            return None
        (mark, groups), span = min(readings.items(), key=lambda item: (item[0][0] != decimal, not item[1].has_groups))
        around = {"prefix": self.prefix or None, "suffix": self.suffix or None}
        return Written(decimal=mark, thousands=groups or None, **around), span


def common_decimal(forms: Iterable[NumberForms]) -> str | None:
    """Return the decimal mark of the columns that can be read in one way alone; None if they differ, or say nothing."""
    sure = [list(f.readings().items()) for f in forms]
    marks = {key[0] for found in sure if len(found) == 1 for key, span in found if span.has_decimals}
    return next(iter(marks)) if len(marks) == 1 else None


def _noted(core: pa.Array, signs: np.ndarray, decimal: str, thousands: str, span: Span) -> bool:
    """Note texts read in one way; return whether all can be."""
    mark, group = re.escape(decimal), re.escape(thousands)
    grouped = rf"[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|" if thousands else ""
    whole = rf"(?:{grouped}0|[1-9][0-9]*)"
    if not pc.all(pc.match_substring_regex(core, rf"^{whole}(?:{mark}[0-9]+)?$")).as_py():
        return False
    numbers = signs * read_floats(core, (), Written(decimal=decimal, thousands=thousands or None))
    place = pc.find_substring(core, decimal).to_numpy(zero_copy_only=False)
    length = pc.binary_length(core).to_numpy(zero_copy_only=False)
    # of texts with other letters than ASCII both count bytes
    decimals = int(np.where(place < 0, 0, length - place - 1).max(initial=0))
    span.lowest, span.highest = min(span.lowest, float(numbers.min())), max(span.highest, float(numbers.max()))
    span.decimals = max(span.decimals, decimals)
    span.has_decimals |= decimals > 0
    span.has_groups |= bool(thousands) and bool(pc.any(pc.match_substring(core, thousands)).as_py())
    return True
