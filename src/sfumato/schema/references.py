"""Short forms of a schema document, written out: bounds and labels alone, names of lists, files of codes, ranges.

Writing out looks at the document and at the files that it names: at no source and at no record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import SchemaError
from sfumato.schema.code_lists import with_lists, with_map
from sfumato.schema.short_facts import column_entry, with_unit

MOST_COLUMNS = 10_000
"""The most columns that one range stands for."""
MOST_WRITTEN = 4_000_000
"""The most columns and labels of all ranges and lists, each written out."""

_RANGE = re.compile(r"(?s)(.*?)(0*[0-9]{1,9})\.\.(.*?)(0*[0-9]{1,9})")


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
        if size > MOST_WRITTEN:
            raise SchemaError(
                f"Expected at most {MOST_WRITTEN:,} columns and labels, written out, got more up to column {key!r}. "
                "Shorten its range or its list."
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
    match = _RANGE.fullmatch(key) if isinstance(key, str) else None
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
