"""Scores of the correlation of pairs of rows of a unit, which lie so many rows apart.

With the sums of a unit's pairs, `MOMENTS`, its part in the correlation's equation at the model's means, variances and
correlation is one number, linear in these: Σ zx·zy − ρ(zx² + zy²)/2, the influence of the unit. That is measured, and
its square, which says how far units differ; and in a second part the spread Σ (zx² + zy²)/2 − 1, by which the first is
divided. What else is wrong is of second order.

Free: uses public facts and released values only. Derivation: docs/proofs/questions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.inference.score_designs import best_turn, middles
from sfumato.maths.constants import QUESTIONS
from sfumato.measurements.cells import Cells
from sfumato.measurements.score_query import LARGEST_NUMBER, ONE, ScoreQuery
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.schema_facts import SchemaFacts
from sfumato.schema.unit_features import MOMENTS, Lag, features_in

PRODUCTS, SQUARES = MOMENTS.index("products"), MOMENTS.index("earlier squared")
WIDTH = 4.0  # deviations from the mean at which values count as that far
_OF_SQUARE = 0.5  # of the influence's square beside the influence, where that is clipped
_LEAST_SPREAD = 1e-3  # of codes


def pair_query(lag: Lag, schema: SchemaFacts, centre: int, scale: int, left: int) -> ScoreQuery:
    """Return scores of pairs at coefficients of 0, not turned: of a constant, then of each of `MOMENTS`.

    Args:
        lag: the pairs.
        schema: of linked rows, plain.
        centre: as in `UnitFeature`.
        scale: likewise.
        left: the moment that is their left side.
    """
    features = features_in(lag.moments(centre, scale), schema)
    grids = [ColumnGrid.numbers(f.name, f.kind, QUESTIONS.cells, narrow=True) for f in features]  # type: ignore[arg-type]
    functions = []
    for feature, grid in zip(features, grids, strict=True):
        lower, upper = feature.kind.bounds  # type: ignore[attr-defined]
        value = lower + (upper - lower) * middles(grid)
        functions.append(np.rint(np.stack([np.ones(value.size), value], axis=1) * ONE).astype(np.int64))
    k = len(features) + 1
    products = np.concatenate([np.zeros((1, k - 1), dtype=np.int64), np.eye(k - 1, dtype=np.int64)])
    nothing = np.zeros(k, dtype=np.int64)
    return ScoreQuery(
        f"lag {lag.lag} of {lag.column}", tuple(map(Cells.of, grids)), tuple(functions),
        np.concatenate([products[1 + left : 2 + left], products]), nothing, np.diag(nothing),
    )  # fmt: skip


def pair_place(moments: np.ndarray, weights: np.ndarray) -> tuple[int, int]:
    """Return centre and scale of the values of pairs, in 2^-20 of codes.

    Args:
        moments: of a model's units, about 1/2 by 1/2, shape (N, 6).
        weights: of the units, shape (N,).
    """
    pairs, earlier, later, *squares, _ = np.maximum(weights, 0.0) @ moments
    pairs = max(float(pairs), 1e-300)
    mean = (earlier + later) / 2 / pairs
    spread = np.sqrt(max(sum(squares) / 2 / pairs - mean**2, 0.0)) / 2
    centre = int(np.rint(np.clip((mean + 1) / 2, 0.0, 1.0) * ONE))
    return centre, int(np.clip(np.rint(WIDTH * max(spread, _LEAST_SPREAD) * ONE), 1, ONE))


def pair_forms(moments: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the correlation of pairs, and a unit's influence on it and part in the spread, as forms in the moments.

    Args:
        moments: of a model's units, shape (N, 6).
        weights: of the units, shape (N,).
    """
    totals = weights @ moments
    totals[0] = max(float(totals[0]), 1e-300)  # of no pairs all sums are 0
    pairs, mx, my = float(totals[0]), float(totals[1] / totals[0]), float(totals[2] / totals[0])
    vx, vy = (max(float(totals[3 + i] / pairs - m**2), 1e-12) for i, m in enumerate((mx, my)))
    cross = np.array([mx * my, -my, -mx, 0.0, 0.0, 1.0]) / np.sqrt(vx * vy)
    both = (
        np.array([mx**2, -2 * mx, 0.0, 1.0, 0.0, 0.0]) / vx + np.array([my**2, 0.0, -2 * my, 0.0, 1.0, 0.0]) / vy
    ) / 2
    value = float(totals @ cross) / pairs
    return value, cross - value * both, both - np.eye(len(MOMENTS))[0]


def aim_pairs(
    query: ScoreQuery, form: np.ndarray, values: np.ndarray, weights: np.ndarray, size: float, noise_std: float
) -> ScoreQuery:
    """Return scores of a linear form in the moments and of its square, clipped by a model's weighted units.

    Args:
        query: of `pair_query`.
        form: shape (6,); that of the left side is not 0.
        values: the form's, of units, shape (N,).
        weights: of units, shape (N,).
        size: number of units.
        noise_std: of the sum of scores that are clipped to norm 1.
    """
    left = int(np.flatnonzero(query.products[0])[0])
    weights = np.maximum(weights, 0.0)
    weights = weights / max(float(weights.sum()), 1e-300)
    turn = best_turn(
        values[:, None], np.eye(1), weights, np.zeros(1, dtype=bool), 1 + 0.01 * size, noise_std / np.sqrt(size)
    )
    worth = float(turn[0, 0]) if np.isfinite(turn).all() else 1.0
    coefficients = np.nan_to_num(-form / form[left])
    coefficients[left] = 0.0
    turned = np.zeros((form.size + 1, form.size + 1))
    turned[0, 0] = worth * form[left]
    turned[1, 1:] = _OF_SQUARE * worth**2 * form[left] * form
    largest = LARGEST_NUMBER / ONE
    whole = [
        np.rint(np.clip(np.nan_to_num(part), -largest, largest) * ONE).astype(np.int64)
        for part in (np.append(0.0, coefficients), turned)
    ]
    return replace(query, coefficients=whole[0], turn=whole[1])


def pair_columns(lag: Lag, queries: Sequence[ScoreQuery]) -> frozenset[str]:
    """Return the moments that scores of pairs are of; none where there are no such scores."""
    formula = f"lag {lag.lag} of {lag.column}"
    return next((query.columns for query in queries if query.formula == formula), frozenset())
