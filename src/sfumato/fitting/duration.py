"""About how long a fit takes, from public facts alone: schema, method, target, and the declared number of rows.

Constants were measured on one core with made-up tables of 10 to 100 columns and 20,000 to 200,000 rows: `python
benchmarks/duration.py` compares. Other tables and machines differ by a factor of up to three.
"""

from __future__ import annotations

from sfumato.columns.kind import TabularKind
from sfumato.privacy.budget import EstimateCount
from sfumato.schema.schema import Schema

_START = 0.1
_COLUMN = 0.11
"""Seconds for each column: calibrating its cells, and its place in the chain."""
_CELL = 2.5e-7
"""Seconds for each cell of the records: reading and two passes."""
_BY_CLASS = 1.6
"""Times as much with a target, whose classes are modelled apart, or areas."""


def fit_seconds(
    method: str, schema: Schema, *, target: str | None = None, n_public: int | EstimateCount | None = None
) -> float | None:
    """Return about how many seconds of one core a fit takes; None where nothing was measured, or no rows are declared.

    Args:
        method: its name; `max-entropy` of tables is known.
        schema: public description of the table.
        target: column whose classes are modelled apart.
        n_public: the public number of rows; by default the schema's.

    Example:
        >>> schema = Schema.from_dict({"rows": 1_000_000, "columns": {"a": "boolean", "b": "boolean"}})
        >>> round(fit_seconds("max-entropy", schema), 1)
        0.8
    """
    rows = schema.rows if n_public is None else n_public
    tables = len(schema.of_kind(TabularKind)) + len(schema.open) == len(schema.released)
    if method != "max-entropy" or schema.linked or not isinstance(rows, int) or not tables:
        return None
    columns = len(schema.released)
    return (
        _START + _COLUMN * columns * (_BY_CLASS if target is not None or schema.areas else 1) + _CELL * columns * rows
    )


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
