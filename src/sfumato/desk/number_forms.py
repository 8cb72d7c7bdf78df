"""How the numbers of a text column seem to be written: for drafts, hence for the data holder's own screen.

Nothing a fit or a release reads comes from here: a fit reads what the schema declares.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.cells import read_floats
from sfumato.columns.text_forms import decimals, floats, integers
from sfumato.columns.written import DECIMALS, NEGATIVES, THOUSANDS, Written, with_leading_minus

_SPACE = "[ \u00a0\u202f]?"
_MONEY = (
    r"(?:R\$|US\$|[$€£¥₹₩₽₺]|CHF|EUR|USD|GBP|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|TRY|UAH|RUB|CAD|AUD|NZD|JPY|CNY|KRW|INR|"
    r"HKD|SGD|THB|IDR|MYR|PHP|VND|BRL|MXN|ARS|CLP|COP|ZAR|NGN|KES|EGP|ILS|SAR|AED|Rs|kr|zł|Kč|Ft)"
)
_UNIT = (
    r"(?:%|‰|°C|°F|kg|mg|µg|g|cm|mm|km|ml|kWh|km/h|mph|lbs?|min|bpm|mmHg|mmol/[lL]|mg/d[lL]|m²|[yY]ears|[yY]rs|Jahre|"
    r"days|hours|Tage|Stunden)"
)
_AROUND = (
    rf"^(?P<sign>-?)(?P<prefix>(?:{_MONEY}{_SPACE})?)(?P<inner>-?)"
    rf"(?P<core>[0-9](?:[0-9.,'’_ \x{{a0}}\x{{202f}}]*[0-9])?)(?P<suffix>(?:{_SPACE}(?:{_UNIT}|{_MONEY}))?)$"
)
_MOST_AROUND = 8  # different texts around the digits of one column
_AMBIGUOUS = r"^-?[1-9][0-9]{0,2}\.[0-9]{3}$"  # `1.234`

Marks = tuple[str, str]
"""The decimal mark and the mark between groups of thousands."""
_ALL_MARKS: tuple[Marks, ...] = tuple((d, t) for d in DECIMALS for t in THOUSANDS if t != d)


@dataclass(slots=True)
class Span:
    """The numbers of some texts, read in one way.

    Attributes:
        count: how many cells.
        lowest: the smallest.
        highest: the largest.
        decimals: the most decimals.
        has_groups: whether one had groups of thousands.
    """

    count: int = 0
    lowest: float = np.inf
    highest: float = -np.inf
    decimals: int = 0
    has_groups: bool = False

    def add(self, numbers: np.ndarray, counts: np.ndarray, most_decimals: int) -> None:
        """Take in some numbers."""
        if len(numbers):
            self.count += int(counts.sum())
            self.lowest = min(self.lowest, numbers.min().item())
            self.highest = max(self.highest, numbers.max().item())
            self.decimals = max(self.decimals, most_decimals)

    def union(self, other: Span) -> Span:
        """Return the span of both."""
        return Span(
            self.count + other.count,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            max(self.decimals, other.decimals),
            self.has_groups or other.has_groups,
        )


@dataclass(slots=True)
class NumberForms:
    """How many cells of a column read as numbers, by decimal mark, mark of thousands, and what stands around them.

    Attributes:
        whole: plain numbers without a point, which read alike by all marks.
        pointed: plain numbers with a point that can only be decimal.
        either: plain numbers whose point may part thousands (`1.234`), with decimals; and a thousand times as much.
        others: of what is no plain number, by what stands around and by marks.
        signs: how many cells have a sign of negative numbers, by the sign.
    """

    whole: Span = field(default_factory=Span)
    pointed: Span = field(default_factory=Span)
    either: tuple[Span, Span] = field(default_factory=lambda: (Span(), Span(has_groups=True)))
    others: dict[tuple[str, str], dict[Marks, Span]] = field(default_factory=dict)
    signs: Counter[str] = field(default_factory=Counter)

    def add_plain(self, words: pa.Array, counts: np.ndarray) -> None:
        """Take in distinct plain numbers, each with how many cells hold it."""
        numbers, places = floats(words), decimals(words)
        has_point = pc.match_substring(words, ".").to_numpy(zero_copy_only=False) | (places > 0)
        either = pc.match_substring_regex(words, _AMBIGUOUS).to_numpy(zero_copy_only=False)
        self.whole.add(integers(words)[0][~has_point], counts[~has_point], 0)
        for span, some in ((self.pointed, has_point & ~either), (self.either[0], either)):
            span.add(numbers[some], counts[some], int(places[some].max(initial=0)))
        self.either[1].add(np.rint(1000 * numbers[either]), counts[either], 0)

    def add(self, words: pa.Array, counts: np.ndarray) -> np.ndarray:
        """Take in distinct texts that are no plain numbers; return which may be numbers in some way."""
        words, sign = words.cast(pa.string()), np.full(len(words), "leading", dtype=object)
        for negative in NEGATIVES:
            turned = with_leading_minus(words, negative)
            sign[pc.not_equal(turned, words).to_numpy(zero_copy_only=False)] = negative
            words = turned
        parts = pc.extract_regex(words, pattern=_AROUND)
        fits = parts.is_valid().to_numpy(zero_copy_only=False)
        if not fits.any():
            return fits
        parts = parts.filter(pa.array(fits))
        negative = pc.not_equal(pc.binary_join_element_wise(parts.field("sign"), parts.field("inner"), ""), "")
        signs = np.where(negative.to_numpy(zero_copy_only=False), -1.0, 1.0)
        around = list(zip(parts.field("prefix").to_pylist(), parts.field("suffix").to_pylist(), strict=True))
        read = np.zeros(len(parts), dtype=bool)
        for key in dict.fromkeys(around):
            if key not in self.others and len(self.others) == _MOST_AROUND:
                continue
            here = np.array([pair == key for pair in around])
            core = parts.field("core").filter(pa.array(here))
            read[here] = self._add_core(key, core, signs[here], counts[fits][here])
        fits[fits] = read
        for negative in NEGATIVES:
            self.signs[negative] += int(counts[fits & (sign == negative)].sum())
        return fits

    def _add_core(self, key: tuple[str, str], core: pa.Array, signs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Take in digits and marks; return which read as numbers in some way."""
        spans = self.others.setdefault(key, {})
        read = np.zeros(len(core), dtype=bool)
        for marks in _ALL_MARKS:
            fits, numbers, most, has_groups = _read(core, signs, *marks)
            if fits.any():
                span = spans.setdefault(marks, Span())
                span.add(numbers[fits], counts[fits], most)
                span.has_groups |= has_groups
                read |= fits
        return read

    @property
    def around(self) -> tuple[str, str]:
        """Prefix and suffix of most cells that have one."""
        totals = {
            key: max((span.count for span in spans.values()), default=0)
            for key, spans in self.others.items()
            if any(key)
        }
        return max(totals, key=totals.__getitem__) if totals else ("", "")

    def readings(self) -> dict[Marks, Span]:
        """Return the span of all cells that fit, by marks; only marks that occur."""
        prefix, suffix = self.around
        keys = {("", ""), (prefix, suffix), (prefix, ""), ("", suffix)}
        spans: dict[Marks, Span] = {}
        for marks in _ALL_MARKS:
            decimal, thousands = marks
            parts = [self.whole, *(self.others[key].get(marks, Span()) for key in keys if key in self.others)]
            if decimal == ".":
                parts += [self.pointed, self.either[0]]
            elif thousands == ".":
                parts.append(self.either[1])
            span = Span()
            for part in parts:
                if part.count:
                    span = span.union(part)
            occur = (not thousands or span.has_groups) and (decimal == "." or span.decimals > 0 or thousands == ".")
            if span.count and occur:
                spans[marks] = span
        return spans

    def is_either(self, written: Written | None) -> bool:
        """Whether the cells read as other numbers just as well, with the other mark for decimals."""
        readings = self.readings()
        marks = (".", "") if written is None else (written.decimal or ".", written.thousands or "")
        if self.pointed.count or marks not in readings:
            return False
        count = readings[marks].count
        return any(key[0] != marks[0] and span.count == count for key, span in readings.items())

    def best(self, decimal: str | None) -> tuple[Written, Span] | None:
        """Return how most cells are written as numbers, and what they span; None if no cell is a number.

        Args:
            decimal: the mark of the table's other columns, for what can be read in two ways (`1,234`); by default that
                is a group of thousands.
        """
        readings = self.readings()
        if not readings:
            return None

        def preference(item: tuple[Marks, Span]) -> tuple[int, bool, bool, bool]:
            marks, span = item
            return span.count, marks[0] == decimal, marks == (".", "") and not self.others, span.has_groups

        (mark, groups), span = max(readings.items(), key=preference)
        prefix, suffix = self.around
        signs = [negative for negative in NEGATIVES[1:] if self.signs[negative]]
        if signs and self.signs[signs[0]] == span.count:  # labels that all stand in parentheses are no numbers
            return None
        facts = {"thousands": groups, "prefix": prefix, "suffix": suffix, "negative": signs[0] if signs else ""}
        return Written(decimal=mark, **{name: fact for name, fact in facts.items() if fact}), span


