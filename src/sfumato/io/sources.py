"""Every kind of input behind one interface: `open_source(data)`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from sfumato.errors import ConfigError, DataError
from sfumato.io.arrays import open_arrays, open_npz, to_arrays
from sfumato.io.arrow import open_arrow, open_parquet
from sfumato.io.baskets import open_baskets
from sfumato.io.chunks import DEFAULT_CHUNK_ROWS, Chunk, Container, Source
from sfumato.io.csv import open_csv
from sfumato.io.folders import open_folder
from sfumato.io.formats import format_of, open_with, suffixes
from sfumato.io.frames import open_pandas, open_polars, to_pandas, to_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Chunk", "Container", "Source", "open_source", "to_container"]

_READERS: Mapping[str, Callable[..., Source]] = {
    ".csv": open_csv,
    ".parquet": open_parquet,
    ".npz": open_npz,
    ".dat": open_baskets,
}


def open_source(data: object, *, chunk_rows: int = DEFAULT_CHUNK_ROWS) -> Source:
    """Open a file, a data frame or arrays for reading in chunks; no record is read yet.

    Args:
        data: a path to a `.csv`, `.parquet`, `.npz` or `.dat` file, or to a folder of PNG images, or to a file of
            a format that an installed package brings (`sfumato.plugins.Format`); a
            pandas or polars DataFrame; a pyarrow Table; images as one array, as `(x, y)`, or as
            a dict with the keys `x` and `y`, or `x_train` and `y_train`; sets of items as a dict
            with the keys `indptr`, `indices` and `n_items`. A Source is returned as it is.
        chunk_rows: the most rows of one chunk.

    Raises:
        DataError: the file is missing, empty, damaged or of an unknown kind, or its column names
            are unusable.
        ConfigError: `data` is none of these, `chunk_rows` is below 1, or Pillow is needed and not installed.

    Example:
        >>> import pyarrow as pa
        >>> open_source(pa.table({"age": [31, 46]}))
        ArrowSource(the pyarrow table, {age: int64})
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike):
        return _open_path(Path(data), chunk_rows)
    if isinstance(data, pa.Table):
        return open_arrow(data, chunk_rows=chunk_rows)
    # whoever passes a frame has loaded its library: no need to load it here
    if (pandas := sys.modules.get("pandas")) and isinstance(data, pandas.DataFrame):
        return open_pandas(cast("pd.DataFrame", data), chunk_rows=chunk_rows)
    if (polars := sys.modules.get("polars")) and isinstance(data, polars.DataFrame):
        return open_polars(cast("pl.DataFrame", data), chunk_rows=chunk_rows)
    return open_arrays(_as_arrays(data), chunk_rows=chunk_rows)


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


def _open_path(path: Path, chunk_rows: int) -> Source:
    if path.is_dir():
        if path.suffix.lower() in _READERS:
            raise DataError(f"Expected a file, got the directory {path.name}. Give the path of one data file.")
        return open_folder(path, chunk_rows=chunk_rows)
    if not path.is_file():
        raise DataError(f"Expected a file that exists, got {path.name}. Check the path.")
    suffix = path.suffix.lower()
    outside = format_of(suffix, _READERS)
    reader = _READERS.get(suffix)
    if reader is None and outside is None:
        rule = f"Expected a {', '.join(suffixes(_READERS))} file, got {path.name}"
        raise DataError(f"{rule}. Convert it, or pass a data frame.")
    if path.stat().st_size == 0 and reader is not open_baskets:  # of sets, none is a data set too
        raise DataError(f"Expected data in {path.name}, got an empty file.")
    if outside is not None:
        return open_with(outside, path, chunk_rows)
    assert reader is not None  # or outside is
    return reader(path, chunk_rows=chunk_rows)


def _as_arrays(data: object) -> Mapping[str, Any]:
    if isinstance(data, np.ndarray):
        return {"x": data}
    if isinstance(data, Mapping):
        return data
    if isinstance(data, tuple) and len(data) == 2:
        return {"x": data[0], "y": data[1]}
    kinds = "a path, a pandas or polars DataFrame, a pyarrow Table, or arrays (x, y)"
    raise ConfigError(f"Expected data to be {kinds}, got an object of type {type(data).__name__}.")
