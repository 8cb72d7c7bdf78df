"""Files that a schema's labels are read from: the data must not be among them.

Labels that are read off the records are facts of the records, and no noise covers them. Files are told apart by where
they lie, never by what they hold: that would be a decision that depends on the records.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import SchemaError
from sfumato.schema.documents import read_document


def refuse_lists_of_data(schema: object, data: object) -> None:
    """Refuse a schema whose labels, or map of a rule, are read from the data themselves.

    Args:
        schema: the path of a schema document; anything else names no file.
        data: a path, a glob, or several, maybe by name; anything else is no file.

    Raises:
        SchemaError: names the column, and what to do.
    """
    if not isinstance(schema, str | os.PathLike) or not os.path.isfile(schema):
        return
    places = list(_places(data))
    if not places:
        return
    folder = Path(schema).parent
    for owner, name in _files(read_document(Path(schema))):
        listed = folder / name
        if any(_within(listed, place) for place in places):
            raise SchemaError(
                f"Expected {owner} from a file of its own, got {name!r}, which is the data or lies in them: labels "
                "read off the records are not covered by the guarantee. Name a public list, or leave the column open "
                "with `discover: true`."
            )


def _places(data: object) -> Iterator[Path]:
    """Yield the local files and folders that are meant."""
    if isinstance(data, str | os.PathLike):
        text = os.fspath(data)
        yield from map(Path, [text, *glob.glob(text, recursive=True)] if isinstance(text, str) else [])
    elif isinstance(data, list | tuple | Mapping):
        for part in data.values() if isinstance(data, Mapping) else data:
            yield from _places(part)


def _files(document: Any) -> Iterable[tuple[str, str]]:  # noqa: ANN401 - as a file holds it
    """Yield whose labels are read from which file."""
    columns = document.get("columns") if isinstance(document, Mapping) else None
    for column, entry in columns.items() if isinstance(columns, Mapping) else ():
        for value in entry.values() if isinstance(entry, Mapping) else ():
            if isinstance(value, Mapping) and isinstance(value.get("file"), str):
                yield f"the labels of column {column!r}", value["file"]
    rules = document.get("rules") if isinstance(document, Mapping) else None
    for number, rule in enumerate(rules, 1) if isinstance(rules, list) else ():
        if isinstance(rule, Mapping) and isinstance(rule.get("map"), str):
            yield f"the map of rule {number}", rule["map"]


def _within(file: Path, place: Path) -> bool:
    """Whether a file is a place, by path or as another name of it, or lies in that folder."""
    try:
        if not file.exists() or not place.exists():
            return False
        return file.samefile(place) or (place.is_dir() and place.resolve() in file.resolve().parents)
    except (OSError, ValueError):
        return False
