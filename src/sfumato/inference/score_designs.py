"""The terms of a formula as products of functions of columns' cells, and the scores to measure for it.

A formula is evaluated on rows of middles of cells alone: of each column of a term its cells in turn, the others held
where the term is largest. A term that is no product of functions of one column each, as a logarithm of a sum is none,
is refused.

Where scores are measured, which turn and which norm: by rows of a model, that is by what was released before. Noise of
a turn T has covariance (TᵀT)⁻¹, and every score has to have ‖T s‖ ≤ 1: the least trace of the coefficients' noise,
beside their sampling errors, is that of the optimal design of Edmonds, Nikolov and Ullman 2020 for these rows. The
scores of several regressions are one vector.

Free: uses public facts and released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy import linalg, special

from sfumato.errors import ConfigError
from sfumato.inference.formula_values import SPLINES, FormulaValues
from sfumato.inference.formulas import Design, ReadFormula, columns_of, read_formula, term_widths
from sfumato.inference.table_measurements import TableMeasurements, values
from sfumato.maths.constants import QUESTIONS
from sfumato.maths.streams import public_stream
from sfumato.measurements.cells import Cells
from sfumato.measurements.score_query import (
    LARGEST_NUMBER,
    MOST_COLUMNS,
    MOST_TERMS,
    ONE,
    EstimatingEquation,
    Link,
    ScoreQuery,
)
from sfumato.records.linked import with_features
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.linked import linked_tables
from sfumato.schema.schema import Schema
from sfumato.schema.unit_features import features_in

_COMBINATIONS, _STREAM = 4096, 50_126
_SAME = 1e-6  # of a term: what evaluating it may lose
_RIDGE, _ROUNDS = 1e-4, 25  # the first in a term's own variance: in its unit it would rule terms far from 0
_LEAST_RIDGE = 1e-8  # of a term that no row has
_TURNS = 12  # steps to the best turn
_OFF = 0.1  # deviations by which a model's mean of what clipping takes away may be off
_PARTS = np.append(1 - np.geomspace(0.3, 0.001, 24), 1.0)  # of rows whose scores are not clipped: what is tried
_FAINT = 1e-4  # of the largest direction of scores: fainter ones are taken for as large
_TINY, _LEAST_NORM = 1e-18, 1e-9  # of scores that are nothing but rounding
_MOST_CONDITION = 1e12  # of a turn that is taken back
_INTERCEPT = 0.1  # of what the error of a constant term counts beside others
_LARGEST_LOGIT = 8.0


def question_columns(plain: Schema, described: Schema) -> dict[str, ColumnGrid]:
    """The cells of which terms are functions: by the schema alone, so that what was checked is what is measured.

    The weight is no column to ask of, and of the later of two columns in order the plain table has the distance alone:
    so have features of its rows.

    Args:
        plain: the plain table's schema; of linked rows those are columns of units, and features of all their rows.
        described: as it was declared.
    """
    weight, gaps = described.weight, {} if described.rule_plan is None else described.rule_plan.gaps
    if plain.linked:
        features = features_in([name for question in described.questions for name in question.names], plain)
        features = [feature for feature in features if feature.column not in gaps]
        plain = with_features(linked_tables(plain, described.weight), features)
    hidden = {*(() if weight is None else [weight.column]), *gaps}
    grid = Grid.of(plain, numeric_cells=QUESTIONS.cells, narrow=True)
    return {column.name: column for column in grid.columns if column.name not in hidden}


def score_design(
    question: str, formula: str, link: Link, columns: Mapping[str, ColumnGrid], rows: pd.DataFrame | None = None,
    weights: np.ndarray | None = None,
) -> EstimatingEquation:  # fmt: skip
    """Return the equation of a formula at coefficients of 0.

    Args:
        question: as it was written, for messages.
        formula: of the columns.
        link: of the regression.
        columns: cells of each column that may be named.
        rows: of a model, for means and deviations in `center`, `scale` and `poly`; None for cells alone.
        weights: of these rows.

    Raises:
        ConfigError: the formula cannot be read or evaluated, or a term is no product of functions of single columns.
    """
    cells = replace(_cells_of(question, formula, link, columns), rows=rows, weights=weights)
    places = cells.combinations()
    values_there, terms = cells.evaluated(places)
    _require_few(question, values_there.shape[1] - 1)
    pivots = np.argmax(np.abs(values_there), axis=0)
    for j, term in enumerate(terms):
        if not values_there[pivots[j], j]:
            raise ConfigError(f"Expected terms that vary in the question {question!r}, got {term}, which is always 0.")
    functions, products, amplitudes = _factored(cells, places, values_there, pivots)
    together = amplitudes * np.prod(
        [f[:, line][place] for f, line, place in zip(functions, products.T, places.T, strict=True)], axis=0
    )
    if link == "log" and values_there[:, 0].min() < 0:
        raise ConfigError(
            f"Expected a left side that is never below 0 in the question {question!r}, got one that may be."
        )
    off = np.abs(together - values_there).max(axis=0) > _SAME * np.abs(values_there).max(axis=0)
    if off.any():
        raise ConfigError(
            f"Expected terms that are products of functions of one column each in the question {question!r}, got "
            f"{terms[int(np.argmax(off))]}. Write a sum of terms, or a product with `:`."
        )
    k = len(terms) - 1
    whole = tuple(np.rint(f * ONE).astype(np.int64) for f in functions)
    offset = round(-np.log(amplitudes[0]) * ONE) if link == "log" else 0
    axes = tuple(Cells.of(column) for column in cells.columns)
    return EstimatingEquation(formula, axes, whole, products, np.zeros(k, dtype=np.int64), link, offset)


def outlined(question: str, formula: str, link: Link, columns: Mapping[str, ColumnGrid]) -> EstimatingEquation:
    """Return `score_design` without its functions: by text and labels, for a plan where formulaic is missing."""
    cells = _cells_of(question, formula, link, columns)
    frame = cells.frame(cells.combinations())
    own = FormulaValues(dict(frame.items()), np.ones(len(frame)))  # type: ignore[arg-type]
    widths = term_widths(cells.read.right, own.levels)
    _require_few(question, sum(width for _, width in widths))
    sides = [columns_of(cells.read.left[0]), *(columns_of(term) for term, width in widths for _ in range(width))]
    products = np.array([[c.name in side for c in cells.columns] for side in sides], dtype=np.int64)
    axes = tuple(Cells.of(column) for column in cells.columns)
    functions = tuple(np.zeros((axis.size, 2), dtype=np.int64) for axis in axes)
    return EstimatingEquation(formula, axes, functions, products, np.zeros(len(sides) - 1, dtype=np.int64), link)


def _cells_of(question: str, formula: str, link: Link, columns: Mapping[str, ColumnGrid]) -> _Cells:
    read = read_formula(formula, list(columns))
    spline = next((name for name in read.functions if name in SPLINES), None)
    if spline is not None:  # means and deviations depend on all rows, too, but move no span
        raise ConfigError(
            f"Expected functions of single values in the question {question!r}, got {spline}(), which depends on "
            "all rows. Write powers, or cut the column with a condition."
        )
    if len(read.columns) > MOST_COLUMNS:
        raise ConfigError(
            f"Expected at most {MOST_COLUMNS} columns in the question {question!r}, got {len(read.columns)}. Leave "
            "some out."
        )
    return _Cells(read, [columns[name] for name in read.columns], None, None, logistic=link == "logit")


def _require_few(question: str, terms: int) -> None:
    if terms > MOST_TERMS:
        raise ConfigError(
            f"Expected at most {MOST_TERMS} terms in the question {question!r}, got {terms}. Put labels together, or "
            "name fewer interactions."
        )


def require_term(question: str, formula: str, term: str, columns: Mapping[str, ColumnGrid], *, logistic: bool) -> None:
    """Refuse a term that a formula has none of, whichever labels others are compared with.

    Args:
        question: as it was written, for messages.
        formula: of the columns.
        term: as a release names it.
        columns: cells of each column that may be named.
        logistic: whether the left side has to have two values.

    Raises:
        ConfigError: the formula cannot be read or evaluated, or has no such term.
    """
    read = read_formula(formula, list(columns))
    labels = {name: [str(label) for label in columns[name].kind.labels or ()] for name in read.columns}
    references = {
        name: next((label for label in known if f"[T.{label}]" not in term), known[0])
        for name, known in labels.items()
        if not columns[name].kind.is_numeric
    }
    cells = _Cells(read, [columns[name] for name in read.columns], None, None, logistic, references)
    terms = cells.evaluated(cells.combinations())[1][1:]
    if term not in terms:
        raise ConfigError(f"Expected one of the terms {', '.join(map(repr, terms))} of {question!r}, got {term!r}.")


@dataclass(frozen=True, eq=False)
class _Cells:
    """A formula on middles of cells.

    Attributes:
        read: the formula.
        columns: its columns.
        rows: of a model, evaluated beside; None for none.
        weights: of these rows.
        logistic: whether the left side has to have two values.
        references: by column, the label that others are compared with; by default the first.
    """

    read: ReadFormula
    columns: Sequence[ColumnGrid]
    rows: pd.DataFrame | None
    weights: np.ndarray | None
    logistic: bool
    references: Mapping[str, str] = field(default_factory=dict)

    def present(self, column: ColumnGrid) -> np.ndarray:
        """The cells of a column but that of cells without a value."""
        return np.arange(column.n_cells - column.kind.has_blank)

    def combinations(self) -> np.ndarray:
        """Cells of all columns together, from a public stream, and each column's in turn, shape (n, columns)."""
        rng = public_stream(_STREAM)
        random_cells = np.stack([rng.choice(self.present(column), _COMBINATIONS) for column in self.columns], axis=1)
        return np.concatenate([random_cells, *(self.line(random_cells[0], j) for j in range(len(self.columns)))])

    def line(self, place: np.ndarray, axis: int) -> np.ndarray:
        """The cells at a place, with those of one column in turn, shape (cells, columns)."""
        own = self.present(self.columns[axis])
        places = np.repeat(place[None], own.size, axis=0)
        places[:, axis] = own
        return places

    def frame(self, places: np.ndarray) -> pd.DataFrame:
        """The columns' values in the middles of cells."""
        return pd.DataFrame({c.name: values(c.kind, middles(c)[places[:, j]]) for j, c in enumerate(self.columns)})

    def evaluated(self, places: np.ndarray, lines: int = 0) -> tuple[np.ndarray, list[str]]:
        """The left side and the terms at places, shape (n, 1 + k), and their names.

        The first ones, so many, are no part of means and deviations that terms are taken less.
        """
        frame = self.frame(places)
        n, weights = 0, (np.arange(len(frame)) >= lines).astype(np.float64)
        if self.rows is not None and self.weights is not None:
            n = len(self.rows)
            frame = pd.concat([self.rows[list(frame.columns)], frame], ignore_index=True)
            weights = np.concatenate([np.maximum(self.weights, 0.0), np.zeros(len(places))])
        first = {c.name: str(next(iter(c.kind.labels))) for c in self.columns if not c.kind.is_numeric}
        references = {**first, **self.references}
        design: Design = self.read.design(frame, weights, references, logistic=self.logistic)
        sides = np.column_stack([design.left, design.right])[n:]
        return sides, [self.read.text.partition("~")[0].strip(), *design.terms]


