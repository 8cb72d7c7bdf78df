"""Questions to a release of a table: means, shares, counts, cross-tables, quantiles, variances, correlations.

Each is a function of totals over rows, computed on calibrated rows; its error is that of the totals of its influence
values (the delta method). Where the release did not measure what is asked, it says so instead of a number.
Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NoReturn

import numpy as np

from sfumato.columns.dates import MICROSECONDS
from sfumato.columns.kinds import DateTime
from sfumato.errors import ConfigError, EstimateError, require_choice, require_flag, require_open_unit
from sfumato.inference.calibration import FITTED, STRONG, Calibration
from sfumato.inference.estimate import Estimate, Estimates, answers_by_group
from sfumato.inference.estimated_bounds import EstimatedBounds, estimated_bounds
from sfumato.inference.estimator import Estimator
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.intervals import of_correlation, of_variance, within_bounds
from sfumato.inference.rows import Rows, is_missing
from sfumato.inference.set_sizes import require_items_by, rows_by_counts, set_column
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.inference.together import require_terms_together, require_together
from sfumato.inference.totals import FEWEST_ROWS
from sfumato.release.model import ReleaseValue
from sfumato.schema.set_columns import IN, SetColumn

_NEAREST = 0.9999  # to 1 that an estimated correlation may be
_STRONGEST_FITTED = 0.6  # correlation up to which the model is as near as of any other mean
_MOST_WITHIN = 0.01  # of a variance, within the cells that were counted
_PAIR = 2
_MOST_KEPT = 8  # calibrations of columns that are held: each has some hundred numbers for each of the model's rows


class Questions(Rows):
    """Answers from one release; calibrated rows of the same columns are made once."""

    measurements: type[TableMeasurements] = TableMeasurements

    def __init__(self, release: ReleaseValue) -> None:
        super().__init__(self.measurements(release))
        self._calibrations: dict[tuple[object, ...], Calibration] = {}
        self._bounds: dict[str, EstimatedBounds | None] = {}

    def estimator(
        self, columns: tuple[str, ...], target: str, fitted: float = FITTED, *, free: bool = False
    ) -> Estimator:
        """Return rows calibrated to what was measured of some columns; `fitted` as in `Calibration`.

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
        if self.measured.products is None:  # of another method, whose model may be far off
            fitted = max(fitted, STRONG)
        key = (*sorted(columns), fitted)
        if key not in self._calibrations:
            if len(self._calibrations) >= _MOST_KEPT:
                self._calibrations.pop(next(iter(self._calibrations)))
            self._calibrations[key] = self._calibration(sorted(columns), fitted)
        name = None if weight is None else weight.column
        products = self.measured.products is not None
        return Estimator(self._calibrations[key], columns, target, name, products)  # type: ignore[arg-type]

    def _calibration(self, columns: Sequence[str], fitted: float) -> Calibration:
        totals = measured_functions(self.measured, cell_functions(self.measured, columns))
        return self.measured.calibration(totals, fitted)

    def estimator_of_sums(self, columns: tuple[str, ...], target: str, what: str) -> Estimator:
        """Return `estimator` of a product of columns, of which some may follow from measured ones by rules.

        Raises:
            ConfigError: as `estimator`.
            EstimateError: what they follow from was not measured together.
        """
        for name in columns:
            self.require_column(name, following=True)
        sums = [self.rules.terms(name) for name in dict.fromkeys(columns)]
        require_terms_together(self.measured, sums, what)
        return self.estimator(
            tuple(sorted(frozenset().union(*(term for terms in sums for term in terms)))), target, free=True
        )

    def mean(self, name: str, by: str | None, target: str) -> Estimate | Estimates:
        """Return the mean of a column of numbers, of its rows that are not missing."""
        estimator = self.estimator_of_sums((name,) if by is None else (name, by), target, f"the mean of {name!r}")
        values, present = self.numbers(name)
        bounds = self.bounds(name)

        def one(rows: np.ndarray, of: str) -> Estimate:
            over = self._over(estimator, (name,), None if by else present)
            share, groups = self._group(estimator, by, present * rows, present)
            beyond = bounds and bounds.of_mean(share, groups=groups)
            what = f"the mean of {name!r}{of}"
            estimate = estimator.ratio(values * present * rows, present * rows, what, over=over, beyond=beyond)
            return self._of_kind(estimate, name)

        return self._grouped(by, one)

    def bounds(self, name: str) -> EstimatedBounds | None:
        """Return the bounds of a column if the fit estimated them.

        Raises:
            EstimateError: too much may lie beyond them, or those of a column that this one follows from.
        """
        if name not in self._bounds:
            if name in self.following:
                for source in sorted(frozenset().union(*self.rules.terms(name))):
                    if source in self.measured.columns and estimated_bounds(self.measured.release, source) is not None:
                        raise EstimateError(
                            f"Expected declared bounds of what {name!r} follows from, got estimated ones of "
                            f"{source!r}: how far off sums of such columns are is not known. Declare lower and upper."
                        )
            self._bounds[name] = estimated_bounds(self.measured.release, name)
        return self._bounds[name]

    def _group(self, estimator: Estimator, by: str | None, some: np.ndarray, whole: np.ndarray) -> tuple[float, bool]:
        """Return the share of some of the rows, above 0, and whether they are a group, or weighted."""
        if by is None:
            return 1.0, self.measured.weight is not None
        part, rows = estimator.calibration.total(np.column_stack([some, whole]))
        return float(np.clip(part / max(rows, 1.0), 1.0 / max(rows, 1.0), 1.0)), True

    def require_squares(self, name: str, estimator: Estimator) -> None:
        """Refuse squares of a column (`EstimateError`) if much lies beyond estimated bounds, or within its cells."""
        if not self.kind(name).is_numeric:
            return
        self._require_fine(name, estimator)
        bounds = self.bounds(name)
        if bounds is None:
            return
        values, present = self.numbers(name)
        weights = estimator.calibration.weights * present / estimator.positive(present, f"the squares of {name!r}")
        mean = float(weights @ values)
        bounds.of_variance(mean, float(weights @ (values - mean) ** 2))

    def _require_fine(self, name: str, estimator: Estimator) -> None:
        """Refuse squares of a column whose cells are wide beside its spread, where nothing else was measured of it."""
        if name not in self.measured.columns or self.measured.products is not None:
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

    def share(self, condition: Mapping[str, object], by: str | None, target: str) -> Estimate | Estimates:
        """Return the share of the rows that have these labels."""
        condition = self.condition(condition)
        if not condition:
            raise ConfigError("Expected labels by column, such as {'sex': 'f'}, got none.")
        names = tuple(condition)
        columns = names if by is None else (*names, by)
        estimator = self.estimator_of_sums(columns, target, f"the share of {_and(names)}")
        matches = self.having(condition)
        if (
            by is None
            and len(names) == 1
            and names[0] not in self.following
            and np.count_nonzero(matches) < FEWEST_ROWS
            and is_missing(condition[names[0]])
        ):
            return self._share_counted(estimator, names[0])
        self._require_rows(matches, names)

        def one(rows: np.ndarray, of: str) -> Estimate:
            return within_bounds(estimator.ratio(matches * rows, rows, f"the share of {_and(names)}{of}"), 0.0, 1.0)

        return self._grouped(by, one)

    def count(self, condition: Mapping[str, object] | None, target: str) -> Estimate:
        """Return the number of rows that have these labels; of all rows without any."""
        condition = {} if condition is None else self.condition(condition)
        names = tuple(condition)
        what = f"the number of rows{' by ' + _and(names) if names else ''}"
        estimator = self.estimator_of_sums(names or (self._any_column(),), target, what)
        matches = self.having(condition)
        self._require_rows(matches, names)
        return self._cell(estimator, matches, None, what)

    def _share_counted(self, estimator: Estimator, name: str) -> Estimate:
        """Return the share of missing cells by their noisy count alone, where the model draws hardly any."""
        counts = self.measured.counts(name)
        if counts is None:
            self._refuse_rows((name,))
        size = estimator.calibration.size
        count, error = float(counts.cells[-1]), float(np.sqrt(counts.cell_variance)) / size
        rests = f"{estimator.preface}Measured: a noisy count of {name}. Its variance is 100 % privacy noise."
        return within_bounds(Estimate(count / size, error, estimator.target, rests, {"noise": error}), 0.0, 1.0)

    def _any_column(self) -> str:
        """Return a column that was measured, to ask of all rows."""
        free = set(self.measured.frame.columns) - self.following
        return next(name for name in (*self.measured.names, *self.measured.columns) if name in free)

    def _over(self, estimator: Estimator, names: tuple[str, ...], present: np.ndarray | None) -> str:
        """Return the sentence on the rows that are not missing, and which share of all they are where that is asked."""
        some = tuple(name for name in names if self.nullable(name))
        if not some:
            return ""
        part = ""
        if present is not None:
            share = float(estimator.calibration.total(present[:, None])[0]) / estimator.calibration.size
            part = f", about {100 * min(max(share, 0.0), 1.0):.0f} % of all"
        verb = "is" if len(some) == 1 else "are"
        return f"Over the rows where {_and(some)} {verb} not missing{part}. "

    def _of_kind(self, estimate: Estimate, name: str) -> Estimate:
        """Return an estimate in the column's own unit: of dates a moment, with times as errors."""
        kind = self.kind(name)
        return estimate.as_moment(kind.resolution, kind.microseconds) if isinstance(kind, DateTime) else estimate

    def _require_rows(self, matches: np.ndarray, names: tuple[str, ...]) -> None:
        """Refuse labels that the model hardly draws: nothing above noise was measured of them, which is not 0 ± 0."""
        if np.count_nonzero(matches) < FEWEST_ROWS:
            self._refuse_rows(names)

    def _refuse_rows(self, names: tuple[str, ...]) -> NoReturn:
        raise EstimateError(
            f"Expected cells of {_and(names)} that stand out of noise, got some of which the release has hardly a "
            "row. Ask of larger groups, or fit with a larger epsilon."
        )

    def crosstab(self, first: str, second: str, normalize: bool, target: str) -> Estimates:
        """Return how many rows have each pair of labels, or their shares."""
        require_flag(normalize=normalize)
        estimator = self.estimator((first, second), target)
        if first == second:
            raise ConfigError(f"Expected two columns, got {first!r} twice.")
        whole = np.ones(self.measured.n_rows) if normalize else None
        groups = {
            (one, other): partial(self._cell, estimator, these * those, whole, f"the pairs of {first!r} and {second!r}")
            for one, these in self.levels(first).items()
            for other, those in self.levels(second).items()
            if np.count_nonzero(these * those) >= FEWEST_ROWS  # else nothing above noise was measured of them
        }
        estimates, left_out = answers_by_group(groups)
        return Estimates(estimates, (first, second), left_out)

    def _cell(self, estimator: Estimator, rows: np.ndarray, whole: np.ndarray | None, what: str) -> Estimate:
        """Return the number of some rows, or their share of a whole."""
        if whole is not None:
            return within_bounds(estimator.ratio(rows, whole, what), 0.0, 1.0)
        value = float(estimator.calibration.total(rows[:, None])[0])
        return within_bounds(estimator.estimate(value, rows, what), 0.0, np.inf)

    def quantile(self, name: str, q: float, target: str) -> Estimate:
        """Return a quantile: the least value that so large a share of the rows does not exceed (Woodruff 1952)."""
        estimator = self.estimator((name,), target)
        q, bounds = require_open_unit(q=q), self.bounds(name)
        if bounds is not None:
            bounds.require_within(q)
        values, present = self.numbers(name)
        order = np.argsort(np.where(present > 0, values, np.inf), kind="stable")
        over = estimator.positive(present, f"the quantiles of {name!r}")
        cumulative = np.maximum.accumulate(np.cumsum((estimator.calibration.weights * present)[order])) / over

        def at(share: float) -> float:
            last = int(present.sum()) - 1
            return float(values[order[min(int(np.searchsorted(cumulative, share)), last)]])

        value = at(q)
        over_rows = self._over(estimator, (name,), present)
        below = estimator.ratio((values <= value) * present, present, f"a quantile of {name!r}", over=over_rows)
        low, high = at(q - below.std_error), at(q + below.std_error)
        scale = (high - low) / 2 / max(below.std_error, 1e-300)
        sizes = {cause: size * scale for cause, size in below.parts.items()}
        estimate = Estimate(
            value, (high - low) / 2, below.target, below.rests_on, sizes,
            lambda z: (at(q - z * below.std_error), at(q + z * below.std_error)),
        )  # fmt: skip
        return self._of_kind(estimate, name)

    def variance(self, name: str, by: str | None, target: str) -> Estimate | Estimates:
        """Return the variance of a column of numbers; its interval is on the logarithm, or from 0."""
        estimator = self.estimator((name,) if by is None else (name, by), target)
        self._require_fine(name, estimator)
        values, present = self.numbers(name)
        kind, bounds = self.measured.column(name).kind, self.bounds(name)
        unit = ""
        if isinstance(kind, DateTime):
            values, unit = values * (kind.microseconds / MICROSECONDS["day"]), "In squares of days. "

        def one(rows: np.ndarray, of: str) -> Estimate:
            what = f"the variance of {name!r}{of}"
            whole = present * rows
            middle = float(estimator.calibration.total((values * whole)[:, None])[0]) / estimator.positive(whole, what)
            squares = (values - middle) ** 2 * whole
            value = estimator.ratio(squares, whole, what).value
            share, groups = self._group(estimator, by, whole, present)
            beyond = bounds and bounds.of_variance(middle, value, share, groups=groups)
            value += beyond.value if beyond else 0.0
            over = unit + self._over(estimator, (name,), None if by else present)
            return estimator.ratio(squares, whole, what, lambda parts: of_variance(value, parts), over, beyond)

        return self._grouped(by, one)

    def correlation(self, first: str, second: str, target: str) -> Estimate:
        """Return Pearson's correlation of two columns of numbers; its interval is between -1 and 1.

        The model is too weak of a strong one: there its word counts for less, and that of the measurements for more.
        """
        estimate = self._correlation(first, second, self.estimator((first, second), target))
        if abs(estimate.value) < _STRONGEST_FITTED:
            return estimate
        return self._correlation(first, second, self.estimator((first, second), target, STRONG))

    def _correlation(self, first: str, second: str, estimator: Estimator) -> Estimate:
        for name in (first, second):
            self.require_squares(name, estimator)
        (x, first_present), (y, also) = self.numbers(first), self.numbers(second)
        what = f"the correlation of {first!r} and {second!r}"
        both = first_present * also
        n = estimator.positive(both, what)
        weights = estimator.calibration.weights * both / n
        x, y = x - weights @ x, y - weights @ y
        vx, vy = float(weights @ x**2), float(weights @ y**2)
        if not (vx > 0 and vy > 0):
            raise EstimateError(
                f"Expected {first!r} and {second!r} to vary, got a column that does not stand out of noise."
            )
        x, y = x / np.sqrt(vx), y / np.sqrt(vy)
        value = float(np.clip(weights @ (x * y), -_NEAREST, _NEAREST))
        influence = both * (x * y - value * (x**2 + y**2) / 2) / n
        over = self._over(estimator, (first, second), both)
        # near 1 hardly anything is left of the influence, and of that within cells: what has to be known is each moment
        moments = both[:, None] * np.column_stack([x * y, x**2, y**2]) / n
        estimate = estimator.estimate(value, influence, what, lambda parts: of_correlation(value, parts), over, moments)
        if estimate.std_error > 1:  # a variance in its denominator is no more than noise
            raise EstimateError(
                f"Expected {first!r} and {second!r} to vary, got a column that does not stand out of noise."
            )
        return estimate

    def set_size(self, name: str, by: str | None, target: str) -> Estimate | Estimates:
        """Return the mean number of items of a column of sets."""
        column, measured = set_column(self.measured, name), self.measured
        for item in column.items:
            self.require_column(item)
        if by is None:
            rows_of = self._rows_of_sizes(column, target)
        else:
            self.require_column(by)
            require_items_by(measured, column, by)
            rows_of = self.estimator((*column.items, by), target)
        size = np.stack([measured.codes[item] == IN for item in column.items]).sum(axis=0, dtype=np.float64)
        longest = column.kind.longest
        over = f"Of a set the first {longest} items count. " if column.kind.max_length < column.kind.size else ""

        def one(rows: np.ndarray, of: str) -> Estimate:
            estimate = rows_of.ratio(size * rows, rows, f"the mean size of {name!r}{of}", over=over)
            return within_bounds(estimate, 0.0, float(longest))

        return self._grouped(by, one)

    def _rows_of_sizes(self, column: SetColumn, target: str) -> Estimator:
        """Return rows calibrated to what was measured of each item: of their sum no pairs are asked."""
        return rows_by_counts(self.measured, column, target)

    def _grouped(self, by: str | None, one: Callable[[np.ndarray, str], Estimate]) -> Estimate | Estimates:
        if by is None:
            return one(np.ones(self.measured.n_rows), "")
        groups = {label: partial(one, rows, f" by {by!r}") for label, rows in self.levels(by).items()}
        estimates, left_out = answers_by_group(groups)
        return Estimates(estimates, (by,), left_out)


def _and(names: tuple[str, ...]) -> str:
    return " and ".join(map(repr, names))
