"""About how long a fit takes, from public facts alone: schema, method, target, ε and the declared number of rows.

Constants were chosen on the fits that `tests/methods/tables/test_duration.py` records. How many steps a column's
softmax takes depends on the records, and is not known before: a table of strongly tied numbers (bills of following
months) may take ten times as long, and so may machines differ.
"""

from __future__ import annotations

from sfumato.columns.kind import TabularKind
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import SIZES
from sfumato.methods.tables.chain import Effort
from sfumato.methods.tables.settings import TableFacts, classes_apart, entry_noise, orders_of
from sfumato.privacy.budget import EstimateCount, NonPrivate
from sfumato.schema.schema import Schema

_START = 2.2
"""Seconds until the libraries are read."""
_CELL = 2.5e-7
"""Seconds for each cell of the records: reading and two passes."""
_NUMBER, _LABEL = 0.05, 0.07
"""Seconds for each column's place in the chain, where an entry of the moments has a noise of `_ENTRY`."""
_ENTRY, _LEAST_ENTRY, _POWER = 0.01, 0.001, 0.25
"""With less noise columns say more of each other, and their softmaxes take more steps."""
_PRODUCT = 6e-10
"""Seconds for each simulated row and pair of features."""
_BY_CLASS, _CLASSES = 2.0, 0.3
"""Times as much with a target or areas whose two classes have weights of their own, and its power of their number."""
_MULTIPLIER = 4.8
"""About the noise multiplier of second moments at ε = 1."""


def fit_seconds(
    method: str,
    schema: Schema,
    *,
    target: str | None = None,
    n_public: int | EstimateCount | None = None,
    epsilon: float | NonPrivate | None = 1.0,
) -> float | None:
    """Return about how many seconds of one core a fit takes; None where nothing was measured, or no rows are declared.

    Args:
        method: its name; `max-entropy` of tables is known.
        schema: public description of the table.
        target: column whose classes are modelled apart.
        n_public: the public number of rows; by default the schema's.
        epsilon: of the fit; nothing is known of fits without noise.

    Example:
        >>> schema = Schema.from_dict({"rows": 1_000_000, "columns": {"a": "boolean", "b": "boolean"}})
        >>> round(fit_seconds("max-entropy", schema), 1)
        2.9
    """
    rows = schema.rows if n_public is None else n_public
    tables = len(schema.of_kind(TabularKind)) + len(schema.open) == len(schema.released)
    if method != "max-entropy" or schema.linked or not isinstance(rows, int) or not tables:
        return None
    if not isinstance(epsilon, int | float):
        return None
    return _START + _CELL * len(schema.released) * rows + _chain_seconds(schema, target, rows, epsilon)


def _chain_seconds(schema: Schema, target: str | None, rows: int, epsilon: float) -> float:
    """Return the time of the fits of all columns; columns to discover count as numbers."""
    labels = {name: kind.width for name, kind in schema.of_kind(TabularKind).items() if not kind.is_numeric}
    n_classes = labels.pop(Facts(schema, target, rows).class_column or "", 1)
    features = sum(min(n_levels, SIZES.level_groups) - 1 for n_levels in labels.values())
    columns = len(schema.released) - (n_classes > 1)
    numbers = columns - len(labels)
    entry = entry_noise(_MULTIPLIER / epsilon, TableFacts(n_classes, columns, features), rows)
    orders = orders_of(entry)
    features += numbers * (orders + (orders > 1))
    steps = (_ENTRY / max(entry, _LEAST_ENTRY)) ** _POWER
    seconds = (_NUMBER * numbers + _LABEL * len(labels)) * steps
    seconds += _PRODUCT * Effort.noisy(columns=columns).rows * features**2
    return seconds * (_BY_CLASS * (n_classes / 2) ** _CLASSES if classes_apart(n_classes, entry) else 1)


def rounded(seconds: float) -> str:
    """Return a time in the words of somebody who is not sure of it.

    Example:
        >>> rounded(3.2), rounded(47), rounded(4_000)
        ('5 seconds', '50 seconds', '70 minutes')
    """
    unit, name = (1.0, "second") if seconds < 100 else (60.0, "minute") if seconds < 7_200 else (3_600.0, "hour")
    number = seconds / unit
    step = 1 if number < 3 else 5 if number < 20 else 10
    whole = max(step, round(number / step) * step)
    return f"{whole} {name}" + ("" if whole == 1 else "s")
