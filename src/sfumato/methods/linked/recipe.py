"""Linked rows: two tables, each measured with two releases as any table is, and a chain of each.

    units: marginals, second moments     constants, of which one may be the class, number of rows, first row
    steps: marginals, second moments     a row given the one before it, the constants, and the rows that there are

A unit has one record in each, bounded as a whole. Everything after the noise is a function of the releases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import CHAIN, LINKS
from sfumato.maths.streams import public_stream
from sfumato.methods.linked.intraclass import without_levels, without_offsets
from sfumato.methods.linked.statistics import StepCounts, StepMoments, step_bits
from sfumato.methods.tables.cell_counts import CellCounts
from sfumato.methods.tables.features import clip_norm_of
from sfumato.methods.tables.leading import Leading
from sfumato.methods.tables.recipe import (
    RUN_COUNTS,
    Measuring,
    Silent,
    measure_table,
    one_way_error,
    table_forecast,
    table_stages,
)
from sfumato.methods.tables.settings import Names, TableFacts, counted_rows, entry_noise, forecast_rows
from sfumato.methods.tables.weighted import MeasuringWeights
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.engine import Rows
from sfumato.records.linked import LinkedRecords
from sfumato.records.sequences import known_at
from sfumato.release.linked import LinkedTable
from sfumato.release.samplers import TableSoftmax
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import weight_bound

UNITS = Names("units: marginals", "units: second moments")
STEPS = Names("steps: marginals", "steps: second moments")
_SEEN = (2.0, 3.0)  # standard errors of a correlation: below it is shrunk to nearly none, beyond it is hardly shrunk
_STEP_SHARE = 0.65  # of the squared budget
_LOST = 0.004  # error for each part of the steps that counts for nothing, beside their noise
_NUMBER_WEIGHT = 0.5  # of the columns that say which row a step leads to, of how many
_ALIKE = 0.7  # of two steps of a unit: their vectors' product ÷ their squares
_NO_STEPS = 1e-9  # part of the units that have steps
_NORM_SEED = 11
_SUMS = 20_000  # records of which numbers of rows are drawn


@dataclass(frozen=True, slots=True)
class LinkedNames:
    """What the stages of linked rows are called."""

    units: Names = UNITS
    steps: Names = STEPS


ALONE = LinkedNames()
"""Of linked rows that are no branch of a database."""


def linked_stages(
    facts: Facts, *, marginal_share: float, level_groups: int, share: float = 1.0, names: LinkedNames = ALONE
) -> list[Stage]:
    """Return two stages for units and two for steps; of units of one row, those of units alone.

    `share` is that of the squared budget.
    """
    settings = {"marginal_share": marginal_share, "level_groups": level_groups}
    units, steps = _facts(facts)
    if steps is None:
        return table_stages(units, **settings, share=share, names=names.units)
    return [
        *table_stages(units, **settings, share=share * (1 - _STEP_SHARE), names=names.units),
        *table_stages(steps, **settings, share=share * _STEP_SHARE, names=names.steps),
    ]


def linked_forecast(plan: Plan, facts: Facts, names: LinkedNames = ALONE) -> dict[str, str]:
    """Say what the noise of each stage means; of steps, where every unit has two rows."""
    units, steps = _facts(facts)
    return table_forecast(plan, units, names.units) | (
        {} if steps is None else table_forecast(plan, steps, names.steps)
    )


def kept_between(plan: Plan, facts: Facts, names: LinkedNames, tables: Iterable[str]) -> str:
    """Say from which correlation on a table goes with what those before it tell: one that stands out of its noise."""
    units, _ = _facts(facts)
    noise = entry_noise(plan[names.units.moments].noise_multiplier, TableFacts.of(units), forecast_rows(units))
    weak, strong = (min(times * noise, 1.0) for times in _SEEN)
    return (
        f"what {', '.join(tables)} say of it is kept beyond a correlation of about ±{strong:.2g}, mostly lost below "
        f"±{weak:.2g}"
    )


def linked_error(plan: Plan, facts: Facts, names: LinkedNames = ALONE) -> float:
    """Return the noise of a label's share among units."""
    return one_way_error(plan, _facts(facts)[0], names.units)


def _facts(facts: Facts) -> tuple[Facts, Facts | None]:
    """Facts of units, with weight and class if they have them, and of steps, of which each counted unit has one."""
    tables, n_public = linked_tables(facts.schema, facts.described.weight), facts.n_public
    units = Facts(replace(tables.units, weight=facts.described.weight), facts.target, n_public)
    if tables.steps is None:
        return units, None
    return units, Facts(tables.steps, None, n_public if n_public is None else max(1, round(counted_rows(units))))


