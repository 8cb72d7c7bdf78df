"""Scores of the correlation of pairs of rows of a unit, which lie so many rows apart.

With the sums of a unit's pairs, `MOMENTS`, its part in the correlation's equation at the model's means, variances and
correlation is one number, linear in these: Σ zx·zy − ρ(zx² + zy²)/2, the influence of the unit. That is measured, and
its square, which says how far units differ; and in a second part the spread Σ (zx² + zy²)/2 − 1, by which the first is
divided. What else is wrong is of second order. So the sums themselves say the correlation, and no law of units between.

Free: uses public facts and released values only. Derivation: docs/proofs/questions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.inference.noisy_totals import Scores
from sfumato.inference.score_designs import best_turn, middles
from sfumato.maths.constants import QUESTIONS
from sfumato.measurements.cells import Cells
from sfumato.measurements.score_query import LARGEST_NUMBER, ONE, EstimatingEquation, ScoreQuery
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.schema_facts import SchemaFacts
from sfumato.schema.unit_features import MOMENTS, Lag, features_in

PRODUCTS, SQUARES = MOMENTS.index("products"), MOMENTS.index("earlier squared")
WIDTH = 4.0  # deviations from the mean at which values count as that far
_OF_SQUARE = 0.2  # of the influence's square beside the influence, where that is clipped
_LEAST_SPREAD = 1e-3  # of codes
_LOOSER = 1.3  # than units like those aimed at need: others may be farther off
_MISSED = 0.5  # of what clipping takes off, which is put back: so much of it is allowed for
_LEAST_WIDTH = 0.1  # of both variances ÷ the stated ones


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
    nothing, products = np.zeros(k, dtype=np.int64), np.concatenate([products[1 + left : 2 + left], products])
    equation = EstimatingEquation(_formula(lag), tuple(map(Cells.of, grids)), tuple(functions), products, nothing)
    return ScoreQuery((equation,), np.diag(nothing))


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
    [equation] = query.equations
    left = _left(equation)
    weights = np.maximum(weights, 0.0)
    weights = weights / max(float(weights.sum()), 1e-300)
    squares = np.full((1, 1), 1 / max(float(weights @ values**2), 1e-300))
    turn = best_turn(values[:, None], squares, weights, 1 + 0.01 * size, noise_std / np.sqrt(size))
    worth = float(turn[0, 0]) / _LOOSER if np.isfinite(turn).all() else 1.0
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
    return replace(query, equations=(replace(equation, coefficients=whole[0]),), turn=whole[1])


def _left(equation: EstimatingEquation) -> int:
    """The moment that is the left side."""
    return int(np.flatnonzero(equation.products[0])[0])


@dataclass(frozen=True, slots=True)
class PairTotals:
    """What a release measured of a correlation of pairs: two sums of scores, at stated means, variances, correlation.

    Attributes:
        first: scores of the influence.
        second: of the spread.
    """

    first: Scores
    second: Scores

    @classmethod
    def of(cls, lag: Lag, scores: Sequence[Scores]) -> PairTotals | None:
        """Those of some pairs; None where there are none."""
        own = [one for one in scores if one.query.equations[0].formula == _formula(lag)]
        sides = {_left(one.query.equations[0]): one for one in own}
        return cls(sides[PRODUCTS], sides[SQUARES]) if {PRODUCTS, SQUARES} <= sides.keys() else None

    @property
    def place(self) -> tuple[str, ...]:
        """The moments that they are of."""
        return tuple(axis.column for axis in self.first.query.cells)

    @property
    def _stated(self) -> tuple[float, float, float]:
        """The correlation, the root of both variances' product, and the first ÷ the second, that scores are about."""
        first, second = (one.query.equations[0].coefficients / ONE for one in (self.first, self.second))
        ratio = max(-float(second[1 + SQUARES + 1]), 1e-12)
        mx = float(second[2]) / 2
        my = float(second[3]) / (2 * ratio)
        vx = max((float(second[1]) + mx**2 + my**2 * ratio) / 2, 1e-12)
        return 2 * float(first[1 + SQUARES]) * np.sqrt(ratio), vx / np.sqrt(ratio), vx

    def correlation(self, pairs: float, missed: tuple[float, float] = (0.0, 0.0)) -> tuple[float, dict[str, float]]:
        """Return the correlation, and the standard errors of what noise and clipping leave open.

        Args:
            pairs: the total of the moment of that name.
            missed: what clipping takes off both sums of scores.
        """
        stated, root, vx = self._stated
        parts = list(zip((self.first, self.second), missed, strict=True))
        sums = [(float(one.measurement.value[0]) + lost) / self._worth(one) for one, lost in parts]
        errors = [one.measurement.noise_std / self._worth(one) / pairs for one in (self.first, self.second)]
        wider = max(1 + sums[1] / pairs / (2 * vx), _LEAST_WIDTH)
        value = stated + sums[0] / pairs / (root * wider)
        away = (value - stated) / wider
        lost = [_MISSED * abs(part) / self._worth(one) / pairs for one, part in parts]
        noise = np.hypot(errors[0] / (root * wider), away * errors[1] / (2 * vx))
        hidden = np.hypot(lost[0] / (root * wider), away * lost[1] / (2 * vx))
        return float(value), {"noise": float(noise), "unmeasured": float(hidden)}

    def sampling(self, moments: np.ndarray, pairs: float, units: float) -> float:
        """Return the standard error of drawing units like these, or as far apart as was measured, if that is more.

        Args:
            moments: of units, shape (N, 6).
            pairs: as in `correlation`.
            units: how many there are.
        """
        _, root, _ = self._stated
        of_square = self.first.measurement.value[1] / (self.first.query.turn[1, 1 + PRODUCTS] / ONE)
        unsure = self.first.measurement.noise_std / (self.first.query.turn[1, 1 + PRODUCTS] / ONE)
        _, influence, _ = pair_forms(moments, np.ones(len(moments)))
        like = float(((moments @ influence) ** 2).mean()) * units
        known = (of_square - unsure) / root**2
        return float(np.sqrt(max(like, known, 0.0)) / pairs)

    def clipped(self, moments: np.ndarray, units: float) -> tuple[float, float]:
        """Return what clipping takes off both sums of scores of units like these, shape (N, 6)."""
        lost = []
        for one in (self.first, self.second):
            [equation], ones = one.query.equations, np.ones((len(moments), 1))
            terms = np.concatenate([ones, moments], axis=1)
            residual = moments[:, _left(equation)] - terms @ (equation.coefficients / ONE)
            whole = terms * residual[:, None] @ (one.query.turn / ONE).T
            norms = np.linalg.norm(whole, axis=1)
            lost.append(float((whole[:, 0] * (1 - 1 / np.maximum(norms, 1.0))).mean()) * units)
        return lost[0], lost[1]

    @staticmethod
    def _worth(scores: Scores) -> float:
        return max(abs(float(scores.query.turn[0, 0])) / ONE, 1e-12)


def _formula(lag: Lag) -> str:
    return f"lag {lag.lag} of {lag.column}"
