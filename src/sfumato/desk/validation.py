"""The changes that a schema makes to records: for the data holder's own screen.

This is the one place, beside a schema draft, that counts cells and shows their values.

For the data holder's own screen: it counts records.

Elementwise, as coding is: whether a cell is outside depends on that cell and on public facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import is_text, plain, read_text, total
from sfumato.columns.kind import Fault, TabularKind
from sfumato.columns.kinds import Continuous
from sfumato.columns.open import Open
from sfumato.io.chunks import Column, Note, Source
from sfumato.records.long_tables import as_records
from sfumato.records.table_sources import TableSources
from sfumato.records.units import NOBODY, RowKeys, UnitNumbers
from sfumato.schema.database import Branch
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import weight_kind
from sfumato.schema.unit import Unit

INSIDE, CLAMPED, NOWHERE = 0, 1, 2
"""Marks of `outside_marks`."""
Problem: TypeAlias = (
    Literal["absent", "storage", "undeclared", "varies", "negative", "nobody"]
    | Literal["skipped", "shortened", "no_records", "nothing_declared"]
    | Literal["no_key", "repeated", "orphans", "no_rows", "too_many"]
    | Fault
)

_MOST_EXAMPLES = 5
_LONGEST_EXAMPLE = 40


def outside_marks(kind: TabularKind, column: pa.Array | pa.ChunkedArray, missing: Sequence[str]) -> np.ndarray:
    """Return per cell INSIDE, CLAMPED (a number or date beyond the bounds) or NOWHERE, int8 of shape (n,).

    Inside are a missing cell of a nullable column, and what goes to a declared `other`.

    Privacy: none (pure function).
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    nowhere = partial(np.full, fill_value=NOWHERE, dtype=np.int8)
    marks = [total(lambda part: _marks(kind, part, missing), chunk, nowhere) for chunk in chunks]
    return np.concatenate([np.zeros(0, dtype=np.int8), *marks])


