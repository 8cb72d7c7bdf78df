"""One pass over a source that notes, column by column, what a schema draft needs.

A survey holds exact facts about the records (bounds, values, counts). It is for the data holder's
own screen: nothing a fit or a release reads comes from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import (
    is_text,
    joined,
    plain,
    read_floats,
    read_integers,
    read_text,
    valid_mask,
    without_tokens,
)
from sfumato.columns.date_forms import DateForm
from sfumato.columns.sets import is_set_storage, list_parts
from sfumato.columns.storage import has_text
from sfumato.columns.text_forms import MISSING_MARKS, MISSING_TOKENS
from sfumato.columns.wall_clock import MICROSECONDS, Resolution, read_microseconds
from sfumato.columns.written import Written
from sfumato.desk.text_survey import MOST_DISTINCT, TextSurvey, ValueCounts
from sfumato.io.chunks import Source

__all__ = ["CLOCK", "MOST_DISTINCT", "ColumnSurvey", "TimeSpan", "survey_columns"]

_MOST_DECIMALS = 6
CLOCK = "%H:%M:%S.%f"
"""How times of day of their own type would be written."""
# signs that a record is more than a row: numbers that repeat as those of baskets do, items joined in one text
_SEPARATORS = ("; ", ";", " | ", "|", ", ", ",")
_FEWEST_IDS = 150  # fewer numbers may be ages, or places in a list
_EVEN = 10  # times the average of the most rows of an id
_RARE = 10  # rows of one id, for most ids
_MOST_LENGTH = 60  # of an item: what is longer is a sentence
_SHARE = 0.3  # of texts that hold a separator
_FIXED: tuple[Resolution, ...] = tuple(r for r in get_args(Resolution) if r not in ("month", "week"))


@dataclass(frozen=True, slots=True, repr=False)
class TimeSpan:
    """The span of some dates or times.

    Attributes:
        earliest: first moment in microseconds since 1970-01-01.
        latest: last moment.
        resolution: the coarsest from days on that every moment is a multiple of.
    """

    earliest: int
    latest: int
    resolution: Resolution

    @classmethod
    def of(cls, micros: np.ndarray) -> TimeSpan:
        """Return the span of at least one moment."""
        resolution: Resolution = next(step for step in _FIXED if not (micros % MICROSECONDS[step]).any())
        return cls(int(micros.min()), int(micros.max()), resolution)

    def joined(self, other: TimeSpan | None) -> TimeSpan:
        """Return the span of both."""
        if other is None:
            return self
        return TimeSpan(
            min(self.earliest, other.earliest),
            max(self.latest, other.latest),
            min(self.resolution, other.resolution, key=MICROSECONDS.__getitem__),
        )


@dataclass(slots=True, repr=False)
class ColumnSurvey:
    """Exact facts of one column so far.

    Attributes:
        storage: the column's type.
        n_cells: cells seen.
        n_missing: cells among them that hold no value.
        counts: how often each value occurs; None if its type has no canonical text.
        is_whole: whether every value is a whole number.
        is_number: whether every value is a number, but for odd ones.
        decimals: the most decimals of a value; None if there is no such small number.
        lowest: smallest finite number.
        highest: largest finite number.
        items: of a column of lists, what has been seen of their items; else None.
        longest: of a column of lists, the length of the longest.
        marks: texts for no value that were seen, but empty ones, and how often.
        has_blanks: of text, whether a cell is empty, or has no text.
        text: of a column of text, what its texts are.
        written: how its numbers are written, if that was settled.
        date: of text, the form of its dates.
        moments: what its dates span.
        odd: cells of text that are not what the column is, by their text, if they are few.
        tokens: values that seem to stand for none, such as -99, as they are written.
        usual: texts for no value whatever is declared.
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
    marks: Counter[str] = field(default_factory=Counter)
    has_blanks: bool = False
    text: TextSurvey | None = None
    written: Written | None = None
    date: DateForm | None = None
    moments: TimeSpan | None = None
    odd: Mapping[str, int] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()
    usual: tuple[str, ...] = MISSING_TOKENS

    @property
    def n_values(self) -> int:
        """Cells that hold a value."""
        return self.n_cells - self.n_missing

    @property
    def has_missing(self) -> bool:
        """Whether a cell holds no value, or none that its column can have."""
        return self.n_missing > 0 or bool(self.odd)

    @property
    def distinct(self) -> set[str] | None:
        """Canonical text of the values, or None if there are more than MOST_DISTINCT, or it is not known."""
        return None if self.counts is None or self.counts.halvings else set(self.counts.counts)

    @property
    def n_distinct(self) -> int:
        """How many different values there are, roughly if they are many; 0 where it is not known."""
        return 0 if self.counts is None else self.counts.n_distinct

    def add(self, column: pa.ChunkedArray | np.ndarray) -> None:
        """Note one chunk of the column."""
        if isinstance(column, np.ndarray):
            self._add_pixels(column)
            return
        for chunk in column.chunks:
            self._add_cells(chunk)

    def add_label(self, mark: str) -> None:
        """Count a text that stood for no value as one."""
        assert self.counts is not None
        self.counts.add_counts({mark: self.marks[mark]})
        self.n_missing -= self.marks.pop(mark)

    def leave_out(self, texts: Collection[str], span: tuple[float, float]) -> None:
        """Count some numbers as missing, whose canonical texts these are; `span` is what the others span."""
        assert self.counts is not None
        for text in texts:
            self.n_missing += self.counts.counts.pop(text)
        self.lowest, self.highest = span

    def settle(self, decimal: str | None) -> None:
        """Decide what a column of text is; `decimal` is the mark of the table's other columns."""
        if self.text is None:
            return
        self.is_number = self.is_whole = False
        reading = self.text.reading(decimal)
        self.odd, self.date, span = reading.odd, reading.date, reading.span
        if span is not None and self.date is None:
            self.is_number, self.written = True, reading.written
            self.lowest, self.highest = span.lowest, span.highest
            self.decimals = None if self.text.n_exponents or span.decimals > _MOST_DECIMALS else span.decimals
            self.is_whole = span.decimals == 0

    def add_dates(self, column: pa.ChunkedArray | np.ndarray) -> None:
        """Note the moments of one chunk of text, by the form that was settled."""
        assert self.date is not None
        text = without_tokens(read_text(joined(column)), (*MISSING_TOKENS, *self.tokens))
        micros, valid = read_microseconds(text, (), self.date.format, strict=True)
        if valid.any():
            self.moments = TimeSpan.of(micros[valid]).joined(self.moments)

    def _add_pixels(self, images: np.ndarray) -> None:
        self.n_cells += len(images)
        finite = images[np.isfinite(images)] if images.dtype.kind == "f" else images
        self._widen(finite.ravel())

    def _add_cells(self, cells: pa.Array) -> None:
        cells = plain(cells)
        if types.is_dictionary(cells.type):
            cells = plain(cells).dictionary_decode()
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
        self.counts = self.counts if has_text(values.type) else None
        if self.counts is not None:
            self.counts.add(values)
        if types.is_temporal(values.type):
            self.is_number = False
            micros, valid = read_microseconds(values, (), CLOCK if types.is_time(values.type) else None)
            if valid.any():
                self.moments = TimeSpan.of(micros[valid]).joined(self.moments)
        elif is_text(values.type):
            self.text = self.text or TextSurvey()
            self.text.add(values)
        else:
            self._add_numbers(values)

    def _without_marks(self, text: pa.Array) -> pa.Array:
        """Return text with null for what stands for no value, and note what stood there."""
        usual = [token for token in (*self.usual, *MISSING_MARKS) if token]
        marked = text.filter(pc.is_in(text, value_set=pa.array(usual, text.type)))
        self.marks.update(Counter(marked.to_pylist()))
        self.has_blanks |= text.null_count > 0 or pc.any(pc.equal(text, "")).as_py() is True
        return without_tokens(text, (*self.usual, *MISSING_MARKS))

    def _add_sets(self, cells: pa.Array) -> None:
        lengths, items = list_parts(cells)
        if self.items is None:
            self.items = ColumnSurvey(items.type, usual=self.usual)
        self.n_missing += cells.null_count
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        self.items.add(pa.chunked_array([items]))

    def _add_numbers(self, values: pa.Array) -> None:
        floats = read_floats(values, ())
        finite = floats[np.isfinite(floats)]
        is_exact = types.is_integer(values.type)
        self.is_number &= is_exact or types.is_floating(values.type) or types.is_decimal(values.type)
        self.is_whole &= is_exact or bool(np.all(finite == np.rint(finite)))
        is_float32 = types.is_float32(values.type) or types.is_float16(values.type)
        decimals = 0 if is_exact else _decimals_needed(finite, is_float32)
        self.decimals = None if self.decimals is None or decimals is None else max(self.decimals, decimals)
        self._widen(read_integers(values, ())[0] if is_exact else finite)

    def _widen(self, numbers: np.ndarray) -> None:
        if len(numbers):
            low, high = numbers.min().item(), numbers.max().item()
            self.lowest = low if self.lowest is None else min(self.lowest, low)
            self.highest = high if self.highest is None else max(self.highest, high)


