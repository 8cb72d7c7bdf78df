"""Schemas with columns of which only the name, or the name and the kind, is public: the rest is bought with budget.

    columns:
      age: {kind: integer, discover: true}
      city: {kind: categorical, discover: true}
      income: {kind: categorical, categories: ["<=50K", ">50K"]}
      note: {kind: unknown, discover: true}

`sfumato.fitting.discovery` buys bounds, categories and whether cells are missing, and makes a `Schema` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, final, get_args

import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import is_text
from sfumato.columns.kinds import Boolean, Categorical, ColumnKind, Continuous, Identifier, Integer
from sfumato.errors import SchemaError
from sfumato.io.sources import open_source
from sfumato.schema.documents import read_document
from sfumato.schema.schema import Schema

OpenKind: TypeAlias = Literal["integer", "continuous", "categorical", "boolean", "unknown"]

_STAND_INS: Mapping[OpenKind, ColumnKind] = {
    "integer": Integer(lower=0, upper=1),
    "continuous": Continuous(lower=0, upper=1),
    "categorical": Categorical(categories=("other",), other="other"),
    "boolean": Boolean(),
    "unknown": Categorical(categories=("other",), other="other"),
}


@final
@dataclass(frozen=True, slots=True)
class OpenSchema:
    """What is public of a table before discovery.

    Attributes:
        nominal: the schema with a stand-in for every open column: its names, order, rows, unit and missing tokens
            are public facts, and so is every column that is not open.
        open: the open columns with their kinds; `unknown` is bought too.
    """

    nominal: Schema
    open: Mapping[str, OpenKind] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        data: object,
        kinds: Mapping[str, str] | None = None,
        *,
        rows: int | None = None,
        target: str | None = None,
    ) -> OpenSchema:
        """Return what a table's column names and storage types say, and nothing that its records say.

        Args:
            data: the table, as for `fit`. Its column names are taken as public, and so are the types of Parquet, Arrow
                and frames; a CSV has none.
            kinds: the kind of some columns: integer, continuous, categorical, boolean, or identifier to leave it out.
            rows: the public number of rows, if there is one.
            target: a column whose classes are modelled apart is categorical unless `kinds` says otherwise.

        Raises:
            SchemaError: `kinds` names a column that is not there, or an unknown kind; there are images.

        Example:
            >>> import pyarrow as pa
            >>> OpenSchema.of(pa.table({"age": [31, 46], "town": ["Riga", "Oslo"]}), {"town": "categorical"}).open
            {'age': 'integer', 'town': 'categorical'}
        """
        source = open_source(data)
        kinds = dict(kinds or {})
        images = [name for name, storage in source.storage.items() if isinstance(storage, pa.FixedShapeTensorType)]
        if images:
            raise SchemaError(
                f"Expected a table to find a schema for, got images in column {images[0]!r}. Declare their bounds in a "
                "schema: `sfumato schema draft` writes a first one."
            )
        if target is not None:
            kinds.setdefault(target, "categorical")
        known = (*get_args(OpenKind), "identifier")
        for name, kind in kinds.items():
            if name not in source.storage:
                raise SchemaError(f"Expected kinds of columns of {source.label}, got no column {name!r}.")
            if kind not in known:
                raise SchemaError(f"Column {name!r}: expected kind to be one of {', '.join(known)}, got {kind!r}.")
        chosen = {name: kinds.get(name) or _kind_of(storage) for name, storage in source.storage.items()}
        opened: dict[str, OpenKind] = {name: kind for name, kind in chosen.items() if kind != "identifier"}  # type: ignore[misc]
        columns = {name: _STAND_INS[opened[name]] if name in opened else Identifier() for name in chosen}
        return cls(Schema(columns=columns, rows=rows), opened)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> OpenSchema:
        """Build one from plain values, as a schema file holds them.

        Raises:
            SchemaError: names every fault that was found, with the column it is in.
        """
        columns = document.get("columns") if isinstance(document, Mapping) else None
        if not isinstance(columns, Mapping):
            return cls(Schema.from_dict(document))
        entries: dict[Any, Any] = dict(columns)
        opened: dict[str, OpenKind] = {}
        for name, entry in columns.items():
            if isinstance(entry, Mapping) and "discover" in entry:
                opened[str(name)] = _open_kind(name, entry)
                entries[name] = {"kind": "categorical", "categories": ["other"]}
        nominal = Schema.from_dict({**document, "columns": entries})
        stood_in = {name: _STAND_INS[opened[name]] if name in opened else k for name, k in nominal.columns.items()}
        return cls(
            Schema(columns=stood_in, rows=nominal.rows, unit=nominal.unit, missing=nominal.missing),
            {name: kind for name, kind in opened.items() if name in nominal.released},
        )

    @classmethod
    def load(cls, path: str | Path) -> OpenSchema:
        """Read one from a YAML or JSON file.

        Raises:
            SchemaError: the file cannot be read, or holds faults; every one is named.
        """
        return cls.from_dict(read_document(path))


def _open_kind(name: object, entry: Mapping[str, Any]) -> OpenKind:
    kind: Any = entry.get("kind")
    if entry["discover"] is not True or set(entry) != {"kind", "discover"} or kind not in get_args(OpenKind):
        raise SchemaError(
            f"Column {name!r}: expected `discover: true` beside a kind of {', '.join(get_args(OpenKind))}, and nothing "
            "else. What is known of the column is declared without discovery."
        )
    return kind


def _kind_of(storage: pa.DataType) -> OpenKind | Literal["identifier"]:
    """Return what a storage type says; that of a CSV's cells says nothing, and is text."""
    if types.is_dictionary(storage):
        storage = storage.value_type
        return "categorical" if is_text(storage) else _kind_of(storage)
    if types.is_boolean(storage):
        return "boolean"
    if types.is_integer(storage):
        return "integer"
    if types.is_floating(storage) or types.is_decimal(storage):
        return "continuous"
    return "unknown" if is_text(storage) else "identifier"
