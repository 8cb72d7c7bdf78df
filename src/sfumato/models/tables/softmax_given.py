"""Rows of a chain of softmaxes given the cells of some columns, by importance resampling.

Candidates are drawn in the chain's order with the given cells put in, and weighted by the probability that the chain
gives these. Rows are drawn from the candidates by their weights; the columns after the last given one are then drawn
for each row anew. The given cells hold exactly. The law of the others is the conditional one but for an error that
falls as 1/candidates. There are 16,384, and as many again, up to 16 times, until at most a tenth of the rows shares
its candidate with another.

So that few do, what is drawn before a given cell leans toward it: chances are multiplied by exp(a linear function of
features), and the candidate's weight is divided by that. Logits are linear in features, so the logarithm of a given
cell's chance nearly is; how what is drawn in between carries it back is measured on some rows. Whatever the factors,
the weights are exact.

References: Rubin 1987, the sampling/importance resampling algorithm; Whiteley & Lee 2014, Twisted particle filters, for
the factors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.maths.constants import SAMPLING
from sfumato.maths.streams import public_stream
from sfumato.models.tables.softmax_chain import RowsByClass, SoftmaxChain, Step
from sfumato.models.tables.softmax_draws import Chances, likeness, systematic


@dataclass(frozen=True, slots=True)
class Lean:
    """How candidates lean toward what is given.

    Attributes:
        by_class: multiplies the class shares, shape (k,).
        factors: the logarithm of what multiplies each run's chance, by step and class, shape (k, r) each; None for 1.
    """

    by_class: np.ndarray
    factors: tuple[np.ndarray, ...] | None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows up to the last given column.

    Attributes:
        classes: shape (m,).
        runs: of each step, shape (steps, m), int32.
        log_weights: shape (m,).
    """

    classes: np.ndarray
    runs: np.ndarray
    log_weights: np.ndarray


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
        labels, cells = np.empty(n, dtype=np.int64), np.empty((len(self.chain.columns), n), dtype=np.int64)
        for start in range(0, n, SAMPLING.block_rows):
            rows = slice(start, min(start + SAMPLING.block_rows, n))
            some = None if classes is None else classes[rows]
            with np.errstate(all="ignore"):
                labels[rows], cells[:, rows] = self._some(rows.stop - start, rng, some)
        return labels, cells.T

    def _some(self, n: int, rng: np.random.Generator, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        rounds: list[Candidates] = []
        groups = np.zeros(n, dtype=np.int64) if classes is None else classes
        while True:
            rounds.append(self._candidates(self._candidate_classes(rng, classes), rng, self._lean))
            of_rounds = np.concatenate([candidates.classes for candidates in rounds])
            log_weights = np.concatenate([candidates.log_weights for candidates in rounds])
            of_candidates = np.zeros(of_rounds.size, dtype=np.int64) if classes is None else of_rounds
            if len(rounds) == SAMPLING.most_rounds or _repeated(log_weights, of_candidates, groups) < SAMPLING.repeated:
                break
        places = _resampled(log_weights, of_candidates, groups, rng)
        rows = RowsByClass.of(self.chain, of_rounds[places])
        runs = np.concatenate([candidates.runs for candidates in rounds], axis=1)
        for step, of_step in zip(self.chain.steps, runs, strict=False):
            rows.put(step, of_step[places])
        for step in self.chain.steps[self._last :]:
            rows.draw(step, rng)
        return of_rounds[places], rows.cells(rng, self.cells)

    def _candidate_classes(self, rng: np.random.Generator, classes: np.ndarray | None) -> np.ndarray:
        """Return classes of candidates: of told classes in proportion, and of a rare one still many."""
        if classes is None:
            return self._classes(SAMPLING.block_rows, rng, self._lean)
        counts = np.bincount(classes)
        fewest = np.clip(SAMPLING.block_rows // np.count_nonzero(counts), *SAMPLING.class_candidates)
        counts = np.where(counts > 0, np.maximum(counts * SAMPLING.block_rows // classes.size, fewest), 0)
        return np.repeat(np.arange(counts.size), counts)

    def _classes(self, n: int, rng: np.random.Generator, lean: Lean) -> np.ndarray:
        shares = self.class_shares * lean.by_class
        numbers = systematic(np.zeros(n, dtype=np.int64), rng)
        places = np.searchsorted(np.cumsum(shares / shares.sum()), numbers, side="right")
        return np.minimum(places, np.flatnonzero(shares).max())

    @cached_property
    def _last(self) -> int:
        """Place in the chain's order of the last given column, and one more."""
        places = [place for place, j in enumerate(self.chain.order) if j in self.cells]
        return max(places, default=-1) + 1

    def _candidates(self, classes: np.ndarray, rng: np.random.Generator, lean: Lean) -> Candidates:
        rows = RowsByClass.of(self.chain, classes)
        log_weights = -np.log(lean.by_class)[classes[rows.order]]
        for place, step in enumerate(self.chain.steps[: self._last]):
            column, runs = self.chain.columns[step.column], np.empty(classes.size, dtype=np.int64)
            for k, part in rows.parts:
                predictor = rows.predictor(step, k, part)
                chances = Chances.of(predictor, column.values, column.tilts[k])
                if step.column in self.cells:
                    runs[part] = run = column.runs[self.cells[step.column]]
                    log_weights[part] += np.log(np.maximum(chances.of_run(int(run)), 1e-30))
                    continue
                numbers = systematic(np.zeros(predictor.shape[1], dtype=np.int64), rng, likeness(predictor))
                factors = None if lean.factors is None else lean.factors[place][k]
                runs[part], more = _leaning(chances, numbers, factors)
                log_weights[part] += more
            rows.keep(step, runs)
        steps = [step.column for step in self.chain.steps[: self._last]]
        return Candidates(classes[rows.order], rows.runs[steps].astype(np.int32), log_weights)

    @cached_property
    def _lean(self) -> Lean:
        """How candidates lean: measured on rows that do not, then on rows that do; what makes weights most alike."""
        plain = Lean(np.ones(self.class_shares.size), None)
        if not self._last:
            return plain
        rng, trials, lean = public_stream(0), [], plain
        for last in (False,) * SAMPLING.pilots + (True,):
            pilot = self._candidates(self._classes(SAMPLING.pilot_rows, rng, lean), rng, lean)
            trials.append((_alike(pilot.log_weights), lean))
            if not last:
                lean = Lean(lean.by_class * self._by_class(pilot), self._factors(pilot))
        return max(trials, key=lambda trial: np.nan_to_num(trial[0]))[1]

    def _by_class(self, pilot: Candidates) -> np.ndarray:
        """Return the mean weight of each class's candidates, one of all candidates' added to them."""
        weights = np.exp(pilot.log_weights - pilot.log_weights.max())
        k = self.class_shares.size
        sums, counts = np.bincount(pilot.classes, weights, k), np.bincount(pilot.classes, minlength=k)
        return (sums + weights.mean()) / (counts + 1) / weights.mean()

    def _factors(self, pilot: Candidates) -> tuple[np.ndarray, ...]:
        """Return the logarithms of factors: of each step and class, shape (k, r)."""
        rows, steps = RowsByClass.of(self.chain, pilot.classes), self.chain.steps[: self._last]
        means = []
        for step, runs in zip(steps, pilot.runs, strict=True):
            means.append(self._moments(rows, step))
            rows.put(step, runs)
        slopes = np.zeros((self.class_shares.size, self.chain.weights.shape[1]))
        factors = []
        for step, (mean, covariance) in zip(reversed(steps), reversed(means), strict=True):
            column = self.chain.columns[step.column]
            if step.column in self.cells:
                pull = np.broadcast_to(
                    column.values[column.runs[self.cells[step.column]]] - mean, (len(slopes), mean.size)
                )
            else:
                pull = slopes[:, step.block] @ covariance
            before = np.arange(step.block.start) if step.places is None else step.places
            slopes[:, before] += (pull[:, :, None] * step.weights).sum(axis=1)
            logs = slopes[:, step.block] @ step.values
            logs -= logs.mean(axis=1, keepdims=True)
            factors.append(np.clip(np.nan_to_num(logs), -SAMPLING.most_factor, SAMPLING.most_factor))
        return tuple(reversed(factors))

    def _moments(self, rows: RowsByClass, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of a column's features, and their mean covariance given what is drawn before."""
        column, n = self.chain.columns[step.column], rows.order.size
        mean, covariance = np.zeros(len(step.values)), np.zeros((len(step.values), len(step.values)))
        for k, part in rows.parts:
            chances = Chances.of(rows.predictor(step, k, part), column.values, column.tilts[k])
            for block, sums in zip(chances.blocks, chances.sums, strict=True):
                block /= sums
                means = step.values @ block
                mean += means.sum(axis=1) / n
                covariance += ((step.values * block.sum(axis=1)) @ step.values.T - means @ means.T) / n
        return mean, covariance


def _leaning(chances: Chances, numbers: np.ndarray, logs: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | float]:
    """Return a run for each row by factored chances, and what its log-weight gains."""
    if logs is None:
        return chances.drawn(numbers), 0.0
    factors = np.exp(logs)
    gained = np.concatenate([np.log(a / b) for a, b in zip(chances.sums_with(factors), chances.sums, strict=True)])
    runs = chances.drawn(numbers, factors)
    return runs, gained - logs[runs]


def _alike(log_weights: np.ndarray) -> float:
    """Return how many rows of equal weight these are worth, as a part of them."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.mean() ** 2 / (weights**2).mean())


def _repeated(log_weights: np.ndarray, candidates: np.ndarray, groups: np.ndarray) -> float:
    """Return which part of the rows shares a candidate with an earlier one, where n rows of each group are drawn."""
    repeats = 0.0
    for k in np.unique(groups):
        weights = _weights(log_weights[candidates == k])
        repeats += float(np.maximum(weights * (np.sum(groups == k) / weights.sum()) - 1, 0).sum())
    return repeats / groups.size


def _resampled(
    log_weights: np.ndarray, candidates: np.ndarray, groups: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the candidate of each row: of its group, systematically by weight, in random order."""
    chosen = np.empty(groups.size, dtype=np.int64)
    for k in np.unique(groups):
        rows, members = np.flatnonzero(groups == k), np.flatnonzero(candidates == k)
        cumulative = np.cumsum(_weights(log_weights[members]))
        places = (np.arange(rows.size) + rng.random()) / rows.size * cumulative[-1]
        places_of = members[np.minimum(np.searchsorted(cumulative, places, side="right"), members.size - 1)]
        chosen[rng.permutation(rows)] = places_of
    return chosen


def _weights(log_weights: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.exp(log_weights - log_weights.max()))
