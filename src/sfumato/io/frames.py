"""pandas and polars data frames, and the way back to them.

The storage type of a column follows from its dtype alone, never from its cells: one odd record in
an `object` column must not change the types of a release. An `object` column is therefore text.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import is_text, valid_text
from sfumato.columns.dates import DateTime
from sfumato.columns.facts import LARGEST_EXACT, float_text
from sfumato.columns.images import Image
from sfumato.columns.kind import ColumnKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.columns.open import YEARS, Open
from sfumato.columns.sets import ItemSet
from sfumato.columns.wall_clock import wall_clock_of
from sfumato.columns.written import Written
from sfumato.errors import DataError
from sfumato.io.chunks import Chunk, Source, check_names

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PandasSource(Source):
    """A pandas data frame; an index is read where it has a name.

    Attributes:
        frame: the data frame.
        forms: columns of numbers and of dates, and how these are written as text.
    """

    counts_entries: ClassVar[bool] = True

    frame: pd.DataFrame
    forms: Mapping[str, Form] = field(default_factory=dict)

    def of(self, frame: pd.DataFrame) -> PandasSource:
        """Return the source of another frame, read as this one is."""
        other = open_pandas(frame, chunk_rows=self.chunk_rows)
        declared = {name: kind for name, kind in self.storage.items() if kind in (_LISTS, _FILES)}
        return replace(other, forms=self.forms, storage={**other.storage, **declared})

    def under(self, columns: Mapping[str, ColumnKind]) -> PandasSource:
        """Return the source in which numbers and dates among texts are written as a column declares it; sets are lists.

        One cell of text makes a column of numbers one of objects: the numbers in it have to be read as before. Python
        lists and sets lie in columns of objects, which says nothing of their cells: the schema does.
        """
        sets = {name for name, kind in columns.items() if isinstance(kind, ItemSet) and kind.is_listed}
        objects = {name for name in sets if self.dtypes.get(name) == "object"}
        images = {name for name, kind in columns.items() if isinstance(kind, Image)}
        files = {name for name in images if self.dtypes.get(name) == "object"}
        return replace(
            self,
            forms=_forms(columns),
            storage={**self.storage, **dict.fromkeys(objects, _LISTS), **dict.fromkeys(files, _FILES)},
            dtypes={**self.dtypes, **dict.fromkeys(objects, f"{_LISTS}[pyarrow]")},  # in which samples come back
        )

    def measured(self) -> Source:
        """Return the source in which columns of Python bytes, or of mappings with some, are files. Not private."""
        objects = [name for name, dtype in self.dtypes.items() if dtype == "object"]
        files = [name for name in objects if any(_cell_bytes(cell) is not None for cell in self.frame[name].head(100))]
        return replace(self, storage={**self.storage, **dict.fromkeys(files, _FILES)})

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        for start in range(0, len(self.frame), self.chunk_rows):
            rows = self.frame.iloc[start : start + self.chunk_rows]
            cells = {name: _from_pandas(rows[name], self.storage[name], self.forms.get(name)) for name in columns}
            yield Chunk(columns=cells, n_rows=len(rows))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PolarsSource(Source):
    """A polars data frame; Python objects, which one odd cell makes of a column, are text, each by itself."""

    counts_entries: ClassVar[bool] = True

    frame: pl.DataFrame
    forms: Mapping[str, Form] = field(default_factory=dict)

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source in which objects that are declared sets are lists, others written as is declared."""
        sets = {name for name, kind in columns.items() if isinstance(kind, ItemSet) and kind.id is None}
        objects = {name for name in sets if self.dtypes.get(name) == "Object"}
        return replace(self, storage={**self.storage, **dict.fromkeys(objects, _LISTS)}, forms=_forms(columns))

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        for start in range(0, self.frame.height, self.chunk_rows):
            rows = self.frame.slice(start, self.chunk_rows)
            objects = {name: rows[name].to_list() for name in columns if self.dtypes[name] == "Object"}
            table = rows.select(
                arrow_columns(rows.schema, [name for name in columns if name not in objects])
            ).to_arrow()
            cells = {name: _objects(cells, self.storage[name], self.forms.get(name)) for name, cells in objects.items()}
            cells |= dict(zip(table.column_names, table.columns, strict=True))
            yield Chunk(columns={name: cells[name] for name in columns}, n_rows=rows.height)


