"""How strongly two columns go together, of which one or both hold labels: Cramér's V and the correlation ratio.

Both are the length of a vector d of standardised covariances: of the labels' indicators with each other's, or with the
number. Its estimate has noise of known covariance Σ, which makes it too long: see `SquaredLength`.

Free: uses released values only.
Reference: Cramér 1946 (V); Kelley 1935 (the correlation ratio less its bias); Bergsma 2013 (V less its bias).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from sfumato.errors import ConfigError, EstimateError, require_integer
from sfumato.inference.calibration import Variances
from sfumato.inference.estimate import Estimate
from sfumato.inference.estimator import LEAST_KNOWN, Estimator, rests_on
from sfumato.inference.intervals import SquaredLength, size_of
from sfumato.inference.joint_errors import HypothesisTest
from sfumato.inference.noisy_totals import LEAST_SEEN
from sfumato.inference.questions import Questions
from sfumato.maths.arrays import sparse_indicators

_MOST_LEVELS = 20
_RANKED_ROWS = 4096
_MOST_FUNCTIONS = 2_000  # of all columns that are ranked
MOST_RANKED = 500
"""Columns of which pairs are ranked: the first ones."""
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class _Side:
    """One column: functions of the rows, shape (N, r), 0 where missing; and whether they are indicators of labels."""

    functions: np.ndarray
    present: np.ndarray
    labels: bool


def association(questions: Questions, first: str, second: str, *, target: str) -> Estimate:
    """Return Cramér's V of two columns of labels, or the correlation ratio of a column of numbers on one of labels.

    Both are in [0, 1]. Missing labels are a label. Labels that noise hides, and those after the twenty commonest, count
    as one.

    Args:
        questions: to a release.
        first: a column.
        second: another; one of the two holds labels.
        target: "population" or "table".

    Raises:
        ConfigError: a column is not there, or both hold numbers.
        EstimateError: the measurements say too little of the two together, or one does not stand out of noise.
    """
    estimator, (one, other), lengths, variances = _known(questions, first, second, target)
    if not (one.labels or other.labels):
        raise ConfigError(f"Expected a column of labels among {first!r} and {second!r}, got two of numbers.")
    most = 1.0
    if one.labels and other.labels:
        most = float(min(one.functions.shape[1], other.functions.shape[1]) - 1)
    parts = {cause: getattr(variances, cause) * (1 / most) for cause in ("noise", "sampling", "unmeasured")}
    length = SquaredLength.of(lengths / np.sqrt(most), replace(variances, **parts), estimator.target)
    rests = estimator.preface + rests_on(estimator, length.lengths)
    value, error = float(np.sqrt(length.value)), size_of(length.lengths)
    return Estimate(value, error, estimator.target, rests, length.lengths, length.ends_of_length)


def independence(questions: Questions, first: str, second: str, *, target: str) -> HypothesisTest:
    """Return the chi-square test that two columns of labels are independent, by the joint errors of their cells.

    Raises:
        ConfigError: a column is not there, or holds numbers.
        EstimateError: as `association`.
    """
    for name in (first, second):
        questions.require_column(name)
        questions.levels(name)
    if first == second:
        raise ConfigError(f"Expected two columns, got {first!r} twice.")
    estimator, _, lengths, variances = _known(questions, first, second, target)
    parts = {cause: float(np.sqrt(np.trace(part))) for cause, part in variances.by_cause(estimator.target).items()}
    return HypothesisTest.of_squares(
        lengths, variances.of(estimator.target), f"{first!r} and {second!r} are independent.", estimator.target,
        estimator.preface + rests_on(estimator, parts),
    )  # fmt: skip


def _known(
    questions: Questions, first: str, second: str, target: str
) -> tuple[Estimator, tuple[_Side, _Side], np.ndarray, Variances]:
    """Return the standardised covariances of two columns, shape (r·s,), and their errors; refuse what is not known."""
    estimator = questions.as_clipped((first, second), questions.estimator((first, second), target))
    one, other = (_side(questions, estimator, name) for name in (first, second))
    what = f"how {first!r} and {second!r} go together"
    lengths, influence = _standardised(estimator, one, other, what)
    variances = estimator.calibration.variances(influence)
    # each part: what was not measured is the model's guess, with noise that its fit took for truth
    if float(variances.known.min()) < LEAST_KNOWN:
        raise EstimateError(
            f"Expected a question that the release's measurements answer, got {what}: they say too little of some "
            "labels. Draw replicates, or fit fewer labels."
        )
    return estimator, (one, other), lengths, variances


def _free(questions: Questions) -> list[str]:
    return [name for name in questions.measured.frame.columns if name not in questions.following]


def number_of_pairs(questions: Questions) -> int:
    """Return how many pairs of measured columns there are."""
    return comb(len(_free(questions)), 2)


def ranked_pairs(questions: Questions) -> list[tuple[str, str]]:
    """Return the pairs of the first measured columns, those first that go together most strongly under the model."""
    names = _free(questions)[:MOST_RANKED]
    if len(names) < 2:
        return []
    most_levels = min(_MOST_LEVELS, _MOST_FUNCTIONS // max(len(names), 1))
    blocks = [_scores(questions, name, most_levels) for name in names]
    sizes = np.array([block.shape[1] for block in blocks])
    starts, functions = np.cumsum(sizes) - sizes, np.concatenate(blocks, axis=1)
    lengths = np.add.reduceat((functions.T @ functions / len(functions)) ** 2, starts, axis=0)
    lengths = np.add.reduceat(lengths, starts, axis=1)
    least = np.minimum.outer(sizes, sizes) - 1  # of two columns of labels; else 0, and divides by 1
    lengths /= np.maximum(least, 1)
    i, j = np.triu_indices(len(names), 1)
    order = np.argsort(-lengths[i, j], kind="stable")
    return [(names[one], names[other]) for one, other in zip(i[order].tolist(), j[order].tolist(), strict=True)]


def _scores(questions: Questions, name: str, most_levels: int) -> np.ndarray:
    """Return standardised functions of a column of some of the model's rows, shape (n, at most `most_levels`)."""
    column, codes = questions.measured.column(name), questions.measured.codes[name][:_RANKED_ROWS]
    if column.numeric:
        values = np.where(np.isnan(codes), np.nanmean(codes) if not np.isnan(codes).all() else 0.0, codes)[:, None]
        scale = values.std(axis=0)
    else:
        levels = codes.astype(np.int64)
        rows = np.bincount(levels, minlength=column.kind.n_levels)
        values = sparse_indicators(levels, np.argsort(-rows, kind="stable")[:most_levels]).toarray()
        scale = np.sqrt(values.mean(axis=0))
    values -= values.mean(axis=0)
    return (values / np.where(scale > _TINY, scale, np.inf)).astype(np.float32)


