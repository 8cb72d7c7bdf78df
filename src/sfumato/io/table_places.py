"""Where the tables of one place lie: the files of a folder, or the tables of a database.

folder/persons.csv, folder/visits.parquet, folder/drugs/     a file, or a folder of Parquet files, of each table
sqlite:///hospital.db, duckdb:///hospital.duckdb             a URL that names no table
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.errors import ConfigError, DataError, did_you_mean
from sfumato.io.database_urls import SCHEMES, is_whole, table_url
from sfumato.io.databases import table_names
from sfumato.io.formats import suffixes
from sfumato.io.pictures import SUFFIXES
from sfumato.io.places import scheme_of
from sfumato.io.sources import STREAMED


def tables_in(place: str, names: Sequence[str] | None = None) -> dict[str, str]:
    """Return where each table of a folder or of a database lies; no record is read.

    Args:
        place: a folder, or the URL of a database that names no table.
        names: the tables that are needed; by default all that are there. A database may have more, a folder may not.

    Raises:
        ConfigError: the place is neither; or as `open_source` of a database.
        DataError: a table is missing, has two files or is not needed.

    Example:
        >>> tables_in("sqlite:///hospital.db", ["persons", "visits"])["visits"]
        'sqlite:///hospital.db?table=visits'
    """
    scheme = scheme_of(place)
    if scheme in SCHEMES:
        return {name: table_url(place, name) for name in (table_names(place) if names is None else names)}
    if scheme is not None or not os.path.isdir(place):
        got = Path(place).name if scheme is None else f"an address of {scheme}"
        raise ConfigError(
            f"Expected several tables to be in a folder with a file of each, or in a database, got {got}. Or name the "
            "file of each: NAME=FILE, in Python {name: file}."
        )
    return _files(Path(place), names)


def holds_tables(place: str) -> bool:
    """Whether a text is a database of which it names no table, or a folder that is none of Parquet or image files."""
    scheme = scheme_of(place)
    if scheme in SCHEMES:
        return is_whole(place)
    if scheme is not None or not os.path.isdir(place):
        return False
    if all(path.suffix.lower() == ".parquet" for _, path in _entries(Path(place), ())):
        return False
    return not any(path.suffix.lower() in SUFFIXES for path in Path(place).rglob("*"))


def _files(folder: Path, names: Sequence[str] | None) -> dict[str, str]:
    label, places = f"the folder {folder.name or folder}", dict[str, str]()
    for name, path in _entries(folder, names or ()):
        if names is not None and name not in names:
            raise DataError(
                f"Expected files of the tables {', '.join(names)} in {label}, got {path.name}, which is of none."
                f"{did_you_mean(name, names)} Rename it, or move it elsewhere."
            )
        if name in places:
            raise DataError(f"Expected one file of the table {name!r} in {label}, got two. Move one elsewhere.")
        places[name] = str(path)
    absent = [name for name in names or () if name not in places]
    if absent or not places:
        wanted = f"of the table {absent[0]!r}" if absent else "of tables"
        raise DataError(f"Expected a file {wanted} in {label}, got none. Name it as the table, such as persons.csv.")
    return {name: places[name] for name in names or sorted(places)}


def _entries(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files of tables in a folder, and its folders that have a name of a table, each with that name."""
    known = sorted({*(f".{suffix}" for suffix in STREAMED), *suffixes(())}, key=len, reverse=True)
    for path in sorted(folder.iterdir()):
        suffix = next((known for known in known if path.name.lower().endswith(known)), "")
        if path.name.startswith((".", "_")) or (path.is_dir() and path.name not in names):
            continue
        if path.is_dir() or suffix:
            yield path.name if path.is_dir() else path.name[: -len(suffix)], path
