"""The command that asks a release about its records: estimate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption
from sfumato.cli.options import ReleaseArgument
from sfumato.cli.output import print_json, print_table, say
from sfumato.errors import ConfigError, did_you_mean, require_open_unit
from sfumato.inference.question_table import BY_NAME, QuestionKind, forms

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.inference import times
    from sfumato.inference.question_methods import QuestionMethods
else:
    pd, times = later("pandas"), later("sfumato.inference.times")

_FORMS = f"'y ~ x + C(z)', or {forms()}"
_NAMED = 3  # questions before a reason that they share


class Of(StrEnum):
    """The target of an estimate."""

    population = "population"
    table = "table"


def estimate_command(
    release: ReleaseArgument,
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUESTION...]", help=f"A formula, as 'y ~ x + C(z)', or one of: {forms()}."),
    ] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="COL", help="Answer for each label of this column.")] = None,
    logit: Annotated[
        bool, typer.Option("--logit", help="With a formula: logistic regression; the left side has two labels.")
    ] = False,
    of: Annotated[
        Of | None,
        typer.Option(
            "--of",
            help="Answer for the population that the records are a sample of, or for the table itself. Default: "
            "population; for counts and cross-tables, table.",
        ),
    ] = None,
    list_questions: Annotated[
        bool, typer.Option("--list", help="List what the release can and cannot answer, with standard errors.")
    ] = False,
    pairs: Annotated[
        int | None, typer.Option("--pairs", metavar="N", help="With --list: how many pairs of columns to list.")
    ] = None,
    units: Annotated[
        bool,
        typer.Option(
            "--units",
            help="For linked rows: answer for units (persons) in place of rows.",
        ),
    ] = False,
    level: Annotated[float, typer.Option("--level", metavar="L", help="The confidence level of intervals.")] = 0.95,
    json_output: JsonOption = False,
    csv_output: Annotated[bool, typer.Option("--csv", help="Print CSV: a row for each number.")] = False,
) -> None:
    """Answer a question from a release's measurements, with an interval. Costs nothing, reads no record."""
    require_open_unit(level=level)
    if json_output and csv_output:
        raise ConfigError("Expected --json or --csv, got both.")
    if list_questions:
        if question or by is not None or logit:
            raise ConfigError("Expected no question, --by or --logit beside --list, got one.")
        _show_list(_load(release, units), of, pairs, level, json_output, csv_output)
        return
    if pairs is not None:
        raise ConfigError("Expected --list beside --pairs, got none.")
    if not question:
        raise ConfigError(f"Expected {_FORMS}; or --list, got no question.")
    answer = _ask(_load(release, units), question, by, logit, of)
    if json_output:
        print_json(_plain(answer, level))
    elif csv_output:
        sys.stdout.write(_csv(_frame(answer, level)))
    else:
        _show(answer, level)


def _load(path: Path, units: bool) -> QuestionMethods:
    """Return a release, or its units, to be asked."""
    release = sfumato.load(path)
    return release.units if units else release


def _show_list(
    release: QuestionMethods, of: Of | None, pairs: int | None, level: float, json_output: bool, csv_output: bool
) -> None:
    """Print what a release can answer."""
    target = Of.population if of is None else of
    limit = {} if pairs is None else {"most_pairs": pairs}
    frame = release.answers(target=target.value, level=level, **limit)
    if csv_output:
        sys.stdout.write(_csv(frame))
        return
    records: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")  # type: ignore[assignment]
    if json_output:
        plain_records = [{key: times.plain(cell) for key, cell in record.items()} for record in records]
        print_json({"target": target.value, "level": level, "answers": plain_records})
        return
    rows = [
        [a["kind"], _columns(a), a["answered"], _figure(a["value"], a["std_error"]), _figure(a["std_error"])]
        for a in records
    ]
    header = ["question", "columns", "answered", "value", "std_error"]
    print_table("What the release can answer; the error of several numbers is the median", header, rows, whole=True)
    reasons: dict[str, list[str]] = {}
    for a in records:
        if a["why"]:
            reasons.setdefault(a["why"], []).append(f"{a['kind']} {_columns(a)}".strip())
    for why, questions in reasons.items():
        more = f" and {len(questions) - _NAMED} more" if len(questions) > _NAMED else ""
        say(f"{', '.join(questions[:_NAMED])}{more}: {why}")
    say(f"Of the {target.value}. Nothing was read but the release.")


