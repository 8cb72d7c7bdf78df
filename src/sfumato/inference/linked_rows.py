"""All rows of linked units, measured: units of the model with their rows, where a record is a unit; and questions.

A total over all rows is one over units, of what their rows add up to. Units' own measurements hold its part of first
rows, those of steps its part of later ones, each step as it was counted: by w(k), and clipped with the unit's others.
So every measurement is a total of a function of units, and so is every question; errors are those of independent units.

Derivation: docs/proofs/inference.md. Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.calibration import FITTED, STRONG, Calibration
from sfumato.inference.estimator import Estimator, require_few_items
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.noisy_totals import RowWeights, Totals, UnitSums
from sfumato.inference.questions import Questions
from sfumato.inference.table_measurements import TableMeasurements, column_grid
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import Units, UnitSampler
from sfumato.maths.streams import public_stream
from sfumato.measurements.queries import MomentQuery
from sfumato.records.sequences import WEIGHT_BITS, Sequences, Sharing, steps_at, unit_records
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import build_sampler
from sfumato.release.unit_releases import steps_of, units_of
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.set_columns import SetColumn

_BLOCK, _MOST_UNITS, _MOST_ROWS, _FEWEST_UNITS = 1 << 10, 1 << 14, 1 << 16, 1 << 11
_STREAM = 20_261
# Standard deviations by which means under a walk of several steps may be off: as under a model of pairs where ties are
# strong; where measurements miss them by more than is usual (decision 64), twice as much, and by far more, no answer.
_FURTHER = 2 * STRONG
_USUAL_SURPRISE, _LARGEST_SURPRISE = 0.5, 0.8


class OnGivenRows(TableMeasurements):
    """Measurements on rows of a model that are drawn elsewhere."""

    _rows: dict[str, np.ndarray]

    @property
    def n_rows(self) -> int:
        """How many rows of the model there are."""
        return next(iter(self._rows.values())).size

    @cached_property
    def _model_rows(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        return self._rows, {name: column.cells(self._rows[name]) for name, column in self.columns.items()}

    @cached_property
    def free_codes(self) -> dict[str, np.ndarray]:
        """The rows as they were drawn."""
        return self._rows


class _Part(OnGivenRows):
    """The measurements of one of the two tables."""

    def __init__(self, release: ReleaseValue, rows: dict[str, np.ndarray]) -> None:
        super().__init__(release)
        self._rows = rows


class StepPart(_Part):
    """The measurements of steps.

    Args:
        release: of linked rows.
        tables: its two tables.
        rows: steps of the model's units, one unit's after the other's.
        owners: the unit of each, from 0, shape (n,).
        units: how many units there are.

    Attributes:
        whole: K, the number of steps of a unit that count whole.
        sums: of steps of each unit.
    """

    def __init__(
        self, release: ReleaseValue, tables: LinkedTables, rows: dict[str, np.ndarray], owners: np.ndarray, units: int
    ) -> None:
        assert tables.steps is not None
        part = steps_of(release, plain_schema(tables.steps))
        queries = [(m, m.query) for m in part.measurements if m.query is not None and m.query.weight == tables.weight]
        self.whole = max((query.whole_rows for _, query in queries), default=0)
        if not self.whole or any(query.whole_rows != self.whole for _, query in queries):
            raise EstimateError("Expected a release whose measurements say how steps count, got another. Fit it again.")
        steps = tuple(replace(m, query=replace(query, whole_rows=0, weight="")) for m, query in queries)
        super().__init__(replace(part, measurements=steps), rows)
        self.sums, self._sharing = UnitSums(owners, units), Sharing(self.whole)
        self._steps = np.bincount(owners, minlength=units)

    @cached_property
    def row_counts(self) -> np.ndarray:
        """w(k), shape (n,)."""
        return self.sums.spread(self._sharing.weights(self._steps) * 2.0**-WEIGHT_BITS)

    @cached_property
    def clipping(self) -> np.ndarray:
        """u, by which the steps of a unit are weighed and clipped together, shape (n,)."""
        assert self.products is not None
        query: MomentQuery = self.products.query
        vectors = [entries.whole[self.base.of(entries.cells)] for entries in query.features]
        most = 2.0 ** (2 * query.bits.entries + query.bits.weights)
        clipping = self._sharing.clipped(
            np.concatenate(vectors, axis=1).astype(np.float64), self.sums.owners, self._steps, most
        )
        return self.sums.spread(clipping * 2.0**-query.bits.weights)


@dataclass(frozen=True, eq=False)
class _Model:
    """Units of a model: their own rows of both tables, and all their rows."""

    units: dict[str, np.ndarray]
    steps: dict[str, np.ndarray]
    step_owners: np.ndarray
    rows: dict[str, np.ndarray]
    owners: np.ndarray

    @classmethod
    def of(cls, tables: LinkedTables, walks: Units) -> _Model:
        sequences = Sequences.of(walks, tables.constants)
        chunks = list(unit_records(tables, sequences))
        units = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
        present = ~walks.without
        owners, rows = walks.owners[present], {name: codes[present] for name, codes in walks.rows.items()}
        later = np.flatnonzero(owners[1:] == owners[:-1]) + 1
        steps: dict[str, np.ndarray] = {}
        if tables.steps is not None:
            of_walks = steps_at(tables, sequences, owners[later], _places(owners)[later] + 1)
            steps = {name: np.asarray(codes) for name, codes in of_walks.items() if name != tables.weight}
        return cls(units, steps, owners[later], rows, owners)


def _places(owners: np.ndarray) -> np.ndarray:
    """Return the place of each row among those of its unit, from 0, shape (n,)."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    return np.arange(owners.size) - np.repeat(starts, np.diff(starts, append=owners.size))


