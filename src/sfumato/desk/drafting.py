"""A first schema for a human to edit: kinds guessed, facts read off the records.

What is drafted is exact and therefore private. The draft says so at its top; a release is only as
good as the public facts that replace it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import is_text
from sfumato.columns.date_text import has_date, parse_dates
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
)
from sfumato.columns.open import Open
from sfumato.columns.resolutions import MICROSECONDS, moment_of, step_of
from sfumato.columns.written import Written
from sfumato.desk.draft_notes import column_note, left_out, missing_texts
from sfumato.desk.long_hints import set_hint
from sfumato.desk.proposals import Guesses, Protection, beside_images, proposals_of, proposed_protection
from sfumato.desk.rule_candidates import rule_candidates
from sfumato.desk.sentinels import settle_marks, settle_texts
from sfumato.desk.survey import CLOCK, MOST_DISTINCT, ColumnSurvey, TimeSpan, survey_columns
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Source
from sfumato.io.headers import require_names
from sfumato.io.picture_cells import with_likely_pictures
from sfumato.rules import rule_text
from sfumato.rules.rule_entries import numeric_columns
from sfumato.schema.documents import yaml_text
from sfumato.schema.reader import Reader
from sfumato.schema.schema import Schema

_DAY, _MONTH = re.compile("%-?d"), re.compile("%-?m")
_FEW_NUMBERS = 12  # whole numbers with at most so many values are codes
_LARGEST_WHOLE = 2**63 - 1
_MOST_RULES = 30  # that a draft proposes
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
# Columns of `discover: true` are estimated by the method max-entropy with part of the budget. All other methods
# need them declared: public bounds or categories in its place.
"""
_NO_ROWS = """\
# The number of rows is not written: have one estimated (fit --rows estimate), or write a round public number here.
"""


_RULES = """\
# Rules that all records at hand keep, READ OFF THEM: nobody's dates swap, all parts add up. Keep those that hold for
# whoever is not in them, by law, by arithmetic or by the questionnaire; take the others out.
rules:
"""
_MORE_RULES = """\
# More rules that all records at hand keep, READ OFF THEM. Where one holds for whoever is not in them, put it under
# `rules:` without its #. These need columns whose facts are declared, not discovered.
"""


