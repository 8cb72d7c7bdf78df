"""The scores that every fit of a search gets: counts of pairs of cells of rows, or of units and their steps.

    rows           score           pairs of columns of a row
    linked rows    score: units    pairs of columns of a unit: constants, number of rows, first row
                   score: steps    pairs of columns of a step: a row, the one before, constants, numbers; each unit's
                                   steps share one bound, whatever their number

Each is one Gaussian release, made once. Which there are, and their sizes, follow from the schema alone.

Whatever is compared with the same noisy counts shares their noise. With shares a of the records, ã = a + ξ as released
and s, t of two samples, the difference of squared distances is

    ‖ã − s‖² − ‖ã − t‖² = ‖a − s‖² − ‖a − t‖² − 2⟨ξ, s − t⟩

so ‖ξ‖², which is most of either distance's noise, cancels. Proof: docs/proofs/tune.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.purposes import Facts
from sfumato.lenses.chain import PlainRows, plain_records, plain_schema, shaped
from sfumato.lenses.lens import Sampler, Units, UnitSampler
from sfumato.lenses.weights import WEIGHT_BITS, whole_weights
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.statistics import Counts
from sfumato.privacy.plan import Stage, multiplier_for_share
from sfumato.records.engine import Records, Rows
from sfumato.records.linked import LinkedData
from sfumato.records.sequences import (
    FINER_BITS,
    UNIT_BITS,
    Sequences,
    as_one,
    flattened,
    step_records,
    unit_records,
    weighted_steps,
)
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.schema import Schema

PAIR_CELLS = 8
_NUMERIC_CELLS = {1: 16, 2: PAIR_CELLS}  # by the columns of a table
_MOST_LEVELS = 16  # of pairs
_MOST_CELLS = 1 << 21
_MOST_NUMBERS = 1 << 18
SCORE_STAGE = "score"
_SAMPLES, _SAMPLES_SEED, _BLOCK = 20_000, 0, 4096


@dataclass(frozen=True)
class MarginalLayout:
    """Tables of cells of one or two columns each. Follows from the schema and the criterion alone.

    Attributes:
        columns: cells of the columns that count.
        tables: which columns each table is of, by place.
    """

    columns: tuple[ColumnGrid, ...]
    tables: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], *, ways: int) -> MarginalLayout:
        """Lay out all tables of one column, or of two, among those named; none named means all.

        Single columns have 16 cells where they are numeric, and all their levels. Pairs have the coarse cells of a
        search's score.

        Raises:
            ConfigError: the tables have too many cells together, or there is none.
        """
        every = Grid.of(schema, numeric_cells=_NUMERIC_CELLS[ways]).columns
        columns = tuple(column for column in every if not names or column.name in names)
        layout = cls(columns, tuple(combinations(range(len(columns)), ways)))
        if not layout.tables:
            raise ConfigError("Expected two columns at least for a criterion of pairs, got one.")
        if layout.starts[-1] > _MOST_CELLS:
            raise ConfigError(
                f"Expected a criterion whose tables have {_MOST_CELLS} cells at most together, got more. Name columns."
            )
        return layout

    def size(self, j: int, ways: int) -> int:
        """Return into how many cells a column is cut in a table of so many columns."""
        return self.columns[j].n_cells if ways == 1 else coarse_size(self.columns[j])

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each table begins in the flat vector, and its end, shape (tables + 1,)."""
        sizes = [math.prod(self.size(j, len(table)) for j in table) for table in self.tables]
        return np.cumsum([0, *sizes])

    def count(self, total: np.ndarray, rows: Rows, weights: np.ndarray | None = None) -> None:
        """Add the counts of some coded records to `total`, shape (cells,); each so many times, shape (n,), or once."""
        ways = len(self.tables[0])
        cells = [column.cells(rows[column.name]) for column in self.columns]
        if ways > 1:
            cells = [coarse(column, codes) for column, codes in zip(self.columns, cells, strict=True)]
        for table, start, end in zip(self.tables, self.starts, self.starts[1:], strict=False):
            flat = np.zeros(len(cells[0]), dtype=np.int64)
            for j in table:
                flat = flat * self.size(j, ways) + cells[j]
            total[start:end] += np.bincount(flat, weights, minlength=end - start)


@dataclass(frozen=True)
class MarginalCounts(Counts):
    """For every table of a layout, how many records lie in each cell.

    One record adds a single 1 to each of the t tables: norm √t. Two records are at most √(2t) apart. Value: all tables
    as one vector.
    """

    layout: MarginalLayout
    name: str = "counts of cells"

    @property
    def squares(self) -> float:
        """The number of tables."""
        return len(self.layout.tables)

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros(self.layout.starts[-1])

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        self.layout.count(total, rows)


