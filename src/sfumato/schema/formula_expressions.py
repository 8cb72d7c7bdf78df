"""What formulas are made of: columns, numbers, labels, operations, calls of a closed list of functions, and terms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Constant: TypeAlias = "float | str | bool | tuple[Constant, ...]"
Setting: TypeAlias = Literal[
    "a whole number of 1 to 50", "a number", "at most 50 numbers", "a label", "labels", "True or False", "a coding"
]
WHOLE, NUMBER, NUMBERS, LABEL, LABELS, FLAG, CODING = (
    "a whole number of 1 to 50", "a number", "at most 50 numbers", "a label", "labels", "True or False", "a coding",
)  # fmt: skip
_MOST_NUMBERS = 50


@dataclass(frozen=True, slots=True)
class Function:
    """How many values a function takes, and its settings in the order in which they may follow."""

    values: int = 1
    settings: dict[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Coding:
    """How labels are told apart: a coding of formulaic, with its settings."""

    name: str
    settings: tuple[tuple[str, Constant], ...]


_SPLINE: dict[str, Setting] = {"df": WHOLE, "knots": NUMBERS, "lower_bound": NUMBER, "upper_bound": NUMBER}
_BASIS: dict[str, Setting] = {
    "df": WHOLE, "knots": NUMBERS, "degree": WHOLE, "include_intercept": FLAG, "lower_bound": NUMBER,
    "upper_bound": NUMBER,
}  # fmt: skip
ELEMENTWISE = (
    "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "sqrt", "square", "abs", "sign", "floor", "ceil", "sin",
    "cos", "tan", "tanh",
)  # fmt: skip
"""Functions of single numbers, by numpy's names."""
OF_TWO = ("minimum", "maximum")
FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(ELEMENTWISE, Function()),
    **dict.fromkeys(OF_TWO, Function(2)),
    "where": Function(3),
    "I": Function(),
    "C": Function(settings={"contrasts": CODING, "levels": LABELS}),
    "center": Function(),
    "scale": Function(settings={"center": FLAG, "scale": FLAG}),
    "standardize": Function(settings={"center": FLAG, "rescale": FLAG}),
    "poly": Function(settings={"degree": WHOLE, "raw": FLAG}),
    "bs": Function(settings=_BASIS),
    "cr": Function(settings=_SPLINE),
    "cs": Function(settings=_SPLINE),
    "cc": Function(settings=_SPLINE),
}
_CODINGS: dict[str, dict[str, Setting]] = {
    "treatment": {"base": LABEL}, "SAS": {"base": LABEL}, "sum": {}, "helmert": {"reverse": FLAG, "scale": FLAG},
    "diff": {"backward": FLAG}, "poly": {"scores": NUMBERS},
}  # fmt: skip
CODINGS: dict[str, tuple[str, dict[str, Setting]]] = {
    **{f"contr.{name}": (name, settings) for name, settings in _CODINGS.items()},
    "Treatment": ("treatment", {"reference": LABEL}),
    **{name.capitalize(): (name, {}) for name in ("sum", "helmert", "diff", "poly")},
}
"""Codings by the names of R and of patsy: that of formulaic, and the settings."""


def function_named(written: str) -> str:
    """The name of a function as `FUNCTIONS` has it: those of numpy may be written as its own."""
    root, dot, name = written.partition(".")
    return name if dot and root in ("np", "numpy") and name in (*ELEMENTWISE, *OF_TWO, "where") else written


def fits(setting: Setting, value: Constant | Coding) -> bool:
    """Whether a value is what a setting is."""
    if setting in (NUMBERS, LABELS):
        of, most = (NUMBER, _MOST_NUMBERS) if setting == NUMBERS else (LABEL, math.inf)
        return isinstance(value, tuple) and 0 < len(value) <= most and all(fits(of, one) for one in value)
    if setting == FLAG:
        return isinstance(value, bool)
    if setting == CODING:
        return isinstance(value, Coding)
    number = isinstance(value, float) and math.isfinite(value)
    if setting == WHOLE:
        return number and value in range(1, _MOST_NUMBERS + 1)
    return number if setting == NUMBER else isinstance(value, str) or number


COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_PLAIN = re.compile(r"[^\W\d][\w.]*")
# how tightly signs bind when written, as in Python
_RANKS = {**dict.fromkeys(COMPARISONS, 1), "|": 2, "&": 3, "+": 4, "-": 4, "*": 5, "/": 5, "//": 5, "%": 5, "**": 7}
_UNARY, _ATOM = 6, 8
_CHAINED = ("+", "*", "&", "|")


@dataclass(frozen=True, slots=True)
class Expression:
    """A column, a number, a label, an operation or a call.

    Attributes:
        kind: which of these it is.
        name: the column, the number's text, the label, the sign, or the function of `FUNCTIONS`.
        text: as formulaic writes it.
        parts: of an operation its operands, of a call its values.
        settings: of a call, by their names.
        rank: how tightly its text binds.
        height: of the tree below.
    """

    kind: Literal["column", "number", "label", "operation", "call"]
    name: str
    text: str
    parts: tuple[Expression, ...] = ()
    settings: tuple[tuple[str, Constant | Coding], ...] = ()
    rank: int = _ATOM
    height: int = 0

    @property
    def factor(self) -> str:
        """The name that it has as a factor of a term: of a column its own."""
        return self.name if self.kind == "column" else self.text

    def walk(self) -> Iterator[Expression]:
        """Itself and all below it."""
        waiting: list[Expression] = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting.extend(one.parts)


Term: TypeAlias = tuple[Expression, ...]
"""Factors, each once; of the intercept none."""
Terms: TypeAlias = dict[frozenset[str], Term]


@dataclass(frozen=True, slots=True)
class FormulaTerms:
    """The terms of both sides of a formula, in the order in which they come, each once."""

    text: str
    left: tuple[Term, ...]
    right: tuple[Term, ...]

    def expressions(self) -> Iterator[Expression]:
        """All expressions in it."""
        for term in (*self.left, *self.right):
            for factor in term:
                yield from factor.walk()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names, sorted."""
        return tuple(sorted({one.name for one in self.expressions() if one.kind == "column"}))

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that it calls, sorted."""
        return tuple(sorted({one.name for one in self.expressions() if one.kind == "call"}))


def column(name: str) -> Expression:
    """A column, quoted where its name is no word."""
    quoted = f"Q({name!r})" if not name or "`" in name else f"`{name}`"
    return Expression("column", name, name if _PLAIN.fullmatch(name) else quoted)


def operation(sign: str, *parts: Expression) -> Expression:
    """An operation on one or two operands; chains of one sign are one operation on all."""
    if len(parts) == 1:
        rank, text = _UNARY, sign + _within(parts[0], _UNARY)
    else:
        left, right = parts[0], parts[1]
        rank = _RANKS[sign]
        tight = rank + (sign == "**" or sign in COMPARISONS)
        text = f"{_within(left, tight)} {sign} {_within(right, _UNARY if sign == '**' else rank + 1)}"
        if sign in _CHAINED and left.kind == "operation" and left.name == sign and len(left.parts) > 1:
            parts = (*left.parts, right)
    height = 1 + max(part.height for part in parts)
    return Expression("operation", sign, text, parts, rank=rank, height=height)


def term_key(term: Term) -> frozenset[str]:
    """What two terms of the same factors share."""
    return frozenset(factor.text for factor in term)


def _within(part: Expression, rank: int) -> str:
    return part.text if part.rank >= rank else f"({part.text})"
