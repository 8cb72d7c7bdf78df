"""Rows of a regression's right side as a caller gives them: for predicted means.

A row is put after the model's rows, with weight 0, and the formula evaluated on all: so means in `center` and knots of
splines are those of the fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sfumato.columns.kind import TabularKind
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.formulas import ReadFormula
from sfumato.inference.table_measurements import values


@dataclass(frozen=True, eq=False)
class DesignRows:
    """Where a formula is evaluated.

    Attributes:
        read: the formula.
        frame: the model's rows of its columns.
        weights: of these, shape (N,).
        kinds: of its columns.
        two_values: whether its left side has to have two.
        wanted: the columns of its right side.
    """

    read: ReadFormula
    frame: pd.DataFrame
    weights: np.ndarray
    kinds: Mapping[str, TabularKind]
    two_values: bool
    wanted: frozenset[str]

    def of(self, rows: Sequence[Mapping[str, object]]) -> np.ndarray:
        """Return the terms of rows, shape (rows, k), from values by column.

        Raises:
            ConfigError: a column of the right side is not given, another is, or a value is none of the column's.
        """
        for row in rows:
            if not isinstance(row, Mapping) or set(row) != self.wanted:
                names = ", ".join(map(repr, sorted(self.wanted)))
                raise ConfigError(
                    f"Expected a value for each column of the right side of {self.read.text!r}, {names}, and no other."
                )
        table = pd.concat([self.frame, self._given(rows)], ignore_index=True)
        weights = np.concatenate([self.weights, np.zeros(len(rows))])
        design = self.read.design(table, weights, logistic=self.two_values)
        if not design.present[-len(rows) :].all():
            raise EstimateError(f"Expected values that {self.read.text!r} can be evaluated at, got missing ones.")
        return design.right[-len(rows) :]

    def _given(self, rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
        columns = {}
        for name, kind in self.kinds.items():
            if name in self.wanted:
                codes = [kind.given(name, row[name], kind.sample_type).code for row in rows]
                columns[name] = values(kind, np.asarray(codes, dtype=np.float64 if kind.is_numeric else np.int64))
            else:  # of the left side alone, where any value does
                columns[name] = self.frame[name].dropna().iloc[[0] * len(rows)].reset_index(drop=True)
        return pd.DataFrame(columns)