@dataclass(frozen=True, slots=True, repr=False)
class Draft:
    """A drafted schema with the reason for each guess.

    Attributes:
        schema: the draft, valid as it stands.
        notes: column name to one line for its reader.
        protection: whom it protects, or a question, and the weight of its rows.
        left_out: one line a problem of records that are not read, or not to their end.
        candidates: rules of labels that the records keep, if they were asked for: comments of the file, until someone
            vouches. Those of order and arithmetic are rules of the schema, to be read and taken out.
    """

    schema: Schema
    notes: Mapping[str, str]
    protection: Protection
    left_out: tuple[str, ...] = ()
    candidates: tuple[Mapping[str, Any], ...] = ()

    def to_yaml(self) -> str:
        """Return the draft as an annotated schema file."""
        lines = [_HEADER, "\n", _OPEN if self.schema.open else ""]
        lines += [f"# NOT READ: {line}\n" for line in self.left_out]
        if self.schema.rows is not None:
            lines.append(f"rows: {self.schema.rows}  # counted; a round nominal size will do\n")
        else:
            lines.append(_NO_ROWS)
        if self.protection.question:
            lines.append(f"# {self.protection.question}\n")
        if self.schema.unit is not None:
            lines.append(yaml_text({"unit": self.schema.unit.to_dict()}))
        if self.schema.weight is not None:
            lines += [f"# {self.protection.weight_note}\n", yaml_text({"weight": self.schema.weight.to_entry()})]
        top = {key: value for key, value in self.schema.to_dict().items() if key in ("missing", "reader")}
        if top:
            lines += ["# How cells are written; nothing here may hide a value that means something.\n", yaml_text(top)]
        lines.append("columns:\n")
        for name, kind in self.schema.columns.items():
            entry = yaml_text({name: self.schema.reader.entry_of(kind)})
            lines.append(f"  # {self.notes[name]}\n")
            lines.extend(f"  {line}\n" for line in entry.splitlines())
        if self.schema.rules:
            lines += [_RULES, *(f"  - {rule_text(rule)}\n" for rule in self.schema.rules)]
        if self.candidates:
            lines += [_MORE_RULES, *(f"#  - {rule_text(rule)}\n" for rule in self.candidates)]
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
        suggest_rules: also list maps and implications that all records keep. Rules of order and arithmetic that all
            keep are proposed anyway, in two more passes.

    Raises:
        DataError: the source cannot be read, the first line of a CSV may be a record, most records of a CSV have
            another number of cells than it, or there is nothing to describe.
    """
    if not names_are_public:
        require_names(source)
    source = with_likely_pictures(source.measured())
    surveys = survey_columns(source)
    decimal = settle_texts(source, surveys)
    labels = settle_marks(surveys)
    lines = left_out(source, surveys)
    guesses = {name: _guess(survey) for name, survey in surveys.items()}
    if any(isinstance(kind, Image) for kind, _ in guesses.values()):
        guesses = beside_images(surveys, guesses, left_out=sum(1 for _ in source.skipped()))
    is_table = not any(isinstance(kind, Image | ItemSet) for kind, _ in guesses.values())
    proposals, protection = (guesses, Protection(None, "")) if exact else _proposals(surveys, guesses, is_table)
    schema = None
    with contextlib.suppress(SchemaError):
        schema = Schema(
            columns={name: kind for name, (kind, _) in proposals.items()},
            # of tables they are estimated, or given
            rows=None if is_table and not exact else max((s.n_cells for s in surveys.values()), default=0) or None,
            unit=protection.unit,
            weight=protection.weight,
            draft=True,
            missing=missing_texts(surveys, labels),
            reader=_reader(source, decimal),
        )
    if schema is None:
        raise DataError(
            f"Expected a column of {source.label} that can be described and names nobody, got none. Write its schema "
            "by hand."
        )
    candidates: tuple[Mapping[str, Any], ...] = ()
    if is_table:
        columns = {name: kind for name, (kind, _) in guesses.items()}
        known = dataclasses.replace(schema, columns=columns, sources={}, unit=None, weight=None)
        rules = rule_candidates(source, known, labels=suggest_rules)
        schema = _with_rules(schema, known, rules)
        candidates = tuple(rule for rule in rules if rule not in schema.rules) if suggest_rules else ()
    notes = {
        name: f"{note}{column_note(name, surveys)}{set_hint(surveys[name])}" for name, (_, note) in proposals.items()
    }
    return Draft(schema, notes, protection, lines if is_table else (), candidates)


def _with_rules(schema: Schema, known: Schema, candidates: Iterable[Mapping[str, Any]]) -> Schema:
    """Return a draft with those of the rules that are of order and arithmetic, and that go together.

    Args:
        schema: the draft.
        known: the same with the bounds of the records, by which rules are read together.
        candidates: rules that the records keep.
    """
    for rule in candidates:
        names = numeric_columns(rule)
        if not names or not schema.numeric.issuperset(names) or len(schema.rules) >= _MOST_RULES:
            continue
        with contextlib.suppress(SchemaError):
            rules = (*schema.rules, rule)
            known = dataclasses.replace(known, rules=rules)
            schema = dataclasses.replace(schema, rules=rules)
    return schema


def _proposals(surveys: Mapping[str, ColumnSurvey], guesses: Guesses, is_table: bool) -> tuple[Guesses, Protection]:
    """Return proposals in place of facts of the records, and whom to protect."""
    proposals = {
        name: (_as_written(kind, surveys[name]), note) for name, (kind, note) in proposals_of(surveys, guesses).items()
    }
    protection = proposed_protection(surveys, proposals) if is_table else Protection(None, "")
    if protection.weight is not None:
        proposals[protection.weight.column] = (Identifier(), "the weight: it is not released")
    return proposals, protection


def _reader(source: Source, decimal: str | None) -> Reader:
    """Return the reader of the whole table: its decimal mark, and the form of the file."""
    form = source.found_form()
    written = Written(decimal=decimal) if decimal not in (None, ".") else Written()
    return Reader(written=written, delimiter=form.delimiter, encoding=form.encoding)


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
        return Boolean(text=words, nullable=survey.has_missing), "two truth values"
    if survey.is_number and survey.lowest is not None and survey.highest is not None:
        return _number(survey, survey.lowest, survey.highest)
    if survey.moments is not None:
        return _datetime(survey, survey.moments)
    if survey.distinct is None and not is_text(storage):
        return Identifier(), f"type {storage} is not modelled: not released"
    return _labels(survey)


def _image(survey: ColumnSurvey, storage: pa.FixedShapeTensorType) -> tuple[ColumnKind, str]:
    dtype = str(storage.value_type.to_pandas_dtype().__name__)
    lower, upper = min(0.0, survey.lowest or 0.0), max(1.0, survey.highest or 0.0)
    if dtype == "uint8":
        lower, upper = 0.0, 255.0
    return Image(shape=tuple(storage.shape), dtype=dtype, lower=lower, upper=upper), "images: check the bounds"


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
    storage = storage.value_type if types.is_dictionary(storage) else storage
    return types.is_boolean(storage) or (survey.distinct is not None and survey.distinct in _LOGICAL)


def _number(survey: ColumnSurvey, lowest: float, highest: float) -> tuple[ColumnKind, str]:
    nullable = survey.has_missing
    if not survey.is_whole:
        resolution = None if survey.decimals is None else float(f"1e-{survey.decimals}")
        kind = Continuous(lower=lowest, upper=highest, resolution=resolution, nullable=nullable)
        return kind, "numbers: replace the bounds; the resolution is that of the values seen"
    distinct = survey.distinct
    is_repeated = survey.written is None and distinct is not None and survey.n_values >= 5 * len(distinct)
    if distinct is not None and is_repeated and len(distinct) <= _FEW_NUMBERS:
        labels = tuple(sorted(distinct, key=float))
        note = "few whole numbers: codes; if they count something, write kind: integer"
        return Categorical(categories=labels, nullable=nullable), note
    if highest >= _LARGEST_WHOLE:  # what is larger is read as this
        return Identifier(), "whole numbers beyond 63 bits: not released; store them as text if they are codes"
    kind = Integer(lower=int(lowest), upper=int(highest), nullable=nullable)
    if distinct is not None and len(distinct) == survey.n_values > _FEW_LABELS:
        return kind, "every value differs: if it names a record, write kind: identifier"
    return kind, "whole numbers: replace the bounds"


def _datetime(survey: ColumnSurvey, moments: TimeSpan) -> tuple[ColumnKind, str]:
    format = CLOCK if types.is_time(survey.storage) else None if survey.date is None else survey.date.format
    resolution = moments.resolution if survey.date is None else survey.date.resolution
    if format is not None and not has_date(format):
        resolution = min(resolution, "hour", key=MICROSECONDS.__getitem__)
        lower, upper = (
            (EPOCH + timedelta(microseconds=moment)).time().isoformat() for moment in (moments.earliest, moments.latest)
        )
        kind = DateTime(lower=lower, upper=upper, resolution=resolution, format=format, nullable=survey.has_missing)
        return kind, "times of day: replace the bounds"
    lower, upper = (
        (EPOCH + timedelta(microseconds=moment_of(step_of(moment, resolution), resolution))).isoformat(" ")
        for moment in (moments.earliest, moments.latest)
    )
    if MICROSECONDS[resolution] >= MICROSECONDS["day"]:
        lower, upper = lower[:10], upper[:10]
    format = None if format == "%Y-%m-%d" else format
    kind = DateTime(lower=lower, upper=upper, resolution=resolution, format=format, nullable=survey.has_missing)
    return kind, f"dates: replace the bounds{_other_format(survey)}"


def _other_format(survey: ColumnSurvey) -> str:
    """Return the words on another format under which all dates read too: days and months the other way round."""
    distinct, format = survey.distinct, "" if survey.date is None else survey.date.format
    if not distinct or not (_DAY.search(format) and _MONTH.search(format)) or format.startswith("%Y-"):
        return ""
    swapped = format.replace("%d", "%\0").replace("%-d", "%-\0")
    swapped = swapped.replace("%m", "%d").replace("%-m", "%-d").replace("%\0", "%m").replace("%-\0", "%-m")
    texts = [text for text in distinct if text not in survey.odd]
    if swapped == format or not parse_dates(pa.array(texts, pa.string()), swapped)[1].all():
        return ""
    return f"; the format could also be {swapped}"


def _labels(survey: ColumnSurvey) -> tuple[ColumnKind, str]:
    distinct = survey.distinct
    if distinct is None:
        return Identifier(), f"more than {MOST_DISTINCT} different texts: not released"
    if len(distinct) > _FEW_LABELS and len(distinct) > survey.n_values / 2:
        return Identifier(), "most texts differ: not released"
    kind = Categorical(categories=tuple(sorted(distinct)), nullable=survey.has_missing)
    return kind, "labels: replace by the full public list; `other: <label>` takes the rest"
