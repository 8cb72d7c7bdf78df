"""Long lists in schema documents: labels read from a column of a CSV file, or named public lists.

    columns:
      diagnosis: {kind: categorical, categories: {file: icd.csv, column: code}, parent: {column: chapter}}
      country: {kind: categorical, categories: {list: iso-3166-1-alpha-2}}

A reference is replaced by the labels when a schema is read, so that all that comes later, releases too, holds the
labels themselves. Documents of releases are never resolved: a stranger's file must not name one of ours.

Labels that are read off the records are facts of the records, and no noise covers them. Files are told apart by where
they lie, never by what they hold: that would be a decision that depends on the records.
"""

from __future__ import annotations

import csv
import glob
import io
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.columns.facts import shown
from sfumato.errors import SchemaError
from sfumato.schema.documents import read_document, read_text

MOST_LABELS = 100_000
"""The most labels of one list: as many levels of a column have their own noisy counts."""

NAMED_LISTS: Mapping[str, tuple[str, str]] = {
    "iso-3166-1-alpha-2": ("iso-3166-1.csv", "alpha_2"),
    "iso-3166-1-alpha-3": ("iso-3166-1.csv", "alpha_3"),
    "iso-3166-1-names": ("iso-3166-1.csv", "name"),
    "iso-4217": ("iso-4217.csv", "code"),
    "days": ("days.csv", "name"),
    "months": ("months.csv", "name"),
}
"""The named lists: file of the folder `lists`, and its column."""

_KINDS = ("categorical", "ordinal", "set")
_LISTED = ("categories", "items")
_FOLDER = Path(__file__).parent / "lists"
_DELIMITERS = (",", ";", "\t")


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


def named_list(name: str) -> tuple[str, ...]:
    """Return the labels of a named public list.

    Raises:
        SchemaError: there is no such list.

    Example:
        >>> named_list("days")[:2]
        ('Monday', 'Tuesday')
    """
    if not isinstance(name, str) or name not in NAMED_LISTS:
        known = ", ".join(NAMED_LISTS)
        raise SchemaError(f"Expected list to be one of {known}, got {shown(name)}. Or name a file and its column.")
    file, column = NAMED_LISTS[name]
    return _Table.read(_FOLDER, file).labels(column)


def has_reference(entry: object) -> bool:
    """Whether a column's entry refers to a file or a named list.

    Example:
        >>> has_reference({"kind": "categorical", "categories": {"list": "days"}})
        True
    """
    if not isinstance(entry, Mapping) or entry.get("kind") not in _KINDS:  # others give these keys a meaning of theirs
        return False
    return "parent" in entry or any(_refers(entry.get(key)) for key in _LISTED)


def with_lists(entry: object, base: Path | None) -> object:
    """Return a column's entry with the labels in place of every reference.

    Args:
        entry: what stands under a column's name.
        base: the folder that paths are relative to; None where none is known.

    Raises:
        SchemaError: a reference is not well formed, or its file, column or list is missing or unfit.
    """
    if not isinstance(entry, Mapping) or not has_reference(entry):
        return entry
    resolved = {key: value for key, value in entry.items() if key != "parent"}
    tables: dict[str, _Table] = {}
    for key in _LISTED:
        if _refers(entry.get(key)):
            resolved[key] = list(_labels(key, entry[key], base, tables))
    if "parent" in entry:
        resolved["parents"] = _parents(entry, tables)
    return resolved


