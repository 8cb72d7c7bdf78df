"""From noisy moments to a table's chain of softmaxes: first a lawful mixture near them.

Then the law of most entropy with the mixture's moments, column by column, on rows simulated from those before.
The mixture's moments are those of a true law, so that each column's softmax has a solution, and what rows of the chain
do not say is left open, which a mixture's components would fill in. A column to predict comes last, and is also drawn
given products of two numbers' leading features, of which moments by class were measured: the chain's own first, then
moved as far as what was measured stands above its noise.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import optimize, special

from sfumato.maths.constants import CHAIN, DESCENT
from sfumato.maths.shrinkage import shrunk
from sfumato.maths.streams import public_stream
from sfumato.methods.tables.evidence import Contrasts, Evidence
from sfumato.methods.tables.mixture_fit import MixtureEffort, PairTargets, fit_mixture, rank_bumps
from sfumato.methods.tables.softmax_fit import Predictors, softmax_weights
from sfumato.models.tables.product_mixture import ProductMixture
from sfumato.models.tables.softmax_chain import Interactions, SoftmaxChain, SoftmaxColumn


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard a table is fitted.

    Attributes:
        mixture: components and steps.
        rows: that are simulated.
        ridge: of a softmax's weights.
        solver_steps: in which these are found, at most.
        emphasis: what moments with a column to predict count for, beside those of others.
    """

    mixture: MixtureEffort
    rows: int
    ridge: float
    solver_steps: int
    emphasis: float = 1.0

    @classmethod
    def of(cls, entry: float, rows: int | None = None, n: float = np.inf) -> Effort:
        """Return the effort that moments of this noise of an entry are worth; of fewer rows, less.

        What a component says has the same price in any noise, and moments weigh less in more of it: those with a
        column to predict are made up for that. Without noise, weights of few records have a prior: the moments of n
        records are no law's that other rows have.

        Args:
            entry: noise of an entry of the moments.
            rows: that are simulated, by default `CHAIN.simulated`.
            n: public number of records.
        """
        rows = rows or CHAIN.simulated
        steps = int(np.clip(CHAIN.steps * rows / CHAIN.simulated, CHAIN.fewest_steps, CHAIN.steps))
        if entry < CHAIN.close:
            mixture = MixtureEffort(CHAIN.more_components, steps, CHAIN.less_independence)
            return cls(mixture, rows, max(CHAIN.ridge, CHAIN.precision / n), DESCENT.more_solver_steps)
        emphasis = float(np.clip(entry / CHAIN.emphasised, 1.0, CHAIN.most_emphasis))
        mixture = MixtureEffort(CHAIN.components, steps, CHAIN.independence)
        return cls(mixture, rows, CHAIN.ridge, DESCENT.solver_steps, emphasis)

    def nearer(self) -> Effort:
        """The same where some columns are nearly one: what components say costs next to nothing."""
        mixture = replace(self.mixture, independence=CHAIN.near)
        return replace(self, mixture=mixture, ridge=CHAIN.near_ridge, solver_steps=DESCENT.more_solver_steps)


@dataclass(frozen=True, slots=True)
class Tie:
    """Three columns by their places, of which one is the sum of the others: a date, a distance, a later date."""

    first: int
    second: int
    total: int


@dataclass(frozen=True, slots=True)
class Turns:
    """In which order columns are drawn, and which are drawn given none.

    Attributes:
        drawn_first: how many columns, the first ones, come before all others; of several numbers, each in turn.
        ties: in which the two terms come before their sum, which no column is drawn given: it is a near-copy.
        mute: columns that no other one is drawn given.
        target: column that comes last, if it is one to predict.
    """

    drawn_first: Sequence[int] = ()
    ties: Sequence[Tie] = ()
    mute: Collection[int] = ()
    target: int | None = None

    @property
    def silent(self) -> frozenset[int]:
        """Columns that no other one is drawn given."""
        return frozenset({*self.mute, *(tie.total for tie in self.ties)})

    def order(self, strength: np.ndarray) -> np.ndarray:
        """Return the columns, those first that say most of all others, shape (p,).

        Args:
            strength: how much two columns say of each other, shape (p, p).
        """
        turn = [sum(j >= n for n in self.drawn_first) for j in range(len(strength))]
        total = strength.sum(axis=0)
        return order_of_ties(sorted(range(len(total)), key=lambda j: (turn[j], j == self.target, -total[j])), self.ties)