def coarse_size(column: ColumnGrid) -> int:
    """Return the number of coarse cells of a column."""
    return column.n_cells if column.numeric else min(column.n_cells, _MOST_LEVELS)


def coarse(column: ColumnGrid, cells: np.ndarray) -> np.ndarray:
    """Merge levels beyond the most into even runs, in the schema's order."""
    return cells if coarse_size(column) == column.n_cells else cells * _MOST_LEVELS // column.n_cells


def pair_layout(schema: Schema, target: str | None, weight: str | None = None) -> MarginalLayout:
    """Return the tables of all pairs of columns; where these are too many, of each with the target, or the next one.

    One column is paired with itself. A column of weights is in none: samples have no weights.

    Raises:
        ConfigError: a column is no column of a table.
    """
    every = Grid.of(schema, numeric_cells=PAIR_CELLS).columns
    columns = tuple(column for column in every if column.name != weight)
    sizes = [coarse_size(column) for column in columns]
    pairs = list(combinations(range(len(columns)), 2))
    if sum(sizes[i] * sizes[j] for i, j in pairs) > _MOST_NUMBERS:
        hub = next((j for j, column in enumerate(columns) if column.name == target), None)
        others = [j for j in range(len(columns)) if j != hub]
        pairs = [(j, (j + 1) % len(columns) if hub is None else hub) for j in others]
    return MarginalLayout(columns, tuple(pairs or [(0, 0)]))


@dataclass(frozen=True)
class CoarsePairCounts(MarginalCounts):
    """For every pair of columns, how many records lie in each pair of coarse cells."""

    name: str = "counts of pairs of cells"


@dataclass(frozen=True)
class WeightedPairCounts(CoarsePairCounts):
    """For every pair of columns, the weights of the records in each pair of coarse cells, ÷ the bound.

    A record of weight k/2^20 of the bound adds k to one cell of each of the t tables, in steps of 2^-20: norm
    (k/2^20)·√t, at most that of an unweighted one, and no entry is negative. Proof: docs/proofs/weights.md.
    """

    column: str = ""

    @property
    def step(self) -> float:
        """A unit of weight."""
        return 2.0**-WEIGHT_BITS

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records by their weights."""
        self.layout.count(total, rows, whole_weights(rows, self.column).astype(np.float64))


@dataclass(frozen=True)
class StepPairCounts(CoarsePairCounts):
    """For every pair of columns, how many steps lie in each pair of coarse cells; a unit's steps count as one together.

    A unit of k steps adds w(k) ≤ 2^10/k to one cell of each of the t tables for each step, in steps of 2^-10, or, if
    weighted, at most that: in each table entries are not negative and add up to 1 at most, so the norm is √t at most,
    and two units are at most √(2t) apart, however their steps lie. One `Gaussian` event. Proof: docs/proofs/tune.md.
    """

    column: str = ""
    name: str = "counts of steps in pairs of cells"

    @property
    def step(self) -> float:
        """A unit of a share."""
        return 2.0 ** -(UNIT_BITS + FINER_BITS)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the steps of some units."""
        flat, owners, steps = flattened(rows)
        shared = as_one(steps)[owners]
        counted = weighted_steps(shared, flat, self.column)
        self.layout.count(total, flat, counted.astype(np.float64))


def pair_counts(schema: Schema, layout: MarginalLayout) -> CoarsePairCounts:
    """Statistic of a schema's records, as it was declared: of weighted ones, by weight."""
    weight = schema.weight
    return CoarsePairCounts(layout) if weight is None else WeightedPairCounts(layout, column=weight.column)


