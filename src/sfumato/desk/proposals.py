"""Proposals of a draft in place of facts read off the records: to discover, or not to release.

    numbers, labels                      discover: true          bounds and categories are estimated by the fit
    names, addresses, free text          identifier              by the column's name
    texts of which most are rare         identifier              names that nobody called so
    many texts, about equally often      identifier              names of people of whom each has many rows
    what numbers people, or may          identifier              by name, form, or what follows: see person_columns
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
    LevelKind,
)
from sfumato.columns.open import Open, OpenKind
from sfumato.columns.roles import measures_bodies, names_people, role_of
from sfumato.desk.person_columns import Evidence
from sfumato.desk.survey import ColumnSurvey, numbers_of_sets
from sfumato.schema.schema_facts import Weight
from sfumato.schema.unit import Unit

_RARE = 10  # a value that occurs fewer times may show a person
_FEW_LABELS, _TIMES = 12, 3  # labels of a code book: so few, each so often on average
_LARGEST = 2**53  # the largest bound that discovery finds
UNIT_ROWS = 5  # of a proposed unit, whatever the records
_EVEN = 4  # values of which none occurs more often than so many times the average
_MANY_LABELS, _MANY_NUMBERS = 50, 150  # people with as many rows each, rather than labels or ages
_FEWEST_NUMBERS = 20  # fewer different numbers may all differ by chance
_IMAGE_TIMES, _MOST_IMAGE_LABELS = 5, 1_000  # labels of images occur so often; numbers that differ name them
_KILOGRAMS = (25, 250)  # between which numbers called weight may be those of bodies
_BY_NAME = {
    "name": "names of people, by the column's name: not released",
    "contact": "an address of people, by the column's name: not released",
    "text": "free text, by the column's name: not released",
    "household": "numbers of households, by the column's name: not released",
}

Guesses = Mapping[str, tuple[ColumnKind, str]]
_FREQUENT = (
    "the fit estimates the frequent ones, rarer ones become `other`; or write the public list, `{file: CODES.csv, "
    "column: CODE}` or `parents`"
)


@dataclass(frozen=True, slots=True)
class _Frequencies:
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
    def of(cls, survey: ColumnSurvey) -> _Frequencies | None:
        """Return the frequencies of a column's values; None without any."""
        if survey.counts is None or not survey.counts.counts:
            return None
        counts = list(survey.counts.counts.values())
        rare = sum(count < _RARE for count in counts)
        distinct = len(counts) << survey.counts.halvings
        return cls(max(counts), min(counts), distinct, rare / len(counts), sum(counts) / len(counts))


def proposals_of(
    surveys: Mapping[str, ColumnSurvey], guesses: Guesses, people: Mapping[str, Evidence]
) -> dict[str, tuple[ColumnKind, str]]:
    """Return the proposal for each column, with a line on why, from exact guesses.

    Beside images and sets no column can be discovered: then the guesses stay, but of people.
    """
    hidden = {
        name: (
            Identifier(),
            f"{'names' if evidence.is_named else 'seems to name'} people: {evidence}: not released. If it names "
            "nobody, write {kind: categorical, discover: true}",
        )
        for name, evidence in people.items()
    }
    if any(isinstance(kind, Image | ItemSet) for kind, _ in guesses.values()):
        return {**guesses, **{name: hidden[name] for name in hidden if people[name].is_named}}
    return {
        name: hidden.get(name) or _proposal(name, surveys[name], kind, note) for name, (kind, note) in guesses.items()
    }


def _proposal(name: str, survey: ColumnSurvey, kind: ColumnKind, note: str) -> tuple[ColumnKind, str]:
    counted = _Frequencies.of(survey)
    by_name = _by_name(name, survey, kind, counted)
    if by_name is not None:
        return by_name
    if isinstance(kind, DateTime):
        if kind.is_clock:
            day = {"lower": "00:00", "upper": "23:59:59.999999", "nullable": True}
            return replace(kind, **day), "times of day: of the whole day, which is no fact of the records"
        open_kind = Open(kind="datetime", format=kind.format, resolution=kind.resolution)
        more = note.removeprefix("dates: replace the bounds")
        return open_kind, f"dates: the fit estimates the first and the last year; or write public bounds{more}"
    if isinstance(kind, Integer) and counted is not None and _names_records(name, survey, counted):
        return Identifier(), (
            "whole numbers that seem to name a record or a person: not released. If they measure something, write "
            "{kind: integer, discover: true}"
        )
    if isinstance(kind, Integer):
        return _to_discover("integer", survey, kind, "whole numbers: the fit estimates bounds; or write public ones")
    if isinstance(kind, Continuous):
        note = "numbers: the fit estimates bounds and decimals; or write public ones, with a resolution"
        return _to_discover("continuous", survey, kind, note)
    if isinstance(kind, Boolean):
        way = "kind: boolean" if kind.text is None else f"{{kind: boolean, text: {list(kind.text)}}}"
        note = f"two truth values: the fit estimates whether some are missing; or write {way}"
        return _to_discover("boolean" if kind.text is None else "categorical", survey, kind, note)
    if isinstance(kind, Categorical):
        return _labels(survey, kind, counted)
    return kind, note


