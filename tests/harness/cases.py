"""Every statistic and mechanism of the package, with records that try to break them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from harness.privacy import MechanismCase, StatisticCase
from harness.question_cases import TABLE, question_sums
from harness.unit_cases import unit_pool, unit_sums
from sfumato.columns.kinds import Boolean, Image, Integer
from sfumato.columns.levels import LabelPair
from sfumato.columns.sets import CodedSets, ItemSet
from sfumato.estimators.records import WEIGHED_BITS, WEIGHT, Weighed
from sfumato.fitting.arguments import RowCount
from sfumato.fitting.domain_counts import DomainCounts, KindCounts
from sfumato.lenses.chain import plain_records, plain_schema
from sfumato.measurements import Cells, MarginalQuery
from sfumato.mechanisms.contributions import clip_rows, product_bits
from sfumato.mechanisms.noise_shares import noise_part, noise_share, sum_of_shares
from sfumato.mechanisms.norms import joint_exact, norm_bins
from sfumato.mechanisms.queries import Noisy, noisy_count, noisy_histogram, noisy_second_moment, noisy_sum
from sfumato.mechanisms.statistics import QueryCounts
from sfumato.methods.dpgm.profiles import ClusterProfiles, TotalLength
from sfumato.methods.images.statistics import ClassMoments, ClassSums, PooledMoment, Profiles
from sfumato.methods.images.teacher import Standardised, TeacherGradient
from sfumato.methods.items import ItemCounts
from sfumato.methods.linked.statistics import (
    StepCounts,
    StepMoments,
    step_bits,
)
from sfumato.methods.mixtures.centres import CentreGrid
from sfumato.methods.mixtures.em_moments import EmMoments, PooledSquares, default_weights
from sfumato.methods.mixtures.kmeans import ClusterSums, GridCounts
from sfumato.methods.mixtures.kmeans import Weights as ClusterWeights
from sfumato.methods.nets.axes import CentredSecondMoment, LatentAxes, VectorSum
from sfumato.methods.nets.decoding import cell_counts
from sfumato.methods.p3gm.settings import ClassLatents, unit_mixture
from sfumato.methods.sets.pairs import ItemPairCounts
from sfumato.methods.tables.cell_counts import CellCounts, public_runs
from sfumato.methods.tables.feature_moments import TableMoments
from sfumato.methods.tables.features import ColumnShares, Waves, level_features, number_features
from sfumato.methods.tables.leading import Leading
from sfumato.methods.tables.weighted import WeightedCounts, WeightedMoments, weight_bits
from sfumato.models.images.coefficients import ImageEncoder, ImageLayout
from sfumato.models.images.gradients import n_features
from sfumato.models.mixtures.covariances import DiagonalCovariance, FullCovariance, SphericalCovariance, TiedCovariance
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.models.nets.flat import ImageVectors, RankVectors
from sfumato.models.sets import SetEncoder
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records.engine import Exact
from sfumato.records.sequences import STEPS
from sfumato.schema.accept import Criterion
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.open_schema import OpenKind
from sfumato.schema.schema import Schema
from sfumato.search.auroc import AurocTask, ScoreCounts
from sfumato.search.pair_scores import (
    CoarsePairCounts,
    MarginalCounts,
    MarginalLayout,
    StepPairCounts,
    WeightedPairCounts,
    pair_layout,
)


def image_schema(*shape: int) -> Schema:
    return Schema(columns={"x": Image(shape=shape, dtype="float64", upper=1.0), "y": Boolean()}, rows=100)


IMAGES = image_schema(4, 4)
Moments = TypeVar("Moments", bound=TableMoments)
POSE = np.array([0.5, -0.4, 0.3, -0.2, 0.1])


def table_rows(n: int, seed: int = 0):
    """Single coded records: random ones, and every corner of the domain."""
    rng = np.random.default_rng(seed)
    ages = [*rng.random(n), 0.0, 1.0, np.nan, np.nan]
    paid = [*rng.random(n), 1.0, 0.0, 0.0, 1.0]
    records = []
    for i, (age, amount) in enumerate(zip(ages, paid, strict=True)):
        for member in (0, 1):
            city = i % 4
            records.append(
                {
                    "age": np.array([age]),
                    "city": np.array([city], dtype=np.int32),
                    "paid": np.array([amount]),
                    "member": np.array([member], dtype=np.int32),
                }
            )
    return records


def image_rows(n: int, shape: tuple[int, ...] = (4, 4), seed: int = 0):
    """Single coded records: random ones, dim and sparse ones, and every corner of the domain, in both classes."""
    rng = np.random.default_rng(seed)
    pixels = [rng.random(shape) ** rng.uniform(0.2, 20) * rng.choice([1, 1, 0.02]) for _ in range(n)]
    constants = (1.0, 0.0, 0.5, 1e-3, 1e-45, -0.0, np.nan, np.inf, -np.inf, 1e300, -1e300)
    pixels += [np.full(shape, value) for value in constants]
    line, column = np.mgrid[: shape[0], : shape[1]]
    # halves, stripes and checkers and their opposites: clipped vectors at right angles, residuals of either sign
    half, stripes, checkers = line < shape[0] / 2, column % 2 == 0, (line + column) % 2 == 0
    left, across = column < shape[1] / 2, line % 2 == 0
    for lit in (half, left, line >= column, line + column < shape[0], stripes, across, checkers):
        whole = np.broadcast_to(lit.reshape(*lit.shape, *[1] * (len(shape) - 2)), shape).astype(np.float64)
        pixels += [whole, 1 - whole]
    for place in ((0, 0), (-1, -1), (0, -1), (-1, 0), (shape[0] // 2, shape[1] // 2)):
        for value in (1.0, 1e-3, 1e-30):
            single = np.zeros(shape)
            single[place] = value
            pixels.append(single)
    spoilt = np.ones(shape)
    spoilt[0, 0], spoilt[-1, -1] = np.nan, np.inf
    pixels.append(spoilt)
    return [{"x": image[None], "y": np.array([label], dtype=np.int32)} for image in pixels for label in (0, 1)]


BASKETS = SetEncoder("basket", ItemSet(n_items=12, max_length=4))


def coded_sets(*sets: tuple[int, ...]) -> CodedSets:
    offsets = np.cumsum([0, *map(len, sets)])
    return CodedSets(offsets, np.array([code for items in sets for code in sorted(items)], dtype=np.int32))


def set_rows(n: int, seed: int = 0):
    """Single sets: random ones, the empty one, and full ones that share no item."""
    rng = np.random.default_rng(seed)
    drawn = [tuple(rng.choice(12, rng.integers(0, 5), replace=False)) for _ in range(n)]
    return [{"basket": coded_sets(items)} for items in [*drawn, (), (0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (0,)]]


SETS_BESIDE = Schema(
    columns={
        "age": Integer(lower=0, upper=99),
        "paid": Integer(lower=0, upper=50),
        "ill": ItemSet(items=("a", "b", "c"), other="z", max_length=3),
        "member": Boolean(),
    },
    rows=100,
)


def rows_beside_sets(n: int, seed: int = 0):
    """Single records with sets of any number of items, in both classes: random ones, the empty set and full ones."""
    rng = np.random.default_rng(seed)
    drawn = [tuple(np.flatnonzero(rng.random(4) < rng.random())[:3]) for _ in range(n)]
    column = SETS_BESIDE.set_columns["ill"]
    return [
        {
            "age": np.array([age]),
            "paid": np.array([rng.random()]),
            "member": np.array([member], dtype=np.int32),
            **column.truth_values(coded_sets(items)),
        }
        for items in [*drawn, (), (0, 1, 2), (1, 2, 3), (3,)]
        for age in (rng.random(), 1.0)
        for member in (0, 1)
    ]


def _set_cases() -> list[StatisticCase]:
    pool, grid = rows_beside_sets(20), Grid.of(plain_schema(SETS_BESIDE), numeric_cells=8)
    return [
        StatisticCase("counts, sets beside columns", CellCounts(grid), pool),
        StatisticCase("moments, sets beside columns", moments_of(grid, 1.0), pool),
        StatisticCase("moments by class, sets beside columns", moments_of(grid, 1.0, "member", 0.25, 2.0), pool),
        StatisticCase("moments by an item, sets beside columns", moments_of(grid, 1.0, "ill: a", 0.25, 2.0), pool),
    ]


DATES = Schema.from_dict({
    "columns": {
        "begun": {"kind": "datetime", "lower": "2020-01-01", "upper": "2022-12-31"},
        "ended": {"kind": "datetime", "lower": "2020-01-01", "upper": "2022-12-31", "nullable": True},
        "member": {"kind": "boolean"},
    },
})  # fmt: skip


def rows_of_dates(n: int, seed: int = 0):
    """Single records with two dates: any, one missing, the ends of the bounds, with their distance beside them."""
    rng = np.random.default_rng(seed)
    pairs = [*rng.random((n, 2)), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.3, np.nan), (1.0, np.nan)]
    return [
        plain_records(
            DATES, {"begun": np.array([a]), "ended": np.array([b]), "member": np.array([member], dtype=np.int32)}
        )
        for a, b in pairs
        for member in (0, 1)
    ]


def _date_cases() -> list[StatisticCase]:
    pool, grid = rows_of_dates(20), Grid.of(plain_schema(DATES), numeric_cells=8, narrow=True)
    return [
        StatisticCase("counts, two dates", CellCounts(grid), pool),
        StatisticCase("moments, two dates", moments_of(grid, 1.0), pool),
        StatisticCase("moments by class, two dates", moments_of(grid, 1.0, "member", 0.25), pool),
        StatisticCase("moments by quarters of a date", moments_of(grid, 1.0, "begun", 0.25), pool),
        StatisticCase("moments by quarters of a date, one missing", moments_of(grid, 1.0, "ended", 0.25), pool),
    ]


def feature_rows(n: int, dimension: int = 4, seed: int = 0):
    """Single vectors of a map to the unit ball: random ones, opposite pairs, too long ones, and what is no number."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((n, dimension))
    axes = np.eye(dimension)
    odd = [np.zeros(dimension), np.full(dimension, np.nan), np.full(dimension, 1e300), np.full(dimension, np.inf)]
    return [{"z": vector[None]} for vector in [*drawn, *axes, *-axes, *(1e-3 * axes), *odd]]


