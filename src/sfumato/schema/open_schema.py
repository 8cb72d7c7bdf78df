"""Schemas with columns of which only the name, or the name and the kind, is public: a fit estimates the rest.

    columns:
      age: {kind: integer, discover: true}
      city: {kind: categorical, discover: true}
      income: {kind: categorical, categories: ["<=50K", ">50K"]}
      note: {kind: unknown, discover: true}

Such a schema is a `Schema` with columns of the kind `Open`; this makes some.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, final, get_args

import pyarrow as pa

from sfumato.columns.booleans import Boolean
from sfumato.columns.open import Identifier, Open, OpenKind
from sfumato.errors import ConfigError, SchemaError, did_you_mean, require_flag, require_instance
from sfumato.io.sources import open_source, require_names
from sfumato.schema.documents import read_document
from sfumato.schema.references import ColumnFacts, with_references
from sfumato.schema.schema import Schema, SchemaLike, read_open, read_schema


@final
class OpenSchema:
    """Makes a `Schema` that may leave columns open: `schema.open` names them. There are no objects of this class."""

    def __new__(cls, nominal: Schema, open: Mapping[str, OpenKind] | None = None) -> Schema:  # type: ignore[misc]
        """Return a schema with some of its columns open instead.

        Args:
            nominal: all other columns, and the order of all; rows, unit and missing tokens.
            open: the open columns with their kinds; of `unknown` that is estimated too.
        """
        columns = {**nominal.columns, **{name: Open(kind=kind) for name, kind in (open or {}).items()}}
        sources = {name: source for name, source in nominal.sources.items() if name not in (open or {})}
        return replace(nominal, columns=columns, sources=sources)

    @classmethod
    def of(
        cls,
        data: object,
        columns: Mapping[str, ColumnFacts] | None = None,
        *,
        rows: int | None = None,
        unit: str | Mapping[str, Any] | None = None,
        target: str | None = None,
        names_are_public: bool = False,
    ) -> Schema:
        """Return the schema of a table's column names and the caller's facts, by no record: a fit estimates the rest.

        Args:
            data: the table, as for `fit`. Its column names are taken as public. Its storage types are not, for one cell
                may decide them: a list is a missing cell, and a column of nothing else is left out by the fit.
            columns: what is public of some columns: bounds `(0, 120)`, labels `["AT", "DE"]`, the entry of a schema
                file, `boolean`, `identifier` to leave it out, or a kind that a fit completes: integer, continuous,
                categorical or datetime.
            rows: the public number of rows, if there is one.
            unit: whose privacy, as a schema file has it; a name alone is that of its column, of whom one row counts.
            target: a column whose classes are modelled apart is categorical unless `columns` says otherwise.
            names_are_public: take the first line of a CSV as names even where one is a number or a date.

        Raises:
            ConfigError: an argument is of another type.
            DataError: a name of a CSV is a number or a date: the line may be a record.
            SchemaError: `columns` or `unit` names a column that is not there, or is malformed; images are not declared.

        Example:
            >>> import pyarrow as pa
            >>> OpenSchema.of(pa.table({"age": [31, 46], "town": ["Riga", "Oslo"]}), {"town": "categorical"}).open
            {'age': 'unknown', 'town': 'categorical'}
        """
        require_flag(names_are_public=names_are_public)
        if not isinstance(columns, Mapping | None) or not all(isinstance(name, str) for name in columns or ()):
            raise ConfigError(
                "Expected columns to be a mapping from names to what is public of them, such as {'age': 'integer'}, "
                f"got {'other names' if isinstance(columns, Mapping) else f'a {type(columns).__name__}'}."
            )
        facts: dict[str, Any] = dict(columns or {})
        if target is not None:
            require_instance(str, "the name of a column", target=target)
            facts.setdefault(target, "categorical")
        source = open_source(data)
        if not names_are_public:
            require_names(source)
        entries = {name: _entry(name, facts.get(name), storage) for name, storage in source.storage.items()}
        for name in (*facts, *([unit] if isinstance(unit, str) else [])):
            if name not in entries:
                hint = did_you_mean(name, list(entries))
                raise SchemaError(f"Expected columns of {source.label}, got no column {name!r}.{hint}")
        document: dict[str, Any] = {"columns": entries}
        document |= {} if rows is None else {"rows": rows}
        return cls.from_dict(document if unit is None else {**document, "unit": unit})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, base: str | Path | None = None) -> Schema:
        """Build one as `Schema.from_dict` does, where columns may be open."""
        return read_open(with_references(document, base))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read one from a YAML or JSON file.

        Raises:
            SchemaError: the file cannot be read, or holds faults; every one is named.
        """
        return cls.from_dict(read_document(path), base=Path(path).parent)


def _entry(name: str, entry: Any, storage: pa.DataType) -> Any:  # noqa: ANN401 - as a document has it
    """Return the entry of a column in a schema document; of one of which nothing is said, by its type family.

    Raises:
        SchemaError: no such kind can be estimated, or it holds images.
    """
    if entry is None and isinstance(storage, pa.FixedShapeTensorType):
        raise SchemaError(
            f"Expected a table with named columns, got an array, whose rows are images in column {name!r}. Make a data "
            "frame of numbers: pandas.DataFrame(array, columns=[...]). Of images, declare the bounds: `sfumato schema "
            "draft` writes a first schema."
        )
    if entry is None:
        return Open().to_dict()  # whatever its type: one cell may decide that
    if not isinstance(entry, str):
        return entry
    known = (*get_args(OpenKind), Identifier.name)
    if entry not in known:
        raise SchemaError(f"Column {name!r}: expected kind to be one of {', '.join(known)}, got {entry!r}.")
    if entry in (Boolean.name, Identifier.name):
        return {"kind": entry}  # complete
    return Open(kind=entry).to_dict()  # type: ignore[arg-type] - as checked


def open_schema(schema: SchemaLike) -> Schema:
    """Return the public description of the data, which may leave columns open."""
    if isinstance(schema, str | os.PathLike):
        return OpenSchema.load(os.fspath(schema))
    if isinstance(schema, Mapping):
        return OpenSchema.from_dict(schema)
    return schema if isinstance(schema, Schema) else read_schema(schema)