@dataclass(frozen=True, slots=True)
class MeasuringSteps(Measuring):
    """How steps are measured: those of a unit share one bound.

    Attributes:
        n_units: the public number of units.
        steps: P(k) of the units' numbers of steps, 0 first, as released.
        weight: the column of the units' weights; empty where each counts once.
        room: how many steps of a unit count whole in counts where they lie apart.
        order: the column of rows that says how far they lie behind the one before; None without.
    """

    n_units: int = 1
    steps: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0]))
    weight: str = ""
    room: float = 1.0
    order: str | None = None

    def sized(self, facts: TableFacts) -> TableFacts:
        """Return the sizes with the norms of what a unit adds to both releases, which their noise grows with."""
        return replace(facts, unit_rows=self._together, unit_norm=float(np.sqrt(self.room)))

    def counts(self, grid: Grid, by: int | None) -> StepCounts:
        """Return the counts of steps, of which none is to be predicted, and of their labels with those before."""
        del by
        places = {column.name: j for j, column in enumerate(grid.columns)}
        twins = [(i, j) for j, i in self.copied.items() if j != self.order]
        cells = {i: grid.columns[places[i]].n_cells * grid.columns[places[j]].n_cells for i, j in twins}
        labels = {i for i, j in twins if not grid.columns[places[j]].numeric and cells[i] <= LINKS.most_pairs}
        pairs = tuple((places[i], places[j]) for i, j in twins if i in labels)
        alike = {places[i]: places[j] for i, j in twins if i not in labels}
        how = {"pairs": pairs, "known": self.known_shares(grid), "alike": alike, "column": self.weight}
        return StepCounts(grid, **how).with_room(self.room)

    def given(self, grid: Grid, n: int) -> dict[int, np.ndarray]:
        """Return cells of what is known of units; of steps none, as the row before is drawn with it."""
        return {} if self.copied else Measuring.given(self, grid, n)

    def clip_norm(self, vectors: Sequence[np.ndarray], shares: Sequence[np.ndarray], noisy: bool) -> float:
        """Return the norm of a unit's steps together: of mean length, by released numbers of steps, or the longest."""
        factor = self._together if noisy else float(self.steps.size)
        return float(np.sqrt(factor)) * clip_norm_of(vectors, shares, noisy=noisy)

    @property
    def _together(self) -> float:
        """The mean norm of the second moments of a unit's steps, each as it counts, in those of a step."""
        law = self.steps[1:]
        if law.sum() <= _NO_STEPS:  # noise hides all units of two rows, or there are none
            return 1.0
        k = np.arange(1, law.size + 1)
        together = np.sqrt(k + k * (k - 1) * _ALIKE**2) * np.minimum(1.0, np.sqrt(self.room / k))
        return float(law @ together / law.sum())

    def moments(
        self, grid: Grid, vectors: tuple[np.ndarray, ...], clip_norm: float, leading: Leading | None, n_public: int,
        counting: CellCounts,
    ) -> StepMoments:  # fmt: skip
        """Return the second moments of steps, each as it counts in the first release at most."""
        del leading, n_public
        assert isinstance(counting, StepCounts)
        return StepMoments(grid, vectors, clip_norm, bits=step_bits(self.n_units), counting=counting)


@dataclass(frozen=True, slots=True)
class Owners:
    """Who owns the units of a branch below a branch, several each.

    Attributes:
        law: P(k) of an owner's number of units, 0 first, as released.
        n: the public number of owners.
        sizes: the number of units of the owner of each one that is drawn before.
    """

    law: np.ndarray
    n: float
    sizes: np.ndarray


