"""In which encoding a CSV file is, and what parts its cells: public facts that a schema or a file's suffix says."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.facts import shown

ENCODINGS = (
    *("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"),
    *(f"cp{page}" for page in (437, 850, 852, 866, 932, 949, 950, *range(1250, 1259))),
    *(f"iso8859-{part}" for part in range(1, 17) if part != 12),
    *("koi8-r", "koi8-u", "mac-roman", "shift_jis", "euc_jp", "euc_kr", "gbk", "gb18030", "big5"),
)
"""Encodings that can be declared, as Python names them; other names of these will do (`latin-1`, `windows-1252`)."""

Dress: TypeAlias = Callable[[pa.ChunkedArray], pa.ChunkedArray]
DELIMITER_OF_SUFFIX: Mapping[str, str | None] = {".txt": None, ".tab": "\t", ".tsv": "\t", ".csv": None}
"""Suffixes of CSV text, with the delimiter that each says; None where the header tells."""

_DELIMITERS = tuple("\t !#$%&()*,/:;<=>?@[\\]^`{|}~")  # no letter, digit, quote, point or sign


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """The form of a CSV file; None is what the file itself has to tell: its header, its byte order mark.

    Attributes:
        delimiter: one character of ASCII between cells.
        encoding: of the text.
    """

    delimiter: str | None = None
    encoding: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOutput:
    """How a CSV file is written.

    Attributes:
        form: a comma and UTF-8 unless it says otherwise.
        dress: of some columns, how their cells become text.
        missing: of some columns, what a cell without a value is written as; else it is empty.
    """

    form: CsvForm = CsvForm()
    dress: Mapping[str, Dress] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def dressed(self, table: pa.Table) -> pa.Table:
        """Return a table whose cells are as the file has them."""
        for place, name in enumerate(table.column_names):
            if name in self.dress:
                table = table.set_column(place, name, self.dress[name](table.column(place)))
            column = table.column(place)
            if name in self.missing and column.null_count and not pa.types.is_nested(column.type):
                table = table.set_column(place, name, pc.fill_null(column.cast(pa.string()), self.missing[name]))
        return table


@cache
def _known_encodings() -> frozenset[str]:
    """Names of the codecs of all encodings: Python imports a module for each."""
    return frozenset(codecs.lookup(name).name for name in ENCODINGS)


def delimiter_of(value: object, faults: list[str]) -> str | None:
    """Return a declared delimiter, or note what is wrong with it; None if there is none."""
    if value is None:
        return None
    if isinstance(value, str) and value in _DELIMITERS:
        return value
    faults.append(f"Expected delimiter to be one character such as ; or a tab, got {shown(value)}.")
    return None


def encoding_of(value: object, faults: list[str]) -> str | None:
    """Return a declared encoding by the name that Python gives it, or note that it is not known; None if none is."""
    if value is None:
        return None
    try:
        name = codecs.lookup(value).name if isinstance(value, str) else ""
    except (LookupError, ValueError):
        name = ""
    if name not in _known_encodings():
        faults.append(f"Expected encoding to be one such as utf-8, latin-1, cp1252 or utf-16, got {shown(value)}.")
        return None
    return name