def _marks(kind: TabularKind, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    marks = np.full(len(cells), INSIDE, dtype=np.int8)
    if not kind.goes_to_other:
        for fault, mask in kind.faults(cells, missing).items():
            if not (fault == "missing" and kind.nullable):
                marks[mask] = CLAMPED if fault == "clamped" else NOWHERE
    return marks


def key_problems(source: TableSources, schema: Schema) -> Iterator[Finding]:
    """Yield what is wrong with the keys of a database, level by level.

    Memory: a number for each key and each row.

    Raises:
        DataError: a table cannot be read.
    """
    levels = _Levels(schema, source)
    of_units = levels.units(source.database.units, source.key)
    of_branches = (levels.branch(branch) for branch in source.database.branches)
    yield from (finding for findings in (of_units, *of_branches) for finding in findings if finding.count)


class _Levels:
    """The rows of each table that others name, as they are read from above down."""

    def __init__(self, schema: Schema, source: TableSources) -> None:
        self._schema, self._tables, self._branches = schema, source.tables, source.database.branches
        self._keys, self._owners = dict[str, RowKeys](), dict[str, np.ndarray]()
        self._units = UnitNumbers(())

    def units(self, name: str, column: str) -> Iterator[Finding]:
        """Read the table of units."""
        table = self._tables[name]
        self._units = UnitNumbers((*self._schema.missing_in(table, column), ""), exact=self._schema.is_exact(column))
        parts = [self._units.numbers(chunk.columns[column]) for chunk in table.chunks([column])]
        numbers, each = _whole(parts), np.arange(len(self._units))
        self._keys[name], self._owners[name] = RowKeys(self._units, each, each, self._units), each
        place = f"{name}.{column}"
        yield Finding(place, "no_key", "left out", int((numbers == NOBODY).sum()))
        becomes = "one unit, of the row that a hash of its contents chooses"
        yield Finding(place, "repeated", becomes, _repeated(numbers[numbers != NOBODY]))

    def branch(self, branch: Branch) -> Iterator[Finding]:
        """Read a table of rows."""
        table, keys = self._tables[branch.name], self._keys[branch.of]
        exact = branch.key is not None and self._schema.is_exact(branch.key)
        tokens = () if branch.key is None else self._schema.missing_in(table, branch.key)
        own = UnitNumbers((*tokens, ""), exact=exact)
        parts: list[tuple[np.ndarray, ...]] = []
        for chunk in table.chunks(list(branch.identifiers)):
            none = keys.numbers.missing(chunk.columns[branch.by])
            number = none if branch.key is None else own.numbers(chunk.columns[branch.key])
            parts.append((keys.rows(chunk, branch), none, number))
        above, none, numbers = (_whole([part[i] for part in parts]) for i in range(3))
        named = above != NOBODY
        sizes = np.bincount(above[named], minlength=self._owners[branch.of].size)
        counted = self._owners[branch.of] != NOBODY
        place = f"{branch.name}.{branch.by}"
        yield Finding(place, "no_key", "left out", int(none.sum()))
        yield Finding(place, "orphans", "left out: no row above has their key", int((~named & (none == 0)).sum()))
        yield Finding(place, "no_rows", "kept: rows above of 0 rows", int((counted & (sizes == 0)).sum()))
        becomes = f"left out: beyond {branch.max_rows} rows of one row above"
        yield Finding(place, "too_many", becomes, int(np.maximum(sizes - branch.max_rows, 0).sum()))
        yield from self._own_keys(branch, own, np.where(named, numbers, NOBODY), above)

    def _own_keys(self, branch: Branch, own: UnitNumbers, numbers: np.ndarray, above: np.ndarray) -> Iterator[Finding]:
        """Note the keys by which tables below name rows."""
        below = [other for other in self._branches if other.of == branch.name]
        if branch.key is None or not below:
            return
        owners = np.append(self._owners[branch.of], NOBODY)[above]
        self._owners[branch.name] = owners
        self._keys[branch.name] = RowKeys(own, numbers, owners, self._units)
        has_key = numbers != NOBODY
        pairs = numbers * len(self._units) + owners if all(other.unit for other in below) else numbers
        place = f"{branch.name}.{branch.key}"
        yield Finding(place, "no_key", "kept, without rows below", int((~has_key & (above != NOBODY)).sum()))
        yield Finding(place, "repeated", "rows below belong to one row of the key", _repeated(pairs[has_key]))


def _whole(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _repeated(numbers: np.ndarray) -> int:
    """Return how many numbers occur more than once."""
    return int((np.unique(numbers, return_counts=True)[1] > 1).sum())


@dataclass(slots=True)
class Finding:
    """Cells of one column that a fit would change, or a column that does not fit the schema.

    Attributes:
        column: the column; empty for what is true of whole records, or of the table.
        problem: `missing`: no value. `unknown`: not among the categories or items. `clamped`: outside the
            bounds, or too many items. `unparseable`: not a number, date or image. `absent`: declared, but not in the
            data. `undeclared`: in the data, but not declared; it is left out. `storage`: the column's type cannot hold
            the declared values. `nobody`: rows whose unit cell names nobody. Of linked rows, `varies`: units in whose
            rows a constant is not the same; `too_many`: units with more than `max_rows` rows. Of a database, at each
            level, `no_key`: rows without a key; `repeated`: keys that occur more than once; `orphans`: rows whose key
            no row above has; `no_rows`: rows above without rows; `too_many`: rows beyond `max_rows`. Of weights,
            `negative`: below 0. Of the table, `skipped`: records that cannot be read, such as lines with too many
            cells; `shortened`: those with cells beyond the header; `no_records`: none can be; `nothing_declared`: no
            column says what its cells may be.
        becomes: what a fit makes of such cells, or what is wrong with the column.
        count: how many cells, unknown items of sets, records, or units; 0 for a problem of the whole column or table.
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
        Findings in the order of the schema's columns, those of the table first; empty if every record was read and
        every cell is in its domain.

    Raises:
        DataError: the source cannot be read.
    """
    source = as_records(source, schema)
    findings = list(_column_findings(source, schema))
    absent = {finding.column for finding in findings if finding.problem == "absent"}
    weight = None if schema.weight is None or schema.weight.column in absent else schema.weight.column
    released = [name for name in schema.released if name not in absent]
    read = [*released, *([] if weight is None else [weight])]
    counted: dict[tuple[str, Problem], Finding] = {}
    n_records = 0
    # cells as they lie there: those of several tables each by themselves
    parts = source.parts(read) if isinstance(source, TableSources) else [(source, read)]
    for chunk in (chunk for part, own in parts if own for chunk in part.chunks(own)):
        n_records += chunk.n_rows
        if weight is not None:
            _note_weights(
                counted, weight, weight_kind(schema), chunk.columns[weight], schema.missing_in(source, weight)
            )
        for name in (name for name in released if name in chunk.columns):
            kind = schema.columns[name]
            for problem, cells in kind.problems(chunk.columns[name], schema.missing_in(source, name)):
                _note(counted, name, problem, kind.becomes(problem), cells)
    findings += _skipped_records(source, schema)
    if schema.unit is not None and schema.unit.column not in absent and not isinstance(source, TableSources):
        findings += _rows_of_nobody(source, schema, schema.unit.column)
    if read and not n_records:
        findings.append(Finding(column="", problem="no_records", becomes="a fit of nothing: it spends its budget"))
    if not schema.images and not declared_columns(schema):
        becomes = "no cell was compared with anything: what a fit discovers is not known before"
        findings.append(Finding(column="", problem="nothing_declared", becomes=becomes))
    if schema.unit is not None and schema.unit.linked and not absent & {schema.unit.column, *schema.unit.constant}:
        if isinstance(source, TableSources):
            findings += key_problems(source, schema)
        else:
            findings += _linked_findings(source, schema, schema.unit)
    order = {name: place for place, name in enumerate(schema.columns)}
    findings += counted.values()
    return sorted(findings, key=lambda finding: order.get(finding.column, len(order) if finding.column else -1))


def _skipped_records(source: Source, schema: Schema) -> Iterator[Finding]:
    """Yield findings of the records that cannot be read, and of those that are not read to their end."""
    images, cut = schema.images, "read without their last cells, which are empty and beyond the header"
    kinds: tuple[tuple[Finding, Note], ...] = (
        (Finding(*((images[0], "unparseable") if images else ("", "skipped")), "left out, whole records"), "skipped"),
        (Finding("", "shortened", cut), "shortened"),
        (Finding("", "shortened", "read without the cells beside them, which are under no name"), "beside"),
    )
    for finding, what in kinds:
        for text in source.notes(what):
            finding.count += 1
            if len(finding.examples) < _MOST_EXAMPLES:
                short = text if len(text) <= _LONGEST_EXAMPLE else f"...{text[3 - _LONGEST_EXAMPLE :]}"
                finding.examples.append(short)
        if finding.count:
            yield finding


def declared_columns(schema: Schema) -> list[str]:
    """Return the columns of which the schema says what their cells may be, so that cells can be compared with it."""
    return [name for name in schema.released if not isinstance(schema.columns[name], Open)]


def _rows_of_nobody(source: Source, schema: Schema, column: str) -> Iterator[Finding]:
    """Yield a finding of the rows that no unit has, if there are any."""
    numbers = UnitNumbers((*schema.missing_in(source, column), ""), exact=schema.is_exact(column))
    count = sum(int(numbers.missing(chunk.columns[column]).sum()) for chunk in source.chunks([column]))
    if count:
        becomes = "left out: it names nobody"
        if not schema.is_exact(column):
            becomes += ". Whole numbers of 2^53 or more do not, unless `exact: true` says that they were text"
        yield Finding(column=column, problem="nobody", becomes=becomes, count=count)


def _linked_findings(source: Source, schema: Schema, unit: Unit) -> Iterator[Finding]:
    """Yield findings of units: constants that vary, and more rows than count."""
    numbers = UnitNumbers((*schema.missing_in(source, unit.column), ""), exact=schema.is_exact(unit.column))
    kinds = {name: kind for name, kind in schema.of_kind(TabularKind).items() if name in unit.constant}
    sizes, lows = np.zeros(0, dtype=np.int64), {name: np.zeros(0) for name in kinds}
    highs = dict(lows)
    for chunk in source.chunks([unit.column, *kinds]):
        whose = numbers.numbers(chunk.columns[unit.column])
        mine = whose != NOBODY
        whose, more = whose[mine], (0, len(numbers) - sizes.size)
        sizes = np.pad(sizes, more) + np.bincount(whose, minlength=len(numbers))
        for name, kind in kinds.items():
            tokens = schema.missing_in(source, name)
            codes = np.nan_to_num(kind.code(chunk.columns[name], missing=tokens)[mine], nan=-1.0)
            lows[name] = np.pad(lows[name], more, constant_values=np.inf)
            highs[name] = np.pad(highs[name], more, constant_values=-np.inf)
            np.minimum.at(lows[name], whose, codes)
            np.maximum.at(highs[name], whose, codes)
    if crowded := int((sizes > unit.max_rows).sum()):
        yield Finding(column=unit.column, problem="too_many", becomes=f"its first {unit.max_rows} rows", count=crowded)
    for name in kinds:
        if varying := int((lows[name] < highs[name]).sum()):
            yield Finding(column=name, problem="varies", becomes="that of the unit's first row", count=varying)


def _column_findings(source: Source, schema: Schema) -> Iterator[Finding]:
    for name, kind in schema.columns.items():
        if name not in source.storage:
            if name in schema.needed:  # what only names rows, or is left out, is not
                yield Finding(column=name, problem="absent", becomes="an error: the column is needed")
            continue
        weighs = schema.weight is not None and name == schema.weight.column
        fault = (weight_kind(schema) if weighs else kind).reading_fault(source.storage[name])
        if fault:
            yield Finding(column=name, problem="storage", becomes=f"an error: Column {name!r}: {fault}")
    for name in source.undeclared(schema.columns):
        yield Finding(column=name, problem="undeclared", becomes="left out")


def _note_weights(
    counted: dict[tuple[str, Problem], Finding], name: str, kind: Continuous, cells: Column, missing: tuple[str, ...]
) -> None:
    """Note the weights that count as another: as 0, or as the bound."""
    for problem, some in kind.problems(cells, missing):
        if problem != "clamped":
            _note(counted, name, problem, "0: the row counts for nothing", some)
            continue
        below = kind.read(plain(some), missing)[0] < 0 if len(some) else np.zeros(0, dtype=bool)
        _note(counted, name, "negative", "0: the row counts for nothing", some.filter(pa.array(below)))
        _note(counted, name, "clamped", "the bound", some.filter(pa.array(~below)))


def _note(
    counted: dict[tuple[str, Problem], Finding], name: str, problem: Problem, becomes: str, cells: pa.Array
) -> None:
    if not len(cells):
        return
    finding = counted.setdefault((name, problem), Finding(column=name, problem=problem, becomes=becomes))
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