def order_of_ties(order: Sequence[int], ties: Sequence[Tie]) -> np.ndarray:
    """Return the columns in order, but that of a tie first comes the first term, then the second, then the sum."""
    before = {tie.second: (tie.first,) for tie in ties} | {tie.total: (tie.first, tie.second) for tie in ties}
    placed: dict[int, None] = {}

    def place(column: int) -> None:
        for other in before.get(column, ()):
            place(other)
        placed.setdefault(column)

    for column in order:
        place(column)
    return np.array(list(placed), dtype=np.int64)


@np.errstate(invalid="ignore")  # some linear algebra libraries say so of finite float32 numbers
def fit_table_chain(
    evidence: Evidence,
    moments: np.ndarray,
    effort: Effort,
    rng: np.random.Generator,
    turns: Turns | None = None,
    given: Mapping[int, np.ndarray] | None = None,
) -> SoftmaxChain:
    """Fit column after column to lawful moments of all features, shape (d, d), on simulated rows.

    With `given` cells of some columns by their places, shape (n,), the others are fitted to these rows: what is known
    before a row is drawn has the law that it has then, and not the noise of this table's releases.
    """
    return _Chain(evidence, moments, turns or Turns(), effort, given or {}).fit(rng)


def lawful_moments(evidence: Evidence, effort: Effort, target: int | None = None) -> np.ndarray:
    """Return the moments of the mixture nearest to what was measured, shape (d, d); without noise, these themselves.

    What the mixture misses by more than noise does is its own fault: two numbers that are nearly one take more
    components than it has. That much is put back, so that with less noise moments come to be the records' own. A label
    of hundreds that is a copy of another one takes as many, and has a law of its own: see `copies`.
    """
    apart = evidence.owner[:, None] != evidence.owner
    if not evidence.is_noisy and np.isfinite(evidence.variances).all():
        return np.where(apart, evidence.counted(evidence.values, evidence.variances)[0], np.eye(len(apart)))
    law = fitted_law(evidence, effort, target)
    moments = law.moments([column.features.values for column in evidence.columns])
    values, variances = evidence.counted(*evidence.unclipped(law))
    missed = np.where(evidence.across, values - moments, 0.0)
    reach = special.ndtri(1 - CHAIN.missed / max(np.count_nonzero(evidence.across), 1)) * np.sqrt(variances)
    moments = np.clip(moments + np.sign(missed) * np.maximum(np.abs(missed) - reach, 0.0), -1.0, 1.0)
    for later, earlier in evidence.copied:
        one, other = evidence.owner == later, evidence.owner == earlier
        copied = np.outer(one, other) | np.outer(other, one)
        moments[copied] = evidence.shrunk(values, variances)[copied]
    return np.where(apart, moments, np.eye(len(apart)))


def fitted_law(evidence: Evidence, effort: Effort, target: int | None = None) -> ProductMixture:
    """Return the mixture nearest to what was measured; what clipping takes off it is put back, a few times."""
    d = max(len(evidence.roots), 1)
    most = max(CHAIN.fewest_components, min(CHAIN.of_feature * d, int(CHAIN.most_work / d**2)))
    mixture = replace(effort.mixture, components=min(effort.mixture.components, most))
    counted = np.where(evidence.owner == target, effort.emphasis, 1.0)

    values, variances = evidence.guessed()
    first = pair_targets(evidence, (values, variances), counted)

    def renewed(law: ProductMixture) -> PairTargets | None:
        nonlocal values
        unclipped = evidence.unclipped(law)
        change = ((unclipped[0] - values) ** 2 / np.maximum(unclipped[1], 1e-300))[evidence.across]
        if not change.size or change.mean() < CHAIN.renewed**2:
            return None
        values = unclipped[0]
        return pair_targets(evidence, unclipped, counted)

    return fit_mixture(first, mixture, public_stream(CHAIN.seed), renewed)