def run_linked(
    fit: Fit,
    *,
    level_groups: int,
    clip_slack: float,
    simulated: int | None,
    names: LinkedNames = ALONE,
    given: bool = False,
    owners: Owners | None = None,
    context: Rows | None = None,
) -> FittedModel:
    """Draw the releases of units and of steps, and fit a chain to each.

    Args:
        fit: of records of units.
        level_groups: most levels of a column that keep an indicator of their own.
        clip_slack: how many times the clip norm that noise and bias favour.
        simulated: rows that a chain is fitted with.
        names: of the stages.
        given: whether constants are known before a unit is drawn.
        owners: whose the units are; None where each unit is a record.
        context: drawn constants of units, which are not counted again; None of the first table.
    """
    data = fit.data
    if not isinstance(data, LinkedRecords):
        raise ConfigError("Expected records of units for linked rows, got records of rows.")
    tables, facts = data.tables, _facts(fit.facts)[0]
    settings = {"level_groups": level_groups, "clip_slack": clip_slack, "simulated": simulated}
    # without noise what is given has its own law in the releases, exactly
    context = {} if fit.noise.silent or context is None else context
    known = {name: context[name] for name in tables.constants if name in context}
    units, counted = _units(fit, facts, names, owners, settings, known, given=given)
    if tables.steps is None:
        return joined(tables, units, None)
    rows = number_of_rows(tables, units)
    # P(k) of a unit's number of steps, 0 first: of a unit of one row there is none, as of one without
    law = np.concatenate([[rows[0] + rows[1]], rows[2:]])
    if owners is not None:
        law = sum_law(owners.law, law)
    room, share = room_of(fit, names.steps, tables.steps, law, counted)
    of_steps = Facts(tables.steps, None, max(1, round(counted * share)))
    known = {} if fit.noise.silent else known_of_steps(tables, units, room, law)
    worth = 1.0 if owners is not None else (MeasuringWeights.of(facts) or Measuring()).worth
    weight, n_units = facts.described.weight, fit.n_public if owners is None else max(1, round(owners.n))
    offsets = [own.offset for own in tables.histories.values()]
    steps = MeasuringSteps(
        names.steps, tables.drawn_first, {tables.count: _NUMBER_WEIGHT, tables.place: _NUMBER_WEIGHT}, worth,
        tables.before, offsets, offsets, True, _idle_steps(tables, units), n_units=n_units, steps=law,
        weight="" if weight is None else weight.column, room=room, order=tables.order, known=known,
    )  # fmt: skip
    return joined(tables, units, measure_table(Fit(data.steps, fit.account, of_steps), **settings, measuring=steps))


def _units(
    fit: Fit,
    facts: Facts,
    names: LinkedNames,
    owners: Owners | None,
    settings: Mapping[str, Any],
    known: Rows,
    *,
    given: bool,
) -> tuple[FittedModel, float]:
    """Return the chain of units with their first row, and the public number of records that own them."""
    assert isinstance(fit.data, LinkedRecords)
    tables = fit.data.tables
    before = (len(tables.constants) if given else 0, tables.n_first)
    first = tuple(n for n in before if n)

    def silent(columns: Sequence[ColumnGrid], shares: Sequence[np.ndarray], entry: float) -> list[str]:
        faint = without_levels(tables, columns, shares, entry)
        return [column for name in faint for column in (tables.histories[name].level, tables.histories[name].trend)]

    trends = [own.trend for own in tables.histories.values()]
    if owners is None:
        how = {"drawn_first": first, "silent": silent, "narrow": trends, "near": True, "known": known}
        measuring = replace(MeasuringWeights.of(facts) or Measuring(), names=names.units, **how)
        units = measure_table(Fit(fit.data, fit.account, facts), **settings, measuring=measuring)
        return units, counted_units(facts, units)

    room, share = room_of(fit, names.units, tables.units, owners.law, owners.n)
    if known:  # as often as their owners' rows count where they lie apart, √(room ÷ their number)
        some = public_stream(_NORM_SEED).random(owners.sizes.size) ** 2 * owners.sizes < room
        known = {name: codes[some] for name, codes in known.items()} if some.sum() >= CHAIN.fewest_rows else {}
    n = max(1, round(owners.n))
    how = {"narrow": trends, "near": True, "silent": silent, "known": known}
    several = MeasuringSteps(names.units, first, n_units=n, steps=owners.law, room=room, **how)
    of_units = Facts(tables.units, None, max(1, round(owners.n * share)))
    return measure_table(Fit(fit.data, fit.account, of_units), **settings, measuring=several), owners.n


def counted_units(facts: Facts, units: FittedModel) -> float:
    """Return the public number of units; of weighted ones the sum of their weights ÷ the bound, public or released."""
    weight = facts.described.weight
    if weight is None or weight.total is not None:
        return counted_rows(facts)
    counts = dict(units.measurements)[RUN_COUNTS]
    tables = counts.query.tables  # type: ignore[union-attr] - of counts
    return max(1.0, float(counts.value.sum()) / len(tables) / weight_bound(facts.described))


def _idle_steps(tables: LinkedTables, units: FittedModel) -> Silent:
    """Return, by released shares of steps, lines of idle levels, and offsets that values are not made of."""
    # levels that are drawn as missing in all units
    idle = {n for n, own in tables.histories.items() if _stored_shares(tables, units, own.level)[1][-1] == 1.0}

    def silent(columns: Sequence[ColumnGrid], shares: Sequence[np.ndarray], entry: float) -> list[str]:
        del entry
        apart = idle | without_offsets(tables, columns, shares)
        lines = [own.line for name, own in tables.histories.items() if name in idle]
        return lines + [own.offset for name, own in tables.histories.items() if name in apart]

    return silent