def common_decimal(forms: Iterable[NumberForms]) -> str | None:
    """Return the decimal mark of the columns that can be read in one way alone; None if they differ, or say nothing."""
    marks = set()
    for form in forms:
        readings = form.readings()
        most = max((span.count for span in readings.values()), default=0)
        best = [(key, span) for key, span in readings.items() if span.count == most]
        if len({key[0] for key, _ in best}) == 1 and best[0][1].decimals > 0:
            marks.add(best[0][0][0])
    return next(iter(marks)) if len(marks) == 1 else None


def _read(core: pa.Array, signs: np.ndarray, decimal: str, thousands: str) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """Return which texts read so, as which numbers, the most decimals, and whether one has groups."""
    mark, group = re.escape(decimal), re.escape(thousands)
    grouped = rf"[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|" if thousands else ""
    fits = pc.match_substring_regex(core, rf"^(?:{grouped}0|[1-9][0-9]*)(?:{mark}[0-9]+)?$")
    fits = fits.to_numpy(zero_copy_only=False)
    numbers = np.zeros(len(core))
    if not fits.any():
        return fits, numbers, 0, False
    some = core.filter(pa.array(fits))
    numbers[fits] = signs[fits] * read_floats(some, (), Written(decimal=decimal, thousands=thousands or None))
    place = pc.find_substring(some, decimal).to_numpy(zero_copy_only=False)
    length = pc.binary_length(some).to_numpy(zero_copy_only=False)
    # of texts with other letters than ASCII both count bytes
    most = int(np.where(place < 0, 0, length - place - 1).max(initial=0))
    return fits, numbers, most, bool(thousands) and bool(pc.any(pc.match_substring(some, thousands)).as_py())
