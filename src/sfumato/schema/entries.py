"""Entries under `columns` of a schema document, as kinds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from sfumato.columns.facts import shown
from sfumato.columns.kinds import KINDS, ColumnKind, kind_class, kind_names
from sfumato.columns.open import Open, OpenKind
from sfumato.entry_points import is_package
from sfumato.errors import ConfigError, SchemaError, did_you_mean
from sfumato.schema.faults import unknown_keys
from sfumato.schema.sources import pop_source


def read_kind(name: str, entry: object, faults: list[str], sources: dict[str, Any]) -> ColumnKind | None:
    """Return the kind of one entry under `columns`, or note every fault in it; its `source` joins `sources`."""
    if isinstance(entry, str):
        entry = {"kind": entry}
    if isinstance(entry, Mapping) and "discover" in entry:
        return _read_open_kind(name, pop_source(entry, sources, name), faults)
    label = entry.get("kind") if isinstance(entry, Mapping) else None
    try:
        kind: Any = kind_class(label, entry.get("package")) if isinstance(entry, Mapping) else None
    except (ConfigError, SchemaError) as error:  # of a package that is not ours
        faults.append(f"Column {name!r}: {error}")
        return None
    if kind is None or not isinstance(entry, Mapping):
        if isinstance(entry, Mapping) and is_package(entry.get("package")):
            package = entry["package"]
            faults.append(
                f"Column {name!r}: expected the kind {shown(label)} of the package {package}, got no such kind. If you "
                f"trust it, install it (pip install {package}): it can run any code."
            )
            return None
        got = f"kind={shown(label)}" if isinstance(entry, Mapping) else shown(entry)
        hint = did_you_mean(label, kind_names()) or " Such as {kind: integer, lower: 0, upper: 9}, or a list of labels."
        faults.append(f"Column {name!r}: expected kind to be one of {', '.join(kind_names())}, got {got}.{hint}")
        return None
    known = dataclasses.fields(kind)
    entry = pop_source(entry, sources, name, [fact.name for fact in known])
    package = () if label in KINDS else ("package",)
    problems = unknown_keys(entry, ("kind", *package, *(fact.name for fact in known)), f"kind {label}")
    problems += [
        f"Expected {fact.name} for kind {label}, got none. Add it."
        for fact in known
        if fact.default is dataclasses.MISSING and fact.name not in entry
    ]
    if not problems:
        try:
            return kind(**{key: value for key, value in entry.items() if key not in ("kind", *package)})
        except SchemaError as error:
            problems = [str(error)]
    faults += [f"Column {name!r}: {fault}" for fault in problems]
    return None


def _read_open_kind(name: str, entry: Mapping[Any, Any], faults: list[str]) -> Open | None:
    kinds = get_args(OpenKind)
    also = {"written", "format", "resolution"}
    if entry["discover"] is True and set(entry) - also == {"kind", "discover"} and entry["kind"] in kinds:
        try:
            return Open(**{key: value for key, value in entry.items() if key != "discover"})
        except SchemaError as error:
            faults.append(f"Column {name!r}: {error}")
            return None
    faults.append(
        f"Column {name!r}: expected `discover: true` beside a kind of {', '.join(kinds)}, and nothing else but, of "
        "numbers, written, and of dates, format and resolution. What is known of the column is declared without "
        "discovery."
    )
    return None
