"""The tables of MaxEntropy: two releases, a law that is fitted to them, and a chain of softmaxes with its moments.

    marginals        a      → shares of cells, runs and features of every column, the clip norm
    second moments   1 − a  → what goes with what, pooled, and by class of a column to predict

Settings follow from public facts (`sfumato.methods.tables.settings`), or from what the first release says. Everything
after the noise is a function of the releases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from scipy import special

from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import ATOMS, SIZES
from sfumato.maths.streams import public_stream
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import CELL_STEP, PAIR_STEP, RUN_STEP, VALUE_STEP, CellCounts
from sfumato.methods.tables.chain import Effort, Tie, Turns, fit_table_chain, lawful_moments
from sfumato.methods.tables.evidence import Evidence, JointCounts
from sfumato.methods.tables.feature_moments import MomentBits, TableMoments
from sfumato.methods.tables.features import clip_norm_of
from sfumato.methods.tables.leading import Leading, class_of_cells
from sfumato.methods.tables.prior_rows import PriorRows, RunShares
from sfumato.methods.tables.second_stage import FirstRelease, SecondMoments, SecondStage, unweighted
from sfumato.methods.tables.settings import (
    Names,
    Settings,
    TableFacts,
    entry_noise,
    forecast_rows,
    forecast_weights,
    require_fits,
)
from sfumato.methods.tables.shares import column_shares, released_total, unsaid_distances
from sfumato.models.tables.softmax_chain import SoftmaxChain
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.records.engine import Rows
from sfumato.release.samplers import TableSoftmax
from sfumato.schema.distances import Distance
from sfumato.schema.grid import ColumnGrid, Grid

RUN_COUNTS, CELL_COUNTS, VALUE_COUNTS = "counts of runs", "counts of cells", "counts of single values"
PAIR_COUNTS = "counts of labels and those before"


def table_stages(
    facts: Facts,
    *,
    marginal_share: float,
    level_groups: int,
    share: float = 1.0,
    names: Names | None = None,
    stage: SecondStage | None = None,
) -> list[Stage]:
    """Return the two stages, after what cannot be fitted has been refused.

    Args:
        facts: what is public of the table.
        marginal_share: part of the table's squared budget for the marginals.
        level_groups: most levels of a column that keep an indicator of their own.
        share: part of the squared budget for the table.
        names: of the stages.
        stage: the second one, by default that of second moments.
    """
    names, second = names or Names(), share * (1 - marginal_share)
    sizes = TableFacts.of(facts, level_groups)
    require_fits(sizes.dimension(1), sizes.n_columns, sizes.n_counted)
    return [
        Stage(
            name=names.marginals,
            noise_multiplier=multiplier_for_share(share * marginal_share),
            replace_distance=float(np.sqrt(2)),
            measures="how many rows lie in each cell of a column, in runs of cells, at values and endings of numbers",
        ),
        (Measuring(names).second_stage(1.0) if stage is None else stage).stage(second),
    ]


def table_forecast(plan: Plan, facts: Facts, names: Names | None = None) -> dict[str, str]:
    """Say what the noise of each stage means at `n_public`, from public facts alone."""
    names = names or Names()
    share = one_way_error(plan, facts, names)
    joint = entry_noise(plan[names.moments].noise_multiplier, TableFacts.of(facts), forecast_rows(facts))
    seen_from = _count_noise(plan, facts, names) / VALUE_STEP * special.ndtri(1 - ATOMS.false / ATOMS.usual_values)
    value = f"a number that many rows share is seen from about {seen_from:,.0f} rows on; "
    value = value if TableFacts.of(facts).value_squares else ""
    return {
        names.marginals: f"{value}standard error of a 1-way share ±{share:.2g}{forecast_weights(facts)[2]}",
        names.moments: f"standard error of a correlation ±{joint:.2g}",
    }


def one_way_error(plan: Plan, facts: Facts, names: Names | None = None) -> float:
    """Return the noise of a label's share, from both counts of it."""
    sizes = TableFacts.of(facts)
    precision = RUN_STEP**2 / (sizes.n_classes if sizes.counted else 1) + CELL_STEP**2
    return float(_count_noise(plan, facts, names or Names()) / np.sqrt(precision) / forecast_rows(facts))


def _count_noise(plan: Plan, facts: Facts, names: Names) -> float:
    """Return the noise of counts of which a record adds 1."""
    sizes = TableFacts.of(facts)
    return float(plan[names.marginals].noise_multiplier * sizes.unit_rows * np.sqrt(sizes.squares))


Silent: TypeAlias = Callable[[Sequence[ColumnGrid], Sequence[np.ndarray], float], Collection[str]]


