"""How pairs of columns are correlated, in real and in synthetic rows.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats.contingency import association

from sfumato.columns.kinds import LevelKind, n_levels
from sfumato.evaluate.fidelity import column_sets
from sfumato.evaluate.tables import CodedTable, read_codes, table_kinds
from sfumato.io.sources import open_source
from sfumato.schema.schema import Schema, SchemaLike, read_schema


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
    """
    schema = read_schema(schema)
    return table_correlations(
        read_codes(open_source(real), schema), read_codes(open_source(synthetic), schema), schema=schema
    )


def table_correlations(real: CodedTable, synthetic: CodedTable, *, schema: Schema) -> dict[str, Any]:
    """As `correlation_differences`, from tables that were read with `read_codes`."""
    kinds = table_kinds(schema)
    levels = [name for name, kind in kinds.items() if isinstance(kind, LevelKind)]
    numbers = [name for name in kinds if name not in levels]
    return {"pearson": _pearson(real, synthetic, numbers), "cramers_v": _cramer(real, synthetic, levels, schema)}


def _pearson(real: CodedTable, synthetic: CodedTable, names: list[str]) -> dict[str, Any] | None:
    matrices = []
    for table in (real, synthetic):
        # a constant column's rounding can leave it a variance: pandas is given exact zeros
        frame = pd.DataFrame({name: _centred(table.columns[name]) for name in names}, columns=names)
        with np.errstate(all="ignore"):
            matrices.append(np.nan_to_num(frame.corr().to_numpy()))
    pairs = list(combinations(range(len(names)), 2))
    found = {(names[i], names[j]): abs(float(matrices[0][i, j] - matrices[1][i, j])) for i, j in pairs}
    return _summary(found)


def _centred(codes: np.ndarray) -> np.ndarray:
    known = codes[~np.isnan(codes)]
    return codes - known[0] if len(known) else codes


def _cramer(real: CodedTable, synthetic: CodedTable, names: list[str], schema: Schema) -> dict[str, Any] | None:
    if len(names) < 2:
        return None
    sizes = [n_levels(schema.columns[name]) for name in names]  # type: ignore[arg-type]
    found = {}
    for i, j in column_sets(len(names), 2):
        pair, shape = (names[i], names[j]), (sizes[i], sizes[j])
        found[pair] = abs(_association(real, pair, shape) - _association(synthetic, pair, shape))
    return _summary(found)


def _association(table: CodedTable, pair: tuple[str, str], shape: tuple[int, int]) -> float:
    first, second = (np.unique(table.columns[name], return_inverse=True)[1] for name in pair)
    rows, columns = int(first.max()) + 1, int(second.max()) + 1
    if min(rows, columns) < 2:
        return 0.0
    counts = np.bincount(first * columns + second, minlength=rows * columns).reshape(rows, columns)
    return float(association(counts, method="cramer"))


def _summary(found: dict[tuple[str, str], float]) -> dict[str, Any] | None:
    if not found:
        return None
    worst = max(found, key=lambda pair: found[pair])
    return {"mean": float(np.mean(list(found.values()))), "largest": found[worst], "worst": list(worst)}
