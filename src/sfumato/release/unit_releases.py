"""The parts of a release of linked rows, of its units and of their steps, as releases of single rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from sfumato.errors import ConfigError
from sfumato.lenses.chain import plain_schema
from sfumato.release.manifest import SourceForm
from sfumato.release.model import ReleaseValue
from sfumato.schema.linked import linked_tables
from sfumato.schema.schema import Schema

_PART, _STEPS = "units", "steps"
_Value = TypeVar("_Value", bound=ReleaseValue)


def units_of(release: _Value, *, plain: bool = False) -> _Value:
    """Return the part of a release of linked rows that is of units, as if it were one of single rows.

    Its noise is that of the units' own stages, in which a unit is one record. It is asked, and not saved: its
    certificate is that of the whole. Rules of a row hold in it, but for a `plain` one: there a column that a rule puts
    after another is its distance, as it was measured. A release of single rows is refused (`ConfigError`).
    """
    if not release.schema.linked:
        raise ConfigError(
            "Expected a release of linked rows to ask of its units, got one of single rows. Ask it itself."
        )
    tables = linked_tables(plain_schema(release.schema), release.schema.weight)
    units = replace(tables.units, weight=release.schema.weight)  # a column of the plain table before, now the weight
    units = units if plain else _ruled(units, release.schema)
    known, counted = release.form, {tables.count: pa.int64()} if tables.count else {}
    items = {item: pa.bool_() for column in release.schema.set_columns.values() for item in column.items}
    storage = {**known.storage, **items, **counted}
    form = replace(
        known,
        storage={name: storage[name] for name in units.released},
        dtypes={name: dtype for name, dtype in known.dtypes.items() if name in units.released and tables.fewest},
    )
    return _part(release, _PART, units, form)


def steps_of(release: _Value, steps: Schema) -> _Value:
    """Return the part of a release of linked rows that is of steps, as if it were one of single rows of this schema.

    Its counts are of weighted steps, as its queries say.
    """
    return _part(release, _STEPS, steps, release.form)


def _ruled(units: Schema, declared: Schema) -> Schema:
    """Return the schema of units with the rules of a row, which their first rows keep, and columns as declared."""
    if declared.rule_plan is None:
        return units
    plain = plain_schema(declared).columns
    columns = {name: declared.columns[name] if name in plain else kind for name, kind in units.columns.items()}
    computed = {name: kind for name, kind in declared.columns.items() if name not in plain}
    return replace(units, columns={**columns, **computed}, rules=declared.rules)


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