def _by_name(
    name: str, survey: ColumnSurvey, kind: ColumnKind, counted: _Frequencies | None
) -> tuple[ColumnKind, str] | None:
    """Return the proposal by a column's name; None where it says nothing, or the cells speak against it."""
    role = role_of(name)
    if counted is None or not isinstance(kind, Categorical | Identifier | Integer):
        return None
    is_number = isinstance(kind, Integer) or survey.is_number
    few = _is_short_list(survey, counted)
    if role == "place" and is_number:
        if counted.rare_share > 0.5:
            return Identifier(), (
                "codes of places, of which most are rare: not released. `parents` makes larger places of them, such as "
                "by their first digits"
            )
        labels = Categorical.of_text(sorted(survey.distinct or ()), nullable=survey.has_missing)
        return _to_discover("categorical", survey, labels, f"codes of places, no quantities: {_FREQUENT}")
    names = role == "name" and not is_number
    if names or (not few and (role == "contact" or (role in _BY_NAME and not is_number))):
        return Identifier(), _BY_NAME[str(role)]
    return None


def _labels(survey: ColumnSurvey, kind: Categorical, counted: _Frequencies | None) -> tuple[ColumnKind, str]:
    if (
        not survey.is_number
        and counted is not None
        and ((counted.rare_share > 0.5 and not _is_short_list(survey, counted)) or counted.even(_MANY_LABELS))
    ):
        return Identifier(), (
            "texts of which most are rare, or all occur about equally often, as names do: not released. To release the "
            "frequent ones, write {kind: categorical, discover: true}"
        )
    return _to_discover("categorical", survey, kind, f"labels: {_FREQUENT}")


def _is_short_list(survey: ColumnSurvey, counted: _Frequencies) -> bool:
    return counted.distinct <= _FEW_LABELS and survey.n_values >= _TIMES * counted.distinct


def _names_records(name: str, survey: ColumnSurvey, counted: _Frequencies) -> bool:
    """Whether whole numbers name records or people: few times each, equally often; or so named or so long, and rare."""
    if counted.distinct < _FEWEST_NUMBERS:
        return False
    alike = counted.largest == counted.smallest and counted.largest < _RARE
    many = counted.rare_share > 0.5 or counted.even(_MANY_NUMBERS)
    return alike or (many and (names_people(name) or min(abs(survey.lowest or 0), abs(survey.highest or 0)) > _LARGEST))


def _to_discover(open: OpenKind, survey: ColumnSurvey, kind: ColumnKind, note: str) -> tuple[ColumnKind, str]:
    """Return a column to discover, where its type can store whatever is found."""
    open_kind = Open(kind=open)
    if max(abs(survey.lowest or 0), abs(survey.highest or 0)) > _LARGEST:
        return kind, "READ OFF THE RECORDS: numbers so large cannot be discovered. Replace the bounds by public ones"
    if open_kind.reading_fault(survey.storage) is None:
        return open_kind, note
    return kind, "READ OFF THE RECORDS, and cannot be discovered in this type: replace it by public facts"


