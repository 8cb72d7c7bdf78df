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
from sfumato.inference.calibration import TOGETHER, Calibration
from sfumato.inference.estimator import Estimator, require_few_items
from sfumato.inference.functions import SharedPart, UnitPart
from sfumato.inference.noisy_totals import RowWeights, Totals, UnitSums
from sfumato.inference.questions import Questions
from sfumato.inference.table_measurements import OnGivenRows, column_grid
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import Units, UnitSampler
from sfumato.lenses.unit_rules import together
from sfumato.maths.streams import public_stream
from sfumato.records.context import sequences_of
from sfumato.records.sequences import Sequences, steps_at, unit_records
from sfumato.release.database_sampler import DatabaseTables
from sfumato.release.model import ReleaseValue, kept
from sfumato.release.samplers import build_sampler
from sfumato.release.unit_releases import branch_of, is_nested, steps_of, units_of
from sfumato.schema.branch_schemas import BranchView
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.set_columns import SetColumn

_BLOCK, _MOST_UNITS, _MOST_ROWS, _FEWEST_UNITS = 1 << 10, 1 << 14, 1 << 16, 1 << 11
_STREAM = 20_261
# Standard deviations by which means under a walk of several steps may be off: as of several columns together. Where
# measurements miss them by more than is usual (decision 64), twice as much, and by far more, no answer.
_FURTHER = 2 * TOGETHER
_USUAL_SURPRISE, _LARGEST_SURPRISE = 0.5, 0.8


@dataclass(frozen=True, eq=False)
class _Model:
    """Rows of a model's units, numbered from 0: those of both tables, and all their rows, with the unit of each."""

    units: dict[str, np.ndarray]
    unit_owners: np.ndarray
    steps: dict[str, np.ndarray]
    step_owners: np.ndarray
    rows: dict[str, np.ndarray]
    owners: np.ndarray

    @classmethod
    def of(cls, tables: LinkedTables, sequences: Sequences) -> _Model:
        """Return the rows of linked rows."""
        sizes, starts, codes, constants = sequences.sizes, sequences.starts, sequences.codes, sequences.constants
        chunks = list(unit_records(tables, Sequences(sizes, starts, codes, constants)))
        owners = np.arange(sizes.size) if sequences.owners is None else sequences.owners
        above = np.repeat(np.arange(sizes.size), sizes)
        numbers = np.arange(above.size) - (np.cumsum(sizes) - sizes)[above]
        rows = {name: column[starts[above] + numbers] for name, column in codes.items()}
        rows |= {name: column[above] for name, column in constants.items()}
        later, steps = np.flatnonzero(numbers), dict[str, np.ndarray]()
        if tables.steps is not None:
            of_walks = steps_at(tables, sequences, above[later], numbers[later] + 1)
            steps = {name: np.asarray(column) for name, column in of_walks.items() if name != tables.weight}
        units = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
        return cls(units, owners, steps, owners[above[later]], rows, owners[above])


