"""The tables of MaxEntropy: two releases, and a chain of softmaxes between them and the sampler.

    marginals                 a      → shares of cells and classes, runs and features of every column, the clip norm
    second moments by class   1 − a  → what goes with what, pooled and by class

Settings follow from public facts (the schema, the number of rows, the planned noise), or from what the first release
says. Everything after the noise is a function of the releases.

What a table of many columns takes, from public facts: what cannot be fitted is refused before a record is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from sfumato.columns.kinds import LevelKind, TabularKind
from sfumato.errors import SchemaError
from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import CURVE, SIZES
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import CELL_STEP, RUN_STEP, SQUARES, TwoResolutionCounts
from sfumato.methods.tables.chain import Effort, Tie, fit_table_chain
from sfumato.methods.tables.clip_norms import clip_norm_of
from sfumato.methods.tables.feature_moments import MomentBits, TableMoments
from sfumato.methods.tables.layout import TableLayout
from sfumato.methods.tables.prior_rows import PriorRows, RunShares
from sfumato.methods.tables.second_stage import (
    MOMENTS,
    FirstRelease,
    SecondMoments,
    SecondStage,
    moment_stage,
    unweighted,
)
from sfumato.methods.tables.shares import Resolution, column_shares, released_counts, unsaid_distances
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.release.samplers import TableSoftmax
from sfumato.schema.distances import Distance
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.schema_facts import weight_bound

MOST_ENTRIES = 1 << 25  # of all classes' second moments: a quarter GiB, of which a fit holds several copies


def fits(n_matrices: int, dimension: int) -> bool:
    """Whether second moments of that many matrices and entries of a record's vector fit into memory."""
    return n_matrices * dimension**2 <= MOST_ENTRIES


def require_fits(n_classes: int, dimension: int, n_cells: int, n_columns: int) -> None:
    """Refuse a table that cannot be fitted even with the shortest vectors.

    Args:
        n_classes: of the target, or 1.
        dimension: least number of entries of a record's vector.
        n_cells: in which its columns are counted by class.
        n_columns: of the table, but for the target.

    Raises:
        SchemaError: its second moments or its tables do not fit into memory.
    """
    if not fits(1, dimension):
        raise SchemaError(
            f"Expected at most {int(MOST_ENTRIES**0.5)} entries for the second moments, got {dimension} from "
            f"{n_columns} columns: one for a number, one per level for labels, one more where a number may be missing. "
            "Leave columns out (`kind: identifier`) or merge rare levels (`other`)."
        )
    if n_classes * n_cells > MOST_ENTRIES:
        raise SchemaError(
            f"Expected at most {MOST_ENTRIES // n_classes} cells in the columns' tables of {n_classes} classes, got "
            f"{n_cells} from {n_columns} columns: up to {SIZES.counted_cells} for a number, one per level for labels. "
            "Leave columns out (`kind: identifier`), merge rare levels (`other`), name a target of fewer classes or "
            "none."
        )


def counted_rows(facts: Facts) -> float:
    """Return the public number of rows, beside which noise is seen.

    Of weighted rows: their weights' sum ÷ the bound, as a row of the largest weight counts as one; or a guess of it.
    """
    weight = facts.described.weight
    if weight is None:
        return facts.rows
    bound = weight_bound(facts.described)
    return max(1.0, SIZES.mean_weight * facts.rows if weight.total is None else weight.total / bound)


MARGINALS = "marginals"
RUN_COUNTS, CELL_COUNTS = "counts of runs by class", "counts of cells"


