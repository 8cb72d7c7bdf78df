"""One pass over a source that notes, column by column, what a schema draft needs.

A survey holds exact facts about the records (bounds, values, counts). It is for the data holder's
own screen: nothing a fit or a release reads comes from here.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.canonical import canonical_text, has_canonical_text
from sfumato.columns.cells import is_text, plain, read_text, valid_mask, without_tokens
from sfumato.columns.moments import read_microseconds
from sfumato.columns.number_cells import read_floats, read_integers
from sfumato.columns.resolutions import MICROSECONDS, Resolution
from sfumato.columns.sets import is_set_storage, list_parts
from sfumato.columns.text_forms import MISSING_TOKENS
from sfumato.columns.written import Written
from sfumato.io.chunks import Source
from sfumato.records.number_forms import NumberForms, common_decimal

MOST_DISTINCT = 10_000
"""Distinct values of a column are collected up to this many; beyond it, an even part of them."""

MISSING_MARKS = ("?", "-", "--", ".", "n/a", "n.a.", "#N/A", "<NA>", "k.A.")
"""Text that people write for no value, beside what stands for none unless a schema says otherwise."""

_NONE = "None"
_MOST_DECIMALS = 6
_PLAIN_WHOLE = r"^-?(?:0|[1-9][0-9]{0,17})$"
_PLAIN_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$|^-?(?:0|[1-9])(?:\.[0-9]+)?[eE][+-]?[0-9]+$"
_DATE_FORMATS = (
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M",
    None,
    "%Y/%m/%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d %b %Y",
    "%b %d, %Y",
)


@dataclass(frozen=True, slots=True, repr=False)
class Moments:
    """The span of some dates or times.

    Attributes:
        earliest: first moment in microseconds since 1970-01-01.
        latest: last moment.
        resolution: the coarsest that every moment is a multiple of.
    """

    earliest: int
    latest: int
    resolution: Resolution

    @classmethod
    def of(cls, micros: np.ndarray) -> Moments:
        """Return the span of at least one moment."""
        resolution: Resolution = "microsecond"
        for step in get_args(Resolution):
            if not (micros % MICROSECONDS[step]).any():
                resolution = step
                break
        return cls(int(micros.min()), int(micros.max()), resolution)

    def joined(self, other: Moments | None) -> Moments:
        """Return the span of both."""
        if other is None:
            return self
        return Moments(
            min(self.earliest, other.earliest),
            max(self.latest, other.latest),
            min(self.resolution, other.resolution, key=MICROSECONDS.__getitem__),
        )


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
        found = pc.value_counts(values)
        texts = canonical_text(found.field("values")).to_pylist()
        for text, count in zip(texts, found.field("counts").to_pylist(), strict=True):
            if text is not None and self._takes(text):
                self.counts[text] += count
        while len(self.counts) > MOST_DISTINCT:
            self.halvings += 1
            self.counts = Counter({text: count for text, count in self.counts.items() if self._takes(text)})

    def _takes(self, text: str) -> bool:
        return not self.halvings or zlib.crc32(text.encode()) % 2**self.halvings == 0


@dataclass(slots=True, repr=False)
class ColumnSurvey:
    """What has been seen of one column so far.

    Attributes:
        storage: the column's type.
        n_cells: cells seen.
        n_missing: cells among them that hold no value.
        counts: how often each value occurs; None if its type has no canonical text.
        is_whole: whether every value is a whole number.
        is_number: whether every value is a number; as text, one that printing would give back.
        decimals: the most decimals of a value; None if there is no such small number.
        lowest: smallest finite number.
        highest: largest finite number.
        items: of a column of lists, what has been seen of their items; else None.
        longest: of a column of lists, the length of the longest.
        marks: texts among `MISSING_MARKS` that were seen.
        n_none: missing cells that say `None`, which may be a label.
        forms: in which ways texts that are no plain numbers read as numbers.
        written: how its numbers are written, if that was settled.
        dates: the moments seen, under each text format that every value has fitted; the format
            None stands for ISO 8601.
    """

    storage: pa.DataType
    n_cells: int = 0
    n_missing: int = 0
    counts: ValueCounts | None = field(default_factory=ValueCounts)
    is_whole: bool = True
    is_number: bool = True
    decimals: int | None = 0
    lowest: float | None = None
    highest: float | None = None
    items: ColumnSurvey | None = None
    longest: int = 0
    marks: set[str] = field(default_factory=set)
    n_none: int = 0
    forms: NumberForms | None = None
    written: Written | None = None
    dates: dict[str | None, Moments | None] = field(default_factory=lambda: dict.fromkeys(_DATE_FORMATS))

    @property
    def n_values(self) -> int:
        """Cells that hold a value."""
        return self.n_cells - self.n_missing

    @property
    def distinct(self) -> set[str] | None:
        """Canonical text of the values, or None if there are more than MOST_DISTINCT, or it is not known."""
        return None if self.counts is None or self.counts.halvings else set(self.counts.counts)

    def add(self, column: pa.ChunkedArray | np.ndarray) -> None:
        """Note one chunk of the column."""
        if isinstance(column, np.ndarray):
            self._add_pixels(column)
            return
        for chunk in column.chunks:
            self._add_cells(chunk)

    def _add_pixels(self, images: np.ndarray) -> None:
        self.n_cells += len(images)
        finite = images[np.isfinite(images)] if images.dtype.kind == "f" else images
        self._widen(finite.ravel())

    def _add_cells(self, cells: pa.Array) -> None:
        cells = plain(cells)
        if types.is_dictionary(cells.type):
            cells = plain(cells.dictionary_decode())
        self.n_cells += len(cells)
        if is_set_storage(cells.type):
            self._add_sets(cells)
            return
        if is_text(cells.type):
            cells = self._without_marks(read_text(cells))
        elif types.is_floating(cells.type):
            cells = pa.array(read_floats(cells, ()), from_pandas=True).cast(cells.type)
        values = cells.filter(pa.array(valid_mask(cells)))
        self.n_missing += len(cells) - len(values)
        if not len(values):
            return
        self._add_distinct(values)
        if types.is_temporal(values.type):
            self.is_number = False
            self.dates = {None: self.dates[None]} if None in self.dates else {}
            self._add_moments(values)
        elif is_text(values.type):
            self._add_text(values)
        else:
            self.dates = {}
            self._add_numbers(values)

    def _without_marks(self, text: pa.Array) -> pa.Array:
        """Return text with null for what stands for no value, and note what stood there."""
        self.n_none += pc.sum(pc.equal(text, _NONE)).as_py() or 0
        marked = pc.is_in(text, value_set=pa.array(MISSING_MARKS, text.type))
        self.marks |= set(pc.unique(text.filter(marked)).to_pylist())
        return without_tokens(text, (*MISSING_TOKENS, *MISSING_MARKS))

    def _add_sets(self, cells: pa.Array) -> None:
        lengths, items = list_parts(cells)
        if self.items is None:
            self.items = ColumnSurvey(items.type)
        self.n_missing += cells.null_count
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        self.items.add(pa.chunked_array([items]))

    def _add_distinct(self, values: pa.Array) -> None:
        if self.counts is None or not has_canonical_text(values.type):
            self.counts = None
            return
        self.counts.add(values)

    def _add_text(self, text: pa.Array) -> None:
        seen = (self.lowest, self.highest, self.decimals)
        if self.is_number:
            self.is_number = bool(pc.all(pc.match_substring_regex(text, _PLAIN_NUMBER)).as_py())
        if self.is_number:
            self.dates = {}
            self.is_whole &= bool(pc.all(pc.match_substring_regex(text, _PLAIN_WHOLE)).as_py())
            self._note_decimals(_decimals_written(text))
            self._widen(read_integers(text, ())[0] if self.is_whole else read_floats(text, ()))
        else:
            if self.forms is None:
                self.forms = NumberForms()
                self.forms.seed(*seen)
            self.forms.add(text)
            if self.dates:
                self._add_moments(text)

    def _add_numbers(self, values: pa.Array) -> None:
        floats = read_floats(values, ())
        finite = floats[np.isfinite(floats)]
        is_exact = types.is_integer(values.type)
        self.is_number &= is_exact or types.is_floating(values.type) or types.is_decimal(values.type)
        self.is_whole &= is_exact or bool(np.all(finite == np.rint(finite)))
        is_float32 = types.is_float32(values.type) or types.is_float16(values.type)
        self._note_decimals(0 if is_exact else _decimals_needed(finite, is_float32))
        self._widen(read_integers(values, ())[0] if is_exact else finite)

    def _add_moments(self, values: pa.Array) -> None:
        fitting: dict[str | None, Moments | None] = {}
        for format, seen in self.dates.items():
            micros, valid = read_microseconds(values, (), format, strict=True)
            if valid.all():
                fitting[format] = Moments.of(micros).joined(seen)
        self.dates = fitting

    def _widen(self, numbers: np.ndarray) -> None:
        if len(numbers):
            low, high = numbers.min().item(), numbers.max().item()
            self.lowest = low if self.lowest is None else min(self.lowest, low)
            self.highest = high if self.highest is None else max(self.highest, high)

    def _note_decimals(self, decimals: int | None) -> None:
        known = self.decimals is not None and decimals is not None
        self.decimals = max(self.decimals, decimals) if known else None  # type: ignore[type-var]


def survey_columns(source: Source) -> dict[str, ColumnSurvey]:
    """Read a source once and return a survey of each column."""
    surveys = {name: ColumnSurvey(storage) for name, storage in source.storage.items()}
    for chunk in source.chunks(source.names):
        for name, column in chunk.columns.items():
            surveys[name].add(column)
    return surveys


def settle_forms(surveys: Mapping[str, ColumnSurvey]) -> str | None:
    """Make numbers of the text columns that read as such however they are written; return their common decimal mark."""
    found = {name: survey for name, survey in surveys.items() if survey.forms is not None and not survey.is_number}
    decimal = common_decimal(survey.forms for survey in found.values() if survey.forms is not None)
    for survey in found.values():
        chosen = None if survey.forms is None else survey.forms.chosen(decimal)
        if chosen is None:
            continue
        written, span = chosen
        survey.written, survey.is_number, survey.dates = written, True, {}
        survey.lowest, survey.highest, survey.decimals = span.lowest, span.highest, span.decimals
        survey.is_whole = not span.decimals
    plain = [s for s in surveys.values() if is_text(s.storage) and s.is_number and s.written is None]
    return None if any(survey.decimals != 0 for survey in plain) else decimal


def take_none_as_label(survey: ColumnSurvey) -> None:
    """Count the cells that say `None` as a label."""
    if survey.counts is not None and survey.n_none:
        survey.counts.counts[_NONE] += survey.n_none
        survey.n_missing -= survey.n_none
        survey.n_none = 0


def _decimals_written(text: pa.Array) -> int | None:
    """Return the most decimals of numbers in text; None if one has an exponent, or too many."""
    if pc.any(pc.match_substring_regex(text, "[eE]")).as_py():
        return None
    point = pc.find_substring(text, ".").to_numpy(zero_copy_only=False)
    length = pc.binary_length(text).to_numpy(zero_copy_only=False)
    most = int(np.where(point < 0, 0, length - point - 1).max())
    return most if most <= _MOST_DECIMALS else None


def _decimals_needed(values: np.ndarray, is_float32: bool) -> int | None:
    """Return the fewest decimals that write every value exactly, or None if there are too many."""
    if len(values) and np.abs(values).max() > 2**53 / 10**_MOST_DECIMALS:
        return None
    for decimals in range(_MOST_DECIMALS + 1):
        rounded = np.rint(values * 10**decimals) / 10**decimals
        if is_float32:
            rounded = rounded.astype(np.float32).astype(np.float64)
        if np.array_equal(rounded, values):
            return decimals
    return None
