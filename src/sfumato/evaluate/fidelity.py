"""k-way total variation between two tables, and differences of their correlations.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats.contingency import association

from sfumato.columns.kind import TabularKind
from sfumato.desk.rule_breaks import RuleBreaks, count_breaks
from sfumato.desk.validation import NOWHERE
from sfumato.errors import ConfigError
from sfumato.evaluate.coded_tables import CodedTable, read_codes, table_kinds
from sfumato.io.sources import open_source
from sfumato.schema.schema import Schema, SchemaLike, read_schema

BINS = 20
"""Equal-width bins of a numeric column, between the schema's bounds."""

MOST_COLUMNS = 500
"""With more columns, a sample of the sets stands for all of them."""

SAMPLED_SETS = 2_000

_BLOCK_ROWS = 1 << 20


def rule_breaks(rows: object, *, schema: SchemaLike) -> RuleBreaks:
    """Count the rows that break each rule of a schema.

    Privacy: none. Counts of real rows are exact; do not publish them.

    Args:
        rows: real or synthetic rows, anything `open_source` reads.
        schema: a `Schema` with rules, or the path of one.

    Raises:
        ConfigError: the schema has no rules.
        SchemaError: a column that a rule names is not there.
        DataError: the rows cannot be read.

    Example:
        >>> import pandas as pd
        >>> from sfumato import Schema
        >>> from sfumato.columns import Integer
        >>> columns = {name: Integer(lower=0, upper=9) for name in ("start", "end")}
        >>> schema = Schema(columns=columns, rules=({"order": ["start", "end"]},))
        >>> rule_breaks(pd.DataFrame({"start": [1, 5], "end": [2, 3]}), schema=schema).shares
        {'{order: [start, end]}': 0.5}
    """
    schema = read_schema(schema)
    breaks = count_breaks(open_source(rows, csv=schema.reader.csv), schema)
    if breaks is None:
        raise ConfigError("Expected a schema with rules, got none. Add them under `rules:`.")
    return breaks


def rule_scores(breaks: Mapping[str, RuleBreaks | None]) -> dict[str, Any] | None:
    """Return the shares of rows that break rules, by table; None without rules.

    Returns:
        `broken`: table to the share of its rows that break at least one rule. `by_rule`: rule to the same of it alone.
    """
    tables = {name: some for name, some in breaks.items() if some is not None}
    if not tables:
        return None
    texts = next(iter(tables.values())).counts
    return {
        "broken": {name: some.any_share for name, some in tables.items()},
        "by_rule": {text: {name: some.shares[text] for name, some in tables.items()} for text in texts},
    }


def total_variation(real: object, synthetic: object, *, schema: SchemaLike, k: int) -> float:
    """Mean over sets of k columns of the total variation between two tables.

        mean over S, |S| = k, of  ½ Σ_cells |p_real,S(cell) − p_synthetic,S(cell)|

    with p the empirical distributions. Categories are as they are, numeric columns are cut into
    20 equal-width bins over the schema's bounds, the outermost of which take what lies beyond.
    Rows of a schema with weights count by them, where the table has their column.
    Missing is a category of its own, and so is what the schema has no place for: an unknown label
    without `other`, a missing cell of a column that is not nullable. The mean is over all sets;
    for k = 3, or above 500 columns, over 2,000 sets drawn once for all tables of that many columns.

    Privacy: none. It reads the real records without noise; the figure is not private.

    Args:
        real: real rows, anything `open_source` reads.
        synthetic: synthetic rows, likewise.
        schema: a `Schema` or the path of one; the columns that are compared are its released ones.
        k: columns in a set: 1, 2 or 3, and no more than there are columns.

    Returns:
        A number in [0, 1]; 0 means the same shares in every cell.

    Raises:
        ConfigError: k is none of these.
        DataError: a table has no rows, or cannot be read.

    Edge cases: identical tables and constant columns → 0. Tables without a common cell → 1.
    Reference: P3GM (Takagi et al. 2021), Table VIII, for k = 2; the bins are ours.

    Example:
        >>> import pandas as pd
        >>> from sfumato import Schema
        >>> from sfumato.columns import Boolean
        >>> schema = Schema(columns={"member": Boolean()})
        >>> real = pd.DataFrame({"member": [True, True, True, False]})
        >>> total_variation(real, pd.DataFrame({"member": [True, False]}), schema=schema, k=1)
        0.25
    """
    schema = read_schema(schema)
    most = min(3, len(table_kinds(schema)))
    if not isinstance(k, Integral) or not 1 <= k <= most:
        raise ConfigError(f"Expected k to be a whole number from 1 to {most}, got k={k!r}.")
    return mean_distance(read_bins(real, schema), read_bins(synthetic, schema), schema=schema, k=k)


