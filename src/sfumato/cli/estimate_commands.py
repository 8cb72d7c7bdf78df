"""The command that asks a release about its records: estimate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption
from sfumato.cli.option_groups import grouped
from sfumato.cli.options import ReleaseArgument
from sfumato.cli.output import print_json, print_table, say
from sfumato.cli.publish_commands import combined_at
from sfumato.errors import ConfigError, did_you_mean, require_open_unit
from sfumato.inference.question_table import BY_KIND, BY_NAME, QuestionKind, forms

if TYPE_CHECKING:
    import pandas as pd

    from sfumato import combined_release
    from sfumato.inference import times
    from sfumato.inference.question_methods import QuestionMethods
else:
    combined_release = later("sfumato.combined_release")
    pd, times = later("pandas"), later("sfumato.inference.times")

_FORMS = f"'y ~ x + C(z)', or {forms()}"
_MORE = "..."  # after the arguments of a question that takes any number of columns
_NAMED = 3  # questions before a reason that they share


class FamilyName(StrEnum):
    """The family of a regression."""

    ols = "ols"
    logit = "logit"
    poisson = "poisson"
    gamma = "gamma"


class Of(StrEnum):
    """The target of an estimate."""

    population = "population"
    table = "table"


@dataclass(frozen=True, kw_only=True)
class FormulaOptions:
    """How a formula is asked."""

    logit: Annotated[
        bool, typer.Option("--logit", help="With a formula: logistic regression; the left side has two labels.")
    ] = False
    family: Annotated[
        FamilyName | None, typer.Option(help="With a formula: the kind of regression; default: least squares.")
    ] = None
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="COL=VALUE", help="With a formula: the mean that it predicts there. One for each column."),
    ] = None

    @property
    def chosen(self) -> FamilyName | None:
        """The family that is asked for."""
        if self.logit and self.family not in (None, FamilyName.logit):
            raise ConfigError("Expected --logit or --family, got both.")
        return FamilyName.logit if self.logit else self.family


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """What of a release is asked."""

    units: Annotated[
        bool, typer.Option("--units", help="For linked rows: answer for units (persons) in place of rows.")
    ] = False
    table: Annotated[str | None, typer.Option(metavar="NAME", help="Of a database: the table that is asked.")] = None

    def of(self, path: Path, *, several: bool = False) -> QuestionMethods:
        """Return a release, a table of it, or its units, to be asked; a combined one, but for a list of `several`."""
        combined = combined_at(path, units=self.units, table=self.table, list=several)
        if combined is not None:
            return cast("QuestionMethods", combined)  # `_ask` asks it what it answers
        release = sfumato.load(path)
        release = release if self.table is None else release.table(self.table)
        return release.units if self.units else release


@dataclass(frozen=True, kw_only=True)
class IntervalOptions:
    """How often intervals hold."""

    level: Annotated[float, typer.Option(metavar="L", help="The confidence level of intervals.")] = 0.95
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that all hold at once at that level.")
    ] = False


@grouped
def estimate_command(
    release: ReleaseArgument,
    *,
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUESTION...]", help=f"A formula, as 'y ~ x + C(z)', or one of: {forms()}."),
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="COL", help="Answer for each label of this column.")] = None,
    formula: FormulaOptions,
    difference: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="LABEL LABEL", help="With --by: the answer for the first label, less that for the second."
        ),
    ] = None,
    of: Annotated[
        Of | None,
        typer.Option(
            help="Answer for the population that the records are a sample of, or for the table itself. Default: "
            "population; for counts and cross-tables, table."
        ),
    ] = None,
    list_questions: Annotated[
        bool, typer.Option("--list", help="List what the release can and cannot answer, with standard errors.")
    ] = False,
    pairs: Annotated[
        int | None, typer.Option(metavar="N", help="With --list: how many pairs of columns to list.")
    ] = None,
    part: PartOptions,
    intervals: IntervalOptions,
    json_output: JsonOption = False,
    csv_output: Annotated[bool, typer.Option("--csv", help="Print CSV: a row for each number.")] = False,
) -> None:
    """Answer a question from a release's measurements, with an interval. Costs nothing, reads no record."""
    level, simultaneous = require_open_unit(level=intervals.level), intervals.simultaneous
    if json_output and csv_output:
        raise ConfigError("Expected --json or --csv, got both.")
    if list_questions:
        if question or by is not None or formula != FormulaOptions() or difference:
            raise ConfigError("Expected no question, --by, --logit, --family, --at or --difference beside --list.")
        target = Of.population if of is None else of
        limit = {} if pairs is None else {"most_pairs": pairs}
        whole = part.of(release, several=True)
        frame = whole.answers(target=target.value, level=level, simultaneous=simultaneous, **limit)
        _show_list(frame, target, level, json_output, csv_output)
        return
    if pairs is not None:
        raise ConfigError("Expected --list beside --pairs, got none.")
    if not question:
        raise ConfigError(f"Expected {_FORMS}; or --list, got no question.")
    answer = _ask(part.of(release), question, by, formula.chosen, of)
    answer = _part(answer, formula.at, difference)
    if json_output:
        print_json(answer.to_dict(level, **_at_once(answer, simultaneous)))
    elif csv_output:
        sys.stdout.write(_csv(_frame(answer, level, simultaneous)))
    else:
        _show(answer, level, simultaneous)


def _show_list(frame: pd.DataFrame, target: Of, level: float, json_output: bool, csv_output: bool) -> None:
    """Print what a release can answer."""
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


