"""Kinds of columns: what is public about each, and the total maps between cells and codes."""

from sfumato._lazy import explain_calls
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
from sfumato.columns.open import Open

__all__ = [
    "Boolean",
    "Categorical",
    "Continuous",
    "DateTime",
    "Identifier",
    "Image",
    "Integer",
    "ItemSet",
    "Open",
    "Ordinal",
]

explain_calls(__name__)
