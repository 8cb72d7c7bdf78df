"""Rows of a chain of softmaxes given the cells of some columns, by importance resampling.

Candidates are drawn in the chain's order with the given cells put in, and weighted by the probability that the chain
gives these. Rows are drawn from the candidates by their weights; the columns after the last given one are then drawn
for each row anew. The given cells hold exactly. The law of the others is the conditional one but for an error that
falls as 1/candidates: there are at least 16 to a row, and 16,384 in all.

Reference: Rubin 1987, the sampling/importance resampling algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.models.tables.softmax_chain import SoftmaxChain, choose, probabilities, systematic

_CANDIDATES, _PER_ROW = 16_384, 16
_WORK_NUMBERS = 1 << 24
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class SoftmaxGiven:
    """A chain given the cells of some columns.

    Attributes:
        chain: of all columns.
        cells: place of a column to its cell.
        class_shares: of the classes before the cells are looked at, shape (k,).
    """

    chain: SoftmaxChain
    cells: Mapping[int, int]
    class_shares: np.ndarray

    @property
    def possible(self) -> bool:
        """Whether every given cell has a share above 0."""
        return all(self.chain.columns[j].shares[cell] > 0 for j, cell in self.cells.items())

    def sample(
        self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return classes and cells of n rows, as `SoftmaxChain.sample`."""
        parts = []
        for start in range(0, n, _ROWS_AT_ONCE):
            some = None if classes is None else classes[start : start + _ROWS_AT_ONCE]
            with np.errstate(all="ignore"):
                parts.append(self._some(min(_ROWS_AT_ONCE, n - start), rng, some))
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros((0, len(self.chain.columns)), dtype=np.int64)
        return np.concatenate([c for c, _ in parts]), np.concatenate([cells for _, cells in parts])

    def _some(self, n: int, rng: np.random.Generator, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        count = max(_CANDIDATES, _PER_ROW * n)
        # of given classes, as many candidates as rows, in proportion
        drawn = self._candidate_classes(count, rng) if classes is None else np.resize(np.sort(classes), count)
        drawn, cells, features, log_weights = self._candidates(drawn, rng)
        chosen = _resampled(log_weights, drawn, n, rng, classes)
        result, features, drawn = cells[chosen], features[chosen], drawn[chosen]
        self._rest(result, features, drawn, rng)
        return drawn, result

    def _candidate_classes(self, count: int, rng: np.random.Generator) -> np.ndarray:
        shares = np.cumsum(self.class_shares / self.class_shares.sum())
        numbers = systematic(np.zeros(count, dtype=np.int64), rng)
        return np.minimum(np.searchsorted(shares, numbers, side="right"), shares.size - 1)

    @property
    def _last(self) -> int:
        """Place in the chain's order of the last given column, and one more."""
        places = [place for place, j in enumerate(self.chain.order) if j in self.cells]
        return max(places, default=-1) + 1

    def _candidates(
        self, classes: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return classes, cells, features and log-weights of candidates, up to the last given column."""
        size = max(256, _WORK_NUMBERS // max(self.chain.weights.shape[1], 1))
        parts = [self._forced(classes[start : start + size], rng) for start in range(0, classes.size, size)]
        cells, features, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        return classes, cells, features, weights

    def _forced(self, classes: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        chain, blocks = self.chain, self.chain.blocks()
        cells = np.zeros((classes.size, len(chain.columns)), dtype=np.int64)
        features = np.zeros((classes.size, chain.weights.shape[1]), dtype=np.float32)
        log_weights = np.zeros(classes.size)
        for j in chain.order[: self._last]:
            column, block = chain.columns[j], blocks[j]
            predictor = chain.predictor(features, classes, block)
            if j in self.cells:
                cell = self.cells[j]
                run = int(column.runs[cell])
                chances = probabilities(predictor, column.values, column.tilts, classes)[:, run]
                log_weights += np.log(np.maximum(chances, 1e-30))
                cells[:, j] = cell
                features[:, block] = column.values[run]
            else:
                runs = choose(predictor, column.values, column.tilts, classes, rng)
                cells[:, j] = column.cells(runs, rng)
                features[:, block] = column.values[runs]
        return cells, features, log_weights

    def _rest(self, cells: np.ndarray, features: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> None:
        chain, blocks = self.chain, self.chain.blocks()
        for j in chain.order[self._last :]:
            column, block = chain.columns[j], blocks[j]
            runs = choose(chain.predictor(features, classes, block), column.values, column.tilts, classes, rng)
            cells[:, j] = column.cells(runs, rng)
            features[:, block] = column.values[runs]


def _resampled(
    log_weights: np.ndarray, drawn: np.ndarray, n: int, rng: np.random.Generator, classes: np.ndarray | None
) -> np.ndarray:
    """Return the candidate of each row: by weight, and of the row's class if it has one."""
    if classes is None:
        chosen = _by_weight(log_weights, np.arange(log_weights.size), n, rng)
        return chosen[rng.permutation(n)]
    chosen = np.empty(n, dtype=np.int64)
    for k in np.unique(classes):
        rows = np.flatnonzero(classes == k)
        chosen[rng.permutation(rows)] = _by_weight(log_weights, np.flatnonzero(drawn == k), rows.size, rng)
    return chosen


def _by_weight(log_weights: np.ndarray, members: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n of the members, systematically by weight."""
    weights = np.nan_to_num(np.exp(log_weights[members] - log_weights[members].max()))
    cumulative = np.cumsum(weights)
    places = (np.arange(n) + rng.random()) / n * cumulative[-1]
    return members[np.minimum(np.searchsorted(cumulative, places, side="right"), members.size - 1)]
