"""What a draft proposes in place of facts read off the records: to discover, or not to release.

    numbers, labels                      discover: true          bounds and categories are bought by the fit
    names, addresses, free text          identifier              by the column's name
    texts of which most are rare         identifier              names that nobody called so
    many texts, about equally often      identifier              names of people of whom each has many rows
    whole numbers that name a record     identifier
    codes of places                      labels                  a zip code is no quantity
    a number of persons that repeats     unit                    several rows of one person
    a survey's weight                    weight

Rare is judged for the holder's screen alone: nothing of it goes into a release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

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
from sfumato.columns.roles import measures_bodies, names_people, role_of
from sfumato.desk.long_hints import numbers_of_sets
from sfumato.desk.survey import ColumnSurvey
from sfumato.schema.unit import Unit
from sfumato.schema.weight import Weight

_RARE = 10  # a value that occurs fewer times may show a person
_FEW_LABELS, _TIMES = 12, 3  # labels of a code book: so few, each so often on average
_LARGEST = 2**53  # what discovery finds lies within
_UNIT_ROWS = 5  # of a proposed unit, whatever the records
_EVEN = 4  # values of which none occurs more often than so many times the average
_MANY_LABELS, _MANY_NUMBERS = 50, 150  # people with as many rows each, rather than labels or ages
_FEWEST_NUMBERS = 20  # fewer different numbers may all differ by chance
_KILOGRAMS = (25, 250)  # between which numbers called weight may be those of bodies
_BY_NAME = {
    "name": "names of people, by the column's name: not released",
    "contact": "an address of people, by the column's name: not released",
    "text": "free text, by the column's name: not released",
    "person": "numbers or names of people, by the column's name: not released",
    "household": "numbers of households, by the column's name: not released",
}

Guesses = Mapping[str, tuple[ColumnKind, str]]
_FREQUENT = (
    "the fit estimates the frequent ones, rarer ones become `other`; or write the public list, `{file: CODES.csv, "
    "column: CODE}` or `parents`"
)


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
        counts = list(survey.counts.counts.values())
        rare = sum(count < _RARE for count in counts)
        distinct = len(counts) << survey.counts.halvings
        return cls(max(counts), min(counts), distinct, rare / len(counts), sum(counts) / len(counts))


def proposed(surveys: Mapping[str, ColumnSurvey], guesses: Guesses) -> dict[str, tuple[ColumnKind, str]]:
    """Return what to propose for each column, with a line on why, from exact guesses.

    Beside images and sets no column can be discovered: then the guesses stay.
    """
    if any(isinstance(kind, Image | ItemSet) for kind, _ in guesses.values()):
        return dict(guesses)
    return {name: _proposal(name, surveys[name], kind, note) for name, (kind, note) in guesses.items()}


def _proposal(name: str, survey: ColumnSurvey, kind: ColumnKind, note: str) -> tuple[ColumnKind, str]:
    counted = _Counted.of(survey)
    by_name = _by_name(name, survey, kind, counted)
    if by_name is not None:
        return by_name
    if isinstance(kind, DateTime):
        if kind.is_clock:
            day = {"lower": "00:00", "upper": "23:59:59.999999", "nullable": True}
            return replace(kind, **day), "times of day: of the whole day, which is no fact of the records"
        open_kind = Open(kind="datetime", format=kind.format, resolution=kind.resolution)
        more = note.removeprefix("dates: replace the bounds")
        return open_kind, f"dates: the fit buys the first and the last year; or write public bounds{more}"
    if isinstance(kind, Integer) and counted is not None and _names_records(name, survey, counted):
        return Identifier(), (
            "whole numbers that seem to name a record or a person: not released. If they measure something, write "
            "{kind: integer, discover: true}"
        )
    if isinstance(kind, Integer):
        return _opened("integer", survey, kind, "whole numbers: the fit buys bounds; or write public ones")
    if isinstance(kind, Continuous):
        note = "numbers: the fit buys bounds and decimals; or write public ones, with a resolution"
        return _opened("continuous", survey, kind, note)
    if isinstance(kind, Boolean):
        note = "two truth values: the fit buys whether some are missing; or write kind: boolean"
        return _opened("boolean" if kind.text is None else "categorical", survey, kind, note)
    if isinstance(kind, Categorical):
        return _labels(survey, kind, counted)
    return kind, note


def _by_name(
    name: str, survey: ColumnSurvey, kind: ColumnKind, counted: _Counted | None
) -> tuple[ColumnKind, str] | None:
    """Return what a column's name asks for; None if nothing, or if its cells speak against it."""
    role = role_of(name)
    if counted is None or not isinstance(kind, Categorical | Identifier | Integer):
        return None
    is_number = isinstance(kind, Integer) or survey.is_number
    few = counted.distinct <= _FEW_LABELS and survey.n_values >= _TIMES * counted.distinct
    if role == "place" and is_number:
        if counted.rare_share > 0.5:
            return Identifier(), (
                "codes of places, of which most are rare: not released. `parents` makes larger places of them, such as "
                "by their first digits"
            )
        labels = Categorical(categories=tuple(sorted(survey.distinct or ())), nullable=survey.has_missing)
        return _opened("categorical", survey, labels, f"codes of places, no quantities: {_FREQUENT}")
    if role == "name" and not is_number:
        return Identifier(), _BY_NAME[role]
    if role == "contact" and not few:
        return Identifier(), _BY_NAME[role]
    if role in ("text", "person", "household") and not few and not is_number:
        return Identifier(), _BY_NAME[role]
    return None


