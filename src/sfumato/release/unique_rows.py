"""Samples without rows that occur once: for the eye of whoever fears to be such a row. NOT part of the guarantee.

    rows           each is like another one
    linked rows    each is like a row of another unit, or its whole unit is left out

A release is private whatever its samples look like, and its samples are no less so with unique rows in them. What is
done here is a function of samples alone, hence free; and it makes no sample more private (docs/cli.md says why).

Of the records that are drawn, rows or units, the first so many are taken of which no more than are asked for stay;
then, in their order, later ones all of whose rows are like those that stay. What is kept of rows that are drawn is a
digest of 64 bits each, of units two; the rows are drawn a second time.
"""

from __future__ import annotations

import bisect
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from sfumato._lazy import later
from sfumato.columns.kinds import TabularKind
from sfumato.errors import ConfigError, SampleWarning, require_choice, require_instance
from sfumato.release.blocks import Blocks, LinkedBlocks, rows_present
from sfumato.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

UniqueRows: TypeAlias = Literal["keep", "drop"]
FOR_EYES = "unique rows of the sample were dropped: for eyes, NOT part of the guarantee"
METADATA_KEY = b"sfumato.unique_rows"
_MOST_DRAWN = 16  # times the rows that are asked for
_MOST = 2**62
_MISSING = np.uint64(0x9E3779B97F4A7C15)


def columns_to_compare(
    schema: Schema, unique_rows: str, unique_columns: Sequence[str] | None, *, class_counts: object
) -> tuple[str, ...] | None:
    """Return the columns on which rows have to repeat; None if all rows are kept.

    Raises:
        ConfigError: not one of the two words, columns that are not the release's, a release of something else than a
            table, or class counts, which dropping rows would change.
    """
    require_choice(get_args(UniqueRows), unique_rows=unique_rows)
    require_instance((list, tuple, NoneType), "a list of column names", unique_columns=unique_columns)
    for name in unique_columns or ():
        require_instance(str, "the name of a column", unique_columns=name)
    if unique_rows == "keep":
        if unique_columns:
            raise ConfigError("Expected unique_columns beside unique_rows='drop' only, got them without it.")
        return None
    if class_counts is not None:
        raise ConfigError(
            "Expected no class_counts beside unique_rows='drop', got both: dropping rows changes the classes. Sample "
            "each class by itself with `given`."
        )
    tabular = schema.of_kind(TabularKind) if schema.tree is None else {}
    other = next((name for name in schema.released if name not in tabular), None)
    if other is not None:
        what = schema.columns[other].holds if schema.tree is None else "a database"
        raise ConfigError(f"Expected a table to drop unique rows of, got {what} in column {other!r}.")
    if unique_columns is None:
        return schema.released
    if not unique_columns:
        raise ConfigError("Expected unique_columns to be a list of column names, or None for all columns.")
    for name in unique_columns:
        if name not in schema.released:
            known = ", ".join(map(repr, schema.released))
            raise ConfigError(f"Expected unique_columns to be of the release, got {name!r}. It has {known}.")
    return tuple(dict.fromkeys(unique_columns))