def middles(column: ColumnGrid) -> np.ndarray:
    """The code in the middle of each cell, shape (cells,); of missing numbers NaN."""
    if column.edges is None or column.steps is None:
        return np.arange(column.n_cells)
    codes = column.steps.codes((column.edges[:-1] + column.edges[1:] - 1) / 2.0)
    for cell, code in column.alone.items():
        codes[cell] = code
    return np.append(codes, np.nan) if column.n_cells > codes.size else codes


def _factored(
    cells: _Cells, places: np.ndarray, known: np.ndarray, pivots: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return the columns' functions, shape (cells, m) each, which of them each term has, and the terms' sizes."""
    functions: list[list[np.ndarray]] = []
    amplitudes = known[pivots, np.arange(pivots.size)]
    products = np.zeros((pivots.size, len(cells.columns)), dtype=np.int64)
    distinct, line_of = np.unique(pivots, return_inverse=True)
    for axis, column in enumerate(cells.columns):
        own = cells.present(column)
        lines = np.concatenate([cells.line(places[pivot], axis) for pivot in distinct])
        # with the places, so that conditions that are taken for labels have all of theirs
        on_lines = cells.evaluated(np.concatenate([lines, places]), len(lines))[0][: len(lines)]
        on_lines = on_lines.reshape(distinct.size, own.size, -1)
        present = np.zeros(column.n_cells)
        present[own] = 1.0
        functions.append([present])
        for j in range(pivots.size):
            part = on_lines[line_of[j], :, j] / known[pivots[j], j]
            largest = np.abs(part).max()
            amplitudes[j] *= largest
            function = np.zeros(column.n_cells)
            function[own] = part / largest
            products[j, axis] = _place_of(function, functions[axis])
    return [np.stack(of_axis, axis=1) for of_axis in functions], products, amplitudes


def _place_of(function: np.ndarray, known: list[np.ndarray]) -> int:
    """The place of a function among others, to which it is added if it is none of them."""
    for place, other in enumerate(known):
        if np.abs(function - other).max() < 1 / ONE:
            return place
    known.append(function)
    return len(known) - 1


def aim_equation(equation: EstimatingEquation, measured: TableMeasurements, weights: np.ndarray) -> EstimatingEquation:
    """Return the equation at the coefficients that a model's rows have by these weights, shape (N,)."""
    left, terms = equation.sides(measured.base)
    right, weights = np.stack(terms, axis=1), _shares(equation, measured, weights)
    most = LARGEST_NUMBER / ONE
    coefficients = np.clip(np.nan_to_num(_coefficients(equation, left, right, weights)), -most, most)
    return replace(equation, coefficients=np.rint(coefficients * ONE).astype(np.int64))


def _shares(equation: EstimatingEquation, measured: TableMeasurements, weights: np.ndarray) -> np.ndarray:
    """The weights of rows without a missing cell, of sum 1; those below 0 count 0."""
    weights = np.maximum(weights, 0.0) * equation.present(measured.base)
    return weights / max(float(weights.sum()), 1e-300)


def joint_scores(
    equations: Sequence[EstimatingEquation], measured: TableMeasurements, weights: Sequence[np.ndarray],
    shares: np.ndarray, noise_std: float,
) -> ScoreQuery:  # fmt: skip
    """Return scores as one vector, turned and clipped by a model's weighted rows.

    Each equation is turned by itself, and all are together: of the coefficients' variances by noise, in what they would
    be with the equation's share for itself, the sum of share times variance is least.

    Args:
        equations: of `aim_equation`.
        measured: the model's rows.
        weights: of the rows, for each equation, shape (N,).
        shares: of the budget, by equation, of sum 1.
        noise_std: of the sum of scores that are clipped to norm 1.
    """
    allowed, noise = 1 + _OFF**2 * measured.size, noise_std / np.sqrt(measured.size)
    turns, scores, wanted, each = [], [], [], []
    for equation, share, of_rows in zip(equations, shares, weights, strict=True):
        left, terms = equation.sides(measured.base)
        right, own = np.stack(terms, axis=1), _shares(equation, measured, of_rows)
        parts = right * equation.residual(left, terms)[:, None]
        slope = (right * (own * curvature(equation, right))[:, None]).T @ right + _ridge(right, own)
        inside = right[equation.present(measured.base) > 0]
        constant = np.ptp(inside, axis=0) == 0 if len(inside) else np.zeros(right.shape[1], dtype=bool)
        aim = _wanted(parts, slope, own, constant)
        turn = _turn_or_scale(parts, aim, own, allowed, noise / np.sqrt(share))
        back = np.linalg.inv(turn)
        cost = back @ aim @ back
        turns.append(turn)
        scores.append(parts @ turn)
        wanted.append(share**2 * cost / max(float(np.trace(cost)), _TINY))
        each.append(own)
    together = np.concatenate(scores, axis=1)
    joint = _turn_or_scale(together, np.asarray(linalg.block_diag(*wanted)), np.mean(each, axis=0), allowed, noise)
    turn = joint @ linalg.block_diag(*turns)
    largest = max(float(np.abs(turn).max()) * ONE / LARGEST_NUMBER, 1.0)
    return ScoreQuery(tuple(equations), np.rint(turn * (ONE / largest)).astype(np.int64))


def _turn_or_scale(
    scores: np.ndarray, wanted: np.ndarray, weights: np.ndarray, allowed: float, noise: float
) -> np.ndarray:
    """`best_turn`, or all scores alike where released values are those of no matrix: they are paid for all the same."""
    with suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):
        turn = best_turn(scores, wanted, weights, allowed, noise)
        if np.isfinite(turn).all() and np.linalg.cond(turn) < _MOST_CONDITION:
            return turn
    return np.eye(scores.shape[1]) / max(float(np.linalg.norm(scores, axis=1).max(initial=0.0)), _TINY)


