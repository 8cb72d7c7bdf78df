"""Shapes of tables, and the one table of what a pair of them, or a shape and a task, cannot do, with the reason.

Every refusal of a pair comes from here, and the documentation's table of pairs (docs/shapes.md) is checked against it.
What is not listed works.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sfumato.columns.bounded import NumericKind
from sfumato.columns.sets import ItemSet
from sfumato.errors import ConfigError
from sfumato.schema.schema_facts import SchemaFacts


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of tables.

    Attributes:
        words: its name in sentences.
        got: what a schema has of it; empty where it has nothing.
        instead: how to do without.
    """

    words: str
    got: Callable[[SchemaFacts], str]
    instead: str


def _linked(schema: SchemaFacts) -> str:
    if schema.database is not None:
        return f"the tables {', '.join(map(repr, schema.database.names))}"
    return "a unit with order or constant" if schema.linked else ""


def _weight(schema: SchemaFacts) -> str:
    return "" if schema.weight is None else f"weights in {schema.weight.column!r}"


def _sets(schema: SchemaFacts) -> str:
    sets = schema.of_kind(ItemSet)
    return f"sets in column {next(iter(sets))!r}" if sets and len(schema.released) > 1 else ""


def _words(schema: SchemaFacts) -> str:
    worded = [name for name, kind in schema.of_kind(NumericKind).items() if kind.words]
    return f"some in column {worded[0]!r}" if worded else ""


def _unit(schema: SchemaFacts) -> str:
    return f"the unit {schema.unit.column!r}" if schema.unit is not None and not schema.linked else ""


SHAPES: Mapping[str, Shape] = {
    "rules": Shape("rules", lambda schema: "some" if schema.rules else "", "Take them out"),
    "unit": Shape("a unit", _unit, "Take `unit` out, which protects single rows"),
    "linked": Shape(
        "linked rows", _linked, "Take order and constant out, or join two tables, which leaves unlinked rows"
    ),
    "tree": Shape(
        "a tree of tables",
        lambda schema: "" if schema.tree is None else _linked(schema),
        "Release each table with that of units by itself, which adds the budgets up",
    ),
    "words": Shape("words beside numbers", _words, "List them under `missing` instead of `atoms`"),
    "sets": Shape("sets beside other columns", _sets, "Declare one or the other as identifier"),
    "weight": Shape("weight", _weight, "Take `weight` out, which counts every row once"),
    "weighted units": Shape(
        "weights of linked rows", lambda s: _weight(s) if s.linked else "", "Take `weight` out, which counts units once"
    ),
    "areas": Shape(
        "areas", lambda schema: ", ".join(map(repr, schema.areas)), "Take `areas` out, or name the column as target"
    ),
    "questions": Shape("named questions", lambda schema: "some" if schema.questions else "", "Take `questions` out"),
    "open": Shape(
        "open columns", lambda schema: ", ".join(map(repr, schema.open)), "Declare them, with their bounds or labels"
    ),
}


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a shape.

    Attributes:
        shape: one of `SHAPES`.
        beside: another shape, or a task in words.
        reason: why not.
    """

    shape: str
    beside: str
    reason: str


TARGET, CRITERIA = "a target that varies from row to row", "criteria of acceptance"
SEARCH = "a search of settings"
EVALUATION, ESTIMATORS = "evaluation of real rows", "estimators"
CONCLUSIONS, MODEL = "conclusions beside real rows", "a model of measurements"
PRIOR = "a prior"
LIMITS = (
    Limit("linked", "open", "columns are discovered by row, and here a unit with all its rows is the record"),
    Limit("linked", "words", "what is known of the row before is a value of each column"),
    Limit("linked", "areas", "the class of a unit is its target: name a constant there"),
    Limit("weighted units", "questions", "features of units are counted once each"),
    Limit("linked", TARGET, "the record is a unit with all its rows, which has no one class of it"),
    Limit("linked", CRITERIA, "verdicts count rows, and a record is a unit with all its rows"),
    Limit("tree", "weight", "shares of units are not weighted over several tables"),
    Limit("tree", SEARCH, "scores compare rows"),
    Limit("weight", CRITERIA, "verdicts count every row once"),
    Limit("weighted units", EVALUATION, "scores count every unit once, and would say nothing of the population"),
    Limit("weight", CONCLUSIONS, "classifiers and models count every row once"),
    Limit("words", ESTIMATORS, "their records are numbers alone"),
    Limit("rules", ESTIMATORS, "their samples keep none"),
    Limit("linked", ESTIMATORS, "their plan and certificate are those of single rows"),
    Limit("open", ESTIMATORS, "bounds are part of their map into the unit ball"),
    Limit("areas", ESTIMATORS, "their sums count rows by nothing"),
    Limit("questions", ESTIMATORS, "their plan has no stage for them"),
    Limit("questions", MODEL, "what was measured is given"),
    Limit("areas", MODEL, "what was measured says what rows are counted by"),
    Limit("rules", MODEL, "what was measured counts rows as they are written, not what rules leave free"),
    Limit("unit", MODEL, "whom the noise protects is for those to say who drew it"),
    Limit("linked", MODEL, "what was measured counts single rows"),
    Limit("words", MODEL, "what was measured counts no words"),
    Limit("sets", MODEL, "what was measured counts no items"),
    Limit("weight", MODEL, "what was measured counts every row once"),
    Limit("linked", PRIOR, "rows are drawn of a table of single rows"),
    Limit("weight", PRIOR, "what an earlier release says of sums of weights is not derived"),
    Limit("open", PRIOR, "its cells are those of declared columns"),
)


def require_taken(schema: SchemaFacts, takes: Collection[str], method: str) -> None:
    """Refuse a shape that a method does not take.

    Raises:
        ConfigError: names it.
    """
    for name, shape in SHAPES.items():
        if name not in takes and (got := shape.got(schema)):
            raise ConfigError(
                f"Expected a schema without {shape.words} for the method {method}, got {got}. {shape.instead}, or use "
                "the method max-entropy."
            )


def require_able(schema: SchemaFacts, task: str, instead: str = "") -> None:
    """Refuse a shape with which a task cannot be done; `instead` is how to do without the task, where that is nearer.

    Raises:
        ConfigError: names both, and the reason.
    """
    for limit in LIMITS:
        if limit.beside == task and (got := SHAPES[limit.shape].got(schema)):
            shape = SHAPES[limit.shape]
            raise ConfigError(
                f"Expected a schema without {shape.words} for {task}, got {got}: {limit.reason}. "
                f"{instead or shape.instead}."
            )


def pair_faults(schema: SchemaFacts) -> list[str]:
    """Faults of a schema whose shapes do not go together."""
    return [
        f"Expected no {SHAPES[limit.beside].words} beside {SHAPES[limit.shape].words}, got "
        f"{SHAPES[limit.beside].got(schema)}: {limit.reason}. {SHAPES[limit.shape].instead}."
        for limit in LIMITS
        if limit.beside in SHAPES and SHAPES[limit.shape].got(schema) and SHAPES[limit.beside].got(schema)
    ]
