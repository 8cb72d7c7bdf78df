"""A first schema for a human to edit: kinds guessed, facts read off the records.

What is drafted is exact and therefore private. The draft says so at its top; a release is only as
good as the public facts that replace it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import is_text
from sfumato.columns.facts import EPOCH
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
from sfumato.columns.open import Open
from sfumato.columns.resolutions import MICROSECONDS
from sfumato.columns.text_forms import MISSING_TOKENS
from sfumato.columns.written import Written
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Source
from sfumato.io.headers import require_names
from sfumato.io.picture_cells import with_likely_pictures
from sfumato.records.image_labels import beside_images
from sfumato.records.proposals import proposed, proposed_unit
from sfumato.records.rule_candidates import rule_candidates
from sfumato.records.survey import (
    MISSING_MARKS,
    MOST_DISTINCT,
    ColumnSurvey,
    Moments,
    settle_forms,
    survey_columns,
    take_none_as_label,
)
from sfumato.rules import rule_text
from sfumato.schema.documents import yaml_text
from sfumato.schema.reader import Reader
from sfumato.schema.schema import Schema

_NONE = "None"
_FEW_NUMBERS = 12  # whole numbers with at most so many values are codes
_LARGEST_WHOLE = 2**63 - 1
_FEW_LABELS = 50  # text with at most so many values is a list of labels
_SPARSEST = 4  # whole numbers of which fewer than one in so many are items are names, not places in a list
_WRITTEN = (("FALSE", "TRUE"), ("False", "True"))
_LOGICAL = ({"true", "false"}, *map(set, _WRITTEN))

_HEADER = """\
# A draft: edit it before any release.
#
# The kinds were guessed, and the facts below that are not to be discovered were READ OFF THE
# RECORDS. A guarantee of privacy holds only for public facts: replace every one by what is
# publicly known (a code book, a questionnaire, the law, common sense), wider rather than
# narrower, and do not publish this draft.