@dataclass(frozen=True, slots=True)
class _Table:
    """A CSV file with a header.

    Attributes:
        file: what its schema calls it.
        text: all of it.
    """

    file: str
    text: str

    @classmethod
    def read(cls, folder: Path | None, file: str, what: str = "") -> _Table:
        """Read a file of the folder of a document, whose writer could name any other file of whoever reads it."""
        if folder is None:
            raise SchemaError(
                f"Expected {what} without a file, got a path and no folder that it is relative to. Load the schema "
                "from its file, or pass base=... to from_dict."
            )
        path = folder / file
        if not path.resolve().is_relative_to(folder.resolve()):
            raise SchemaError(
                f"Expected a file in the folder of the schema or in one below, got {shown(file)}, which lies outside. "
                "Copy it there."
            )
        return cls(file, read_text(path))

    def column(self, name: str) -> list[tuple[int, str]]:
        """Return the cells of a column, one more than a list may have at the most, each with the line it ends in."""
        for delimiter in _DELIMITERS:
            rows = csv.reader(io.StringIO(self.text, newline=""), delimiter=delimiter, strict=True)
            fault = "a mistake"
            try:
                header = [cell.strip() for cell in next(rows, [])]
                if header.count(name) == 1:
                    place = header.index(name)
                    # a blank line is no row; a row that is too short has an empty cell
                    cells = ((rows.line_num, row[place].strip() if place < len(row) else "") for row in rows if row)
                    return list(itertools.islice(cells, MOST_LABELS + 1))
                fault = ""
            except csv.Error:
                fault = f"a mistake in line {rows.line_num}"
            if fault:
                raise SchemaError(f"Expected {self.file} to be well-formed CSV, got {fault}. Correct the file.")
        # the header is not shown: given a data file by mistake, it may be a record
        raise SchemaError(
            f"Expected {self.file} to begin with a line of column names, {shown(name)} once among them, got none such. "
            "Correct column, or the file."
        )

    def labels(self, name: str) -> tuple[str, ...]:
        """Return the cells of a column as different labels."""
        cells = self.filled(name)
        known: set[str] = set()
        for line, label in cells:
            if label in known:
                raise SchemaError(
                    f"Expected each label of {shown(name)} in {self.file} once, got one again in line {line}. "
                    "Remove the line."
                )
            known.add(label)
        return tuple(label for _, label in cells)

    def filled(self, name: str) -> list[tuple[int, str]]:
        """Return the cells of a column, none of them empty, at least one and not too many."""
        cells = self.column(name)
        if not 1 <= len(cells) <= MOST_LABELS:
            raise SchemaError(
                f"Expected 1 to {MOST_LABELS:,} labels in column {shown(name)} of {self.file}, "
                f"got {'more' if cells else 'none'}. "
                "Is it a list of codes?"
            )
        empty = next((line for line, label in cells if not label), None)
        if empty is not None:
            raise SchemaError(
                f"Expected a label in every line of column {shown(name)} of {self.file}, got none in line {empty}. "
                "Fill or remove the line; what is missing is declared by `nullable: true`."
            )
        return cells


def with_map(rule: object, base: Path | None) -> object:
    """Return a rule with the map itself in place of the file that it is in.

    The file is CSV with a line of column names: the two columns of the rule.

    Raises:
        SchemaError: the file or one of the columns is missing or unfit, or maps a value twice.
    """
    if not isinstance(rule, Mapping) or "derived" not in rule or not isinstance(rule.get("map"), str):
        return rule
    table = _Table.read(base, rule["map"], "map")
    keys, labels = (table.filled(str(rule.get(key))) for key in ("from", "derived"))
    mapping: dict[str, str] = {}
    for (line, key), (_, label) in zip(keys, labels, strict=True):
        if key in mapping:
            raise SchemaError(f"Expected each value once in {rule['map']}, got one again in line {line}. Remove it.")
        mapping[key] = label
    return {**rule, "map": mapping}


def _refers(value: object) -> bool:
    return isinstance(value, Mapping) and ("file" in value or "list" in value)


def _labels(key: str, reference: Mapping[str, Any], base: Path | None, tables: dict[str, _Table]) -> Sequence[str]:
    """Return the labels that a reference means; the table of a file joins `tables`."""
    if set(reference) == {"list"}:
        return named_list(reference["list"])
    if set(reference) != {"file", "column"} or not all(isinstance(word, str) for word in reference.values()):
        raise SchemaError(
            f"Expected {key} to be a list, {{file: codes.csv, column: code}} or {{list: iso-4217}}, got a mapping of "
            f"{', '.join(map(shown, reference))}. Name a file and its column as text, or a list."
        )
    tables[key] = _Table.read(base, reference["file"], key)
    return tables[key].labels(reference["column"])


def _parents(entry: Mapping[str, Any], tables: Mapping[str, _Table]) -> list[str]:
    """Return the parent of each category, from the file that the categories are read from."""
    parent, table = entry["parent"], tables.get("categories")
    if "parents" in entry:
        raise SchemaError("Expected either parent or parents, got both. Remove one.")
    if table is None:
        raise SchemaError(
            "Expected categories from a file beside parent, got none. Write parents: {code: its parent} instead."
        )
    is_reference = isinstance(parent, Mapping) and set(parent) in ({"column"}, {"file", "column"})
    if not is_reference or not isinstance(parent["column"], str) or parent.get("file", table.file) != table.file:
        raise SchemaError(
            f"Expected parent to name a column of the same file, such as {{column: chapter}}, got {shown(parent)}. Put "
            f"the parents into {table.file}, or write parents: {{code: its parent}}."
        )
    return [label for _, label in table.filled(parent["column"])]
