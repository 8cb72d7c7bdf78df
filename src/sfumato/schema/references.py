"""Short forms of a schema document, written out: bounds and labels alone, names of lists, files of codes, ranges.

Writing out looks at the document and at the files that it names: at no source and at no record.

    {"age": (0, 120), "day": ("2024-01-01", "2024-12-31"), "country": ["AT", "DE"], "returned": "boolean"}

Two ends in a tuple are bounds, a list holds labels, a text names a kind, and `range` whole numbers.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeAlias, get_args

from sfumato.columns.facts import shown
from sfumato.columns.kinds import KINDS, ColumnKind, kind_class, kind_names
from sfumato.columns.open import Open, OpenKind
from sfumato.entry_points import is_package
from sfumato.errors import ConfigError, SchemaError, did_you_mean
from sfumato.schema.code_lists import with_lists, with_map
from sfumato.schema.faults import unknown_keys
from sfumato.schema.sources import without_beside

Bound: TypeAlias = float | str | date
ColumnFacts: TypeAlias = str | tuple[Bound, Bound] | range | Sequence[str | int] | Mapping[str, Any] | ColumnKind
"""What is public of one column: bounds, labels, a kind's name, its entry in a schema file, or the kind itself."""
MOST_COLUMNS = 10_000
"""The most columns of a document, ranges written out."""
MOST_WRITTEN = 4_000_000
"""The most columns and labels of all ranges and lists, each written out."""

_LONGEST_RANGE = 1_000  # characters: longer keys are none, and no pattern is tried on them
_RANGE = re.compile(r"(?s)(.*?)(0*[0-9]{1,9})\.\.(.*?)(0*[0-9]{1,9})")


def read_kind(name: str, entry: object, faults: list[str], beside: Mapping[str, dict[str, Any]]) -> ColumnKind | None:
    """Return the kind of one entry under `columns`, or note every fault in it; `source` and `missing` join `beside`."""
    if isinstance(entry, str):
        entry = {"kind": entry}
    if isinstance(entry, Mapping) and "discover" in entry:
        return _read_open_kind(name, without_beside(entry, beside, name), faults)
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
    entry = without_beside(entry, beside, name, [fact.name for fact in known])
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
    also = {"written", "format", "resolution", "atoms"}
    if entry["discover"] is True and set(entry) - also == {"kind", "discover"} and entry["kind"] in kinds:
        try:
            return Open(**{key: value for key, value in entry.items() if key != "discover"})
        except SchemaError as error:
            faults.append(f"Column {name!r}: {error}")
            return None
    faults.append(
        f"Column {name!r}: expected `discover: true` beside a kind of {', '.join(kinds)}, and nothing else but, of "
        "numbers, written and atoms, and of dates, format and resolution. What is known of the column is declared "
        "without discovery."
    )
    return None


def column_entry(facts: object) -> object:
    """Return the entry of a column in a schema document; what is no short form stays, for its reader.

    Raises:
        SchemaError: a list that may be bounds or labels, or a tuple that is neither.

    Example:
        >>> column_entry((0, 120)), column_entry(["AT", "DE"])
        ({'kind': 'integer', 'lower': 0, 'upper': 120}, {'kind': 'categorical', 'categories': ['AT', 'DE']})
    """
    if isinstance(facts, ColumnKind):
        return facts.to_dict()
    if isinstance(facts, range):
        if len(facts) < 2 or facts.step != 1:
            raise SchemaError(f"expected a range of whole numbers one by one, got {facts!r}. Write (lower, upper).")
        return {"kind": "integer", "lower": facts[0], "upper": facts[-1]}
    if isinstance(facts, tuple):
        return _bounded(facts)
    if isinstance(facts, list):
        if len(facts) == 2 and all(isinstance(end, Real) and not isinstance(end, bool) for end in facts):
            raise SchemaError(
                f"expected bounds or labels, got a list of two numbers, which may be either. Write bounds as a tuple, "
                f"({facts[0]}, {facts[1]}), and labels as {{'kind': 'categorical', 'categories': {facts}}}."
            )
        return {"kind": "categorical", "categories": facts}
    return facts


