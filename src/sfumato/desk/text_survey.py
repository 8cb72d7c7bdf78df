"""Forms of the texts of a column: how many cells are numbers, dates, codes, odd numbers, or something else.

Counts of cells by form, for the data holder's own screen: nothing a fit or a release reads comes from here. The form of
one text is a matter of `columns.text_forms` and `columns.date_forms`.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.date_forms import DATE_FORMS, DateForm, chosen_form, date_forms
from sfumato.columns.dates import is_zero_date
from sfumato.columns.storage import text_of
from sfumato.columns.text_forms import is_code, is_number, odd_numbers
from sfumato.columns.written import Written
from sfumato.desk.number_forms import NumberForms, Span

MOST_DISTINCT = 10_000
"""Distinct values of a column are collected up to this many; beyond it, an even part of them."""

ODD_SHARE = 0.5
"""Share of cells up to which odd ones (`<5`, `unknown`) leave a column one of numbers or dates; a draft says them."""

_FEW_ODD = 5  # other words beside numbers; more are labels, unless hardly a cell holds one
_HARDLY = 0.02  # share of cells that are slips of a pen
_FEW_NUMBERS = 30  # numbers beside other words: with so few they are all labels
_NO_DAY = r"^(?:99991231|99999999|00000000)$"  # written for no date beside 20210716
_FEW_COMPACT = 20  # numbers that may be dates by chance
_CODES = 0.01  # share of numbers with zeros before them from which they are codes


@dataclass(slots=True, repr=False)
class ValueCounts:
    """How often each value occurs, as its canonical text: of all values, or of an even part of them.

    Whether a value is in the part depends on a hash of it alone, so that those in it are counted in full.

    Attributes:
        counts: the counts; at most `MOST_DISTINCT` after each `add`.
        halvings: the part is one in 2^halvings.
    """

    counts: Counter[str] = field(default_factory=Counter)
    halvings: int = 0

    def add(self, values: pa.Array) -> None:
        """Count some values, none missing."""
        distinct = pc.value_counts(values)
        texts = text_of(distinct.field("values")).to_pylist()
        self.add_counts(dict(zip(texts, distinct.field("counts").to_pylist(), strict=True)))

    def add_counts(self, counted: Mapping[str | None, int]) -> None:
        """Count some texts, each with how many cells hold it."""
        for text, count in counted.items():
            if text is not None and self._takes(text):
                self.counts[text] += count
        while len(self.counts) > MOST_DISTINCT:
            self.halvings += 1
            self.counts = Counter({text: count for text, count in self.counts.items() if self._takes(text)})

    @property
    def n_distinct(self) -> int:
        """How many values there are, roughly if they are many."""
        return len(self.counts) << self.halvings

    def _takes(self, text: str) -> bool:
        return not self.halvings or zlib.crc32(text.encode()) % 2**self.halvings == 0


@dataclass(frozen=True, slots=True, repr=False)
class TextReading:
    """A reading of the texts of a column: as numbers, as dates, or as neither.

    Attributes:
        span: of numbers, their span; else None.
        written: how these are written, if not as plain numbers.
        date: the form of dates; else None.
        odd: cells that are none of these, by their text.
    """

    span: Span | None = None
    written: Written | None = None
    date: DateForm | None = None
    odd: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True, repr=False)
class TextSurvey:
    """How many cells of a column of text have each form.

    Attributes:
        n_cells: cells that hold a value.
        n_plain: plain numbers, `7.50`.
        n_codes: numbers with zeros before their digits, or of a telephone.
        n_exponents: plain numbers with an exponent.
        plain: distinct plain numbers.
        numbers: plain numbers and those written in other ways, by what these are.
        dates: cells by the form of date that they have first.
        n_number_dates: dates that are plain numbers too.
        no_days: numbers that stand for no date beside such dates.
        odd: odd numbers and dates (`<5`, `inf`, `0000-00-00`), by their text.
        others: texts that are nothing of all this.
    """

    n_cells: int = 0
    n_plain: int = 0
    n_codes: int = 0
    n_exponents: int = 0
    plain: ValueCounts = field(default_factory=ValueCounts)
    numbers: NumberForms = field(default_factory=NumberForms)
    dates: np.ndarray = field(default_factory=lambda: np.zeros(len(DATE_FORMS), dtype=np.int64))
    n_number_dates: int = 0
    no_days: ValueCounts = field(default_factory=ValueCounts)
    odd: ValueCounts = field(default_factory=ValueCounts)
    others: ValueCounts = field(default_factory=ValueCounts)

    def add(self, text: pa.Array) -> None:
        """Count cells, none missing."""
        distinct = pc.value_counts(text)
        words, counts = distinct.field("values"), distinct.field("counts").to_numpy(zero_copy_only=False)
        self.n_cells += int(counts.sum())
        number, code = is_number(words), is_code(words)
        plain = number & ~code
        self.n_plain += int(counts[plain].sum())
        self.n_codes += int(counts[number & code].sum())
        forms = date_forms(words)
        is_date = forms >= 0
        self.dates += np.bincount(forms[is_date], counts[is_date], len(DATE_FORMS)).astype(np.int64)
        self.n_number_dates += int(counts[is_date & number].sum())
        no_day = number & ~is_date & pc.match_substring_regex(words, _NO_DAY).to_numpy(zero_copy_only=False)
        if no_day.any():
            self.no_days.add_counts(_count_words(words.filter(pa.array(no_day)), counts[no_day]))
        if plain.any():
            some = words.filter(pa.array(plain))
            exponents = pc.match_substring_regex(some, "[eE]").to_numpy(zero_copy_only=False)
            self.n_exponents += int(counts[plain][exponents].sum())
            self.numbers.add_plain(some, counts[plain])
            self.plain.add_counts(_count_words(some, counts[plain]))
        rest = ~number & ~is_date
        if rest.any():
            self._add_rest(words.filter(pa.array(rest)), counts[rest])

    def _add_rest(self, words: pa.Array, counts: np.ndarray) -> None:
        """Count texts that are neither plain numbers nor dates."""
        odd = odd_numbers(words).is_valid().to_numpy(zero_copy_only=False) | is_zero_date(words)
        self.odd.add_counts(_count_words(words.filter(pa.array(odd)), counts[odd]))
        left = np.flatnonzero(~odd)
        if left.size:
            some = words.take(pa.array(left))
            fits = self.numbers.add(some, counts[left])
            self.others.add_counts(_count_words(some.filter(pa.array(~fits)), counts[left][~fits]))

    def reading(self, decimal: str | None) -> TextReading:
        """Return the reading as dates, numbers, or, where neither fits, texts.

        Args:
            decimal: the decimal mark of other columns of the table.
        """
        return self._as_dates() or self._as_numbers(decimal) or TextReading()

    def _as_dates(self) -> TextReading | None:
        form = chosen_form(self.dates)
        if form is None:
            return None
        fitting = int(self.dates[[other.family == form.family for other in DATE_FORMS]].sum())
        if not self.n_number_dates:
            odd = self._odd(fitting)
            return None if odd is None else TextReading(date=form, odd=odd)
        n_no_days = self.no_days.counts.total()  # digits alone, which may be any numbers
        if self.n_number_dates + n_no_days < self.n_plain + self.n_codes or self.plain.n_distinct < _FEW_COMPACT:
            return None
        odd = self._odd(fitting + n_no_days)
        return None if odd is None else TextReading(date=form, odd={**self.no_days.counts, **odd})

    def _as_numbers(self, decimal: str | None) -> TextReading | None:
        if self.n_codes > _CODES * (self.n_plain + self.n_codes):
            return None
        best = self.numbers.best(decimal)
        if best is None:
            return None
        written, span = best
        odd = self._odd(span.count)
        if odd is None or (odd and not self.numbers.others and self.plain.n_distinct <= _FEW_NUMBERS):
            return None
        plain_alone = self.numbers.whole.count + self.numbers.pointed.count + self.numbers.either[0].count
        return TextReading(
            span=span, written=None if span.count == plain_alone and written.is_plain else written, odd=odd
        )

    def _odd(self, fitting: int) -> dict[str, int] | None:
        """Return the cells that do not fit, where the column may be read without them; else None."""
        unfit = self.n_cells - fitting
        if not unfit:
            return {}
        if not fitting or unfit >= ODD_SHARE * self.n_cells:
            return None
        known = sum(self.odd.counts.values())
        few = unfit - known <= sum(self.others.counts.values()) and self.others.n_distinct <= _FEW_ODD
        if not few and unfit - known > _HARDLY * self.n_cells:
            return None
        return dict((self.odd.counts + self.others.counts).most_common())


def _count_words(words: pa.Array, counts: np.ndarray) -> dict[str | None, int]:
    return dict(zip(words.to_pylist(), counts.tolist(), strict=True))
