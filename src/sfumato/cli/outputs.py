"""Where `sample` writes: a file, a folder, or `-` for standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sfumato._lazy import later
from sfumato.cli.ending import last_output
from sfumato.cli.output import notes, say
from sfumato.errors import ConfigError
from sfumato.io.atomic import refuse_existing, refuse_inputs

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.io import folders, places, sinks, table_folders
    from sfumato.io.csv_form import CsvOutput
    from sfumato.release import unique_rows
else:
    folders, places, sinks = later("sfumato.io.folders"), later("sfumato.io.places"), later("sfumato.io.sinks")
    table_folders = later("sfumato.io.table_folders")
    unique_rows = later("sfumato.release.unique_rows")

STANDARD_OUTPUT = "-"
WriteTables: TypeAlias = "Callable[[Iterable[Mapping[str, pa.Table]], CsvOutput], None]"
Write: TypeAlias = "Callable[[Iterator[pa.Table], Mapping[str, str], CsvOutput], None]"


_NOT_FOR_SPREADSHEETS = "Expected CSV to make safe for spreadsheets, got another --format. Leave the option out."


class SampleFormat(StrEnum):
    """Formats of what has no suffix."""

    csv = "csv"
    parquet = "parquet"
    json = "json"


class UniqueRowsChoice(StrEnum):
    """The fate of rows that occur once in a sample."""

    keep = "keep"
    drop = "drop"


def sample_writer(
    out: str, form: SampleFormat | None, *, release: Path, overwrite: bool, spreadsheet: bool
) -> tuple[Write, str]:
    """Check where samples go; return the function that writes them there, and what to call it.

    Raises:
        ConfigError: the place does not go with the format.
        OutputError: it is taken, or the release itself.
    """
    if out == STANDARD_OUTPUT:
        return _to_standard_output(form or SampleFormat.csv, spreadsheet), ""
    if places.scheme_of(out) is not None:
        raise ConfigError("Expected --out to name a file or a folder, got a URL: write CSV or Parquet, and load that.")
    return _to_path(Path(out), form, release=release, overwrite=overwrite, spreadsheet=spreadsheet), out


def tell_sampled(name: str, release: Path, *, report: bool = True) -> None:
    """Say where samples are, unless they went to standard output, and what comes next: a report, if there are any."""
    if name:
        say(f"Wrote {name}.{f' Next: sfumato report {release} --out report.html' if report else ''}")
    else:
        notes.print("Wrote the sample to standard output.")


def tell_dropped(tell: Callable[[str], None], unique: UniqueRowsChoice) -> None:
    """Say that unique rows were dropped, if they were."""
    if unique is UniqueRowsChoice.drop:
        tell(f"{unique_rows.FOR_EYES[0].upper()}{unique_rows.FOR_EYES[1:]}.")


def tables_writer(
    out: str, form: SampleFormat | None, *, release: Path, overwrite: bool, spreadsheet: bool
) -> WriteTables:
    """Check the folder where samples of several tables go; return the function that writes them there.

    Raises:
        ConfigError: the place is none, or does not go with the format.
        OutputError: it is taken, or holds the release itself.
    """
    if out == STANDARD_OUTPUT:
        raise ConfigError("Expected --out to name a folder for the tables of the release, got '-'.")
    if form is SampleFormat.json:
        raise ConfigError("Expected several tables as csv or parquet, got --format json. Name one of these.")
    if spreadsheet and form is SampleFormat.parquet:
        raise ConfigError(_NOT_FOR_SPREADSHEETS)
    place = Path(out)
    table_folders.require_folder(place)
    refuse_inputs(place, release=release)
    refuse_existing(place, overwrite=overwrite, marker=folders.MARKER)

    def write(batches: Iterable[Mapping[str, pa.Table]], csv: CsvOutput) -> None:
        with last_output(place):
            table_folders.write_tables(
                batches, place, form=(form or SampleFormat.csv).value, overwrite=overwrite, spreadsheet=spreadsheet,
                csv=csv,
            )  # fmt: skip

    return write


def tell_tables(out: str, names: Sequence[str], form: SampleFormat | None) -> None:
    """Say where samples of several tables are."""
    files = [str(Path(out) / f"{name}.{(form or SampleFormat.csv).value}") for name in names]
    say(f"Wrote {' and '.join(files)}.")


def _to_standard_output(form: SampleFormat, spreadsheet: bool) -> Write:
    if spreadsheet and form is not SampleFormat.csv:
        raise ConfigError(_NOT_FOR_SPREADSHEETS)
    if form is SampleFormat.parquet and sys.stdout.isatty():
        raise ConfigError("Expected a file or a pipe for Parquet on standard output, got a terminal.")

    def write(batches: Iterator[pa.Table], keys: Mapping[str, str], csv: CsvOutput) -> None:
        gone = False
        try:
            sinks.write_stream(batches, sys.stdout.buffer, form.value, spreadsheet=spreadsheet, csv=csv)
        except BrokenPipeError:
            gone = True
        if gone:  # nobody reads it any more; what the interpreter flushes at the end goes nowhere
            sys.stdout = None  # type: ignore[assignment]
            raise SystemExit(1)

    return write


def _to_path(path: Path, form: SampleFormat | None, *, release: Path, overwrite: bool, spreadsheet: bool) -> Write:
    misplaced = ConfigError(
        f"Expected --format beside - or, as parquet, beside a folder without a suffix, got {path.name!r}."
    )
    if form is not None and path.suffix:
        raise misplaced
    if form is not None and spreadsheet:
        raise ConfigError(_NOT_FOR_SPREADSHEETS)
    refuse_inputs(path, release=release)
    refuse_existing(path, overwrite=overwrite, marker=sinks.output_marker(path))

    def write(batches: Iterator[pa.Table], keys: Mapping[str, str], csv: CsvOutput) -> None:
        if form in {SampleFormat.csv, SampleFormat.json}:  # the first is of several tables alone
            raise misplaced
        with last_output(path):
            if form is SampleFormat.parquet:
                sinks.write_parts(batches, path, overwrite=overwrite)
            else:
                sinks.write_table(batches, path, overwrite=overwrite, keys=keys, spreadsheet=spreadsheet, csv=csv)

    return write
