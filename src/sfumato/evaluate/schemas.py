"""The schema that tables are compared under: one with open columns is completed by the real rows. NOT private."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sfumato.columns.canonical import canonical_text, has_canonical_text
from sfumato.columns.cells import plain
from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import Categorical, LevelKind
from sfumato.columns.open import Open
from sfumato.desk.drafting import draft_schema
from sfumato.errors import ConfigError
from sfumato.io.chunks import Source
from sfumato.schema.schema import Schema

_MOST_LABELS = 10_000
_REST = "other"


def closed_schema(schema: Schema, real: Source, synthetic: Source | None = None) -> Schema:
    """Return a schema of which every column is declared: the open ones by the real rows.

    A fit estimates the facts of such columns, and leaves out what names people; scores are not private anyway.

    Args:
        schema: what is known.
        real: the real rows.
        synthetic: the synthetic ones; of single rows an open column that they do not have is left out.

    Raises:
        ConfigError: an open column is no column of a table, or nothing is left to compare.
        DataError: the real rows cannot be read.
    """
    if not schema.open:
        return schema
    own = real.measured().names
    shared = own if synthetic is None else [name for name in synthetic.measured().names if name in own]
    drafted = draft_schema(real, exact=True, names_are_public=True).schema.columns
    columns = dict(schema.columns)
    for name, kind in schema.of_kind(Open).items():
        if name in own and (name in shared or schema.linked):
            columns[name] = _closed_kind(name, kind, drafted.get(name), real, schema.missing)
        elif not schema.linked:
            del columns[name]
    if not any(name in columns for name in schema.released):
        raise ConfigError("Expected two tables that have a column in common, got none. Has each a header line?")
    sources = {name: source for name, source in schema.sources.items() if name in columns}
    return dataclasses.replace(schema, columns=columns, sources=sources, accept=(), questions=())


def not_compared(schema: Schema, sources: dict[str, Source]) -> dict[str, list[str]]:
    """Return the columns of each table that scores leave out, because the schema or the other table lacks them."""
    return {
        name: [column for column in source.measured().names if column not in schema.columns]
        for name, source in sources.items()
    }


def _closed_kind(name: str, kind: Open, drafted: object, source: Source, missing: Sequence[str]) -> TabularKind:
    """Return the kind of an open column of the real rows."""
    if kind.kind == "categorical" and not isinstance(drafted, LevelKind):
        return Categorical(categories=_labels(name, source, missing), other=_REST, nullable=True)
    if not isinstance(drafted, TabularKind):
        raise ConfigError(f"Expected a column of labels, numbers or dates to evaluate, got {name!r}. Declare its kind.")
    if kind.written is not None and hasattr(drafted, "written"):
        return dataclasses.replace(drafted, written=kind.written)  # type: ignore[type-var] - a kind of numbers
    return drafted


def _labels(name: str, source: Source, missing: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a column, at most ten thousand of them, sorted."""
    labels: set[str | None] = set()
    for chunk in source.chunks([name]):
        column = chunk.columns[name]
        for cells in [] if isinstance(column, np.ndarray) else column.chunks:
            values = plain(cells)
            if has_canonical_text(values.type):
                labels.update(canonical_text(values.unique()).to_pylist())
    known = sorted(label for label in labels if label is not None and label not in (*missing, _REST))
    return tuple(known[:_MOST_LABELS]) or ("no label",)
