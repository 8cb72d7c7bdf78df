"""Log-likelihood: how likely held-out rows are under a density of the synthetic ones.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sfumato.errors import require_integer
from sfumato.evaluate.coded_tables import CodedTable, random_state, read_codes, table_kinds
from sfumato.extras import require_extra
from sfumato.maths.streams import public_stream
from sfumato.schema.schema import Schema, SchemaLike, read_schema

COMPONENTS = 5
FLOOR = 1e-4
"""Added to every variance, a column's range being 1: without it rows of one value have no bounded density."""

MOST_ROWS = 5_000
MOST_FULL = 50
"""Columns that get full covariances; more get diagonal ones."""


def log_likelihood(
    test: object,
    synthetic: object,
    *,
    schema: SchemaLike,
    real: object = None,
    components: int = COMPONENTS,
    seed: int = 0,
) -> dict[str, Any]:
    """Score held-out rows under a mixture of Gaussians fitted to synthetic ones: mean ln p(row), numeric columns.

        (1/n) Σ ln Σ_k π_k N(x_i; μ_k, Σ_k + 1e-4·I),   x a row's numbers as positions between the schema's bounds

    Privacy: none. It reads the real records without noise; no figure is private.

    Args:
        test: real rows that were not released, anything `open_source` reads. Released ones flatter.
        synthetic: synthetic rows.
        schema: a `Schema` or the path of one; the numbers are those of its released columns, clamped to its bounds.
        real: the released rows, for the same beside it.
        components: of the mixtures, fewer for tables of few rows.
        seed: of where the fits start, and of which 5,000 rows of a larger table are used.

    Returns:
        `synthetic`: the mean in nats; `real`: under a mixture of the released rows, null without them; `columns`, how
        many numbers a row has; `components`. Rows with a missing number are left out. Figures are null without numeric
        columns, or where no complete row is left.

    Raises:
        ConfigError: components is no whole number of at least 1; scikit-learn is not installed.
        SchemaError: a column is not in one of the tables.
        DataError: a table cannot be read, or has no rows.
    Reference: Park et al. 2017 (DP-EM), section 5; protocol 5.5 of the comparison in papers/.
    """
    require_extra("evaluate", "fit mixtures to rows")
    schema = read_schema(schema)
    tables = read_codes(test, schema), read_codes(synthetic, schema), None if real is None else read_codes(real, schema)
    return table_likelihood(*tables, schema=schema, components=components, seed=seed)


def table_likelihood(
    test: CodedTable,
    synthetic: CodedTable,
    real: CodedTable | None,
    *,
    schema: Schema,
    components: int = COMPONENTS,
    seed: int,
) -> dict[str, Any]:
    """As `log_likelihood`, from tables that were read with `read_codes`."""
    require_integer(at_least=1, components=components)
    names = [name for name, kind in table_kinds(schema).items() if kind.is_numeric]
    scored = _points(test, names, seed)

    def under(table: CodedTable | None) -> float | None:
        points = None if table is None else _points(table, names, seed)
        if not names or points is None or min(len(points), len(scored)) == 0:
            return None
        return _fitted_score(points, scored, components, seed)

    scores = {"synthetic": under(synthetic), "real": under(real)}
    return {**scores, "columns": len(names), "components": components}


def _points(table: CodedTable, names: list[str], seed: int) -> np.ndarray:
    """Complete rows as positions between the bounds, shape (n, number of names); at most 5,000."""
    if not names:
        return np.zeros((0, 0))
    table = table.population(seed)
    points = np.column_stack([np.asarray(table.columns[name], dtype=np.float64) for name in names])
    points = points[~np.isnan(points).any(axis=1)]
    if len(points) <= MOST_ROWS:
        return points
    return points[public_stream(seed).choice(len(points), MOST_ROWS, replace=False)]


def _fitted_score(points: np.ndarray, scored: np.ndarray, components: int, seed: int) -> float:
    from sklearn.mixture import GaussianMixture

    mixture = GaussianMixture(
        max(1, min(components, len(points) // 10)),
        covariance_type="full" if points.shape[1] <= MOST_FULL else "diag",
        reg_covar=FLOOR,
        random_state=random_state(seed),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps, or few distinct rows: the density is one all the same
        mixture.fit(points if len(points) > 1 else np.repeat(points, 2, axis=0))
    return float(mixture.score(scored))
