"""About how long a fit takes, from public facts alone: schema, method, target, ε and the declared number of rows.

Constants were chosen on the fits that `tests/methods/tables/test_duration.py` records. How many steps a column's
softmax takes depends on the records, and is not known before: a table of strongly tied numbers (bills of following
months) may take ten times as long, and so may machines differ.
"""

from __future__ import annotations

from sfumato.columns.kind import TabularKind
from sfumato.maths.constants import SIZES
from sfumato.methods.tables.settings import TableFacts, entry_noise, waves_of
from sfumato.privacy.budget import EstimateCount, NonPrivate
from sfumato.schema.schema import Schema

_START = 2.2
"""Seconds until the libraries are read."""
_CELL = 2.5e-7
"""Seconds for each cell of the records: reading and two passes."""
_COLUMN = 0.1
"""Seconds for each column's place in the mixture and in the chain."""
_PAIR = 4e-6
"""Seconds for each pair of features: 800 steps of the mixture."""
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
    del target
    labels = [kind.width for kind in schema.of_kind(TabularKind).values() if not kind.is_numeric]
    columns, features = len(schema.released), sum(min(n_levels, SIZES.level_groups) - 1 for n_levels in labels)
    facts = TableFacts(columns, features, columns - len(labels))
    features += (columns - len(labels)) * waves_of(entry_noise(_MULTIPLIER / epsilon, facts, rows), facts).most
    return _COLUMN * columns + _PAIR * features**2


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