def apart_rows():
    """Vectors of one part, opposite but for the entry that says the part, in different bins above the clip norm."""
    return [{"z": length * np.array([[1e-6, sign, 0.0, 0.0]])} for length in (0.4, 0.9, 1.5, 5.0) for sign in (1, -1)]


def weighed_rows(pool, seed: int = 0):
    """Single records with weights ÷ their bound: the largest for each, and then odd ones."""
    rng = np.random.default_rng(seed)
    few = [0.0, 2.0**-13, 1 - 2.0**-13, 0.5, 1 / 3, np.nan, -3.0, 7.0, np.inf, -np.inf, 2.0**-12, rng.random()]
    odd = [{**row, WEIGHT: np.array([few[i % len(few)]])} for i, row in enumerate(pool)]
    return [*({**row, WEIGHT: np.ones(1)} for row in pool), *odd]


def _weighed_cases() -> list[StatisticCase]:
    """What estimators sum, of records that count by weights."""
    pool, features = weighed_rows(vector_rows(30)), weighed_rows(feature_rows(60))
    full = FullCovariance()
    bits = product_bits(1_000, WEIGHED_BITS)
    one = EmMoments(vectors_of, unit_mixture(1, 3), (0.3, 1.0, 0.5), bits=bits)
    moments = EmMoments(vectors_of, crossed_mixture(full), default_weights(full, 3), bits=bits)
    return [
        StatisticCase("weighed mixture moments", Weighed(moments), pool),
        StatisticCase("weighed mixture moments, one component", Weighed(one), pool),
        StatisticCase("weighed pooled squares", Weighed(PooledSquares(vectors_of, 3, 0.5, bits=bits)), pool),
        StatisticCase("weighed records by cell", Weighed(GridCounts(vectors_of, CentreGrid(3, 4))), pool),
        StatisticCase("weighed feature sums", Weighed(cluster_sums(3)), features),
        StatisticCase("weighed feature sums, one cluster", Weighed(cluster_sums(1)), features),
        StatisticCase("weighed feature sums, recentred", Weighed(recentred_sums(3)), features),
    ]