def _labels(survey: ColumnSurvey, kind: Categorical, counted: _Counted | None) -> tuple[ColumnKind, str]:
    if not survey.is_number and counted is not None and _is_rare(survey, counted):
        return Identifier(), (
            "texts of which most are rare, or all occur about equally often, as names do: not released. To release the "
            "frequent ones, write {kind: categorical, discover: true}"
        )
    return _opened("categorical", survey, kind, f"labels: {_FREQUENT}")


def _is_rare(survey: ColumnSurvey, counted: _Counted) -> bool:
    """Whether most values of a text are rare and it is no short list of labels, or many occur equally often."""
    is_list = counted.distinct <= _FEW_LABELS and survey.n_values >= _TIMES * counted.distinct
    return (counted.rare_share > 0.5 and not is_list) or counted.even(_MANY_LABELS)


def _names_records(name: str, survey: ColumnSurvey, counted: _Counted) -> bool:
    """Whether whole numbers name records or people: few times each, equally often; or so named or so long, and rare."""
    if counted.distinct < _FEWEST_NUMBERS:
        return False
    alike = counted.largest == counted.smallest and counted.largest < _RARE
    many = counted.rare_share > 0.5 or counted.even(_MANY_NUMBERS)
    return alike or (many and (names_people(name) or min(abs(survey.lowest or 0), abs(survey.highest or 0)) > _LARGEST))


def _opened(open: OpenKind, survey: ColumnSurvey, kind: ColumnKind, note: str) -> tuple[ColumnKind, str]:
    """Return a column to discover, where its type can store whatever is found."""
    open_kind = Open(kind=open)
    if max(abs(survey.lowest or 0), abs(survey.highest or 0)) > _LARGEST:
        return kind, "READ OFF THE RECORDS: numbers so large cannot be discovered. Replace the bounds by public ones"
    if open_kind.reading_fault(survey.storage) is None:
        return open_kind, note
    return kind, "READ OFF THE RECORDS, and cannot be discovered in this type: replace it by public facts"


@dataclass(frozen=True, slots=True)
class Whose:
    """Whom a draft protects, and whom a row stands for.

    Attributes:
        unit: the proposed unit, if a column names persons or households and repeats.
        question: one line on it, or one that asks.
        weight: the proposed weight, if a column is called so.
        weight_note: one line on it; empty without.
    """

    unit: Unit | None
    question: str
    weight: Weight | None = None
    weight_note: str = ""


