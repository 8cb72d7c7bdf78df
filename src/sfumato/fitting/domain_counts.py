"""Counts of open columns: cells of the public grids of numbers and of years, missing cells, and words.

Proof: docs/proofs/discovery.md.

One release says whether a column holds numbers, dates or labels, how many decimals numbers have, and how dates are
written. Proof: docs/proofs/discovery.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.bounded import MISSING, cells_of, year_cells
from sfumato.columns.canonical import canonical
from sfumato.columns.cells import read_text
from sfumato.columns.date_forms import DATE_FORMS, DateForm, chosen_form, date_forms
from sfumato.columns.date_text import default_format, has_digits_alone
from sfumato.columns.dates import is_zero_date
from sfumato.columns.open import Open, OpenKind
from sfumato.columns.roles import PEOPLE, names_people, numbers_people, role_of
from sfumato.columns.text_forms import decimals, floats, has_leading_zeros, is_calling, is_code, is_truth, limits
from sfumato.columns.written import Written
from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.statistics import Counts
from sfumato.mechanisms.unlisted_words import NumberCounts, Tally
from sfumato.records.engine import Rows
from sfumato.schema.schema import Schema

PRESENT = 4.0
"""Standard deviations of noise at which what is counted is taken to exist."""

LARGEST = 2.0**53
"""The end of the grids of numbers: beyond it float64 does not tell whole numbers apart."""

Reason: TypeAlias = Literal["empty", "large"]

_MOST_DECIMALS = 6
_MISSING, _WHOLE, _DECIMALS, _LARGE = 0, 1, 2, _MOST_DECIMALS + 3
_PADDED, _CODE, _TEXT, _LIMIT = _LARGE + 1, _LARGE + 2, _LARGE + 3, _LARGE + 4
_DATES = _LIMIT + 1
_CELLS = _DATES + len(DATE_FORMS)
"""Missing, whole number, number of 1 to 6 decimals and of more, number beyond the grid, number with leading zeros,
other code, other text, limit of numbers such as `<5`, and every form of dates."""
_SHARE, _OF_DECIMALS = 0.9, 0.5  # of the cells with a value: to be dates, or numbers; numbers mostly with decimals
_AMONG_MANY = 1.5  # times as far from the noise, where thousands of cells are looked at
_TEXTS = [_CODE, _TEXT, _LIMIT]
_SLIGHT = 1.5  # times the noise, where what is missed does more harm than what is not there
_FEW = 0.01  # of numbers that may have more decimals than the rest, and of texts that look like codes
_COMPACT = np.array([has_digits_alone(form.format) for form in DATE_FORMS])


@dataclass(frozen=True)
class KindCounts(Counts):
    """Per column, how many cells are missing, numbers of 0, 1, 2, … decimals, codes, texts, and dates of each form.

    One record adds a single 1 to each of the c columns: norm √c. Value: shape (c, cells).
    """

    columns: tuple[str, ...]
    name: str = "counts of cells that parse"
    written: Mapping[str, Written | None] = field(default_factory=dict)

    @property
    def squares(self) -> float:
        """The number of columns."""
        return len(self.columns)

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros((len(self.columns), _CELLS))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        for i, name in enumerate(self.columns):
            total[i] += np.bincount(cells_that_parse(rows[name], self.written.get(name)), minlength=_CELLS)


def cells_that_parse(column: np.ndarray, written: Written | None = None) -> np.ndarray:
    """Return the cell of each value, int64 of shape (n,): a function of that value alone.

    Args:
        column: texts, None where missing; or numbers, NaN where missing.
        written: how numbers are written in texts.
    """
    if column.dtype.kind == "f":
        column, written = np.array([None if v != v else repr(v) for v in column.tolist()], dtype=object), None
    texts = read_text(pa.array(column, pa.string()))
    plain = texts if written is None else written.plain(texts)
    places, numbers = decimals(plain), floats(plain)
    is_number = (places >= 0) | (np.isinf(numbers) & ~is_truth(plain))
    number = np.where(places > 0, _DECIMALS + np.clip(places, 1, _MOST_DECIMALS + 1) - 1, _WHOLE)
    number = np.where(np.isfinite(numbers) & (np.abs(numbers) >= LARGEST), _LARGE, number)
    number = np.where(has_leading_zeros(plain) | is_calling(plain), _PADDED, number)
    text = np.where(np.isnan(limits(plain)), _TEXT, _LIMIT)
    cells = np.where(is_number, number, np.where(is_code(plain), _CODE, text))
    dates = date_forms(texts)
    cells = np.where(dates >= 0, _DATES + dates, cells)
    absent = np.array([text is None for text in column], dtype=bool) | is_zero_date(texts)
    return np.where(absent, _MISSING, cells).astype(np.int64)


@dataclass(frozen=True)
class _ColumnCounts:
    """The noisy counts of one column.

    Attributes:
        counts: shape (cells,).
        noise: standard deviations that make a count stand out.
    """

    counts: np.ndarray
    noise: float

    @property
    def fraction(self) -> float:
        return float(self.counts[_DECIMALS:_LARGE].sum())

    @property
    def dates(self) -> np.ndarray:
        return self.counts[_DATES:]

    def standing(self, cells: np.ndarray, times: float = 1.0) -> float:
        """Return the sum of the cells that stand out, by so many times the threshold."""
        return float(cells[cells > times * self.noise].sum())

    @property
    def whole(self) -> float:
        """Whole numbers, those among them that could be dates."""
        return float(self.counts[_WHOLE]) + self.standing(self.dates[_COMPACT])

    @property
    def numbers(self) -> float:
        return self.whole + self.fraction

    @property
    def texts(self) -> float:
        """Number of cells that are neither numbers nor dates, less what noise may have added."""
        return max(float(self.counts[_LARGE:_DATES].sum()) - self.noise / 2, 0.0)

    def date(self) -> DateForm | None:
        """Return the form of nine in ten cells with a value."""
        form = chosen_form(self.dates, self.noise)
        own = np.array([form is not None and other.family == form.family for other in DATE_FORMS])
        if form is None or self.standing(self.dates[own]) < _AMONG_MANY * self.noise:
            return None
        inside = max(self.standing(self.dates[own]), float(self.dates[own].sum()) if own.sum() < len(own) // 8 else 0.0)
        numbers = max(float(self.counts[_WHOLE]), 0.0) + max(self.fraction, 0.0)
        others = self.standing(self.dates[~own], _AMONG_MANY) + numbers
        return form if inside >= _SHARE * (inside + others + self.texts) else None

    def kind(self) -> Open:
        """Return a column's kind: dates of one form, numbers, or labels."""
        form = self.date()
        if form is not None:
            own_format = None if form.format == default_format(form.resolution) else form.format
            return Open(kind="datetime", format=own_format, resolution=form.resolution)
        few = max(_FEW * self.numbers, self.noise)
        coded = max(self.counts[_PADDED], self.counts[_CODE], self.counts[_LARGE]) > few
        around = min(max(float(self.counts[_LIMIT]), 0.0), self.numbers)
        others = self.texts - around + self.standing(self.dates[~_COMPACT], _AMONG_MANY)
        # numbers stand out, which many cells of noise together do not
        has_numbers = max(self.whole, self.fraction / math.sqrt(_LARGE - _DECIMALS)) >= self.noise
        measured = self.numbers + around
        least = _OF_DECIMALS if self.fraction > self.whole else _SHARE
        if not has_numbers or measured < least * (measured + others) or coded:
            return Open(kind="categorical")
        few = max(_FEW * self.numbers, self.noise * math.sqrt(_MOST_DECIMALS + 1))
        return Open(kind="integer" if self.fraction <= few else "continuous")

    @property
    def is_coded(self) -> bool:
        """Whether more cells are numbers, codes and dates than words."""
        texts = self.counts[_TEXT] + self.counts[_LIMIT]
        return self.counts[_WHOLE:_TEXT].sum() + self.standing(self.dates, _AMONG_MANY) > texts

    def reason(self) -> Reason | None:
        """The reason to leave a column out, or to make labels of it; None without."""
        if self.counts[_LARGE] > max(_FEW * self.numbers, self.noise):
            return "large"
        # of thousands of cells without a record, one or another is above a threshold that is meant for one
        present = (self.counts[1:_DATES] > self.noise).any() or (self.dates > _AMONG_MANY * self.noise).any()
        return "empty" if self.counts[_MISSING] > self.noise and not present else None