def first_item(vectors):
    """Clusters of sets: by the first item, of none the first."""
    return vectors.argmax(axis=1) % 3


def cluster_sums(n_clusters: int, dimension: int = 4) -> ClusterSums:
    centres = np.random.default_rng(5).standard_normal((n_clusters, dimension)) / 4
    return ClusterSums(operator.itemgetter("z"), centres, ClusterWeights.of(dimension))


def recentred_sums(n_clusters: int, dimension: int = 4) -> ClusterSums:
    centres = cluster_sums(n_clusters, dimension).centres
    return ClusterSums(operator.itemgetter("z"), centres, ClusterWeights.of(dimension), centres, 0.6)


class NormsAndSum:
    """The joint statistic of `noisy_norms_and_sum`, with vectors for gradients and their signs for parts."""

    name = "norms and clipped sum"
    edges = np.array([0.5, 1.0, 2.0])
    clip_norms = np.array([0.3, 0.7])
    step = None  # gradients are floats

    def __init__(self, share: float) -> None:
        self.share = share
        self.norm_bound, self.replace_bound = 1.0, joint_exact(np.zeros(1), np.zeros(1), share).replace_distance

    def zero(self):
        return np.zeros(2 * 3 + 2 * 4)

    def add(self, total, rows):
        counts, sums = np.zeros((2, 3)), np.zeros((2, 4))
        parts = (rows["z"][:, 0] > 0).astype(int)
        with np.errstate(all="ignore"):
            norms = np.linalg.norm(rows["z"], axis=1)
        np.add.at(counts, (parts, norm_bins(norms, self.edges)), 1)
        for part, clip_norm in enumerate(self.clip_norms):
            sums[part] += clip_rows(rows["z"][parts == part], clip_norm).sum(axis=0) / clip_norm
        total += joint_exact(counts, sums.ravel(), self.share).open_in_mechanism()


STEPS_AT_MOST = 5


def step_rows(n: int, seed: int = 0):
    """Single units with their steps: none, one, many; all alike, all apart, and what lies beyond the last one."""
    rng = np.random.default_rng(seed)
    pool = table_rows(n, seed)

    def unit(places, steps: int):
        places = np.resize(places, STEPS_AT_MOST)
        rows = {name: np.array([[pool[i][name][0] for i in places]]) for name in pool[0]}
        return {**rows, STEPS: np.array([steps])}

    drawn = [unit(rng.integers(0, len(pool), STEPS_AT_MOST), steps) for _ in range(n) for steps in (5, 2, 1, 0)]
    alike = [unit([i], steps) for i in range(0, len(pool), 7) for steps in (5, 3, 2, 1)]
    return [*drawn, *alike, *(unit([i], 5) for i in range(len(pool) - 8, len(pool)))]


def step_pairs(grid: Grid) -> StepCounts:
    """Counts of steps, those of the first two columns of labels together, and without the last column."""
    first, second, *_ = (j for j, column in enumerate(grid.columns) if not column.numeric)
    last = len(grid.columns) - 1
    return StepCounts(grid, pairs=((first, second),), known={last: np.full(grid.columns[last].n_cells, 0.1)})


def step_nested(grid: Grid) -> StepCounts:
    """Counts of steps, the first two columns of labels together, where the first is a label and the one before it."""
    first, second, *_ = (j for j, column in enumerate(grid.columns) if not column.numeric)
    columns = list(grid.columns)
    columns[first] = ColumnGrid(columns[first].name, LabelPair.of(3), 13)
    assert grid.columns[first].n_cells <= 13
    return StepCounts(Grid(tuple(columns)), pairs=((first, second),))


def step_moments(clip_norm: float, room: float) -> StepMoments:
    """Moments of steps, with vectors as `table_moments` has them, as they count where so many count whole."""
    table, counting = table_moments(clip_norm), StepCounts(table_grid()).with_room(room)
    return StepMoments(table.grid, table.vectors, clip_norm, bits=step_bits(1_000), counting=counting)


def weighted_steps(pool, seed: int = 0):
    """Units of steps with weights: the largest for each, and then odd ones."""
    rng, found = np.random.default_rng(seed), []
    few = [0.0, 2.0**-21, 1 - 2.0**-21, 0.5, 1 / 3, np.nan, -3.0, 7.0, np.inf, -np.inf, rng.random()]
    for i, unit in enumerate(pool):
        shape = next(column.shape for name, column in unit.items() if name != STEPS)
        found += [{**unit, "w": np.full(shape, weight)} for weight in (1.0, few[i % len(few)])]
    return found