def _columns(answer: dict[str, Any]) -> str:
    return ", ".join(filter(None, (answer["first"], answer["second"])))


def _ask(release: QuestionMethods, question: Sequence[str], by: str | None, logit: bool, of: Of | None) -> Any:  # noqa: ANN401
    options: dict[str, Any] = {} if of is None else {"target": of.value}
    if len(question) == 1 and "~" in question[0]:
        return (release.logit if logit else release.ols)(question[0], by=by, **options)
    if logit:
        raise ConfigError("Expected a formula beside --logit, such as 'y ~ x', got none.")
    name, *rest = question
    known = BY_NAME.get(name)
    if known is None:
        raise ConfigError(f"Expected {_FORMS}, got {' '.join(question)!r}.{did_you_mean(question[0], BY_NAME)}")
    if by is not None:
        if not known.by:
            grouped = ", ".join(one.name for one in BY_NAME.values() if one.by)
            raise ConfigError(f"Expected --by beside a formula or {grouped}, got it beside {name}.")
        options["by"] = by
    return getattr(release, name)(*_read(known, rest), **options)


def _read(question: QuestionKind, rest: Sequence[str]) -> list[Any]:
    """Return the arguments of a question's method."""
    if "=" in question.arguments:
        return [_labels(rest)]
    arguments = question.arguments.split()
    if len(rest) != len(arguments):
        raise ConfigError(f"Expected {len(arguments)} after {question.name}, got {len(rest)}. Questions are {_FORMS}.")
    return [_share(value) if wanted == "Q" else value for wanted, value in zip(arguments, rest, strict=True)]


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    raise ConfigError(f"Expected a number between 0 and 1 after the column of a quantile, got {text!r}.")


def _labels(texts: Sequence[str]) -> dict[str, str | list[str]]:
    """Return labels by column; of a column that is named again a list, as of several items of sets."""
    labels: dict[str, list[str]] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise ConfigError(f"Expected COL=LABEL, got {text!r}.")
        labels.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in labels.items()}


def _figure(value: Any, error: Any = None) -> str:  # noqa: ANN401 - a number, or of dates a moment or a time
    return times.shown(value, 4, error=error)


def _plain(answer: Any, level: float) -> Any:  # noqa: ANN401
    """Return an answer as plain values."""
    if hasattr(answer, "to_dict"):
        return answer.to_dict(level)
    groups = [{"group": list(key) if isinstance(key, tuple) else key, **e.to_dict(level)} for key, e in answer.items()]
    return {"groups": groups}


def _frame(answer: Any, level: float) -> pd.DataFrame:  # noqa: ANN401
    """Return an answer as rows."""
    if hasattr(answer, "to_frame"):
        frame = answer.to_frame(level)
        return (frame.rename_axis("term") if frame.index.names == [None] else frame).reset_index()
    low, high = answer.interval(level)
    return pd.DataFrame([{"value": answer.value, "std_error": answer.std_error, "low": low, "high": high}])


def _csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV: moments and times in ISO 8601."""
    return frame.map(times.plain).to_csv(index=False, lineterminator="\n")


def _show(answer: Any, level: float) -> None:  # noqa: ANN401
    """Print an answer as a table, and what it rests on."""
    frame = _frame(answer, level)
    errors = frame["std_error"].tolist()
    rows = [
        [cell if isinstance(cell, str) else _figure(cell, error) for cell in row]
        for row, error in zip(frame.itertuples(index=False), errors, strict=True)
    ]
    print_table(f"With intervals of level {level:g}", map(str, frame.columns), rows, whole=True)
    for group in getattr(answer, "left_out", {}):
        say(f"No answer for {group}: the release does not tell it from its noise.")
    first = answer if hasattr(answer, "target") else next(iter(answer.values()), None)
    if first is not None:
        say(f"Of the {first.target}. {first.rests_on}")
