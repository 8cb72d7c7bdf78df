"""What formulas are made of: columns, numbers, labels, operations and calls, and their terms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sfumato.schema.formula_functions import Coding, Constant

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
