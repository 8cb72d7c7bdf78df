"""What a draft proposes in place of facts read off the records: to discover, or not to release.

    numbers, labels                      discover: true          bounds and categories are bought by the fit
    texts of which most are rare         identifier              first names, addresses, free text
    many texts, about equally often      identifier              names of people of whom each has many rows
    whole numbers that name a record     identifier
    an identifier that repeats           unit                    several rows of one person

Rare is judged for the holder's screen alone: nothing of it goes into a release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.columns.kinds import (
    Boolean,
    Categorical,
    ColumnKind,
    Continuous,
    DateTime,
    Identifier,
    Image,
    Integer,
    ItemSet,
)
from sfumato.columns.open import Open, OpenKind
from sfumato.records.survey import ColumnSurvey
from sfumato.schema.unit import Unit

_RARE = 10  # a value that occurs fewer times may show a person
_FEW_LABELS, _TIMES = 12, 3  # labels of a code book: so few, each so often on average
_LARGEST = 2**53  # what discovery finds lies within
_UNIT_ROWS = 5  # of a proposed unit, whatever the records
_EVEN = 4  # values of which none occurs more often than so many times the average
_MANY_LABELS, _MANY_NUMBERS = 50, 150  # people with as many rows each, rather than labels or ages
_FEWEST_NUMBERS = 20  # fewer different numbers may all differ by chance
_NAMES_PERSON = re.compile(
    r"(?:^|[\W_])(?:id|ids|nr|no|uuid|guid|ssn|mrn|nhs|pid)(?:$|[\W_])|[a-z](?:Id|ID|Nr|No)$"
    r"|(?i:patient|person|subject|customer|user|client|household|member|account|respondent|participant|defendant|phone|passport)"
)

Guesses = Mapping[str, tuple[ColumnKind, str]]


def names_people(name: str) -> bool:
    """Whether a column's name alone says that it names people or records.

    Example:
        >>> names_people("patient_id"), names_people("age")
        (True, False)
    """
    return _NAMES_PERSON.search(name) is not None


@dataclass(frozen=True, slots=True)
class _Counted:
    """How often values occur.

    Attributes:
        largest: count of the most frequent value.
        smallest: count of the rarest.
        distinct: how many values there are, roughly if they are many.
        rare_share: share of the values that are rare.
        average: how often a value occurs on average.
    """

    largest: int
    smallest: int
    distinct: int
    rare_share: float
    average: float

    def even(self, more_than: int) -> bool:
        """Whether more values than so many occur about equally often, as people do of whom each has many rows."""
        return self.distinct > more_than and self.largest <= _EVEN * self.average

    @classmethod
    def of(cls, survey: ColumnSurvey) -> _Counted | None:
        """Return what is known of a column's values; None without any."""
        if survey.counts is None or not survey.counts.counts:
            return None
        found = list(survey.counts.counts.values())
        rare = sum(count < _RARE for count in found)
        distinct = len(found) << survey.counts.halvings
        return cls(max(found), min(found), distinct, rare / len(found), sum(found) / len(found))


def proposed(surveys: Mapping[str, ColumnSurvey], guesses: Guesses) -> dict[str, tuple[ColumnKind, str]]:
    """Return what to propose for each column, with a line on why, from exact guesses.

    Beside images and sets no column can be discovered: then the guesses stay.
    """
    if any(isinstance(kind, Image | ItemSet) for kind, _ in guesses.values()):
        return dict(guesses)
    return {name: _proposal(name, surveys[name], kind, note) for name, (kind, note) in guesses.items()}


def _proposal(name: str, survey: ColumnSurvey, kind: ColumnKind, note: str) -> tuple[ColumnKind, str]:
    counted = _Counted.of(survey)
    if isinstance(kind, DateTime):
        found = Open(kind="datetime", format=kind.format, resolution=kind.resolution)
        said = note.removeprefix("dates: replace the bounds")
        return found, f"dates: the fit buys the first and the last year; or write public bounds{said}"
    if isinstance(kind, Integer) and counted is not None and _names_records(name, counted):
        return Identifier(), (
            "whole numbers that seem to name a record or a person: not released. If they measure something, write "
            "{kind: integer, discover: true}"
        )
    if isinstance(kind, Integer):
        return _opened("integer", survey, kind, "whole numbers: the fit buys bounds; or write public ones")
    if isinstance(kind, Continuous):
        note = "numbers: the fit buys bounds; for rounded samples write public ones, with a resolution"
        return _opened("continuous", survey, kind, note)
    if isinstance(kind, Boolean):
        note = "two truth values: the fit buys whether some are missing; or write kind: boolean"
        return _opened("boolean" if kind.text is None else "categorical", survey, kind, note)
    if isinstance(kind, Categorical):
        return _labels(survey, kind, counted)
    return kind, note


def _labels(survey: ColumnSurvey, kind: Categorical, counted: _Counted | None) -> tuple[ColumnKind, str]:
    if not survey.is_number and counted is not None and _is_rare(survey, counted):
        return Identifier(), (
            "texts of which most are rare, or all occur about equally often, as names do: not released. To release the "
            "frequent ones, write {kind: categorical, discover: true}"
        )
    return _opened("categorical", survey, kind, "labels: the fit buys the frequent ones; or write the public list")


def _is_rare(survey: ColumnSurvey, counted: _Counted) -> bool:
    """Whether most values of a text are rare and it is no short list of labels, or many occur equally often."""
    is_list = counted.distinct <= _FEW_LABELS and survey.n_values >= _TIMES * counted.distinct
    return (counted.rare_share > 0.5 and not is_list) or counted.even(_MANY_LABELS)


def _names_records(name: str, counted: _Counted) -> bool:
    """Whether whole numbers name records or people: few times each, equally often; or so named, and rare or even."""
    if counted.distinct < _FEWEST_NUMBERS:
        return False
    alike = counted.largest == counted.smallest and counted.largest < _RARE
    many = counted.rare_share > 0.5 or counted.even(_MANY_NUMBERS)
    return alike or (many and _NAMES_PERSON.search(name) is not None)


def _opened(open: OpenKind, survey: ColumnSurvey, kind: ColumnKind, note: str) -> tuple[ColumnKind, str]:
    """Return a column to discover, where its type can store whatever is found."""
    found = Open(kind=open)
    if max(abs(survey.lowest or 0), abs(survey.highest or 0)) > _LARGEST:
        return kind, "READ OFF THE RECORDS: numbers so large cannot be discovered. Replace the bounds by public ones"
    if found.reading_fault(survey.storage) is None:
        return found, note
    return kind, "READ OFF THE RECORDS, and cannot be discovered in this type: replace it by public facts"


def proposed_unit(surveys: Mapping[str, ColumnSurvey], proposals: Guesses) -> tuple[Unit, str] | None:
    """Return the unit to propose, with a line on why: of the identifiers that repeat, the one with most values."""
    found: dict[str, _Counted] = {}
    for name, (kind, _) in proposals.items():
        counted = _Counted.of(surveys[name])
        if isinstance(kind, Identifier) and counted is not None and counted.largest > 1 and counted.distinct > 1:
            found[name] = counted
    found = {name: c for name, c in found.items() if c.rare_share > 0.5 or c.even(_MANY_LABELS)}
    if not found:
        return None
    name = max(found, key=lambda name: (_NAMES_PERSON.search(name) is not None, found[name].distinct))
    note = (
        "some have several rows: it protects each with all of them. max_rows is a proposal of ours, not read off the "
        "records: choose it from what is public. Rows beyond it are not used, and noise grows with it"
    )
    return Unit(column=name, max_rows=_UNIT_ROWS), note