def survey_columns(source: Source) -> dict[str, ColumnSurvey]:
    """Read a source once and return a survey of each column."""
    usual = MISSING_TOKENS if source.missing_as_text else ("",)
    surveys = {name: ColumnSurvey(storage, usual=usual) for name, storage in source.storage.items()}
    for chunk in source.chunks(source.names):
        for name, column in chunk.columns.items():
            surveys[name].add(column)
    return surveys


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


def numbers_of_sets(survey: ColumnSurvey) -> bool:
    """Whether whole numbers repeat, few times each, and leave few gaps: as those of baskets in a long table do."""
    if survey.counts is None or not survey.is_number or not survey.is_whole:
        return False
    lowest, highest, counts = survey.lowest, survey.highest, survey.counts.counts.values()
    if lowest is None or highest is None or survey.counts.n_distinct < _FEWEST_IDS:
        return False
    few = sum(count < _RARE for count in counts) > len(counts) / 2
    few &= max(counts) * len(counts) <= _EVEN * sum(counts)  # a limit at which many are cut off names nobody
    return few and sum(counts) >= 1.5 * len(counts) and highest - lowest < 2 * survey.counts.n_distinct


def joined_items(texts: Sequence[str]) -> tuple[str, int] | None:
    """Return the separator of items in texts, and how many different items there are; None if texts are single labels.

    Args:
        texts: the different values of a column.

    Example:
        >>> joined_items(["E11", "E11;I10", "I10;J45", "E11;J45", "J45", "E11;I10;J45"])
        (';', 3)
    """
    for separator in _SEPARATORS:
        if sum(separator in text for text in texts) < _SHARE * max(len(texts), 1):
            continue
        pieces = {piece.strip() for text in texts for piece in text.split(separator)}
        # the same items come together in many ways, and differ less than texts do
        if max(map(len, pieces)) <= _MOST_LENGTH and 2 * len(pieces - {""}) <= len(texts):
            return separator, len(pieces - {""})
    return None


def set_hint(survey: ColumnSurvey) -> str:
    """Return a line on items that are joined in one text; empty without any."""
    if survey.is_number or survey.date is not None or survey.distinct is None:
        return ""
    items = joined_items(sorted(survey.distinct))
    if items is None:
        return ""
    separator, n_items = items
    entry = f"{{kind: set, separator: {separator!r}, items: […], max_length: …}}"
    return f". Its cells look like {n_items:,} items joined by {separator!r}: {entry} makes sets of them"
