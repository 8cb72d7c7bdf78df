"""Commands about schemas and data: schema draft, check, import, review and validate."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.ending import last_output
from sfumato.cli.inputs import (
    STANDARD_INPUT,
    InputFormatOption,
    TablesArgument,
    open_tables,
    open_undescribed,
    refuse_data,
)
from sfumato.cli.options import NamesArePublicOption, command_group
from sfumato.cli.output import notes, print_json, print_table, say
from sfumato.cli.progress import working
from sfumato.errors import ConfigError, DataError, SchemaError, SfumatoError
from sfumato.io.atomic import refuse_existing, refuse_inputs
from sfumato.schema import documents

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.columns import levels
    from sfumato.desk import database_drafts, drafting, review, rule_breaks, validation
    from sfumato.fitting import discovery, purposes
    from sfumato.methods.tables import question_stage
    from sfumato.records import private
    from sfumato.rules import rule_entries as reading
    from sfumato.schema import sources
    from sfumato.standards import ddi, importers, variable_lists
else:
    purposes, question_stage = later("sfumato.fitting.purposes"), later("sfumato.methods.tables.question_stage")
    discovery, reading = later("sfumato.fitting.discovery"), later("sfumato.rules.rule_entries")
    drafting, private = later("sfumato.desk.drafting"), later("sfumato.records.private")
    database_drafts, validation = later("sfumato.desk.database_drafts"), later("sfumato.desk.validation")
    review, rule_breaks = later("sfumato.desk.review"), later("sfumato.desk.rule_breaks")
    levels = later("sfumato.columns.levels")
    ddi, importers = later("sfumato.standards.ddi"), later("sfumato.standards.importers")
    sources, variable_lists = later("sfumato.schema.sources"), later("sfumato.standards.variable_lists")

schema_app = command_group()

OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


class SchemaFormat(StrEnum):
    """Formats that a schema can be imported from."""

    smartnoise = "smartnoise"
    domain = "domain"
    frictionless = "frictionless"
    ddi = "ddi"
    sdv = "sdv"
    omop = "omop"


@schema_app.command("draft")
def draft_command(
    data: TablesArgument,
    out: Annotated[Path, typer.Option(metavar="SCHEMA", help="Where to write the draft (.yaml).")],
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Write the bounds, categories and number of rows of the records, in place of `discover: true`.",
        ),
    ] = False,
    suggest_rules: Annotated[
        bool, typer.Option("--suggest-rules", help="Also propose rules between labels that all records keep.")
    ] = False,
    names_are_public: NamesArePublicOption = False,
    input_format: InputFormatOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write a first schema for you to edit. It is NOT private: its facts are read off the records."""
    if out.suffix.lower() == ".json":  # which would be read as JSON, and that has no comments
        raise ConfigError(f"Expected --out to name a YAML file, for its comments, got {str(out)!r}. End it in .yaml.")
    refuse_data(out, {"data": data})
    refuse_existing(out, overwrite=overwrite)
    source = open_undescribed(data, input_format)
    if isinstance(source, dict) and suggest_rules:
        raise ConfigError("Expected no --suggest-rules beside several tables, of which none is kept. Leave it out.")
    options = {"exact": exact, "names_are_public": names_are_public}
    with working("Reading the records…"):
        if isinstance(source, dict):
            draft = database_drafts.draft_tables(source, **options)
        else:
            draft = drafting.draft_schema(source, suggest_rules=suggest_rules, **options)
    with last_output(out):
        documents.write_text(out, draft.to_yaml(), overwrite=overwrite, secret=True)
    say(f"Wrote {out}, a draft: kinds were guessed, and facts without `discover: true` were read off the records.")
    say("Replace them by what is publicly known, then take out the line `draft: true`: `fit` refuses a draft.")
    for line in (*(f"In the file: {line}." for line in draft.left_out), draft.protection.question):
        if line:
            say(line)
    say(f"`sfumato schema review {out} --out NEW` asks what is most worth checking.")
    _tell_rules(draft, out, suggest_rules=suggest_rules)
    say(f"Next: edit {out}, then sfumato schema check {out}")