def read_bins(data: object, schema: Schema) -> CodedTable:
    """Read a table as bin numbers, in the smallest integers that hold them; the last is for what has no place."""
    table = read_codes(data, schema, encode=bin_codes)
    kinds = table_kinds(schema)
    for name, marks in table.outside.items():
        table.columns[name][marks == NOWHERE] = n_bins(kinds[name]) - 1
    return table


def bin_codes(kind: TabularKind, codes: np.ndarray) -> np.ndarray:
    """Return the bin of each code: a level is its own, a missing number the one after all others."""
    size = n_bins(kind)
    if kind.is_numeric:
        scaled = np.floor(np.where(np.isnan(codes), 0.0, codes) * BINS)
        codes = np.where(np.isnan(codes), BINS, np.clip(scaled, 0, BINS - 1))
    return codes.astype(np.min_scalar_type(size - 1))


def n_bins(kind: TabularKind) -> int:
    """How many bins a column of this kind has, that of missing numbers and, last, of what has no place included."""
    return 1 + (BINS + 1 if kind.is_numeric else kind.width)


def mean_distances(real: CodedTable, synthetic: CodedTable, *, schema: Schema, most: int) -> dict[str, float | None]:
    """Return `mean_distance` of one to `most` columns, by `tvd_1way` and so on; None where there are fewer columns."""
    names = table_kinds(schema)
    return {
        f"tvd_{k}way": mean_distance(real, synthetic, schema=schema, k=k) if k <= len(names) else None
        for k in range(1, most + 1)
    }


def mean_distance(real: CodedTable, synthetic: CodedTable, *, schema: Schema, k: int) -> float:
    """As `total_variation`, from tables that were read with `read_bins`."""
    names = list(table_kinds(schema))
    sets = list(column_sets(len(names), k))
    return math.fsum(set_distance(real, synthetic, [names[i] for i in columns], schema) for columns in sets) / len(sets)


def set_distance(real: CodedTable, synthetic: CodedTable, names: Sequence[str], schema: Schema) -> float:
    """Total variation between two tables of some columns, from tables that were read with `read_bins`."""
    kinds = table_kinds(schema)
    sizes = {name: n_bins(kinds[name]) for name in names}
    cells = math.prod(sizes.values())
    if cells <= 4 * (real.n_rows + synthetic.n_rows):
        return distance(*(_dense_shares(table, names, sizes, cells) for table in (real, synthetic)))
    return distance(*_sparse_shares(real, synthetic, names, sizes))


def column_sets(d: int, k: int) -> Iterable[tuple[int, ...]]:
    """The sets of k out of d columns to average over; the same ones for the same d and k."""
    if math.comb(d, k) <= SAMPLED_SETS or (k < 3 and d <= MOST_COLUMNS):
        return combinations(range(d), k)
    rng = np.random.default_rng(0)  # noqa: TID251  # a public and fixed choice
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < SAMPLED_SETS:
        chosen[tuple(sorted(rng.choice(d, size=k, replace=False).tolist()))] = None
    return list(chosen)


def distance(p: np.ndarray, q: np.ndarray) -> float:
    """Total variation of two distributions over the same cells: half their L1 distance."""
    return 0.5 * float(np.abs(p - q).sum())


def _dense_shares(table: CodedTable, names: Sequence[str], sizes: Mapping[str, int], cells: int) -> np.ndarray:
    """Parts of the rows in every cell, counted a block of rows at a time."""
    counts = np.zeros(cells, dtype=np.int64 if table.weights is None else np.float64)
    for start in range(0, table.n_rows, _BLOCK_ROWS):
        cell = np.zeros(1, dtype=np.int64)
        for name in names:
            cell = cell * sizes[name] + table.columns[name][start : start + _BLOCK_ROWS]
        counts += table.counts(cell, cells, start)
    return counts / table.total


