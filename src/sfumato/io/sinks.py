"""Writing tables and images a batch at a time, whole or not at all."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato._lazy import later
from sfumato.errors import ConfigError
from sfumato.io.atomic import atomic_path, refuse_existing, write_or_refuse
from sfumato.io.baskets import holds_sets, write_csr, write_dat, write_npy
from sfumato.io.chunks import Chunk, Column
from sfumato.io.csv import as_in_file, csv_body, csv_header
from sfumato.io.csv_form import DELIMITER_OF_SUFFIX, CsvForm, CsvOutput
from sfumato.io.folders import MARKER, write_pictures
from sfumato.io.formats import format_of, suffixes
from sfumato.io.image_arrays import array_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq
else:  # it brings ssl
    pq = later("pyarrow.parquet")

__all__ = ["Batch", "atomic_path", "output_marker", "refuse_existing", "write_parts", "write_stream", "write_table"]

Batch: TypeAlias = pa.Table | Chunk

_PLAIN_CSV = CsvForm()
PART_ROWS = 1_000_000
"""Rows of one file of a folder of Parquet."""


def output_marker(path: str | os.PathLike[str]) -> str | None:
    """Return the file by which an output at this path is known as ours, if it is a folder: it has no suffix."""
    return None if Path(path).suffix else MARKER


def write_table(
    batches: Iterable[Batch],
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    keys: Mapping[str, str] | None = None,
    spreadsheet: bool = False,
    csv: CsvOutput | None = None,
) -> None:
    """Write batches to a file, or images to a folder of PNG files, a batch at a time.

    Every batch has the columns of the first, of the same types. In a CSV file a missing value is
    an empty cell; text is quoted where it has to be.

    Args:
        batches: tables, or chunks with image columns; at least one, which may have no rows.
        path: where to write; its suffix says the format, `.dat` for sets only, or one that an installed package
            brings; without one it is a folder `path/LABEL/000001.png`.
        overwrite: whether an existing file may be replaced.
        keys: for `.npz`: column name to key (`Source.keys`); a column not in it keeps its name.
        spreadsheet: for `.csv` and `.tsv`: whether an apostrophe comes before text that a spreadsheet would compute as
            a formula.
        csv: for `.csv` and `.tsv`: its encoding, for `.csv` its delimiter, and how some columns are written; by default
            a comma and UTF-8.

    Raises:
        ConfigError: the suffix is unknown, there is no batch, or a column does not fit the format.
        OutputError: the file exists already, or cannot be written.
    """
    path = Path(path)
    write = _writer(path)
    separated = DELIMITER_OF_SUFFIX.get(path.suffix.lower())
    is_text = _WRITERS.get(path.suffix.lower()) is _write_csv
    if spreadsheet and not is_text:
        raise ConfigError(
            f"Expected a .csv file to make safe for spreadsheets, got {path.name!r}. Leave the option out."
        )
    if is_text:
        output = csv or CsvOutput()
        if separated is not None:
            output = replace(output, form=replace(output.form, delimiter=separated))
        batches = (as_in_file(_as_table(batch), output, spreadsheet=spreadsheet) for batch in batches)
        write = partial(_write_csv, form=output.form)
    with atomic_path(path, overwrite=overwrite, marker=output_marker(path)) as unfinished:
        write_or_refuse(path, lambda: write(_alike(batches), unfinished, keys or {}))


def write_parts(batches: Iterable[Batch], folder: Path, *, overwrite: bool = False, rows: int = PART_ROWS) -> None:
    """Write batches to a new folder of Parquet files, `part-00000.parquet` and on, whole or not at all.

    Args:
        batches: tables of one form, at least one.
        folder: where to write.
        overwrite: whether an existing folder that Sfumato wrote may be replaced.
        rows: of a part, but for the last; part i holds the rows from i · rows on.

    Raises:
        ConfigError: there is no batch.
        OutputError: the folder exists already, or cannot be written.
    """
    with atomic_path(folder, overwrite=overwrite, marker=MARKER) as partial:
        write_or_refuse(folder, lambda: _write_parts(_alike(batches), partial, rows))


def write_stream(
    batches: Iterable[Batch], stream: IO[bytes], form: str, *, spreadsheet: bool = False, csv: CsvOutput | None = None
) -> None:
    """Write batches to an open stream as they come, as `csv`, `parquet`, or `json`: an object a line.

    Raises:
        ConfigError: there is no batch, or a column does not fit the format.
        OSError: the stream takes no more.
    """
    output = csv or CsvOutput()
    tables = map(_as_table, _alike(batches))
    if form == "csv":
        tables = (as_in_file(table, output, spreadsheet=spreadsheet) for table in tables)
    if form == "parquet":
        _to_parquet(tables, pa.PythonFile(stream, "w"))
    elif form == "json":
        for row in itertools.chain.from_iterable(table.to_pylist() for table in tables):
            stream.write(f"{json.dumps(row, ensure_ascii=False, allow_nan=False, default=_moment)}\n".encode())
    else:
        _to_csv(tables, stream, output.form)
    stream.flush()


def _moment(cell: Any) -> str:  # noqa: ANN401 - whatever Arrow has that JSON has not
    """Return a date or a time as JSON has it."""
    if not hasattr(cell, "isoformat"):
        raise ConfigError("Expected numbers, text and dates to write as JSON, got other cells. Name another format.")
    return cell.isoformat()


def _to_parquet(tables: Iterator[pa.Table], where: Path | pa.PythonFile) -> None:
    first = next(tables)
    with pq.ParquetWriter(where, first.schema, compression="zstd") as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table.cast(first.schema))


def _to_csv(tables: Iterator[pa.Table], file: IO[bytes], form: CsvForm) -> None:
    first = next(tables)
    file.write(csv_header(first.column_names, form))
    for table in itertools.chain([first], tables):
        file.writelines(csv_body(table, form))


def _write_parts(batches: Iterator[Batch], folder: Path, rows: int) -> None:
    folder.mkdir()
    (folder / MARKER).touch()
    first = next(batches)
    schema = _as_table(first).schema
    part, room = 0, rows
    writer = pq.ParquetWriter(folder / _part_name(part), schema, compression="zstd")
    try:
        for batch in itertools.chain([first], batches):
            table = _as_table(batch).cast(schema)
            while table.num_rows > room:
                writer.write_table(table.slice(0, room))
                writer.close()
                table, part, room = table.slice(room), part + 1, rows
                writer = pq.ParquetWriter(folder / _part_name(part), schema, compression="zstd")
            writer.write_table(table)
            room -= table.num_rows
    finally:
        writer.close()


def _part_name(part: int) -> str:
    return f"part-{part:05d}.parquet"


def _writer(path: Path) -> Callable[[Iterator[Batch], Path, Mapping[str, str]], None]:
    suffix = path.suffix.lower()
    outside = format_of(suffix, _WRITERS)
    if outside is not None and outside.write is not None:
        write = outside.write
        return lambda batches, partial, _: write(map(_as_table, batches), partial)
    if suffix in _WRITERS:
        return _WRITERS[suffix]
    known = ", ".join(suffixes(_WRITERS))
    if outside is not None:
        raise ConfigError(f"Expected a format that can be written, got {path.name!r}: {suffix} files are for reading.")
    rule = f"Expected a {known} file to write, or for images a folder without a suffix, got {path.name!r}"
    raise ConfigError(f"{rule}. Choose one of these.")


def _alike(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Pass the batches on, but refuse none at all, and columns other than the first batch's."""
    first: list[str] | None = None
    for batch in batches:
        names = list(_columns(batch))
        first = names if first is None else first
        if names != first:
            raise ConfigError(f"Expected every batch to have the columns {first}, got {names}.")
        yield batch
    if first is None:
        raise ConfigError("Expected at least one batch to write, got none. Pass an empty table.")