def _tell_rules(draft: drafting.Draft, out: Path, *, suggest_rules: bool) -> None:
    """Show the rules that the records keep."""
    proposed, others = draft.schema.rules, draft.candidates
    if suggest_rules and not proposed and not others:
        say("No rule was found that all records keep.")
    if not proposed and not others:
        return
    notes.print("[yellow]Note:[/] what follows was read off the records; do not publish it.")
    if proposed:
        _print_rules(f"Rules that all records keep, in {out}", proposed)
    if others:
        _print_rules(f"More such rules, as comments in {out}", others)
    say("That records keep a rule makes it no public fact: leave those that the law, arithmetic or the form says.")


def _print_rules(title: str, rules: Iterable[Mapping[str, Any]]) -> None:
    print_table(title, ["", "rule"], enumerate(map(reading.rule_text, rules), 1))


@schema_app.command("check")
def check_command(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="A schema file, YAML or JSON.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA...]",
            help="Compare the columns of these data with it. For several tables: a folder, a database, or NAME=FILE "
            "for each.",
        ),
    ] = None,
    input_format: InputFormatOption = None,
    json_output: JsonOption = False,
) -> None:
    """Explain what is wrong with a schema, and which of its questions a fit would refuse.

    With DATA, compare names and types of columns; no record is read.
    """
    known = sfumato.OpenSchema.load(schema)
    source = private.PrivateData(open_tables(data, input_format, known), known).source if data else None
    of_labels = _of_labels(known, {} if source is None else source.storage)
    _require_measurable(known)
    open_columns, names = known.open, set(known.released)
    rows = [
        (
            name,
            f"{open_columns[name]}, to discover" if name in open_columns else kind.name,
            "yes" if name in names else "no",
        )
        for name, kind in known.columns.items()
    ]
    if json_output:
        columns = [{"name": name, "kind": kind, "released": flag == "yes"} for name, kind, flag in rows]
        draft = {"draft": True} if known.draft else {}
        rules = {"rules": [reading.rule_text(rule) for rule in known.rules]} if known.rules else {}
        named = {"questions": [question.words for question in known.questions]} if known.questions else {}
        print_json({"valid": True, "rows": known.n_records, "columns": columns, **draft, **rules, **named, **of_labels})
        return
    print_table(f"{schema}: a valid schema", ["column", "kind", "released"], rows)
    _show_rules(known)
    if known.questions:
        say("Questions that a fit measures: " + "; ".join(question.words for question in known.questions) + ".")
    n = known.n_records
    counted = "Units, each with its rows: " if known.linked else "Rows: "
    say(counted + ("not declared; pass --rows N or --rows estimate" if n is None else f"{n}, public"))
    if sources.source_lines(known):
        say(f"Where the facts come from: {'; '.join(sources.source_lines(known))}.")
    if closed := of_labels.get("closed"):
        columns = ", ".join(map(repr, closed))
        say(f"A word outside the list counts for no label: {columns}. Add `other` or `nullable: true` to keep it.")
    for name, fault in of_labels.get("misfits", {}).items():
        say(f"No cell of {name!r} is a label. {fault}")
    _tell_rare_labels(known)
    _tell_next(schema, known)


def _of_labels(schema: sfumato.Schema, storage: Mapping[str, pa.DataType]) -> dict[str, Any]:
    """Return the columns whose other words count for no label, and why columns of a type hold none, where there are."""
    kinds = schema.of_kind(levels.LevelKind)
    faults = {name: kind.label_fault(storage[name]) for name, kind in kinds.items() if name in storage}
    misfits = {name: fault for name, fault in faults.items() if fault is not None}
    both = {"closed": [name for name, kind in kinds.items() if kind.hides_blank], "misfits": misfits}
    return {key: value for key, value in both.items() if value}


def _require_measurable(schema: sfumato.Schema) -> None:
    """Refuse questions that a fit would refuse, all at once."""
    if not schema.questions:
        return
    refusals = question_stage.question_refusals(purposes.Facts(schema.narrowest(), None, None))
    if refusals:
        raise SchemaError(" ".join(refusals))


def _tell_rare_labels(schema: sfumato.Schema) -> None:
    """Say how rare a label that nobody listed may be at a usual budget."""
    if not schema.open:
        return
    n = schema.n_records
    try:
        method = sfumato.MaxEntropy(epsilon=1.0, delta=1e-6)
        plan = method.plan(schema, n_public=sfumato.EstimateCount() if n is None else n)
    except SfumatoError:
        return  # the schema is valid, if not for this method
    if forecast := discovery.label_forecast(plan, schema):
        say(f"At epsilon = 1, delta = 1e-06 {forecast}.")


