"""How many of the population each row of an estimator stands for: weights, read cell by cell, up to a public bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sfumato.columns.kinds import Continuous
from sfumato.errors import ConfigError
from sfumato.estimators.records import NumericRecords, X
from sfumato.estimators.units import CELLS, cells_beside, column_of
from sfumato.io.chunks import Source, attempt
from sfumato.lenses.weights import fractions
from sfumato.mechanisms.contributions import MOST_WEIGHED_ROWS
from sfumato.mechanisms.statistics import WEIGHT
from sfumato.privacy.certificate_form import Weighting
from sfumato.records.engine import Rows
from sfumato.schema.weight import Weight


class WeightedRows(NumericRecords):
    """Rows that count by weights ÷ their bound, at most once: each by its own cell alone, as a schema's weights do.

    Args:
        records: all rows.
        cells: of one column, each row's weight.
        weight: its name and bound.
    """

    def __init__(self, records: NumericRecords, cells: Source, weight: Weighting) -> None:
        self.dimension, self.names, self.weight = records.dimension, records.names, weight
        self._kind = Continuous(lower=0, upper=weight.upper, nullable=True)
        self._kind.check_readable(weight.column, cells.storage[CELLS])
        self._records, self._cells = records, cells
        self._parts: np.ndarray | None = None

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of rows, with their weights ÷ the bound."""
        if self._parts is None:
            self._parts = attempt(self._read, "Cannot read the weights of rows. Please report their type.")
        start = 0
        for rows in self._records.coded():
            stop = start + len(rows[X])
            yield {**rows, WEIGHT: self._parts[start:stop]}
            start = stop

    def _read(self) -> np.ndarray:
        chunks = self._cells.chunks([CELLS])
        parts = [fractions(self._kind.code(chunk.columns[CELLS], missing=("",))) for chunk in chunks]
        return np.concatenate([np.zeros(0), *parts])


def of_weights(
    records: NumericRecords,
    data: Any,  # noqa: ANN401
    weights: Any,  # noqa: ANN401
    upper: float | None,
) -> NumericRecords:
    """Rows that count by weights, where these are given; the rows themselves where they are not.

    Args:
        records: of the data.
        data: with a length.
        weights: each row's, a list, array or column of numbers; None where each row counts once.
        upper: the largest weight that counts, public; required beside `weights`.

    Raises:
        ConfigError: one of both is missing, or as `cells_beside` and `column_of`.
        SchemaError: the bound is no number above 0, or the cells are of a type that has no numbers.
    """
    if weights is None:
        if upper is not None:
            raise ConfigError("Expected sample_weight beside weight_upper, got weight_upper alone. Name the weights.")
        return records
    if upper is None:
        raise ConfigError(
            "Expected weight_upper beside sample_weight: the largest weight that counts, fixed without looking at the "
            "weights. Got none."
        )
    source = cells_beside(data, weights, "sample_weight", "numbers")
    column = column_of(weights, records, "weight")
    bound = Weight(column=column, upper=upper).upper
    assert bound is not None
    return WeightedRows(records, source, Weighting(column=column, upper=float(bound)))


def require_few(records: NumericRecords, n_public: int) -> None:
    """Refuse weights of more rows than their sums have bits for.

    Raises:
        ConfigError: says how many there may be.
    """
    if records.weight is not None and n_public > MOST_WEIGHED_ROWS:
        raise ConfigError(
            f"Expected n_public of at most {MOST_WEIGHED_ROWS} beside weights, got n_public={n_public}. Fit without "
            "weights, or to a sample of the rows."
        )
