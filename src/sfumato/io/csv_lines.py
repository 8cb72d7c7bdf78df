"""Tables as CSV text, by Arrow's kernels alone: no Python object is made for a cell."""

# pyarrow makes these kernels at import, where no type checker sees them
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.cells import is_text
from sfumato.errors import ConfigError
from sfumato.io.csv import MARKS, WITHOUT_MARK
from sfumato.io.csv_form import CsvForm, CsvOutput

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PLAIN = CsvForm()
_ROWS = 65_536
_FORMULA = r"^\s*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^[\t\r\n]"  # the wide forms too
_NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$"


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