@dataclass(frozen=True, slots=True)
class Names:
    """What the two stages of a table are called."""

    marginals: str = MARGINALS
    moments: str = MOMENTS


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Public sizes that settings follow from."""

    n_classes: int
    n_features: int
    n_level_cells: int  # that have a feature
    unit_rows: float = 1
    n_number_entries: int = 0  # at least: of scores, and of what tells missing numbers
    n_levels: int = 0

    @classmethod
    def of(cls, facts: Facts, level_groups: int | None = None) -> TableFacts:
        """Read them off a schema, its areas or its target; levels beyond `level_groups` share a cell.

        Raises:
            SchemaError: there are too many classes, or a column holds sets.
        """
        schema, target = facts.schema, facts.class_column
        released = schema.released
        if facts.sets:
            raise SchemaError(
                f"Expected columns of labels, numbers or dates for the method max-entropy, got sets of items in column "
                f"{facts.sets[0]!r}. Use the method latent-classes for a column of sets alone, or declare it as "
                "identifier to leave it out."
            )
        n_classes = 1
        # a table of the target alone has nothing to condition on
        if target is not None and len(released) > 1:
            kind = schema.of_kind(LevelKind).get(target)
            if kind is None:
                target = None
            else:
                n_classes = kind.n_levels
        if n_classes > SIZES.most_classes:
            raise SchemaError(
                f"Expected at most {SIZES.most_classes} classes of a target or areas, got {target!r} with {n_classes}. "
                "Name another column, or none."
            )
        features = [kind for name, kind in schema.of_kind(TabularKind).items() if name != target or n_classes == 1]
        levels = [kind.n_levels for kind in features if not kind.is_numeric]
        cells = sum(levels if level_groups is None else (min(n, level_groups) for n in levels))
        entries = sum(kind.width for kind in features if kind.is_numeric)
        return cls(n_classes, len(features), cells, facts.unit_rows, entries, sum(levels))

    def dimension(self, orders: int) -> int:
        """Return about how many entries a record's vector has: features, and an indicator for each class."""
        numbers = self.n_number_entries * (orders + 2 * (orders > 1))
        return self.n_level_cells + numbers + self.n_classes


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
    joint = entry_noise(plan[names.moments].noise_multiplier, TableFacts.of(facts), counted_rows(facts))
    return {
        names.marginals: f"standard error of a 1-way share ±{share:.2g}",
        names.moments: f"standard error of a correlation ±{joint:.2g}",
    }


def one_way_error(plan: Plan, facts: Facts, names: Names | None = None) -> float:
    """Return the noise of a label's share, from both counts of it."""
    sizes = TableFacts.of(facts)
    noise_std = (
        plan[(names or Names()).marginals].noise_multiplier * sizes.unit_rows * np.sqrt(sizes.n_features * SQUARES)
    )
    precision = RUN_STEP**2 / sizes.n_classes + CELL_STEP**2
    return float(noise_std / np.sqrt(precision) / counted_rows(facts))


def entry_noise(noise_multiplier: float, facts: TableFacts, n_public: float) -> float:
    """Return about the noise of the mean product of two features of weight 1, from public facts."""
    return float(SIZES.entry_scale * noise_multiplier * facts.unit_rows * facts.n_features / np.sqrt(2) / n_public)


@dataclass(frozen=True, slots=True)
class Settings:
    """How finely a table is modelled: by its noise alone, so that with less of it, more is seen."""

    cells: int
    ends: bool  # whether bounds have cells of their own: what is recorded as a bound would be seen there
    entry: float
    resolution: Resolution
    by_class: float
    effort: Effort

    @classmethod
    def of(
        cls,
        fit: Fit,
        facts: TableFacts,
        level_groups: int,
        simulated: int | None,
        names: Names | None = None,
        n: float | None = None,
    ) -> Settings:
        """Choose them from public facts and the planned noise; without noise, the finest.

        `n` is the number of rows beside which noise is seen, by default `counted_rows`.
        """
        n = counted_rows(fit.facts) if n is None else n
        names = names or Names()
        weights = {} if fit.target is None else {fit.target: SIZES.target_weight}
        plan = fit.plan
        entry = 0.0
        if not fit.noise.silent:
            entry = entry_noise(plan[names.moments].noise_multiplier, facts, n)
        by_class = _by_class(facts, entry)
        if entry < SIZES.faint:
            finest = Resolution(SIZES.runs_without_noise, SIZES.most_orders, level_groups, weights)
            resolution = _fitting(finest, facts, by_class)
            return cls(SIZES.cells_without_noise, True, entry, resolution, by_class, Effort.exact(n, rows=simulated))
        counts_std = (
            plan[names.marginals].noise_multiplier * facts.unit_rows * np.sqrt(facts.n_features * SQUARES) / CELL_STEP
        )
        cells = int(np.clip(n / counts_std, SIZES.fewest_cells, SIZES.most_cells))
        resolution = _fitting(Resolution(SIZES.most_runs, orders_of(entry), level_groups, weights), facts, by_class)
        effort = Effort.noisy(columns=facts.n_features, rows=simulated, low_rank=resolution.orders == 1)
        ends = bool(CURVE.stands_out * counts_std <= SIZES.bound_share * n)
        return cls(cells, ends, entry, resolution, by_class, effort)


