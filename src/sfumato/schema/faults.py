"""What can be wrong with a schema, told all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.columns.facts import label_text, shown
from sfumato.columns.kinds import ColumnKind, ItemSet, is_kind
from sfumato.columns.open import Open
from sfumato.errors import SchemaError
from sfumato.schema.linked import linked_faults
from sfumato.schema.shapes import pair_faults
from sfumato.schema.unit import Unit, count
from sfumato.schema.weight import weight_faults

if TYPE_CHECKING:
    from sfumato.schema.schema import Schema


def column_faults(columns: Mapping[str, ColumnKind]) -> list[str]:
    """Return what is wrong with names and kinds."""
    if not isinstance(columns, Mapping):
        return [f"Expected columns to map names to kinds, got {shown(columns)}."]
    faults: list[str] = []
    for name, kind in columns.items():
        if not isinstance(name, str) or not name or not _is_unicode(name):
            faults.append(f"Expected column names to be text, got {shown(name)}.")
        if not is_kind(kind):
            faults.append(f"Column {name!r}: expected a column kind, got {shown(kind)}.")
    return faults


def table_faults(schema: Schema) -> list[str]:
    """Return what is wrong with the table as a whole."""
    faults = rows_faults(schema.rows)
    if not isinstance(schema.columns, Mapping):
        return faults
    if schema.unit is not None and not isinstance(schema.unit, Unit):
        return [*faults, f"Expected unit to be a Unit, got {shown(schema.unit)}."]
    if schema.unit is not None and schema.unit.column not in schema.columns:
        faults.append(
            f"Expected the unit's column among the columns, got {schema.unit.column!r}. Add it with kind: identifier."
        )
    elif schema.unit is not None and isinstance(schema.columns[schema.unit.column], Open):
        faults.append(
            f"Expected the unit's column declared, got {schema.unit.column!r} open. Declare kind: identifier."
        )
    if not faults and schema.weight is not None:
        faults += weight_faults(schema, schema.weight)
    faults += _long_faults(schema)
    if not faults and schema.unit is not None and schema.unit.linked:
        faults += linked_faults(schema, schema.unit)
    if not faults:
        faults += pair_faults(schema)
    if not faults and not schema.released:
        faults.append("Expected at least one column to release, got none. Declare one.")
    return faults


def _long_faults(schema: Schema) -> list[str]:
    """Return what is wrong with sets that lie in a table of one row per item."""
    faults = []
    for name, kind in schema.of_kind(ItemSet).items():
        if kind.id is None:
            continue
        if kind.id not in schema.columns or schema.columns[kind.id].is_released:
            faults.append(f"Column {name!r}: expected id to name a column of kind identifier, got id={kind.id!r}.")
        if schema.unit is not None:
            faults.append(
                f"Column {name!r}: expected no unit beside id, got both. All rows of one id are one record; declare as "
                "id what is to be protected."
            )
        elif schema.released != (name,):
            faults.append(
                f"Column {name!r}: expected no other column to release in a table of one row per item. Leave the "
                "others out, or store the sets as a list column."
            )
    return faults


def rows_faults(rows: object) -> list[str]:
    """Return what is wrong with the public number of rows."""
    try:
        if rows is not None:
            count(rows, "rows")
    except SchemaError as error:
        return [str(error)]
    return []


def draft_faults(draft: object) -> list[str]:
    """Return what is wrong with `draft`."""
    if draft is True or draft is False:
        return []
    return [f"Expected draft to be true or false, got {shown(draft)}. Take it out where the facts are public."]


def tokens(missing: object, faults: list[str]) -> tuple[str, ...]:
    """Return the texts that stand for no value, each once, or note what is wrong with them."""
    if isinstance(missing, str) or not isinstance(missing, (list, tuple)):
        faults.append(f"Expected missing to be a list of texts, got {shown(missing)}.")
        return ()
    return tuple(dict.fromkeys(label_text("missing", token, faults) for token in missing))


def unknown_keys(entry: Mapping[Any, Any], known: tuple[str, ...], where: str) -> list[str]:
    """Return a fault for each key that is not known."""
    return [
        f"Expected the keys {', '.join(known)} in {where}, got {shown(key)}. Remove or correct it."
        for key in entry
        if key not in known
    ]


def _is_unicode(text: str) -> bool:
    return text.isascii() or text == text.encode("utf-8", "replace").decode()


def refuse(faults: list[str]) -> None:
    """Raise all faults together.

    Raises:
        SchemaError: there are some.
    """
    if len(faults) == 1:
        raise SchemaError(faults[0])
    if faults:
        lines = "\n".join(f"  - {fault}" for fault in faults)
        raise SchemaError(f"Expected a schema without faults, got {len(faults)}:\n{lines}")
