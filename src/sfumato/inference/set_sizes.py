"""The mean size of sets beside other columns: a sum of the shares of their items, each of which was counted.

Free: uses released values only.
"""

from __future__ import annotations

from typing import cast

from sfumato.columns.facts import shown
from sfumato.errors import ConfigError, EstimateError, require_choice
from sfumato.inference.calibration import STRONG, Target
from sfumato.inference.estimator import Estimator
from sfumato.inference.noisy_counts import tables_of
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.inference.together import require_together
from sfumato.inference.totals import Totals
from sfumato.schema.set_columns import SetColumn

MOST_BY = 24
"""Items that are solved for together, with the labels of a column or in linked rows."""


def set_column(measured: TableMeasurements, name: object) -> SetColumn:
    """Return a column of sets beside others; another column is refused (`ConfigError`)."""
    sets = measured.release.schema.set_columns
    if not isinstance(name, str) or name not in sets:
        items = [column for column in measured.columns if column.startswith(f"{name}: ")]
        if items:  # of units
            raise ConfigError(
                f"Expected a column of sets, got {shown(name)}, of whose items each is a column of first rows here: "
                f"ask share({{{items[0]!r}: True}}) and the like."
            )
        known = ", ".join(map(repr, sets)) or "none"
        raise ConfigError(f"Expected a column of sets, got {shown(name)}. Columns of sets: {known}.")
    return sets[name]


def rows_by_counts(measured: TableMeasurements, column: SetColumn, target: str) -> Estimator:
    """Rows calibrated to the counts of each item: a sum of these needs no products."""
    require_choice(("population", "table"), target=target)
    parts = [
        table.totals(measured.base, measured.n_rows)
        for item in column.items
        for table in tables_of(measured.tables, {item})
        if table.columns
    ]
    calibration = measured.calibration(Totals.joined(parts).with_rows(), STRONG)
    weight = None if measured.weight is None else measured.weight.column
    return Estimator(calibration, (column.name,), cast("Target", target), weight, products=False)


def require_items_by(measured: TableMeasurements, column: SetColumn, by: str) -> None:
    """Refuse the size of sets by a column whose labels were not measured with each item, or of too many items."""
    require_few_items(column)
    for item in column.items:
        require_together(measured, (item, by), f"the mean size of {column.name!r} by {by!r}")


def require_few_items(column: SetColumn) -> None:
    """Refuse more items than are solved for together (`EstimateError`)."""
    if len(column.items) > MOST_BY:
        raise EstimateError(
            f"Expected at most {MOST_BY} items for the size of sets by labels, or of linked rows, got "
            f"{len(column.items)} of {column.name!r}: more are not solved for together. Ask of single items."
        )
