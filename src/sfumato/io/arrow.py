"""Parquet files and pyarrow tables.

Storage types as text, from a closed list: a release names them, and a stranger's release is not trusted.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, ClassVar, final

import pyarrow as pa

from sfumato._lazy import later
from sfumato.columns.facts import shown
from sfumato.errors import ReleaseError
from sfumato.io.arrow_layout import sound_batches
from sfumato.io.chunks import Chunk, Source, attempt, check_names, table_chunks
from sfumato.io.origins import pandas_columns
from sfumato.io.stored import FileSource, StoredFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq
else:  # it brings ssl
    pq = later("pyarrow.parquet")

_BUFFER_BYTES = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ParquetSource(FileSource):
    """A Parquet file, read a buffer at a time: a row group need not fit into memory.

    Attributes:
        groups: the row groups that are read; None for all.
        dictionaries: whether text comes dictionary-encoded, as it is stored: each label is read once per row group.
    """

    counts_entries: ClassVar[bool] = True

    groups: tuple[int, ...] | None = None
    dictionaries: bool = False

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        groups = None if self.groups is None else list(self.groups)
        text = [name for name in columns if self.dictionaries and _is_text(self.storage[name])]
        with self.file.reading() as raw, _open(raw, text) as file:
            batches = file.iter_batches(batch_size=self.chunk_rows, columns=list(columns), row_groups=groups)
            yield from table_chunks(sound_batches(batches), columns, self.chunk_rows)

    def with_dictionaries(self) -> Source:
        """Return the source whose text comes dictionary-encoded."""
        return replace(self, dictionaries=True)

    def pieces(self) -> Sequence[Source]:
        """Return a source for every row group, all of one file."""
        if self.groups is not None:
            return (self,)
        groups = attempt(lambda: _metadata(self.file)[0], self.unreadable)
        return tuple(replace(self, groups=(group,)) for group in range(groups)) if groups > 1 else (self,)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ArrowSource(Source):
    """A pyarrow table in memory."""

    counts_entries: ClassVar[bool] = True

    table: pa.Table

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        table = self.table.select(columns)
        yield from table_chunks(table.to_batches(self.chunk_rows), columns, self.chunk_rows)


def open_parquet(file: StoredFile, *, chunk_rows: int) -> ParquetSource:
    """Read the footer of a Parquet file.

    Raises:
        DataError: the file is no Parquet file or is damaged, or two columns have one name.
    """
    message = f"Expected {file.name} to be a Parquet file, got another or a damaged one."
    schema = attempt(lambda: _metadata(file)[1], message)
    check_names(schema.names, file.name)
    return ParquetSource(
        label=file.name,
        container="parquet",
        storage=dict(zip(schema.names, schema.types, strict=True)),
        chunk_rows=chunk_rows,
        inferred=pandas_columns(schema),
        file=file,
    )


def open_arrow(table: pa.Table, *, chunk_rows: int) -> ArrowSource:
    """Wrap a pyarrow table; its cells are not copied."""
    label = "the pyarrow table"
    check_names(table.column_names, label)
    storage = dict(zip(table.schema.names, table.schema.types, strict=True))
    return ArrowSource(
        label=label,
        container="pyarrow",
        storage=storage,
        chunk_rows=chunk_rows,
        inferred=pandas_columns(table.schema),
        table=table,
    )


def _open(raw: IO[bytes], text: Sequence[str] = ()) -> pq.ParquetFile:
    return pq.ParquetFile(raw, read_dictionary=list(text), pre_buffer=False, buffer_size=_BUFFER_BYTES)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _metadata(file: StoredFile) -> tuple[int, pa.Schema]:
    """Return the number of row groups, and the schema."""
    with file.reading() as raw, _open(raw) as parquet:
        return parquet.num_row_groups, parquet.schema_arrow


_PLAIN: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
        pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(),
        pa.binary(), pa.large_binary(), pa.binary_view(), pa.date32(), pa.date64(), pa.time32("s"),
        pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    )
}  # fmt: skip
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=([A-Za-z0-9_+:/\-]{1,64}))?\]")
_DECIMAL = re.compile(r"decimal(32|64|128|256)\((\d{1,2}), (-?\d{1,2})\)")
_FIXED_BINARY = re.compile(r"fixed_size_binary\[(\d{1,6})\]")
_TENSOR = re.compile(r"tensor\[(\w+)\]\((\d{1,6}(?:,\d{1,6}){0,3})\)")
_DICTIONARY = re.compile(r"dictionary\[(\w+)\]\((.*)\)\[(ordered|unordered)\]", re.DOTALL)
_LIST = re.compile(r"(large_)?list\[(.*)\]", re.DOTALL)
_DECIMALS = {"32": pa.decimal32, "64": pa.decimal64, "128": pa.decimal128, "256": pa.decimal256}


def write_type(kind: pa.DataType) -> str:
    """Return the text of a storage type.

    Raises:
        ReleaseError: a release cannot give back columns of this type.
    """
    if isinstance(kind, pa.DictionaryType):
        order = "ordered" if kind.ordered else "unordered"
        text = f"dictionary[{kind.index_type}]({write_type(kind.value_type)})[{order}]"
    elif isinstance(kind, pa.FixedShapeTensorType):
        text = f"tensor[{kind.value_type}]({','.join(map(str, kind.shape))})"
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        text = f"{'large_' if pa.types.is_large_list(kind) else ''}list[{write_type(kind.value_type)}]"
    else:
        text = str(kind)
    read_type(text)
    return text


def read_type(text: str) -> pa.DataType:
    """Return the storage type of a text that `write_type` gave.

    Raises:
        ReleaseError: not such a text.
    """
    kind = None
    with contextlib.suppress(ValueError, TypeError, RecursionError):  # such as decimal128(99, 0)
        kind = _parsed(text)
    if kind is None:
        raise ReleaseError(f"Expected a storage type that a release can give back, got {shown(text)}.")
    return kind


def _parsed(text: str) -> pa.DataType | None:
    if text in _PLAIN:
        return _PLAIN[text]
    if match := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(match[1], match[2])
    if match := _FIXED_BINARY.fullmatch(text):
        return pa.binary(int(match[1]))
    if match := _DECIMAL.fullmatch(text):
        return _DECIMALS[match[1]](int(match[2]), int(match[3]))
    if (match := _DICTIONARY.fullmatch(text)) and match[1] in _PLAIN:
        return pa.dictionary(_PLAIN[match[1]], read_type(match[2]), ordered=match[3] == "ordered")
    if (match := _LIST.fullmatch(text)) and "list[" not in match[2]:
        return (pa.large_list if match[1] else pa.list_)(read_type(match[2]))
    if (match := _TENSOR.fullmatch(text)) and match[1] in _PLAIN:
        return pa.fixed_shape_tensor(_PLAIN[match[1]], [int(size) for size in match[2].split(",")])
    return None
