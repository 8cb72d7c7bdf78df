"""Whether the first line of a CSV file holds names, or is a record already; by that line alone.

A file without a header line would publish its first record as names of columns. What the other lines hold does not
matter here: an error that depends on them would tell of a record.
"""

from __future__ import annotations

import re

from sfumato.errors import DataError
from sfumato.io.chunks import Source

_NUMBER = re.compile(r"[+-]?(?:\d[\d,. ]*|[.,]\d+)(?:[eE][+-]?\d+)?%?")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d.*)?|\d{1,2}:\d{2}(?::\d{2}.*)?")


def require_names(source: Source) -> None:
    """Refuse a CSV of which a column's name is a number, a date or a time, as cells of records are.

    Raises:
        DataError: names the column's place, never its text.
    """
    if source.container != "csv":
        return
    for place, name in enumerate(source.names, start=1):
        text = name.strip()
        what = "a number" if _NUMBER.fullmatch(text) else "a date or time" if _DATE.fullmatch(text) else ""
        if what:
            raise DataError(
                f"Expected the first line of {source.label} to name its columns, got {what} for column {place}. If "
                "that line is a record, add a line of names above it; if these are names, say so: --names-are-public "
                "(names_are_public=True)."
            )