class LinkedMeasurements(OnGivenRows):
    """The measurements of a release of linked rows, and all rows of units of its model.

    Args:
        release: of linked rows.
        stream: seed and key of the model's units.

    Attributes:
        unit_part: the measurements of units.
        step_part: those of steps; None where a unit has one row.
        sums: of the rows of each unit.
        linked: the two tables.

    Raises:
        EstimateError: units have too many rows for it, or the release measured nothing about columns.
        ReleaseError: its model does not fit its schema.
    """

    def __init__(self, release: ReleaseValue, stream: tuple[int, ...] = (_STREAM,)) -> None:
        plain = plain_schema(release.schema)
        self.linked = linked_tables(plain, release.schema.weight)
        sampler = build_sampler(plain, release.sampler, release.parameters)
        assert isinstance(sampler, UnitSampler)
        model = _Model.of(self.linked, model_units(sampler, stream))
        n_units = next(iter(model.units.values())).size
        self.unit_part = _Part(units_of(release, plain=True), model.units)
        self.step_part = None
        if self.linked.steps is not None:
            self.step_part = StepPart(release, self.linked, model.steps, model.step_owners, n_units)
        self.release, self.weight, self.class_column = replace(release), release.schema.weight, None
        self.sums, self._rows = UnitSums(model.owners, n_units), model.rows
        self.tables, self.products = self.unit_part.tables, self.unit_part.products
        self.scores = []  # of all rows there are none
        kinds = plain.of_kind(TabularKind)
        known = self.unit_part.columns
        self.columns = {  # where a first row may be missing, a row's cell may not
            name: column_grid(name, kind, known[name].edges, kind.n_levels)
            for name, kind in kinds.items()
            if name in known and name != self.linked.weight
        }

    @property
    def rows_of_unit(self) -> int:
        """1: a unit is one record."""
        return 1

    @property
    def pairs(self) -> bool:
        """Whether sums of products of two columns of all rows were measured: where every step counts whole."""
        return self.step_part is None or self.step_part.whole >= self.linked.max_rows - 1

    @cached_property
    def size(self) -> float:
        """The number of units, or the sum of their weights."""
        return self.unit_part.size

    @property
    def rows_variance(self) -> float:
        """Of the true number of units about the public one."""
        return self.unit_part.rows_variance

    @cached_property
    def weighting(self) -> RowWeights | None:
        """The weights of units."""
        return self.unit_part.weighting

    def counts(self, name: str) -> None:
        """None: no count of cells is one of all rows."""
        del name


def model_units(sampler: UnitSampler, stream: tuple[int, ...], fewest: int = _FEWEST_UNITS) -> Units:
    """Return units of a model, as many as memory allows for all their rows; less than `fewest` are refused."""
    parts: list[Units] = []
    rows = 0
    while len(parts) * _BLOCK < _MOST_UNITS and rows < _MOST_ROWS:
        parts.append(sampler.units(_BLOCK, public_stream(*stream, len(parts))))
        rows += parts[-1].owners.size
    if len(parts) * _BLOCK < fewest:
        raise EstimateError(
            "Expected units of fewer rows for estimates about all rows, got some of some tens. Ask "
            "release.units (--units) about constants, numbers of rows and first rows."
        )
    return Units(
        np.concatenate([part.owners + i * _BLOCK for i, part in enumerate(parts)]),
        {name: np.concatenate([part.rows[name] for part in parts]) for name in parts[0].rows},
        np.concatenate([part.without for part in parts]),
    )