def _weighted_step_cases(grid, pool) -> list[StatisticCase]:
    units = weighted_steps(pool)

    def moments(clip_norm: float, room: float) -> StepMoments:
        plain = step_moments(clip_norm, room)
        return replace(plain, counting=replace(plain.counting, column="w"))

    return [
        StatisticCase("weighted counts of steps", StepCounts(grid, column="w").with_room(9), units),
        StatisticCase("weighted steps as one", StepCounts(grid, column="w").with_room(1), units),
        StatisticCase("weighted pairs of steps", StepPairCounts(pair_layout(TABLE, None), column="w"), units),
        StatisticCase("weighted moments of steps", moments(1.0, 9), units),
        StatisticCase("weighted moments, units as one", moments(0.6, 1), units),
        StatisticCase("weighted moments of steps, loose", moments(60.0, 25), units, attained=0.0),
    ]


def weighted_rows(n: int, seed: int = 0):
    """Single records with weights: the largest, none, tiny ones, random ones, and what no code should be."""
    rng = np.random.default_rng(seed)
    pool = table_rows(n, seed)
    few = [0.0, 1.0, 2.0**-21, 1 - 2.0**-21, 0.5, np.nan, -3.0, 7.0, np.inf, -np.inf]
    weights = [few[i % len(few)] if i % 3 == 0 else rng.random() for i in range(len(pool))]
    whole = [{**row, "w": np.ones(1)} for row in pool]
    return [*whole, *({**row, "w": np.array([weight])} for row, weight in zip(pool, weights, strict=True))]


def weighted_moments(clip_norm: float, target: str | None = None, **how: float) -> WeightedMoments:
    """Weighted moments, with vectors as `table_moments` has them."""
    table = table_moments(clip_norm, target, **how)
    return WeightedMoments(table.grid, table.vectors, clip_norm, table.leading, bits=weight_bits(1_000), column="w")


def _weighted_cases() -> list[StatisticCase]:
    pool = weighted_rows(40)
    return [
        StatisticCase("weighted counts", WeightedCounts(table_grid(), column="w"), pool),
        StatisticCase("weighted counts of pairs", WeightedPairCounts(pair_layout(TABLE, "member"), column="w"), pool),
        StatisticCase("weighted moments", weighted_moments(1.0), pool),
        StatisticCase("weighted moments, tight", weighted_moments(0.5), pool),
        StatisticCase("weighted moments, a constant", with_a_constant(weighted_moments(1.0)), pool),
        StatisticCase("weighted moments, by class", weighted_moments(1.0, "member", part=0.25), pool),
        StatisticCase("weighted moments, by class alone", weighted_moments(1.0, "member", part=1.0), pool),
        StatisticCase(
            "weighted moments, loose", weighted_moments(40.0, "member", part=0.25, length=0.05), pool, attained=0.0
        ),
    ]


def _question_cases() -> list[StatisticCase]:
    pool = table_rows(60)
    weighted = question_sums(scale=40.0, column="w")
    return [
        StatisticCase("named questions", question_sums(scale=40.0), pool),
        StatisticCase("named questions, loose", question_sums(scale=0.01), pool, attained=0.0),
        StatisticCase("named questions, weighted", weighted, weighted_rows(40)),
        StatisticCase("named questions of linked rows", unit_sums(60.0), unit_pool(30), attained=0.8),
        StatisticCase("named questions of linked rows, loose", unit_sums(0.01), unit_pool(30), attained=0.0),
    ]


def _step_cases() -> list[StatisticCase]:
    grid, pool = table_grid(), step_rows(12)
    return [
        StatisticCase("counts of steps, each unit as one", StepCounts(grid).with_room(1), pool),
        StatisticCase("counts of steps, three alike whole", StepCounts(grid).with_room(9), pool),
        StatisticCase("counts of steps, all whole", StepCounts(grid).with_room(STEPS_AT_MOST**2), pool),
        StatisticCase("counts of steps and of pairs", step_pairs(grid).with_room(4), pool),
        StatisticCase("counts of steps and of pairs of labels", step_nested(grid).with_room(4), pool),
        StatisticCase("moments of steps", step_moments(1.0, 9), pool),
        StatisticCase("moments of steps, each unit as one", step_moments(0.6, 1), pool),
        StatisticCase("moments of steps, a constant", with_a_constant(step_moments(1.0, 9)), pool),
        StatisticCase("moments of steps, loose", step_moments(60.0, 25), pool, attained=0.0),
        StatisticCase("counts of pairs of steps", StepPairCounts(pair_layout(TABLE, None)), pool),
        *_weighted_step_cases(grid, pool),
    ]


def table_grid() -> Grid:
    return Grid.of(TABLE, numeric_cells=8)


def class_cell_counts(grid: Grid, target: str = "member") -> QueryCounts:
    """Counts of all columns' cells but the target's, by its cells."""
    cells = {column.name: Cells.of(column) for column in grid.columns}
    by = cells.pop(target)
    return QueryCounts(MarginalQuery(tuple((own,) for own in cells.values()), (by,)))


def pair_table_counts(grid: Grid) -> QueryCounts:
    """Tables of pairs of columns, in groups of levels and of cells: a column may be in several."""
    grouped = [Cells.of(c, np.minimum(np.arange(c.n_cells), 2)) for c in grid.columns]
    return QueryCounts(MarginalQuery(tuple(itertools.combinations(grouped, 2))))


def released_columns(grid: Grid, seed: int = 1) -> list[ColumnShares]:
    """Shares and features as a fit would release them, of uneven shares, so that rare cells have long vectors."""
    rng, columns = np.random.default_rng(seed), []
    for column in grid.columns:
        shares, numbers = rng.dirichlet(np.full(column.n_cells, 0.3)), column.n_cells - column.kind.nullable
        features = level_features(shares, hidden=column.n_cells > column.shown)
        if column.numeric:
            features = number_features(shares, column.kind.nullable, Waves(6, 0.5))
        ordered = numbers if column.numeric else 0
        columns.append(
            ColumnShares(
                shares,
                public_runs(column),
                np.arange(column.n_cells),
                features,
                share_std=0.0,
                ordered=ordered,
                hidden=column.n_cells > column.shown,
            )
        )
    return columns