def repeated_rows(blocks: Blocks, columns: Sequence[str], workers: int) -> Iterator[pa.Table]:
    """Yield rows of which none is alone with its cells of some columns, in the order in which they are drawn.

    Args:
        blocks: of as many rows as to yield.
        columns: rows are alike that have the same cells here.
        workers: processes that draw.

    Warns:
        SampleWarning: fewer rows came, since too few repeat among 16 n that were drawn.
    """
    keep = _kept(blocks, columns, workers, "rows without unique ones")
    start = 0
    tables = replace(blocks, n=_MOST).tables_between(0, max(1, -(-len(keep) // blocks.size)), workers)
    for block, table in enumerate(_marked(tables)):
        mask = keep[start : start + table.num_rows]
        start += table.num_rows
        chosen = table.slice(0, len(mask)).filter(pa.array(mask))
        if chosen.num_rows or block == 0:  # at least one table
            yield chosen


def repeated_units(blocks: LinkedBlocks, columns: Sequence[str], workers: int) -> Iterator[pa.Table]:
    """Yield the rows of units of which each is like a row of another unit that is there: as `repeated_rows`.

    Where units have a table of their own, one without rows has to be like another without.
    """
    keep = _kept(blocks, columns, workers, "units without unique rows")
    staying = replace(blocks, n=keep.size, numbers=np.where(keep, np.cumsum(keep) - 1, -1))
    yield from _marked(staying.tables_between(0, max(1, -(-keep.size // blocks.size)), workers))


def _kept(blocks: Blocks, columns: Sequence[str], workers: int, words: str) -> np.ndarray:
    """Return which of the records that are drawn are kept, up to the last of them; `words` are for what was asked."""
    n, size, endless = blocks.n, blocks.size, replace(blocks, n=_MOST)
    most = max(1, -(-_MOST_DRAWN * n // size))
    digest_parts: list[np.ndarray] = []
    first, upto = 0, max(1, -(-n // size))
    while True:
        digest_parts += [_read(table, columns, blocks) for table in endless.tables_between(first, upto, workers)]
        marks, rows = np.concatenate(digest_parts, axis=1)
        linked = isinstance(blocks, LinkedBlocks)
        owners = np.cumsum(np.diff(marks, prepend=marks[:1]) != 0) if linked else np.arange(marks.size)
        keep = kept_records(owners, rows, n)
        came = int(np.count_nonzero(keep))
        if upto == most or came == n:
            break
        first, upto = upto, min(most, 2 * upto)
    if came < n:
        warnings.warn(
            f"Expected {n} {words}, got {came}: too few of {upto * size} that were drawn repeat in the columns that "
            "are compared. Name fewer columns, or declare coarser ones.",
            SampleWarning,
            stacklevel=3,
        )
    return keep


def _read(table: pa.Table, columns: Sequence[str], blocks: Blocks) -> np.ndarray:
    """Return digests of the unit of each row and of the row, shape (2, rows); of single rows the unit says nothing."""
    rows, present, unit = digests(table, columns), rows_present(table), blocks.decoder.schema.unit
    if not isinstance(blocks, LinkedBlocks) or unit is None:
        return np.stack([rows, rows])
    if present is not None:
        constant = [name for name in columns if name in unit.constant]
        rows = np.where(present, rows, ~digests(table, constant) if constant else _MISSING)
    return np.stack([digests(table, [unit.column]), rows])


def kept_records(owners: np.ndarray, digest: np.ndarray, n: int) -> np.ndarray:
    """Return which records to keep, up to the last, so that n come and each row is like one of another; else fewer.

    Args:
        owners: the record of each row, a unit or the row itself, from 0, ascending.
        digest: of every row.
        n: records to keep.
    """
    values, keys = np.unique(digest, return_inverse=True)
    records = int(owners.max(initial=-1)) + 1
    owner, key = np.divmod(np.unique(owners * max(values.size, 1) + keys), max(values.size, 1))  # like rows of one once
    ends = np.searchsorted(owner, np.arange(records), side="right")

    def staying(first: int) -> np.ndarray:
        """The largest set of the first records in which each row is like one of another: those with a lone row go."""
        stays, end = np.ones(first, dtype=bool), int(ends[first - 1]) if first else 0
        while True:
            places = np.flatnonzero(stays[owner[:end]])
            alone = places[np.bincount(key[places], minlength=values.size)[key[places]] == 1]
            if not alone.size:
                return stays
            stays[owner[alone]] = False

    first = bisect.bisect_right(range(records + 1), n, key=lambda m: int(staying(m).sum())) - 1
    stays = np.append(staying(first), np.zeros(records - first, dtype=bool))
    known = np.zeros(values.size, dtype=bool)
    known[key[stays[owner]]] = True
    like = ~stays
    like[owner[~known[key]]] = False
    stays[np.flatnonzero(like)[: n - int(stays.sum())]] = True
    return stays[: int(np.flatnonzero(stays).max(initial=-1)) + 1]


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
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    values: pa.Array = encoded.dictionary
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        cells = values.to_numpy(zero_copy_only=False)
    else:
        cells = np.array([repr(value) for value in values.to_pylist()], dtype=object)
    hashes = np.append(pd.util.hash_array(cells, categorize=False), _MISSING)
    places = encoded.indices.fill_null(len(cells)).to_numpy(zero_copy_only=False).astype(np.int64)
    return hashes[places]


def _marked(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Write into tables' metadata, which Parquet keeps, what was done."""
    for table in tables:
        metadata = {**(table.schema.metadata or {}), METADATA_KEY: FOR_EYES.encode()}
        yield table.replace_schema_metadata(metadata)
