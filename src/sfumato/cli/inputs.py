"""The inputs of the command line: DATA as a path, a glob, a URL, or `-` for standard input."""

from __future__ import annotations

import glob
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato._lazy import later
from sfumato.errors import ConfigError
from sfumato.io.atomic import refuse_inputs

if TYPE_CHECKING:
    from sfumato.io import chunks, database_urls, places, sources, spool, stored, table_folders
    from sfumato.io.chunks import Source
    from sfumato.records import table_sources as record_tables
    from sfumato.schema import code_lists
    from sfumato.schema.schema import Schema
else:
    chunks, places = later("sfumato.io.chunks"), later("sfumato.io.places")
    database_urls = later("sfumato.io.database_urls")
    sources, spool, stored = later("sfumato.io.sources"), later("sfumato.io.spool"), later("sfumato.io.stored")
    table_folders = later("sfumato.io.table_folders")
    record_tables, code_lists = later("sfumato.records.table_sources"), later("sfumato.schema.code_lists")

STANDARD_INPUT = "-"

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A file, a folder of Parquet or image files, a glob, a URL, or - (standard input)."
    ),
]
TablesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="A file, a folder of Parquet or image files, a glob, a URL, or - (standard input). For several tables: a "
        "folder with a file of each, the URL of a database, or NAME=FILE for each.",
    ),
]
InputFormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="F", help="The format of standard input (-): csv (default), tsv, csv.gz, jsonl, parquet, arrow, …"
    ),
]


def open_data(data: str, input_format: str | None = None, known: Schema | None = None) -> Source:
    """Open the source that the command line names; standard input is kept in a private temporary file.

    Args:
        data: a path, a glob, a URL or `-`.
        input_format: of standard input.
        known: the schema, if there is one: it may say in which form CSV text is.

    Raises:
        ConfigError: a format without standard input, or one that is not known.
        DataError: nothing is there, or it is damaged.
    """
    csv = None if known is None else known.reader.csv
    if data != STANDARD_INPUT:
        _refuse_format(input_format)
        return sources.open_source(data, csv=csv)
    suffix = (input_format or "csv").lower().removeprefix(".")
    if suffix not in sources.STREAMED:
        raise ConfigError(f"Expected --input-format to be one of {', '.join(sources.STREAMED)}, got {input_format!r}.")
    if sys.stdin is None or sys.stdin.isatty():
        raise ConfigError("Expected records on standard input, got a terminal. Pipe a file into the command.")
    copy = spool.Spool("standard input", _copy, name=f"stdin.{suffix}")
    return sources.open_file(replace(stored.stored_file(copy.path()), kept_by=copy), chunks.DEFAULT_CHUNK_ROWS, csv)


def open_tables(data: Sequence[str], input_format: str | None = None, known: Schema | None = None) -> Source:
    """Open one table, or all tables of a schema of several: of a folder, a database, or `NAME=FILE` each.

    Raises:
        ConfigError: these are not the tables of the schema; or as `open_data`.
        DataError: as `open_data`, or a table lacks a column.
    """
    tables = None if known is None else known.database
    if tables is None:
        if len(data) != 1:
            raise ConfigError(
                f"Expected one DATA, got {len(data)}: the schema describes one table. Quote a glob; tables with keys "
                "are declared as `tables` in the schema."
            )
        if known is None and table_folders.holds_tables(data[0]):
            raise ConfigError("Expected --schema for several tables, got none. Make one: sfumato schema draft.")
        return open_data(data[0], input_format, known)
    assert known is not None
    if len(data) == 1 and data[0] != STANDARD_INPUT and data[0].partition("=")[0] not in tables.names:
        _refuse_format(input_format)
        return record_tables.open_records(data[0], known)
    texts = {name: place for name, _, place in (text.partition("=") for text in data)}
    if set(texts) != set(tables.names) or len(data) != len(texts):
        files = " ".join(f"{name}=FILE" for name in tables.names)
        raise ConfigError(f"Expected {files} as DATA, the tables of the schema, or a folder or database of them.")
    if list(texts.values()).count(STANDARD_INPUT) > 1:
        raise ConfigError("Expected one table on standard input, got several. Name files for the others.")
    opened = {
        name: open_data(place, input_format if place == STANDARD_INPUT else None, known)
        for name, place in texts.items()
    }
    return record_tables.open_records(opened, known)


def open_undescribed(data: Sequence[str], input_format: str | None = None) -> Source | dict[str, Source]:
    """Open what no schema describes yet: one table, or several by name.

    Raises:
        ConfigError: several texts are not `NAME=FILE` each; or as `open_data`.
        DataError: as `open_data`.
    """
    if len(data) == 1:
        if not table_folders.holds_tables(data[0]):
            return open_data(data[0], input_format)
        _refuse_format(input_format)
        return {name: sources.open_source(place) for name, place in table_folders.tables_in(data[0]).items()}
    texts = {name: place for name, _, place in (text.partition("=") for text in data)}
    if len(texts) < len(data) or not all(texts) or not all(texts.values()) or STANDARD_INPUT in texts.values():
        raise ConfigError(f"Expected NAME=FILE for each of several tables, got {len(data)} other texts.")
    _refuse_format(input_format)
    return {name: sources.open_source(place) for name, place in texts.items()}


def _refuse_format(input_format: str | None) -> None:
    if input_format is not None:
        raise ConfigError("Expected --input-format beside - alone: of a file, its suffix says the format.")


def refuse_data(out: Path, data: Mapping[str, str | Sequence[str] | None], **inputs: Path | None) -> None:
    """Refuse an output that is one of the inputs, or holds one.

    Args:
        out: the output.
        data: by name, what the command line reads records from.
        inputs: other files of the call.

    Raises:
        OutputError: it is one of them.
        SchemaError: labels of the schema are read from the data.
    """
    for name, text in data.items():
        for entry in [text] if isinstance(text, str) else text or []:
            for path in [*_paths(entry), *_paths(entry.partition("=")[2])]:  # of two tables, NAME=FILE
                refuse_inputs(out, **{name: path})
    refuse_inputs(out, **inputs)
    texts = [text for entry in data.values() for text in ([entry] if isinstance(entry, str) else entry or [])]
    places_named = [place for text in texts for place in (text, text.partition("=")[2]) if place]
    code_lists.refuse_lists_of_data(inputs.get("schema"), places_named)


def _paths(text: str) -> list[str]:
    """Return the local files that a text names."""
    if text in ("", STANDARD_INPUT):
        return []
    scheme = places.scheme_of(text)
    if scheme in database_urls.SCHEMES:
        wanted = database_urls.read_url(database_urls.table_url(text, "any") if database_urls.is_whole(text) else text)
        return [wanted.place] if wanted.kind in database_urls.FILES else []
    return [] if scheme is not None else [text, *glob.glob(text, recursive=True)]


def _copy(path: Path) -> None:
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