def open_pandas(frame: pd.DataFrame, *, chunk_rows: int) -> PandasSource:
    """Wrap a pandas data frame; its cells are not copied. What of its index has a name are the first columns.

    Raises:
        DataError: a column name is no text, or is empty or repeated, also by the index.
    """
    label = "the pandas data frame"
    names = index_names(frame, label)
    check_names([*names.values(), *frame.columns], label)
    if names:
        frame = frame.copy(deep=False)
        for column, (place, name) in enumerate(names.items()):
            frame.insert(column, name, frame.index.get_level_values(place))
        frame = frame.set_axis(range(len(frame)))
    return PandasSource(
        label=label,
        container="pandas",
        storage={str(name): _pandas_storage(dtype) for name, dtype in frame.dtypes.items()},
        dtypes={str(name): str(dtype) for name, dtype in frame.dtypes.items()},
        chunk_rows=chunk_rows,
        inferred=frozenset(str(name) for name, dtype in frame.dtypes.items() if _is_inferred(dtype)),
        frame=frame,
    )


def index_names(frame: pd.DataFrame, label: str) -> dict[int, str]:
    """Return the names in a frame's index by their place; what has none, as rows that were filtered, is no column.

    Raises:
        DataError: a name is no text, or a column has it too.
    """
    given = {place: name for place, name in enumerate(frame.index.names) if name is not None}
    names = {place: name for place, name in given.items() if isinstance(name, str) and name not in frame.columns}
    if names != given:
        raise DataError(
            f"Expected the index of {label} to have a name of text that no column has, got another. It would be a "
            "column: rename it (`frame.rename_axis`), or take it out (`frame.reset_index(drop=True)`)."
        )
    return names


