"""What a schema would change in the records: for the data holder's own screen.

This is the one place, beside a schema draft, that counts cells and shows their values.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import is_text, plain, read_text, valid_mask
from sfumato.columns.coding import check_storage
from sfumato.columns.kinds import (
    ColumnKind,
    Identifier,
    Image,
    LevelKind,
    NumericKind,
    level_labels,
)
from sfumato.columns.levels import UNKNOWN, missing_code, unknown_code
from sfumato.columns.set_codes import code_sets, find_items, list_parts
from sfumato.columns.set_kind import ItemSet
from sfumato.errors import SchemaError
from sfumato.io.chunks import Source
from sfumato.records.long_tables import as_records
from sfumato.records.outside import fault_masks
from sfumato.schema.schema import Schema

Problem: TypeAlias = Literal["absent", "storage", "undeclared", "missing", "unknown", "clamped", "unparseable"]

_MOST_EXAMPLES = 5
_LONGEST_EXAMPLE = 40


@dataclass(slots=True, kw_only=True)
class Finding:
    """Cells of one column that a fit would change, or a column that does not fit the schema.

    Attributes:
        column: the column.
        problem: `missing`: no value. `unknown`: not among the categories or items. `clamped`: outside the
            bounds, or too many items. `unparseable`: not a number, date or image. `absent`: declared, but not in the
            data.
            `undeclared`: in the data, but not declared; it is left out. `storage`: the column's
            type cannot hold the declared values.
        becomes: what a fit makes of such cells, or what is wrong with the column.
        count: how many cells, or unknown items of sets; 0 for a problem of the whole column.
        examples: a few of their values.
    """

    column: str
    problem: Problem
    becomes: str
    count: int = 0
    examples: list[str] = field(default_factory=list)


def validate(source: Source, schema: Schema) -> list[Finding]:
    """List what a fit with this schema would change in a source, in one pass over it.

    Privacy: none. The findings hold counts and values of records, for the data holder's own eyes.

    Returns:
        Findings in the order of the schema's columns; empty if every cell lies in its domain.

    Raises:
        DataError: the source cannot be read.
    """
    source = as_records(source, schema)
    findings = list(_column_findings(source, schema))
    absent = {finding.column for finding in findings if finding.problem == "absent"}
    read = [name for name, kind in schema.columns.items() if name not in absent and not isinstance(kind, Identifier)]
    counted: dict[tuple[str, Problem], Finding] = {}
    for chunk in source.chunks(read) if read else ():
        for name in read:
            kind = schema.columns[name]
            for problem, cells in _problems(kind, chunk.columns[name], schema.missing):
                _note(counted, name, problem, kind, cells)
    findings += _skipped_records(source, schema)
    order = {name: place for place, name in enumerate(schema.columns)}
    findings += counted.values()
    return sorted(findings, key=lambda finding: order.get(finding.column, len(order)))


def _skipped_records(source: Source, schema: Schema) -> Iterator[Finding]:
    """Yield a finding of the images that cannot be read, if there are any."""
    images = [name for name, kind in schema.columns.items() if isinstance(kind, Image)]
    skipped = list(source.skipped())
    if images and skipped:
        examples = [text if len(text) <= _LONGEST_EXAMPLE else f"...{text[3 - _LONGEST_EXAMPLE :]}" for text in skipped]
        becomes = "left out, whole records"
        yield Finding(
            column=images[0],
            problem="unparseable",
            becomes=becomes,
            count=len(skipped),
            examples=examples[:_MOST_EXAMPLES],
        )


def _column_findings(source: Source, schema: Schema) -> Iterator[Finding]:
    for name, kind in schema.columns.items():
        if name not in source.storage:
            yield Finding(column=name, problem="absent", becomes="an error: the column is needed")
            continue
        fault = _storage_fault(name, kind, source.storage[name])
        if fault:
            yield Finding(column=name, problem="storage", becomes=f"an error: {fault}")
    for name in source.names:
        if name not in schema.columns:
            yield Finding(column=name, problem="undeclared", becomes="left out")


def _storage_fault(name: str, kind: ColumnKind, storage: pa.DataType) -> str | None:
    is_image = isinstance(storage, pa.FixedShapeTensorType)
    if is_image != isinstance(kind, Image) and not isinstance(kind, Identifier):
        return f"kind image and image data go together, got a column of type {storage}"
    if isinstance(kind, Image) and tuple(storage.shape) != kind.shape:
        return f"expected shape {list(kind.shape)}, got {list(storage.shape)}"
    try:
        check_storage(name, kind, storage)
    except SchemaError as error:
        return str(error)
    return None


def _problems(
    kind: ColumnKind, column: pa.ChunkedArray | np.ndarray, missing: Sequence[str]
) -> Iterator[tuple[Problem, pa.Array]]:
    """Yield each problem with the cells that have it."""
    if isinstance(column, np.ndarray):
        if isinstance(kind, Image):
            yield "clamped", pa.array(column[(column < kind.lower) | (column > kind.upper)])
            if column.dtype.kind == "f":
                yield "unparseable", pa.array(column[np.isnan(column)])
        return
    for chunk in column.chunks:
        cells = plain(chunk)
        if isinstance(kind, ItemSet):
            yield from _set_problems(kind, cells, missing)
        elif isinstance(kind, LevelKind | NumericKind):
            for fault, mask in fault_masks(kind, cells, missing).items():
                yield fault, cells.filter(pa.array(mask))


def _set_problems(kind: ItemSet, cells: pa.Array, missing: Sequence[str]) -> Iterator[tuple[Problem, pa.Array]]:
    """Yield cells without a set, items outside the list, and sets that are too long."""
    _, items = list_parts(cells)
    whole = code_sets(replace(kind, max_length=kind.size), cells, missing=missing)
    yield "missing", cells.filter(pa.array(~valid_mask(cells)))
    yield "unknown", items.filter(pa.array(find_items(kind, items, missing) == UNKNOWN))
    yield "clamped", cells.filter(pa.array(whole.lengths > kind.max_length))


def _note(
    counted: dict[tuple[str, Problem], Finding],
    name: str,
    problem: Problem,
    kind: ColumnKind,
    cells: pa.Array,
) -> None:
    if not len(cells):
        return
    finding = counted.setdefault(
        (name, problem), Finding(column=name, problem=problem, becomes=_becomes(kind, problem))
    )
    finding.count += len(cells)
    if problem == "missing" or len(finding.examples) >= _MOST_EXAMPLES:
        return
    for cell in cells.slice(0, 100 * _MOST_EXAMPLES):
        example = _example(cell)
        if example not in finding.examples:
            finding.examples.append(example)
        if len(finding.examples) == _MOST_EXAMPLES:
            return


def _example(cell: pa.Scalar) -> str:
    try:
        value = cell.as_py()
    except UnicodeDecodeError:  # a text column does not promise UTF-8; shown as it is read
        if not is_text(cell.type):
            return "text that is not UTF-8"
        value = read_text(pa.array([cell.cast(pa.large_binary()).as_py()], pa.large_binary()))[0].as_py()
    except (ValueError, OverflowError, pa.ArrowException):
        value = str(cell)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 3]}..."


def _becomes(kind: ColumnKind, problem: Problem) -> str:
    if isinstance(kind, ItemSet):
        unknown = "left out" if kind.other is None else f"the item {kind.other!r}"
        return {"missing": "the empty set", "unknown": unknown}.get(problem, f"the first {kind.max_length} items")
    if problem == "clamped":
        return "the nearest bound"
    if isinstance(kind, LevelKind):
        code = missing_code(kind) if problem == "missing" else unknown_code(kind)
        labels = level_labels(kind)
        return "missing" if code == len(labels) else f"the label {labels[code]!r}"
    if isinstance(kind, Image):
        return "the lower bound"
    return "missing" if getattr(kind, "nullable", False) else "the midpoint of the bounds"