def _coefficients(equation: EstimatingEquation, left: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The solution of the scores' equations on weighted rows, drawn a little to 0."""
    ridge = _ridge(right, weights)
    if equation.link == "identity":
        return linalg.solve((right * weights[:, None]).T @ right + ridge, right.T @ (weights * left), assume_a="pos")
    params, shift = np.zeros(right.shape[1]), equation.offset / ONE
    for _ in range(_ROUNDS):
        predictor = np.clip(right @ params + shift, -_LARGEST_LOGIT - abs(shift), _LARGEST_LOGIT)
        mean = special.expit(predictor) if equation.link == "logit" else np.exp(predictor)
        slope = mean * (1 - mean) if equation.link == "logit" else mean
        gradient = right.T @ (weights * (left - mean)) - ridge @ params
        step = linalg.solve((right * (weights * slope)[:, None]).T @ right + ridge, gradient, assume_a="pos")
        step *= min(1.0, 2.0 / max(float(np.abs(right @ step).max()), 1e-300))
        params = params + step
    return params


def _ridge(right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What the terms' moments get on their diagonal, shape (k, k): a little of each term's variance."""
    variances = weights @ right**2 - (weights @ right) ** 2
    return np.diag(_RIDGE * np.maximum(variances, 0.0) + _LEAST_RIDGE)


def curvature(equation: EstimatingEquation, right: np.ndarray) -> np.ndarray:
    """The slope of the mean in the linear predictor, shape (N,)."""
    if equation.link == "identity":
        return np.ones(len(right))
    predictor = right @ (equation.coefficients / ONE) + equation.offset / ONE
    if equation.link == "log":
        return np.exp(np.minimum(predictor, 1.0))
    return special.expit(predictor) * special.expit(-predictor)


def _wanted(scores: np.ndarray, slope: np.ndarray, weights: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return what each covariance of noise of a mean score costs: in the coefficients, ÷ their sampling variances.

    Args:
        scores: of rows, shape (N, k).
        slope: minus the derivative of their mean in the coefficients, shape (k, k), positive definite.
        weights: of the rows, of sum 1.
        constant: terms that matter less, shape (k,).
    """
    k, size = scores.shape[1], float(weights @ (scores**2).sum(axis=1))
    inverse = np.linalg.inv(slope)
    spread = (scores * weights[:, None]).T @ scores + (_FAINT * size / k + _TINY) * np.eye(k)
    sampling = np.diagonal(inverse @ spread @ inverse)
    return inverse @ np.diag(np.where(constant, _INTERCEPT, 1.0) / sampling) @ inverse


def best_turn(scores: np.ndarray, wanted: np.ndarray, weights: np.ndarray, allowed: float, noise: float) -> np.ndarray:
    """Return T, by which all but a few scores have a norm of at most 1, shape (k, k).

    How many are clipped: so many that noise, and what is allowed for the clipped part, are together least.

    Args:
        scores: of rows, shape (N, k).
        wanted: what each covariance of the noise of their mean costs, shape (k, k).
        weights: of the rows, of sum 1.
        allowed: variance of the total of what is not measured, for each record's unit of it.
        noise: standard deviation of the noise of a mean, times √n.
    """
    k = scores.shape[1]
    size = float(weights @ (scores**2).sum(axis=1))
    if not size > _TINY:
        return np.eye(k)
    root = _root(wanted)
    chances, precision = weights, np.eye(k)
    for _ in range(_TURNS):
        moments = (scores * chances[:, None]).T @ scores + _FAINT * size / k * np.eye(k)
        inner = _root(root @ moments @ root)
        precision = root @ np.linalg.inv(inner) @ root
        lengths = ((scores @ precision) * scores).sum(axis=1)
        chances = chances * lengths
        chances = chances / chances.sum()
    turn = _root(precision)
    norms = np.linalg.norm(scores @ turn, axis=1)
    matters = weights * ((scores @ root) ** 2).sum(axis=1)  # of a score, to the coefficients
    cost = float(np.trace(root @ np.linalg.inv(precision) @ root)) * noise**2
    order = np.argsort(norms)
    places = np.searchsorted(np.cumsum(weights[order]), _PARTS)
    tried = norms[order[np.minimum(places, order.size - 1)]]
    tried = tried[tried > _LEAST_NORM * norms.max()]
    if not tried.size:  # the rows that count have no scores beside those of others
        return turn / float(norms.max())
    hidden = [float(matters @ (1 - np.minimum(1.0, c / np.maximum(norms, 1e-300))) ** 2) for c in tried]
    norm = tried[int(np.argmin(tried**2 * cost + allowed * np.array(hidden)))]
    return turn / float(norm)


def _root(matrix: np.ndarray) -> np.ndarray:
    """The square root of a symmetric matrix without negative eigenvalues."""
    eigenvalues, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T