# Taking this line out is your word that the facts below are public.
draft: true
"""
_OPEN = """\
# What says `discover: true`, the method gaussian buys with part of the budget. All other methods
# need it declared: public bounds or categories in its place.
"""
_NO_ROWS = """\
# The number of rows is not written: buy one (fit --buy-rows), or write a round public number here.
"""


_RULES = """\
# Rules that all records at hand keep, READ OFF THEM. Keep those that hold for whoever is not in them, by law, by
# arithmetic or by the questionnaire, and take the # away. They need columns whose facts are declared, not discovered.
# rules:
"""


@dataclass(frozen=True, slots=True, repr=False)
class Draft:
    """A drafted schema with the reason for each guess.

    Attributes:
        schema: the draft, valid as it stands.
        notes: column name to one line for its reader.
        unit_note: one line on the unit, if one is proposed.
        candidates: rules that the records keep, if they were asked for: comments of the file, until someone vouches.
    """

    schema: Schema
    notes: Mapping[str, str]
    unit_note: str = ""
    candidates: tuple[Mapping[str, Any], ...] = ()

    def to_yaml(self) -> str:
        """Return the draft as an annotated schema file."""
        lines = [_HEADER, "\n", _OPEN if self.schema.open else ""]
        if self.schema.rows is not None:
            lines.append(f"rows: {self.schema.rows}  # counted; a round nominal size will do\n")
        else:
            lines.append(_NO_ROWS)
        if self.schema.unit is not None:
            lines += [f"# {self.unit_note}\n", yaml_text({"unit": self.schema.unit.to_dict()})]
        top = {key: value for key, value in self.schema.to_dict().items() if key in ("missing", "reader")}
        if top:
            lines += ["# How cells are written; nothing here may hide a value that means something.\n", yaml_text(top)]
        lines.append("columns:\n")
        for name, kind in self.schema.columns.items():
            entry = yaml_text({name: self.schema.reader.entry_of(kind)})
            lines.append(f"  # {self.notes[name]}\n")
            lines.extend(f"  {line}\n" for line in entry.splitlines())
        if self.candidates:
            lines += [_RULES, *(f"#  - {rule_text(rule)}\n" for rule in self.candidates)]
        return "".join(lines)


def draft_schema(
    source: Source, *, exact: bool = False, names_are_public: bool = False, suggest_rules: bool = False
) -> Draft:
    """Draft a schema in one pass over a source, in memory bounded by a chunk. It is marked as a draft: fits refuse it.

    Privacy: none. The draft holds facts about the records, for the data holder's own eyes.

    Args:
        source: where the records lie.
        exact: declare bounds, categories and the number of rows as they are in the records; else propose to discover
            them, to leave out what names people, and the unit that a repeated name suggests.
        names_are_public: take the first line of a CSV as names even where one is a number or a date.
        suggest_rules: also list rules that all records keep, in two more passes.

    Raises:
        DataError: the source cannot be read, the first line of a CSV may be a record, or there is nothing to describe.
    """
    if not names_are_public:
        require_names(source)
    measured = with_likely_pictures(source.measured())
    surveys = survey_columns(measured)
    decimal = settle_forms(surveys)
    guesses = {name: _guess(survey) for name, survey in surveys.items()}
    if any(isinstance(kind, Image) for kind, _ in guesses.values()):
        guesses = beside_images(surveys, guesses, left_out=sum(1 for _ in measured.skipped()))
    found = {name: _as_written(kind, surveys[name]) for name, (kind, _) in guesses.items()}
    rows = max((survey.n_cells for survey in surveys.values()), default=0) or None
    unit, unit_note = None, ""
    if not exact:
        guesses = {
            name: (_as_written(kind, surveys[name]), note) for name, (kind, note) in proposed(surveys, guesses).items()
        }
        unit, unit_note = proposed_unit(surveys, guesses) or (None, "")
    columns = {name: kind for name, (kind, _) in guesses.items()}
    is_table = not any(isinstance(kind, Image | ItemSet) for kind in columns.values())
    if is_table and not exact:
        rows = None  # bought, or given
    schema = None
    with contextlib.suppress(SchemaError):
        reader = _reader(source, decimal)
        schema = Schema(
            columns=columns, rows=rows, unit=unit, draft=True, missing=_missing(surveys, columns), reader=reader
        )
    if schema is None:
        raise DataError(
            f"Expected a column of {source.label} that can be described and names nobody, got none. Write its schema "
            "by hand."
        )
    candidates = ()
    if suggest_rules and is_table:
        candidates = tuple(rule_candidates(source, dataclasses.replace(schema, columns=found, sources={}, unit=None)))
    return Draft(schema, {name: note for name, (_, note) in guesses.items()}, unit_note, candidates)


def _reader(source: Source, decimal: str | None) -> Reader:
    """Return what is the same in the whole table: the decimal mark, and the form of the file."""
    form = source.found_form()
    written = Written(decimal=decimal) if decimal not in (None, ".") else Written()
    return Reader(written=written, delimiter=form.delimiter, encoding=form.encoding)


def _missing(surveys: Mapping[str, ColumnSurvey], columns: Mapping[str, ColumnKind]) -> tuple[str, ...]:
    """Return what stands for no value: also the marks that were seen, and not a `None` that is a label."""
    marks = {mark for survey in surveys.values() for mark in survey.marks}
    labels = {label for kind in columns.values() if isinstance(kind, LevelKind) for label in kind.labels}
    said = any(survey.counts is not None and _NONE in survey.counts.counts for survey in surveys.values())
    usual = [token for token in MISSING_TOKENS if token != _NONE or not (said or _NONE in labels)]
    return (*usual, *(mark for mark in MISSING_MARKS if mark in marks))


def _as_written(kind: ColumnKind, survey: ColumnSurvey) -> ColumnKind:
    """Return a kind of numbers with the form in which they were found."""
    if survey.written is None:
        return kind
    if isinstance(kind, Integer | Continuous) or (isinstance(kind, Open) and kind.may_be_number):
        return dataclasses.replace(kind, written=survey.written)
    return kind


def _guess(survey: ColumnSurvey) -> tuple[ColumnKind, str]:
    """Return a kind for a column, and a line on why."""
    try:
        kind, note = _guess_kind(survey)
    except (SchemaError, OverflowError):
        if isinstance(survey.storage, pa.FixedShapeTensorType):
            raise  # images whose channels come first: no record says so
        kind, note = Identifier(), "no kind fits its values: not released"
    return _as_written(kind, survey), note


def _guess_kind(survey: ColumnSurvey) -> tuple[ColumnKind, str]:
    storage = survey.storage
    if isinstance(storage, pa.FixedShapeTensorType):
        return _image(survey, storage)
    if survey.items is not None and survey.items.n_values:
        return _sets(survey.items, survey.longest)
    if not survey.n_values or survey.items is not None:
        return Identifier(), "no value seen: not released"
    if _is_logical(survey):
        words = next((pair for pair in _WRITTEN if survey.distinct == set(pair)), None)
        return Boolean(text=words, nullable=survey.n_missing > 0), "two truth values"
    if survey.is_number and survey.lowest is not None and survey.highest is not None:
        return _number(survey, survey.lowest, survey.highest)
    format, moments = next(iter(survey.dates.items()), (None, None))
    if moments is not None:
        return _datetime(survey, format, moments)
    if survey.distinct is None and not is_text(storage):
        return Identifier(), f"type {storage} is not modelled: not released"
    return _labels(survey)


def _image(survey: ColumnSurvey, storage: pa.FixedShapeTensorType) -> tuple[ColumnKind, str]:
    dtype = str(storage.value_type.to_pandas_dtype().__name__)
    lower, upper = 0.0, 255.0
    if dtype != "uint8":
        lower = min(0.0, survey.lowest or 0.0)
        upper = max(1.0, survey.highest or 0.0)
    shape = tuple(storage.shape)
    return Image(shape=shape, dtype=dtype, lower=lower, upper=upper), "images: check the bounds"


def _sets(items: ColumnSurvey, longest: int) -> tuple[ColumnKind, str]:
    lowest, highest = items.lowest, items.highest
    distinct = items.distinct
    if items.is_number and items.is_whole and lowest is not None and highest is not None and lowest >= 0:
        n_items = int(highest) + 1
        if n_items <= ItemSet.MOST_ITEMS and (distinct is None or n_items <= _SPARSEST * len(distinct)):
            note = "sets of the numbers 0 to n_items - 1: replace both by public facts; or list the items"
            return ItemSet(n_items=n_items, max_length=longest), note
    if distinct is None:
        return Identifier(), f"sets of more than {MOST_DISTINCT} different items: not released; list those to keep"
    labels = sorted(distinct, key=float) if items.is_number else sorted(distinct)
    return ItemSet(items=tuple(labels), max_length=longest), (
        "sets: replace by the full public list and a public length; `other: <item>` takes the rest"
    )


def _is_logical(survey: ColumnSurvey) -> bool:
    storage = survey.storage
    if types.is_dictionary(storage):
        storage = storage.value_type
    if types.is_boolean(storage):
        return True
    return survey.distinct is not None and survey.distinct in _LOGICAL


def _number(survey: ColumnSurvey, lowest: float, highest: float) -> tuple[ColumnKind, str]:
    nullable = survey.n_missing > 0
    if not survey.is_whole:
        resolution = None
        if survey.decimals is not None:
            resolution = float(f"1e-{survey.decimals}")
        kind = Continuous(lower=lowest, upper=highest, resolution=resolution, nullable=nullable)
        return kind, "numbers: replace the bounds; the resolution is that of the values seen"
    distinct = survey.distinct
    is_repeated = survey.written is None and distinct is not None and survey.n_values >= 5 * len(distinct)
    if distinct is not None and is_repeated and len(distinct) <= _FEW_NUMBERS:
        labels = tuple(sorted(distinct, key=float))
        note = "few whole numbers: codes; if they count something, write kind: integer"
        return Categorical(categories=labels, nullable=nullable), note
    if highest >= _LARGEST_WHOLE:  # what is larger is read as this
        return (
            Identifier(),
            "whole numbers beyond 63 bits: not released; store them as text if they are codes",
        )
    kind = Integer(lower=int(lowest), upper=int(highest), nullable=nullable)
    if distinct is not None and len(distinct) == survey.n_values > _FEW_LABELS:
        return kind, "every value differs: if it names a record, write kind: identifier"
    return kind, "whole numbers: replace the bounds"


def _datetime(survey: ColumnSurvey, format: str | None, moments: Moments) -> tuple[ColumnKind, str]:
    step = MICROSECONDS[moments.resolution]
    lower, upper = (
        (EPOCH + timedelta(microseconds=moment // step * step)).isoformat(" ")
        for moment in (moments.earliest, moments.latest)
    )
    if moments.resolution == "day":
        lower, upper = lower[:10], upper[:10]
    kind = DateTime(
        lower=lower,
        upper=upper,
        resolution=moments.resolution,
        format=format,
        nullable=survey.n_missing > 0,
    )
    others = [other for other in survey.dates if other not in (format, None)]
    if others:
        return kind, f"dates: replace the bounds; the format could also be {others[0]}"
    return kind, "dates: replace the bounds"


def _labels(survey: ColumnSurvey) -> tuple[ColumnKind, str]:
    take_none_as_label(survey)
    distinct = survey.distinct
    if distinct is None:
        return Identifier(), f"more than {MOST_DISTINCT} different texts: not released"
    if len(distinct) > _FEW_LABELS and len(distinct) > survey.n_values / 2:
        return Identifier(), "most texts differ: not released"
    kind = Categorical(categories=tuple(sorted(distinct)), nullable=survey.n_missing > 0)
    return kind, "labels: replace by the full public list; `other: <label>` takes the rest"
