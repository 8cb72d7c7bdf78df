"""Parquet files, pyarrow tables, and Arrow IPC in files and streams; layouts that point out of their buffers.

Storage types as text, from a closed list: a release names them, and a stranger's release is not trusted.

Arrow's readers take offsets and indices as they stand in a file. What a cell holds is not looked at: a text that is no
UTF-8 or a date that is none stands in one record, and stops no other.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import IO, TYPE_CHECKING, ClassVar, final

import pyarrow as pa
import pyarrow.types as types

from sfumato._lazy import later
from sfumato.columns.facts import shown
from sfumato.errors import ReleaseError
from sfumato.io.chunks import Chunk, Source, attempt, of_schema, table_chunks
from sfumato.io.stored import FileSource, StoredFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq
else:  # it brings ssl
    pq = later("pyarrow.parquet")

_BUFFER_BYTES = 1 << 20
_TEXT = (pa.string(), pa.large_string())
_MAGIC = b"ARROW1"  # a file begins with it, a stream does not


def sound_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on batches whose offsets, lengths and indices are those of their buffers.

    Raises:
        pa.ArrowInvalid: others are not; the message may show cells.
    """
    for batch in batches:
        for column in batch.columns:
            _check(column)
        yield batch


def _check(array: pa.Array) -> None:
    array.validate()
    if isinstance(array, pa.ExtensionArray):
        _check(array.storage)
    elif isinstance(array, pa.DictionaryArray):
        places = pa.nulls(len(array.dictionary))
        pa.DictionaryArray.from_arrays(array.indices, places, safe=False).validate(full=True)
        _check(array.dictionary)
    elif not types.is_primitive(array.type):
        kind = _plain(array.type)
        (array if kind is None else array.view(kind)).validate(full=True)


@lru_cache(maxsize=1024)
def _plain(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the same buffers in which any bytes are a value; None where Arrow cannot view it so."""
    for is_kind, plain in _LEAVES:
        if is_kind(kind):
            return plain
    if types.is_decimal(kind):
        return pa.binary(kind.bit_width // 8)
    for is_list, make in _LISTS:
        if is_list(kind):
            value = _plain(kind.value_type)
            return None if value is None else make(kind, kind.value_field.with_type(value))
    if types.is_struct(kind):
        fields = [(field, _plain(field.type)) for field in kind]
        if all(plain is not None for _, plain in fields):
            return pa.struct([field.with_type(plain) for field, plain in fields if plain is not None])
    nested = types.is_nested(kind) or types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType)
    return None if nested else kind


_LEAVES: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (types.is_string, pa.binary()),
    (types.is_large_string, pa.large_binary()),
    (types.is_string_view, pa.binary_view()),
    (types.is_date32, pa.int32()),
    (types.is_time32, pa.int32()),
    (types.is_date64, pa.int64()),
    (types.is_time64, pa.int64()),
)
_LISTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, pa.Field], pa.DataType]], ...] = (
    (types.is_list, lambda _, field: pa.list_(field)),
    (types.is_large_list, lambda _, field: pa.large_list(field)),
    (types.is_fixed_size_list, lambda kind, field: pa.list_(field, kind.list_size)),
)


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
        text = [name for name in columns if self.dictionaries and self.storage[name] in _TEXT]
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
    return ParquetSource(**of_schema(schema, file.name), container="parquet", chunk_rows=chunk_rows, file=file)


def _open(raw: IO[bytes], text: Sequence[str] = ()) -> pq.ParquetFile:
    return pq.ParquetFile(raw, read_dictionary=list(text), pre_buffer=False, buffer_size=_BUFFER_BYTES)


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


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class IpcSource(FileSource):
    """A file of Arrow record batches, one of which has to fit into memory."""

    counts_entries: ClassVar[bool] = True

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        places = sorted(self.names.index(name) for name in columns)
        with self.file.reading() as raw:
            yield from table_chunks(sound_batches(_batches(raw, places)), columns, self.chunk_rows)


def open_ipc(file: StoredFile, *, chunk_rows: int) -> IpcSource:
    """Read the schema of a file or stream of record batches.

    Raises:
        DataError: it is none or is damaged, or two columns have one name.
    """
    message = f"Expected {file.name} to be an Arrow IPC file or stream (Feather version 2), got another or damaged one."
    schema = attempt(lambda: _read_schema(file), message)
    return IpcSource(**of_schema(schema, file.name), container="parquet", chunk_rows=chunk_rows, file=file)


def read_batches(path: str, places: list[int]) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a file of this machine, an IPC file or IPC streams one after the other.

    Args:
        path: of the file.
        places: of the columns to read, the same in all streams, in order.
    """
    with pa.OSFile(path) as raw:
        is_file = raw.read(len(_MAGIC)) == _MAGIC
        raw.seek(0)
        while raw.tell() < raw.size():
            yield from _batches(raw, places)
            if is_file:
                return


def _read_schema(file: StoredFile) -> pa.Schema:
    with file.reading() as raw, _reader(raw, None) as reader:
        return reader.schema


def _batches(raw: IO[bytes], places: list[int]) -> Iterator[pa.RecordBatch]:
    with _reader(raw, places) as reader:
        if isinstance(reader, pa.RecordBatchFileReader):
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            yield from reader


def _reader(raw: IO[bytes], places: list[int] | None) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    options = pa.ipc.IpcReadOptions(included_fields=places)
    place = raw.tell()
    start = raw.read(len(_MAGIC))
    raw.seek(place)
    return (pa.ipc.open_file if start == _MAGIC else pa.ipc.open_stream)(raw, options=options)
