"""CSV files as text: nothing is inferred from the cells, so no cell can change a type; and how tables are written.

They are written by Arrow's kernels alone: no Python object is made for a cell.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from sfumato.columns.cells import is_text
from sfumato.errors import ConfigError, DataError
from sfumato.io.chunks import Chunk, Note, Source, attempt, check_names, guarded, table_chunks
from sfumato.io.csv_form import DELIMITER_OF_SUFFIX, CsvForm, CsvOutput
from sfumato.io.csv_record_ends import LONGEST, OddRecords, record_stream
from sfumato.io.stored import BlockStream, FileSource, StoredFile, format_suffix

if TYPE_CHECKING:
    from typing_extensions import Buffer


_DELIMITERS = (",", ";", "\t", "|")
_BLOCK_BYTES = LONGEST  # the longest record that the parser reads wherever it begins
_HEADER_BYTES = 4 << 20
_MOST_COLUMNS = 100_000
_READ_BYTES = 1 << 20
_ENCODINGS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
WITHOUT_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16_LE, "utf-32": codecs.BOM_UTF32_LE}


_PREFACE = re.compile(r'[\r\n]*"?sep=(.)"?(?:\r\n|\r|\n|$)')  # a line before the header, which Excel reads and writes
_PLAIN = CsvForm()
_ROWS = 65_536
_FORMULA = r"^\s*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^[\t\r\n]"  # the wide forms too
_NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CsvSource(FileSource):
    """A CSV file with a header line.

    Empty lines are skipped, and so are records of another length than the header, but for empty cells at their end: in
    silence, since to complain would tell of a record; `skipped` names them to the holder. Bytes that are no UTF-8 are
    read as Windows-1252; what is no text in a file that begins with the mark of UTF-16 or UTF-32 becomes the
    replacement character.

    Args:
        delimiter: what parts the cells, one character.
        expected_delimiter: the one of the file's suffix.
        header_bytes: length of the header in UTF-8, without its line end.
        has_body: whether anything follows the header; pyarrow refuses an empty stream.
        form: what was declared of it.
    """

    delimiter: str
    expected_delimiter: str
    header_bytes: int
    has_body: bool
    form: CsvForm = _PLAIN

    def read_as(self, form: CsvForm) -> Source:
        """Return the source in a declared form."""
        return self if form == self.form else open_csv(self.file, chunk_rows=self.chunk_rows, form=form)

    def found_form(self) -> CsvForm:
        """Return the delimiter and the encoding where they are not those of the suffix and UTF-8. Not private."""
        return CsvForm(
            delimiter=None if self.delimiter == self.expected_delimiter else self.delimiter,
            encoding=self.form.encoding or _found_encoding(self.file),
        )

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the records of another number of cells than the header, read where more are empty. Not private."""
        if what == "beside":
            return
        odd = OddRecords(self.delimiter, self.names, counts=True)
        for _ in guarded(itertools.chain(self._tables(self.names[:1], odd), [pa.table({})]), self.unreadable):
            yield from (f"record {number}: {why}" for number, why, read in odd.notes if read == (what == "shortened"))
            odd.notes.clear()

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        tables = self._tables(columns, OddRecords(self.delimiter, self.names))
        yield from table_chunks(tables, columns, self.chunk_rows)

    def _tables(self, columns: Sequence[str], odd: OddRecords) -> Iterator[pa.Table]:
        if not self.has_body:
            return
        with self.file.reading() as raw, open_utf8(raw, self.form.encoding) as text:
            text.read(self.header_bytes)
            stream = io.BufferedReader(record_stream(text, self.delimiter, len(self.names)), _READ_BYTES)
            reader = pa_csv.open_csv(
                stream,
                # of one thread alone the parser says which record it cannot read
                read_options=pa_csv.ReadOptions(
                    column_names=list(self.names), block_size=_BLOCK_BYTES, use_threads=False
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=odd.note
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()),
                    include_columns=list(columns),
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
            yield from odd.placed(reader, columns)


def open_csv(file: StoredFile, *, chunk_rows: int, form: CsvForm = _PLAIN) -> CsvSource:
    """Read the header of a CSV file; its byte order mark, if any, tells the encoding.

    Args:
        file: the file.
        chunk_rows: the most rows of one chunk.
        form: its encoding and delimiter, if they are declared.

    Raises:
        DataError: the file is empty, or its header is no text or leaves a quote open, or a column has no name
            or the name of another.
    """
    encoding = form.encoding or "UTF-8"
    remedy = "Save it so" if form.encoding is None else "Correct the encoding in the schema's reader"
    message = f"Expected {file.name} to be a CSV file in {encoding}, got something else. {remedy}."
    header, has_body = attempt(lambda: _read_header(file, form.encoding), message)
    text = header.decode("utf-8")
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]", text):
        raise DataError(message)
    if text.count('"') % 2:
        raise DataError(f"Expected the quotes of the header line of {file.name} to be closed. Correct that line.")
    if not text.strip():
        raise DataError(f"Expected a header line in {file.name}, got an empty file.")
    preface = _PREFACE.match(text)
    text = text[preface.end() :] if preface else text
    usual = DELIMITER_OF_SUFFIX.get(format_suffix(file.name))
    # the one that occurs most often outside quotes; a comma if there is none
    commonest = max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", text).count)
    delimiter = form.delimiter or (preface and preface[1]) or usual or commonest
    if text.count(delimiter) >= _MOST_COLUMNS:
        raise DataError(f"Expected at most {_MOST_COLUMNS:,} columns in {file.name}, got more in its header line.")
    record = io.StringIO(text.strip("\r\n"), newline="")
    names = named(attempt(lambda: next(csv.reader(record, delimiter=delimiter, strict=True)), message))
    check_names(names, file.name)
    return CsvSource(
        label=file.name,
        container="csv",
        storage=dict.fromkeys(names, pa.string()),
        chunk_rows=chunk_rows,
        missing_as_text=True,
        file=file,
        delimiter=delimiter,
        expected_delimiter=usual or ",",
        header_bytes=len(header),
        has_body=has_body,
        form=form,
    )