def moments_of(
    grid: Grid, clip_norm: float, target: str | None = None, part: float = 0.1, length: float = 1.0
) -> TableMoments:
    """Moments of features as a fit would release them, and of leading ones by class of a target, times `length`."""
    columns, names = released_columns(grid), [column.name for column in grid.columns]
    leading = Leading.of(columns, None if target is None else names.index(target), clip_norm)
    assert (leading is None) == (target is None)
    if leading is not None:
        leading = replace(leading, part=part, values=tuple(length * own for own in leading.values))
    return TableMoments(grid, tuple(column.vectors() for column in columns), clip_norm, leading)


def table_moments(clip_norm: float, target: str | None = None, **how: float) -> TableMoments:
    return moments_of(table_grid(), clip_norm, target, **how)


def moments_with_labels(clip_norm: float, target: str, length: float) -> TableMoments:
    """Moments by class of numbers and of labels, as without noise; what leads is `length` times as long."""
    plain, columns = table_moments(clip_norm), released_columns(table_grid())
    place = [column.name for column in plain.grid.columns].index(target)
    leading = Leading.of(columns, place, clip_norm, noisy=False)
    assert leading is not None
    return replace(plain, leading=replace(leading, part=0.25, values=tuple(length * own for own in leading.values)))


def with_a_constant(moments: Moments, entry: float = 0.7) -> Moments:
    """The same with one entry more, which is the same for all rows."""
    return replace(moments, vectors=(*moments.vectors, np.full((1, 1), entry)))


def encoder_of(*shape: int, pose: bool) -> ImageEncoder:
    return ImageEncoder(ImageLayout.of(image_schema(*shape)), POSE if pose else None)


def teacher_case(*shape: int, pose: bool) -> StatisticCase:
    """A classifier's gradients: features that are mostly clipped, weights that lean to one class."""
    encoder = encoder_of(*shape, pose=pose)
    f = n_features(encoder)
    standardised = Standardised(encoder, np.full(f, 0.1), 3 * np.eye(f))
    weights = 0.1 * np.random.default_rng(4).standard_normal((f + 1, 2))
    name = f"teacher gradient, {'posed' if pose else 'not posed'}"
    return StatisticCase(name, TeacherGradient(standardised, weights), image_rows(20, shape))


def _image_cases() -> list[StatisticCase]:
    """The four statistics of images, on pictures with and without a pose, low and high frequencies, and channels.

    Clip norms are small, so that nearly every record is clipped: that is where bounds are reached.
    """
    rng = np.random.default_rng(2)
    cases = []
    for name, shape, pose in (
        ("tiny", (4, 4), False),
        ("8 × 8", (8, 8), False),
        ("posed", (8, 8), True),
        ("posed, high frequencies", (12, 12), True),
        ("posed, in colour", (8, 8, 3), True),
    ):
        encoder = encoder_of(*shape, pose=pose)
        pool = image_rows(20, shape)
        size = encoder.layout.dimension + encoder.n_columns
        # far on either side of what records are, as means of few records with much noise are
        means = np.stack([np.zeros(size), rng.standard_normal(size)])
        means[1, encoder.layout.dimension - 1] = 500  # of the highest frequency
        axes = np.linalg.qr(rng.standard_normal((encoder.n_low, 5)))[0]
        cases += [
            StatisticCase(f"image profiles, {name}", Profiles(encoder.layout), pool),
            # vectors of one class are 2C apart only if they are opposite, and no image is the opposite of another
            StatisticCase(f"image sums, {name}", ClassSums(encoder, 0.4), pool, attained=0.7),
            StatisticCase(f"image pooled moment, {name}", PooledMoment(encoder, means, 0.4), pool),
            StatisticCase(f"image class moments, {name}", ClassMoments(encoder, means, axes, 0.4), pool),
        ]
    return cases


def vectors_of(rows):
    return rows["z"]


def vector_rows(n: int, q: int = 3, seed: int = 0):
    """Single vectors: random directions and lengths, axes and their opposites, worst pairs, and what is no vector."""
    rng = np.random.default_rng(seed)
    vectors = [*rng.standard_normal((n, q)), *(0.2 * rng.standard_normal((n, q))), *np.eye(q), *-np.eye(q)]
    # x = (α, β), y = (−β, −α): the inner product −2αβ runs over all cosines that a pair of weights may make the worst
    for angle in np.linspace(0, np.pi / 4, 12):
        a, b = np.cos(angle), np.sin(angle)
        vectors += [np.r_[a, b, np.zeros(q - 2)], np.r_[-b, -a, np.zeros(q - 2)]]
    vectors += [np.full(q, value) for value in (0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300)]
    vectors += [np.r_[np.nan, np.ones(q - 1)], np.r_[np.ones(q - 1), np.inf], np.r_[1e308, -1e308, np.zeros(q - 2)]]
    return [{"z": vector[None]} for vector in vectors]


def crossed_mixture(form) -> GaussianMixture:
    """Components through the origin: the first owns almost all of the ball, the second the ends of the third axis."""
    variances = np.array([[1.0, 1.0, 0.001], [0.001, 0.001, 1.0]])
    means = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.5]])
    weights = np.array([0.5, 0.5])
    if isinstance(form, FullCovariance):
        return GaussianMixture(weights, means, variances[:, :, None] * np.eye(3), form)
    if isinstance(form, DiagonalCovariance):
        return GaussianMixture(weights, means, variances, form)
    means = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    covariances = np.array([0.1, 0.003]) if isinstance(form, SphericalCovariance) else np.diag([0.1, 0.1, 0.01])
    return GaussianMixture(weights, means, covariances, form)


