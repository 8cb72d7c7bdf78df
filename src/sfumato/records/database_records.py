"""The tables of a database as records: a unit is one, with all that any table holds of it.

Rows are found from above down, each by its own cells and those of its unit:

    a unit without a key             left out
    a key that units have twice      one unit: the row of the smaller hash of key and content
    a row that names no row above    left out, and so is what lies below it
    a row beyond `max_rows`          left out, and so is what lies below it
    a key that several rows have     the rows below belong to the first of them, by a hash of the unit

Keys are compared as text. Where a table also names the unit, a key has to be unique within that unit alone, and what
becomes of a row follows from its unit's rows whatever keys others have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.lenses.chain import plain_schema
from sfumato.records.context import Level, Levels, sequences_of
from sfumato.records.engine import Rows
from sfumato.records.linked import LinkedRecords, RecordsOfUnits
from sfumato.records.private import check_columns
from sfumato.records.sequences import RowOrder, Sequences, unit_records
from sfumato.records.table_sources import TableSources
from sfumato.records.units import NOBODY, RowKeys, UnitNumbers
from sfumato.schema.branch_schemas import BranchView, bound_of, branch_views, without_totals
from sfumato.schema.database import Branch, Crossing
from sfumato.schema.linked import end_codes, linked_tables
from sfumato.schema.schema import Schema


@final
class DatabaseData(RecordsOfUnits):
    """Records of a database: `branch` gives those of one, linked rows whose constants are their context.

    Every table is read once, when its records are first asked for. Memory: as of linked rows, of all tables, and the
    key of each row that tables below name.

    Args:
        source: the tables.
        schema: what is public about them.
        totals: whether columns that are totals of rows below are read, which a fit does not.

    Raises:
        SchemaError: as `PrivateData`.
    """

    def __init__(self, source: TableSources, schema: Schema, *, totals: bool = False) -> None:
        check_columns(source, schema)
        self.source, self.described, self.schema = source, schema, schema
        schema = schema if totals else without_totals(schema)
        assert schema.unit is not None
        assert schema.tree is not None
        self._database, self._unit = schema.tree, schema.unit
        self._kinds = schema.of_kind(TabularKind)
        self._levels, self._keys = Levels(schema), dict[str, RowKeys]()
        self._branches: dict[str, BranchRecords] = {}

    def coded(self) -> Iterator[Rows]:
        """Yield units by their places, with their coded columns, of which there may be none."""
        units = self.level(self._database.units)
        yield {self._unit.column: units.owners, **units.codes}

    def branch(self, name: str) -> BranchRecords:
        """Return the records of a branch."""
        if not self._branches:
            self._branches = {key: BranchRecords(self, view) for key, view in branch_views(self.described).items()}
        return self._branches[name]

    def read(self) -> None:
        """Read all tables: what is damaged fails before any noise is drawn."""
        self.level(self._database.names[-1])

    def level(self, name: str) -> Level:
        """Return a table, read after those before it."""
        for other in self._database.names:
            self._require(other)
            if other == name:
                break
        return self._levels[name]

    def rows(self, name: str) -> Rows:
        """Return the rows of a table with the coded columns of those above."""
        self.level(name)
        return self._levels.rows(name)

    def crossed(self, of: Crossing) -> Rows:
        """Return a column of a table's rows, and the latest or earliest of the other one's."""
        level, bound = self.level(of.branch), bound_of(self._database, of, self._kinds)
        return {of.column: level.codes[of.column], of.bound: self._levels.said(bound, of.branch)}

    def sequences(self, view: BranchView) -> Sequences:
        """Return the rows of a branch that count in their order, with the context of the rows above."""
        self.level(view.branch.name)
        return sequences_of(self.described, view, self._levels)

    def _require(self, name: str) -> None:
        if name in self._keys:
            return
        table = self.source.tables[name]
        message = f"Cannot read the table {name!r}, {table.label}. Please report its types: a fit reads any cell."
        if name == self._database.units:
            order = _Reading(self, table, self._unit.constant, None)
        else:
            order = _Reading(self, table, self._database.branch(name).columns, self._database.branch(name))
        for chunk in table.with_dictionaries().chunks(order.columns):
            attempt(lambda chunk=chunk: order.take(chunk), message)
        level, self._keys[name] = attempt(order.level, message)
        self._levels[name] = level

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._database.names)})"


@final
class BranchRecords(LinkedRecords):
    """Records of a branch: of the rows above with their first row below, and of steps; those of a unit are one record.

    Args:
        data: of the database.
        view: the branch as linked rows.
    """

    def __init__(self, data: DatabaseData, view: BranchView) -> None:
        self._data, self.view, self.described = data, view, view.schema
        self.tables = linked_tables(plain_schema(view.schema))

    def sequences(self) -> Sequences:
        """Return the rows that count in their order."""
        data, branch = self._data, self.view.branch
        message = f"Cannot join the table {branch.name!r}. Please report its types: a fit reads any cell."
        return attempt(lambda: data.sequences(self.view), message)

    def units(self) -> Iterator[Rows]:
        """Yield chunks of coded columns, a row above a row: for scores, as those of a unit are not together."""
        whole = self.sequences()
        return unit_records(self.tables, Sequences(whole.sizes, whole.starts, whole.codes, whole.constants))


class _Reading:
    """Reads a table: the rows that count, in order."""

    def __init__(self, data: DatabaseData, table: Source, columns: tuple[str, ...], branch: Branch | None) -> None:
        self._data, self._branch = data, branch
        self._missing = {name: data.described.missing_in(table, name) for name in columns}
        self._kinds = {name: data._kinds[name] for name in columns}
        unit = data._unit.column
        key = unit if branch is None else branch.key
        exact = key is not None and data.described.is_exact(key)
        tokens = () if key is None else data.described.missing_in(table, key)
        self._own = UnitNumbers((*tokens, ""), exact=exact)
        if branch is None:
            self._key, self.columns = unit, [unit, *columns]
            self._order = RowOrder(columns, None, 1, self._own.hashes)
            return
        self._key = branch.key
        self.columns = list(dict.fromkeys([*branch.identifiers, *columns]))
        above = data._levels[branch.of]
        hashes, owners = data._keys[data._database.units].numbers.hashes(), above.owners
        ends = end_codes(branch_views(data.described)[branch.name].schema)
        keys = None if branch.key is None else self._own.hashes
        self._order = RowOrder(columns, branch.order, branch.max_rows, lambda: hashes[owners], ends, keys)

    def take(self, chunk: Chunk) -> None:
        """Take in the rows of a chunk."""
        cells = chunk.columns
        rows = {name: kind.code(cells[name], missing=self._missing[name]) for name, kind in self._kinds.items()}
        keys = None if self._key is None else self._own.numbers(cells[self._key])
        if self._branch is None:
            assert keys is not None
            self._order.take(keys, rows)
            return
        self._order.take(self._data._keys[self._branch.of].rows(chunk, self._branch), rows, keys)

    def level(self) -> tuple[Level, RowKeys]:
        """Return the rows that count, and by which keys tables below find them."""
        above, codes, keys = self._order.rows()
        if self._branch is None:
            return Level(above, above, codes), RowKeys(self._own, above, above, self._own)
        owners = self._data._levels[self._branch.of].owners[above]
        units = self._data._keys[self._data._database.units].numbers
        if self._key is None:
            keys = np.full(above.size, NOBODY)
        return Level(above, owners, codes), RowKeys(self._own, keys, owners, units)