def open_utf8(file: IO[bytes], encoding: str | None = None) -> io.BufferedReader:
    """Return a text file as a stream of valid UTF-8, after its byte order mark; closing it closes the file.

    Args:
        file: the file.
        encoding: of a file without such a mark; UTF-8 if it is not said.
    """
    start = file.read(4)
    marks = ((mark, name) for mark, name in _ENCODINGS if start.startswith(mark))
    mark, codec = next(marks, (b"", WITHOUT_MARK.get(encoding or "utf-8", encoding or "utf-8")))
    return io.BufferedReader(BlockStream(file, _utf8_blocks(file, codec, start.removeprefix(mark))), _READ_BYTES)


def _utf8_blocks(file: IO[bytes], encoding: str, start: bytes) -> Iterator[bytes]:
    """Yield a file's text after its start as valid UTF-8, whatever its bytes.

    pyarrow decodes the records it skips, and prints what it cannot decode: so nothing invalid may
    reach it.
    """
    decoder = codecs.getincrementaldecoder(encoding)(_WINDOWS_1252 if encoding == "utf-8" else "replace")
    block = start or file.read(_READ_BYTES)
    while block:
        yield decoder.decode(block).encode("utf-8")
        block = file.read(_READ_BYTES)
    yield decoder.decode(b"", final=True).encode("utf-8")