def _as_table(batch: Batch) -> pa.Table:
    """A batch as a table; images become a tensor column."""
    if isinstance(batch, pa.Table):
        return batch
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray
    columns = batch.columns.items()
    return pa.table({n: tensors(np.ascontiguousarray(c)) if isinstance(c, np.ndarray) else c for n, c in columns})


def _write_csv(batches: Iterator[Batch], path: Path, keys: Mapping[str, str], form: CsvForm = _PLAIN_CSV) -> None:
    with path.open("xb") as file:
        _to_csv(map(_as_table, batches), file, form)


def _write_npz(batches: Iterator[Batch], path: Path, keys: Mapping[str, str]) -> None:
    """Spool each column to a nameless file: an array's header comes first, and says n."""
    first = next(batches)
    if isinstance(first, pa.Table) and holds_sets(first):
        write_csr(first, map(_as_table, batches), path)
        return
    batches = itertools.chain([first], batches)
    with contextlib.ExitStack() as stack:
        spools: dict[str, _Spool] = {}
        for batch in batches:
            for name, column in _columns(batch).items():
                if name not in spools:
                    file = stack.enter_context(tempfile.TemporaryFile(dir=path.parent))
                    spools[name] = _Spool(name, file)
                spools[name].append(column)
        archive = stack.enter_context(zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED))
        for name, spool in spools.items():
            assert spool.dtype is not None  # append came first
            write_npy(archive, keys.get(name, name), spool.dtype, (spool.rows, *spool.shape), spool.file)


