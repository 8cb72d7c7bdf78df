"""Whether the first line of a CSV file holds names, or is a record already; by that line alone.

A file without a header line would publish its first record as names of columns. What the other lines hold does not
matter here: an error that depends on them would tell of a record.
"""

from __future__ import annotations

import re

from sfumato.errors import DataError
from sfumato.io.chunks import Source

_CURRENCY = r"(?:[$€£¥]|CHF|EUR|GBP|USD)"
_NUMBER = re.compile(
    rf"(?:{_CURRENCY} ?)?[+\-\u2212]?(?:\d[\d,. '\u2019]*|[.,]\d+)(?:[eE][+-]?\d+)?(?: ?(?:%|{_CURRENCY}))?"
)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d.*)?|\d{1,2}:\d{2}(?::\d{2}.*)?")
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LONGEST = 1_000
_RECORDS = (
    (_NUMBER, "a number"), (_DATE, "a date or time"), (_ADDRESS, "an e-mail address"), (_UUID, "an identifier (UUID)"),
)  # fmt: skip


def require_names(source: Source) -> None:
    """Refuse a CSV of which a column's name is a number, a date, a time, an e-mail address or a UUID, as cells are.

    Raises:
        DataError: names the column's place, never its text.
    """
    if source.container != "csv":
        return
    for place, name in enumerate(source.names, start=1):
        text = name.strip()
        tried = _RECORDS if len(text) <= _LONGEST else ()  # time grows with the square of a text
        what = next((what for pattern, what in tried if pattern.fullmatch(text)), None)
        if what:
            raise DataError(
                f"Expected the first line of {source.label} to name its columns, got {what} for column {place}. If "
                "that line is a record, add a line of names above it; if these are names, say so: --names-are-public "
                "(names_are_public=True)."
            )
