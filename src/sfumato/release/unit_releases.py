"""Parts of a release: of linked rows, units and steps as single rows; of a database, each table as linked rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from sfumato.columns.kind import nullable_kind
from sfumato.errors import ConfigError, did_you_mean
from sfumato.lenses.chain import plain_schema
from sfumato.measurements.cells import ALL_ROWS
from sfumato.release.manifest import SourceForm, columns_of
from sfumato.release.model import ReleaseValue
from sfumato.schema.branch_schemas import BranchView, branch_views
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.schema import Schema

_PART, _STEPS = "units", "steps"
_Value = TypeVar("_Value", bound=ReleaseValue)


def units_of(release: _Value, *, plain: bool = False, features: bool = False) -> _Value:
    """Return the part of a release of linked rows that is of units, as if it were one of single rows.

    Its noise is that of the units' own stages, in which a unit is one record. It is asked, and not saved: its
    certificate is that of the whole. Rules of a row hold in it, but for a `plain` one: there a column that a rule puts
    after another is its distance, as it was measured. What was measured of `features` of units, whose columns it has
    not, is left out, but where that is asked for.

    Raises:
        ConfigError: the release is not of linked rows.
    """
    if not release.schema.linked or release.schema.tree is not None:
        shape, cure = ("single rows", "Ask it itself") if not release.schema.linked else ("a database", "Name a table")
        raise ConfigError(f"Expected a release of linked rows to ask of its units, got one of {shape}. {cure}.")
    tables = linked_tables(plain_schema(release.schema), release.schema.weight)
    units = replace(tables.units, weight=release.schema.weight)  # a column of the plain table before, now the weight
    units = units if plain else _ruled(units, tables, release.schema)
    known, counted = release.form, {tables.count: pa.int64()} if tables.count else {}
    items = {item: pa.bool_() for column in release.schema.set_columns.values() for item in column.items}
    of_histories = {name: pa.float64() for own in tables.histories.values() for name in (own.level, own.trend)}
    ended = {tables.ended: pa.bool_()} if tables.ended else {}
    storage = {**known.storage, **items, **counted, **ended, **of_histories}
    form = replace(
        known,
        storage={name: storage[name] for name in units.released},
        dtypes={name: dtype for name, dtype in known.dtypes.items() if name in units.released and tables.fewest},
    )
    part = _part(release, _PART, units, form)
    if features:
        return part
    own = {*units.columns, ALL_ROWS}
    return replace(part, measurements=tuple(m for m in part.measurements if columns_of(m) <= own))


def steps_of(release: _Value, steps: Schema) -> _Value:
    """Return the part of a release of linked rows that is of steps, as if it were one of single rows of this schema.

    Its counts are of weighted steps, as its queries say.
    """
    return _part(release, _STEPS, steps, release.form)


def parts_of_units(release: _Value) -> dict[str, _Value]:
    """Return the parts of a release that are of linked rows: itself, by no name, or the tables below that of units."""
    tree = release.schema.tree
    return {"": release} if tree is None else {branch.name: table_of(release, branch.name) for branch in tree.branches}


def table_of(release: _Value, name: str) -> _Value:
    """Return the part of a release of a database that is of one table, as linked rows of the rows above.

    Columns of the rows above, and what the tables before say of these, are its constants. It is asked, and not saved:
    its certificate is that of the whole.

    Raises:
        ConfigError: the release is not of a database, or has no such table.
    """
    database = release.schema.database
    if database is None:
        raise ConfigError(
            "Expected a release of a database to ask of a table, got one of another shape. Ask it itself."
        )
    if name not in database.names:
        raise ConfigError(
            f"Expected a table of the release, {', '.join(map(repr, database.names))}, got {name!r}."
            f"{did_you_mean(name, database.names)}"
        )
    if name == database.units:
        return units_of(table_of(release, database.branches[0].name))
    if database.joined is not None:
        return release
    schema, known = branch_views(release.schema)[name].schema, release.form
    storage = {column: schema.columns[column].sample_type for column in schema.released}
    storage |= {
        column: kind
        for column, kind in known.storage.items()
        if column in storage and release.schema.columns[column] == schema.columns[column]
    }
    assert schema.unit is not None
    assert release.schema.unit is not None
    storage[schema.unit.column] = known.storage[release.schema.unit.column]
    dtypes = {column: dtype for column, dtype in known.dtypes.items() if column in storage}
    part = replace(release, sampler=release.sampler["branches"], part_of=(release, name))
    return _part(part, name, schema, replace(known, storage=storage, dtypes=dtypes))


def branch_of(release: ReleaseValue) -> BranchView | None:
    """Return the branch that a part of a database, or its units, is of; None of others."""
    return None if release.part_of is None else branch_views(release.part_of[0].schema)[release.part_of[1]]


def is_nested(release: ReleaseValue) -> bool:
    """Whether it is the part of a database, or its units, whose rows above are several of a unit."""
    view = branch_of(release)
    return view is not None and view.is_nested


def _ruled(units: Schema, tables: LinkedTables, declared: Schema) -> Schema:
    """Return the schema of units with the rules of a row, which first rows keep; of one without, all is missing."""
    if (plan := declared.rule_plan) is None:
        return units
    absent = () if tables.fewest else {*tables.before, *plan.follows}
    kinds = {name: nullable_kind(kind) if name in absent else kind for name, kind in plan.kinds.items()}
    return replace(units, columns={**units.columns, **kinds}, rules=declared.rules)


def _part(release: _Value, part: str, schema: Schema, form: SourceForm) -> _Value:
    name, key = f"{part}: ", f"{part}."
    return replace(
        release,
        schema=schema,
        sampler=release.sampler[part],
        parameters={k.removeprefix(key): array for k, array in release.parameters.items() if k.startswith(key)},
        measurements=tuple(
            replace(m, name=m.name.removeprefix(name)) for m in release.measurements if m.name.startswith(name)
        ),
        form=form,
    )
