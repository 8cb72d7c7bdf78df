"""Options that several commands have. One that names no flag has that of the parameter that it is put on.

Reading `COL=VALUE`, `LABEL=N` and `COL=KIND` from the command line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sfumato
from sfumato._lazy import later
from sfumato.errors import ConfigError

if TYPE_CHECKING:
    from sfumato.privacy.risk import Risk
    from sfumato.schema import set_columns
else:
    set_columns = later("sfumato.schema.set_columns")

DEFAULT_METHOD = "max-entropy"  # that of `MaxEntropy`, which no --help loads

SchemaOption = Annotated[
    Path, typer.Option(metavar="SCHEMA", help="The schema: a file that says what is public about the data.")
]
MethodOption = Annotated[str, typer.Option(metavar="M", help="The method to fit; `sfumato methods` lists them.")]
EPSILON = typer.Option(
    metavar="E", help="The privacy budget epsilon, above 0. Smaller is more private; 1 is a common choice."
)
EpsilonOption = Annotated[float | None, EPSILON]
RiskOption = Annotated[
    str | None,
    typer.Option(
        metavar="R",
        help="In place of --epsilon: how well the best attacker may do, such as advantage=0.1 or tpr=0.1,fpr=0.05.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the method, preset=NAME for those of a paper, or a YAML or JSON file of settings; `sfumato "
        "methods NAME` lists them. May be repeated.",
    ),
]
DeltaOption = Annotated[
    float | None,
    typer.Option(
        metavar="D",
        help="The probability delta with which the guarantee may fail. Default: the smaller of 1e-5 and 0.1/rows.",
    ),
]
RowsOption = Annotated[
    int | None, typer.Option(metavar="N", help="The public number of rows, about. Overrides the schema's.")
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="The column that users will predict or compare by; each of its classes is modelled apart."
    ),
]
AreasOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="A column that all others are counted by, such as a county. May be repeated."),
]
SeedOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Makes the noise reproducible, for tests only: the release is NOT private."),
]
QuestionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--question",
        metavar="TEXT",
        help='Measure this question with a part of the budget, as "ols: income ~ age". May be repeated.',
    ),
]


class SampleTypes(StrEnum):
    """Where samples have their storage types from."""

    kinds = "kinds"
    as_source = "as-source"


TypesOption = Annotated[
    SampleTypes,
    typer.Option(
        help="Column types of samples: from the schema, or as-source, those of DATA. The guarantee does NOT "
        "cover the types of DATA."
    ),
]
LedgerOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The account of all fits of these data. It is charged before a record is counted."
    ),
]
AcceptDraftOption = Annotated[
    bool,
    typer.Option(
        "--accept-draft",
        help="Accept a draft schema. The guarantee does NOT cover facts that were read off the records.",
    ),
]
RowsAreRecordsOption = Annotated[
    bool,
    typer.Option(
        "--rows-are-records",
        help="Your word, where a query or a view computes the rows, that each is made of one record alone.",
    ),
]
NamesArePublicOption = Annotated[
    bool,
    typer.Option(
        "--names-are-public",
        help="The first line of DATA holds column names, even where they look like values, such as 2019.",
    ),
]
ReleaseOutOption = Annotated[Path, typer.Option(metavar="RELEASE", help="A directory to make, or a .sfm file.")]
NumberOption = Annotated[
    int | None, typer.Option("-n", metavar="N", help="The number of rows to draw. Default: the public number of rows.")
]
RowsSeedOption = Annotated[int | None, typer.Option(metavar="N", help="The same seed gives the same rows.")]
ReleaseArgument = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release: a directory or a .sfm file.")]


def command_group() -> typer.Typer:
    """A group of commands, whose help begins with its line in the list of all."""
    return typer.Typer(no_args_is_help=True, add_completion=False)


def whole_number(text: str, option: str, word: str) -> int:
    """Read a whole number, where a word could stand too.

    Raises:
        ConfigError: it is none.
    """
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ConfigError(f"Expected {option} to be a whole number or {word}, got {text!r}.")
    return int(text)


def given_values(texts: Sequence[str] | None, schema: sfumato.Schema) -> dict[str, str | None]:
    """Read `--given COL=VALUE`. A column's name may hold `=`; one of the schema's tokens for missing is None."""
    values: dict[str, str | None] = {}
    for text in texts or ():
        splits = [(text[:i], text[i + 1 :]) for i, letter in enumerate(text) if letter == "="]
        if not splits:
            raise ConfigError(f"Expected --given COL=VALUE, got --given {text!r}.")
        name, value = next(
            (split for split in splits if split[0] in {*schema.released, *set_columns.itemised(schema)}), splits[0]
        )
        if name in values:
            raise ConfigError(f"Expected --given once per column, got {name!r} twice.")
        known = name in schema.released
        values[name] = (
            schema.columns[name].text_or_missing(value, schema.missing_of.get(name, schema.missing)) if known else value
        )
    return values


def class_counts(texts: Sequence[str] | None) -> dict[str, int] | None:
    """Read `--class-count LABEL=N`; None without any."""
    if not texts:
        return None
    counts: dict[str, int] = {}
    for text in texts:
        label, equals, count = text.rpartition("=")
        if not equals or not (count.isascii() and count.isdigit()):
            raise ConfigError(f"Expected --class-count LABEL=N with a whole N of at least 0, got {text!r}.")
        if label in counts:
            raise ConfigError(f"Expected --class-count once per label, got {label!r} twice.")
        counts[label] = int(count)
    return counts


def column_kinds(text: str | None) -> dict[str, str]:
    """Read `--kinds COL=KIND,COL=KIND`; nothing without any."""
    kinds: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, kind = part.rpartition("=")
        if not equals or not name:
            raise ConfigError(f"Expected --kinds COL=KIND,COL=KIND, got {part!r}.")
        if name in kinds:
            raise ConfigError(f"Expected --kinds once per column, got {name!r} twice.")
        kinds[name] = kind
    return kinds


def parse_risk(text: str | None, *, epsilon: float | None = None) -> Risk | None:
    """Read `--risk`.

    Raises:
        ConfigError: neither an advantage nor true positives at a share of false alarms, or an ε beside.
    """
    if text is None:
        return None
    if epsilon is not None:
        raise ConfigError("Expected either --epsilon or --risk, got both.")
    rates: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            rates[name.strip()] = float(value)
        except ValueError:
            rates = {}
            break
    if set(rates) == {"advantage"}:
        return sfumato.Advantage(rates["advantage"])
    if set(rates) == {"tpr", "fpr"}:
        return sfumato.TruePositiveRate(rates["tpr"], fpr=rates["fpr"])
    raise ConfigError(f"Expected --risk to be advantage=0.1 or tpr=0.1,fpr=0.05, got {text!r}.")


def parse_target_error(text: str) -> tuple[float, str | None]:
    """Read `--target-error`: an error, and the named question in whose answer it is.

    Raises:
        ConfigError: no number stands there, or none behind the question's last equals sign.
    """
    question, _, number = text.rpartition("=")
    try:
        return float(number), question.strip() or None
    except ValueError:
        raise ConfigError(
            f'Expected --target-error to be a number, or "QUESTION = NUMBER" such as "ols: income ~ age = 1.2", got '
            f"{text!r}."
        ) from None
