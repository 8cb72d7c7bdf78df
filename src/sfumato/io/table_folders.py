"""Several tables: where those of one place lie, and a folder with a file of each, written side by side.

folder/persons.csv, folder/visits.parquet, folder/drugs/     a file, or a folder of Parquet files, of each table
sqlite:///hospital.db, duckdb:///hospital.duckdb             a URL that names no table
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa

from sfumato._lazy import later
from sfumato.errors import ConfigError, DataError, did_you_mean
from sfumato.io.atomic import atomic_path, write_or_refuse
from sfumato.io.csv import as_in_file, csv_body, csv_header
from sfumato.io.csv_form import CsvOutput
from sfumato.io.database_urls import SCHEMES, is_whole, table_url
from sfumato.io.databases import table_names
from sfumato.io.folders import MARKER
from sfumato.io.formats import suffixes
from sfumato.io.pictures import SUFFIXES
from sfumato.io.places import scheme_of
from sfumato.io.sources import STREAMED

if TYPE_CHECKING:
    import pyarrow.parquet as pq
else:  # it brings ssl
    pq = later("pyarrow.parquet")


TableFormat: TypeAlias = Literal["csv", "parquet"]
_Write: TypeAlias = Callable[[pa.Table], None]


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


def require_folder(folder: Path) -> None:
    """Refuse the name of a single file.

    Raises:
        ConfigError: the path has a suffix.
    """
    if folder.suffix:
        raise ConfigError(f"Expected a folder without a suffix for several tables, got {folder.name!r}. Rename it.")


def write_tables(
    batches: Iterable[Mapping[str, pa.Table]],
    folder: Path,
    *,
    form: TableFormat = "csv",
    overwrite: bool = False,
    spreadsheet: bool = False,
    csv: CsvOutput | None = None,
) -> None:
    """Write tables to a new folder, `folder/NAME.csv` each, whole or not at all.

    Args:
        batches: at least one; each has the tables of the first, of the same columns and types.
        folder: where to write; without a suffix.
        form: of the files.
        overwrite: whether an existing folder that Sfumato wrote may be replaced.
        spreadsheet: for CSV: whether an apostrophe comes before text that a spreadsheet would compute as a formula.
        csv: for CSV: delimiter, encoding, and how some columns are written.

    Raises:
        ConfigError: the path has a suffix, or there is no batch.
        OutputError: the folder exists already, or cannot be written.
    """
    require_folder(folder)
    if spreadsheet and form != "csv":
        raise ConfigError(f"Expected CSV to make safe for spreadsheets, got {form}. Leave the option out.")
    output = csv or CsvOutput()
    with atomic_path(folder, overwrite=overwrite, marker=MARKER) as partial:
        write_or_refuse(folder, lambda: _write(batches, partial, form, output, spreadsheet))


def _write(
    batches: Iterable[Mapping[str, pa.Table]], folder: Path, form: TableFormat, output: CsvOutput, spreadsheet: bool
) -> None:
    folder.mkdir()
    (folder / MARKER).touch()
    writers: dict[str, _Write] = {}
    with contextlib.ExitStack() as stack:
        for batch in batches:
            for name, table in batch.items():
                if name not in writers:
                    path = folder / f"{name}.{form}"
                    opened = _parquet if form == "parquet" else _csv
                    writers[name] = opened(path, table, stack, output, spreadsheet)
                writers[name](table)
    if not writers:
        raise ConfigError("Expected at least one batch to write, got none. Pass empty tables.")


def _parquet(path: Path, first: pa.Table, stack: contextlib.ExitStack, output: CsvOutput, spreadsheet: bool) -> _Write:
    del output, spreadsheet
    writer = stack.enter_context(pq.ParquetWriter(path, first.schema, compression="zstd"))
    return lambda table: writer.write_table(table.cast(first.schema))


def _csv(path: Path, first: pa.Table, stack: contextlib.ExitStack, output: CsvOutput, spreadsheet: bool) -> _Write:
    file = stack.enter_context(path.open("xb"))
    file.write(csv_header(first.column_names, output.form))
    return lambda table: file.writelines(csv_body(as_in_file(table, output, spreadsheet=spreadsheet), output.form))
