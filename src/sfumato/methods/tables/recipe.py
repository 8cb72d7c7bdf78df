"""The tables of MaxEntropy: two releases, and a chain of softmaxes between them and the sampler.

    marginals                 a      → shares of cells and classes, runs and features of every column, the clip norm
    second moments by class   1 − a  → what goes with what, pooled and by class
    tables of pairs                  → the same of a few pairs of columns, where `pair_tables` say that it pays

Settings follow from public facts (`sfumato.methods.tables.settings`), or from what the first release says. Everything
after the noise is a function of the releases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import SIZES
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import CELL_STEP, RUN_STEP, SQUARES, TwoResolutionCounts
from sfumato.methods.tables.chain import GivenRows, Tie, fit_table_chain
from sfumato.methods.tables.clip_norms import clip_norm_of
from sfumato.methods.tables.feature_moments import MomentBits, TableMoments
from sfumato.methods.tables.layout import TableLayout
from sfumato.methods.tables.pair_tables import with_pair_tables
from sfumato.methods.tables.prior_rows import PriorRows, RunShares
from sfumato.methods.tables.second_stage import FirstRelease, SecondMoments, SecondStage, moment_stage, unweighted
from sfumato.methods.tables.settings import (
    Names,
    Settings,
    TableFacts,
    class_weight_of,
    entry_noise,
    forecast_rows,
    forecast_weights,
    require_fits,
)
from sfumato.methods.tables.shares import column_shares, hidden_share, released_counts, unsaid_distances
from sfumato.models.tables.softmax_chain import SoftmaxChain
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.records.engine import Rows
from sfumato.release.samplers import TableSoftmax
from sfumato.schema.distances import Distance
from sfumato.schema.grid import ColumnGrid, Grid

RUN_COUNTS, CELL_COUNTS = "counts of runs by class", "counts of cells"


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
    counted = sizes.n_levels + SIZES.counted_cells * sizes.n_number_entries
    require_fits(sizes.n_classes, sizes.dimension(1), counted, sizes.n_features)
    ratio = float(np.sqrt(2))
    return [
        Stage(
            name=names.marginals,
            noise_multiplier=multiplier_for_share(share * marginal_share),
            replace_distance=ratio,
            measures="how many rows lie in each cell of each column, and per class in runs of cells",
        ),
        moment_stage(names.moments, second) if stage is None else stage.stage(second),
    ]


def table_forecast(plan: Plan, facts: Facts, names: Names | None = None) -> dict[str, str]:
    """Say what the noise of each stage means at `n_public`, from public facts alone."""
    names = names or Names()
    share = one_way_error(plan, facts, names)
    joint = entry_noise(plan[names.moments].noise_multiplier, TableFacts.of(facts), forecast_rows(facts))
    return {
        names.marginals: f"standard error of a 1-way share ±{share:.2g}{forecast_weights(facts)[2]}",
        names.moments: f"standard error of a correlation ±{joint:.2g}",
    }


def one_way_error(plan: Plan, facts: Facts, names: Names | None = None) -> float:
    """Return the noise of a label's share, from both counts of it."""
    sizes = TableFacts.of(facts)
    noise_std = (
        plan[(names or Names()).marginals].noise_multiplier * sizes.unit_rows * np.sqrt(sizes.n_features * SQUARES)
    )
    precision = RUN_STEP**2 / sizes.n_classes + CELL_STEP**2
    return float(noise_std / np.sqrt(precision) / forecast_rows(facts))


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
    silent: Silent = lambda columns, shares, entry: ()

    def resettled(self, settings: Settings, class_counts: np.ndarray, choose: Callable[[float], Settings]) -> Settings:
        """Return the settings of what follows the first release; `choose` gives them for a number of rows."""
        del class_counts, choose
        return settings

    def seen(self, fit: Fit, class_counts: np.ndarray) -> float:
        """Return the number of rows beside which the second release's noise is seen."""
        del class_counts
        return fit.n_public

    def sized(self, facts: TableFacts) -> TableFacts:
        """Return the sizes that settings follow from."""
        return facts

    def weighted(self, settings: Settings) -> Settings:
        """Return settings in which columns count as they are to."""
        weights = {**settings.resolution.weights, **self.weights}
        return replace(settings, resolution=replace(settings.resolution, weights=weights, narrow=self.narrow))

    def counts(self, layout: TableLayout) -> TwoResolutionCounts:
        """Return the statistic of the first stage."""
        return TwoResolutionCounts(layout)

    def clip_norm(
        self, vectors: Sequence[np.ndarray], shares: Sequence[np.ndarray], noise_multiplier: float, n_public: float
    ) -> float:
        """Return the norm that noise and bias together favour; 0 is no noise."""
        return clip_norm_of(vectors, shares, noise_multiplier / n_public)

    def moments(
        self, layout: TableLayout, vectors: tuple[np.ndarray, ...], clip_norm: float, by_class: float, n_public: int
    ) -> TableMoments:
        """Return the statistic of the second stage."""
        return TableMoments(layout, vectors, clip_norm, by_class, bits=MomentBits.of(n_public))

    def second_stage(self, clip_slack: float) -> SecondMoments:
        """The second stage: second moments of features."""
        name, worth = self.names.moments, self.worth
        return SecondMoments(name, self.clip_norm, self.moments, clip_slack, self.copied, worth)


