"""Rows of the model that a question is about: with labels, in spans, without a cell; and what was measured together.

Columns that follow from measured ones by a rule (sums, differences, products, maps, later ends of an order) have the
values that the rules say of these rows. A mean of a sum is a sum of measured means and a share of a map's label a sum
of measured shares, so that calibrated rows of what they follow from answer for them.

A function of three columns that were not measured together has a part that is any value under the same measurements.
How much of its variance functions of pairs say is no sign of that: of a balanced cell of three labels they say 6/7.

Free: uses released values only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from numbers import Number

import numpy as np
import pandas as pd

from sfumato.columns.booleans import Boolean
from sfumato.columns.bounded import Values
from sfumato.columns.facts import shown
from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import Categorical, Continuous, DateTime
from sfumato.errors import ConfigError, EstimateError, did_you_mean, require_instance
from sfumato.inference.table_measurements import TableMeasurements, values
from sfumato.lenses.chain import plain_schema
from sfumato.release.unit_releases import branch_of
from sfumato.rules.cells import absent
from sfumato.rules.computed import Computed
from sfumato.rules.rule_plan import RulePlan
from sfumato.schema.set_columns import IN
from sfumato.schema.sources import DISCOVERED

_BETWEEN = ".."
_ENDS = 2
Terms = frozenset[frozenset[str]]
"""Sets of measured columns: a column is a sum of functions of each."""
_LABEL = (str, bool, np.bool_, Number)
_MOST = 2


def _read_span(name: str, kind: TabularKind, value: object) -> tuple[float, float]:
    """Return the ends of a span, both within, that a caller gives of a column of numbers or dates, or one value twice.

    None, or no text, stands for an end that is open.

    Raises:
        ConfigError: it is none, or an end is no value within the column's bounds.
    """
    ends: tuple[object, ...] = (value, value)
    if isinstance(value, str) and _BETWEEN in value:
        ends = tuple(part.strip() or None for part in value.split(_BETWEEN))
    elif isinstance(value, tuple):
        ends = value
    if len(ends) != _ENDS or all(end is None for end in ends):
        raise ConfigError(
            f"Expected a span of {name!r}, such as (18, 65), (18, None) or '18..65', or a value, got {shown(value)}."
        )
    # as the model's rows have them: of dates steps since 1970; of a list of numbers it may end between two
    number = dataclasses.replace(kind, values=None) if isinstance(kind, Continuous) else None
    low, high = (
        side if end is None
        else number.given(name, end, kind.sample_type).stored[0].as_py() if number is not None
        else float(values(kind, np.array([kind.given(name, end, kind.sample_type).code])).iloc[0])
        for end, side in zip(ends, (-np.inf, np.inf), strict=True)
    )  # fmt: skip
    if low > high:
        raise ConfigError(f"Expected a span of {name!r} whose first end is not above its second, got {shown(value)}.")
    return low, high


class Rows:
    """Functions of a release's columns on the rows of its model."""

    def __init__(self, measured: TableMeasurements) -> None:
        self.measured = measured
        self._plan: RulePlan | None = measured.release.schema.rule_plan
        self._table: dict[str, np.ndarray | Values] | None = None

    @property
    def following(self) -> frozenset[str]:
        """Columns that follow from others by a rule: nothing was measured of them."""
        return frozenset() if self._plan is None else frozenset({**self._plan.follows, **self._plan.gaps})

    def terms(self, name: str) -> Terms:
        """Return which measured columns a column is a sum of functions of; one itself is one of itself."""
        plan = self._plan
        if plan is None or name not in self.following:
            return frozenset({frozenset({name})})
        if name in plan.gaps:  # under its own name, its distance from the earlier one was measured
            sums = self.terms(plan.gaps[name]) | {frozenset({name})}
        else:
            rule = plan.follows[name]
            parts = [self.terms(source) for source in rule.sources]
            sums = frozenset().union(*parts)
            if not isinstance(rule, Computed) or rule.operation == "product":
                sums = frozenset({frozenset().union(*sums)})
        null_terms = [self.terms(c) for rule in plan.nulls.get(name, ()) for c in rule.columns if c != name]
        missing = frozenset().union(*(term for terms in null_terms for term in terms))
        return frozenset(term | missing for term in sums)

    def _followed(self, name: str) -> np.ndarray | Values:
        """Return one of these on the model's rows: levels, or numbers as they are written."""
        if self._table is None:
            assert self._plan is not None
            self._table = self._plan.assembled(self.measured.free_codes)
        return self._table[name]

    def kind(self, name: str) -> TabularKind:
        """The kind of a column, as the schema has it."""
        plan = self._plan
        return self.measured.column(name).kind if plan is None or name not in self.following else plan.kinds[name]

    def require_column(self, name: str, *, following: bool = False) -> None:
        """Refuse what is no column that questions can be about; `following`: but those that follow from others may be.

        Raises:
            ConfigError: the column is not there, or is the weight.
            EstimateError: it follows from others by a rule.
        """
        require_instance(str, "the name of a column", column=name)
        known, weight = self.measured.frame.columns, self.measured.weight
        if weight is not None and name == weight.column:
            raise ConfigError(
                f"Expected a column that is released, got {name!r}, the weight: it says what rows count, and no "
                "question is asked of it."
            )
        view = branch_of(self.measured.release)
        if view is not None and view.branch.within is not None and name == view.branch.order:
            start, end = view.branch.within
            raise EstimateError(
                f"Expected a column that was measured itself, got {name!r}, of which the fit measured where it lies "
                f"between {start!r} and {end!r}. Ask of another column."
            )
        if name in self.following and following:
            return
        if name in self.following:
            raise EstimateError(
                f"Expected a column that was measured itself, got {name!r}, which follows from others by a rule. "
                "Ask of these, of its mean or shares, or compute it from replicates, which hold all columns."
            )
        if name not in known and name in plain_schema(self.measured.release.schema).released:
            raise EstimateError(
                f"Expected a column that the release measured, got {name!r}: none of its measurements is of its cells. "
                "Ask of another column, or fit with the method max-entropy, which counts every one."
            )
        if name not in known:
            columns = ", ".join(map(repr, known))
            raise ConfigError(f"Expected one of the columns {columns}, got {name!r}.{did_you_mean(name, known)}")

    def numbers(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return a numeric column of the rows, 0 where missing, and where it is not.

        Raises:
            ConfigError: the column is not numeric.
        """
        if not self.kind(name).is_numeric:
            raise ConfigError(f"Expected a column of numbers or dates, got {name!r} of labels. Ask of its shares.")
        if name in self.following:
            column = self._followed(name)
            assert isinstance(column, Values)
            return np.where(column.absent, 0.0, column.values.astype(np.float64)), 1.0 - np.asarray(column.absent)
        values = self.measured.frame[name].to_numpy(dtype=np.float64)
        present = ~np.isnan(values)
        return np.where(present, values, 0.0), present.astype(np.float64)

    def missing(self, name: str) -> np.ndarray:
        """Return the indicator of rows without a value in a column, shape (N,), which has to be nullable."""
        if not self.nullable(name):
            raise ConfigError(
                f"Expected a column with missing cells, got {name!r}, which the schema does not declare `nullable`: a "
                "fit put a value into such cells."
            )
        if name in self.following:
            return np.asarray(absent(self.kind(name), self._followed(name)), dtype=np.float64)
        return self.measured.frame[name].isna().to_numpy(dtype=np.float64)

    def nullable(self, name: str) -> bool:
        """Whether cells of a column may be missing: of one with words, neither a value nor a word."""
        words = self.measured.release.schema.word_columns
        return bool(getattr(words[name].kind if name in words else self.kind(name), "nullable", False))

    def labelled(self, names: Collection[str]) -> np.ndarray:
        """Return the indicator of rows with a label where every sample has one, shape (N,): shares are among these."""
        sources = {column for name in names for term in self.terms(name) for column in term}
        known = self.measured.labelled(self.measured.codes, sources)
        for name in self.following & set(names):
            if (kind := self.kind(name)).hides_blank:
                known &= ~absent(kind, self._followed(name))
        return known.astype(np.float64)

    def having(self, condition: Mapping[str, object]) -> np.ndarray:
        """Return the indicator of rows with these labels, or in these spans, shape (N,); None stands for no value."""
        matches = np.ones(self.measured.n_rows)
        for name, value in condition.items():
            if is_missing(value):
                matches *= self.missing(name)
            elif self.kind(name).is_numeric:
                matches *= self.within(name, value)
            else:
                label = _label(name, value)
                self._require_told_apart(name, label)
                matches *= self.levels(name, label)[label]
        return matches

    def within(self, name: str, value: object) -> np.ndarray:
        """Return the indicator of rows whose number lies in a span, shape (N,).

        Raises:
            ConfigError: it is no span within the column's bounds.
            EstimateError: the column follows from others by a rule: sums of what was measured say its mean alone.
        """
        self.require_column(name)
        numbers, present = self.numbers(name)
        low, high = _read_span(name, self.kind(name), value)
        return ((numbers >= low) & (numbers <= high)) * present

    def _require_told_apart(self, name: str, label: str) -> None:
        """Refuse the label of all that an estimate of the labels did not see: which they are hangs on its noise."""
        kind = self.kind(name)
        estimated = self.measured.release.schema.sources.get(name) == DISCOVERED
        if estimated and isinstance(kind, Categorical) and kind.other == label:
            raise EstimateError(
                f"Expected a label of {name!r} that stands for itself, got {label!r}: the fit estimated the labels, "
                "and which rows fell in there hangs on its noise. Declare the categories of this column, and fit again."
            )

    def levels(self, name: str, *wanted: str) -> dict[str, np.ndarray]:
        """Return the indicators of rows with each label of a column, shape (N,).

        Raises:
            ConfigError: the column is numeric, or a wanted label is not one of its labels.
        """
        kind = self.kind(name)
        if kind.is_numeric:
            of = "dates" if isinstance(kind, DateTime) else "numbers"
            raise ConfigError(f"Expected a column of labels, got {name!r} of {of}. Ask of its quantiles or mean.")
        if name in self.following:
            codes = np.asarray(self._followed(name))
            known = [str(label) for label in kind.labels]
        else:
            labels = self.measured.frame[name]
            codes, known = labels.cat.codes.to_numpy(), [str(label) for label in labels.cat.categories]
        for label in wanted:
            if label not in known:
                raise ConfigError(
                    f"Expected one of the labels of {name!r}, {', '.join(map(repr, known))}, got {label!r}."
                )
        return {
            label: (codes == place).astype(np.float64)
            for place, label in enumerate(known)
            if label in (wanted or known)
        }

    def condition(self, condition: object) -> dict[str, object]:
        """Return labels by column, with the columns that stand for items of sets, and for words beside numbers.

        Raises:
            ConfigError: it is no mapping from columns, or names an item that is none of the column's.
        """
        if not isinstance(condition, Mapping) or not all(isinstance(name, str) for name in condition):
            raise ConfigError(
                "Expected labels by column, such as {'sex': 'f'}, {'sex': None} of missing cells, or {'age': (18, 65)} "
                "of numbers."
            )
        schema = self.measured.release.schema
        sets, words = schema.set_columns, schema.word_columns
        labels: dict[str, object] = {}
        for name, value in condition.items():
            if name not in sets:
                labels |= (
                    words[name].condition(None if is_missing(value) else value) if name in words else {name: value}
                )
                continue
            for item in value if isinstance(value, list | tuple) else [value]:
                require_instance(_LABEL, f"an item of {name!r}", item=item)
                labels[sets[name].items[sets[name].code_of(item)]] = Boolean().labels[IN]
        return labels


def _label(name: str, value: object) -> str:
    """Return a label as the release names it: truth values are `true` and `false`; several are refused."""
    if not isinstance(value, _LABEL):
        raise ConfigError(f"Expected one label of {name!r}, or None for missing, got a {type(value).__name__}.")
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


def is_missing(value: object) -> bool:
    """Whether a caller means a missing cell."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value))


def measured_together(measured: TableMeasurements, columns: Collection[str]) -> bool:
    """Whether these columns were measured together."""
    if len(set(columns)) <= 1 or any(set(columns) <= table.columns for table in measured.tables):
        return True
    products = measured.products
    if products is None:
        return False
    if len(set(columns)) <= _MOST:
        return set(columns) <= products.columns.keys()
    if products.by_class is None or (by := products.by_class.query.by[0]).size < by.base:
        return False  # a number's quarters are not its values
    rest = set(columns) - {by.column}
    return by.column in columns and len(rest) <= _MOST and rest <= products.by_class.columns.keys()


def require_together(measured: TableMeasurements, columns: Collection[str], what: str) -> None:
    """Refuse a question about columns that were not measured together (`EstimateError`)."""
    if measured_together(measured, columns):
        return
    names = ", ".join(map(repr, sorted(set(columns))))
    how = "or name the question before the fit; of two numbers and few labels, fit with these as the target"
    known = "how two columns go together"
    if measured.products is None:
        how, known = "or fit with the method max-entropy, which measures every two", "the columns of its tables"
    raise EstimateError(
        f"Expected a question that the release's measurements answer, got {what}: it asks how {names} go together, and "
        f"they were not measured together, only {known}. Ask of fewer columns, {how}."
    )
