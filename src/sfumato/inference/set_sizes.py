"""The mean size of sets beside other columns: a sum of the shares of their items, each of which was counted.

Free: uses released values only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from sfumato.columns.facts import shown
from sfumato.errors import ConfigError, EstimateError, require_choice
from sfumato.inference.asked import Asked
from sfumato.inference.calibration import STRONG, Calibration
from sfumato.inference.estimate import Estimate, Estimates
from sfumato.inference.intervals import bounded
from sfumato.inference.measured import MODEL_ROWS
from sfumato.inference.noisy_counts import asked_tables
from sfumato.inference.together import require_together
from sfumato.inference.totals import Totals
from sfumato.schema.set_columns import IN, SetColumn

if TYPE_CHECKING:
    from sfumato.inference.calibration import Target
    from sfumato.inference.questions import Questions

MOST_BY = 24
"""Items whose pairs with the labels of a column are solved for together."""


def set_size(questions: Questions, name: str, by: str | None, target: str) -> Estimate | Estimates:
    """Mean number of items of a set, of all rows or of those of each label.

    Raises:
        ConfigError: it is no column of sets.
        EstimateError: some items were not measured, or too many of them are asked of by labels.
    """
    column = _column(questions, name)
    for item in column.items:
        questions.require_asked(item)
    asked = _asked(questions, column, target) if by is None else _asked_by(questions, column, by, target)
    size = np.sum([questions.measured.codes[item] == IN for item in column.items], axis=0, dtype=np.float64)
    longest = float(column.kind.longest)
    over = (
        "" if column.kind.max_length >= column.kind.size else f"Of a set the first {column.kind.longest} items count. "
    )

    def one(rows: np.ndarray, of: str) -> Estimate:
        found = asked.ratio(size * rows, rows, f"the mean size of {name!r}{of}", over=over)
        return bounded(found, 0.0, longest)

    return questions.grouped(by, one)


def _column(questions: Questions, name: str) -> SetColumn:
    sets = questions.measured.release.schema.set_columns
    if not isinstance(name, str) or name not in sets:
        known = ", ".join(map(repr, sets)) or "none"
        raise ConfigError(f"Expected a column of sets, got {shown(name)}. Columns of sets: {known}.")
    return sets[name]


def _asked(questions: Questions, column: SetColumn, target: str) -> Asked:
    """Rows calibrated to the counts of each item: a sum of these needs no products."""
    require_choice(("population", "table"), target=target)
    measured = questions.measured
    parts = [
        table.totals(measured.base, MODEL_ROWS)
        for item in column.items
        for table in asked_tables(measured.tables, {item})
        if table.columns
    ]
    calibration = Calibration(
        Totals.joined(parts).with_rows(),
        measured.size,
        measured.rows_variance,
        measured.weighting,
        measured.rows_of_unit,
        fitted=STRONG,
    )
    weight = None if measured.weight is None else measured.weight.column
    return Asked(calibration, (column.name,), cast("Target", target), weight, products=False)


def _asked_by(questions: Questions, column: SetColumn, by: str, target: str) -> Asked:
    if len(column.items) > MOST_BY:
        raise EstimateError(
            f"Expected at most {MOST_BY} items for the size of sets by labels, got {len(column.items)} of "
            f"{column.name!r}: more are not solved for together. Ask of single items by {by!r}, or of all rows."
        )
    for item in column.items:
        require_together(questions.measured, (item, by), f"the mean size of {column.name!r} by {by!r}")
    return questions.asked((*column.items, by), target)
