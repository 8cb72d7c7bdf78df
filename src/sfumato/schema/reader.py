"""The reader profile of a schema: how a table's numbers are written, and in which form its CSV file is.

    reader: {decimal: ",", thousands: ".", encoding: latin-1, delimiter: ";", missing: ["", "?"]}

What it says of numbers holds for every column of numbers, but for what such a column says itself (`written`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.columns.facts import shown
from sfumato.columns.kind import ColumnKind, settle
from sfumato.columns.levels import LevelKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.columns.open import Open
from sfumato.columns.written import Written
from sfumato.errors import SchemaError
from sfumato.io.csv_form import CsvForm, CsvOutput, Dress, delimiter_of, encoding_of

_WRITTEN_KEYS = ("decimal", "thousands", "prefix", "suffix", "percent", "currency")
_KEYS = (*_WRITTEN_KEYS, "missing", "delimiter", "encoding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How the cells of a table are written as text, declared in public.

    Attributes:
        written: of numbers: decimal mark, groups of thousands, what stands around the digits.
        delimiter: what parts the cells of a CSV file; None: its header tells.
        encoding: of a CSV file; None: UTF-8, or what its byte order mark says.

    Example:
        >>> Reader(written=Written(decimal=","), encoding="latin-1").to_dict()
        {'decimal': ',', 'encoding': 'iso8859-1'}
    """

    written: Written = field(default_factory=Written)
    delimiter: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        faults: list[str] = []
        written = Written.of(self.written, faults) or Written()
        delimiter, encoding = delimiter_of(self.delimiter, faults), encoding_of(self.encoding, faults)
        try:
            Written().over(written)
        except SchemaError as error:
            faults.append(str(error))
        if faults:
            raise SchemaError(" ".join(f"Reader: {fault}" for fault in faults))
        settle(self, written=written, delimiter=delimiter, encoding=encoding)

    @property
    def csv(self) -> CsvForm:
        """The form of a CSV file."""
        return CsvForm(delimiter=self.delimiter, encoding=self.encoding)

    def resolved(self, kind: ColumnKind, name: str) -> ColumnKind:
        """Return a kind that says itself how its numbers are written, where the table says something of it.

        Raises:
            SchemaError: what column and table say together does not go together.
        """
        if isinstance(kind, Integer | Continuous) or (isinstance(kind, Open) and kind.may_be_number):
            try:
                written = (kind.written or Written()).over(self.written)
            except SchemaError as error:
                raise SchemaError(f"Column {name!r}: {error}") from None
            if written and written != kind.written:
                return replace(kind, written=written)
        return kind

    def entry_of(self, kind: ColumnKind) -> dict[str, Any]:
        """Return a kind's entry in a document that has this reader: what the table says is not said twice."""
        entry = kind.to_dict()
        if self.written and entry.get("written") == self.written.to_dict():
            del entry["written"]
        return entry

    def to_dict(self) -> dict[str, str]:
        """Return the facts that are stated, as plain values."""
        rest = {"delimiter": self.delimiter, "encoding": self.encoding}
        return {**self.written.to_dict(), **{key: value for key, value in rest.items() if value is not None}}


def read_reader(document: Mapping[str, Any], faults: list[str]) -> tuple[Reader, Mapping[str, Any]]:
    """Return the reader of a schema document, and the document with its missing tokens where they are looked for.

    Args:
        document: a schema as plain values.
        faults: gets a sentence for every fault.
    """
    entry = document.get("reader")
    if entry is None:
        return Reader(), document
    if not isinstance(entry, Mapping):
        faults.append(f'Expected reader to be a mapping such as {{decimal: ","}}, got {shown(entry)}.')
        return Reader(), document
    unknown = [key for key in entry if key not in _KEYS]
    faults += [f"Expected the keys {', '.join(_KEYS)} in reader, got {shown(key)}. Correct it." for key in unknown]
    if "missing" in entry and "missing" in document:
        faults.append("Expected missing in reader or beside it, got both. Leave one out.")
    elif "missing" in entry:
        document = {**document, "missing": entry["missing"]}
    problems: list[str] = []
    written = Written.of({key: entry[key] for key in _WRITTEN_KEYS if key in entry}, problems)
    delimiter = delimiter_of(entry.get("delimiter"), problems)
    encoding = encoding_of(entry.get("encoding"), problems)
    faults += [f"Reader: {fault}" for fault in problems]
    read = Reader(written=written or Written(), delimiter=delimiter, encoding=encoding)
    return read, document


def csv_output(columns: Mapping[str, ColumnKind], reader: Reader, missing: Mapping[str, str]) -> CsvOutput:
    """Return how samples of these columns are written as CSV: numbers as declared, for their types know no commas.

    Args:
        columns: their kinds.
        reader: the form of the file.
        missing: what a missing cell of each is written as; empty where that is a label.
    """
    dress: dict[str, Dress] = {}
    for name, kind in columns.items():
        if isinstance(kind, Integer | Continuous) and kind.written is not None:
            dress[name] = kind.as_text
    labels = {name: kind.labels for name, kind in columns.items() if isinstance(kind, LevelKind)}
    marks = {name: mark for name, mark in missing.items() if mark and mark not in labels.get(name, ())}
    return CsvOutput(form=reader.csv, dress=dress, missing=marks)