def _part(answer: Any, at: list[str] | None, difference: tuple[str, str] | None) -> Any:  # noqa: ANN401
    """Return the part of an answer that is asked for: a predicted mean, or a difference of groups."""
    if at:
        if not hasattr(answer, "predict"):
            raise ConfigError("Expected a formula without --by beside --at, such as 'y ~ x' --at x=1, got none.")
        values = _labels(at)
        if any(isinstance(value, list) for value in values.values()):
            raise ConfigError("Expected each column once in --at, got one twice.")
        answer = answer.predict(values)
    if difference is None:
        return answer
    if not hasattr(answer, "difference"):
        raise ConfigError("Expected a question by labels beside --difference, such as mean x --by sex, got another.")
    return answer.difference(*difference)


def _ask(
    release: QuestionMethods, question: Sequence[str], by: str | None, family: FamilyName | None, of: Of | None
) -> Any:  # noqa: ANN401
    options: dict[str, Any] = {} if of is None else {"target": of.value}
    if len(question) == 1 and "~" in question[0]:
        _require_combinable(release, "a formula")
        return getattr(release, FamilyName.ols if family is None else family)(question[0], by=by, **options)
    if family is not None:
        raise ConfigError("Expected a formula beside --logit and --family, such as 'y ~ x', got none.")
    name, *rest = question
    _require_combinable(release, name)
    known = BY_NAME.get(name, BY_KIND.get(name))  # as --list names it: median, rows
    if known is None or not known.name:
        raise ConfigError(f"Expected {_FORMS}, got {' '.join(question)!r}.{did_you_mean(question[0], BY_NAME)}")
    if by is not None:
        if not known.by:
            grouped = ", ".join(one.name for one in BY_NAME.values() if one.by)
            raise ConfigError(f"Expected --by beside a formula or {grouped}, got it beside {name}.")
        _require_combinable(release, name, by=True)
        options["by"] = by
    return getattr(release, known.name)(*_read(known, rest), **options)


def _require_combinable(release: object, name: str, *, by: bool = False) -> None:
    """Refuse what does not follow from the answers of the parts of a combined release."""
    answered = combined_release.QUESTIONS
    if isinstance(release, combined_release.CombinedRelease) and name not in (answered[:2] if by else answered):
        raise ConfigError(
            f"Expected {', '.join(answered)}, or mean and share --by a column, of a combined release, got "
            f"{name}{' --by' if by else ''}. Ask each part: unzip it."
        )


def _read(question: QuestionKind, rest: Sequence[str]) -> list[Any]:
    """Return the arguments of a question's method."""
    if "=" in question.arguments:
        return [_labels(rest)]
    arguments = question.arguments.split()
    if arguments[-1] == _MORE:
        return [list(rest)]
    most = len(arguments)
    if not most - question.arguments.count("[") <= len(rest) <= most:
        raise ConfigError(f"Expected {question.form}, got {' '.join((question.name, *rest))!r}.")
    return [_share(value) if wanted == "[Q]" else value for wanted, value in zip(arguments, rest, strict=False)]


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


def _at_once(answer: Any, simultaneous: bool) -> dict[str, bool]:  # noqa: ANN401
    """Return how intervals are asked for: all at once only where there are several."""
    if not simultaneous:
        return {}
    if not hasattr(answer, "conf_int") or not hasattr(answer, "to_frame"):
        raise ConfigError("Expected an answer of several numbers beside --simultaneous, got one of a single number.")
    return {"simultaneous": True}


def _frame(answer: Any, level: float, simultaneous: bool) -> pd.DataFrame:  # noqa: ANN401
    """Return an answer as rows."""
    options = _at_once(answer, simultaneous)
    if hasattr(answer, "to_frame"):
        frame = answer.to_frame(level, **options)
        return (frame.rename_axis("term") if frame.index.names == [None] else frame).reset_index()
    low, high = answer.interval(level)
    return pd.DataFrame([{"value": answer.value, "std_error": answer.std_error, "low": low, "high": high}])


def _csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV: moments and times in ISO 8601."""
    return frame.map(times.plain).to_csv(index=False, lineterminator="\n")


def _show(answer: Any, level: float, simultaneous: bool) -> None:  # noqa: ANN401
    """Print an answer as a table, and what it rests on."""
    frame = _frame(answer, level, simultaneous)
    errors = frame["std_error"].tolist() if "std_error" in frame else [None] * len(frame)
    rows = [
        [cell if isinstance(cell, str) else _figure(cell, error) for cell in row]
        for row, error in zip(frame.itertuples(index=False), errors, strict=True)
    ]
    at_once = ", which all hold at once" if simultaneous else ""
    title = f"With intervals of level {level:g}{at_once}" if "low" in frame else "Test of a hypothesis"
    print_table(title, map(str, frame.columns), rows, whole=True)
    if getattr(answer, "rsquared", None) is not None:
        low, high = answer.rsquared.interval(level)
        say(f"R-squared {_figure(answer.rsquared.value)}, {_figure(low)} to {_figure(high)}.")
    for term, names in getattr(answer, "factors", {}).items():
        if len(names) > 1:
            test = answer.wald_test(term)
            say(f"All of {term} 0: chi-square {_figure(test.statistic)}, df {test.df}, p {_figure(test.pvalue)}.")
    for group in getattr(answer, "left_out", {}):
        say(f"No answer for {group}: the release does not tell it from its noise.")
    first = answer if hasattr(answer, "target") else next(iter(answer.values()), None)
    if first is not None:
        say(f"Of the {first.target}. {first.rests_on}")