def _sparse_shares(
    real: CodedTable, synthetic: CodedTable, names: Sequence[str], sizes: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Parts of the rows in every cell that occurs; numbering them anew per column keeps them in int64."""
    cell: np.ndarray[Any, np.dtype[np.int64]] = np.zeros(1, dtype=np.int64)
    for name in names:
        both = np.concatenate([real.columns[name], synthetic.columns[name]])
        _, cell = np.unique(cell * sizes[name] + both, return_inverse=True)
    occupied = int(cell.max()) + 1
    return real.shares(cell[: real.n_rows], occupied), synthetic.shares(cell[real.n_rows :], occupied)


def correlation_differences(real: object, synthetic: object, *, schema: SchemaLike) -> dict[str, Any]:
    """Differences of correlations between two tables, pair by pair of columns.

    Two numeric columns: Pearson's correlation, of the rows where neither is missing (pandas). Two level columns:
    Cramér's V (scipy), of the levels that occur, missing being one. Pairs of a numeric and a level column are left out.

    Privacy: none. It reads the real records without noise; no figure is private.

    Args:
        real: real rows, anything `open_source` reads.
        synthetic: synthetic rows, likewise.
        schema: a `Schema` or the path of one; the columns that are compared are its released ones.

    Returns:
        `pearson` and `cramers_v`, each null if there is no such pair, or `mean` and `largest` absolute difference, and
        `worst`, the names of the pair where it is largest.

    Edge cases: a correlation with a constant or an empty column counts as 0.
    Reference: Pearson 1895; Cramér 1946, without correction for bias.

    Example:
        >>> import pandas as pd
        >>> from sfumato import Schema
        >>> from sfumato.columns import Integer
        >>> schema = Schema(columns={name: Integer(lower=0, upper=3) for name in ("a", "b")})
        >>> real = pd.DataFrame({"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]})
        >>> found = correlation_differences(real, pd.DataFrame({"a": [0, 1, 2, 3], "b": [3, 2, 1, 0]}), schema=schema)
        >>> round(found["pearson"]["largest"], 6)
        2.0
    """
    schema = read_schema(schema)
    return table_correlations(read_codes(real, schema), read_codes(synthetic, schema), schema=schema)


def table_correlations(real: CodedTable, synthetic: CodedTable, *, schema: Schema) -> dict[str, Any]:
    """As `correlation_differences`, from tables that were read with `read_codes`."""
    kinds = table_kinds(schema)
    levels = [name for name, kind in kinds.items() if not kind.is_numeric]
    numbers = [name for name in kinds if name not in levels]
    return {"pearson": _pearson(real, synthetic, numbers), "cramers_v": _cramer(real, synthetic, levels, schema)}


def _pearson(real: CodedTable, synthetic: CodedTable, names: list[str]) -> dict[str, Any] | None:
    matrices = []
    for table in (real, synthetic):
        # a constant column's rounding can leave it a variance: exact zeros are correlated
        # less a value of their own: what is far from 0 loses digits
        known = {name: codes[~np.isnan(codes)][:1] for name, codes in table.columns.items() if name in names}
        frame = pd.DataFrame({name: table.columns[name] - known[name].sum() for name in names}, columns=names)
        with np.errstate(all="ignore"):
            matrix = frame.corr().to_numpy() if table.weights is None else _weighted_correlations(frame, table.weights)
            matrices.append(np.nan_to_num(matrix))
    pairs = list(combinations(range(len(names)), 2))
    return _summary({(names[i], names[j]): abs(float(matrices[0][i, j] - matrices[1][i, j])) for i, j in pairs})


def _weighted_correlations(frame: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    """Pearson's correlations of weighted rows, each pair of the rows where neither is missing, shape (d, d)."""
    values = frame.to_numpy()
    known = ~np.isnan(values)
    x = np.where(known, values, 0.0)
    sums = (known * weights[:, None]).T
    n, means, squares, products = sums @ known, (x.T * weights) @ known, (x.T**2 * weights) @ known, (x.T * weights) @ x
    variances = np.maximum(squares / n - (means / n) ** 2, 0.0)
    return (products / n - means * means.T / n**2) / np.sqrt(variances * variances.T)


def _cramer(real: CodedTable, synthetic: CodedTable, names: list[str], schema: Schema) -> dict[str, Any] | None:
    if len(names) < 2:
        return None
    sizes = [table_kinds(schema)[name].n_levels for name in names]
    differences = {}
    for i, j in column_sets(len(names), 2):
        pair, shape = (names[i], names[j]), (sizes[i], sizes[j])
        differences[pair] = abs(_association(real, pair, shape) - _association(synthetic, pair, shape))
    return _summary(differences)


def _association(table: CodedTable, pair: tuple[str, str], shape: tuple[int, int]) -> float:
    first, second = (np.unique(table.columns[name], return_inverse=True)[1] for name in pair)
    rows, columns = int(first.max()) + 1, int(second.max()) + 1
    if min(rows, columns) < 2:
        return 0.0
    cells = first * columns + second
    if table.weights is None:
        counts = np.bincount(cells, minlength=rows * columns).reshape(rows, columns)
        return float(association(counts, method="cramer"))
    shares = table.shares(cells, rows * columns).reshape(rows, columns)
    shares = shares[shares.any(axis=1)][:, shares.any(axis=0)]
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    return float(np.sqrt(((shares - apart) ** 2 / apart).sum() / max(min(shares.shape) - 1, 1)))


def _summary(differences: dict[tuple[str, str], float]) -> dict[str, Any] | None:
    if not differences:
        return None
    worst = max(differences, key=lambda pair: differences[pair])
    return {"mean": float(np.mean(list(differences.values()))), "largest": differences[worst], "worst": list(worst)}
