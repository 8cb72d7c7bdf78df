"""Which columns were measured together: pairs, and three where one is the target of a fit with moments by class.

A function of three columns that were not measured together has a part that is any value under the same measurements.
How much of its variance functions of pairs say is no sign of that: of a balanced cell of three labels they say 6/7.

Free: uses released values only.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

from sfumato.errors import EstimateError
from sfumato.inference.rows import Terms
from sfumato.inference.table_measurements import TableMeasurements

_MOST = 2


def measured_together(measured: TableMeasurements, columns: Collection[str]) -> bool:
    """Whether these columns were measured together."""
    if len(set(columns)) <= 1 or any(set(columns) <= table.columns for table in measured.tables):
        return True
    products = measured.products
    if products is None:
        return False
    own = set() if products.by is None else {products.by.column}
    return len(set(columns) - own) <= _MOST and set(columns) <= products.columns.keys() | own


def require_terms_together(measured: TableMeasurements, sums: Sequence[Terms], what: str) -> None:
    """Refuse a product of sums of functions of columns, where some of its parts were not measured together."""
    for chosen in itertools.product(*sums):
        require_together(measured, frozenset().union(*chosen), what)


def require_together(measured: TableMeasurements, columns: Collection[str], what: str) -> None:
    """Refuse a question about columns that were not measured together (`EstimateError`)."""
    if measured_together(measured, columns):
        return
    names = ", ".join(map(repr, sorted(set(columns))))
    how, known = (
        "or fit with one of them as the target, which is measured with every two others",
        "how two columns go together",
    )
    if measured.products is None:
        how, known = "or fit with the method max-entropy, which measures every two", "the columns of its tables"
    elif measured.products.by is not None:
        how = f"or fit with one of them as the target, as {measured.class_column!r} is in this release"
    raise EstimateError(
        f"Expected a question that the release's measurements answer, got {what}: it asks how {names} go together, and "
        f"they were not measured together, only {known}. Ask of fewer columns, {how}."
    )
