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
from typing import TypeAlias

import numpy as np

from sfumato.maths.constants import SAMPLING
from sfumato.maths.streams import public_stream
from sfumato.models.tables.softmax_chain import DrawnRows, SoftmaxChain, Step
from sfumato.models.tables.softmax_draws import Chances, likeness, systematic

Lean: TypeAlias = tuple[np.ndarray, ...] | None
"""How candidates lean toward what is given: the logarithm of what multiplies each run's chance, by step; None for 1."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows up to the last given column.

    Attributes:
        runs: of each step, shape (steps, m), int32.
        log_weights: shape (m,).
    """

    runs: np.ndarray
    log_weights: np.ndarray


@dataclass(frozen=True)
class SoftmaxGiven:
    """A chain given the cells of some columns.

    Attributes:
        chain: of all columns.
        cells: place of a column to its cell.
    """

    chain: SoftmaxChain
    cells: Mapping[int, int]

    @property
    def possible(self) -> bool:
        """Whether every given cell has a share above 0."""
        return all(self.chain.columns[j].shares[cell] > 0 for j, cell in self.cells.items())

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return cells of n rows, as `SoftmaxChain.draw`."""
        cells = np.empty((len(self.chain.columns), n), dtype=np.int64)
        for start in range(0, n, SAMPLING.block_rows):
            rows = slice(start, min(start + SAMPLING.block_rows, n))
            with np.errstate(all="ignore"):
                cells[:, rows] = self._some(rows.stop - start, rng)
        return cells.T

    def _some(self, n: int, rng: np.random.Generator) -> np.ndarray:
        rounds: list[Candidates] = []
        while True:
            rounds.append(self._candidates(SAMPLING.block_rows, rng, self._lean))
            log_weights = np.concatenate([candidates.log_weights for candidates in rounds])
            if len(rounds) == SAMPLING.most_rounds or _repeated(log_weights, n) < SAMPLING.repeated:
                break
        places = _resampled(log_weights, n, rng)
        rows = DrawnRows.of(self.chain, n)
        runs = np.concatenate([candidates.runs for candidates in rounds], axis=1)
        for step, of_step in zip(self.chain.steps, runs, strict=False):
            rows.keep(step, of_step[places])
        for step in self.chain.steps[self._last :]:
            rows.draw(step, rng)
        return self.chain.cells(rows.runs, rng, self.cells)

    @cached_property
    def _last(self) -> int:
        """Place in the chain's order of the last given column, and one more."""
        places = [place for place, j in enumerate(self.chain.order) if j in self.cells]
        return max(places, default=-1) + 1

    def _candidates(self, n: int, rng: np.random.Generator, lean: Lean) -> Candidates:
        rows, log_weights = DrawnRows.of(self.chain, n), np.zeros(n)
        for place, step in enumerate(self.chain.steps[: self._last]):
            column, predictor = self.chain.columns[step.column], rows.predictor(step)
            chances = Chances.of(predictor, column.values, column.tilts)
            if step.column in self.cells:
                run = int(column.runs[self.cells[step.column]])
                runs, gained = np.full(n, run), np.log(np.maximum(chances.of_run(run), 1e-30))
            else:
                numbers = systematic(np.zeros(n, dtype=np.int64), rng, likeness(predictor))
                runs, gained = _leaning(chances, numbers, None if lean is None else lean[place])
            log_weights += gained
            rows.keep(step, runs)
        steps = [step.column for step in self.chain.steps[: self._last]]
        return Candidates(rows.runs[steps].astype(np.int32), log_weights)

    @cached_property
    def _lean(self) -> Lean:
        """How candidates lean: measured on rows that do not, then on rows that do; what makes weights most alike."""
        if not self._last:
            return None
        rng, trials, lean = public_stream(0), [], None
        for last in (False,) * SAMPLING.pilots + (True,):
            pilot = self._candidates(SAMPLING.pilot_rows, rng, lean)
            trials.append((_alike(pilot.log_weights), lean))
            if not last:
                lean = self._factors(pilot)
        return max(trials, key=lambda trial: np.nan_to_num(trial[0]))[1]

    def _factors(self, pilot: Candidates) -> tuple[np.ndarray, ...]:
        """Return the logarithms of factors: of each step, shape (r,)."""
        rows, steps = DrawnRows.of(self.chain, pilot.log_weights.size), self.chain.steps[: self._last]
        means = []
        for step, runs in zip(steps, pilot.runs, strict=True):
            means.append(self._moments(rows, step))
            rows.keep(step, runs)
        slopes, of_leads, factors = np.zeros(len(self.chain.weights)), np.zeros(len(rows.leads)), []
        centre = rows.leads.mean(axis=1)
        for step, (mean, covariance) in zip(reversed(steps), reversed(means), strict=True):
            column = self.chain.columns[step.column]
            if step.column in self.cells:
                pull = column.values[column.runs[self.cells[step.column]]] - mean
            else:
                pull = np.concatenate([slopes[step.block], of_leads[step.led]]) @ covariance
            before = np.arange(step.block.start) if step.places is None else step.places
            slopes[before] += pull @ step.weights
            own = step.products
            for place, other in ((own.first, own.second), (own.second, own.first)):  # the other at its mean
                np.add.at(of_leads, place, (pull @ own.weights) * centre[other])
            logs = slopes[step.block] @ step.values + of_leads[step.led] @ step.leads
            logs -= logs.mean()
            factors.append(np.clip(np.nan_to_num(logs), -SAMPLING.most_factor, SAMPLING.most_factor))
        return tuple(reversed(factors))

    def _moments(self, rows: DrawnRows, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of a column's features, and their mean covariances given what is drawn before.

        These are of features and of what leads, with features, shape (q + l, q).
        """
        column, n, q = self.chain.columns[step.column], rows.runs.shape[1], len(step.values)
        functions = np.concatenate([step.values, step.leads])
        mean, covariance = np.zeros(q), np.zeros((len(functions), q))
        chances = Chances.of(rows.predictor(step), column.values, column.tilts)
        for block, sums in zip(chances.blocks, chances.sums, strict=True):
            block /= sums
            means = functions @ block
            mean += means[:q].sum(axis=1) / n
            covariance += ((functions * block.sum(axis=1)) @ step.values.T - means @ means[:q].T) / n
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


def _repeated(log_weights: np.ndarray, n: int) -> float:
    """Return which part of n rows shares a candidate with an earlier one."""
    weights = _weights(log_weights)
    return float(np.maximum(weights * (n / weights.sum()) - 1, 0).sum()) / n


def _resampled(log_weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the candidate of each of n rows: systematically by weight, in random order."""
    cumulative = np.cumsum(_weights(log_weights))
    numbers = (np.arange(n) + rng.random()) / n * cumulative[-1]
    return rng.permutation(np.minimum(np.searchsorted(cumulative, numbers, side="right"), log_weights.size - 1))


def _weights(log_weights: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.exp(log_weights - log_weights.max()))
