"""Values that seem to stand for none: -99 among ages, 9999-12-31 among dates, and `None` as an answer. For drafts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import is_text
from sfumato.columns.facts import microseconds_since_epoch
from sfumato.columns.wall_clock import MICROSECONDS, read_microseconds
from sfumato.desk.number_forms import common_decimal
from sfumato.desk.survey import ColumnSurvey
from sfumato.io.chunks import Source

_NINES = tuple(10.0**n - 1 for n in range(2, 10))
_SURE = {-n for n in (9, *_NINES)} | {-n for n in (8, 66, 77, 88, 98, 97, 888, 998, 997, 8888, 9998, 9997)}
_ALSO = _SURE | {-n for n in range(1, 10)}  # beside a sure one
_HIGH = {*_NINES, 98, 97, 88, 77, 998, 997, 888, 777, 9998, 9997, 8888, 7777, 99998, 99997}
_FEWEST_OTHERS = 2  # different values beside those that stand for none
_FEWEST_CELLS = 2
_FEWEST_BELOW, _DENSE = 6, 2 / 3  # numbers below 0 of a scale, and part of those up to the last that occur
_ALWAYS = ("0001-01-01", "1753-01-01", "1899-12-30", "2999-12-31", "9999-01-01", "9999-12-30", "9999-12-31")
_IF_FAR = ("1800-01-01", "1900-01-01", "1970-01-01", "2099-12-31", "2100-01-01")
_FAR = 10 * 365 * MICROSECONDS["day"]  # from all other dates
_OFTEN = 5  # cells of a date that might be one
_ALIKE = 3  # labels of two capitals, among which NA is Namibia


def settle_texts(source: Source, surveys: Mapping[str, ColumnSurvey]) -> str | None:
    """Decide what the columns of text are; return the decimal mark that those written in another way have in common.

    Dates take a second pass over the source.
    """
    texts = [survey.text for survey in surveys.values() if survey.text is not None]
    decimal = common_decimal(text.numbers for text in texts if not text.n_codes)
    likely = decimal or ("," if source.found_form().delimiter == ";" else None)
    for survey in surveys.values():
        survey.settle(likely)
        if survey.items is not None:
            survey.items.settle(None)
        note_sentinels(survey)
    dates = [name for name, survey in surveys.items() if survey.date is not None]
    if dates:
        for chunk in source.chunks(dates):
            for name, column in chunk.columns.items():
                surveys[name].add_dates(column)
    plain = [s for s in surveys.values() if s.text is not None and s.is_number and s.written is None]
    return None if any(survey.decimals != 0 for survey in plain) else decimal


def note_sentinels(survey: ColumnSurvey) -> None:
    """Take out of a survey the numbers and dates that seem to stand for no value, and note how they are written."""
    counts = survey.counts
    if counts is None or counts.halvings or not counts.counts:
        return
    if survey.is_number and survey.lowest is not None:
        _note_numbers(survey, counts.counts)
    elif survey.date is not None:
        _note_dates(survey, counts.counts)


def _note_numbers(survey: ColumnSurvey, counts: Mapping[str, int]) -> None:
    numbers = {text: number for text in counts if (number := _number(survey, text)) is not None}
    none = sentinel_numbers({number: counts[text] for text, number in numbers.items()})
    texts = [text for text, number in numbers.items() if number in none]
    if not texts:
        return
    rest = [number for number in numbers.values() if number not in none]
    whole = survey.is_whole
    low, high = (int(bound) if whole else bound for bound in (min(rest), max(rest)))
    survey.tokens = tuple(sorted(texts))
    if is_text(survey.storage):  # elsewhere no list of texts applies
        survey.leave_out(texts, (low, high))


def _number(survey: ColumnSurvey, text: str) -> float | None:
    written = text if survey.written is None else survey.written.number(text)
    try:
        number = float(written)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def sentinel_numbers(counts: Mapping[float, int]) -> set[float]:
    """Return the numbers that seem to stand for no value: only such ones are negative, or far above all others.

    Args:
        counts: how many cells hold each number.

    Example:
        >>> ages = {float(age): 10 for age in range(18, 91)}
        >>> sorted(sentinel_numbers(ages | {-99.0: 3, 999.0: 4})), sentinel_numbers(ages | {-30.0: 1, -99.0: 3})
        ([-99.0, 999.0], set())
    """
    below = {number for number in counts if number < 0}
    codes = below & _SURE and below <= _ALSO and not _is_scale(counts, sorted(below, reverse=True))
    low = below if codes and sum(counts[n] for n in below) >= _FEWEST_CELLS else set()
    rest = sorted(number for number in counts if number not in low)
    high: set[float] = set()
    while rest and rest[-1] in _HIGH:
        high.add(rest.pop())
    is_far = high and rest and max(rest) < min(high) / 2 and sum(counts[n] for n in high) >= _FEWEST_CELLS
    if not (is_far and high & set(_NINES)):
        rest, high = sorted({*rest, *high}), set()
    return low | high if len(rest) >= _FEWEST_OTHERS else set()


def _is_scale(counts: Mapping[float, int], below: list[float]) -> bool:
    """Whether numbers below 0 are on a scale, as degrees are: most occur, and fewer cells hold the farther ones."""
    half = len(below) // 2
    dense = 0 in counts and half >= _FEWEST_BELOW // 2 and len(below) > -below[-1] * _DENSE
    return bool(dense and sum(counts[n] for n in below[:half]) > sum(counts[n] for n in below[-half:]))


def _note_dates(survey: ColumnSurvey, counts: Mapping[str, int]) -> None:
    assert survey.date is not None
    texts = list(counts)
    micros, valid = read_microseconds(pa.array(texts, pa.string()), (), survey.date.format, strict=True)
    days = {text: int(m // MICROSECONDS["day"]) for text, m, ok in zip(texts, micros, valid, strict=True) if ok}
    sure, perhaps = _days(_ALWAYS), _days(_IF_FAR)
    others = [day for day in days.values() if day not in sure | perhaps]
    none = [text for text, day in days.items() if day in sure]
    for text, day in days.items():
        is_far = others and min(abs(day - other) for other in others) * MICROSECONDS["day"] > _FAR
        if day in perhaps and is_far and counts[text] >= _OFTEN:
            none.append(text)
    if none and others:
        survey.tokens = tuple(sorted(none))
        for text in none:
            assert survey.counts is not None
            survey.n_missing += survey.counts.counts.pop(text)


def _days(texts: Iterable[str]) -> set[int]:
    return {microseconds_since_epoch(datetime.fromisoformat(text)) // MICROSECONDS["day"] for text in texts}


def settle_marks(surveys: Mapping[str, ColumnSurvey]) -> None:
    """Take texts for no value as labels of a column where they seem to be answers."""
    elsewhere = {mark for s in surveys.values() if s.is_number or s.date is not None for mark in s.marks}
    for survey in surveys.values():
        if survey.text is None or survey.is_number or survey.date is not None or survey.counts is None:
            continue
        answers = [mark for mark in survey.marks if is_answer(mark, survey, in_numbers=mark in elsewhere)]
        for mark in answers:
            survey.add_label(mark)


def is_answer(mark: str, survey: ColumnSurvey, *, in_numbers: bool) -> bool:
    """Whether a text that often stands for no value is an answer in a column of labels.

    `None` always is; `NA` among codes of two capitals, or beside blanks in a table whose numbers have none; and `-`
    beside `+`.
    """
    if survey.counts is None or not survey.counts.counts:
        return False
    labels = set(survey.counts.counts)
    if mark == "None":
        return True
    if mark == "-":
        return bool(labels & {"+", "positive", "pos"})
    if mark not in ("NA", "N/A", "n/a"):
        return False
    codes = [label for label in labels if len(label) == 2 and label.isalpha() and label.isupper()]
    if mark == "NA" and len(codes) >= _ALIKE and len(codes) >= 0.9 * len(labels):
        return True
    return survey.has_blanks and not in_numbers