class LinkedQuestions(Questions):
    """Answers about all rows of units, from one release."""

    measured: LinkedMeasurements
    measurements = LinkedMeasurements

    def estimator(
        self, columns: tuple[str, ...], target: str, fitted: float = FITTED, *, free: bool = False
    ) -> Estimator:
        """Return rows calibrated to what was measured of some columns: as `Questions.estimator`.

        Raises:
            EstimateError: also of several columns together, where steps of long units do not count whole.
        """
        if not free and len(set(columns)) > 1:
            self._require_pairs(columns)
        return replace(super().estimator(columns, target, fitted, free=free), row_note=self._row_note)

    @cached_property
    def _row_note(self) -> str:
        """A sentence on the rows of long units, which do not count."""
        measured = self.measured
        most, count = measured.linked.max_rows, measured.linked.count
        if not count:
            return "Of a unit one row counts. "
        sizes = measured.unit_part.counts(count)
        if sizes is None:
            return f"Of a unit at most {most} rows count. "
        share = float(np.clip(sizes.cells[-1] / measured.unit_part.size, 0.0, 1.0))
        many = f"about {100 * share:.2g} % of the units have so many, and may have had more"
        return f"Of a unit at most {most} rows count: {many}. "

    def estimator_of_sums(self, columns: tuple[str, ...], target: str, what: str, *, named: bool = False) -> Estimator:
        """Return `estimator` of a product of columns, of which some may follow from measured ones by rules."""
        for name in columns:
            self.require_column(name, following=True)
        sums = [self.rules.terms(name) for name in dict.fromkeys(columns)]
        if len(sums) > 1 or any(len(term) > 1 for terms in sums for term in terms):
            self._require_pairs(columns)
        return super().estimator_of_sums(columns, target, what, named=named)

    def require_column(self, name: str, *, following: bool = False) -> None:
        """Refuse what is no column of rows: as `Rows.require_column`.

        Raises:
            ConfigError: also of the number of rows, which units have.
        """
        if name and name == self.measured.linked.count:
            raise ConfigError(
                f"Expected a column of rows, got {name!r}, which units have. Ask release.units (--units) about it."
            )
        super().require_column(name, following=following)

    def _rows_of_sizes(self, column: SetColumn, target: str) -> Estimator:
        """Return rows calibrated to what was measured of units and of steps."""
        require_few_items(column)
        return self.estimator(column.items, target, free=True)

    def _require_pairs(self, columns: Sequence[str]) -> None:
        """Refuse a question about several columns of all rows, where these were not measured together of long units."""
        part = self.measured.step_part
        if self.measured.pairs or part is None:
            return
        names = " and ".join(map(repr, dict.fromkeys(columns)))
        raise EstimateError(
            f"Expected a question about one column of all rows, got {names} together: how these go together was "
            f"measured of rows that share the bound of {part.whole} of a unit's {self.measured.linked.max_rows - 1} "
            "steps, and not how that differs between units of few and of many rows. Ask release.units (--units) about "
            "first rows, or fit with a larger epsilon or a smaller max_rows."
        )

    def _calibration(self, columns: Sequence[str], fitted: float) -> Calibration:
        measured = self.measured
        tables, units, steps = measured.linked, measured.unit_part, measured.step_part
        counted = [tables.count] if tables.count else []
        # products by class are shrunk by the model as far as they are noise: no sign of a model that is off
        of_units = cell_functions(units, [*columns, *counted])
        parts = [measured_functions(units, of_units, by_class=len(set(columns)) > 1)]
        if steps is not None:
            before = [tables.before[name] for name in columns if name == tables.order]
            wanted = cell_functions(steps, [name for name in (*columns, *before, *counted) if name in steps.columns])
            wanted[tables.count] = [_unweighing(steps, tables.count), *wanted[tables.count]]
            of_steps = measured_functions(steps, wanted)
            summed = replace(of_steps, functions=steps.sums.of(of_steps.functions))
            parts.append(summed.with_rows())
        totals = Totals.joined(parts)
        calibration = self._calibrated(totals, max(fitted, STRONG))
        if calibration.surprise > _LARGEST_SURPRISE:
            names = ", ".join(map(repr, dict.fromkeys(columns)))
            raise EstimateError(
                f"Expected a release whose model of all rows of a unit agrees with its measurements, got one that is "
                f"further off in {names} than their noise explains. Ask release.units (--units) about first rows, or "
                "fit with a larger epsilon or more units."
            )
        if calibration.surprise > _USUAL_SURPRISE:
            calibration = self._calibrated(totals, max(fitted, _FURTHER))
        return calibration

    def _calibrated(self, totals: Totals, fitted: float) -> Calibration:
        return self.measured.calibration(totals, fitted, self.measured.sums)


def _unweighing(steps: StepPart, count: str) -> np.ndarray:
    """Return 1/w of the steps in each cell of their units' number of rows, shape (cells,)."""
    cells = steps.cells(count)
    sizes = np.bincount(cells, minlength=steps.column(count).n_cells)
    return np.bincount(cells, 1 / steps.row_counts, sizes.size) / np.maximum(sizes, 1)


def questions_of(release: ReleaseValue) -> Questions:
    """The questions to a release, made once and kept in it: hundreds of megabytes that end with it."""
    if release.schema.tree is not None:
        names = ", ".join(map(repr, release.schema.tree.names))
        raise ConfigError(
            f"Expected a question to one table of the database: release.table(NAME) (--table), one of {names}."
        )
    if "_questions" not in release.__dict__:
        release.__dict__["_questions"] = (LinkedQuestions if release.schema.linked else Questions)(release)
    return release.__dict__["_questions"]
