"""Samples without rows that occur once: for the eye of whoever fears to be such a row. NOT part of the guarantee.

A release is private whatever its samples look like, and its samples are no less so with unique rows in them. What is
done here is a function of samples alone, hence free; and it makes no sample more private (docs/cli.md says why).

Rows are drawn in their order until those that repeat are as many as asked for: a row's first occurrence is counted when
the second one comes. What is kept of rows that are drawn is a digest of 64 bits each; the rows are drawn a second time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from sfumato._lazy import later
from sfumato.columns.kinds import TabularKind
from sfumato.errors import ConfigError, SampleWarning, require_choice, require_instance
from sfumato.schema.schema import Schema
from sfumato.schema.shapes import UNIQUE_ROWS, require_able

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

UniqueRows: TypeAlias = Literal["keep", "drop"]
Draw: TypeAlias = Callable[[int, int], Iterator[pa.Table]]
"""Draws blocks, from the first of two numbers up to the other."""

FOR_EYES = "unique rows of the sample were dropped: for eyes, NOT part of the guarantee"
METADATA_KEY = b"sfumato.unique_rows"
_MOST_DRAWN = 16  # times the rows that are asked for
_MISSING = np.uint64(0x9E3779B97F4A7C15)


def _require_words(unique_rows: object, unique_columns: object) -> None:
    """Refuse another word than the two, and what is no list of names."""
    require_choice(get_args(UniqueRows), unique_rows=unique_rows)
    if unique_columns is not None:
        require_instance((list, tuple), "a list of column names", unique_columns=unique_columns)
        assert isinstance(unique_columns, list | tuple)
        for name in unique_columns:
            require_instance(str, "the name of a column", unique_columns=name)


def columns_to_compare(
    schema: Schema, unique_rows: str, unique_columns: Sequence[str] | None, *, class_counts: object
) -> tuple[str, ...] | None:
    """Return the columns on which rows have to repeat; None if all rows are kept.

    Raises:
        ConfigError: not one of the two words, columns that are not the release's, a release of linked rows or of
            something else than a table, or class counts, which dropping rows would change.
    """
    _require_words(unique_rows, unique_columns)
    if unique_rows == "keep":
        if unique_columns:
            raise ConfigError("Expected unique_columns beside unique_rows='drop' only, got them without it.")
        return None
    require_able(schema, UNIQUE_ROWS, "Leave unique_rows out")
    if class_counts is not None:
        raise ConfigError(
            "Expected no class_counts beside unique_rows='drop', got both: dropping rows changes the classes. Sample "
            "each class by itself with `given`."
        )
    tabular = schema.of_kind(TabularKind)
    other = next((name for name in schema.released if name not in tabular), None)
    if other is not None:
        what = schema.columns[other].holds
        raise ConfigError(f"Expected a table to drop unique rows of, got {what} in column {other!r}.")
    if unique_columns is None:
        return schema.released
    if isinstance(unique_columns, str) or not unique_columns:
        raise ConfigError("Expected unique_columns to be a list of column names, or None for all columns.")
    for name in unique_columns:
        if name not in schema.released:
            known = ", ".join(map(repr, schema.released))
            raise ConfigError(f"Expected unique_columns to be of the release, got {name!r}. It has {known}.")
    return tuple(dict.fromkeys(unique_columns))


def repeated_rows(draw: Draw, n: int, size: int, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield n rows of which none is alone with its cells of some columns, in the order in which they are drawn.

    Args:
        draw: draws blocks; twice the same.
        n: rows to yield.
        size: rows of a block.
        columns: rows are alike that have the same cells here.

    Warns:
        SampleWarning: fewer rows came, since too few repeat among 16 n that were drawn.
    """
    keep, n_drawn = _repeats(draw, n, size, columns)
    came = int(np.count_nonzero(keep))
    if came < n:
        warnings.warn(
            f"Expected {n} rows without unique ones, got {came}: too few of {n_drawn} rows that were drawn repeat in "
            "the columns that are compared. Name fewer columns, or declare coarser ones.",
            SampleWarning,
            stacklevel=2,
        )
    start = 0
    for block, table in enumerate(_with_note(draw(0, max(1, -(-len(keep) // size))))):
        mask = keep[start : start + table.num_rows]
        start += table.num_rows
        chosen = table.slice(0, len(mask)).filter(pa.array(mask))
        if chosen.num_rows or block == 0:  # at least one table
            yield chosen


def _repeats(draw: Draw, n: int, size: int, columns: Sequence[str]) -> tuple[np.ndarray, int]:
    """Return which of the rows that are drawn are kept, up to the last of them, and how many were drawn."""
    most = max(1, -(-_MOST_DRAWN * n // size))
    parts: list[np.ndarray] = []
    first, upto = 0, max(1, -(-n // size))
    while True:
        parts += [digests(table, columns) for table in draw(first, upto)]
        together = np.concatenate(parts)
        keep = repeat_mask(together, n)
        if upto == most or np.count_nonzero(keep) == n:
            return keep, len(together)
        first, upto = upto, min(most, 2 * upto)


def repeat_mask(digest: np.ndarray, n: int) -> np.ndarray:
    """Return which rows to keep, up to the last one, so that n come and none of them is alone; else as many as repeat.

    Args:
        digest: of every row, in the order in which they are drawn.
        n: rows to keep.
    """
    if n == 0:
        return np.zeros(0, dtype=bool)
    turn, second = _turns(digest)
    counts = np.cumsum(np.minimum(turn, 1) + (turn == 1))  # a first occurrence counts with the second
    last = int(np.searchsorted(counts, n))
    if last == len(counts):
        return second < last
    if counts[last] == n:
        return second[: last + 1] <= last
    # there is room for one row, and a pair comes: the next row whose like are kept already
    like = np.flatnonzero(second[last + 1 :] < last)
    return second[: last + 2 + int(like[0]) if like.size else last] < last


def _turns(digest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of every row how many like it came before, and where the second of its like is; far off if there is none.

    Shapes (rows,), int64.
    """
    order = np.argsort(digest, kind="stable")
    sorted_ = digest[order]
    first = np.flatnonzero(np.concatenate([[True], sorted_[1:] != sorted_[:-1]]))
    sizes = np.diff(np.append(first, len(digest)))
    turn, second = np.empty(len(digest), dtype=np.int64), np.empty(len(digest), dtype=np.int64)
    turn[order] = np.arange(len(digest)) - np.repeat(first, sizes)
    seconds = np.where(sizes > 1, order[np.minimum(first + 1, len(digest) - 1)], np.iinfo(np.int64).max)
    second[order] = np.repeat(seconds, sizes)
    return turn, second


def digests(table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """Return 64 bits per row that are alike where the cells of these columns are.

    Of a million rows two others are alike by chance with probability 3e-8: then a unique row stays.
    """
    hashed = pd.DataFrame({str(i): _hashed(table.column(name)) for i, name in enumerate(columns)})
    return pd.util.hash_pandas_object(hashed, index=False).to_numpy()


def _hashed(column: pa.ChunkedArray) -> np.ndarray:
    """Return 64 bits per cell."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoding = column.combine_chunks().dictionary_encode()
    encoding = encoding.combine_chunks() if isinstance(encoding, pa.ChunkedArray) else encoding
    values: pa.Array = encoding.dictionary
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        cells = values.to_numpy(zero_copy_only=False)
    else:
        cells = np.array([repr(value) for value in values.to_pylist()], dtype=object)
    hashes = np.append(pd.util.hash_array(cells, categorize=False), _MISSING)
    places = encoding.indices.fill_null(len(cells)).to_numpy(zero_copy_only=False).astype(np.int64)
    return hashes[places]


def _with_note(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Write into tables' metadata, which Parquet keeps, what was done."""
    for table in tables:
        metadata = {**(table.schema.metadata or {}), METADATA_KEY: FOR_EYES.encode()}
        yield table.replace_schema_metadata(metadata)
