"""AUROC of a classifier that a release taught, on the records: from noisy counts of records by score and class.

A classifier learns from samples of the release alone, which is free. The records are read once: in which of 16 runs of
scores each of them lies, of the positive class and of the others. These 32 counts get noise, and the AUROC is a
function of them. Proof: docs/proofs/acceptance.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.mechanisms.statistics import Counts
from sfumato.records.engine import Rows
from sfumato.schema.accept import Criterion
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.schema import Schema

BINS = 16
_NUMERIC_CELLS = 16
_FEWEST = 4.0  # classes stand out of noise if they have more records than so many deviations of their number


@dataclass(frozen=True)
class AurocTask:
    """The class to predict, and the cells to predict it from. Follows from the schema and the criterion alone.

    Attributes:
        target: the column to predict.
        positive: code of the class to tell from all others.
        n_labels: codes from here on stand for a missing label: such records are left out.
        columns: cells of the other columns.
    """

    target: str
    positive: int
    n_labels: int
    columns: tuple[ColumnGrid, ...]

    @classmethod
    def of(cls, schema: Schema, criterion: Criterion) -> AurocTask:
        """Return the task of a criterion that the schema has been checked for."""
        target = str(criterion.target)
        columns = Grid.of(schema, numeric_cells=_NUMERIC_CELLS).columns
        labels = next(column.kind.labels for column in columns if column.name == target) or ()
        positive = labels.index(criterion.positive) if criterion.positive is not None else 1
        return cls(target, positive, len(labels), tuple(column for column in columns if column.name != target))

    def known(self, rows: Rows) -> np.ndarray:
        """Records with a label, as a mask of shape (n,)."""
        return np.asarray(rows[self.target]) < self.n_labels

    def positives(self, rows: Rows) -> np.ndarray:
        """Records of the positive class, as a mask of shape (n,)."""
        return np.asarray(rows[self.target]) == self.positive


@dataclass(frozen=True, eq=False)
class ScoreCounts(Counts):
    """How many records lie in each run of scores, of the other classes and of the positive one.

    A record's score is a sum of weights of its cells. One record adds a single 1, or nothing where its label is
    missing: norm 1. Two records are at most √2 apart. Value: shape (2, 16).

    Attributes:
        task: what is predicted.
        weights: of every column, one per cell; of the release alone.
        edges: scores between runs, ascending, shape (15,).
    """

    task: AurocTask
    weights: tuple[np.ndarray, ...]
    edges: np.ndarray
    name: str = "counts of scores by class"

    @property
    def squares(self) -> float:
        """One cell of all."""
        return 1.0

    @classmethod
    def taught_by(cls, task: AurocTask, samples: Sequence[Rows]) -> ScoreCounts:
        """Learn from samples of a release: logistic regression on indicators of cells."""
        rows = {name: np.concatenate([part[name] for part in samples]) for name in samples[0]}
        known, labels = task.known(rows), task.positives(rows)
        matrix = _indicators(task, rows)
        weights = np.zeros(matrix.shape[1])
        if len(np.unique(labels[known])) == 2:
            weights = _logistic(matrix[known], labels[known])
        scores = matrix @ weights
        edges = np.quantile(scores, np.arange(1, BINS) / BINS)
        ends = np.cumsum([column.n_cells for column in task.columns])[:-1]
        return cls(task, tuple(np.split(weights, ends)), edges)

    def zero(self) -> np.ndarray:
        """Return empty counts."""
        return np.zeros((2, BINS))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        known = self.task.known(rows)
        scores = np.zeros(len(known))
        for column, weights in zip(self.task.columns, self.weights, strict=True):
            scores += weights[column.cells(rows[column.name])]
        places = np.searchsorted(self.edges, scores) + BINS * self.task.positives(rows)
        total += np.bincount(places[known], minlength=2 * BINS).reshape(2, BINS)


def auroc_of(counts: np.ndarray, noise_std: float) -> tuple[float, float]:
    """Return the AUROC that noisy counts say, and about the standard deviation of its noise.

    Within a run of scores, half of the pairs count. The deviation is that of the first-order change by the noise. Where
    a class does not stand out of noise, 1/2 and 1/2.

    Args:
        counts: of the other classes and of the positive one by run of scores, ascending, shape (2, runs).
        noise_std: of each count.
    """
    others, positives = counts
    n_others, n_positives = float(others.sum()), float(positives.sum())
    if min(n_others, n_positives) <= max(_FEWEST * noise_std * math.sqrt(counts.shape[1]), 0.0):
        return 0.5, 0.5
    below = (np.cumsum(others) - others / 2) / n_others
    above = 1 - (np.cumsum(positives) - positives / 2) / n_positives
    value = float(positives @ below) / n_positives
    slopes = np.concatenate([(below - value) / n_positives, (above - value) / n_others])
    return min(max(value, 0.0), 1.0), noise_std * float(np.linalg.norm(slopes))


def _indicators(task: AurocTask, rows: Rows) -> Any:  # noqa: ANN401 - scipy's sparse matrices have no useful types
    """Return a 1 for each cell of each row, shape (n, cells)."""
    starts = np.cumsum([0, *(column.n_cells for column in task.columns)])
    cells = np.stack([c.cells(rows[c.name]) + start for c, start in zip(task.columns, starts, strict=False)], axis=1)
    n, width = cells.shape
    ends = np.arange(n + 1) * width
    return sparse.csr_matrix((np.ones(n * width), cells.ravel(), ends), shape=(n, int(starts[-1])))


def _logistic(matrix: Any, labels: np.ndarray) -> np.ndarray:  # noqa: ANN401
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that stops early: any weights make a classifier
        return LogisticRegression(max_iter=200).fit(matrix, labels).coef_.ravel()