def _bounded(ends: tuple[Any, ...]) -> dict[str, Any]:
    if len(ends) == 2 and not any(isinstance(end, bool) for end in ends):
        kinds = (("integer", Integral), ("continuous", Real), ("datetime", date), ("datetime", str))
        for kind, type_ in kinds:
            if all(isinstance(end, type_) for end in ends):
                return {"kind": kind, "lower": ends[0], "upper": ends[1]}
    got = f"{len(ends)} values" if len(ends) != 2 else " and ".join(map(shown, ends))
    raise SchemaError(f"expected two bounds in a tuple, numbers or dates, got {got}. Write labels as a list.")


def with_unit(document: Mapping[str, Any], columns: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Return a schema document with its unit written out. Of a name alone, one row of each unit counts.

    Example:
        >>> with_unit({"unit": "customer"}, {})
        {'unit': {'column': 'customer', 'max_rows': 1}, 'columns': {'customer': 'identifier'}}
    """
    unit = document.get("unit")
    if not isinstance(unit, str):
        return document
    columns = {**columns, unit: columns.get(unit, "identifier")}
    return {**document, "unit": {"column": unit, "max_rows": 1}, "columns": columns}


def with_references(document: Mapping[str, Any], base: str | Path | None) -> Mapping[str, Any]:
    """Return a schema document with every short form, every reference and every range of columns written out.

    Args:
        document: as a schema file holds it; what is no document stays, and is refused by its reader.
        base: the folder that paths are relative to; None where none is known.

    Raises:
        SchemaError: names every column with a fault in a reference or a range.

    Example:
        >>> with_references({"columns": {"q1..q2": "boolean"}}, None)
        {'columns': {'q1': 'boolean', 'q2': 'boolean'}}
    """
    columns = document.get("columns") if isinstance(document, Mapping) else None
    if not isinstance(columns, Mapping):
        return document
    folder = None if base is None else Path(base)
    written: dict[Any, Any] = {}
    faults: list[str] = []
    size = 0
    document = with_unit(document, columns)
    for key, entry in document["columns"].items():
        try:
            resolved = with_lists(column_entry(entry), folder)
            names = list(_names(key))
        except SchemaError as error:
            faults.append(f"Column {key!r}: {error}")
            continue
        size += len(names) * _size(resolved)
        if len(written) + len(names) > MOST_COLUMNS or size > MOST_WRITTEN:
            raise SchemaError(
                f"Expected at most {MOST_COLUMNS:,} columns, with {MOST_WRITTEN:,} labels, got more up to column "
                f"{key!r}. Shorten its range or its list."
            )
        taken = [name for name in names if name in written or (name != key and name in columns)]
        if taken:
            faults.append(f"Column {taken[0]!r}: expected one entry, got also the range {key!r}. Shorten the range.")
        written |= dict.fromkeys(names, resolved)
    rules = document.get("rules", ())
    resolved_rules = []
    for number, rule in enumerate(rules, 1) if isinstance(rules, list | tuple) else ():
        try:
            resolved_rules.append(with_map(rule, folder))
        except SchemaError as error:
            faults.append(f"Rule {number}: {error}")
    if faults:
        raise SchemaError(faults[0] if len(faults) == 1 else "\n".join(["Expected a schema without faults:", *faults]))
    return {**document, "columns": written, **({"rules": resolved_rules} if resolved_rules else {})}


def _size(entry: object) -> int:
    """Return how many values an entry holds in its lists, and one for itself."""
    facts = entry.values() if isinstance(entry, Mapping) else ()
    return 1 + sum(len(fact) for fact in facts if isinstance(fact, list | Mapping))


def _names(key: object) -> Iterator[object]:
    """Yield the columns that a key names: itself, or those of a range such as `drug_1..drug_23`."""
    match = _RANGE.fullmatch(key) if isinstance(key, str) and len(key) <= _LONGEST_RANGE else None
    if match is None or match[1] != match[3]:
        yield key
        return
    stem, first, last = match[1], match[2], match[4]
    start, end, width = int(first), int(last), len(first) if first.startswith("0") else 1
    if not start < end or (f"{start:0{width}d}", f"{end:0{width}d}") != (first, last):
        raise SchemaError(
            f"Expected a range that counts up in one way of writing, such as {stem}1..{stem}12 or {stem}01..{stem}12, "
            f"got {key!r}. Correct its ends."
        )
    if end - start >= MOST_COLUMNS:
        raise SchemaError(f"Expected a range of at most {MOST_COLUMNS:,} columns, got {key!r}. Shorten it.")
    for number in range(start, end + 1):
        yield f"{stem}{number:0{width}d}"
