"""The kinds of columns by their names in schema documents: Sfumato's own, a file each, and those of installed packages.

A document names a kind and, of one that is not ours, may name its package; it never says what to import.
"""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.columns.booleans import Boolean, Truth
from sfumato.columns.bounded import NumericKind
from sfumato.columns.bounded import WholeKind as WholeKind
from sfumato.columns.dates import DateTime
from sfumato.columns.facts import shown
from sfumato.columns.images import Image
from sfumato.columns.kind import ColumnKind
from sfumato.columns.kind import TabularKind as TabularKind
from sfumato.columns.levels import Categorical, LabelPair, LevelKind, Ordinal
from sfumato.columns.numbers import Continuous, Integer
from sfumato.columns.open import Identifier, Open
from sfumato.columns.sets import ItemSet
from sfumato.entry_points import OURS, canonical, find, names
from sfumato.errors import SchemaError

KINDS: dict[str, type[ColumnKind]] = {
    kind.name: kind
    for kind in (Categorical, Ordinal, Boolean, Integer, Continuous, DateTime, Image, ItemSet, Identifier)
}
"""Our own, by name."""


def kind_names() -> Iterator[str]:
    """Yield the names of all kinds that there are. Nothing is loaded."""
    yield from KINDS
    yield from names("kind", KINDS)


def kind_class(name: object, package: object = None) -> type[ColumnKind] | None:
    """Return the kind of a name; None if there is none.

    Args:
        name: of a document.
        package: that the document says the kind is of; None if it says none. No code of another package is run.

    Raises:
        ConfigError: two packages claim the name, or the plugin does not import, or is no kind.
        SchemaError: it is of another package than the document says.
    """
    plugin = find("kind", name, KINDS) if isinstance(name, str) else None
    owner = OURS if plugin is None else plugin.package
    if not isinstance(name, str) or (plugin is None and name not in KINDS):
        return None
    if package is not None and not (isinstance(package, str) and canonical(package) == canonical(owner)):
        raise SchemaError(
            f"Expected the kind {name!r} of the package {shown(package)}, as the schema says, got that of {owner}."
        )
    if plugin is None:
        return KINDS[name]
    loaded = plugin.load()
    if not (isinstance(loaded, type) and issubclass(loaded, LevelKind | NumericKind) and loaded.name == name):
        raise plugin.wrong(f"a class of labels or numbers (LevelKind, NumericKind, WholeKind) named {name!r}")
    return loaded


def is_kind(value: object) -> bool:
    """Whether a value is of one of the kinds that documents can write, or that stand for them."""
    own = type(value) in (Open, Truth, LabelPair)
    return own or (isinstance(value, ColumnKind) and kind_class(value.name) is type(value))
