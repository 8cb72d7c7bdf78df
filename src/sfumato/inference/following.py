"""Columns that follow from measured ones by a rule: sums, differences, products, maps, later ends of an order.

Their values on the model's rows are what the rules say of these rows. A mean of a sum is a sum of measured means and a
share of a map's label a sum of measured shares, so that calibrated rows of what they follow from answer for them.

Free: uses released values only.
"""

from __future__ import annotations

import numpy as np

from sfumato.columns.bounded import Values
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.rules.computed import Computed
from sfumato.rules.plan import RulePlan

Terms = frozenset[frozenset[str]]
"""Sets of measured columns: a column is a sum of functions of each."""


class Following:
    """The columns of a release that follow from others.

    Args:
        measured: the release's measurements.
    """

    def __init__(self, measured: TableMeasurements) -> None:
        self._measured = measured
        self._plan: RulePlan | None = measured.release.schema.rule_plan
        self._table: dict[str, np.ndarray | Values] | None = None

    @property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset() if self._plan is None else frozenset({**self._plan.follows, **self._plan.gaps})

    def terms(self, name: str) -> Terms:
        """Return which measured columns a column is a sum of functions of; one itself is one of itself."""
        plan = self._plan
        if plan is None or name not in self.names:
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

    def column(self, name: str) -> np.ndarray | Values:
        """Return a column on the model's rows: levels, or numbers as they are written."""
        if self._table is None:
            assert self._plan is not None
            self._table = self._plan.assembled(self._measured.free_codes)
        return self._table[name]