def _show_rules(schema: sfumato.Schema) -> None:
    """Show the rules, and what they make of the columns."""
    plan = schema.rule_plan
    if plan is None:
        return
    _print_rules("Rules, kept in every sampled row", schema.rules)
    if plan.follows:
        say(f"Not measured, since they follow from others: {', '.join(plan.follows)}.")
    for after, earlier in plan.gaps.items():
        say(f"Measured as a distance of at least 0: {after}, from {earlier}.")


def _tell_next(path: Path, schema: sfumato.Schema) -> None:
    """Say what to do with a schema next."""
    if schema.draft:
        say("A DRAFT, which `fit` refuses: its facts were read off the records.")
        say(f"Next: replace them in {path} by what is publicly known, and take out the line `draft: true`.")
    elif sources.read_off(schema):
        facts = "; ".join(sources.read_off(schema))
        say(f"`fit` refuses `source: data`. Next: replace in {path} by what is publicly known: {facts}.")
    else:
        rows = "--rows estimate --delta 1e-6 " if schema.n_records is None else ""
        data = " ".join(f"{name}=FILE" for name in schema.table_columns) or "DATA"
        say(f"Next: sfumato fit {data} --schema {path} --epsilon 1 {rows}--out RELEASE")


@schema_app.command("import")
def import_command(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The file to import.")],
    format_: Annotated[
        SchemaFormat,
        typer.Option(
            "--from",
            "--format",
            help="Frictionless Table Schema, DDI codebook, SDV metadata, OMOP CDM field table, SmartNoise YAML, "
            "or private-pgm domain.json.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="SCHEMA", help="Where to write the schema.")],
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="The table to take, where the file describes several.")
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Turn another tool's description of a table into a schema."""
    refuse_inputs(out, description=source)
    refuse_existing(out, overwrite=overwrite)
    schema = _import_schema(format_, source, table)
    with last_output(out):
        schema.save(out, overwrite=overwrite)
    say(f"Wrote {out}: {len(schema.columns)} columns. Check that its bounds and categories are public knowledge.")


def _import_schema(form: SchemaFormat, source: Path, table: str | None) -> sfumato.Schema:
    of_tables = {
        SchemaFormat.smartnoise: importers.from_smartnoise_yaml,
        SchemaFormat.frictionless: variable_lists.from_frictionless,
        SchemaFormat.ddi: ddi.from_ddi,
        SchemaFormat.sdv: variable_lists.from_sdv,
        SchemaFormat.omop: variable_lists.from_omop,
    }
    if form in of_tables:
        return of_tables[form](source, table=table)
    if table is not None:
        raise ConfigError(f"Expected no --table beside --from {form.value}, which describes one. Leave it out.")
    return importers.from_domain_json(source)


@schema_app.command("review")
def review_command(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="A schema file, such as a draft.")],
    out: Annotated[
        Path | None, typer.Option(metavar="NEW", help="Where to write the schema with the answers. Not with --json.")
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A YAML or JSON file with an answer to each question, or - (standard input)."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing output, or SCHEMA itself.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the questions as JSON, and ask nothing.")] = False,
) -> None:
    """Ask at most ten questions about a schema, and write the answers. Reads no record."""
    if json_output == (out is not None):
        got = "neither" if out is None else "both"
        raise ConfigError(f"Expected either --out, for the answered schema, or --json, got {got}.")
    document = documents.read_document(schema)
    questions = review.questions(sfumato.OpenSchema.from_dict(document, base=schema.parent), document)
    if out is None:
        entries = [{"key": question.key, "question": question.text, "now": question.now} for question in questions]
        print_json({"private": False, "questions": entries})
        return
    refuse_existing(out, overwrite=overwrite)
    if answers not in (None, STANDARD_INPUT):
        refuse_inputs(out, answers=answers)
    given = _answers_on_terminal(questions) if answers is None else _read_answers(answers)
    changed = review.with_answers(document, questions, given)
    known = sfumato.OpenSchema.from_dict(changed, base=schema.parent)  # before anything is written
    if out.resolve().parent != schema.resolve().parent:
        sfumato.OpenSchema.from_dict(changed, base=out.parent)  # its paths have to hold from there too
    is_json = out.suffix.lower() == ".json"
    text = documents.json_text(changed) if is_json else documents.yaml_text(changed)
    if known.draft and not is_json:
        text = documents.with_comments(text, documents.read_text(schema))
    with last_output(out):
        documents.write_text(out, text, overwrite=overwrite, secret=known.draft)
    say(f"Wrote {out}.{' It is still a draft, which `fit` refuses.' if known.draft else ''}")
    say(f"Next: sfumato schema check {out}")