@dataclass(frozen=True, slots=True)
class Protection:
    """The unit that a draft protects, and the weight of its rows.

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


def proposed_protection(
    surveys: Mapping[str, ColumnSurvey], proposals: Guesses, people: Mapping[str, Evidence]
) -> Protection:
    """Return the unit and the weight: proposed where a name says it and the cells agree, else a question."""
    repeated = [
        name
        for name, (kind, _) in proposals.items()
        if isinstance(kind, Identifier) and (people[name].repeats if name in people else _repeats(surveys[name]))
    ]
    weight, weight_note = _proposed_weight(surveys, proposals)
    by_role = {role: [name for name in repeated if role_of(name) == role] for role in ("person", "household")}
    single = [name for name in proposals if role_of(name) == "person" and name not in repeated]
    persons = by_role["person"] or ([] if any(_is_key(surveys[name]) for name in single) else by_role["household"])
    if persons:
        name = max(persons, key=lambda name: surveys[name].n_distinct)
        shown = f" ({people[name]})" if name in people else ""
        question = (
            f"A long table: {name} repeats{shown}, so that some have several rows. The guarantee protects each with "
            "all of them. max_rows is a proposal of ours, not read off the records: choose it from what is public. "
            "Rows beyond it are not used, and noise grows with it"
        )
        return Protection(Unit(column=name, max_rows=UNIT_ROWS), question, weight, weight_note)
    perhaps = [name for name in repeated if role_of(name) is None and (name in people or names_people(name))]
    perhaps += [name for name in repeated if role_of(name) == "contact" and name in people] + by_role["household"]
    if not any(_is_key(surveys[name]) for name in single):  # else a row is a person
        perhaps += [name for name in proposals if name not in perhaps and numbers_of_sets(surveys[name])]
    perhaps = [name for name in perhaps if weight is None or name != weight.column]
    example = perhaps[0] if perhaps else "NAME"
    question = "Whom does the guarantee protect? It is not stated, so each row counts as another person. "
    unit = f"unit: {{column: {example}, max_rows: {UNIT_ROWS}}}"
    if perhaps:
        repeat = "repeat" if len(perhaps) > 1 else "repeats"
        question += (
            f"{', '.join(perhaps)} {repeat}, as in a long table: if it names people, write {unit}; if a row is one "
            f"item of a set, such as a basket, write {{kind: set, id: {example}}} for the items"
        )
        question += "".join(f". Of {name} there are {people[name]}" for name in perhaps if name in people)
    else:
        question += f"If people have several rows, say which column names them: {unit}"
    return Protection(None, question, weight, weight_note)


def distinct_share(survey: ColumnSurvey) -> float:
    """Return the different values of a column as a share of all, about; 0 without any."""
    counted = _Frequencies.of(survey)
    return 0.0 if counted is None else 1 / counted.average


def _repeats(survey: ColumnSurvey) -> bool:
    """Whether values repeat as numbers of persons do: most are rare, or all are about equally often."""
    counted = _Frequencies.of(survey)
    if counted is None or counted.largest < 2 or counted.distinct < 2:
        return False
    return counted.rare_share > 0.5 or counted.even(_MANY_LABELS)


def _is_key(survey: ColumnSurvey) -> bool:
    """Whether every value occurs once."""
    counted = _Frequencies.of(survey)
    return counted is not None and counted.largest == 1


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
        highest = float(survey.highest or 1)
        power = 10.0 ** math.floor(math.log10(highest))
        # the next number of 1, 2, 5, 10, 20 and so on
        upper = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= highest)
        return Weight(column=name, upper=upper), note
    return None, ""


def _is_survey(name: str, surveys: Mapping[str, ColumnSurvey]) -> bool:
    """Whether a column called weight is no weight of bodies or goods, as far as other columns and its size tell."""
    survey, others = surveys[name], [other for other in surveys if other != name]
    low, high = survey.lowest or 0, survey.highest or 0
    is_body = low >= _KILOGRAMS[0] / 2 and high <= _KILOGRAMS[1]
    return not measures_bodies(others) and not is_body


def beside_images(
    surveys: Mapping[str, ColumnSurvey], guesses: Guesses, *, left_out: int
) -> dict[str, tuple[ColumnKind, str]]:
    """Return guesses with labels in place of whole numbers, and one column of labels as the one that is modelled.

    Args:
        surveys: by column.
        guesses: by column, a kind and a line on why; one at least is of images.
        left_out: how many records are not read, for the holder's own screen.
    """
    proposals = {name: _image_guess(surveys[name], kind, note) for name, (kind, note) in guesses.items()}
    labels = [name for name, (kind, _) in proposals.items() if isinstance(kind, LevelKind)]
    for name, (kind, note) in proposals.items():
        if isinstance(kind, Image) and left_out:
            proposals[name] = (
                kind,
                f"{note}; {left_out:,} not read, of another size or no images: sfumato schema validate",
            )
        if name in labels[1:]:
            proposals[name] = kind, f"{note}. Beside images one column of labels is modelled: write kind: identifier"
    return proposals


def _image_guess(survey: ColumnSurvey, kind: ColumnKind, note: str) -> tuple[ColumnKind, str]:
    distinct = survey.distinct
    if not isinstance(kind, Integer) or distinct is None or len(distinct) > _MOST_IMAGE_LABELS:
        return kind, note
    if survey.n_values < _IMAGE_TIMES * len(distinct):
        return kind, note
    labels = tuple(sorted(distinct, key=float))
    return Categorical.of_text(labels, nullable=kind.nullable), "labels of the images: replace by the public list"
