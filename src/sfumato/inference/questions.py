"""Questions to a release of a table: means, shares, counts, cross-tables, quantiles, variances, correlations.

Each is a function of totals over rows, computed on calibrated rows; its error is that of the totals of its influence
values (the delta method). Where the release did not measure what is asked, it says so instead of a number.
Free: uses released values only.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn, cast

import numpy as np

from sfumato.columns.dates import MICROSECONDS
from sfumato.columns.kinds import DateTime
from sfumato.errors import ConfigError, EstimateError, require_choice, require_flag, require_instance, require_open_unit
from sfumato.inference.calibrated_rows import By, CalibratedRows, group_columns, quoted
from sfumato.inference.calibration import TOGETHER, Target
from sfumato.inference.estimate import Correlations, Estimate, Estimates, answers_by_group
from sfumato.inference.estimator import Estimator, require_few_items, set_column
from sfumato.inference.intervals import most_variance, of_correlation, of_variance, possible_range, within_bounds
from sfumato.inference.joint_errors import HypothesisTest
from sfumato.inference.noisy_totals import FEWEST_ROWS, Totals, tables_of
from sfumato.inference.rows import is_missing, require_together
from sfumato.inference.times import Value
from sfumato.schema.set_columns import IN, SetColumn

_NEAREST = 0.9999  # to 1 that an estimated correlation may be
_UNSPLIT = "Of a cell that a span ends in, which part lies inside was not counted. "


class Questions(CalibratedRows):
    """Answers from one release."""

    def mean(self, name: str, by: By, target: str) -> Estimate | Estimates:
        """Return the mean of a column of numbers, of its rows that are not missing."""
        groups = group_columns(by)
        named = any(scores.of_mean(name, groups) for scores in self.measured.scores)
        estimator = self.estimator_of_sums((name, *groups), target, f"the mean of {name!r}", named=named)
        values, present = self.numbers(name)
        bounds = self.bounds(name)
        ends = possible_range(self.kind(name), declared=name not in self.following and bounds is None)

        def one(rows: np.ndarray, of: str) -> Estimate:
            over = self.over_present(estimator, (name,), None if groups else present)
            share, part = self.group_share(estimator, by, present * rows, present)
            beyond = bounds and bounds.of_mean(share, groups=part)
            what = f"the mean of {name!r}{of}"
            self._require_spread(estimator, values[present * rows > 0], what)
            estimate = estimator.ratio(values * present * rows, present * rows, what, over=over, beyond=beyond)
            return self.of_kind(within_bounds(estimate, *ends), name)

        return self.grouped(estimator, by, one)

    def share(self, condition: Mapping[str, object], by: By, target: str) -> Estimate | Estimates:
        """Return the share of the rows that have these labels."""
        condition = self.condition(condition)
        if not condition:
            raise ConfigError("Expected labels by column, such as {'sex': 'f'}, got none.")
        names, groups = tuple(condition), group_columns(by)
        estimator = self.estimator_of_sums((*names, *groups), target, f"the share of {quoted(names)}")
        matches, labelled = self.having(condition), self.labelled(condition)
        if (
            not groups
            and len(names) == 1
            and names[0] not in self.following
            and np.count_nonzero(matches) < FEWEST_ROWS
            and is_missing(condition[names[0]])
        ):
            return self._share_counted(estimator, names[0])
        self._require_rows(matches, names)

        def one(rows: np.ndarray, of: str) -> Estimate:
            rows = rows * labelled
            unsaid, what = self.unsplit(estimator, condition, rows), f"the share of {quoted(names)}{of}"
            over = _UNSPLIT if unsaid else ""
            self._require_spread(estimator, matches[rows > 0], what)
            return within_bounds(estimator.ratio(matches * rows, rows, what, over=over, unsaid=unsaid), 0.0, 1.0)

        return self.grouped(estimator, by, one)

    def count(self, condition: Mapping[str, object] | None, target: str) -> Estimate:
        """Return the number of rows that have these labels; of all rows without any."""
        condition = {} if condition is None else self.condition(condition)
        names = tuple(condition)
        what = f"the number of rows{' by ' + quoted(names) if names else ''}"
        free = set(self.measured.frame.columns) - self.following  # of all rows any column that was measured will do
        own = names or (next(n for n in (*self.measured.names, *self.measured.columns) if n in free),)
        estimator = self.estimator_of_sums(own, target, what)
        matches = self.having(condition)
        self._require_rows(matches, names)
        unsaid = self.unsplit(estimator, condition, np.ones_like(matches))
        return self._cell(estimator, matches, None, what, unsaid)

    def _share_counted(self, estimator: Estimator, name: str) -> Estimate:
        """Return the share of missing cells by their noisy count alone, where the model draws hardly any."""
        counts = self.measured.counts(name)
        if counts is None:
            self._refuse_rows((name,))
        size = estimator.calibration.size
        count, error = float(counts.cells[-1]), float(np.sqrt(counts.cell_variance)) / size
        rests = f"{estimator.preface}Measured: a noisy count of {name}. Its variance is 100 % privacy noise."
        return within_bounds(Estimate(count / size, error, estimator.target, rests, {"noise": error}), 0.0, 1.0)

    def _require_rows(self, matches: np.ndarray, names: tuple[str, ...]) -> None:
        """Refuse labels that the model hardly draws: nothing above noise was measured of them, which is not 0 ± 0."""
        if np.count_nonzero(matches) < FEWEST_ROWS:
            self._refuse_rows(names)

    def _require_spread(self, estimator: Estimator, values: np.ndarray, what: str) -> None:
        """Refuse a noisy answer where all rows of the model are alike: noise hid what else there is, and none is left.

        Args:
            estimator: of the answer.
            values: of the rows that it is of.
            what: is asked.
        """
        if estimator.calibration.noisy and values.size and np.ptp(values) == 0:
            raise EstimateError(
                f"Expected rows that differ for {what}, got a release in which noise hides all but one value. Ask of "
                "larger groups, or fit with a larger epsilon."
            )

    def _refuse_rows(self, names: tuple[str, ...]) -> NoReturn:
        raise EstimateError(
            f"Expected cells of {quoted(names)} that stand out of noise, got some of which the release has hardly a "
            "row. Ask of larger groups, or fit with a larger epsilon."
        )

    def crosstab(self, first: str, second: str, normalize: bool, target: str) -> Estimates:
        """Return how many rows have each pair of labels, or their shares."""
        require_flag(normalize=normalize)
        estimator = self.estimator((first, second), target)
        if first == second:
            raise ConfigError(f"Expected two columns, got {first!r} twice.")
        whole = self.labelled((first, second)) if normalize else None
        groups = {
            (one, other): partial(self._cell, estimator, these * those, whole, f"the pairs of {first!r} and {second!r}")
            for one, these in self.levels(first).items()
            for other, those in self.levels(second).items()
            if np.count_nonzero(these * those) >= FEWEST_ROWS  # else nothing above noise was measured of them
        }
        estimates, left_out = answers_by_group(groups)
        return Estimates(estimates, (first, second), left_out, estimator.joint)

    def _cell(
        self, estimator: Estimator, rows: np.ndarray, whole: np.ndarray | None, what: str, unsaid: float = 0.0
    ) -> Estimate:
        """Return the number of some rows, or their share of a whole."""
        if whole is not None:
            return within_bounds(estimator.ratio(rows, whole, what), 0.0, 1.0)
        value = float(estimator.calibration.total(rows[:, None])[0])
        over = _UNSPLIT if unsaid else ""
        return within_bounds(estimator.estimate(value, rows, what, over=over, unsaid=unsaid), 0.0, np.inf)

    def quantile(self, name: str, q: float, by: By, target: str) -> Estimate | Estimates:
        """Return a quantile: the least value that so large a share of the rows does not exceed (Woodruff 1952)."""
        groups = group_columns(by)
        for column in (name, *groups):
            self.require_column(column)
        require_together(self.measured, (name, *groups), f"a quantile of {name!r}")
        estimator = self.as_clipped((name,), self.estimator((name, *groups), target))
        q = require_open_unit(q=q)
        values, present = self.numbers(name)
        cells, lowest, highest = self.cells_of(name)
        order = np.argsort(np.where(present > 0, values, np.inf), kind="stable")

        def one(rows: np.ndarray, of: str) -> Estimate:
            some, what = present * rows, f"a quantile of {name!r}{of}"
            inside = order[some[order] > 0]
            self._require_spread(estimator, values[inside], what)
            over = estimator.positive(some, what)
            cumulative = np.maximum.accumulate(np.cumsum(estimator.calibration.weights[inside])) / over

            def row_at(share: float) -> int:
                return inside[min(int(np.searchsorted(cumulative, share)), inside.size - 1)]

            def ends(z: float) -> tuple[Value, Value]:
                """Where the share may be, and from there to the end of the cell: nothing was measured inside."""
                return float(lowest[row_at(q - z * below.std_error)]), float(highest[row_at(q + z * below.std_error)])

            value = float(values[row_at(q)])
            over_rows = self.over_present(estimator, (name,), None if groups else present)
            same, up_to = cells == cells[row_at(q)], values <= value
            share = float(np.average(up_to[same], weights=np.maximum(some * estimator.calibration.weights, 0)[same]))
            below = estimator.ratio(np.where(same, share, up_to) * some, some, what, over=over_rows)
            low, high = ends(1.0)
            scale = (high - low) / 2 / max(below.std_error, 1e-300)
            estimate = replace(
                below, value=value, std_error=(high - low) / 2, ends=ends,
                parts={cause: size * scale for cause, size in below.parts.items()},
                influence=None if below.influence is None else -scale * below.influence,
            )  # fmt: skip
            return self.of_kind(estimate, name)

        return self.grouped(estimator, by, one)

    def variance(self, name: str, by: str | None, target: str) -> Estimate | Estimates:
        """Return the variance of a column of numbers; its interval is on the logarithm, or from 0."""
        estimator = self.as_clipped((name,), self.estimator((name,) if by is None else (name, by), target))
        self.require_fine(name, estimator)
        values, present = self.numbers(name)
        kind, unit = self.measured.column(name).kind, ""
        lowest, highest = possible_range(kind, declared=True)
        if isinstance(kind, DateTime):
            days, unit = kind.microseconds / MICROSECONDS["day"], "In squares of days. "
            values, lowest, highest = values * days, lowest * days, highest * days

        def one(rows: np.ndarray, of: str) -> Estimate:
            what = f"the variance of {name!r}{of}"
            whole = present * rows
            self._require_spread(estimator, values[whole > 0], what)
            middle = float(estimator.calibration.total((values * whole)[:, None])[0]) / estimator.positive(whole, what)
            squares = (values - middle) ** 2 * whole
            value = estimator.ratio(squares, whole, what).value
            over = unit + self.over_present(estimator, (name,), None if by else present)
            estimate = estimator.ratio(squares, whole, what, lambda parts: of_variance(value, parts), over)
            return within_bounds(estimate, 0.0, most_variance(lowest, highest))

        return self.grouped(estimator, by, one)

    def correlation(self, first: str, second: str, target: str) -> Estimate:
        """Return Pearson's correlation of two columns of numbers; its interval is between -1 and 1."""
        estimator = self.as_clipped((first, second), self.estimator((first, second), target))
        for name in (first, second):
            self.require_fine(name, estimator)
        (x, first_present), (y, also) = self.numbers(first), self.numbers(second)
        what = f"the correlation of {first!r} and {second!r}"
        both = first_present * also
        n = estimator.positive(both, what)
        weights = estimator.calibration.weights * both / n
        x, y = x - weights @ x, y - weights @ y
        vx, vy = float(weights @ x**2), float(weights @ y**2)
        constant = EstimateError(
            f"Expected {first!r} and {second!r} to vary, got a column that does not stand out of noise."
        )
        if not (vx > 0 and vy > 0):
            raise constant
        x, y = x / np.sqrt(vx), y / np.sqrt(vy)
        value = float(np.clip(weights @ (x * y), -_NEAREST, _NEAREST))
        influence = both * (x * y - value * (x**2 + y**2) / 2) / n
        over = self.over_present(estimator, (first, second), both)
        # near 1 hardly anything is left of the influence, and of that within cells: what has to be known is each moment
        moments = both[:, None] * np.column_stack([x * y, x**2, y**2]) / n
        estimate = estimator.estimate(value, influence, what, lambda parts: of_correlation(value, parts), over, moments)
        if estimate.std_error > 1:  # a variance in its denominator is no more than noise
            raise constant
        return estimate

    def correlations(self, columns: Sequence[str], target: str) -> Correlations:
        """Return the correlation of each two of some columns of numbers."""
        names = [] if isinstance(columns, str) or not isinstance(columns, Sequence) else list(columns)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < max(len(names), 2):
            raise ConfigError("Expected at least two columns, each once, such as ['age', 'income'].")
        pairs = {pair: partial(self.correlation, *pair, target) for pair in itertools.combinations(columns, 2)}
        return Correlations(*answers_by_group(pairs), tuple(columns))

    def anova(self, column: str, labels: str, target: str) -> HypothesisTest:
        """Return the test that the mean of a number is the same for all labels."""
        require_instance(str, "the name of a column of labels", labels=labels)
        means = self.mean(column, labels, target)
        assert isinstance(means, Estimates)
        test = means.homogeneity()
        return replace(test, hypothesis=f"Of the mean of {column!r}: {test.hypothesis}")

    def set_size(self, name: str, by: str | None, target: str) -> Estimate | Estimates:
        """Return the mean number of items of a column of sets."""
        column, measured = set_column(self.measured, name), self.measured
        for item in column.items:
            self.require_column(item)
        if by is None:
            rows_of = self._rows_of_sizes(column, target)
        else:
            self.require_column(by)
            require_few_items(column)
            for item in column.items:
                require_together(measured, (item, by), f"the mean size of {column.name!r} by {by!r}")
            rows_of = self.estimator((*column.items, by), target)
        size = np.stack([measured.codes[item] == IN for item in column.items]).sum(axis=0, dtype=np.float64)
        longest = column.kind.longest
        over = f"Of a set the first {longest} items count. " if column.kind.max_length < column.kind.size else ""

        def one(rows: np.ndarray, of: str) -> Estimate:
            estimate = rows_of.ratio(size * rows, rows, f"the mean size of {name!r}{of}", over=over)
            return within_bounds(estimate, 0.0, float(longest))

        return self.grouped(rows_of, by, one)

    def _rows_of_sizes(self, column: SetColumn, target: str) -> Estimator:
        """Return rows calibrated to what was measured of each item: of their sum no pairs are asked."""
        require_choice(("population", "table"), target=target)
        parts = [
            table.totals(self.measured.base, self.measured.n_rows)
            for item in column.items
            for table in tables_of(self.measured.tables, {item})
            if table.columns
        ]
        calibration = self.measured.calibration(Totals.joined(parts).with_rows(), TOGETHER)
        weight = None if self.measured.weight is None else self.measured.weight.column
        return Estimator(calibration, (column.name,), cast("Target", target), weight, products=False)