def _columns(noisy: Noisy, columns: tuple[str, ...]) -> dict[str, _ColumnCounts]:
    noise = PRESENT * noisy.noise_std
    return {name: _ColumnCounts(counts, noise) for name, counts in zip(columns, noisy.value, strict=True)}


def kinds_of(noisy: Noisy, columns: tuple[str, ...]) -> dict[str, Open]:
    """Return the kind of each column by its noisy counts. Free.

    Dates if nine in ten present cells have forms that one column may mix. Numbers if nine in ten are, or half where
    most of them have decimals, or limits of numbers, `<5`, up to as many, unless codes stand out beside them, as `V57`
    or `007` beside `788`, or numbers beyond 2^53, which are codes too: those are labels. Whole if at most one number of
    a hundred, or what noise may be, is not; numbers whose name says that they name places or people are labels.
    """
    kinds = {name: counts.kind() for name, counts in _columns(noisy, columns).items()}
    whole = [name for name in columns if kinds[name].kind == "integer"]
    codes = [name for name in whole if role_of(name) == "place" or names_people(name)]
    codes += [name for name in columns if kinds[name].kind == "continuous" and numbers_people(name)]
    return kinds | {name: Open(kind="categorical") for name in codes}


def coded_of(noisy: Noisy, columns: tuple[str, ...]) -> frozenset[str]:
    """Return the columns of codes: by most of their cells, or by a name that is one of people. Free."""
    coded = {name for name, counts in _columns(noisy, columns).items() if counts.is_coded}
    return frozenset(coded | {name for name in columns if role_of(name) in PEOPLE})