def proposed_whose(surveys: Mapping[str, ColumnSurvey], proposals: Guesses) -> Whose:
    """Return whom to protect and what weighs rows: proposed where a name says it and the cells agree, else asked."""
    repeated = [
        name for name, (kind, _) in proposals.items() if isinstance(kind, Identifier) and _repeats(surveys[name])
    ]
    weight, weight_note = _proposed_weight(surveys, proposals)
    by_role = {role: [name for name in repeated if role_of(name) == role] for role in ("person", "household")}
    single = [name for name in proposals if role_of(name) == "person" and name not in repeated]
    persons = by_role["person"] or ([] if any(_is_key(surveys[name]) for name in single) else by_role["household"])
    if persons:
        name = max(persons, key=lambda name: _distinct(surveys[name]))
        question = (
            f"A long table: {name} repeats, so that some have several rows. The guarantee protects each with all of "
            "them. max_rows is a proposal of ours, not read off the records: choose it from what is public. Rows "
            "beyond it are not used, and noise grows with it"
        )
        return Whose(Unit(column=name, max_rows=_UNIT_ROWS), question, weight, weight_note)
    perhaps = [name for name in repeated if role_of(name) is None and names_people(name)] + by_role["household"]
    if not any(_is_key(surveys[name]) for name in single):  # else a row is a person
        perhaps += [name for name in proposals if name not in perhaps and numbers_of_sets(surveys[name])]
    perhaps = [name for name in perhaps if weight is None or name != weight.column]
    example = perhaps[0] if perhaps else "NAME"
    question = "Whom does the guarantee protect? Not said, so each row counts as another person. "
    if perhaps:
        listed, repeat = (", ".join(perhaps), "repeat" if len(perhaps) > 1 else "repeats")
        question += f"{listed} {repeat}, as in a long table: if it names people, write "
    else:
        question += "If people have several rows, say which column names them: "
    question += f"unit: {{column: {example}, max_rows: {_UNIT_ROWS}}}"
    if perhaps:
        question += (
            f"; if a row is one item of a set, such as a basket, write {{kind: set, id: {example}}} for the items"
        )
    return Whose(None, question, weight, weight_note)


def _repeats(survey: ColumnSurvey) -> bool:
    """Whether values repeat as numbers of persons do: most are rare, or all are about equally often."""
    counted = _Counted.of(survey)
    if counted is None or counted.largest < 2 or counted.distinct < 2:
        return False
    return counted.rare_share > 0.5 or counted.even(_MANY_LABELS)


def _is_key(survey: ColumnSurvey) -> bool:
    """Whether every value occurs once."""
    counted = _Counted.of(survey)
    return counted is not None and counted.largest == 1


def _distinct(survey: ColumnSurvey) -> int:
    return 0 if survey.counts is None else survey.counts.n_distinct


def _proposed_weight(surveys: Mapping[str, ColumnSurvey], proposals: Guesses) -> tuple[Weight | None, str]:
    """Return the column of a survey's weights, with a line on why."""
    for name in proposals:
        survey, role = surveys[name], role_of(name)
        if role not in ("weight", "perhaps weight") or not survey.is_number or not (survey.highest or 0) > 0:
            continue
        if (survey.lowest or 0) < 0 or (role == "perhaps weight" and not _is_survey(name, surveys)):
            continue
        note = (
            f"{name} seems to say how many people a row stands for: samples are of these people. `upper` is READ OFF "
            "THE RECORDS, rounded up: replace it by a public bound. If it measures something, take this line out and "
            "write a kind for the column"
        )
        return Weight(column=name, upper=_rounded_up(float(survey.highest or 1))), note
    return None, ""


def _is_survey(name: str, surveys: Mapping[str, ColumnSurvey]) -> bool:
    """Whether a column called weight is no weight of bodies or goods, as far as other columns and its size tell."""
    survey, others = surveys[name], [other for other in surveys if other != name]
    low, high = survey.lowest or 0, survey.highest or 0
    is_body = low >= _KILOGRAMS[0] / 2 and high <= _KILOGRAMS[1]
    return not measures_bodies(others) and not is_body


def _rounded_up(number: float) -> float:
    """Return the next number of 1, 2, 5, 10, 20 and so on."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= number)