def _columns(batch: Batch) -> Mapping[str, Column]:
    if isinstance(batch, Chunk):
        return batch.columns
    return dict(zip(batch.column_names, batch.columns, strict=True))


@dataclass(slots=True)
class _Spool:
    """The rows of one array, in a file, until their number is known."""

    name: str
    file: IO[bytes]
    rows: int = 0
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()

    def append(self, column: Column) -> None:
        if not isinstance(column, np.ndarray) and column.null_count:
            rule = f"Expected no missing values in an .npz file, got some in column {self.name!r}"
            raise ConfigError(f"{rule}. Write .parquet.")
        array = array_of(column)
        if array.dtype.hasobject:
            rule = f"Expected numbers or text in an .npz file, got {self.name!r} of Python objects"
            raise ConfigError(f"{rule}. Write .parquet.")
        if self.dtype is None:
            self.dtype, self.shape = array.dtype, array.shape[1:]
        if array.dtype.kind == "U" and array.dtype.itemsize > self.dtype.itemsize:
            self._widen(array.dtype)
        if array.dtype.kind != self.dtype.kind or array.shape[1:] != self.shape:
            raise ConfigError(f"Expected one type and shape in all batches, got several for column {self.name!r}.")
        self.file.write(np.ascontiguousarray(array, dtype=self.dtype).tobytes())
        self.rows += len(array)

    def _widen(self, dtype: np.dtype[Any]) -> None:
        """Rewrite the text so far for a longer one: numpy's text has one width for all."""
        self.file.seek(0)
        text = np.frombuffer(self.file.read(), dtype=self.dtype).astype(dtype)
        self.file.seek(0)
        self.file.write(text.tobytes())
        self.dtype = dtype


_WRITERS: Mapping[str, Callable[[Iterator[Batch], Path, Mapping[str, str]], None]] = {
    **dict.fromkeys((".tab", ".tsv", ".csv"), _write_csv),
    ".parquet": lambda batches, path, _: _to_parquet(map(_as_table, batches), path),
    ".npz": _write_npz,
    ".dat": lambda batches, path, _: write_dat(map(_as_table, batches), path),
    "": lambda batches, path, _: write_pictures(map(_columns, batches), path),
}