def reasons_of(noisy: Noisy, columns: tuple[str, ...]) -> dict[str, Reason]:
    """Return the reasons to leave columns out: only missing cells, or numbers beyond 2^53. Free."""
    reasons: dict[str, Reason | None] = {n: counts.reason() for n, counts in _columns(noisy, columns).items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def texts_of(noisy: Noisy, columns: tuple[str, ...]) -> dict[str, float]:
    """Return how many cells of each column are no numbers, less what noise may have added. Free.

    That is little: where no text is taken to exist, those there are become the midpoint of the numbers.
    """
    few = _SLIGHT * math.sqrt(len(_TEXTS)) * noisy.noise_std
    return {
        name: float(counts.counts[_TEXTS].sum()) + counts.standing(counts.dates[~_COMPACT], _AMONG_MANY) - few
        for name, counts in _columns(noisy, columns).items()
    }


def resolutions_of(noisy: Noisy, columns: tuple[str, ...]) -> dict[str, float]:
    """Return the resolution of columns whose numbers have at most so many decimals, by the noisy counts. Free.

    That of cents is 0.01. A column of which numbers with more than six decimals stand out has none.
    """
    resolutions: dict[str, float] = {}
    for name, counts in zip(columns, noisy.value, strict=True):
        by_decimals = counts[_DECIMALS:_LARGE]
        numbers = max(float(counts[_WHOLE] + by_decimals.sum()), 0.0)
        for decimals_left in range(_MOST_DECIMALS + 1):
            more = by_decimals[decimals_left:]
            if more.sum() <= max(_FEW * numbers, PRESENT * noisy.noise_std * math.sqrt(more.size)):
                resolutions[name] = float(f"1e-{decimals_left}")
                break
    return resolutions


@dataclass(frozen=True)
class DomainCounts(Counts):
    """Per open column, how many records lie in each cell of the public grid, are missing, or hold each word.

    One record adds a single 1 to each of the c columns, and one more to each of l of numbers of which single ones are
    counted: norm √(c + l). A word beside numbers is counted in the place of a missing cell. Two records are at most
    √(2(c + l)) apart. Where records are counted too, that is one more 1, the same for all: norm √(c + l + 1). Value: a
    `Tally`.

    Attributes:
        kinds: the open columns with their kinds, none unknown.
        unit_rows: most rows of a unit.
        with_records: whether a last listed cell counts the records, whose number is not public.
        single: columns of numbers of which each is counted, as a word is.
        beside: per column of numbers whose words are counted, the name under which records have these.
    """

    kinds: Mapping[str, OpenKind]
    unit_rows: int = 1
    name: str = "counts of open columns"
    with_records: bool = False
    single: frozenset[str] = frozenset()
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def squares(self) -> float:
        """The number of columns, 1 more for each with single numbers, and 1 where records are counted."""
        return len(self.kinds) + len(self.single) + self.with_records

    @property
    def ends(self) -> np.ndarray:
        """Where each column's listed cells end: the grid and missing; missing; or present and missing."""
        sizes = {"categorical": 1, "boolean": 2}
        return np.cumsum([sizes.get(kind, MISSING + 1) for kind in self.kinds.values()])

    def columns(self, listed: np.ndarray) -> Iterator[tuple[np.ndarray, str, OpenKind]]:
        """Yield a view of each column's part of listed cells, its name and its kind."""
        for part, (name, kind) in zip(np.split(listed, self.ends), self.kinds.items(), strict=False):
            yield part, name, kind

    def zero(self) -> Tally:
        """Return an empty tally."""
        words = {n: Counter[str]() for n, kind in self.kinds.items() if kind == "categorical" or n in self.beside}
        numbers = {name: NumberCounts() for name in sorted(self.single)}
        return Tally(np.zeros(self.ends[-1] + self.with_records), words, self.unit_rows, numbers)

    def add(self, total: Tally, rows: Rows) -> None:
        """Count some records."""
        if self.with_records:
            total.listed[-1] += len(next(iter(rows.values())))
        for part, name, kind in self.columns(total.listed):
            column = rows[name]
            if kind in ("integer", "continuous"):
                cells = cells_of(column)
                if name in self.beside:
                    words = canonical(_texts(rows[self.beside[name]]))
                    cells = cells[words.is_null().to_numpy(zero_copy_only=False)]
                    total.words[name].update(words.drop_null().to_pylist())
                part += np.bincount(cells, minlength=MISSING + 1)
                if name in self.single:
                    total.numbers[name].update(column[np.isfinite(column)])
                continue
            if kind == "datetime":
                part += np.bincount(year_cells(column), minlength=MISSING + 1)
                continue
            texts = _texts(column)
            part[-1] += texts.null_count
            if kind == "boolean":
                part[0] += len(texts) - texts.null_count
            else:
                total.words[name].update(word for word in canonical(texts).to_pylist() if word is not None)


def _texts(column: np.ndarray) -> pa.Array:
    """Return texts without white space around them, null where nothing is left."""
    texts = read_text(pa.array(column, pa.string()))
    return pc.if_else(pc.equal(texts, ""), None, texts)


def one_row_a_unit(schema: Schema) -> Schema:
    """Return the schema of the records that discovery reads: of each unit one row alone, so that noise is for one.

    Which row follows from the unit's own rows, as `max_rows` chooses them.
    """
    unit = schema.unit
    return schema if unit is None or unit.max_rows == 1 else replace(schema, unit=replace(unit, max_rows=1))


def domain_counts(schema: Schema, kinds: Mapping[str, OpenKind]) -> DomainCounts:
    """Return the counts that domains of open columns are read off, with the number of units where none is known.

    Args:
        schema: what is public.
        kinds: of its open columns, none unknown.
    """
    return DomainCounts(kinds, with_records=one_row_a_unit(schema) is not schema)
