"""What the expressions of a formula are on rows: arithmetic of floats, and functions of a closed list.

Functions that depend on other rows (means, deviations, polynomials) weigh the rows of a model, where formulaic's own
take each row once: their weights bring them to what was measured.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from sfumato.columns.facts import shown
from sfumato.errors import ConfigError
from sfumato.extras import import_extra
from sfumato.schema.formula_expressions import COMPARISONS, ELEMENTWISE, OF_TWO, Coding, Expression

_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": np.divide, "//": np.floor_divide, "%": np.mod,
    "**": np.power,
}  # fmt: skip
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = dict(
    zip(COMPARISONS, (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge), strict=True)
)
SPLINES = ("bs", "cr", "cs", "cc")
_NAMES = {"treatment": "Treatment", "SAS": "SAS", "sum": "Sum", "helmert": "Helmert", "diff": "Diff", "poly": "Poly"}


class FormulaValues:
    """The values of expressions on weighted rows: numbers and conditions of shape (N,), labels, or several columns."""

    def __init__(self, columns: Mapping[str, pd.Series], weights: np.ndarray) -> None:
        """Take the columns, numbers or labels, and the weights of rows, shape (N,)."""
        self._columns, self._weights = columns, weights

    def factor(self, expression: Expression) -> Any:  # noqa: ANN401 - what formulaic takes for a factor
        """The values of a factor: conditions are 0 and 1.

        Raises:
            ConfigError: it has none.
        """
        value = self._of(expression)
        if isinstance(value, str):
            raise ConfigError(f"{expression.text} is a label, not a column")
        if isinstance(value, np.ndarray | np.generic | float) and not hasattr(value, "__formulaic_metadata__"):
            value = np.broadcast_to(np.asarray(value, dtype=np.float64), self._weights.shape)
        return value

    def _of(self, expression: Expression) -> Any:  # noqa: ANN401
        match expression.kind:
            case "column":
                column = self._columns[expression.name]
                return column if isinstance(column.dtype, pd.CategoricalDtype) else column.to_numpy()
            case "number":
                return float(expression.name)
            case "label":
                return expression.name
            case "operation":
                return self._operation(expression)
            case "call":
                return self._call(expression)

    def _operation(self, expression: Expression) -> Any:  # noqa: ANN401
        sign, parts = expression.name, [self._of(part) for part in expression.parts]
        if sign in _COMPARED:
            return _compared(expression, parts[0], parts[1])
        if sign in ("&", "|", "~"):
            known = [_condition(part, expression) for part in parts]
            return ~known[0] if sign == "~" else reduce(np.logical_and if sign == "&" else np.logical_or, known)
        numbers = [_numbers(part, expression) for part in parts]
        if len(numbers) == 1:
            return -numbers[0] if sign == "-" else numbers[0]
        return reduce(_ARITHMETIC[sign], numbers)

    def _call(self, expression: Expression) -> Any:  # noqa: ANN401
        name, settings = expression.name, dict[str, Any](expression.settings)
        first, *others = (self._of(part) for part in expression.parts)
        if name == "I":
            return first
        if name == "C":
            return _coded(first, expression, **settings)
        if name == "where":
            return np.where(_condition(first, expression), *(_numbers(other, expression) for other in others))
        numbers = [_numbers(value, expression) for value in (first, *others)]
        if name in (*ELEMENTWISE, *OF_TWO):
            return getattr(np, name)(*numbers)
        column = np.broadcast_to(np.asarray(numbers[0]), self._weights.shape)
        if name in SPLINES:
            whole = {key: int(value) if key in ("df", "degree") else value for key, value in settings.items()}
            return import_extra("formulaic.transforms", "regression").TRANSFORMS[name](column, **whole)
        return getattr(_Weighted(self._weights), name)(column, **settings)

    def levels(self, factor: Expression) -> int:
        """How many labels a factor tells apart; 0 of one of numbers. Nothing is coded yet."""
        if factor.kind == "call" and factor.name == "C":
            given = dict[str, Any](factor.settings).get("levels")
            value = self._of(factor.parts[0]) if given is None else given
            return pd.Series(value).nunique() if np.ndim(value) == 1 else 0
        value = self._columns.get(factor.name) if factor.kind == "column" else None
        return len(value.cat.categories) if isinstance(value, pd.Series) and hasattr(value, "cat") else 0


def basis_size(factor: Expression) -> int:
    """How many columns a factor of numbers becomes at most: polynomials and splines become several."""
    settings, power = dict[str, Any](factor.settings), factor.name == "poly"
    if factor.kind != "call" or not (power or factor.name in SPLINES):
        return 1
    knots = len(settings.get("knots", ())) + (not power)
    return int(settings.get("df", knots + settings.get("degree", 1 if power else 3)))


def _numbers(value: Any, within: Expression) -> Any:  # noqa: ANN401
    """A value as floats, so that no number is longer than they are."""
    if isinstance(value, str | pd.Series) or np.ndim(value) > 1:
        raise ConfigError(f"{within.text} is of something else than numbers. Write a condition, as I(x == 'label')")
    return np.asarray(value, dtype=np.float64)


def _condition(value: Any, within: Expression) -> Any:  # noqa: ANN401
    if not (isinstance(value, np.ndarray | np.generic) and value.dtype == bool):
        raise ConfigError(f"{within.text} is of something else than conditions, such as (x > 1)")
    return value


def _compared(expression: Expression, left: Any, right: Any) -> np.ndarray:  # noqa: ANN401
    """A comparison of numbers, or of labels, of which missing ones equal nothing."""
    labels = [isinstance(side, str | pd.Series) for side in (left, right)]
    if not any(labels):
        return _COMPARED[expression.name](_numbers(left, expression), _numbers(right, expression))
    if not all(labels) or all(isinstance(side, str) for side in (left, right)):
        raise ConfigError(f"{expression.text} compares labels with something else. Put labels in quotes")
    if expression.name not in ("==", "!="):
        raise ConfigError(f"{expression.text} compares labels, which have no order")
    known = [side if isinstance(side, str) else side.astype(object).to_numpy() for side in (left, right)]
    absent = reduce(np.logical_or, [side.isna().to_numpy() for side in (left, right) if isinstance(side, pd.Series)])
    return np.asarray((known[0] == known[1]) & ~absent) == (expression.name == "==")


def _coded(values: Any, expression: Expression, contrasts: Coding | None = None, levels: Any = None) -> Any:  # noqa: ANN401
    """Labels, told apart as a formula says."""
    transforms = import_extra("formulaic.transforms", "regression")
    if np.ndim(values) != 1:
        raise ConfigError(f"{expression.text} is of something else than a column")
    if levels is not None:
        beyond = set(pd.unique(pd.Series(values).dropna())) - set(levels)
        if beyond:
            raise ConfigError(f"the levels of {shown(expression.text)} leave out {shown(sorted(map(str, beyond))[0])}")
        values = pd.Series(pd.Categorical(values, categories=list(levels)))
    coding = None
    if contrasts is not None:
        settings = {"base" if name == "reference" else name: value for name, value in contrasts.settings}
        coding = getattr(transforms.contrasts, f"{_NAMES[contrasts.name]}Contrasts")(**settings)
    return transforms.C(values, coding)


class _Weighted:
    """Transforms of a column of weighted rows; missing values count in none."""

    def __init__(self, weights: np.ndarray) -> None:
        self._weights = weights

    def center(self, x: np.ndarray) -> np.ndarray:
        """Return values less their mean."""
        return self.scale(x, scale=False)

    def standardize(self, x: np.ndarray, center: bool = True, rescale: bool = True) -> np.ndarray:
        """Return `scale`, by patsy's name."""
        return self.scale(x, center=center, scale=rescale)

    def scale(self, x: np.ndarray, center: bool = True, scale: bool = True) -> np.ndarray:
        """Return values less their mean, divided by their standard deviation."""
        values, weights = self._numbers(x)
        values = values - weights @ np.nan_to_num(values) if center else values
        if not scale:
            return values
        square = float(weights @ np.nan_to_num(values) ** 2)
        if not square > 0:
            raise ConfigError("the deviation of a column does not stand out of noise")
        return values / np.sqrt(square)

    def poly(self, x: np.ndarray, degree: float = 1, raw: bool = False) -> Any:  # noqa: ANN401
        """Return powers of values; unless `raw`, polynomials without correlation, whose squares add up to 1."""
        FactorValues = import_extra("formulaic.materializers.types", "regression").FactorValues
        values, weights = self._numbers(x)
        degree = int(degree)
        names = tuple(str(k) for k in range(1, degree + 1))
        if raw:
            return FactorValues(np.stack([values**k for k in range(1, degree + 1)], axis=1), column_names=names)
        known = np.nan_to_num(values)
        standard = self.scale(known) if degree else known
        powers = np.stack([np.nan_to_num(standard) ** k for k in range(degree + 1)], axis=1)
        gram = (powers * weights[:, None]).T @ powers
        if np.linalg.eigvalsh(gram).min() <= 0:
            raise ConfigError("polynomials of that degree do not stand out of noise")
        own = powers @ np.linalg.inv(np.linalg.cholesky(gram)).T / np.sqrt(self._weights.sum())
        own[np.isnan(values)] = np.nan
        return FactorValues(own[:, 1:], column_names=names)

    def _numbers(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values, and the rows' parts of the whole, 0 where they are missing."""
        weights = np.where(np.isnan(x), 0.0, self._weights)
        whole = float(weights.sum())
        if not whole > 0:
            raise ConfigError("a column does not stand out of noise")
        return x, weights / whole