def _em_cases() -> list[StatisticCase]:
    """Moments of mixtures, with weights for which each of the possible worst pairs is the worst one."""
    pool = vector_rows(30)
    full, diagonal = FullCovariance(), DiagonalCovariance()
    settings = [("full, default", full, default_weights(full, 3))]
    for weights in ((1.0, 1.0, 1.0), (0.2, 1.0, 1.0), (0.3, 1.0, 0.5), (1.0, 0.5, 2.0)):
        settings += [(f"full, {weights}", full, weights), (f"diagonal, {weights}", diagonal, weights)]
    settings += [("spherical", SphericalCovariance(), (1.0, 1.0, 1.0)), ("tied", TiedCovariance(), (0.5, 1.0, 0.0))]
    cases = [
        StatisticCase(f"mixture moments, {name}", EmMoments(vectors_of, crossed_mixture(form), weights), pool)
        for name, form, weights in settings
    ]
    centres = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # opposite vectors of the plane share the first
    cases += [
        StatisticCase(f"cluster sums, {w0, w1}", ClusterSums(vectors_of, centres, ClusterWeights(w0, w1)), pool)
        for w0, w1 in ((1.0, 1.0), (2.0, 1.0), (0.3, 1.0))
    ]
    return [
        *cases,
        StatisticCase("records by cell", GridCounts(vectors_of, CentreGrid(3, 4)), pool),
        StatisticCase("pooled squares", PooledSquares(vectors_of, 3), pool),
        StatisticCase("pooled squares, constant", PooledSquares(vectors_of, 3, 0.5), [*pool, *vector_rows(1, seed=1)]),
    ]


def _flat_cases() -> list[StatisticCase]:
    """Sums and second moments of flat vectors, on images whose clip norms are far below and on rows of a table."""
    images = ImageVectors(ImageLayout.of(image_schema(4, 4)))
    grid = Grid.of(TABLE, numeric_cells=8)
    rng = np.random.default_rng(5)
    rows = RankVectors(grid, tuple(rng.dirichlet(np.full(c.n_cells, 0.3)) for c in grid.columns))
    pool, table = image_rows(20), table_rows(60)
    axes = LatentAxes(np.full(rows.dimension, 0.3), np.linalg.qr(rng.standard_normal((rows.dimension, 3)))[0], 0.2)
    start = unit_mixture(2, 3)

    def classes(records):
        return records["member"].astype(np.intp)

    return [
        StatisticCase("vector sum, images", VectorSum(images, 0.8), pool),
        StatisticCase("vector sum, rows", VectorSum(rows, 0.8), table, attained=0.7),
        StatisticCase("centred moment, images", CentredSecondMoment(images, np.full(18, 0.5), 0.4), pool),
        StatisticCase(
            "centred moment, rows", CentredSecondMoment(rows, np.full(rows.dimension, 0.4), 0.4), table, attained=0.7
        ),
        StatisticCase(
            "latents by class", ClassLatents(partial(axes.read, rows), start, (0.3, 0.5, 0.8), classes=classes), table
        ),
    ]


class DenseTally:
    """Counts of open columns with the words and numbers of a public list: what discovery adds up, as an array."""

    def __init__(self, counts: DomainCounts, words: dict[str, tuple[str, ...]]) -> None:
        self.counts, self.words = counts, words
        self.step = 1.0
        self.name, self.norm_bound, self.replace_bound = counts.name, counts.norm_bound, counts.replace_bound

    def zero(self):
        return np.zeros(self.counts.zero().listed.size + sum(map(len, self.words.values())))

    def add(self, total, rows):
        tally = self.counts.zero()
        self.counts.add(tally, rows)
        of = {name: dict(words) for name, words in tally.words.items()}
        for name, numbers in tally.numbers.items():
            of[name] = of.get(name, {}) | dict(zip(numbers, numbers.values(), strict=True))
        assert of.keys() == self.words.keys()
        assert all(set(of[name]) <= set(words) for name, words in self.words.items())
        total += np.concatenate(
            [tally.listed, [of[name].get(word, 0) for name, words in self.words.items() for word in words]]
        )


def open_rows(n: int, seed: int = 0):
    """Single records before their schema is known: numbers of every size, words, and what is missing or no number."""
    rng = np.random.default_rng(seed)
    ages = [0.0, -0.0, 1e-300, 1e300, -1e300, 2.0**53, np.nan, np.inf, -np.inf, *rng.standard_cauchy(n) * 100]
    words = ["a", " a", "b", "", "  ", None]
    codes = ["1", "2.5", "-3", "1e400", "nan", "x", None, "+7", "0x1", "007", "20210716", "1e16", "<5", "V57"]
    dates = ["2021-07-16", "5-Jan-2021", "2021-07-16T08:00:00+02:00", "2022-W05", "08:15", "0000-00-00", "03/04/2021"]
    shares = [1 / 3, -0.0, 0.0, 1.5, np.nan, np.inf, 1e300]
    years = [1.0, 1707.0, 1708.0, 2000.0, 2292.0, 9999.0, np.nan]
    return [
        {
            "age": np.array([age]),
            "city": np.array([words[i % len(words)]], dtype=object),
            "code": np.array([codes[i % len(codes)]], dtype=object),
            "share": np.array([shares[i % len(shares)]]),
            "member": np.array([["yes", None][i % 2]], dtype=object),
            "born": np.array([years[i % len(years)]]),
            "seen": np.array([dates[i % len(dates)]], dtype=object),
        }
        for i, age in enumerate(ages)
    ]


def with_words(rows):
    """Records with words beside two columns of numbers: where there is no number, one that is missing, or a word."""
    words, more = [None, "<5", " unknown", ""], []
    for i, row in enumerate(rows):
        cells = {name: words[(i + k) % len(words)] for k, name in enumerate(("age", "share"))}
        none = {name: np.array([np.nan]) for name, word in cells.items() if word}
        more.append(row | none | {f"{name}'": np.array([word], dtype=object) for name, word in cells.items()})
    return more


