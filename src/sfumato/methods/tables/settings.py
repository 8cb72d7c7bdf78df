"""How finely a table is measured and modelled: from public facts, the schema, the number of rows and the planned noise.

What a table of many columns takes is of these too: what cannot be fitted is refused before a record is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np

from sfumato.columns.kinds import LevelKind, TabularKind
from sfumato.errors import SchemaError
from sfumato.fitting.driver import Fit
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import CURVE, LEADING, SIZES
from sfumato.methods.tables.cell_counts import CELL_STEP, RUN_STEP, counted_values, value_squares
from sfumato.methods.tables.chain import Effort
from sfumato.methods.tables.features import Waves
from sfumato.methods.tables.second_stage import POOLED
from sfumato.methods.tables.shares import Resolution
from sfumato.schema.schema_facts import weight_bound

MARGINALS = "marginals"


@dataclass(frozen=True, slots=True)
class Names:
    """What the two stages of a table are called."""

    marginals: str = MARGINALS
    moments: str = POOLED


MOST_ENTRIES = 1 << 25  # of all classes' second moments: a quarter GiB, of which a fit holds several copies


def fits(n_matrices: int, dimension: int) -> bool:
    """Whether second moments of that many matrices and entries of a record's vector fit into memory."""
    return n_matrices * dimension**2 <= MOST_ENTRIES


