"""The functions that a formula may call, with their settings: a closed list."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Constant: TypeAlias = "float | str | bool | tuple[Constant, ...]"
Setting: TypeAlias = Literal[
    "a whole number of 1 to 50", "a number", "at most 50 numbers", "a label", "labels", "True or False", "a coding"
]
WHOLE, NUMBER, NUMBERS, LABEL, LABELS, FLAG, CODING = (
    "a whole number of 1 to 50", "a number", "at most 50 numbers", "a label", "labels", "True or False", "a coding",
)  # fmt: skip
_MOST = 50


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
        of, most = (NUMBER, _MOST) if setting == NUMBERS else (LABEL, math.inf)
        return isinstance(value, tuple) and 0 < len(value) <= most and all(fits(of, one) for one in value)
    if setting == FLAG:
        return isinstance(value, bool)
    if setting == CODING:
        return isinstance(value, Coding)
    number = isinstance(value, float) and math.isfinite(value)
    if setting == WHOLE:
        return number and value in range(1, _MOST + 1)
    return number if setting == NUMBER else isinstance(value, str) or number
