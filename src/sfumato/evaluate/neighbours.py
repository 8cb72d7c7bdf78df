"""How far synthetic rows lie from real ones, and how much of the real rows they cover.

These figures prove nothing about privacy: a release can copy a record with every distance large, and a private one can
come close to records by chance. They are there because people ask for them. Reads real records without noise: the
figures are NOT private.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.desk.validation import INSIDE
from sfumato.errors import require_integer
from sfumato.evaluate.coded_tables import CodedTable, FeatureMap, read_codes, table_kinds
from sfumato.extras import require_extra
from sfumato.maths.streams import public_stream
from sfumato.schema.schema import SchemaLike, read_schema

CAVEAT = "Distances prove nothing about privacy; the certificate does."
MOST_ROWS = 2_000
MOST_FEATURES = 5_000
NEIGHBOURS = 5
_FIGURES = ("median_distance", "tenth_distance", "real_median_distance", "coverage", "identical", "nearer_to_real")


def nearest_rows(
    real: object, synthetic: object, *, schema: SchemaLike, test: object = None, k: int = NEIGHBOURS, seed: int = 0
) -> dict[str, Any]:
    """Distances from synthetic rows to the nearest real ones, and the coverage of the real rows.

    Rows are vectors: levels one-hot, numbers standardised by the real rows. A cell outside the schema is at least 1
    away from every cell of a row of the other kind, real or synthetic. At most 2,000 rows of each table are used,
    drawn by `seed`; distances depend on how many there are. Neighbours are scikit-learn's.

    Privacy: none. It reads the real records without noise. **The figures prove nothing about privacy.**

    Args:
        real: the real rows that were released, anything `open_source` reads.
        synthetic: synthetic rows.
        schema: a `Schema` or the path of one; the columns that are compared are its released ones.
        test: real rows that were not released.
        k: neighbours of a real row that make its ball, at least 1.
        seed: which rows are used.

    Returns:
        `median_distance` and `tenth_distance` (the 10 % quantile) from a synthetic row to the nearest real one;
        `real_median_distance`, from a real row to the nearest other one; `coverage`, the share of real rows with a
        synthetic row in their ball (its radius: the distance to the k-th other real row), null with k real rows or
        fewer; `identical`, the share of synthetic rows that equal a real one; `nearer_to_real`, with `test`: the share
        of synthetic rows nearer to a released row than to one of as many others, 0.5 if neither is favoured, ties
        counting half; `caveat`. All figures are null with more than 5,000 features.

    Raises:
        ConfigError: k is no whole number of at least 1; scikit-learn is not installed.
    Reference: coverage: Naeem et al. 2020, https://arxiv.org/abs/2002.09797, equation 6.

    Example:
        >>> import pandas as pd
        >>> from sfumato import Schema
        >>> from sfumato.columns import Integer
        >>> schema = Schema(columns={"age": Integer(lower=0, upper=120)})
        >>> real = pd.DataFrame({"age": [20, 30, 40, 50, 60, 70]})
        >>> nearest_rows(real, pd.DataFrame({"age": [30, 35]}), schema=schema)["identical"]
        0.5
    """
    require_extra("evaluate", "find nearest rows")
    schema = read_schema(schema)
    tables = read_codes(real, schema), read_codes(synthetic, schema), None if test is None else read_codes(test, schema)
    return table_neighbours(*tables, kinds=table_kinds(schema), k=k, seed=seed)


def table_neighbours(
    real: CodedTable,
    synthetic: CodedTable,
    test: CodedTable | None,
    *,
    kinds: dict[str, TabularKind],
    k: int = NEIGHBOURS,
    seed: int,
) -> dict[str, Any]:
    """As `nearest_rows`, from tables that were read with `read_codes`."""
    require_integer(at_least=1, k=k)
    features = FeatureMap.of(real, kinds)
    if not 0 < features.width <= MOST_FEATURES:
        return {**dict.fromkeys(_FIGURES), "caveat": CAVEAT}
    most = MOST_ROWS if test is None else min(MOST_ROWS, real.n_rows, test.n_rows)
    tables = [table for table in (real, synthetic, test) if table is not None]
    marked = sorted({name for table in tables for name in table.outside})
    x = _some(features, real, min(MOST_ROWS, most), seed, marked, 1.0)
    y = _some(features, synthetic, MOST_ROWS, seed, marked, -1.0)
    nearest = _distances(x, y, 1)[:, 0]
    among = _distances(x, x, min(k, len(x) - 1) + 1)
    figures: dict[str, Any] = {
        "median_distance": float(np.median(nearest)),
        "tenth_distance": float(np.quantile(nearest, 0.1)),
        "real_median_distance": float(np.median(among[:, 1])) if len(x) > 1 else None,
        "coverage": float(np.mean(_distances(y, x, 1)[:, 0] <= among[:, k])) if len(x) > k else None,
        "identical": float(np.mean(nearest == 0)),
        "nearer_to_real": None,
        "caveat": CAVEAT,
    }
    if test is not None:
        other = _distances(_some(features, test, most, seed, marked, 1.0), y, 1)[:, 0]
        figures["nearer_to_real"] = float(np.mean(nearest < other) + 0.5 * np.mean(nearest == other))
    return figures


def _some(
    features: FeatureMap, table: CodedTable, most: int, seed: int, marked: Sequence[str], mark: float
) -> np.ndarray:
    """Features of at most so many rows, and for each of some columns `mark` where its cell lies outside the schema."""
    if table.n_rows > most:
        table = table.keep(np.sort(public_stream(seed).choice(table.n_rows, most, replace=False)))
    inside = np.zeros(table.n_rows, dtype=np.int8)
    marks = [mark * (table.outside.get(name, inside) != INSIDE) for name in marked]
    return np.column_stack([features.matrix(table).toarray(), *marks])


def _distances(to: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """Distances from each row to its k nearest in `to`, ascending, shape (len(rows), k)."""
    from sklearn.neighbors import NearestNeighbors

    # by the tree, distances of equal rows are exactly 0; by products they are not
    return NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(to).kneighbors(rows)[0]