def _side(questions: Questions, estimator: Estimator, name: str) -> _Side:
    column = questions.measured.column(name)
    if column.numeric:
        questions.require_fine(name, estimator)
        values, present = questions.numbers(name)
        return _Side(values[:, None], present, labels=False)
    codes = questions.measured.codes[name].astype(np.int64)
    totals = np.bincount(codes, estimator.calibration.weights, column.kind.n_levels)[: column.shown]
    order = np.argsort(-totals, kind="stable")[:_MOST_LEVELS]
    errors = np.sqrt(estimator.calibration.each(sparse_indicators(codes, order)).of("table"))
    shown = sparse_indicators(codes, order[totals[order] > LEAST_SEEN * errors]).toarray()
    labelled = codes < column.shown
    rest = labelled - shown.sum(axis=1)
    rare = estimator.calibration.total(rest[:, None])[0]
    error = np.sqrt(estimator.calibration.each(rest[:, None]).of("table")[0])
    present = (labelled & (rest == 0)).astype(np.float64)
    if rest.any() and rare > LEAST_SEEN * error:
        shown, present = np.column_stack([shown, rest]), labelled.astype(np.float64)
    # what is too rare even together leaves the rows of labels that are seen
    if shown.shape[1] < 2:
        raise EstimateError(f"Expected {name!r} to vary, got a column that does not stand out of noise.")
    return _Side(shown, present, labels=True)


def _standardised(estimator: Estimator, one: _Side, other: _Side, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return d, shape (r·s,), and the influence of each row on it, shape (N, r·s)."""
    present = one.present * other.present
    n = estimator.positive(present, what)
    weights = estimator.calibration.weights * present / n
    centred, scales, moved = [], [], []
    for side in (one, other):
        mean = weights @ side.functions
        middle = side.functions - mean
        squares = middle if side.labels else middle**2
        scale = mean if side.labels else weights @ squares
        if not (scale > _TINY).all():
            raise EstimateError(f"Expected columns that stand out of noise for {what}, got one that does not.")
        centred.append(middle)
        scales.append(scale)
        moved.append((squares - (0.0 if side.labels else scale)) / (2 * scale))
    root = np.sqrt(np.multiply.outer(scales[0], scales[1]))
    products = centred[0][:, :, None] * centred[1][:, None, :]
    products /= root
    d = np.tensordot(weights, products, axes=1)
    products -= d
    products -= d * (moved[0][:, :, None] + moved[1][:, None, :])
    products *= (present / n)[:, None, None]
    return d.ravel(), products.reshape(len(weights), -1)


def strongest(pairs: Sequence[tuple[str, str]], most: int | None) -> Sequence[tuple[str, str]]:
    """Return the first so many pairs; all if `most` is None."""
    return pairs if most is None else pairs[: require_integer(at_least=0, hint="None lists all.", most_pairs=most)]
