"""A first schema for a human to edit: kinds guessed, facts read off the records.

What is drafted is exact and therefore private. The draft says so at its top; a release is only as
good as the public facts that replace it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.columns.kinds import Identifier
from sfumato.desk.person_columns import person_columns
from sfumato.desk.proposals import Guesses, Protection, proposals_of, proposed_protection
from sfumato.desk.rule_candidates import rule_candidates
from sfumato.desk.table_survey import TableSurvey, as_written
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Source
from sfumato.rules import rule_text
from sfumato.rules.rule_entries import numeric_columns
from sfumato.schema.documents import yaml_text
from sfumato.schema.schema import Schema
from sfumato.schema.tables import unit_entry

_MOST_RULES = 30  # that a draft proposes

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
_NO_UNITS = """\
# The number of rows is not written: have one estimated (fit --rows estimate), or write a round public number as `rows`
# of the first table.
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
        lines += [f"# In the file: {line}\n" for line in self.left_out]
        unit = self.schema.unit
        if self.schema.rows is not None:
            lines.append(f"rows: {self.schema.rows}  # counted; a round nominal size will do\n")
        elif unit is None or unit.units is None:
            lines.append(_NO_ROWS if unit is None or unit.tables is None else _NO_UNITS)
        lines += [f"# {line}\n" for line in self.protection.question.splitlines()]
        if unit is not None:
            lines.append(yaml_text(unit_entry(unit)))
        if self.schema.weight is not None:
            lines += [f"# {self.protection.weight_note}\n", yaml_text({"weight": self.schema.weight.to_entry()})]
        top = {key: value for key, value in self.schema.to_dict().items() if key in ("missing", "reader")}
        if top:
            lines += ["# How cells are written; nothing here may hide a value that means something.\n", yaml_text(top)]
        lines.append("columns:\n")
        for name in self.schema.columns:
            entry = yaml_text({name: self.schema.entry_of(name)})
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
    table = TableSurvey.read(source, names_are_public=names_are_public)
    guesses, is_table = table.guesses, table.is_table
    proposals, protection = (guesses, Protection(None, "")) if exact else _proposals(table)
    schema = None
    with contextlib.suppress(SchemaError):
        schema = Schema(
            columns={name: kind for name, (kind, _) in proposals.items()},
            # of tables they are estimated, or given
            rows=None if is_table and not exact else table.n_rows,
            unit=protection.unit,
            weight=protection.weight,
            draft=True,
            missing_of=table.missing_of,
            reader=table.reader,
        )
    if schema is None:
        raise DataError(
            f"Expected a column of {source.label} with values that name nobody, got none. Write its schema by hand."
        )
    candidates: tuple[Mapping[str, Any], ...] = ()
    if is_table:
        columns = {name: kind for name, (kind, _) in guesses.items()}
        known = dataclasses.replace(schema, columns=columns, sources={}, unit=None, weight=None)
        rules = rule_candidates(table.source, known, labels=suggest_rules)
        schema = _with_rules(schema, known, rules)
        candidates = tuple(rule for rule in rules if rule not in schema.rules) if suggest_rules else ()
    notes = {name: table.note(name, note) for name, (_, note) in proposals.items()}
    return Draft(schema, notes, protection, table.left_out if is_table else (), candidates)


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


def _proposals(table: TableSurvey) -> tuple[Guesses, Protection]:
    """Return proposals in place of facts of the records, and whom to protect."""
    surveys, people = table.columns, person_columns(table.source, table.columns)
    proposals = {
        name: (as_written(kind, surveys[name]), note)
        for name, (kind, note) in proposals_of(surveys, table.guesses, people).items()
    }
    protection = proposed_protection(surveys, proposals, people) if table.is_table else Protection(None, "")
    if protection.weight is not None:
        proposals[protection.weight.column] = (Identifier(), "the weight: it is not released")
    return proposals, protection
