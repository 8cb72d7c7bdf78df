"""Entries that describe tables in a schema document: names, counts, columns and ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sfumato.columns.facts import label_text, plain_value, shown
from sfumato.errors import SchemaError

_UNUSABLE = set('/\\:*?"<>|=')


def require_file_name(name: object) -> None:
    """Refuse the name of a table that is none of a file: samples are files of these names.

    Raises:
        SchemaError: it is none.
    """
    if not isinstance(name, str) or not name.strip(". ") or _UNUSABLE & set(name) or not name.isprintable():
        raise SchemaError(f"Expected the name of a table to be one of a file, got {shown(name)}. Rename it.")


def read_ends(value: object, place: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the labels that end a unit, per column.

    Raises:
        SchemaError: they are none.
    """
    entries = value.items() if isinstance(value, Mapping) else value
    faults: list[str] = []
    try:
        ends = {
            name: tuple(label_text("a label", label, faults) for label in (labels if _several(labels) else [labels]))
            for name, labels in entries  # type: ignore[union-attr]
        }
    except (TypeError, ValueError):
        ends = {"": ()}
    if faults or not all(isinstance(name, str) and name and labels for name, labels in ends.items()):
        raise SchemaError(
            f"Expected ends of {place} to map columns to labels, such as {{state: dead}}, got {shown(value)}."
        )
    return tuple(ends.items())


def read_totals(value: object, place: str) -> tuple[tuple[str, str], ...]:
    """Return columns of rows above with the columns whose totals they are.

    Raises:
        SchemaError: they are no mapping of names to names.
    """
    totals: dict[str, str] = dict(value) if isinstance(value, Mapping | tuple) else {"": ""}
    if not all(isinstance(name, str) and name for pair in totals.items() for name in pair):
        raise SchemaError(
            f"Expected totals of {place} to map columns of the table above to its own, such as {{cost: amount}}, got "
            f"{shown(value)}."
        )
    return tuple(totals.items())


def _several(labels: object) -> bool:
    return isinstance(labels, Iterable) and not isinstance(labels, str | bytes | Mapping)


def column_names(value: object, place: str) -> tuple[str, ...]:
    """Return the names of columns, each once.

    Raises:
        SchemaError: they are no list of names.
    """
    names = list(value) if isinstance(value, list | tuple) else None
    if names is None or not all(isinstance(name, str) and name for name in names):
        raise SchemaError(f"Expected {place} to be a list of columns, got {shown(value)}.")
    if len(set(names)) < len(names):
        raise SchemaError(f"Expected {place} to name each column once, got one twice.")
    return tuple(names)


def count(value: object, name: str) -> int:
    """Return a public number of at least 1.

    Raises:
        SchemaError: it is none.
    """
    value = plain_value(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SchemaError(f"Expected {name} to be a whole number of at least 1, got {shown(value)}.")
    return value
