"""Every kind of input behind one interface: `open_source(data)`."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from sfumato.errors import ConfigError, DataError
from sfumato.io.arrow import ArrowSource, of_schema, open_ipc, open_parquet
from sfumato.io.baskets import CSR_KEYS, open_baskets
from sfumato.io.batch_streams import open_stream
from sfumato.io.chunks import DEFAULT_CHUNK_ROWS, Chunk, Container, Source
from sfumato.io.csv import open_csv
from sfumato.io.csv_form import DELIMITER_OF_SUFFIX, CsvForm
from sfumato.io.database_urls import SCHEMES
from sfumato.io.databases import open_database
from sfumato.io.folders import open_folder
from sfumato.io.formats import format_of, open_with, suffixes
from sfumato.io.frames import open_pandas, open_polars, to_pandas, to_polars
from sfumato.io.image_arrays import KEYS, open_arrays, open_npz, to_arrays
from sfumato.io.joined import open_joined
from sfumato.io.json_lines import open_json_lines
from sfumato.io.lazy_frames import open_cluster_frame
from sfumato.io.places import DataFiles, find_folder, find_glob, find_list, find_remote, scheme_of
from sfumato.io.sheet import open_excel
from sfumato.io.stored import COMPRESSIONS, StoredFile, format_suffix, stored_file

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Chunk", "Container", "Source", "open_source", "require_names", "to_container"]

_STORED: Mapping[str, Callable[..., Source]] = {
    ".jsonl": open_json_lines,
    ".ndjson": open_json_lines,
    ".xlsx": open_excel,
    ".feather": open_ipc,
    ".arrow": open_ipc,
    **dict.fromkeys(DELIMITER_OF_SUFFIX, open_csv),
    ".parquet": open_parquet,
}
_WITHOUT_RECORDS = (".jsonl", ".ndjson", ".dat")  # where no byte is no record: whether there is one decides nothing
_PACKED = (*DELIMITER_OF_SUFFIX, ".jsonl", ".ndjson")  # which are read through gzip, Zstandard and zip too
STREAMED = tuple(
    sorted(f"{s[1:]}{packed}" for s in _STORED for packed in ["", *(COMPRESSIONS if s in _PACKED else [])])
)
"""Formats that standard input may have."""
_READERS: Mapping[str, Callable[..., Source]] = {**_STORED, ".npz": open_npz, ".dat": open_baskets}

_CURRENCY = r"(?:[$€£¥]|CHF|EUR|GBP|USD)"
_NUMBER = re.compile(
    rf"(?:{_CURRENCY} ?)?[+\-\u2212]?(?:\d[\d,. '\u2019]*|[.,]\d+)(?:[eE][+-]?\d+)?(?: ?(?:%|{_CURRENCY}))?"
)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d.*)?|\d{1,2}:\d{2}(?::\d{2}.*)?")
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LONGEST = 1_000
_RECORDS = (
    (_NUMBER, "a number"), (_DATE, "a date or time"), (_ADDRESS, "an e-mail address"), (_UUID, "an identifier (UUID)"),
)  # fmt: skip


def open_source(data: object, *, chunk_rows: int = DEFAULT_CHUNK_ROWS, csv: CsvForm | None = None) -> Source:
    """Open a file, a data frame or arrays for reading in chunks; no record is read yet.

    Args:
        data: a path to a `.csv`, `.tsv`, `.txt`, `.parquet`, `.feather`, `.arrow`, `.npz` or `.dat` file, to a folder
            of Parquet files or of images, or to a file of a format that an installed package brings
            (`sfumato.plugins.Format`); a glob (`"ds/*.parquet"`), a URL or a list of paths, see docs/inputs.md; a
            pandas or polars DataFrame or a polars LazyFrame; a pyarrow Table, RecordBatch or Dataset; anything with
            `__arrow_c_stream__`; a function that returns a reader of record batches; images as one array, as `(x, y)`,
            or as a dict with the keys `x` and `y`, or `x_train` and `y_train`; sets of items as a dict with the keys
            `indptr`, `indices` and `n_items`. A Source is returned as it is.
        chunk_rows: the most rows of one chunk.
        csv: the declared form of CSV files; what it leaves open, the header tells.

    Raises:
        DataError: the file is missing, empty, damaged or of an unknown kind, or its column names
            are unusable.
        ConfigError: `data` is none of these, `chunk_rows` is below 1, or Pillow is needed and not installed.

    Example:
        >>> import pyarrow as pa
        >>> open_source(pa.table({"age": [31, 46]}))
        ArrowSource(the pyarrow table, {age: int64})
    """
    form = CsvForm() if csv is None else csv
    if isinstance(data, Source):
        return data if csv is None else data.read_as(form)
    if isinstance(data, str | os.PathLike):
        return _open_text(data, chunk_rows, form)
    if isinstance(data, list | tuple) and data and all(isinstance(path, str | os.PathLike) for path in data):
        return _open_files(find_list(data), chunk_rows, form)
    if isinstance(data, pa.Table | pa.RecordBatch):
        table: Any = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
        columns = of_schema(table.schema, "the pyarrow table")
        return ArrowSource(**columns, container="pyarrow", chunk_rows=chunk_rows, table=table)
    # whoever passes a frame has loaded its library: no need to load it here
    if (pandas := sys.modules.get("pandas")) and isinstance(data, pandas.DataFrame):
        return open_pandas(cast("pd.DataFrame", data), chunk_rows=chunk_rows)
    if (polars := sys.modules.get("polars")) and isinstance(data, polars.DataFrame):
        return open_polars(cast("pl.DataFrame", data), chunk_rows=chunk_rows)
    if (frame := open_cluster_frame(data, chunk_rows=chunk_rows)) is not None:
        return frame
    if not isinstance(data, np.ndarray | Mapping | tuple):
        stream = open_stream(data, chunk_rows=chunk_rows)
        if stream is not None:
            return stream
    return open_arrays(_as_arrays(data), chunk_rows=chunk_rows)


def open_file(file: StoredFile, chunk_rows: int, csv: CsvForm | None = None) -> Source:
    """Open a file by the suffix of its name.

    Raises:
        DataError: no such files can be read from there, or it is empty or damaged.
    """
    suffix = format_suffix(file.name)
    if suffix not in _STORED or (file.compression is not None and suffix not in _PACKED):
        raise DataError(f"Expected a {', '.join(f'.{known}' for known in STREAMED)} file, got {file.name}. Convert it.")
    if file.stamp[0] == 0 and suffix not in _WITHOUT_RECORDS:
        raise DataError(f"Expected data in {file.name}, got an empty file.")
    if suffix in DELIMITER_OF_SUFFIX:
        return open_csv(file, chunk_rows=chunk_rows, form=csv or CsvForm())
    return _STORED[suffix](file, chunk_rows=chunk_rows)


def to_container(
    table: pa.Table,
    *,
    container: Container,
    dtypes: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
) -> pd.DataFrame | pl.DataFrame | pa.Table | dict[str, np.ndarray]:
    """Give a table of the source's storage types the form the data came in.

    Args:
        table: columns of `Source.storage` types; image columns as `pa.fixed_shape_tensor`.
        container: `Source.container`. A file (`csv`, `parquet`, `fimi`) gives the pyarrow table itself.
        dtypes: `Source.dtypes`.
        keys: `Source.keys`.
    """
    if container == "pandas":
        return to_pandas(table, dtypes or {})
    if container == "polars":
        return to_polars(table, dtypes or {})
    if container in {"npz", "arrays", "folder"}:
        return to_arrays(table, keys or {})
    return table


def _open_text(data: str | os.PathLike[str], chunk_rows: int, csv: CsvForm) -> Source:
    text = os.fspath(data)
    if not isinstance(text, str) or not text:
        raise DataError(f"Expected the path of a file, got {'no text' if text else 'an empty one'}. Check the path.")
    scheme = scheme_of(text)
    if scheme in SCHEMES:
        return open_database(text, chunk_rows=chunk_rows)
    if scheme is not None:
        return _open_files(find_remote(text), chunk_rows, csv)
    matched = find_glob(text)
    return _open_path(Path(text), chunk_rows, csv) if matched is None else _open_files(matched, chunk_rows, csv)


def _open_files(files: DataFiles, chunk_rows: int, csv: CsvForm | None = None) -> Source:
    """Open files; one alone is itself, unless its folders say something."""
    pieces = [open_file(file, chunk_rows, csv) for file in files.files]
    if len(pieces) == 1 and not files.folders[0]:
        return pieces[0]
    return open_joined(pieces, files.folders, files.label, chunk_rows=chunk_rows)


def _require_name(path: Path) -> None:
    """Refuse text that no file can be called.

    Raises:
        DataError: says so.
    """
    problem = ""
    try:
        path.stat()
    except OSError as error:
        problem = "a name that is too long" if error.errno == errno.ENAMETOOLONG else ""
    except ValueError:  # a character that no name has
        problem = "a name that no file can have"
    if problem:
        raise DataError(f"Expected the path of a file, got {problem}. Check the path.")


def _open_path(path: Path, chunk_rows: int, csv: CsvForm) -> Source:
    _require_name(path)
    if path.is_dir():
        return _open_directory(path, chunk_rows)
    if not path.is_file():
        raise DataError(f"Expected a file that exists, got {path.name}. Check the path.")
    suffix = path.suffix.lower()
    outside = format_of(suffix, _READERS)
    reader = _READERS.get(suffix)
    if reader is None and outside is None and suffix not in COMPRESSIONS:
        rule = f"Expected a {', '.join(suffixes(_READERS))} file, got {path.name}"
        raise DataError(f"{rule}. Convert it, or pass a data frame.")
    if path.stat().st_size == 0 and suffix not in _WITHOUT_RECORDS:
        raise DataError(f"Expected data in {path.name}, got an empty file.")
    if outside is not None:
        return open_with(outside, path, chunk_rows)
    if reader is not None and suffix not in _STORED:
        return reader(path, chunk_rows=chunk_rows)
    return open_file(stored_file(path), chunk_rows, csv)


def _open_directory(path: Path, chunk_rows: int) -> Source:
    """Open a folder of Parquet files, however deep; any other is one of images."""
    files = find_folder(path)
    if files is not None:
        return _open_files(files, chunk_rows)
    if path.suffix.lower() in _READERS:
        raise DataError(f"Expected a file, got the directory {path.name}. Give the path of one data file.")
    return open_folder(path, chunk_rows=chunk_rows)


def _as_arrays(data: object) -> Mapping[str, Any]:
    if isinstance(data, np.ndarray):
        return {"x": data}
    if isinstance(data, Mapping | list | tuple):
        _refuse_tables(data)
    if isinstance(data, Mapping):
        return data
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, np.ndarray) for part in data):
        return {"x": data[0], "y": data[1]}
    kinds = "a path, a pandas or polars DataFrame, a pyarrow Table, or arrays (x, y)"
    raise ConfigError(f"Expected data to be {kinds}, got one of type {type(data).__name__}. Make a data frame of it.")


def _refuse_tables(data: Mapping[Any, object] | list[object] | tuple[object, ...]) -> None:
    """Refuse several tables where one is read, and columns of Python objects, which are no arrays.

    Raises:
        ConfigError: says how to pass them.
    """
    named = isinstance(data, Mapping)
    parts = list(data.values()) if isinstance(data, Mapping) else list(data)
    some = next((part for part in parts if not isinstance(part, np.ndarray)), None)
    if some is None or not parts:
        return
    kind = type(some).__name__
    if isinstance(some, str | os.PathLike | Source) or _is_table(some):
        what = "a dict of tables" if named else f"a {type(data).__name__} of {kind}"
        raise ConfigError(
            f"Expected one table, got {what}. Pass one of them; two tables with a key are one set of records under a "
            "schema with `tables`, which `fit` takes as {name: table}."
        )
    if named and not any(keys["x"] in data for keys in KEYS) and not data.keys() >= CSR_KEYS:
        raise ConfigError(
            f"Expected data to be a table, or a dict of numpy arrays, got a dict of {kind}. Make a data frame of its "
            "columns: pandas.DataFrame(data)."
        )


def _is_table(part: object) -> bool:
    """Whether an object is a table in itself."""
    return any(
        hasattr(part, name)
        for name in ("__arrow_c_stream__", "__dataframe__", "toPandas", "to_record_batches", "collect_schema")
    )


def require_names(source: Source) -> None:
    """Refuse a CSV of which a column's name is a number, a date, a time, an e-mail address or a UUID, as cells are.

    By that line alone: without a header line a file would publish its first record as names of columns, and an error
    that depends on the other lines would tell of a record.

    Raises:
        DataError: names the column's place, never its text.
    """
    if source.container != "csv":
        return
    for place, name in enumerate(source.names, start=1):
        text = name.strip()
        tried = _RECORDS if len(text) <= _LONGEST else ()  # time grows with the square of a text
        what = next((what for pattern, what in tried if pattern.fullmatch(text)), None)
        if what:
            raise DataError(
                f"Expected the first line of {source.label} to name its columns, got {what} for column {place}. If "
                "that line is a record, add a line of names above it; if these are names, say so: --names-are-public "
                "(names_are_public=True)."
            )