def squared_distance(noisy: Noisy, counts: np.ndarray, layout: MarginalLayout) -> float:
    """Return the mean over pairs of ‖shares of the records − shares of the samples‖², without bias. Free.

    Args:
        noisy: released `CoarsePairCounts` of the records. Their number of records is estimated by the mean of the
            tables' sums, and is at least 1 and the noise of such a sum.
        counts: exact counts of samples, same shape; of samples without a record, as of steps there may be, all 0.
        layout: of both.

    Returns:
        The noise's part of ‖ã − s‖² is taken off, so values just below 0 are possible.
    """
    n_tables = len(layout.tables)
    n = max(1.0, noisy.noise_std * np.sqrt(noisy.value.size / n_tables), float(noisy.value.sum()) / n_tables)
    m = max(1.0, float(counts.sum()) / n_tables)
    difference = noisy.value / n - counts / m
    noise = noisy.value.size * (noisy.noise_std / n) ** 2
    return float(difference @ difference - noise) / n_tables


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one kind of records.

    Attributes:
        stage: of their release.
        name: of the measurement.
        statistic: of the records.
        of_samples: the same of samples, which have no weights.
    """

    stage: str
    name: str
    statistic: CoarsePairCounts
    of_samples: CoarsePairCounts

    @property
    def counts(self) -> str:
        """The records in a word."""
        return {SCORE_STAGE: "rows"}.get(self.stage, self.stage.removeprefix(f"{SCORE_STAGE}: "))

    def records(self, data: Records) -> Records:
        """Return the records that it counts."""
        return data.steps if isinstance(data, LinkedData) and isinstance(self.statistic, StepPairCounts) else data

    def counted(self, chunks: Iterable[Rows]) -> np.ndarray:
        """Return exact counts of samples."""
        total = self.of_samples.zero()
        for rows in chunks:
            self.of_samples.add(total, rows)
        return total

    def distance(self, noisy: Noisy, counts: np.ndarray) -> float:
        """Return the squared distance of samples from the records, without bias."""
        return squared_distance(noisy, counts, self.statistic.layout)


def scores_of(facts: Facts) -> tuple[Score, ...]:
    """Return the scores of a search for tables of a schema."""
    described = facts.described
    weight = "" if described.weight is None else described.weight.column
    if not described.linked:
        layout = pair_layout(facts.schema, facts.target, weight or None)
        return (Score(SCORE_STAGE, CoarsePairCounts.name, pair_counts(described, layout), CoarsePairCounts(layout)),)
    tables = _tables(described)
    units = pair_layout(tables.units, None, weight or None)
    counts = pair_counts(described, units), CoarsePairCounts(units)
    scores = [Score(f"{SCORE_STAGE}: units", f"units: {CoarsePairCounts.name}", *counts)]
    if tables.steps is not None:
        steps = pair_layout(plain_schema(tables.steps), None)
        counts = (StepPairCounts(steps, column=weight), StepPairCounts(steps))
        scores.append(Score(f"{SCORE_STAGE}: steps", f"steps: {CoarsePairCounts.name}", *counts))
    return tuple(scores)


def score_stages(facts: Facts, share: float) -> list[Stage]:
    """Return the stages of the scores: equal parts of this share of a fit's squared budget with its score."""
    scores = scores_of(facts)
    return [
        Stage(
            name=score.stage,
            noise_multiplier=multiplier_for_share(share / len(scores)),
            replace_distance=float(np.sqrt(2)),
            measures=f"how many {score.counts} lie in each pair of coarse cells of two columns, to score fits against",
        )
        for score in scores
    ]


def mean_distance(scores: Sequence[Score], released: Sequence[Noisy], sampled: Sequence[np.ndarray]) -> float:
    """Return the mean over scores of the squared distances. Free: of releases and of samples."""
    parts = zip(scores, released, sampled, strict=True)
    with np.errstate(all="ignore"):  # a warning of numpy's would show something of a fit that does not leave
        return float(np.mean([score.distance(noisy, counts) for score, noisy, counts in parts]))


def sampled_counts(scores: Sequence[Score], schema: Schema, sampler: Sampler) -> list[np.ndarray]:
    """Return counts of samples of one fit, of each score: of its own release, at no cost.

    Args:
        scores: of the search.
        schema: as it was declared.
        sampler: of plain rows, or of units of such.
    """
    blocks = range(-(-_SAMPLES // _BLOCK))
    if not isinstance(sampler, UnitSampler):
        rows = PlainRows(schema, sampler)
        return [scores[0].counted(dict(rows.rows(_BLOCK, public_stream(_SAMPLES_SEED, block))) for block in blocks)]
    tables, total = _tables(schema), [score.of_samples.zero() for score in scores]
    for block in blocks:
        units = _plain_units(schema, sampler, public_stream(_SAMPLES_SEED, block))
        sequences = Sequences.of(units, tables.constants)
        for place, (score, records) in enumerate(zip(scores, (unit_records, step_records), strict=False)):
            total[place] += score.counted(records(tables, sequences))
    return total


def _plain_units(schema: Schema, sampler: UnitSampler, rng: np.random.Generator) -> Units:
    """Return units with their rows as plain records, each of weight 1."""
    units = shaped(schema, sampler)
    assert isinstance(units, UnitSampler)
    owners, rows, without = units.units(_BLOCK, rng)
    weights = {} if schema.weight is None else {schema.weight.column: np.ones(owners.size)}
    return Units(owners, plain_records(schema, {**rows, **weights}), without)


def _tables(schema: Schema) -> LinkedTables:
    return linked_tables(plain_schema(schema), schema.weight)