OPEN_KINDS: dict[str, OpenKind] = {
    "age": "integer",
    "city": "categorical",
    "share": "continuous",
    "member": "boolean",
    "born": "datetime",
}


def _discovery_cases() -> list[StatisticCase]:
    counts, counted = DomainCounts(OPEN_KINDS), DomainCounts(OPEN_KINDS, with_records=True)
    single = DomainCounts(OPEN_KINDS, single=frozenset({"share"}))
    numbers = ("0.0", repr(1 / 3), "1.5", "1e+300")
    beside = DomainCounts(OPEN_KINDS, single=frozenset({"share"}), beside={"age": "age'", "share": "share'"})
    listed = {"city": ("a", "b"), "age": ("<5", "unknown"), "share": ("<5", "unknown", *numbers)}
    return [
        # a word is one 1 in the place of a missing cell
        StatisticCase("open columns, words beside numbers", DenseTally(beside, listed), with_words(open_rows(20))),
        # of a number that is missing there is one 1, and not two
        StatisticCase(
            "open columns, single numbers", DenseTally(single, {"city": ("a", "b"), "share": numbers}), open_rows(20)
        ),
        # the count is the same for all records: √2 of the norm overstates
        StatisticCase(
            "open columns, records counted", DenseTally(counted, {"city": ("a", "b")}), open_rows(20), attained=0.9
        ),
        StatisticCase("cells that parse", KindCounts(("city", "code", "seen")), open_rows(20)),
        StatisticCase("open columns", DenseTally(counts, {"city": ("a", "b")}), open_rows(20)),
    ]


def score_counts() -> ScoreCounts:
    """Counts by the scores of a classifier that made-up samples taught."""
    rng = np.random.default_rng(5)
    grid = Grid.of(TABLE, numeric_cells=16)
    cells = np.stack([rng.integers(0, column.n_cells, 400) for column in grid.columns], axis=1)
    task = AurocTask.of(TABLE, Criterion(kind="auroc", threshold=0.8, target="member"))
    return ScoreCounts.taught_by(task, [grid.rows(cells, rng)])


def _cases() -> dict[str, StatisticCase]:
    grid = table_grid()
    table = table_rows(60)
    cases = [
        # under replace-one the number of records is public: the bound of 1 only overstates
        StatisticCase("row count", RowCount(), table, attained=0.0),
        StatisticCase("class cell counts", class_cell_counts(grid), table),
        StatisticCase("cell counts", cell_counts(grid), table),
        StatisticCase("tables of pairs", pair_table_counts(grid), table),
        StatisticCase("counts of pairs of cells", CoarsePairCounts(pair_layout(TABLE, "member")), table),
        StatisticCase("counts of cells of columns", MarginalCounts(MarginalLayout.of(TABLE, (), ways=1)), table),
        StatisticCase("counts of cells of two", MarginalCounts(MarginalLayout.of(TABLE, (), ways=2)), table),
        StatisticCase("counts of scores by class", score_counts(), table),
        StatisticCase("counts of runs, cells and values", CellCounts(grid), table),
        StatisticCase(
            "counts of runs by areas, cells and values", CellCounts(grid, list(TABLE.columns).index("city")), table
        ),
        StatisticCase("second moments", table_moments(1.0), table),
        StatisticCase("second moments, tight", table_moments(0.5), table),
        StatisticCase("second moments, loose", table_moments(40.0), table, attained=0.0),
        StatisticCase("second moments, a constant", with_a_constant(table_moments(1.0)), table),
        # the constant alone is longer than C: every record is clipped
        StatisticCase("second moments, a constant, tight", with_a_constant(table_moments(0.5)), table),
        StatisticCase("second moments, a constant, loose", with_a_constant(table_moments(40.0)), table, attained=0.0),
        StatisticCase("second moments, by class", table_moments(1.0, "member"), table),
        StatisticCase("second moments, by several classes", table_moments(1.0, "city", part=0.25, length=2.0), table),
        StatisticCase("second moments, by class alone", table_moments(1.0, "member", part=1.0), table),
        StatisticCase("second moments, by class, all long", table_moments(0.5, "city", part=0.25, length=4.0), table),
        StatisticCase("second moments, by class, labels too", moments_with_labels(1.0, "member", 3.0), table),
        StatisticCase(
            "second moments, by class, loose", table_moments(40.0, "member", length=0.05), table, attained=0.0
        ),
        StatisticCase("item counts", ItemCounts(BASKETS), set_rows(30)),
        StatisticCase("counts of pairs", ItemPairCounts(BASKETS, np.array([0, 1, 3]), 2), set_rows(30)),
        StatisticCase("items in all sets", TotalLength(BASKETS), set_rows(30)),
        StatisticCase("profiles of clusters", ClusterProfiles(BASKETS, first_item, 3, 2.0), set_rows(30)),
        StatisticCase("profiles of clusters, clipped", ClusterProfiles(BASKETS, first_item, 3, 1.0), set_rows(30)),
        *(
            StatisticCase(f"norms and clipped sum, {share}", NormsAndSum(share), [*feature_rows(60), *apart_rows()])
            for share in (0.02, 0.5)
        ),
        StatisticCase("feature sums", cluster_sums(3), feature_rows(60)),
        StatisticCase("feature sums, one cluster", cluster_sums(1), feature_rows(60)),
        StatisticCase("feature sums, recentred", recentred_sums(3), feature_rows(60)),
        StatisticCase("feature sums, one cluster, recentred", recentred_sums(1), feature_rows(60)),
        *_set_cases(),
        *_date_cases(),
        *_step_cases(),
        *_weighted_cases(),
        *_question_cases(),
        *_discovery_cases(),
        *_image_cases(),
        *_flat_cases(),
        *_em_cases(),
        *_weighed_cases(),
        teacher_case(8, 8, pose=True),
        teacher_case(8, 8, 3, pose=False),
    ]
    return {case.name: case for case in cases}