@dataclass(frozen=True, slots=True)
class Measuring:
    """How the records of a table are measured: each counts once, and is clipped by itself.

    Attributes:
        names: of the two stages.
        drawn_first: how many columns, the first ones, are drawn before all others; of several numbers, each in turn.
        weights: of columns that count for more or less than others.
        worth: what a count of 1 is in a release's measurements.
        copied: columns of labels, and the earlier column that each may be kept from.
        mute: columns that no other one is drawn given.
        narrow: columns that vary far less than their bounds allow.
        known: rows of columns that are known before others are drawn, as they are drawn: these are not counted again.
        near: whether some columns are nearly one, as numbers of one unit are: components cost less.
        silent: of columns, their released shares and the second release's noise of an entry, names of columns that say
            nothing of others.
    """

    names: Names = field(default_factory=Names)
    drawn_first: tuple[int, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    worth: float = 1.0
    copied: Mapping[str, str] = field(default_factory=dict)
    mute: Collection[str] = ()
    narrow: Collection[str] = ()
    near: bool = False
    silent: Silent = lambda columns, shares, entry: ()
    known: Rows = field(default_factory=dict)

    def resettled(self, settings: Settings, total: float, choose: Callable[[float], Settings]) -> Settings:
        """Return the settings of what follows the first release; `choose` gives them for a number of rows."""
        del total, choose
        return settings

    def sized(self, facts: TableFacts) -> TableFacts:
        """Return the sizes that settings follow from."""
        return facts

    def weighted(self, settings: Settings) -> Settings:
        """Return settings in which columns count as they are to."""
        weights = {**settings.resolution.weights, **self.weights}
        effort = settings.effort.nearer() if self.near else settings.effort
        resolution = replace(settings.resolution, weights=weights, narrow=self.narrow)
        return replace(settings, resolution=resolution, effort=effort)

    def counts(self, grid: Grid, by: int | None) -> CellCounts:
        """Return the statistic of the first stage; runs are counted by a column, if there is one."""
        return CellCounts(grid, by, known=self.known_shares(grid))

    def known_shares(self, grid: Grid) -> dict[int, np.ndarray]:
        """Return P(cell) of the columns that are known, by their places."""
        cells = self._known_cells(grid)
        return {j: np.bincount(own, minlength=grid.columns[j].n_cells) / max(own.size, 1) for j, own in cells.items()}

    def given(self, grid: Grid, n: int) -> dict[int, np.ndarray]:
        """Return the cells of n rows in the columns that are known, by their places."""
        return {j: cells[np.arange(n) * cells.size // n] for j, cells in self._known_cells(grid).items()}

    def _known_cells(self, grid: Grid) -> dict[int, np.ndarray]:
        columns = enumerate(grid.columns)
        return {j: column.cells(self.known[column.name]) for j, column in columns if column.name in self.known}

    def clip_norm(self, vectors: Sequence[np.ndarray], shares: Sequence[np.ndarray], noisy: bool) -> float:
        """Return the clip norm of a record."""
        return clip_norm_of(vectors, shares, noisy=noisy)

    def moments(
        self, grid: Grid, vectors: tuple[np.ndarray, ...], clip_norm: float, leading: Leading | None, n_public: int,
        counting: CellCounts,
    ) -> TableMoments:  # fmt: skip
        """Return the statistic of the second stage; `counting` is that of the first one."""
        del counting
        return TableMoments(grid, vectors, clip_norm, leading, bits=MomentBits.of(n_public))

    def second_stage(self, clip_slack: float) -> SecondMoments:
        """The second stage: second moments of features."""
        name, worth = self.names.moments, self.worth
        return SecondMoments(name, self.clip_norm, self.moments, clip_slack, self.copied, worth)


def measure_table(
    fit: Fit,
    *,
    level_groups: int,
    clip_slack: float,
    simulated: int | None,
    measuring: Measuring | None = None,
    second: SecondStage | None = None,
) -> FittedModel:
    """Measure twice, and fit a chain; the second stage is by default that of second moments."""
    measuring = measuring or Measuring()
    names = measuring.names if second is None else replace(measuring.names, moments=second.name)
    schema = fit.data.schema
    facts = measuring.sized(TableFacts.of(fit.facts, level_groups))

    def choose(n: float | None) -> Settings:
        return measuring.weighted(Settings.of(fit, facts, level_groups, simulated, names, n))

    settings = choose(None)
    grid = Grid.of(schema, numeric_cells=settings.cells, ends=settings.ends, narrow=True)
    target = fit.facts.class_column if facts.n_classes else None
    place = None if target is None else schema.released.index(target)
    counting = measuring.counts(grid, place if facts.counted else None)
    counts = fit.measure(names.marginals, counting)
    total = released_total(counts, counting)
    settings = measuring.resettled(settings, total, choose)
    public = None if fit.noise.silent else fit.prior
    prior = None if public is None else PriorRows.of(public, grid).tilted(RunShares.of(counts, counting, total))
    grid, columns = column_shares(counts, counting, total, settings.resolution, prior)
    distances = fit.facts.described.distances
    idle = {
        *unsaid_distances(distances, grid, columns, counts, counting.n_classes, total),
        *measuring.silent(grid.columns, [column.shares for column in columns], settings.entry),
    }
    columns = [c.idle() if f.name in idle else c for f, c in zip(grid.columns, columns, strict=True)]
    first = FirstRelease(grid, columns, total, place, settings.few, settings.entry, counting, prior and prior.cut(grid))
    released = (second or measuring.second_stage(clip_slack)).release(fit, first)
    evidence = replace(released.evidence, counts=_joint_counts(counts, counting, total))
    last = place if place is not None and class_of_cells(columns[place]) is not None else None
    mute = {j for j, column in enumerate(grid.columns) if column.name in measuring.mute}
    turns = Turns(measuring.drawn_first, ties_of(distances, grid, idle), mute, last)
    chain = _fitted_chain(evidence, settings.effort, turns, measuring.given(grid, settings.effort.rows))
    measurements = (*_count_measurements(counts, counting, grid, measuring.worth), *released.measurements)
    labels = target if place is not None and not grid.columns[place].numeric else None
    return FittedModel(
        {"name": TableSoftmax.name, "target": labels}, {**chain.to_arrays(), **grid.arrays()}, measurements
    )


def _fitted_chain(evidence: Evidence, effort: Effort, turns: Turns, given: Mapping[int, np.ndarray]) -> SoftmaxChain:
    moments = lawful_moments(evidence, effort, turns.target)
    return fit_table_chain(evidence, moments, effort, public_stream(SIZES.seed), turns, given)


def _joint_counts(counts: Noisy, counting: CellCounts, total: float) -> JointCounts | None:
    """Return shares of runs by class, and of pairs, where they were counted so."""
    by_class = {} if counting.by is None else {(counting.by, j): t for j, t in counting.by_class(counts.value).items()}
    stds = counts.noise_std / RUN_STEP / total, counts.noise_std / PAIR_STEP / total
    tables = {pair: (table / total, stds[0]) for pair, table in by_class.items()}
    tables |= {pair: (table / total, stds[1]) for pair, table in counting.tables_of_pairs(counts.value).items()}
    return JointCounts(tables, counting.pairs) if tables else None


def ties_of(distances: Mapping[str, Distance], grid: Grid, idle: Collection[str]) -> list[Tie]:
    """Return the ties of dates by distances that are not idle."""
    places = {column.name: j for j, column in enumerate(grid.columns)}
    return [
        Tie(places[d.earlier], places[d.column], places[d.later]) for d in distances.values() if d.column not in idle
    ]


def _count_measurements(
    counts: Noisy, statistic: CellCounts, grid: Grid, worth: float
) -> tuple[tuple[str, Noisy], ...]:
    """Return the first release in records, or in the weights' unit: runs, cells, and values that are cells since."""
    runs = worth * np.concatenate(list(statistic.by_class(counts.value).values()), axis=1)
    cells, _, _, pairs = (worth * part for part in np.split(counts.value, statistic.ends)[1:])
    first, last = statistic.ends[0], statistic.ends[-1]
    of_pairs = unweighted(counts, pairs / PAIR_STEP, PAIR_STEP / worth, slice(last, last + 1), statistic.pair_query)
    cells = cells / CELL_STEP
    return (
        (RUN_COUNTS, unweighted(counts, runs, RUN_STEP / worth, slice(0, 1), statistic.run_query)),
        (CELL_COUNTS, unweighted(counts, cells, CELL_STEP / worth, slice(first, first + 1), statistic.cell_query)),
        *([(PAIR_COUNTS, of_pairs)] if statistic.pairs else []),
        *_value_measurements(counts, statistic, grid, worth),
    )


def _value_measurements(counts: Noisy, statistic: CellCounts, grid: Grid, worth: float) -> list[tuple[str, Noisy]]:
    """Return the counts of the values that are cells of their own since the release, in records or the weights' unit.

    They were chosen as they are high, so that an estimate of one leans on the cells beside it, too.
    """
    tables, values = [], []
    for j, noisy in statistic.values(counts).items():
        column, before = grid.columns[j], statistic.grid.columns[j]
        assert column.edges is not None
        assert before.edges is not None
        single = np.setdiff1d(_single_steps(column.edges), _single_steps(before.edges))
        if single.size:
            groups = np.full(column.n_cells, -1)
            groups[np.searchsorted(column.edges, single)] = np.arange(single.size)
            tables.append((Cells.of(column, groups),))
            values.append(worth * noisy.counts[single])
    if not tables:
        return []
    query = MarginalQuery(tuple(tables), **statistic.how_counted([0.0] * len(tables)))
    part = slice(statistic.ends[1], statistic.ends[1] + 1)
    return [(VALUE_COUNTS, unweighted(counts, np.concatenate(values), VALUE_STEP / worth, part, query))]


def _single_steps(edges: np.ndarray) -> np.ndarray:
    """Return the steps that are cells of their own."""
    return edges[:-1][np.diff(edges) == 1]
