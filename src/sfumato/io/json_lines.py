"""JSON lines (`.jsonl`, `.ndjson`): one object per line, read as text, so that no cell can change how another is read.

One record is one line; a line that cannot be read is a record of missing cells, and an empty line none. The names of
the columns are those of the schema: which keys the lines have is not looked at, for one record may bring a key. Only a
draft, which is not private, takes the keys of all lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import pyarrow as pa

from sfumato.columns.cells import valid_text
from sfumato.columns.kind import ColumnKind
from sfumato.columns.sets import ItemSet, is_set_storage
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.io.csv import open_utf8
from sfumato.io.stored import StoredFile

_LINE_BYTES = 16 << 20
_LISTS = pa.list_(pa.string())
_CONSTANTS = {"NaN": None, "Infinity": "inf", "-Infinity": "-inf"}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class JsonLinesSource(Source):
    """A file of JSON lines. A line longer than 16 MiB cannot be read.

    Attributes:
        file: where they are.
    """

    file: StoredFile

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source of the columns that the schema names; sets of items are arrays."""
        sets = {name for name, kind in columns.items() if isinstance(kind, ItemSet) and kind.id is None}
        return replace(self, storage={name: _LISTS if name in sets else pa.string() for name in columns})

    def measured(self) -> Source:
        """Return the source of all keys that a line has. Not private."""
        return attempt(self._measured, f"Cannot read {self.label}: it is damaged, or it changed while it was read.")

    def _measured(self) -> Source:
        lists: dict[str, bool] = {}
        for record in self._records():
            for key, value in record.items():
                if value is not None:
                    lists[key] = lists.get(key, True) and isinstance(value, list)
                else:
                    lists.setdefault(key, True)
        # a key that is null in every line is text too
        return replace(self, storage={name: _LISTS if only else pa.string() for name, only in lists.items() if name})

    @property
    def in_files(self) -> bool:
        """Whether other processes can read it."""
        return self.file.kept_by is None

    def size(self) -> int:
        """Bytes of the file."""
        return self.file.size

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        records: list[Mapping[str, Any]] = []
        for record in self._records():
            records.append(record)
            if len(records) == self.chunk_rows:
                yield self._chunk(records, columns)
                records = []
        if records:
            yield self._chunk(records, columns)

    def _chunk(self, records: list[Mapping[str, Any]], columns: tuple[str, ...]) -> Chunk:
        cells = {}
        for name in columns:
            kind = self.storage[name]
            read = _texts if is_set_storage(kind) else _text
            cells[name] = pa.chunked_array([pa.array([read(record.get(name)) for record in records], kind)])
        return Chunk(columns=cells, n_rows=len(records))

    def _records(self) -> Iterator[Mapping[str, Any]]:
        with self.file.reading() as raw, open_utf8(raw) as stream:
            while line := stream.readline(_LINE_BYTES):
                whole = line.endswith(b"\n") or len(line) < _LINE_BYTES
                while not whole:
                    rest = stream.readline(_LINE_BYTES)
                    whole = rest.endswith(b"\n") or len(rest) < _LINE_BYTES
                    line = b"{"  # which is no object
                if line.strip():
                    yield _record(line)


def open_json_lines(file: StoredFile, *, chunk_rows: int) -> JsonLinesSource:
    """Open a file of JSON lines; nothing in it is looked at. It has no columns before a schema names them."""
    return JsonLinesSource(label=file.name, container="csv", storage={}, chunk_rows=chunk_rows, file=file)


def _record(line: bytes) -> Mapping[str, Any]:
    """Return what a line holds, its numbers as they are written; nothing if it is no object."""
    try:
        found = json.loads(line, parse_int=str, parse_float=str, parse_constant=_CONSTANTS.__getitem__)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    """Return a cell as text: what a CSV file would hold."""
    if value is None:
        return None
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return valid_text(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return None


def _texts(value: object) -> list[str | None] | None:
    return [_text(item) for item in value] if isinstance(value, list) else None
