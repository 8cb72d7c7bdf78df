"""Several tables to one folder, a file each, written side by side as their batches come."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa

from sfumato._lazy import later
from sfumato.errors import ConfigError
from sfumato.io.atomic import atomic_path, write_or_refuse
from sfumato.io.csv_form import CsvOutput
from sfumato.io.csv_lines import as_in_file, csv_body, csv_header
from sfumato.io.folders import MARKER

if TYPE_CHECKING:
    import pyarrow.parquet as pq
else:  # it brings ssl
    pq = later("pyarrow.parquet")

TableFormat: TypeAlias = Literal["csv", "parquet"]
_Write: TypeAlias = Callable[[pa.Table], None]


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
