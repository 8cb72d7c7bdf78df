"""From two noisy releases to a table's chain of softmaxes: column after column, on rows simulated from those before.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sfumato.maths.constants import CHAIN, PAIRS
from sfumato.maths.shrinkage import shrunk
from sfumato.methods.tables.class_tables import ClassEvidence, class_tables
from sfumato.methods.tables.cross_moments import CrossMoments
from sfumato.methods.tables.features import N_KINDS, RUN, ColumnShares
from sfumato.methods.tables.pair_laws import information, law_weights
from sfumato.methods.tables.softmax_fit import SoftmaxFit, fit_softmax
from sfumato.methods.tables.softmax_objective import Moments, SimulatedRows
from sfumato.models.tables.softmax_chain import SoftmaxChain, SoftmaxColumn
from sfumato.models.tables.softmax_draws import Chances


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard a chain is fitted.

    Attributes:
        slack: noise deviations that each block of moments may be missed by.
        tolerance: in nats: steps of a column's fit that gain less are its last.
        rows: that are simulated.
        low_rank: whether what all columns share is kept before blocks are shrunk.
        least_variance: of a moment, whatever its noise. Simulated rows are not the records: where their features cannot
            have moments of so many columns exactly, weights would grow without end.
    """

    slack: float
    tolerance: float
    rows: int
    low_rank: bool
    least_variance: float = 0.0

    @classmethod
    def noisy(cls, *, columns: int = 1, rows: int | None = None, low_rank: bool = False) -> Effort:
        """The effort that noisy moments of so many columns are worth."""
        simulated = min(CHAIN.simulated, max(CHAIN.fewest_simulated, CHAIN.simulated_cells // columns))
        return cls(CHAIN.slack, CHAIN.tolerance, rows or simulated, low_rank)

    @classmethod
    def exact(cls, n: float, *, rows: int | None = None) -> Effort:
        """The effort that moments of n rows without noise are worth."""
        least = CHAIN.least_variance / n
        return cls(CHAIN.slack, CHAIN.tolerance_without_noise, rows or CHAIN.simulated_without_noise, False, least)


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows whose first columns are simulated elsewhere, as they are when a chain draws the others.

    Attributes:
        chain: fitted to the same releases, whose law of the first columns is kept; of one class.
        cells: of these columns, shape (n, columns).
    """

    chain: SoftmaxChain
    cells: np.ndarray


@dataclass(frozen=True, slots=True)
class Tie:
    """Three columns by their places, of which one is the sum of the others: a date, a distance, a later date."""

    first: int
    second: int
    total: int


@dataclass(frozen=True, slots=True)
class _FittedColumn:
    """One column of a chain.

    Attributes:
        softmax: as it is drawn.
        predictors: features that it is drawn given, shape (m,).
        weights: of these, shape (k or 1, q, m).
    """

    softmax: SoftmaxColumn
    predictors: np.ndarray
    weights: np.ndarray


@np.errstate(invalid="ignore")  # some linear algebra libraries say so of finite float32 numbers
def fit_table_chain(
    columns: Sequence[ColumnShares], class_counts: np.ndarray, moments: CrossMoments, effort: Effort,
    rng: np.random.Generator, drawn_first: Sequence[int] = (), ties: Sequence[Tie] = (), mute: Collection[int] = (),
    given: GivenRows | None = None,
) -> SoftmaxChain:  # fmt: skip
    """Fit column after column, each to rows simulated from those before it.

    The first columns come before all others, as many as a number in `drawn_first` says; of several numbers, the first
    so many of these before the rest. In a tie the two terms come before their sum, which no column has for a predictor:
    it would be a near-copy of the first term; nor has any a `mute` one. With `given` rows the columns after theirs are
    fitted to these: what they say of the first columns has the noise of other releases, or none.
    """
    k = class_counts.size
    shares = class_counts / class_counts.sum()
    ends = np.cumsum([column.features.size for column in columns])
    blocks = [slice(int(e) - c.features.size, int(e)) for e, c in zip(ends, columns, strict=True)]
    columns = [column.moved(moments.offsets[block]) for column, block in zip(columns, blocks, strict=True)]
    if k == 1:
        tables = [column.pooled()[None] for column in columns]
    else:
        tables = class_tables(_class_evidence(columns, moments), class_counts)
    numbers = _rounded(shares * max(effort.rows, CHAIN.class_rows * k)) if given is None else [len(given.cells)]
    classes = np.repeat(np.arange(k), numbers)
    features = np.zeros((int(ends[-1]), classes.size), dtype=np.float32).T  # a feature's values lie together
    order = order_of_ties(drawing_order(moments.means, blocks, drawn_first), ties)
    mute = {*mute, *(tie.total for tie in ties)}
    known, fitted = np.zeros(int(ends[-1]), dtype=bool), dict[int, _FittedColumn]()
    for j in order:
        column, block = columns[j], blocks[j]
        if given is not None and j < given.cells.shape[1]:
            fitted[j] = _FittedColumn(given.chain.columns[j], np.arange(int(ends[-1])), given.chain.weights[:, block])
            runs = column.drawn[given.cells[:, j]]
        else:
            own, rows = _next_column(j, columns, tables[j], blocks, known, moments, features, classes, effort)
            fitted[j] = own
            runs = own.softmax.choose(_predicted(rows, own.weights), classes, rng)
        features[:, block] = column.features.values[runs]
        known[block] = j not in mute
    weights = _joined_weights([fitted[j] for j in range(len(columns))], blocks, k if len(moments.by_class) else 1)
    return SoftmaxChain(shares, tuple(fitted[j].softmax for j in range(len(columns))), order, weights)


def _joined_weights(columns: Sequence[_FittedColumn], blocks: Sequence[slice], k: int) -> np.ndarray:
    """Return W of all columns, shape (k, d, d)."""
    weights = np.zeros((k, blocks[-1].stop, blocks[-1].stop))
    for column, block in zip(columns, blocks, strict=True):
        for c, own in enumerate(column.weights):
            weights[c][block, column.predictors] = own
    return weights


def _predicted(rows: SimulatedRows, weights: np.ndarray) -> np.ndarray:
    """Return W φ of each row, shape (n, q), float32, where weights are of shape (k or 1, q, m)."""
    weights = weights.astype(np.float32)
    if len(weights) == 1:
        return (weights[0] @ rows.features.T).T
    return np.concatenate([w @ own.T for w, own in zip(weights, rows.by_class(len(weights)), strict=True)], axis=1).T


def _rounded(counts: np.ndarray) -> np.ndarray:
    return np.maximum(np.rint(counts), CHAIN.fewest_rows).astype(np.int64)


def _class_evidence(columns: Sequence[ColumnShares], moments: CrossMoments) -> list[ClassEvidence]:
    """Return what was released of every column by class."""
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    evidence = []
    for column, (start, stop) in zip(columns, pairwise(ends), strict=True):
        counts, counts_std, counted = column.counts, column.counts_std, column.counted
        if not column.ordered:
            # of labels, groups are what is drawn: there may be far fewer of them
            counted, sizes = column.drawn, np.bincount(column.drawn)
            counts = np.stack([np.bincount(counted, row, sizes.size) for row in counts])
            counts_std = column.counts_std * float(np.sqrt(sizes.mean()))
        means, variances = moments.classes.means[:, start:stop], moments.classes.variances[:, start:stop]
        known = (column.shares, counted, column.drawn, column.features, counts, counts_std, column.ordered)
        evidence.append(ClassEvidence(*known, means, variances))
    return evidence


def drawing_order(means: np.ndarray, blocks: list[slice], first: Sequence[int] = ()) -> np.ndarray:
    """Return the columns, each the one that depends most on those before it; the first ones before all others."""
    turn = [sum(j >= n for n in first) for j in range(len(blocks))]
    starts = [block.start for block in blocks if block.stop > block.start]
    places = np.array([j for j, block in enumerate(blocks) if block.stop > block.start], dtype=np.int64)
    strength = np.zeros((len(blocks), len(blocks)))
    if starts:
        squares = np.add.reduceat(np.add.reduceat(means**2, starts, axis=0), starts, axis=1)
        strength[np.ix_(places, places)] = squares
    left = list(range(len(blocks)))
    order = [int(np.argmax(strength.sum(axis=0)[: turn.count(0)]))]
    left.remove(order[0])
    bound = strength[order[0]].copy()
    while left:
        following = max(left, key=lambda j: (-turn[j], bound[j]))
        order.append(following)
        left.remove(following)
        bound += strength[following]
    return np.array(order, dtype=np.int64)


def order_of_ties(order: np.ndarray, ties: Sequence[Tie]) -> np.ndarray:
    """Return the columns in order, but that of a tie first comes the first term, then the second, then the sum."""
    before = {tie.second: (tie.first,) for tie in ties} | {tie.total: (tie.first, tie.second) for tie in ties}
    placed: dict[int, None] = {}

    def place(column: int) -> None:
        for other in before.get(column, ()):
            if other not in placed:
                place(other)
        placed[column] = None

    for column in order.tolist():
        place(column)
    return np.array(list(placed), dtype=np.int64)


def _predictors(known: np.ndarray, block: slice, moments: CrossMoments, most: int) -> np.ndarray:
    """Return the earlier features that may say something of a column, or of those that do."""
    means, variances = moments.means[block], moments.variances[block]
    related = known & (means**2 > CHAIN.related * np.maximum(variances, 1e-9)).any(axis=0)
    if len(moments.by_class):
        squares = (moments.by_class[:, block] - means) ** 2
        heard = squares > CHAIN.class_related * np.maximum(moments.class_variances[:, block], 1e-9)
        related |= known & heard.any(axis=(0, 1))
    measured = np.isfinite(variances).any(axis=0)  # what tells a number's runs apart was, beside one label
    linked = known & measured & ((moments.means[related] ** 2) > CHAIN.linked).any(axis=0)
    predictors = np.flatnonzero(related | linked)
    if predictors.size > most:
        strength = (means[:, predictors] ** 2).max(axis=0)
        predictors = np.sort(predictors[np.argsort(-strength, kind="stable")[:most]])
    return predictors


def _next_column(
    j: int, columns: Sequence[ColumnShares], table: np.ndarray, blocks: Sequence[slice], known: np.ndarray,
    moments: CrossMoments, features: np.ndarray, classes: np.ndarray, effort: Effort,
) -> tuple[_FittedColumn, SimulatedRows]:  # fmt: skip
    """Return a column fitted to rows with the known features, and these rows."""
    together = CHAIN.most_together if effort.low_rank else CHAIN.most_related
    predictors, base = _predictors(known, blocks[j], moments, together), None
    if (parent := _parent(j, columns, known, blocks, moments)) is not None:
        own_block = np.arange(blocks[parent].start, blocks[parent].stop)
        predictors = np.union1d(predictors, own_block)
        law = moments.laws[parent, j] if (parent, j) in moments.laws else moments.laws[j, parent].T
        base = _base(law, columns[parent], columns[j], np.isin(predictors, own_block))
    rows = SimulatedRows(features.T[predictors].T, classes)
    apart = len(moments.by_class) > 0
    return _fit_column(columns[j], table, blocks[j], predictors, moments, rows, effort, apart, base), rows


def _parent(
    j: int, columns: Sequence[ColumnShares], known: np.ndarray, blocks: Sequence[slice], moments: CrossMoments
) -> int | None:
    """Return the earlier column whose whole table with this one says most of it; None without.

    Of a number that an earlier one says, there is none: far from such a table, fits take long to bring both together.
    """
    says = {a if b == j else b: information(law) for (a, b), law in moments.laws.items() if j in (a, b)}
    says = {i: nats for i, nats in says.items() if known[blocks[i]].any()}
    if not says:
        return None
    own = columns[j].score()
    scores = [blocks[i].start + place for i, c in enumerate(columns) if (place := c.score()) is not None and i != j]
    scores = [place for place in scores if known[place]]
    if own is not None and (np.abs(moments.means[blocks[j].start + own, scores]) >= PAIRS.strong).any():
        return None
    return max(says, key=lambda i: says[i])


def _base(
    law: np.ndarray, before: ColumnShares, column: ColumnShares, here: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights, shape (q, m), and tilts, shape (r,), of a column given one `here` among predictors."""
    own, tilts = law_weights(law, before.features.values, column.features.values)
    weights = np.zeros((column.features.size, here.size))
    weights[:, here] = own
    return weights, tilts


def _fit_column(
    column: ColumnShares, table: np.ndarray, block: slice, predictors: np.ndarray, moments: CrossMoments,
    rows: SimulatedRows, effort: Effort, apart: bool, base: tuple[np.ndarray, np.ndarray] | None = None,
) -> _FittedColumn:  # fmt: skip
    """Return a column fitted to rows; with a base, weights and tilts, only as far as moments ask for more than it."""
    values = column.features.values

    def fitted(tilts: np.ndarray, weights: np.ndarray) -> _FittedColumn:
        return _FittedColumn(SoftmaxColumn(column.shares, column.drawn, values, tilts, table), predictors, weights)

    if not predictors.size or not values.shape[1]:
        return fitted(np.log(np.maximum(table, 1e-9)), np.zeros((1, values.shape[1], predictors.size)))
    # what nobody measured beside other columns has the weights of the table alone
    measured = np.arange(block.start, block.stop)[moments.kinds[block] != RUN]
    whole = np.zeros((values.shape[1], predictors.size)) if base is None else base[0]
    beyond = float((whole[measured.size :] * moments.means[block][measured.size :, predictors]).sum())
    groups = np.unique(moments.groups[measured][:, predictors], return_inverse=True)[1].reshape(-1, predictors.size)
    spreads = np.clip(moments.spreads[measured][:, predictors], effort.least_variance, PAIRS.unknown)
    wanted = Moments(moments.means[measured][:, predictors], spreads, groups, beyond)
    if base is None:
        fit = _fitted(rows, wanted, values[:, : measured.size], table, effort)
    else:
        fit = _fitted(rows, wanted, values, table, effort, whole, np.log(np.maximum(table, 1e-9)) + base[1])
    weights = whole.copy()
    weights[: measured.size] += fit.weights
    if not apart:
        return fitted(fit.tilts, weights[None])
    return fitted(*_fit_classes(weights, fit.tilts, table, measured, predictors, moments, rows, values, wanted, effort))


def _fitted(
    rows: SimulatedRows,
    wanted: Moments,
    values: np.ndarray,
    table: np.ndarray,
    effort: Effort,
    base: np.ndarray | None = None,
    tilts: np.ndarray | None = None,
) -> SoftmaxFit:
    """Return the softmax of moments; of ones that no law of the rows has, of as near ones as it takes."""

    def fit(width: float) -> SoftmaxFit:
        moments = replace(wanted, variances=width * wanted.variances)
        return fit_softmax(
            rows, moments, values, table, slack=effort.slack, tolerance=effort.tolerance, base=base, tilts=tilts
        )

    fitted = fit(1.0)
    for width in CHAIN.widths:
        if fitted.value >= 0 and fitted.gain <= CHAIN.unsolved:
            break
        fitted = fit(width)
    return fitted


def _moments(features: np.ndarray, weights: np.ndarray, values: np.ndarray, tilts: np.ndarray) -> np.ndarray:
    """Return E[φ uᵀ] over rows of one class, features of shape (n, m), that a softmax gives, shape (q, m)."""
    chances, narrow = Chances.of(weights.astype(np.float32) @ features.T, values, tilts), values.T.astype(np.float32)
    means = [narrow @ (block / sums) for block, sums in zip(chances.blocks, chances.sums, strict=True)]
    if not means:
        return np.zeros(weights.shape)
    return (features.T @ np.concatenate(means, axis=1).T).T.astype(np.float64) / len(features)


def _fit_classes(
    weights: np.ndarray, tilts: np.ndarray, table: np.ndarray, measured: np.ndarray, predictors: np.ndarray,
    moments: CrossMoments, rows: SimulatedRows, values: np.ndarray, pooled: Moments, effort: Effort,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return tilts and weights of every class: those of all classes, and what a class's own moments add."""
    k, groups = len(table), pooled.groups
    features = rows.by_class(k)
    predicted = np.stack([_moments(own, weights, values, tilts[c]) for c, own in enumerate(features)])
    beyond = (weights * predicted)[:, measured.size :].sum(axis=(1, 2))
    predicted = predicted[:, : measured.size]
    observed = moments.by_class[:, measured][:, :, predictors]
    variances = np.broadcast_to(moments.class_variances[:, measured][:, :, predictors], observed.shape)
    deviations = np.zeros_like(observed)
    spreads = np.zeros_like(observed)
    kinds = moments.kinds[measured][:, None] * N_KINDS + moments.kinds[predictors]
    ids = groups + (int(groups.max(initial=-1)) + 1) * np.arange(k)[:, None, None]
    for kind in np.unique(kinds):
        here = np.broadcast_to(kinds == kind, observed.shape)
        deviations[here], spreads[here] = shrunk((observed - predicted)[here], variances[here], ids[here])
    shares = np.bincount(rows.classes, minlength=k) / rows.classes.size
    deviations -= np.einsum("k,kij->ij", shares, deviations)
    spreads = np.maximum(spreads, PAIRS.least_variance * variances)
    class_weights, new = np.tile(weights, (k, 1, 1)), tilts.copy()
    for c in range(k):
        if not (deviations[c] ** 2 > CHAIN.related * np.maximum(variances[c], 1e-9)).any():
            continue
        own = SimulatedRows(features[c], np.zeros(len(features[c]), dtype=np.int64))
        spread = np.maximum(spreads[c], effort.least_variance / shares[c])
        wanted = Moments(predicted[c] + deviations[c], spread, pooled.groups, float(beyond[c]))
        fit = _fitted(own, wanted, values, table[c : c + 1], effort, weights, tilts[c : c + 1])
        class_weights[c, : measured.size] += fit.weights
        new[c] = fit.tilts[0]
    return new, class_weights
