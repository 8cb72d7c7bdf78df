"""Calibrated rows of a release's columns: what every question about a table is computed on, and what is refused.

Free: uses released values only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from sfumato.columns.bounded import NumericKind
from sfumato.columns.kinds import DateTime
from sfumato.errors import ConfigError, EstimateError, require_choice, require_instance
from sfumato.inference.calibration import FITTED, OF_LABELS, TOGETHER, Calibration
from sfumato.inference.estimate import Estimate, Estimates, answers_by_group
from sfumato.inference.estimated_bounds import EstimatedBounds, counted_for_bounds, estimated_bounds
from sfumato.inference.estimator import Estimator
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.rows import Rows, is_missing, require_together
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.release.model import ReleaseValue

_MOST_WITHIN = 0.01  # of a variance, within the cells that were counted
_PAIR = 2
_ANY_PART = 3.0  # the variance of an even law on [0, 1] is p(1 - p)/3 at p = 1/2, its mean
_MOST_KEPT = 300  # measured functions of calibrations that are held: each is a number for each of the model's rows

AS_CLIPPED = "Of columns as they were clipped to bounds that the fit estimated"
By: TypeAlias = str | Sequence[str] | None
"""Columns of labels whose groups are told apart."""


class CalibratedRows(Rows):
    """The rows of one release's model; calibrated rows of the same columns are made once."""

    measurements: type[TableMeasurements] = TableMeasurements

    def __init__(self, release: ReleaseValue) -> None:
        super().__init__(self.measurements(release))
        self._calibrations: dict[tuple[str, ...], Calibration] = {}
        self._bounds: dict[str, EstimatedBounds | None] = {}
        self._clipped_bounds = cache(partial(estimated_bounds, self.measured.release, clipped=True))

    def estimator(self, columns: tuple[str, ...], target: str, *, free: bool = False) -> Estimator:
        """Return rows calibrated to what was measured of some columns.

        Those of an order's later ends are refused, unless their distances are meant, and two columns that were not
        measured together, unless their sum is: `free`.

        Raises:
            ConfigError: a column is not there, or the target is no target.
            EstimateError: nothing was measured of a column, or of two together.
        """
        require_choice(("population", "table"), target=target)
        for name in columns:
            self.require_column(name, following=free)
        weight = self.measured.weight
        columns = tuple(dict.fromkeys(columns))
        if len(columns) == _PAIR and not free:
            require_together(self.measured, columns, "one of two columns")
        key = tuple(sorted(columns))
        if key not in self._calibrations:
            while sum(calibration.width for calibration in self._calibrations.values()) > _MOST_KEPT:
                self._calibrations.pop(next(iter(self._calibrations)))
            self._calibrations[key] = self._calibration(key)
        name = None if weight is None else weight.column
        products = self.measured.products is not None
        return Estimator(self._calibrations[key], columns, target, name, products)  # type: ignore[arg-type]

    def _calibration(self, columns: Sequence[str]) -> Calibration:
        totals = measured_functions(self.measured, cell_functions(self.measured, columns))
        return self.measured.calibration(totals, self._fitted(columns), columns=columns)

    def _fitted(self, columns: Sequence[str]) -> float:
        """By how much the model may be off in these columns, as in `Calibration`; one of another method by far."""
        several = TOGETHER if any(self.kind(name).is_numeric for name in columns) else OF_LABELS
        return FITTED if len(columns) == 1 and self.measured.products is not None else several

    def estimator_of_sums(self, columns: tuple[str, ...], target: str, what: str, *, named: bool = False) -> Estimator:
        """Return `estimator` of a product of columns, of which some may follow from measured ones by rules.

        Where it was `named` before the fit, it was measured itself.

        Raises:
            ConfigError: as `estimator`.
            EstimateError: what they follow from was not measured together.
        """
        for name in columns:
            self.require_column(name, following=True)
        sums = [self.terms(name) for name in dict.fromkeys(columns)]
        if not named:
            for chosen in itertools.product(*sums):
                require_together(self.measured, frozenset().union(*chosen), what)
        measured_columns = sorted(frozenset().union(*(term for terms in sums for term in terms)))
        estimator = self.estimator(tuple(measured_columns), target, free=True)
        return estimator.named() if named else estimator

    def bounds(self, name: str) -> EstimatedBounds | None:
        """Return the bounds of a column if the fit estimated them.

        Raises:
            EstimateError: too much may lie beyond them, or those of a column that this one follows from.
        """
        if name not in self._bounds:
            if name in self.following:
                for source in sorted(frozenset().union(*self.terms(name))):
                    if source in self.measured.columns and estimated_bounds(self.measured.release, source) is not None:
                        raise EstimateError(
                            f"Expected declared bounds of what {name!r} follows from, got estimated ones of "
                            f"{source!r}: how far off sums of such columns are is not known. Declare lower and upper."
                        )
            self._bounds[name] = estimated_bounds(self.measured.release, name)
        return self._bounds[name]

    def clipped(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the columns whose bounds the fit estimated: values beyond were read as the bound."""
        return tuple(name for name in names if counted_for_bounds(self.measured.release, name) is not None)

    def as_clipped(self, names: Iterable[str], estimator: Estimator) -> Estimator:
        """Return it for answers about columns as they were clipped to estimated bounds, which the answers say.

        Raises:
            EstimateError: nothing but one value stood out of the noise.
        """
        kinds = {name: self.measured.release.schema.columns[name] for name in names if self._clipped_bounds(name)}
        bounds = ", ".join(f"{name!r} {kind.lower} to {kind.upper}" for name, kind in kinds.items())  # type: ignore[attr-defined]
        note = f"{AS_CLIPPED}: {bounds}. " if bounds else ""
        return replace(estimator, row_note=estimator.row_note + note)

    def cells_of(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the cell of each row in a column of numbers, its lowest and its highest value, shape (N,) each.

        Single values that were counted are cells of their own, and so are all of a column that follows from others.
        """
        values, _ = self.numbers(name)
        if name in self.following or name not in self.measured.columns:
            return values, values, values
        column, cells = self.measured.column(name), self.measured.cells(name)
        kind, edges = column.kind, column.edges
        assert isinstance(kind, NumericKind)
        assert edges is not None
        assert column.steps is not None
        inside = np.minimum(cells, edges.size - 2)
        first, last = (column.steps.codes(steps) for steps in (edges[inside], edges[inside + 1] - 1))
        single = self.measured.single(name) > 0
        low, high = (np.where(single, values, kind.decoded(codes)[0]) for codes in (first, last))
        return self.measured.pieces(name), low, high

    def group_share(self, estimator: Estimator, by: By, some: np.ndarray, whole: np.ndarray) -> tuple[float, bool]:
        """Return the share of some of the rows, above 0, and whether they are a group, or weighted."""
        if not group_columns(by):
            return 1.0, self.measured.weight is not None
        part, rows = estimator.calibration.total(np.column_stack([some, whole]))
        return float(np.clip(part / max(rows, 1.0), 1.0 / max(rows, 1.0), 1.0)), True

    def require_fine(self, name: str, estimator: Estimator) -> None:
        """Refuse squares of a column whose cells are wide beside its spread, where nothing else was measured of it."""
        if name not in self.measured.columns or self.measured.products is not None or not self.kind(name).is_numeric:
            return
        values, present = self.numbers(name)
        weights = np.maximum(estimator.calibration.weights, 0.0) * present
        cells = self.measured.cells(name)
        cell_totals = np.maximum(np.bincount(cells, weights), 1e-300)
        means = np.bincount(cells, weights * values) / cell_totals
        within = float(weights @ (values - means[cells]) ** 2)
        mean = float(weights @ values) / max(float(weights.sum()), 1e-300)
        if within > _MOST_WITHIN * float(weights @ (values - mean) ** 2):
            raise EstimateError(
                f"Expected narrower cells of {name!r}, got some that hold {_MOST_WITHIN:.0%} of its variance or more "
                "within them, where the release measured nothing. Ask of its mean or shares, or fit with the method "
                "max-entropy."
            )

    def over_present(self, estimator: Estimator, names: tuple[str, ...], present: np.ndarray | None) -> str:
        """Return the sentence on the rows that are not missing, and which share of all they are where that is asked."""
        some = tuple(name for name in names if self.nullable(name))
        if not some:
            return ""
        part = ""
        if present is not None:
            share = float(estimator.calibration.total(present[:, None])[0]) / estimator.calibration.size
            part = f", about {100 * min(max(share, 0.0), 1.0):.0f} % of all"
        verb = "is" if len(some) == 1 else "are"
        return f"Over the rows where {quoted(some)} {verb} not missing{part}. "

    def of_kind(self, estimate: Estimate, name: str) -> Estimate:
        """Return an estimate in the column's own unit: of dates a moment, with times as errors."""
        kind = self.kind(name)
        return estimate.as_moment(kind.resolution, kind.microseconds) if isinstance(kind, DateTime) else estimate

    def unsplit(self, estimator: Estimator, condition: Mapping[str, object], rows: np.ndarray) -> float:
        """Return by how much the number of some rows with a condition may be off within the cells that spans end in.

        Which part of such a cell lies inside was not counted: it is taken for as unsure as a share that may be anything
        between 0 and 1, and has the model's for its mean.
        """
        weights, variance = np.maximum(estimator.calibration.weights, 0.0) * rows, 0.0
        for name, value in condition.items():
            if is_missing(value) or not self.kind(name).is_numeric:
                continue
            others = self.having({other: part for other, part in condition.items() if other != name})
            cells = self.measured.pieces(name)
            wholes = np.bincount(cells, weights * others)
            parts = np.bincount(cells, weights * others * self.within(name, value))
            variance += float(np.sum(parts * (wholes - parts))) / _ANY_PART
        return float(np.sqrt(variance))

    def grouped(self, estimator: Estimator, by: By, one: Callable[[np.ndarray, str], Estimate]) -> Estimate | Estimates:
        """Return an estimate of all rows, or one of each label's rows, with their errors together.

        Args:
            estimator: which makes them.
            by: columns of labels.
            one: the estimate of some rows, shape (N,), and the words for these.
        """
        names = group_columns(by)
        if not names:
            return one(np.ones(self.measured.n_rows), "")
        labels = [self.levels(name) for name in names]
        groups: dict[object, Callable[[], Estimate]] = {}
        for key in itertools.product(*labels):
            rows = np.prod([own[label] for own, label in zip(labels, key, strict=True)], axis=0)
            groups[key if len(names) > 1 else key[0]] = partial(one, rows, f" by {quoted(names)}")
        estimates, left_out = answers_by_group(groups)
        return Estimates(estimates, names, left_out, estimator.joint)


def group_columns(by: By) -> tuple[str, ...]:
    """Return the columns that groups are told apart by, each once.

    Raises:
        ConfigError: they are no names, or one stands twice.
    """
    require_instance((str, list, tuple, type(None)), "a column of labels, or a list of such", by=by)
    names = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ConfigError(f"Expected by to name columns of labels, each once, got {by!r}.")
    return names


def quoted(names: tuple[str, ...]) -> str:
    """Return names of columns as messages have them."""
    return " and ".join(map(repr, names))
