"""Kinds of columns: what is public about each, and the total maps between cells and codes."""

from sfumato.columns.kinds import (
    Boolean,
    Categorical,
    Continuous,
    DateTime,
    Identifier,
    Image,
    Integer,
    ItemSet,
    Ordinal,
)

__all__ = [
    "Boolean",
    "Categorical",
    "Continuous",
    "DateTime",
    "Identifier",
    "Image",
    "Integer",
    "ItemSet",
    "Ordinal",
]