def number_of_rows(tables: LinkedTables, units: FittedModel) -> np.ndarray:
    """Return P(m) of a unit's number of rows, 0 first, as the chain of units has it, shape (max_rows + 1,)."""
    column, shares = _stored_shares(tables, units, tables.count)
    return np.concatenate([np.zeros(tables.fewest), column.of_values(shares)])


def _stored_shares(tables: LinkedTables, units: FittedModel, name: str) -> tuple[ColumnGrid, np.ndarray]:
    """The cells of a column of units, and P(cell) as the chain of units has it."""
    columns = Grid.stored(tables.units, units.parameters).columns
    place = [column.name for column in columns].index(name)
    return columns[place], units.parameters[f"column.{place}.shares"]


def simulated_units(mean: float) -> int:
    """Return how many owners are drawn that have so many units each."""
    return int(np.clip(LINKS.rows / max(mean, 1e-9), LINKS.fewest_units, LINKS.most_units))


def joined(tables: LinkedTables, units: FittedModel, steps: FittedModel | None) -> FittedModel:
    """Return the model of linked rows."""
    weighted = {"weight": tables.weight} if tables.weight else {}
    parts = {"units": units} | ({} if steps is None else {"steps": steps})
    samplers = {name: dict(part.sampler) for name, part in parts.items()}
    return of_parts({"name": LinkedTable.name, **weighted, **samplers}, parts)


def of_parts(sampler: Mapping[str, Any], parts: Mapping[str, FittedModel]) -> FittedModel:
    """Return the model of a sampler that is made of others, with the arrays and measurements of these by name."""
    return FittedModel(
        sampler=sampler,
        parameters={f"{name}.{key}": a for name, part in parts.items() for key, a in part.parameters.items()},
        measurements=tuple((f"{name}: {key}", m) for name, part in parts.items() for key, m in part.measurements),
    )


def known_of_steps(tables: LinkedTables, units: FittedModel, room: float, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Return what is known before steps but for the row before, of units that their chain draws; none of few steps.

    A unit is there as often as its steps count where they lie apart, √(room ÷ their number); `counts` is P(k) of that.
    """
    rng = public_stream(_NORM_SEED)
    n = simulated_units(float(counts @ np.arange(counts.size)))
    rows = TableSoftmax(tables.units, units.sampler, units.parameters).rows(n, rng)
    sizes = tables.fewest + np.rint(rows[tables.count] * (tables.max_rows - tables.fewest)).astype(np.int64)
    steps = np.maximum(sizes - 1, 0)
    steps *= rng.random(n) ** 2 * steps < room
    owners = np.repeat(np.arange(n), steps)
    numbers = np.arange(owners.size) - np.repeat(np.cumsum(steps) - steps, steps) + 2
    known = known_at({name: codes[owners] for name, codes in rows.items()}, tables, sizes[owners], numbers)
    return known if owners.size >= CHAIN.fewest_rows else {}


def sum_law(numbers: np.ndarray, each: np.ndarray) -> np.ndarray:
    """Return P(k) of a sum: of a number of terms by one law, each term by another, 0 first."""
    rng = public_stream(_NORM_SEED)
    terms = rng.choice(numbers.size, _SUMS, p=numbers / numbers.sum())
    sizes = rng.choice(each.size, int(terms.sum()), p=each / each.sum())
    total = np.bincount(np.repeat(np.arange(_SUMS), terms), sizes, minlength=_SUMS).astype(np.int64)
    return np.bincount(total, minlength=2) / _SUMS


def room_of(fit: Fit, names: Names, schema: Schema, law: np.ndarray, n: float) -> tuple[float, float]:
    """Return how many rows of a record count whole where they lie apart, and the rows that count of each of n records.

    Noise grows with its root, what is seen grows less, and what is left out of long records is a bias; `law` is P(k) of
    a record's number of rows. Where noise is small even beside rows that are all alike, all count whole.
    """
    k = np.arange(law.size)
    whole = max(float(law @ k), _NO_STEPS)
    sizes = TableFacts.of(Facts(schema, None, fit.n_public))
    noise = 0.0 if fit.noise.silent else entry_noise(fit.plan[names.moments].noise_multiplier, sizes, n)
    norms = np.geomspace(1.0, max(k[-1], 1.0), LINKS.rooms)
    for norm in (k, np.sqrt(k)):  # of k rows that are alike, and that lie apart
        counted = np.maximum((k * np.minimum(1.0, norms[:, None] / np.maximum(norm, 1.0))) @ law, _NO_STEPS)
        best = int(np.argmin(noise * norms / counted + _LOST * (1 - counted / whole)))
        if best == norms.size - 1:
            break
    return float(norms[best] ** 2), float(counted[best])
