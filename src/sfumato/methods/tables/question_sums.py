"""Sums for questions named before a fit: tables of counts, and scores of regressions together, in one Gaussian release.

Proof: docs/proofs/questions.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.lenses.weights import WEIGHT_BITS, whole_weights
from sfumato.measurements.cells import BaseCells
from sfumato.measurements.queries import MarginalQuery
from sfumato.measurements.score_query import ONE, ScoreQuery
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.second_stage import unweighted
from sfumato.records.engine import Rows

QuestionQuery = MarginalQuery | ScoreQuery


@dataclass(frozen=True, slots=True, eq=False)
class QuestionPart:
    """What a question, or several regressions together, add to the sum.

    Attributes:
        name: of the measurement.
        query: one table of counts, or scores as one vector.
        weight: w; of all parts the squares add up to at most 1.
    """

    name: str
    query: QuestionQuery
    weight: float


@dataclass(frozen=True, eq=False)
class QuestionSums:
    """Counts and scores of named questions, each part times its weight.

    A record adds w to one cell of a table, and w·z/2^20 to scores, where ‖z‖ ≤ 2^20 of all regressions of the part
    together: so w² to the squared norm for each part, and Σ w² ≤ 1 in all. Two records' counts have a non-negative
    inner product, their scores may point any way, so they are at most √(2·Σ w² of tables + 4·Σ w² of scores) apart.
    One `Gaussian` event. A record of weight k/2^20 of the bound adds k/2^20 of that, rounded toward 0.

    Value: parts side by side, each flat.

    Attributes:
        parts: tables and scores.
        column: of weights; "" where each record counts once.
    """

    parts: tuple[QuestionPart, ...]
    column: str = ""
    name: str = "named questions"

    @property
    def norm_bound(self) -> float:
        """√(Σ w²)."""
        return math.sqrt(math.fsum(part.weight**2 for part in self.parts))

    @property
    def replace_bound(self) -> float:
        """The largest distance of two records' contributions."""
        return self.norm_bound * replace_distance(self.parts)

    @cached_property
    def slices(self) -> list[slice]:
        """Where each part lies in the value."""
        ends = np.cumsum([0, *(math.prod(part.query.shape) for part in self.parts)])
        return [slice(int(start), int(end)) for start, end in itertools.pairwise(ends)]

    @property
    def step(self) -> np.ndarray:
        """What 1 is worth: w in a table, w·2^-20 in scores; by weights 2^-20 of w in a table."""
        step = np.empty(self.slices[-1].stop)
        for part, place in zip(self.parts, self.slices, strict=True):
            fine = 1 / ONE if isinstance(part.query, ScoreQuery) else 2.0**-WEIGHT_BITS if self.column else 1.0
            step[place] = part.weight * fine
        return step

    def zero(self) -> np.ndarray:
        """Return empty sums."""
        return np.zeros(self.slices[-1].stop)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records."""
        base = BaseCells(rows)
        weights = whole_weights(rows, self.column).astype(np.float64) if self.column else None
        for part, place in zip(self.parts, self.slices, strict=True):
            if isinstance(part.query, ScoreQuery):
                scores = part.query.scores(base)
                if weights is not None:
                    scores = np.trunc(scores * (weights * 2.0**-WEIGHT_BITS)[:, None])
                total[place] += scores.sum(axis=0)
            else:
                part.query.add(total[place].reshape(part.query.shape), base, weights)

    def measurements(self, noisy: Noisy, worth: float = 1.0) -> tuple[tuple[str, Noisy], ...]:
        """Return the parts of a release, without their weights; `worth` is what 1 is in records' weights."""
        measured = []
        for part, place in zip(self.parts, self.slices, strict=True):
            weight = part.weight / worth
            value = (noisy.value[place] / weight).reshape(part.query.shape)
            measured.append((part.name, unweighted(noisy, value, weight, place, part.query)))
        return tuple(measured)


def replace_distance(parts: Iterable[QuestionPart]) -> float:
    """The largest distance of two records' contributions ÷ norm bound."""
    counts = scores = 0.0
    for part in parts:
        square = part.weight**2
        scores, counts = (scores + square, counts) if isinstance(part.query, ScoreQuery) else (scores, counts + square)
    return math.sqrt((2 * counts + 4 * scores) / (counts + scores))


def weights_of(shares: Sequence[float]) -> list[float]:
    """Weights whose squares are in proportion to shares and add up to at most 1: fractions of 2^20, rounded down."""
    whole = sum(shares)
    return [math.floor(math.sqrt(share / whole) * ONE) / ONE for share in shares]