def require_fits(dimension: int, n_columns: int, n_cells: int = 0) -> None:
    """Refuse a table that cannot be fitted even with the shortest vectors.

    Args:
        dimension: least number of entries of a record's vector.
        n_columns: of the table.
        n_cells: in which its columns are counted by areas.

    Raises:
        SchemaError: its second moments or its tables do not fit into memory.
    """
    if n_cells > MOST_ENTRIES:
        raise SchemaError(
            f"Expected at most {MOST_ENTRIES} cells in the columns' tables by areas, got {n_cells}: of each column up "
            f"to {SIZES.counted_cells} for a number, one per level for labels, times the areas. Leave columns out "
            "(`kind: identifier`), merge rare levels (`other`), or name coarser areas."
        )
    if not fits(1, dimension):
        raise SchemaError(
            f"Expected at most {int(MOST_ENTRIES**0.5)} entries for the second moments, got {dimension} from "
            f"{n_columns} columns: one for a number, one per level for labels, one more where a number may be missing. "
            "Leave columns out (`kind: identifier`) or merge rare levels (`other`)."
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


def forecast_weights(facts: Facts) -> tuple[float, float, str]:
    """The mean of rows' weights that forecasts assume, their bound, and both in words; 1 and 1 without weights.

    By the declared total; else 1, or of a bound above 100, as of people that a row stands for, a guessed part of it.
    """
    weight = facts.described.weight
    if weight is None:
        return 1.0, 1.0, ""
    bound, least = weight_bound(facts.described), getattr(facts.described.columns.get(weight.column), "lower", 0.0)
    mean = 1.0 if least <= 1 <= bound <= SIZES.bound_of_one else SIZES.mean_weight * bound
    mean = mean if weight.total is None else min(weight.total / facts.rows, bound)
    return mean, bound, f", assuming that weights average {mean:.3g}, of at most {bound:.3g}"


def forecast_rows(facts: Facts) -> float:
    """The sum of these weights ÷ the bound, beside which forecasts see noise."""
    mean, bound, _ = forecast_weights(facts)
    return max(1.0, facts.rows * mean / bound)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Public sizes that settings follow from.

    Attributes:
        n_columns: of the table.
        n_level_cells: of labels, that have a feature.
        n_number_entries: of numbers and of what tells missing ones, at least.
        n_classes: labels of the column to predict; 2 of a number, 0 without one.
        counted: whether runs are counted by it: by areas.
        n_levels: of labels, all of them.
        unit_rows: how many rows of a unit count whole in second moments.
        unit_norm: norm of what a unit adds to counts ÷ that of a row.
        value_squares: what a record adds to counts of single values and endings, squared.
    """

    n_columns: int
    n_level_cells: int
    n_number_entries: int = 0
    n_classes: int = 0
    counted: bool = False
    unit_rows: float = 1
    n_levels: int = 0
    value_squares: float = 0.0
    unit_norm: float | None = None

    @classmethod
    def of(cls, facts: Facts, level_groups: int | None = None) -> TableFacts:
        """Read them off a schema, its areas or its target; levels beyond `level_groups` share a cell.

        Raises:
            SchemaError: there are too many classes, or a column holds sets.
        """
        schema, target = facts.schema, facts.class_column
        if facts.sets:
            raise SchemaError(
                f"Expected columns of labels, numbers or dates for the method max-entropy, got sets of items in column "
                f"{facts.sets[0]!r}. Use the method latent-classes for a column of sets alone, or declare it as "
                "identifier to leave it out."
            )
        n_classes, counted = 0, False
        if target is not None and len(schema.released) > 1:
            kind = schema.of_kind(LevelKind).get(target)
            n_classes = 2 if kind is None else kind.width
            counted = kind is not None and bool(schema.areas)
        if n_classes > SIZES.most_classes:
            raise SchemaError(
                f"Expected at most {SIZES.most_classes} classes of a target or areas, got {target!r} with {n_classes}. "
                "Name another column, or none."
            )
        kinds = schema.of_kind(TabularKind).values()
        levels = [kind.width for kind in kinds if not kind.is_numeric]
        cells = sum(levels if level_groups is None else (min(n, level_groups) for n in levels))
        entries = sum(kind.width for kind in kinds if kind.is_numeric)
        valued = compress(kinds, counted_values((kind, SIZES.fewest_cells) for kind in kinds))
        return cls(len(kinds), cells, entries, n_classes, counted, facts.unit_rows, sum(levels), value_squares(valued))

    @property
    def n_counted(self) -> int:
        """About how many runs are counted by areas."""
        runs = self.n_levels - self.n_classes + SIZES.counted_cells * self.n_number_entries
        return self.n_classes * runs if self.counted else 0

    @property
    def squares(self) -> float:
        """What a record adds to all counts of runs, cells and values, squared."""
        columns = (self.n_columns - self.counted) * RUN_STEP**2 + self.n_columns * CELL_STEP**2
        return columns + self.value_squares

    def dimension(self, waves: int) -> int:
        """Return about how many entries a record's vector has."""
        return self.n_level_cells + self.n_number_entries * waves


def entry_noise(noise_multiplier: float, facts: TableFacts, n_public: float) -> float:
    """Return about the noise of the mean product of two features of weight 1, from public facts."""
    return float(SIZES.entry_scale * noise_multiplier * facts.unit_rows * facts.n_columns / np.sqrt(2) / n_public)


def margins_share(facts: TableFacts, multiplier: float, rows: float) -> float:
    """Return the margins' part of the squared budget: more where noise hides how columns go together.

    Args:
        facts: public sizes.
        multiplier: noise multiplier of one event with all of the budget.
        rows: public number of rows.
    """
    least, most, slope, start = SIZES.margins
    entry = entry_noise(multiplier / float(np.sqrt(1 - least)), facts, rows)
    return float(np.clip(least + slope * np.log10(max(entry, 1e-300) / start), least, most))


def target_weight(entry: float, facts: TableFacts) -> float:
    """Return the columns that one to predict counts for: more of many labels, as many as there are in much noise."""
    of_noise = facts.n_columns * min(1.0, entry / SIZES.target_noise)
    of_labels = min(2.0 * np.sqrt(facts.n_classes - 1.0), SIZES.target_part * facts.n_columns)
    return float(max(SIZES.target_weight, of_noise, of_labels))


@dataclass(frozen=True, slots=True)
class Settings:
    """How finely a table is modelled: by its noise alone, so that with less of it, more is seen."""

    cells: int
    ends: bool  # whether bounds have cells of their own: what is recorded as a bound would be seen there
    entry: float
    resolution: Resolution
    effort: Effort

    @property
    def few(self) -> bool:
        """Whether noise leaves a number one feature."""
        return self.resolution.waves.most == 1

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
        names, plan, entry = names or Names(), fit.plan, 0.0
        if not fit.noise.silent:
            entry = entry_noise(plan[names.moments].noise_multiplier, facts, n)
        target = fit.facts.class_column if facts.n_classes > 1 else None
        weights = {} if target is None else {target: target_weight(entry, facts)}
        waves = waves_of(entry, facts)
        effort = Effort.of(entry, simulated, n)
        if entry < SIZES.faint:
            resolution = Resolution(SIZES.runs_without_noise, waves, level_groups, weights)
            return cls(SIZES.cells_without_noise, True, entry, resolution, effort)
        norm = facts.unit_rows if facts.unit_norm is None else facts.unit_norm
        counts_std = plan[names.marginals].noise_multiplier * norm * np.sqrt(facts.squares) / CELL_STEP
        cells = int(np.clip(n / counts_std, SIZES.fewest_cells, SIZES.most_cells))
        ends = bool(CURVE.stands_out * counts_std <= SIZES.bound_share * n)
        return cls(cells, ends, entry, Resolution(SIZES.most_runs, waves, level_groups, weights), effort)


def waves_of(entry: float, facts: TableFacts) -> Waves:
    """Return the functions of ranks that pay where an entry of the moments has this noise, as memory holds them."""
    matrices = 1 + (LEADING.most_classes if facts.n_classes else 0)
    for noise, most, decay in SIZES.waves:
        if entry < noise and (most == 1 or fits(matrices, facts.dimension(most))):
            return Waves(most, decay)
    return Waves(1, SIZES.waves[-1][2])