@dataclass(frozen=True)
class MeasuredTable:
    """The releases of a table, and the chains that are fitted to them.

    Attributes:
        layout: its columns.
        fit_chain: fits a chain, to given rows or not.
        measurements: both releases.
        hidden: share of records without a class.
    """

    layout: TableLayout
    fit_chain: Callable[[GivenRows | None], SoftmaxChain]
    measurements: tuple[tuple[str, Noisy], ...]
    hidden: float = 0.0

    def chain(self, rows: Rows | None = None, before: SoftmaxChain | None = None) -> SoftmaxChain:
        """Return a chain; of rows whose first columns are simulated, with the law that a chain before had of these."""
        if rows is None or before is None:
            return self.fit_chain(None)
        first = [column.cells(rows[column.name]) for column in self.layout.features[: len(rows)]]
        return self.fit_chain(GivenRows(before, np.stack(first, axis=1)))

    def model(self, chain: SoftmaxChain | None = None) -> FittedModel:
        """Return a model of the table with a chain, by default that of the releases alone."""
        chain = self.chain() if chain is None else chain
        chain = chain if self.layout.class_cells.size == self.layout.n_classes else chain.with_class(self.hidden)
        target = None if self.layout.target is None else self.layout.grid.columns[self.layout.target].name
        return FittedModel(
            sampler={"name": TableSoftmax.name, "target": target},
            parameters={**chain.to_arrays(), **self.layout.grid.arrays()},
            measurements=self.measurements,
        )


def measure_table(
    fit: Fit,
    *,
    level_groups: int,
    clip_slack: float,
    simulated: int | None,
    measuring: Measuring | None = None,
    second: SecondStage | None = None,
    pair_tables: bool = False,
) -> MeasuredTable:
    """Measure twice; the second stage is by default that of second moments. `pair_tables` are counted after it."""
    measuring = measuring or Measuring()
    names = measuring.names if second is None else replace(measuring.names, moments=second.name)
    schema = fit.data.schema
    facts = measuring.sized(TableFacts.of(fit.facts, level_groups))

    def choose(n: float | None) -> Settings:
        return measuring.weighted(Settings.of(fit, facts, level_groups, simulated, names, n))

    settings = choose(None)
    grid = Grid.of(schema, numeric_cells=settings.cells, ends=settings.ends, narrow=True)
    target = None if facts.n_classes == 1 else fit.facts.class_column
    layout = TableLayout(grid, None if target is None else schema.released.index(target))
    counting = measuring.counts(layout)
    counts = fit.measure(names.marginals, counting)
    class_counts = released_counts(counts, counting)
    settings = measuring.resettled(settings, class_counts, choose)
    prior = _prior_rows(fit, layout, counts, counting, float(class_counts.sum()))
    columns = column_shares(counts, counting, class_counts, settings.resolution, prior)
    distances = fit.facts.described.distances
    idle = {
        *unsaid_distances(distances, layout, columns, counts, class_counts),
        *measuring.silent(layout.features, [column.shares for column in columns], settings.entry),
    }
    columns = [c.idle() if f.name in idle else c for f, c in zip(layout.features, columns, strict=True)]
    low_rank, rows = settings.effort.low_rank, measuring.seen(fit, class_counts)
    # one class of all rows tells where columns lie
    class_weight = class_weight_of(settings.entry, facts) if target is not None or low_rank else 0.0
    sizes = (settings.by_class, low_rank, rows, facts.unit_rows)
    hidden = hidden_share(counts, counting)
    first = FirstRelease(layout, columns, class_counts, class_weight, *sizes, prior, hidden)
    released = (second or measuring.second_stage(clip_slack)).release(fit, first)
    columns, released = with_pair_tables(fit, first, released) if pair_tables else (columns, released)
    mute = {j for j, feature in enumerate(layout.features) if feature.name in measuring.mute}
    ties = ties_of(distances, layout, idle)

    def fit_chain(given: GivenRows | None) -> SoftmaxChain:
        stream = public_stream(SIZES.seed)
        return fit_table_chain(
            columns, class_counts, released.moments, settings.effort, stream, measuring.drawn_first, ties, mute, given
        )

    return MeasuredTable(
        layout,
        fit_chain,
        (*_count_measurements(counts, counting, measuring.worth), *released.measurements),
        hidden,
    )


def _prior_rows(
    fit: Fit, layout: TableLayout, counts: Noisy, counting: TwoResolutionCounts, total: float
) -> PriorRows | None:
    """Return rows of an earlier release's model, with the released shares; None without one, or without noise."""
    if fit.prior is None or fit.noise.silent:
        return None
    return PriorRows.of(fit.prior, layout).tilted(RunShares.of(counts, counting, total))


def ties_of(distances: Mapping[str, Distance], layout: TableLayout, idle: Collection[str]) -> list[Tie]:
    """Return the ties of dates by distances that are not idle."""
    places = {column.name: j for j, column in enumerate(layout.features)}
    return [
        Tie(places[d.earlier], places[d.column], places[d.later]) for d in distances.values() if d.column not in idle
    ]


def _count_measurements(
    counts: Noisy, statistic: TwoResolutionCounts, worth: float = 1.0
) -> tuple[tuple[str, Noisy], ...]:
    """Return the first release in records, or in the weights' unit: tables (classes, runs) side by side, and cells."""
    by_class, cells = statistic.split(counts.value)
    runs, fine = worth * np.concatenate(by_class, axis=1), worth * np.concatenate(cells)
    return (
        (RUN_COUNTS, unweighted(counts, runs, RUN_STEP / worth, slice(0, 1), statistic.run_query)),
        (CELL_COUNTS, unweighted(counts, fine, CELL_STEP / worth, slice(-1, None), statistic.cell_query)),
    )