def _is_inferred(dtype: Any) -> bool:  # noqa: ANN401 - of pandas or NumPy
    """Whether a column may have the dtype by what all its cells hold: NumPy's, and what pandas makes of these alone."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return isinstance(dtype, np.dtype | pd.DatetimeTZDtype | pd.IntervalDtype | pd.PeriodDtype)


def open_polars(frame: pl.DataFrame, *, chunk_rows: int) -> PolarsSource:
    """Wrap a polars data frame; its cells are not copied.

    Raises:
        DataError: a column name is empty.
    """
    import polars as pl

    label = "the polars data frame"
    check_names(frame.columns, label)
    typed = [name for name, dtype in frame.schema.items() if dtype.base_type() is not pl.Object]
    schema = frame.clear().select(arrow_columns(frame.schema, typed)).to_arrow().schema
    storage = dict.fromkeys(frame.columns, pa.string()) | dict(zip(schema.names, schema.types, strict=True))
    return PolarsSource(
        label=label,
        container="polars",
        storage=storage,
        # the class only: an Enum's full name lists its categories, which the schema declares
        dtypes={name: str(dtype.base_type()) for name, dtype in frame.schema.items()},
        chunk_rows=chunk_rows,
        frame=frame,
    )


def arrow_columns(schema: pl.Schema, names: Sequence[str]) -> list[pl.Expr]:
    """Return columns of polars in types that Arrow has: whole numbers of 128 bits, which one cell asks for, as text."""
    import polars as pl

    def column(name: str) -> pl.Expr:
        kind = schema[name]
        if isinstance(kind, pl.List | pl.Array) and str(kind.inner) in _WIDEST_POLARS:
            return pl.col(name).cast(pl.List(pl.String))
        return pl.col(name).cast(pl.String) if str(kind) in _WIDEST_POLARS else pl.col(name)

    return [column(name) for name in names]


def _objects(cells: Sequence[object], storage: pa.DataType, form: Form | None) -> pa.ChunkedArray:
    """Return Python objects as text, or as lists of texts, each by itself."""
    read = _cell_texts if storage == _LISTS else lambda cell: _formed_text(cell, form, cell_text)
    return pa.chunked_array([pa.array(map(read, cells), type=storage)])


def _forms(columns: Mapping[str, ColumnKind]) -> dict[str, Form]:
    """Return how the numbers and dates of columns are written as text, where that is declared."""
    forms: dict[str, Form] = {}
    for name, kind in columns.items():
        as_text = isinstance(kind, Open) and kind.kind == "unknown"  # of which a number, too, is its text
        if isinstance(kind, Integer | Continuous | Open) and kind.written is not None and not as_text:
            forms[name] = kind.written
        if isinstance(kind, Open) and kind.format is not None:
            forms[name] = kind.between(*YEARS)
        if isinstance(kind, DateTime) and kind.format is not None:
            forms[name] = kind
    return forms


def to_pandas(table: pa.Table, dtypes: Mapping[str, str]) -> pd.DataFrame:
    """Turn a table into a pandas data frame with the given dtypes.

    A column that holds missing values its dtype cannot hold gets pandas' nullable dtype instead:
    `int64` becomes `Int64`, `bool` becomes `boolean`.
    """
    import pandas as pd

    columns = {name: _to_pandas(table.column(name), dtypes.get(name)) for name in table.column_names}
    return pd.DataFrame(columns, columns=pd.Index(table.column_names), copy=False)


def to_polars(table: pa.Table, dtypes: Mapping[str, str]) -> pl.DataFrame:
    """Turn a table into a polars data frame; `dtypes` tells Enum columns from Categorical ones."""
    import polars as pl

    table = table.unify_dictionaries()
    frame = pl.DataFrame(pl.from_arrow(table))
    enums = [name for name in table.column_names if dtypes.get(name) == "Enum"]
    for name in enums:
        labels = table.column(name).combine_chunks().dictionary
        frame = frame.with_columns(pl.col(name).cast(pl.Enum(labels.to_pylist())))
    return frame


Form: TypeAlias = Written | DateTime
"""How numbers or dates of a column are written as text."""

_LISTS = pa.list_(pa.string())
_FILES = pa.binary()
_WIDEST_POLARS = ("Int128", "UInt128")
_LONGEST_DECIMAL = 400  # places before or after the point that are written out
_WIDEST = 8  # bytes of a number that Arrow can store; a long double becomes text


def _pandas_storage(dtype: Any) -> pa.DataType:  # noqa: ANN401
    """The Arrow type for a pandas dtype; text for dtypes that Arrow does not have."""
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        return dtype.pyarrow_dtype
    if isinstance(dtype, pd.CategoricalDtype):
        values = _pandas_storage(dtype.categories.dtype)
        return pa.dictionary(pa.int32(), values, ordered=bool(dtype.ordered))
    if isinstance(dtype, pd.DatetimeTZDtype):
        # Arrow's kernels know a fixed offset as `+01:30`, where Python says `UTC+01:30`
        return pa.timestamp(dtype.unit, tz=re.sub(r"\AUTC([+-]\d\d:\d\d)\Z", r"\1", str(dtype.tz)))
    numpy_dtype = getattr(dtype, "numpy_dtype", dtype)  # the masked dtypes: Int64, Float32, boolean
    # durations are text, as they are where one cell is no duration, and the column one of objects
    if isinstance(numpy_dtype, np.dtype) and numpy_dtype.kind in "biufM" and numpy_dtype.itemsize <= _WIDEST:
        return pa.from_numpy_dtype(numpy_dtype.newbyteorder("="))
    return pa.string()


def _from_pandas(series: pd.Series, storage: pa.DataType, form: Form | None) -> pa.ChunkedArray:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = np.asarray(series.cat.codes, dtype=np.int32)
        labels = _from_pandas(pd.Series(series.cat.categories), storage.value_type, form).combine_chunks()
        indices = pa.array(codes, mask=codes < 0)
        return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, labels, ordered=storage.ordered)])
    if isinstance(series.dtype, np.dtype) and not series.dtype.isnative:
        series = series.astype(series.dtype.newbyteorder("="))
    if storage == _LISTS and series.dtype == object:
        return pa.chunked_array([pa.array(map(_cell_texts, series), type=storage)])
    if storage == _FILES and series.dtype == object:
        return pa.chunked_array([pa.array(map(_cell_bytes, series), type=storage)])
    if storage != pa.string() or isinstance(series.dtype, pd.StringDtype | pd.ArrowDtype):
        try:
            cells = pa.array(series, type=storage, from_pandas=True)
            return cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells])
        except UnicodeEncodeError:  # texts alone raise it, and what is no half of a surrogate pair stays as it is
            pass
    # Python objects: always cell by cell. pyarrow's own conversion reads some types otherwise than the text below,
    # and gives up on a whole column for one odd cell: a record would change how the others are read.
    read = object_text if form is None else lambda cell: _formed_text(cell, form, object_text)
    return pa.chunked_array([pa.array(map(read, series), type=storage)])


def _formed_text(cell: object, form: Form | None, read: Callable[[object], str | None]) -> str | None:
    """The text of one Python object; a number is read as it is however its column writes these: `15e-1` for 1.5."""
    text = read(cell)
    if text is None:
        return None
    if isinstance(form, DateTime) and isinstance(cell, datetime.date | datetime.time):
        return form.cell_text(cell)
    is_number = isinstance(cell, Number) and not isinstance(cell, bool)
    mantissa, _, power = text.lower().partition("e")
    whole, point, after = mantissa.partition(".")
    is_marked = isinstance(form, Written) and is_number and point
    return f"{whole}{after}e{int(power or 0) - len(after)}" if is_marked else text


def _cell_texts(cell: object) -> list[str | None] | None:
    """The texts of the items of one Python object, None if it holds no items: a list, tuple, set or array."""
    try:
        if isinstance(cell, set | frozenset):  # their order is that of the process: another one reads them alike
            cell = sorted(text for text in map(object_text, cell) if text is not None)
        if isinstance(cell, np.ndarray):
            cell = cell.tolist() if cell.ndim == 1 else None
        return [object_text(item) for item in cell] if isinstance(cell, list | tuple) else None
    except Exception:  # noqa: BLE001  # somebody's object may raise anything, with the cell in it
        return None


def _cell_bytes(cell: object) -> bytes | None:
    """The bytes of one Python object, or of its entry `bytes`; None if it holds none."""
    if isinstance(cell, dict):
        cell = cell.get("bytes")
    return bytes(cell) if isinstance(cell, bytes | bytearray) else None


def _decimal_text(number: Decimal) -> str | None:
    """The digits of a decimal without those that its column's scale adds: one long fraction sets the scale of all."""
    if not number.is_finite():
        return None if number.is_nan() else str(number)
    if not number:
        return "0"
    exponent = int(number.as_tuple().exponent)
    if max(abs(exponent), abs(number.adjusted())) > _LONGEST_DECIMAL:
        return str(number)
    digits = format(number, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def object_text(cell: object) -> str | None:
    """The text of a cell of a pandas column of objects.

    A number is a float there, as it is where all cells are numbers and one is missing: see `chunks.py`.
    """
    if isinstance(cell, int | np.integer) and not LARGEST_EXACT >= cell >= -LARGEST_EXACT:
        try:
            return float_text(float(cell))
        except OverflowError:
            return "inf" if cell > 0 else "-inf"
    return cell_text(cell)


_CELL_TEXT: tuple[tuple[type | tuple[type, ...], Callable[[Any], str | None]], ...] = (
    (str, valid_text),
    ((bool, np.bool_), lambda cell: "true" if cell else "false"),
    ((int, np.integer), lambda cell: str(int(cell))),
    ((float, np.floating), lambda cell: None if math.isnan(cell) else float_text(float(cell))),
    ((bytes, bytearray, memoryview), lambda cell: bytes(cell).decode("utf-8", errors="replace")),
    (Decimal, _decimal_text),
    # one such cell makes a whole column of them: the others are the real numbers that they were
    ((complex, np.complexfloating), lambda cell: cell_text(cell.real) if cell.imag == 0 else str(cell)),
    # the wall clock, as a column of timestamps is read
    (np.datetime64, lambda cell: cell_text(_pandas_scalar("Timestamp", cell))),
    (np.timedelta64, lambda cell: cell_text(_pandas_scalar("Timedelta", cell))),
    (datetime.datetime, lambda cell: wall_clock_of(cell) if cell == cell else None),
    ((datetime.date, datetime.time), lambda cell: cell.isoformat()),
)


def _pandas_scalar(name: str, cell: object) -> object:
    import pandas as pd

    return getattr(pd, name)(cell)


def cell_text(cell: object) -> str | None:
    """The text of one Python object, None if it is missing or has none."""
    if cell is None:
        return None
    try:
        for kind, text in _CELL_TEXT:
            if isinstance(cell, kind):
                return text(cell)
        text = valid_text(str(cell))
    except Exception:  # noqa: BLE001  # somebody's __str__ may raise anything, with the cell in it
        return None
    return None if text in {"nan", "NaT", "<NA>"} else text


_NULLABLE = {"bool": "boolean"}
_NULLABLE |= {f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)}
_NULLABLE |= {f"uint{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64)}


def _to_pandas(column: pa.ChunkedArray, dtype: str | None) -> pd.Series:
    import pandas as pd

    if dtype is None or dtype == "category":
        return column.to_pandas()
    if dtype == "object":
        return pd.Series(column.to_pylist(), dtype=object)
    if dtype.endswith("[pyarrow]"):
        return pd.Series(pd.array(column, dtype=pd.ArrowDtype(column.type)))
    if column.null_count:
        dtype = _NULLABLE.get(dtype, dtype)
    kind = pd.api.types.pandas_dtype(dtype)
    if _pandas_storage(kind) == pa.string() and not isinstance(kind, pd.StringDtype) and is_text(column.type):
        return column.to_pandas()
    # a detour over float64 would round large integers beside a missing value
    from_arrow = getattr(kind, "__from_arrow__", None)
    return pd.Series(from_arrow(column)) if from_arrow else column.to_pandas().astype(kind)
