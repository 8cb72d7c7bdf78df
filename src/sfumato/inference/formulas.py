"""Formulas, as formulaic reads them, and their two sides on the rows of a table.

Before formulaic sees a formula its columns get names of their own, so that a column may be called as one of its
functions is (`center`, `C`, `log`), or have blanks in its name. A name before a parenthesis is a function.

Functions that depend on other rows (means, deviations, polynomials) weigh the rows of a model, where formulaic's own
take each row once: their weights bring them to what was measured.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from sfumato.errors import ConfigError, require_instance

if TYPE_CHECKING:
    from formulaic import Formula

_WORDS = re.compile(
    r"""(?P<quoted>\bQ\(\s*(?P<mark>['"])(?P<inner>.*?)(?P=mark)\s*\))   # Q("a b"), as patsy has it
    | (?P<string>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
    | `(?P<ticked>[^`]*)`
    | (?P<name>(?<![\w.])[^\W\d]\w*(?:\.\w+)*)
      (?P<after>\s*(?:\(|=(?!=)))?                                        # a function, or an argument's name
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Design:
    """Both sides of a formula on rows; rows with a missing value are 0 and not there.

    Attributes:
        left: shape (N,).
        right: shape (N, k).
        terms: names of the right side's columns.
        present: which rows have no missing value, shape (N,).
        of_left: the table's columns that the left side is a function of.
        of_terms: those of the right side's terms, each once.
        references: the label that the others of a column are compared with, by column, where the formula names none.
        factors: the formula's terms, and which of `terms` each has.
    """

    left: np.ndarray
    right: np.ndarray
    terms: tuple[str, ...]
    present: np.ndarray
    of_left: frozenset[str] = frozenset()
    of_terms: tuple[frozenset[str], ...] = ()
    references: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadFormula:
    """A formula of a table's columns.

    Attributes:
        text: as it was asked.
        formula: of the columns under names of their own.
        left: its left side, likewise.
        names: those names to the columns.
    """

    text: str
    formula: Formula
    left: str
    names: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names, sorted."""
        return tuple(sorted(self.names.values()))

    @property
    def terms(self) -> tuple[frozenset[str], frozenset[str]]:
        """The terms of both sides, each as its factors are written, in any order."""
        both: Any = self.formula
        left, right = ([":".join(sorted(self._as_written(term))) for term in side] for side in (both.lhs, both.rhs))
        return frozenset(left), frozenset(right)

    def _as_written(self, term: Any) -> list[str]:  # noqa: ANN401 - of formulaic
        factors = [str(factor) for factor in term.factors]
        for name, column in self.names.items():
            factors = [re.sub(rf"\b{name}\b", repr(column), factor) for factor in factors]
        return [factor.replace(" ", "") for factor in factors]

    def design(
        self,
        frame: pd.DataFrame,
        weights: np.ndarray | None = None,
        references: Mapping[str, str] | None = None,
        *,
        logistic: bool,
    ) -> Design:
        """Return both sides on rows.

        Args:
            frame: of the columns.
            weights: of the rows, for means and deviations in `center`, `scale` and `poly`; by default all 1.
            references: the label of a column that its others are compared with; by default the commonest of the
                weighted rows.
            logistic: whether the left side has to have two values.

        Raises:
            ConfigError: it cannot be evaluated, or its left side is not one column of numbers.
        """
        n = len(frame)
        shown = pd.DataFrame({name: frame[column].to_numpy() for name, column in self.names.items()})
        for name, column in self.names.items():
            if isinstance(frame[column].dtype, pd.CategoricalDtype):
                shown[name] = frame[column].array
        if self.left in shown and isinstance(shown[self.left].dtype, pd.CategoricalDtype):
            shown[self.left] = _second_level(shown[self.left], self.names[self.left])
        weights = np.ones(n) if weights is None else weights
        first = {} if references is None else dict(references)
        for name, column in self.names.items():
            if isinstance(shown[name].dtype, pd.CategoricalDtype):
                first.setdefault(column, _commonest(shown[name], weights))
                shown[name] = _with_first(shown[name], first[column])
        y, X = self._sides(shown, weights)
        if y.shape[1] != 1:
            raise ConfigError(f"Expected one column of numbers on the left of {self.text!r}, got {y.shape[1]}.")
        present = np.zeros(n)
        present[np.asarray(X.index)] = 1.0
        left, right = np.zeros(n), np.zeros((n, X.shape[1]))
        left[np.asarray(X.index)] = self._numbers(y)[:, 0]
        right[np.asarray(X.index)] = self._numbers(X)
        if logistic and not np.isin(left, (0.0, 1.0)).all():
            raise ConfigError(
                f"Expected a left side of two values, 0 and 1 or two labels, got others in {self.text!r}."
            )
        terms = tuple(self._in_own_names(str(term)) for term in X.columns)
        compared = {column: label for column, label in first.items() if _compared(column, label, terms)}
        own = frozenset().union(*self._sources(y))
        return Design(left, right, terms, present, own, self._sources(X), compared, self._factors(X, terms))

    def _factors(self, side: pd.DataFrame, terms: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Return the formula's terms and the columns of each: an intercept by its own name."""
        slices = cast(Any, side).model_spec.term_slices
        factors = {self._in_own_names(str(term)): terms[part] for term, part in slices.items() if terms[part]}
        return {names[0] if term == "1" else term: names for term, names in factors.items()}

    def _sources(self, side: pd.DataFrame) -> tuple[frozenset[str], ...]:
        """Return the table's columns that each term of a side is a function of."""
        written = dict.fromkeys(str(part.term) for part in cast(Any, side).model_spec.structure)
        return tuple(
            frozenset(column for name, column in self.names.items() if re.search(rf"\b{name}\b", term))
            for term in written
        )

    def _sides(self, frame: pd.DataFrame, weights: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return both sides on rows without a missing value, whose places are their index."""
        problem = ""
        sides: Any = None
        try:
            with np.errstate(all="ignore"):
                sides = self.formula.get_model_matrix(frame, na_action="drop", context=transforms(weights))
        except Exception as error:  # noqa: BLE001 - a formula is code of the caller
            problem = self._in_own_names(f"{type(error).__name__}: {error}")
        if sides is None:
            raise ConfigError(f"Expected a formula that can be evaluated, got {self.text!r}: {problem}")
        if not (isinstance(sides.lhs, pd.DataFrame) and isinstance(sides.rhs, pd.DataFrame)):
            raise ConfigError(f"Expected a formula with one left and one right side, got several in {self.text!r}.")
        if not sides.rhs.shape[1]:
            raise ConfigError(f"Expected at least one term on the right of {self.text!r}, got none.")
        return sides.lhs, sides.rhs

    def _numbers(self, side: pd.DataFrame) -> np.ndarray:
        problem = ""
        numbers = np.zeros(0)
        try:
            numbers = np.asarray(side, dtype=np.float64)
        except (TypeError, ValueError):
            problem = "no numbers"
        if not problem and not np.isfinite(numbers).all():
            problem = "infinite values, as a logarithm of 0 is"
        if problem:
            raise ConfigError(f"Expected terms that are finite numbers in {self.text!r}, got {problem}.")
        return numbers

    def _in_own_names(self, text: str) -> str:
        """Return a term, or what was wrong with one, in the columns' own names."""
        for name, column in self.names.items():
            text = re.sub(rf"(?<![^:]){name}(?=$|[:\[])", lambda _, c=column: c, text)
            text = text.replace(name, column if column.isidentifier() else f"`{column}`")
        return text


def read_formula(text: object, columns: Sequence[str]) -> ReadFormula:
    """Read a formula of some columns.

    Raises:
        ConfigError: it is no formula with both sides, or names a column that is not there.
    """
    require_instance(str, "a formula such as 'y ~ x + C(z)'", formula=text)
    assert isinstance(text, str)
    reader = _Reader(text, columns)
    renamed = reader.renamed()
    formula = _parsed(renamed, text, reader.names)
    if not reader.names:
        raise ConfigError(f"Expected a formula of the columns {reader.known}, got none in {text!r}.")
    left = renamed.partition("~")[0].strip()
    return ReadFormula(text, formula, left, {name: column for column, name in reader.names.items()})


class _Reader:
    """Puts names of their own for the columns of a formula."""

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        from formulaic.transforms import TRANSFORMS

        self.text, self.columns, self.functions = text, columns, TRANSFORMS
        self.names: dict[str, str] = {}
        self.known = ", ".join(map(repr, columns))

    def renamed(self) -> str:
        """Return the formula with these names."""
        return _WORDS.sub(self._word, self.text)

    def _word(self, word: re.Match[str]) -> str:
        if word["string"] is not None:
            return word[0]
        for group in ("ticked", "inner"):
            if word[group] is not None:
                return self._name(word[group])
        name, after = word["name"], word["after"] or ""
        if name is None or after or keyword.iskeyword(name):
            return word[0] if name is None or "." not in name else self._dotted(name) + after
        if name in self.columns:
            return self._name(name)
        if "." in name:
            return self._dotted(name)
        if name in self.functions or hasattr(builtins, name):
            return name
        return self._name(name)

    def _dotted(self, name: str) -> str:
        """Return `np.pi` as it is, and `x.abs` as an attribute of a column."""
        root, _, rest = name.partition(".")
        if root in self.columns and not (root in self.functions and hasattr(self.functions[root], rest.split(".")[0])):
            return f"{self._name(root)}.{rest}"
        return name if root in self.functions else self._name(name)

    def _name(self, column: str) -> str:
        if column not in self.columns:
            raise ConfigError(f"Expected a formula of the columns {self.known}, got {column!r} in {self.text!r}.")
        return self.names.setdefault(column, f"column_{len(self.names)}_of_the_formula")


def _parsed(renamed: str, text: str, names: Mapping[str, str]) -> Formula:
    import formulaic

    problem = ""
    formula: Any = None
    try:
        formula = formulaic.Formula(renamed)  # pyright: ignore[reportAbstractUsage] - a metaclass chooses the class
    except Exception as error:  # noqa: BLE001 - what its parser says of the caller's text
        problem = str(error).split("\n")[0]
        for column, name in names.items():
            problem = problem.replace(name, column)
    if formula is None:
        raise ConfigError(f"Expected a formula such as 'y ~ x + C(z)', got {text!r}: {problem}")
    if not (hasattr(formula, "lhs") and hasattr(formula, "rhs")):
        raise ConfigError(f"Expected a formula with both sides, such as 'y ~ x + C(z)', got {text!r}.")
    return formula


def _commonest(labels: pd.Series, weights: np.ndarray) -> str:
    codes = labels.cat.codes.to_numpy()
    sizes = np.bincount(codes[codes >= 0], weights[codes >= 0], minlength=len(labels.cat.categories))
    return str(labels.cat.categories[int(np.argmax(sizes))])


def _with_first(labels: pd.Series, first: str) -> pd.Series:
    """Return labels with one of them before the others, which the default coding compares these with."""
    rest = [label for label in labels.cat.categories if label != first]
    return labels.cat.reorder_categories([first, *rest]) if len(rest) < len(labels.cat.categories) else labels


def _compared(column: str, label: str, terms: tuple[str, ...]) -> bool:
    """Whether terms compare labels of a column with this one: others have a term of the default coding, it has none."""
    name = column if column.isidentifier() else f"`{column}`"
    own = [term for term in terms for part in term.split(":") if part.startswith((f"C({name})[T.", f"{name}[T."))]
    return bool(own) and not any(term.endswith(f"[T.{label}]") for term in own)


def _second_level(labels: pd.Series, name: str) -> pd.Series:
    known = labels.cat.categories
    if len(known) != 2:
        raise ConfigError(
            f"Expected a left side of numbers or of two labels, got {name!r} with {len(known)} labels. "
            f"Write a condition, such as I({name} == 'label')."
        )
    codes = labels.cat.codes.to_numpy()
    return pd.Series(np.where(codes < 0, np.nan, codes.astype(np.float64)), index=labels.index)


def transforms(weights: np.ndarray) -> Mapping[str, Any]:
    """Return the functions of formulas that depend on more than a row, for rows of these weights, shape (N,)."""
    weighted = _Weighted(weights)
    return {
        "np": np,
        "center": weighted.center,
        "scale": weighted.scale,
        "standardize": weighted.standardize,
        "poly": weighted.poly,
        "lag": _lag,
    }


class _Weighted:
    """Transforms of a column of weighted rows; missing values count in none."""

    def __init__(self, weights: np.ndarray) -> None:
        self._weights = weights

    def center(self, x: Any) -> np.ndarray:  # noqa: ANN401 - what a formula holds
        """Return values less their mean."""
        return self.scale(x, scale=False)

    def standardize(self, x: Any, center: bool = True, rescale: bool = True) -> np.ndarray:  # noqa: ANN401
        """Return `scale`, by patsy's name."""
        return self.scale(x, center=center, scale=rescale)

    def scale(self, x: Any, center: bool = True, scale: bool = True) -> np.ndarray:  # noqa: ANN401
        """Return values less their mean, divided by their standard deviation."""
        values, weights = self._numbers(x)
        values = values - weights @ np.nan_to_num(values) if center else values
        if not scale:
            return values
        square = float(weights @ np.nan_to_num(values) ** 2)
        if not square > 0:
            raise ConfigError("the deviation of a column does not stand out of noise")
        return values / np.sqrt(square)

    def poly(self, x: Any, degree: int = 1, raw: bool = False) -> Any:  # noqa: ANN401
        """Return powers of values; unless `raw`, polynomials without correlation, whose squares add up to 1."""
        from formulaic.materializers.types import FactorValues

        values, weights = self._numbers(x)
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

    def _numbers(self, x: Any) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN401
        """Return values as numbers, and the rows' parts of the whole, 0 where they are missing."""
        values = np.asarray(x, dtype=np.float64)
        if values.shape != self._weights.shape:
            raise ConfigError("a column of numbers was expected")
        weights = np.where(np.isnan(values), 0.0, self._weights)
        whole = float(weights.sum())
        if not whole > 0:
            raise ConfigError("a column does not stand out of noise")
        return values, weights / whole


def _lag(*_: object, **__: object) -> None:
    """Refuse: the rows of a release have no order."""
    raise ConfigError("rows have no order, so that there is none before another")