def _model_below(whole: ReleaseValue, view: BranchView, stream: tuple[int, ...]) -> tuple[_Model, int]:
    """Return units of a database's model with their rows of a nested table, and how many they are.

    Raises:
        EstimateError: noise leaves none of these rows, or they are too many of a unit.
    """
    sampler, names = build_sampler(whole.schema, whole.sampler, whole.parameters), (view.branch.name, view.branch.of)
    assert isinstance(sampler, DatabaseTables)
    few = sampler.levels(_BLOCK, public_stream(*stream, 0))
    n = min(_MOST_UNITS, _BLOCK * _MOST_ROWS // max(_BLOCK, *(few[name].size for name in names)))
    if n < _FEWEST_UNITS or not few[names[0]].size:
        rows = "more" if n >= _FEWEST_UNITS else "fewer"
        raise EstimateError(
            f"Expected {rows} rows of a unit in {names[0]!r} for estimates about them, got "
            f"{'none that stand out of noise' if rows == 'more' else 'some tens'}. Sample the release instead."
        )
    sequences = sequences_of(whole.schema, view, sampler.levels(n, public_stream(*stream, 1)))
    return _Model.of(linked_tables(plain_schema(view.schema)), sequences), n


class LinkedMeasurements(OnGivenRows):
    """The measurements of a release of linked rows, and all rows of units of its model.

    Args:
        release: of linked rows; of a nested table with the whole that it is of.
        stream: seed and key of the model's units.

    Attributes:
        unit_part: the measurements of units; of a nested table of the rows above, which are several of a unit.
        step_part: those of steps; None where a unit has one row.
        sums: of the rows of each unit.
        linked: the two tables.

    Raises:
        EstimateError: units have too many rows for it, or the release measured nothing about columns.
        ReleaseError: its model does not fit its schema.
    """

    def __init__(self, release: ReleaseValue, stream: tuple[int, ...] = (_STREAM,)) -> None:
        self.target: str | None = None
        plain, view = plain_schema(release.schema), branch_of(release)
        tables = self.linked = linked_tables(plain, release.schema.weight)
        numbers, most = [tables.count] if tables.count else [], 1
        if release.part_of is None or view is None or not view.is_nested:
            sampler = build_sampler(plain, release.sampler, release.parameters)
            assert isinstance(sampler, UnitSampler)
            model = _Model.of(tables, Sequences.of(model_units(sampler, stream), tables.constants))
            n_units = model.unit_owners.size
            self.unit_part = UnitPart(units_of(release, plain=True), model.units, numbers)
        else:
            model, n_units = _model_below(release.part_of[0], view, stream)
            above, earlier, most = _rows_above(release.part_of[0], view)
            numbers += above
            sums = UnitSums(model.unit_owners, n_units)
            self.unit_part = SharedPart(units_of(release), "", model.units, sums, most, numbers, earlier)
        self.step_part = None
        if tables.steps is not None:
            before = {name: tables.before[name] for name in tables.before if most > 1 or name == tables.order}
            self.step_part = SharedPart(
                steps_of(release, plain_schema(tables.steps)), tables.weight, model.steps,
                UnitSums(model.step_owners, n_units), most * (tables.max_rows - 1), numbers, before,
            )  # fmt: skip
        self.parts = (self.unit_part, *([] if self.step_part is None else [self.step_part]))
        self.release, self.weight = replace(release), release.schema.weight
        self.sums, self._rows = UnitSums(model.owners, n_units), model.rows
        self.tables, self.products = self.unit_part.tables, self.unit_part.products
        self.scores, self.values = [], {}  # of all rows there are none
        kinds, known = plain.of_kind(TabularKind), self.unit_part.columns
        self.columns = {  # where a first row may be missing, a row's cell may not
            name: column_grid(name, kind, known[name].edges, kind.n_levels)
            for name, kind in kinds.items()
            if name in known and name != tables.weight
        }

    @property
    def rows_of_unit(self) -> int:
        """1: a unit is one record."""
        return 1

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


def _rows_above(whole: ReleaseValue, view: BranchView) -> tuple[list[str], dict[str, str], int]:
    """Return what rows above say of their unit.

    Returns:
        The columns that say how many there are on the way; per column of rows, that of the unit's rows before; and the
        most rows above of a unit.
    """
    assert whole.schema.tree is not None
    path = whole.schema.tree.path(view.branch.of)
    numbers = [f.name for f in view.features if f.form == "number" and f.branch in path]
    earlier = {f.column: f.name for f in view.features if f.form == "earlier mean"}
    return numbers, earlier, whole.schema.tree.most_rows(view.branch.of)


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
    return together([part._replace(owners=part.owners + i * _BLOCK) for i, part in enumerate(parts)])


class LinkedQuestions(Questions):
    """Answers about all rows of units, from one release."""

    measured: LinkedMeasurements | SharedPart
    measurements = LinkedMeasurements

    def estimator(self, columns: tuple[str, ...], target: str, *, free: bool = False) -> Estimator:
        """Return rows calibrated to what was measured of some columns: as `Questions.estimator`.

        Raises:
            EstimateError: also of several columns together, where steps of long units do not count whole.
        """
        if not free and len(set(columns)) > 1:
            self._require_pairs(columns)
        return replace(super().estimator(columns, target, free=free), row_note=self._row_note)

    @cached_property
    def _row_note(self) -> str:
        """A sentence on the rows of long units, which do not count, and on whose errors these are."""
        measured, note, part_of = self.measured, "", self.measured.release.part_of
        if part_of is not None and part_of[0].schema.tree is not None and is_nested(measured.release):
            note = (
                f"Errors are those of independent rows of {part_of[0].schema.tree.units!r} with all that lies below. "
            )
        if not isinstance(measured, LinkedMeasurements):
            return note
        most, count = measured.linked.max_rows, measured.linked.count
        if not count:
            return f"{note}Of a unit one row counts. "
        sizes = measured.unit_part.counts(count)
        if sizes is None:
            return f"{note}Of a {'row above' if note else 'unit'} at most {most} rows count. "
        share = float(np.clip(sizes.cells[-1] / measured.unit_part.size, 0.0, 1.0))
        many = f"about {100 * share:.2g} % of the units have so many, and may have had more"
        return f"Of a unit at most {most} rows count: {many}. "

    def estimator_of_sums(self, columns: tuple[str, ...], target: str, what: str, *, named: bool = False) -> Estimator:
        """Return `estimator` of a product of columns, of which some may follow from measured ones by rules."""
        for name in columns:
            self.require_column(name, following=True)
        sums = [self.terms(name) for name in dict.fromkeys(columns)]
        if len(sums) > 1 or any(len(term) > 1 for terms in sums for term in terms):
            self._require_pairs(columns)
        return super().estimator_of_sums(columns, target, what, named=named)

    def require_column(self, name: str, *, following: bool = False) -> None:
        """Refuse what is no column of rows: as `Rows.require_column`.

        Raises:
            ConfigError: also of the number of rows, which units have.
        """
        if name and isinstance(self.measured, LinkedMeasurements) and name == self.measured.linked.count:
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
        shared = [part for part in self.measured.parts if isinstance(part, SharedPart) and part.room < part.most**2]
        if not shared:
            return
        names = " and ".join(map(repr, dict.fromkeys(columns)))
        raise EstimateError(
            f"Expected a question about one column of all rows, got {names} together: how these go together was "
            f"measured of rows that share the bound of {shared[-1].room:.3g} of up to {shared[-1].most} of a unit, and "
            f"not how that differs between units of few and of many rows. {self._cure('a smaller max_rows')}"
        )

    def _cure(self, other: str) -> str:
        """What to do where there is no answer: units of a nested table are known no better."""
        ask = "" if is_nested(self.measured.release) else "Ask release.units (--units) about first rows, or "
        return f"{ask}{'fit' if ask else 'Fit'} with a larger epsilon or {other}."

    def _calibration(self, columns: Sequence[str]) -> Calibration:
        totals = Totals.joined([part.totals(columns) for part in self.measured.parts])
        if is_nested(self.measured.release):  # noise alone is no sign of a model that is off
            totals = totals.above_noise(TOGETHER * self.measured.size)
        calibration = self._calibrated(totals, TOGETHER, columns)
        if calibration.surprise > _LARGEST_SURPRISE:
            names = ", ".join(map(repr, dict.fromkeys(columns)))
            raise EstimateError(
                f"Expected a release whose model of all rows of a unit agrees with its measurements, got one that is "
                f"further off in {names} than their noise explains. {self._cure('more units')}"
            )
        if calibration.surprise > _USUAL_SURPRISE:
            calibration = self._calibrated(totals, _FURTHER, columns)
        return calibration

    def _calibrated(self, totals: Totals, fitted: float, columns: Sequence[str]) -> Calibration:
        return self.measured.calibration(
            totals, fitted, self.measured.sums, columns if is_nested(self.measured.release) else ()
        )


class RowsAboveQuestions(LinkedQuestions):
    """Answers about the rows above those of a nested table, of which a unit has several."""

    @staticmethod
    def measurements(release: ReleaseValue) -> SharedPart:
        """The measurements of these rows, which the questions to the nested table hold."""
        measured = questions_of(release).measured
        assert isinstance(measured, LinkedMeasurements)
        assert isinstance(measured.unit_part, SharedPart)
        return measured.unit_part


def questions_of(release: ReleaseValue) -> Questions:
    """The questions to a release, made once and kept in it: hundreds of megabytes that end with it."""
    if release.schema.tree is not None:
        names = ", ".join(map(repr, release.schema.tree.names))
        raise ConfigError(
            f"Expected a question to one table of the database: release.table(NAME) (--table), one of {names}."
        )
    return kept(release, "_questions", LinkedQuestions if release.schema.linked else Questions)


def questions_of_units(release: ReleaseValue, units: ReleaseValue) -> Questions:
    """The questions to units, or to rows above several of which a unit has; made once and kept.

    Args:
        release: of linked rows.
        units: its part that is of units.
    """
    if not is_nested(release):
        return questions_of(units)
    return kept(release, "_of_units", RowsAboveQuestions)