def _found_encoding(file: StoredFile) -> str | None:
    """Return the encoding that a byte order mark tells, or Windows-1252 where bytes are no UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with file.reading() as raw:
        block = raw.read(_READ_BYTES)
        for mark, name in _ENCODINGS:
            if block.startswith(mark):
                return "utf-8-sig" if name == "utf-8" else name[: len("utf-16")]
        try:
            while block:
                decoder.decode(block)
                block = raw.read(_READ_BYTES)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return None


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Read the bytes that are no UTF-8 as Windows-1252, the commonest other encoding."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return wrong.decode("cp1252", errors="replace"), error.end


_WINDOWS_1252 = "sfumato.windows-1252"
codecs.register_error(_WINDOWS_1252, _as_windows_1252)


def _read_header(file: StoredFile, encoding: str | None) -> tuple[bytes, bool]:
    """Return the bytes up to the first line end outside quotes, and whether there are more."""
    text = b""
    with file.reading() as raw, open_utf8(raw, encoding) as stream:
        while len(text) < _HEADER_BYTES:
            block = stream.read(1 << 16)
            text += block
            end = _record_end(text)
            if end is not None and _PREFACE.match(text[:end].decode("utf-8", "replace")):
                end = _record_end(text, end)
            if end is not None:
                return text[:end], True
            if not block:
                return text, False
    raise DataError(f"Expected {file.name} to begin with a header line, got no line end. Check its quotes.")


def _record_end(text: bytes, start: int = 0) -> int | None:
    """Position of the first line end outside quotes that follows something after the start, if there is one."""
    quoted = False
    for match in re.compile(rb'["\r\n]').finditer(text, start):
        if match.group() == b'"':
            quoted = not quoted
        elif not quoted and text[start : match.start()].strip(b"\r\n"):
            return match.start()
    return None


def named(names: Sequence[str]) -> list[str]:
    """Return the names of a header; a column without one, such as the index that pandas writes, is named by its place.

    Example:
        >>> named(["", "age", "sex"])
        ['column_1', 'age', 'sex']
    """
    return [name if name.strip() else f"column_{place}" for place, name in enumerate(names, start=1)]


def spreadsheet_safe(table: pa.Table, numbers: Collection[str] = ()) -> pa.Table:
    """Return a table whose texts and column names no spreadsheet takes for a formula: an apostrophe comes before.

    A spreadsheet computes a cell that begins with =, +, -, @ or a control character. What reads as a number is none.

    Args:
        table: any.
        numbers: columns that hold numbers, though as text (`-1.234,50`).
    """
    names = _harmless(pa.array(table.column_names, pa.large_string())).to_pylist()
    cells = zip(table.column_names, table.columns, strict=True)
    columns = [column if name in numbers else _without_formulas(column) for name, column in cells]
    return pa.table(columns, names=names)


def _without_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return _harmless(column.cast(pa.large_string())) if is_text(column.type) else column


def _harmless(text: Any) -> Any:  # noqa: ANN401 - an array, whole or in chunks
    formula = pc.and_not(pc.match_substring_regex(text, _FORMULA), pc.match_substring_regex(text, _NUMBER))
    return pc.if_else(formula, pc.binary_join_element_wise(_large("'"), text, _large("")), text)


def csv_header(names: Sequence[str], form: CsvForm = _PLAIN) -> Buffer:
    """Return the header line in UTF-8, or in a declared form after its byte order mark.

    Raises:
        ConfigError: the encoding cannot write it.
    """
    delimiter = form.delimiter or ","
    line = _lines([_quoted(pa.array([name]), delimiter) for name in names], delimiter)
    mark = MARKS.get(form.encoding or "", b"")
    return mark + bytes(_encoded(line, form)) if mark else _encoded(line, form)


def csv_body(table: pa.Table, form: CsvForm = _PLAIN) -> Iterator[Buffer]:
    """Yield the rows of a table as lines, in UTF-8 or in a declared form; a null or NaN is an empty cell.

    Raises:
        ConfigError: a column holds lists, images or other cells that are not one value, or the encoding lacks a letter.
    """
    delimiter = form.delimiter or ","
    for batch in table.to_batches(_ROWS):
        cells = zip(batch.schema.names, batch.columns, strict=True)
        yield _encoded(_lines([_texts(name, column, delimiter) for name, column in cells], delimiter), form)


def as_in_file(table: pa.Table, output: CsvOutput, *, spreadsheet: bool) -> pa.Table:
    """Return a table whose cells are as a CSV file has them: some columns as text, formulas made harmless if asked."""
    table = output.dressed(table)
    return spreadsheet_safe(table, output.dress) if spreadsheet else table


def _encoded(lines: memoryview, form: CsvForm) -> Buffer:
    encoding = form.encoding or "utf-8"
    encoding = WITHOUT_MARK.get(encoding, encoding)
    if encoding == "utf-8":
        return lines
    try:
        return bytes(lines).decode("utf-8").encode(encoding)
    except UnicodeEncodeError:
        pass
    raise ConfigError(
        f"Expected text that the declared encoding {encoding} can write, got letters that it lacks. Write .parquet, or "
        "declare `encoding: utf-8` in the schema's reader and fit again."
    )


def _texts(name: str, column: pa.Array, delimiter: str) -> pa.Array:
    """A column as text, quoted where needed, with nulls left."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        rule = f"Expected plain columns for a CSV file, got {kind} for column {name!r}"
        raise ConfigError(f"{rule}. Write .parquet, .npz for images, or .dat for sets.")
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
    text = column.cast(pa.large_string())
    return _quoted(text, delimiter) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else text


def _quoted(text: pa.Array, delimiter: str) -> pa.Array:
    """Quote the cells that hold a delimiter, a quote or a line end."""
    text = text.cast(pa.large_string())
    special = pc.match_substring_regex(text, rf'["\r\n\x{{{ord(delimiter):x}}}]')
    if not pc.any(special).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    quoted = pc.binary_join_element_wise(_large('"'), doubled, _large('"'), _large(""))
    return pc.if_else(special, quoted, text)


def _lines(columns: list[pa.Array], delimiter: str) -> memoryview:
    """Join cells to lines; the data buffer of the joined array is the text of all of them."""
    if len(columns) == 1:  # an empty line is no record to most readers
        only = pc.fill_null(columns[0], "")
        columns = [pc.if_else(pc.equal(only, ""), '""', only)]
    options: dict[str, Any] = {"null_handling": "replace", "null_replacement": ""}
    lines = pc.binary_join_element_wise(*columns, _large(delimiter), **options)
    lines = pc.binary_join_element_wise(lines, _large("\n"), _large(""))
    if not len(lines):
        return memoryview(b"")
    _, offsets, text = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)
    return memoryview(text)[ends[lines.offset] : ends[lines.offset + len(lines)]]


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