def orders_of(entry: float) -> int:
    """How many polynomials of a number pay where an entry of the moments has this noise."""
    return next((orders for noise, orders in SIZES.orders if entry < noise), 1)


def classes_apart(n_classes: int, entry: float) -> bool:
    """Whether classes have moments of their own: a few, or more where noise is small beside the rows of one."""
    if not 1 < n_classes <= SIZES.many_classes:
        return False
    few = n_classes <= SIZES.few_classes and entry <= SIZES.class_entry_noise
    return few or entry * n_classes <= SIZES.many_classes_noise


def _by_class(facts: TableFacts, entry: float) -> float:
    """Return β², the part of the second release that tells classes apart."""
    orders = orders_of(entry) if facts.n_classes > SIZES.few_classes else 1
    if not classes_apart(facts.n_classes, entry) or not fits(1 + facts.n_classes, facts.dimension(orders)):
        return 0.0
    part = next(part for noise, part in SIZES.by_class if entry <= noise)
    return part * facts.n_classes / (facts.n_classes - 1)


def _class_weight(entry: float, facts: TableFacts) -> float:
    """Return the squared length of a class's indicator: where columns are many, class means are what is left to see."""
    return max(SIZES.class_weight, SIZES.class_share * facts.n_features * min(1.0, entry / SIZES.many_columns_noise))


def _fitting(resolution: Resolution, facts: TableFacts, by_class: float) -> Resolution:
    """Return the resolution with as many orders as memory holds."""
    matrices = 1 + facts.n_classes if by_class else 1
    for _, orders in SIZES.orders:
        if orders <= resolution.orders and fits(matrices, facts.dimension(orders)):
            return replace(resolution, orders=orders)
    return replace(resolution, orders=1)


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
            nothing of others; None without any.
    """

    names: Names = field(default_factory=Names)
    drawn_first: tuple[int, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    worth: float = 1.0
    copied: Mapping[str, str] = field(default_factory=dict)
    mute: Collection[str] = ()
    narrow: Collection[str] = ()
    silent: Silent | None = None

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


def run_table(
    fit: Fit,
    *,
    level_groups: int,
    clip_slack: float,
    simulated: int | None,
    measuring: Measuring | None = None,
    second: SecondStage | None = None,
) -> FittedModel:
    """Measure twice and fit the chain; the second stage is by default that of second moments."""
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
    prior = None
    if fit.prior is not None and not fit.noise.silent:
        prior = PriorRows.of(fit.prior, layout).tilted(RunShares.of(counts, counting, float(class_counts.sum())))
    columns = column_shares(counts, counting, class_counts, settings.resolution, prior)
    distances = fit.facts.described.distances
    idle: Collection[str] = unsaid_distances(distances, layout, columns, counts, class_counts)
    if measuring.silent is not None:
        idle = {*idle, *measuring.silent(layout.features, [column.shares for column in columns], settings.entry)}
    columns = [c.idle() if f.name in idle else c for f, c in zip(layout.features, columns, strict=True)]
    class_weight = 0.0
    if target is not None or settings.effort.low_rank:  # one class of all rows tells where columns lie
        class_weight = _class_weight(settings.entry, facts)
    low_rank, rows = settings.effort.low_rank, measuring.seen(fit, class_counts)
    first = FirstRelease(
        layout, columns, class_counts, class_weight, settings.by_class, low_rank, rows, facts.unit_rows, prior
    )
    released = (second or measuring.second_stage(clip_slack)).release(fit, first)
    chain = fit_table_chain(
        columns,
        class_counts,
        released.moments,
        settings.effort,
        public_stream(SIZES.seed),
        measuring.drawn_first,
        ties_of(distances, layout, idle),
        {j for j, feature in enumerate(layout.features) if feature.name in measuring.mute},
    )
    return FittedModel(
        sampler={"name": TableSoftmax.name, "target": target},
        parameters={**chain.to_arrays(), **grid.arrays()},
        measurements=(
            *_count_measurements(counts, counting, measuring.worth),
            *released.measurements,
        ),
    )


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
