"""How finely a table is measured and modelled: from public facts, the schema, the number of rows and the planned noise.

What a table of many columns takes is of these too: what cannot be fitted is refused before a record is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.columns.kinds import LevelKind, TabularKind
from sfumato.errors import SchemaError
from sfumato.fitting.driver import Fit
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import CURVE, SIZES
from sfumato.methods.tables.cell_counts import CELL_STEP, SQUARES
from sfumato.methods.tables.chain import Effort
from sfumato.methods.tables.second_stage import MOMENTS
from sfumato.methods.tables.shares import Resolution
from sfumato.schema.schema_facts import weight_bound

MARGINALS = "marginals"


@dataclass(frozen=True, slots=True)
class Names:
    """What the two stages of a table are called."""

    marginals: str = MARGINALS
    moments: str = MOMENTS


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
                n_classes = kind.width
        if n_classes > SIZES.most_classes:
            raise SchemaError(
                f"Expected at most {SIZES.most_classes} classes of a target or areas, got {target!r} with {n_classes}. "
                "Name another column, or none."
            )
        features = [kind for name, kind in schema.of_kind(TabularKind).items() if name != target or n_classes == 1]
        levels = [kind.width for kind in features if not kind.is_numeric]
        cells = sum(levels if level_groups is None else (min(n, level_groups) for n in levels))
        entries = sum(kind.width for kind in features if kind.is_numeric)
        return cls(n_classes, len(features), cells, facts.unit_rows, entries, sum(levels))

    def dimension(self, orders: int) -> int:
        """Return about how many entries a record's vector has: features, and an indicator for each class."""
        numbers = self.n_number_entries * (orders + 2 * (orders > 1))
        return self.n_level_cells + numbers + self.n_classes


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


def class_weight_of(entry: float, facts: TableFacts) -> float:
    """Return the squared length of a class's indicator: where columns are many, class means are what is left to see."""
    return max(SIZES.class_weight, SIZES.class_share * facts.n_features * min(1.0, entry / SIZES.many_columns_noise))


def _fitting(resolution: Resolution, facts: TableFacts, by_class: float) -> Resolution:
    """Return the resolution with as many orders as memory holds."""
    matrices = 1 + facts.n_classes if by_class else 1
    for _, orders in SIZES.orders:
        if orders <= resolution.orders and fits(matrices, facts.dimension(orders)):
            return replace(resolution, orders=orders)
    return replace(resolution, orders=1)
