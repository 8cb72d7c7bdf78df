"""Schemas with columns of which only the name, or the name and the kind, is public: the rest is bought with budget.

    columns:
      age: {kind: integer, discover: true}
      city: {kind: categorical, discover: true}
      income: {kind: categorical, categories: ["<=50K", ">50K"]}
      note: {kind: unknown, discover: true}

Such a schema is a `Schema` with columns of the kind `Open`; this makes some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, final, get_args

import pyarrow as pa
from pyarrow import types

from sfumato.columns.identifiers import Identifier
from sfumato.columns.kind import ColumnKind
from sfumato.columns.open import Open, OpenKind
from sfumato.errors import SchemaError
from sfumato.io.headers import require_names
from sfumato.io.sources import open_source
from sfumato.schema.documents import read_document
from sfumato.schema.references import with_references
from sfumato.schema.schema import Schema, read_open


@final
class OpenSchema:
    """Makes a `Schema` that may leave columns open: `schema.open` names them. There are no objects of this class."""

    def __new__(cls, nominal: Schema, open: Mapping[str, OpenKind] | None = None) -> Schema:  # type: ignore[misc]
        """Return a schema with some of its columns open instead.

        Args:
            nominal: all other columns, and the order of all; rows, unit and missing tokens.
            open: the open columns with their kinds; `unknown` is bought too.
        """
        columns = {**nominal.columns, **{name: Open(kind=kind) for name, kind in (open or {}).items()}}
        sources = {name: source for name, source in nominal.sources.items() if name not in (open or {})}
        return replace(nominal, columns=columns, sources=sources)

    @classmethod
    def of(
        cls,
        data: object,
        kinds: Mapping[str, str] | None = None,
        *,
        rows: int | None = None,
        target: str | None = None,
        names_are_public: bool = False,
    ) -> Schema:
        """Return what a table's column names say, and nothing that its records say: all kinds are bought.

        Args:
            data: the table, as for `fit`. Its column names are taken as public. Its storage types are not, for one cell
                may decide them; but a column of lists is left out.
            kinds: the kind of some columns: integer, continuous, categorical, boolean, or identifier to leave it out.
            rows: the public number of rows, if there is one.
            target: a column whose classes are modelled apart is categorical unless `kinds` says otherwise.
            names_are_public: take the first line of a CSV as names even where one is a number or a date.

        Raises:
            DataError: a name of a CSV is a number or a date: the line may be a record.
            SchemaError: `kinds` names a column that is not there, or an unknown kind; there are images.

        Example:
            >>> import pyarrow as pa
            >>> OpenSchema.of(pa.table({"age": [31, 46], "town": ["Riga", "Oslo"]}), {"town": "categorical"}).open
            {'age': 'unknown', 'town': 'categorical'}
        """
        source = open_source(data)
        if not names_are_public:
            require_names(source)
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
        whole = {name: "identifier" for name, storage in source.storage.items() if types.is_nested(storage)}
        chosen = {name: "unknown" for name in source.storage} | whole | kinds
        columns: dict[str, ColumnKind] = {
            name: Identifier() if kind == "identifier" else Open(kind=kind)  # type: ignore[arg-type] - as checked
            for name, kind in chosen.items()
        }
        return Schema(columns=columns, rows=rows)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, base: str | Path | None = None) -> Schema:
        """Build one from plain values, as a schema file holds them.

        Args:
            document: the values.
            base: the folder that files of categories are relative to.

        Raises:
            SchemaError: names every fault that was found, with the column it is in.
        """
        return read_open(with_references(document, base))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read one from a YAML or JSON file.

        Raises:
            SchemaError: the file cannot be read, or holds faults; every one is named.
        """
        return cls.from_dict(read_document(path), base=Path(path).parent)
