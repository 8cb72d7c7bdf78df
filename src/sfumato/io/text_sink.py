"""Tables as CSV text, by Arrow's kernels alone: no Python object is made for a cell."""

# pyarrow makes these kernels at import, where no type checker sees them
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import ConfigError

_ROWS = 65_536


def csv_header(names: Sequence[str]) -> memoryview:
    """The header line, in UTF-8."""
    return _lines([_quoted(pa.array([name])) for name in names])


def csv_body(table: pa.Table) -> Iterator[memoryview]:
    """The rows of a table as lines in UTF-8; a null or NaN is an empty cell.

    Raises:
        ConfigError: a column holds lists, images or other cells that are not one value.
    """
    for batch in table.to_batches(_ROWS):
        cells = zip(batch.schema.names, batch.columns, strict=True)
        yield _lines([_texts(name, column) for name, column in cells])


def _texts(name: str, column: pa.Array) -> pa.Array:
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
    return _quoted(text) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else text


def _quoted(text: pa.Array) -> pa.Array:
    """Quote the cells that hold a comma, a quote or a line end."""
    text = text.cast(pa.large_string())
    special = pc.match_substring_regex(text, '[",\r\n]')
    if not pc.any(special).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    quoted = pc.binary_join_element_wise(_large('"'), doubled, _large('"'), _large(""))
    return pc.if_else(special, quoted, text)


def _lines(columns: list[pa.Array]) -> memoryview:
    """Join cells to lines; the data buffer of the joined array is the text of all of them."""
    if len(columns) == 1:  # an empty line is no record to most readers
        only = pc.fill_null(columns[0], "")
        columns = [pc.if_else(pc.equal(only, ""), '""', only)]
    options: dict[str, Any] = {"null_handling": "replace", "null_replacement": ""}
    lines = pc.binary_join_element_wise(*columns, _large(","), **options)
    lines = pc.binary_join_element_wise(lines, _large("\n"), _large(""))
    if not len(lines):
        return memoryview(b"")
    _, offsets, text = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)
    return memoryview(text)[ends[lines.offset] : ends[lines.offset + len(lines)]]


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
