"""Formulas of a table's columns, and their two sides on its rows.

The text is read by `sfumato.schema.formula_grammar`, its factors are evaluated by `sfumato.inference.formula_values`.
formulaic looks these up by their names, and codes labels so that no term is a sum of others: it evaluates no text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd

from sfumato.columns.facts import shown
from sfumato.errors import ConfigError, require_instance
from sfumato.extras import import_extra
from sfumato.inference.formula_values import FormulaValues, basis_size
from sfumato.schema.formula_expressions import Expression, FormulaTerms, Term, term_key
from sfumato.schema.formula_grammar import MOST_TERMS, formula_terms

_INTERCEPT = "(+1)"  # a literal that no column is called


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
class ReadFormula(FormulaTerms):
    """A formula of a table's columns, which it is evaluated on."""

    @property
    def terms(self) -> tuple[frozenset[frozenset[str]], frozenset[frozenset[str]]]:
        """The terms of both sides, in any order, each as its factors in any order."""
        left, right = (frozenset(map(term_key, side)) for side in (self.left, self.right))
        return left, right

    @property
    def left_column(self) -> str:
        """The column that is the left side; empty where that is something else."""
        factors = [factor for term in self.left for factor in term]
        return factors[0].name if len(factors) == 1 and factors[0].kind == "column" else ""

    def design(
        self, frame: pd.DataFrame, weights: np.ndarray | None = None, references: Mapping[str, str] | None = None, *,
        logistic: bool,
    ) -> Design:  # fmt: skip
        """Return both sides on rows.

        Args:
            frame: of the columns: numbers, or labels as categories.
            weights: of the rows, for means and deviations in `center`, `scale` and `poly`; by default all 1.
            references: the label of a column that its others are compared with; by default the commonest of the
                weighted rows.
            logistic: whether the left side has to have two values.

        Raises:
            ConfigError: it cannot be evaluated, has too many terms, or its left side is not one column of numbers.
        """
        n = len(frame)
        weights = np.ones(n) if weights is None else weights
        shown_columns = {name: frame[name].reset_index(drop=True) for name in self.columns}
        labelled = [name for name in self.columns if isinstance(shown_columns[name].dtype, pd.CategoricalDtype)]
        if self.left_column in labelled:
            shown_columns[self.left_column] = _second_level(shown_columns[self.left_column], self.left_column)
            labelled.remove(self.left_column)
        first = {} if references is None else dict(references)
        for name in labelled:
            labels = shown_columns[name].cat
            codes = labels.codes.to_numpy()
            sizes = np.bincount(codes[codes >= 0], weights[codes >= 0], minlength=len(labels.categories))
            first.setdefault(name, str(labels.categories[int(np.argmax(sizes))]))
            rest = [label for label in labels.categories if label != first[name]]
            if len(rest) < len(labels.categories):  # the default coding compares with the label before the others
                shown_columns[name] = labels.reorder_categories([first[name], *rest])
        y, X = self._sides(FormulaValues(shown_columns, weights), n)
        present, left, right = np.zeros(n), np.zeros(n), np.zeros((n, X.shape[1]))
        rows = np.asarray(X.index)
        present[rows], left[rows], right[rows] = 1.0, self._numbers(y)[:, 0], self._numbers(X)
        if logistic and not np.isin(left, (0.0, 1.0)).all():
            raise ConfigError(
                f"Expected a left side of two values, 0 and 1 or two labels, got others in {shown(self.text)}."
            )
        terms = tuple(map(str, X.columns))
        compared = {column: label for column, label in first.items() if _compared(column, label, terms)}
        own = frozenset().union(*map(columns_of, self.left))
        return Design(left, right, terms, present, own, *self._terms(X, terms, compared))

    def _terms(
        self,
        side: Any,  # noqa: ANN401 - of formulaic
        names: tuple[str, ...],
        compared: Mapping[str, str],
    ) -> tuple[tuple[frozenset[str], ...], Mapping[str, str], dict[str, tuple[str, ...]]]:
        """The right side's terms as a `Design` has them: an intercept by its own name."""
        own = {frozenset(part.factor for part in term) or frozenset([_INTERCEPT]): term for term in self.right}
        terms = [own[frozenset(part.expr for part in term.factors)] for term in side.model_spec.term_slices]
        slices = [names[part] for part in side.model_spec.term_slices.values()]
        factors = {
            ":".join(factor.factor for factor in term) or columns[0]: columns
            for term, columns in zip(terms, slices, strict=True)
            if columns
        }
        return tuple(map(columns_of, terms)), compared, factors

    def _sides(self, values: FormulaValues, n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return both sides on rows without a missing value, whose places are their index."""
        problem = ""
        sides: Any = None
        import_extra("formulaic", "regression")
        try:
            with np.errstate(all="ignore"):
                for side in (self.left, self.right):
                    if sum(width for _, width in term_widths(side, values.levels)) > MOST_TERMS:
                        raise ConfigError(f"its labels make more than {MOST_TERMS:,} terms. Put some together")
                factors = {
                    factor.factor: values.factor(factor) for term in (*self.left, *self.right) for factor in term
                }
                sides = _formulaic(self).get_model_matrix(
                    pd.DataFrame(index=pd.RangeIndex(n)), na_action="drop", context=factors
                )
        except Exception as error:  # noqa: BLE001 - what formulaic's codings and numpy say of odd columns
            problem = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        if sides is None:
            raise ConfigError(
                f"Expected a formula that can be evaluated, got {shown(self.text)}: {problem.rstrip('.')}."
            )
        if sides.lhs.shape[1] != 1:
            raise ConfigError(
                f"Expected one column of numbers on the left of {shown(self.text)}, got {sides.lhs.shape[1]}."
            )
        if not sides.rhs.shape[1]:
            raise ConfigError(f"Expected at least one term on the right of {shown(self.text)}, got none.")
        return sides.lhs, sides.rhs

    def _numbers(self, side: pd.DataFrame) -> np.ndarray:
        numbers = np.asarray(side, dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise ConfigError(
                f"Expected terms that are finite numbers in {shown(self.text)}, got infinite values, as a logarithm of "
                "0 is."
            )
        return numbers


def read_formula(text: object, columns: Sequence[str]) -> ReadFormula:
    """Read a formula of some columns.

    Raises:
        ConfigError: it is no formula with both sides, or names a column that is not there.
    """
    require_instance(str, "a formula such as 'y ~ x + C(z)'", formula=text)
    assert isinstance(text, str)
    parsed = formula_terms(text)
    known = ", ".join(map(repr, columns))
    unknown = next((name for name in parsed.columns if name not in columns), None)
    if unknown is not None:
        raise ConfigError(f"Expected a formula of the columns {known}, got {unknown!r} in {shown(text)}.")
    if not parsed.columns:
        raise ConfigError(f"Expected a formula of the columns {known}, got none in {shown(text)}.")
    return ReadFormula(parsed.text, parsed.left, parsed.right)


def term_widths(side: Sequence[Term], levels: Callable[[Expression], int]) -> list[tuple[Term, int]]:
    """How many columns each term of a side becomes: labels are told apart so that none is a sum of others.

    `levels` says how many labels a factor has, 0 of one of numbers. It is what formulaic does.
    """
    spanned, widths = set[frozenset[str]](), []
    for term in sorted(side, key=len):
        sizes = {factor.text: levels(factor) for factor in term}
        labels = [text for text, size in sizes.items() if size]
        parts = chain.from_iterable(combinations(labels, size) for size in range(len(labels) + 1))
        keys = {term_key(term) - set(labels) | set(part): math.prod(sizes[text] - 1 for text in part) for part in parts}
        width = math.prod(basis_size(factor) for factor in term)
        widths.append((term, width * sum(size for key, size in keys.items() if key not in spanned)))
        spanned |= set(keys)
    return widths


def columns_of(term: Term) -> frozenset[str]:
    """The columns that a term is a function of."""
    return frozenset(one.name for factor in term for one in factor.walk() if one.kind == "column")


def _formulaic(parsed: FormulaTerms) -> Any:  # noqa: ANN401
    """The terms as formulaic's, whose factors are looked up by their names, never evaluated."""
    from formulaic import Formula
    from formulaic.parser.types import Factor
    from formulaic.parser.types import Term as FormulaicTerm

    one = Factor(_INTERCEPT, eval_method="literal")
    sides = [
        [FormulaicTerm([Factor(part.factor, eval_method="lookup") for part in term] or [one]) for term in side]
        for side in (parsed.left, parsed.right)
    ]
    return Formula(lhs=sides[0], rhs=sides[1])  # pyright: ignore - a metaclass chooses the class


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