def _answers_on_terminal(questions: tuple[review.Question, ...]) -> dict[str, str]:
    """Ask on the terminal; Enter keeps what the schema says."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError("Expected a terminal to ask on, got none. Pass --answers FILE; --json prints the questions.")
    notes.print("[yellow]Note:[/] what a draft says was read off records; do not publish it. Enter keeps it.")
    given = {}
    for number, question in enumerate(questions, start=1):
        say(f"\n{number} of {len(questions)}. {question.text}")
        given[question.key] = typer.prompt(
            f"[{question.now}]", default=review.KEEP, show_default=False, prompt_suffix=" "
        )
    return given


def _read_answers(place: str) -> dict[str, str]:
    """Return the answers of a file: text, or a number as it is written."""
    if place == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.isatty():
            raise ConfigError("Expected answers on standard input, got a terminal. Pipe a file into the command.")
        content = documents.parse_document(sys.stdin.read(documents.MAX_BYTES), "standard input")
    else:
        content = documents.read_document(place)
    if not isinstance(content, Mapping):
        raise SchemaError("Expected answers to map the keys of questions to answers. --json prints the questions.")
    return {str(key): _text(str(key), value) for key, value in content.items()}


def _text(key: str, value: Any) -> str:  # noqa: ANN401 - a document holds any value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str | int | float):
        raise SchemaError(f"Expected the answer to {key!r} to be text, got a {type(value).__name__}. Put it in quotes.")
    return str(value)


@schema_app.command("validate")
def validate_command(
    data: TablesArgument,
    schema: Annotated[Path, typer.Option(metavar="SCHEMA", help="The schema of the data.")],
    input_format: InputFormatOption = None,
    json_output: JsonOption = False,
) -> None:
    """List values that lie outside the schema. PRIVATE: it shows values of records, for your own screen."""
    known = sfumato.OpenSchema.load(schema)
    source = open_tables(data, input_format, known)
    findings = validation.validate(source, known)
    lacking = {finding.column for finding in findings if finding.problem in ("absent", "storage")}
    rules = () if known.rule_plan is None else known.rule_plan.rules
    are_readable = not (lacking if known.tree else any(lacking.intersection(rule.columns) for rule in rules))
    breaks = rule_breaks.count_breaks(source, known) if are_readable else None
    if json_output:
        keys = ("column", "problem", "becomes", "count", "examples")
        entries = [{key: getattr(finding, key) for key in keys} for finding in findings]
        counted = {} if breaks is None else {"rows": breaks.n_rows, "rules": dict(breaks.counts)}
        print_json({"private": False, "findings": entries, **counted})
    else:
        _print_findings(known, findings, breaks)
    absent = [repr(finding.column) for finding in findings if finding.problem == "absent"]
    if absent:
        raise DataError(
            f"Expected all columns of the schema in the data, got none named {', '.join(absent)}: a fit refuses such "
            "data. Correct the names, or take the columns out of the schema."
        )


def _print_findings(
    known: sfumato.Schema, findings: list[validation.Finding], breaks: rule_breaks.RuleBreaks | None
) -> None:
    notes.print("[yellow]Note:[/] what follows shows values of records; do not publish it.")
    if not findings:
        say("Every cell lies in its declared domain.")
    else:
        print_table(
            "What a fit would change",
            ["column", "problem", "cells", "examples", "what becomes of them"],
            ((f.column or "(records)", f.problem, f.count or "", ", ".join(f.examples), f.becomes) for f in findings),
        )
    undeclared = sorted(set(known.released) - set(validation.declared_columns(known)))
    if undeclared:
        say(f"Not compared, since the schema leaves their facts to the fit: {', '.join(undeclared)}.")
    if breaks is not None:
        print_table(f"Rows that break a rule, of {breaks.n_rows}", ["rule", "rows"], breaks.counts.items())