def pair_targets(evidence: Evidence, moments: tuple[np.ndarray, np.ndarray], counted: np.ndarray) -> PairTargets:
    """Return what the mixture is fitted to.

    Args:
        evidence: of pairs of features.
        moments: these and variances of their noise, shapes (d, d).
        counted: what moments with each feature count for, shape (d,).
    """
    columns, scale, across = evidence.columns, np.outer(evidence.roots, evidence.roots), evidence.across
    laws = [column.law() for column in columns]
    _, variances = evidence.counted(moments[0], evidence.variances)
    noise = np.maximum(variances * scale**2, CHAIN.least_variance) / np.maximum.outer(counted, counted)
    return PairTargets(
        shares=tuple(laws),
        features=tuple(column.features.values * np.sqrt(column.features.weights) for column in columns),
        values=evidence.shrunk(*evidence.counted(*moments)) * scale,
        precision=np.where(across, 1 / noise, 0.0),
        share_precision=np.array([1 / max(column.share_std**2, CHAIN.least_variance) for column in columns]),
        bases=tuple(
            rank_bumps(law, column.ordered) if column.waves else np.eye(law.size)
            for law, column in zip(laws, columns, strict=True)
        ),
    )


class _Chain:
    """A chain while it is fitted column by column."""

    def __init__(
        self, evidence: Evidence, moments: np.ndarray, turns: Turns, effort: Effort, given: Mapping[int, np.ndarray]
    ) -> None:
        self._columns, self._moments, self._turns, self._given = evidence.columns, moments, turns, given
        self._contrasts, self._rows = evidence.contrasts, min(map(len, given.values()), default=effort.rows)
        self._ridge, self._solver_steps = effort.ridge, effort.solver_steps
        self._product_ridge = CHAIN.product_ridge if evidence.is_noisy else effort.ridge
        self._least = CHAIN.heard if evidence.is_noisy else 0.0
        ends = np.cumsum([0, *(column.features.size for column in self._columns)]).tolist()
        self._blocks = [slice(a, b) for a, b in pairwise(ends)]
        # all features but those of rare values: fitted rows would be learnt by heart through them
        fourths = [(c.law()[:, None] * c.features.values**4).sum(axis=0) for c in self._columns]
        common = [np.flatnonzero(of_column <= CHAIN.most_kurtosis) for of_column in fourths]
        self._places = [block.start + own for block, own in zip(self._blocks, common, strict=True)]
        self._functions = [c.features.values[:, own] for c, own in zip(self._columns, common, strict=True)]
        self._weights = np.zeros((ends[-1], ends[-1]))
        self._runs = np.zeros((self._rows, len(self._columns)), dtype=np.int64)
        # common features of these runs less their means, and the means of their products
        self._drawn, self._middle = np.zeros((ends[-1], self._rows), dtype=np.float32), np.zeros(ends[-1])
        self._squares = np.zeros((ends[-1], ends[-1]))
        self._fitted: dict[int, SoftmaxColumn] = {}
        none = [column.features.leads[:, :0] for column in self._columns]
        self._leads = none if evidence.contrasts is None else evidence.contrasts.functions

    def fit(self, rng: np.random.Generator) -> SoftmaxChain:
        """Fit every column to rows of those before it."""
        order, before = self._turns.order(self._strength()), list[int]()
        for j in order.tolist():
            # of what is given by itself: a draw keeps it
            runs = self._fit_column(j, [] if j in self._given else before, rng)
            self._runs[:, j] = self._columns[j].drawn[self._given[j]] if j in self._given else runs
            if j not in self._turns.silent:
                self._keep(j, before)
                before.append(j)
        return SoftmaxChain(tuple(self._fitted[j] for j in range(len(self._columns))), order, self._weights)

    def _keep(self, j: int, before: Sequence[int]) -> None:
        """Keep what the rows say in a column, for those that are drawn given it."""
        own, places = self._functions[j].T[:, self._runs[:, j]], self._places[j]
        self._middle[places] = own.mean(axis=1)
        self._drawn[places] = own - self._middle[places, None]
        others = np.concatenate([self._places[i] for i in (*before, j)])
        products = self._drawn[others] @ self._drawn[places].T / self._rows
        self._squares[np.ix_(others, places)], self._squares[np.ix_(places, others)] = products, products.T

    def _strength(self) -> np.ndarray:
        """Return how much two columns say of each other, shape (p, p)."""
        owner = np.zeros((len(self._moments), len(self._columns)))
        for j, places in enumerate(self._places):
            owner[places, j] = 1.0
        strength = owner.T @ self._moments**2 @ owner
        np.fill_diagonal(strength, 0.0)
        return strength

    def _drawn_leads(self) -> np.ndarray:
        """Return what leads the columns, of the rows, shape (n, l)."""
        return np.concatenate([own[self._runs[:, j]] for j, own in enumerate(self._leads)], axis=1)

    def _fit_column(self, j: int, before: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        """Fit a column to rows of those before it, and return a run of it for each row, shape (n,)."""
        column, law = self._columns[j], self._columns[j].law()
        tilts, products = np.log(law), Interactions.none(column.features.size)
        predictor = np.zeros((self._rows, column.features.size), dtype=np.float32)  # W φ(before) + V π(before)
        if (heard := self._heard(j, before)) is not None:
            places, wanted = heard
            middle, rows = self._middle[places], self._drawn[places].T
            wanted = wanted - np.outer(middle, law @ self._functions[j])
            squares, ridge = self._squares[np.ix_(places, places)], self._ridge
            if j == self._turns.target and self._least:
                ridge = max(ridge, _least_ridge(squares, CHAIN.free_weights))
            part = Predictors(rows, self._functions[j], wanted, ridge, squares)
            (weights,), shift = softmax_weights([part], law, self._solver_steps)
            if ridge > self._ridge:  # as far along these weights as the moments say
                along = Predictors(rows @ weights.astype(np.float32), part.functions, weights.T @ wanted, self._ridge)
                (length,), shift = softmax_weights([along], law, self._solver_steps)
                weights = weights @ length
            if j == self._turns.target and self._contrasts is not None:
                weights, shift, products = self._with_products(part, weights, shift, self._contrasts, before)
            tilts = tilts + shift - self._functions[j] @ (weights.T @ middle)
            self._weights[np.ix_(self._places[j], places)] = weights.T
            own = rows @ weights.astype(np.float32) + middle @ weights
            predictor[:, self._places[j] - self._blocks[j].start] = own
        if products.first.size:
            leads = self._drawn_leads()
            predictor += (leads[:, products.first] * leads[:, products.second]) @ products.weights.T
        own = column.features.values, self._leads[j]
        self._fitted[j] = SoftmaxColumn(column.shares, column.drawn, *own, tilts, law, products)
        return self._fitted[j].choose(predictor, rng)

    def _heard(self, j: int, before: Sequence[int]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the features that a column is drawn given: places and moments; None where there are none."""
        before = [i for i in before if self._places[i].size]
        if not before or not self._places[j].size:
            return None
        places = np.concatenate([self._places[i] for i in before])
        wanted, together = self._moments[np.ix_(places, self._places[j])], self._moments[np.ix_(places, places)]
        least = 0.0 if j == self._turns.target else self._least
        strength = np.abs(wanted).max(axis=1)
        heard = strength >= max(least, np.sort(strength)[-CHAIN.first_heard :][0] if least else 0.0)
        for _ in range(CHAIN.listens if least else 0):
            more = np.abs(wanted - _predicted(together, wanted, heard)).max(axis=1) > least
            if not (more & ~heard).any():
                break
            heard |= more
        if not heard.any():
            return None
        return places[heard], wanted[heard]

    def _with_products(
        self, part: Predictors, weights: np.ndarray, shift: np.ndarray, contrasts: Contrasts, before: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, Interactions]:
        """Return weights, shift and products of the target drawn given products too."""
        column, law = self._columns[contrasts.target], self._columns[contrasts.target].law()
        classes = np.zeros((contrasts.shares.size, law.size))
        np.add.at(classes, (contrasts.classes, column.drawn), column.shares)
        indicators = (classes / np.maximum(classes.sum(axis=0), 1e-300) - contrasts.shares[:, None]).T  # runs, classes
        logits = np.log(law) + shift + (part.rows @ weights.astype(np.float32)) @ part.functions.T
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances = chances / chances.sum(axis=1, keepdims=True) @ indicators
        leads, known = self._drawn_leads(), np.isin(contrasts.owner, before)
        first, second, wanted = _measured_products(contrasts, known, leads, chances)
        if not first.size:
            return weights, shift, Interactions.none(column.features.size)
        products = leads[:, first] * leads[:, second]
        middle = products.mean(axis=0)
        products -= middle
        more = Predictors(products, indicators, wanted, self._product_ridge)
        (weights, own), shift = softmax_weights([part, more], law, self._solver_steps)
        onto = column.features.values.T @ (law[:, None] * indicators)
        return weights, shift - indicators @ (own.T @ middle), Interactions(first, second, onto @ own.T)


def _predicted(together: np.ndarray, wanted: np.ndarray, heard: np.ndarray) -> np.ndarray:
    """Return the moments with a column that its linear prediction by what it hears has, shape (d, q).

    Of independent columns that a third one goes with, each has to hear the other where that is heard.

    Args:
        together: moments of features, shape (d, d).
        wanted: their moments with the column, shape (d, q).
        heard: which are heard, shape (d,).
    """
    square = together[np.ix_(heard, heard)] + CHAIN.hearing_ridge * np.eye(int(heard.sum()))
    return np.where(heard[:, None], wanted, together[:, heard] @ np.linalg.solve(square, wanted[heard]))


def _least_ridge(squares: np.ndarray, most: float) -> float:
    """Return the least ridge with at most so many free weights, Σ e ÷ (e + ridge), of features of variances e."""
    spread = np.linalg.eigvalsh(squares) if len(squares) > most else np.zeros(0)
    spread = spread[spread > 1e-9]  # of what does not vary at all, rounding
    if spread.size <= most:
        return 0.0
    free = lambda ridge: (spread / (spread + ridge)).sum() - most  # noqa: E731
    return float(optimize.root_scalar(free, bracket=(0.0, spread.sum() / most)).root)


def _measured_products(
    contrasts: Contrasts, known: np.ndarray, leads: np.ndarray, chances: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which products of what leads two columns go with the class otherwise than a chain says, and how.

    Args:
        contrasts: moments by class.
        known: whether it is of a column drawn before the target, shape (l,).
        leads: what leads, of simulated rows, shape (n, l).
        chances: of each class of the rows less its share, shape (n, k).

    Returns:
        Places of both features, shapes (m,), and E[(1(class) − P(class)) φ φ'], shape (m, k).
    """
    owner = contrasts.owner
    first, second = np.nonzero(np.triu((owner[:, None] != owner) & np.outer(known, known), 1))
    shares = contrasts.shares[:, None]
    measured = (contrasts.values - shares[:, :, None] * contrasts.values.sum(axis=0))[:, first, second]
    implied = np.stack([(leads * one[:, None]).T @ leads / len(leads) for one in chances.T])[:, first, second]
    parts = (1 - shares) ** 2 + (shares.size - 1) * shares**2
    noise = np.broadcast_to(contrasts.variances[first, second] * np.maximum(parts, 1e-6), measured.shape)
    blocks = np.broadcast_to(owner[first] * len(owner) + owner[second], measured.shape)
    moved = shrunk((measured - implied).ravel(), noise.ravel(), blocks.ravel())[0].reshape(measured.shape)
    strength = (moved**2).sum(axis=0)
    strongest = np.argsort(-strength, kind="stable")[: CHAIN.most_products]
    strongest = strongest[strength[strongest] > CHAIN.least_product]
    return first[strongest], second[strongest], (implied + moved)[:, strongest].T
