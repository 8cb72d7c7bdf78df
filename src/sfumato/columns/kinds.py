"""The kinds of columns by their names in schema documents: Sfumato's own, a file each."""

from __future__ import annotations

from sfumato.columns.bounded import NumericKind, WholeKind
from sfumato.columns.dates import DateTime
from sfumato.columns.identifiers import Identifier
from sfumato.columns.images import Image
from sfumato.columns.kind import ColumnKind, TabularKind
from sfumato.columns.levels import Boolean, Categorical, LevelKind, Ordinal
from sfumato.columns.numbers import Continuous, Integer
from sfumato.columns.sets import ItemSet

KINDS: dict[str, type[ColumnKind]] = {
    kind.name: kind
    for kind in (Categorical, Ordinal, Boolean, Integer, Continuous, DateTime, Image, ItemSet, Identifier)
}
"""The name of each kind in a schema document."""

__all__ = [
    "KINDS",
    "Boolean",
    "Categorical",
    "ColumnKind",
    "Continuous",
    "DateTime",
    "Identifier",
    "Image",
    "Integer",
    "ItemSet",
    "LevelKind",
    "NumericKind",
    "Ordinal",
    "TabularKind",
    "WholeKind",
]