STATISTICS = _cases()


def _of_holders(*, symmetric: bool = False, holders: int = 3) -> Callable[..., Noisy]:
    """One noisy sum of holders of whom the first has all records, with as much noise together as one has alone."""

    def run(exact, *, stage, ledger, noise):
        if noise.silent:
            return (noisy_second_moment if symmetric else noisy_sum)(exact, stage=stage, ledger=ledger, noise=noise)
        own = {name: getattr(exact, name) for name in ("name", "norm_bound", "replace_distance", "step")}
        nobody = Exact(np.zeros_like(exact.whole_in_mechanism()), **own)
        alone = Plan([replace(ledger.plan[stage], count=1)])
        part, shares = noise_part(holders, 0), []
        for some in (exact, *[nobody] * (holders - 1)):
            account = ledger if some is exact else Ledger(alone, None)
            share = noise_share(some, stage=stage, ledger=account, noise=noise, part=part, symmetric=symmetric)
            shares.append(share)
        total, account = np.sum(shares, axis=0), Ledger(alone, None)
        return sum_of_shares(nobody, total, stage=stage, ledger=account, noise_factor=1.0, symmetric=symmetric)

    return run


MECHANISMS = {
    case.name: case
    for case in (
        MechanismCase("noise_share, counts", _of_holders(), STATISTICS["class cell counts"]),
        MechanismCase("noise_share", _of_holders(), STATISTICS["counts of runs, cells and values"]),
        MechanismCase(
            "noise_share, second moments", _of_holders(symmetric=True), STATISTICS["second moments"], symmetric=True
        ),
        MechanismCase("noisy_count", noisy_count, STATISTICS["row count"]),
        MechanismCase("noisy_histogram", noisy_histogram, STATISTICS["class cell counts"]),
        MechanismCase("noisy_histogram, cells that parse", noisy_histogram, STATISTICS["cells that parse"]),
        MechanismCase("noisy_histogram, items", noisy_histogram, STATISTICS["item counts"]),
        MechanismCase("noisy_sum, profiles of clusters", noisy_sum, STATISTICS["profiles of clusters"]),
        MechanismCase("noisy_sum, norms and clipped sum", noisy_sum, STATISTICS["norms and clipped sum, 0.5"]),
        MechanismCase("noisy_sum, clusters", noisy_sum, STATISTICS["feature sums"]),
        MechanismCase("noisy_sum, clusters recentred", noisy_sum, STATISTICS["feature sums, recentred"]),
        MechanismCase("noisy_sum", noisy_sum, STATISTICS["image sums, posed"]),
        MechanismCase("noisy_sum, latents by class", noisy_sum, STATISTICS["latents by class"]),
        MechanismCase("noisy_sum, vectors", noisy_sum, STATISTICS["vector sum, images"]),
        MechanismCase(
            "noisy_second_moment, vectors", noisy_second_moment, STATISTICS["centred moment, images"], symmetric=True
        ),
        MechanismCase("noisy_sum, teacher gradient", noisy_sum, STATISTICS["teacher gradient, posed"]),
        MechanismCase("noisy_sum, profiles", noisy_sum, STATISTICS["image profiles, posed"]),
        MechanismCase("noisy_sum, mixture moments", noisy_sum, STATISTICS["mixture moments, full, default"]),
        MechanismCase("noisy_sum, cluster sums", noisy_sum, STATISTICS["cluster sums, (2.0, 1.0)"]),
        MechanismCase("noisy_second_moment, pooled", noisy_second_moment, STATISTICS["pooled squares"], symmetric=True),
        MechanismCase("noisy_sum, weighed mixture moments", noisy_sum, STATISTICS["weighed mixture moments"]),
        MechanismCase("noisy_sum, weighed clusters", noisy_sum, STATISTICS["weighed feature sums"]),
        MechanismCase("noisy_histogram, weighed cells", noisy_histogram, STATISTICS["weighed records by cell"]),
        MechanismCase(
            "noisy_second_moment, weighed", noisy_second_moment, STATISTICS["weighed pooled squares"], symmetric=True
        ),
        MechanismCase(
            "noisy_histogram, runs, cells and values", noisy_histogram, STATISTICS["counts of runs, cells and values"]
        ),
        MechanismCase("noisy_second_moment", noisy_second_moment, STATISTICS["second moments"], symmetric=True),
        MechanismCase("noisy_sum, named questions", noisy_sum, STATISTICS["named questions"]),
        MechanismCase("noisy_sum, of linked rows", noisy_sum, STATISTICS["named questions of linked rows"]),
        MechanismCase("noisy_histogram, weighted", noisy_histogram, STATISTICS["weighted counts"]),
        MechanismCase(
            "noisy_second_moment, weighted",
            noisy_second_moment,
            STATISTICS["weighted moments, by class"],
            symmetric=True,
        ),
        MechanismCase("noisy_histogram, steps", noisy_histogram, STATISTICS["counts of steps, three alike whole"]),
        MechanismCase(
            "noisy_second_moment, steps", noisy_second_moment, STATISTICS["moments of steps"], symmetric=True
        ),
        MechanismCase(
            "noisy_second_moment, by quarters",
            noisy_second_moment,
            STATISTICS["moments by quarters of a date, one missing"],
            symmetric=True,
        ),
        MechanismCase(
            "noisy_second_moment, by class",
            noisy_second_moment,
            STATISTICS["second moments, by class"],
            symmetric=True,
        ),
        MechanismCase(
            "noisy_second_moment, images",
            noisy_second_moment,
            STATISTICS["image pooled moment, posed, high frequencies"],
            symmetric=True,
        ),
        MechanismCase(
            "noisy_second_moment, images by class",
            noisy_second_moment,
            STATISTICS["image class moments, posed"],
            symmetric=True,
        ),
    )
}
