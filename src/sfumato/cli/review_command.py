"""The command `schema review`: the ten questions about a schema."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.ending import last_output
from sfumato.cli.inputs import STANDARD_INPUT
from sfumato.cli.output import notes, print_json, say
from sfumato.errors import ConfigError, SchemaError
from sfumato.io.atomic import refuse_existing, refuse_inputs

if TYPE_CHECKING:
    from sfumato.desk import review
    from sfumato.desk.review import Question
    from sfumato.schema import documents
else:
    review, documents = later("sfumato.desk.review"), later("sfumato.schema.documents")


def review_command(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="A schema file, such as a draft.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="NEW", help="Where to write the answered schema; not with --json.")
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option("--answers", metavar="FILE", help="Answers by question, YAML or JSON, or - (standard input)."),
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
    given = _asked(questions) if answers is None else _read(answers)
    changed = review.answered(document, questions, given)
    known = sfumato.OpenSchema.from_dict(changed, base=schema.parent)  # before anything is written
    if out.resolve().parent != schema.resolve().parent:
        sfumato.OpenSchema.from_dict(changed, base=out.parent)  # its paths have to hold from there too
    form = documents.json_text if out.suffix.lower() == ".json" else documents.yaml_text
    with last_output(out):
        documents.write_text(out, form(changed), overwrite=overwrite, secret=known.draft)
    say(f"Wrote {out}, without the comments of {schema}.")
    if known.draft:
        say("It is still a draft, which `fit` refuses.")
    say(f"Next: sfumato schema check {out}")


def _asked(questions: tuple[Question, ...]) -> dict[str, str]:
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


def _read(place: str) -> dict[str, str]:
    """Return the answers of a file: text, or a number as it is written."""
    is_stdin = place == STANDARD_INPUT
    content = (
        documents.parse_document(_standard_input(), "standard input") if is_stdin else documents.read_document(place)
    )
    if not isinstance(content, Mapping):
        raise SchemaError("Expected answers to map the keys of questions to answers. --json prints the questions.")
    return {str(key): _text(str(key), value) for key, value in content.items()}


def _standard_input() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise ConfigError("Expected answers on standard input, got a terminal. Pipe a file into the command.")
    return sys.stdin.read(documents.MAX_BYTES)


def _text(key: str, value: Any) -> str:  # noqa: ANN401 - a document holds any value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str | int | float):
        raise SchemaError(f"Expected the answer to {key!r} to be text, got a {type(value).__name__}. Put it in quotes.")
    return str(value)
