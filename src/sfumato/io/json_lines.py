"""JSON lines (`.jsonl`, `.ndjson`): one object per line, read as text, so that no cell can change how another is read.

One record is one line. A line that is empty is none, nor is one that cannot be read: no object, more than 4 MiB or a
million values, or values more than 100 deep; which it is follows from that line alone. The names of the columns are
those of the schema: which keys the lines have is not looked at, for one record may bring a key. Only a draft, which is
not private, takes the keys of all lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import pyarrow as pa

from sfumato.columns.cells import valid_text
from sfumato.columns.kind import ColumnKind
from sfumato.columns.sets import ItemSet, is_set_storage
from sfumato.io.chunks import Chunk, Note, Source, attempt, batched, guarded, table_chunks
from sfumato.io.csv import open_utf8
from sfumato.io.stored import FileSource, StoredFile, bounded_lines

_PART_BYTES = 16 << 20  # of lines that are not yet a table
_DEEPEST = 100
_MOST_VALUES = 1 << 20
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_LISTS = pa.list_(pa.string())
_CONSTANTS = {"NaN": None, "Infinity": "inf", "-Infinity": "-inf"}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class JsonLinesSource(FileSource):
    """A file of JSON lines."""

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source of the columns that the schema names; sets of items are arrays."""
        sets = {name for name, kind in columns.items() if isinstance(kind, ItemSet) and kind.is_listed}
        return replace(self, storage={name: _LISTS if name in sets else pa.string() for name in columns})

    def measured(self) -> Source:
        """Return the source of all keys that a line has. Not private."""
        return attempt(self._measured, self.unreadable)

    def _measured(self) -> Source:
        lists: dict[str, bool] = {}
        for _, record in self._objects():
            for key, value in record.items():
                if value is not None:
                    lists[key] = lists.get(key, True) and isinstance(value, list)
                else:
                    lists.setdefault(key, True)
        # a key that is null in every line is text too
        return replace(self, storage={name: _LISTS if only else pa.string() for name, only in lists.items() if name})

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the lines that are no object, too deep or too long. Not private."""
        lines = guarded(self._lines(), self.unreadable)
        return (f"line {number}" for number, line in lines if what == "skipped" and _record(line) is None)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self._tables(columns), columns, self.chunk_rows)

    def _tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        readers = [(name, _texts if is_set_storage(self.storage[name]) else _text) for name in columns]
        kinds = [self.storage[name] for name in columns]
        sized = (([read(record.get(name)) for name, read in readers], length) for length, record in self._objects())
        for rows in batched(sized, self.chunk_rows, _PART_BYTES):
            cells = [pa.array(cells, kind) for cells, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
            yield pa.table(cells, names=list(columns))

    def _objects(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the records, each after the bytes of its line."""
        for _, line in self._lines():
            record = _record(line)
            if line is not None and record is not None:
                yield len(line), record

    def _lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the lines that are not empty, after their numbers from 1; None for one that is too long."""
        with self.file.reading() as raw, open_utf8(raw) as stream:
            for number, line in enumerate(bounded_lines(stream), start=1):
                if line is None or line.strip():
                    yield number, line


def open_json_lines(file: StoredFile, *, chunk_rows: int) -> JsonLinesSource:
    """Open a file of JSON lines; nothing in it is looked at. It has no columns before a schema names them."""
    return JsonLinesSource(label=file.name, container="csv", storage={}, chunk_rows=chunk_rows, file=file)


def _record(line: bytes | None) -> Mapping[str, Any] | None:
    """Return the object that a line holds, its numbers as text as they are written; None if it cannot be read."""
    if line is None or _is_large(line):
        return None
    try:
        value = json.loads(line.decode(), parse_int=str, parse_float=str, parse_constant=_CONSTANTS.__getitem__)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _is_large(line: bytes) -> bool:
    """Whether a line has too many values, or nests too deep: how deep a reader can go depends on where it is called."""
    opened = line.count(b"[") + line.count(b"{")
    if opened + line.count(b",") > _MOST_VALUES:
        return True
    depth = deepest = 0
    for token in _TOKENS.finditer(line) if opened > _DEEPEST else ():
        depth += _STEPS.get(token[0], 0)
        deepest = max(deepest, depth)
    return deepest > _DEEPEST


def _text(value: object) -> str | None:
    """Return a cell as text: what a CSV file would hold; an object has none."""
    if value is None or isinstance(value, dict):
        return None
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return valid_text(json.dumps(value, ensure_ascii=False))


def _texts(value: object) -> list[str | None] | None:
    return [_text(item) for item in value] if isinstance(value, list) else None
