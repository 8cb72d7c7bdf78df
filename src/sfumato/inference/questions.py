"""What can be asked of a release of a table: means, shares, counts, cross-tables, quantiles, variances, correlations.

Each is a function of totals over rows, computed on calibrated rows; its error is that of the totals of its influence
values (the delta method). Where the release did not measure what is asked, it says so instead of a number.
Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sfumato.columns.booleans import Boolean
from sfumato.errors import ConfigError, EstimateError, require_open_unit
from sfumato.inference.calibration import Calibration, Target
from sfumato.inference.estimate import Ends, Estimate, Estimates, answered
from sfumato.inference.functions import FEWEST_ROWS, measured_functions
from sfumato.inference.measured import Measured
from sfumato.schema.set_columns import IN

if TYPE_CHECKING:
    from sfumato.release.model import Release

LEAST_KNOWN = 0.6
"""Part of a question that measurements have to say; below `WELL_KNOWN` its standard error is wider."""
LEAST_SEEN = 4.0
"""Deviations of its error that a group's size has to be above 0."""
_MOST_RELATIVE = 0.5  # standard error ÷ value, up to which an interval is made on the logarithm
_MOST_KEPT = 8  # calibrations of columns that are held: each has some hundred numbers for each of the model's rows


@dataclass(frozen=True, slots=True)
class Asked:
    """Calibrated rows of some columns, and how answers are worded."""

    calibration: Calibration
    columns: tuple[str, ...]
    target: Target
    weight: str | None = None

    @property
    def said(self) -> str:
        """What is said of weights before all else; nothing of unweighted rows."""
        return "" if self.weight is None else f"Rows weighted by {self.weight!r}. "

    def estimate(
        self, value: float, influence: np.ndarray, what: str, ends: Callable[[float], Ends] | None = None
    ) -> Estimate:
        """Return an estimate from its influence values, whose total has its error, shape (N,).

        Raises:
            EstimateError: the measurements say too little of it.
        """
        found = self.calibration.variances(influence[:, None])
        require_known(found.known, self.columns, what)
        parts = {"noise": found.noise, "sampling": found.sampling, "unmeasured": found.unmeasured}
        if self.target == "table":
            parts.pop("sampling")
        sizes = {name: float(np.sqrt(max(part[0, 0], 0.0))) for name, part in parts.items()}
        std_error = float(np.sqrt(sum(size**2 for size in sizes.values())))
        return Estimate(
            float(value),
            std_error,
            self.target,
            self.said + rests_on(self.columns, sizes),
            sizes,
            ends and ends(std_error),
        )

    def ratio(
        self, part: np.ndarray, whole: np.ndarray, what: str, ends: Callable[[float], Ends] | None = None
    ) -> Estimate:
        """Return the estimate of one total ÷ another, of functions of the rows, shape (N,).

        Raises:
            EstimateError: the second is not above its noise, or the measurements say too little.
        """
        over = self.positive(whole, what)
        value = float(self.calibration.total(part[:, None])[0]) / over
        return self.estimate(value, (part - value * whole) / over, what, ends)

    def positive(self, whole: np.ndarray, what: str) -> float:
        """Return a number of records that is well above its noise.

        Raises:
            EstimateError: it is not.
        """
        over = float(self.calibration.total(whole[:, None])[0])
        error = float(np.sqrt(self.calibration.variances(whole[:, None]).of("table")[0, 0]))
        if not over > LEAST_SEEN * error:
            raise EstimateError(
                f"Expected enough rows for {what}, got a release whose noise hides how many there are. Ask of a larger "
                "group, or fit with a larger epsilon."
            )
        return over


def _label(value: object) -> str:
    """Return a label as the release names it: truth values are `true` and `false`."""
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


def require_known(known: np.ndarray, columns: tuple[str, ...], what: str) -> None:
    """Refuse what the measurements of these columns do not say.

    Raises:
        EstimateError: they say less than 60 % of it.
    """
    if known.min(initial=1.0) < LEAST_KNOWN:
        raise EstimateError(
            f"Expected a question that the release's measurements answer, got {what}. It measured each column, and how "
            f"two columns go together (three, if one is the target), but of {', '.join(map(repr, columns))} not enough "
            "for this. Ask of fewer columns, name one of them as the target of the fit, or use replicates."
        )


def rests_on(columns: tuple[str, ...], sizes: Mapping[str, float]) -> str:
    """Return the sentence on what an estimate rests on."""
    whole = max(sum(size**2 for size in sizes.values()), 1e-300)
    allowed = "an allowance for what noise hides or nobody measured"
    causes = {"noise": "privacy noise", "sampling": "sampling", "unmeasured": allowed}
    said = ", ".join(f"{100 * size**2 / whole:.0f} % {causes[name]}" for name, size in sizes.items())
    measured = "noisy counts" if len(columns) == 1 else "noisy counts and products"
    return f"Measured: {measured} of {', '.join(columns)}. Its variance is {said}."


class Questions:
    """Answers from one release; calibrated rows of the same columns are made once."""

    def __init__(self, release: Release, *stream: tuple[int, ...]) -> None:
        self.measured = Measured(release, *stream)
        self._made: dict[tuple[object, ...], Calibration] = {}

    def asked(self, columns: tuple[str, ...], target: str) -> Asked:
        """Return rows calibrated to what was measured of some columns.

        Raises:
            ConfigError: a column is not there, or the target is no target.
        """
        if target not in ("population", "table"):
            raise ConfigError(f"Expected target to be 'population' or 'table', got {target=}.")
        known, weight = self.measured.frame.columns, self.measured.weight
        for name in columns:
            if weight is not None and name == weight.column:
                raise ConfigError(
                    f"Expected a column that is released, got {name!r}, the weight: it says what rows count, and no "
                    "question is asked of it."
                )
            if name in self.following:
                raise EstimateError(
                    f"Expected a column that was measured itself, got {name!r}, which follows from others by a rule. "
                    "Ask of these, or compute it from replicates, which hold all columns."
                )
            if name not in known:
                raise ConfigError(f"Expected one of the columns {', '.join(map(repr, known))}, got {name!r}.")
        columns = tuple(dict.fromkeys(columns))
        key = tuple(sorted(columns))
        if key not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.pop(next(iter(self._made)))
            totals = measured_functions(self.measured, {name: self.functions(name) for name in key})
            self._made[key] = Calibration(
                totals, self.measured.size, self.measured.rows_variance, self.measured.weighting
            )
        return Asked(self._made[key], columns, target, None if weight is None else weight.column)  # type: ignore[arg-type]

    @property
    def following(self) -> frozenset[str]:
        """Columns that follow from others by a rule: nothing was measured of them."""
        plan = self.measured.release.schema.rule_plan
        return frozenset() if plan is None else frozenset({**plan.follows, **plan.gaps})

    def functions(self, name: str) -> list[np.ndarray]:
        """Return what is asked of a column first: its values and their squares, or its most frequent labels."""
        column = self.measured.column(name)
        if column.edges is None:
            return []
        middles = np.zeros(column.n_cells)
        inside = (column.edges[:-1] + column.edges[1:] - 1) / 2.0
        middles[: inside.size] = (inside - inside.mean()) / max(float(np.ptp(inside)), 1.0)
        return [middles]

    def numbers(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return a numeric column of the rows, 0 where missing, and where it is not.

        Raises:
            ConfigError: the column is not numeric.
        """
        if not self.measured.column(name).numeric:
            raise ConfigError(f"Expected a column of numbers, got {name!r} of labels.")
        values = self.measured.frame[name].to_numpy(dtype=np.float64)
        there = ~np.isnan(values)
        return np.where(there, values, 0.0), there.astype(np.float64)

    def having(self, condition: Mapping[str, object]) -> np.ndarray:
        """Return which rows have these labels, shape (N,).

        Raises:
            ConfigError: a value is no label of its column.
        """
        found = np.ones(self.measured.classes.size)
        for name, value in condition.items():
            label = _label(value)
            found *= self.levels(name, label)[label]
        return found

    def levels(self, name: str, *wanted: str) -> dict[str, np.ndarray]:
        """Return which rows have each label of a column.

        Raises:
            ConfigError: the column is numeric, or a wanted label is not one of its labels.
        """
        column = self.measured.column(name)
        if column.numeric:
            raise ConfigError(f"Expected a column of labels, got {name!r} of numbers. Ask of its quantiles or mean.")
        labels = self.measured.frame[name]
        known = [str(label) for label in labels.cat.categories]
        for label in wanted:
            if label not in known:
                raise ConfigError(
                    f"Expected one of the labels of {name!r}, {', '.join(map(repr, known))}, got {label!r}."
                )
        codes = labels.cat.codes.to_numpy()
        return {
            label: (codes == place).astype(np.float64)
            for place, label in enumerate(known)
            if label in (wanted or known)
        }

    def mean(self, name: str, by: str | None, target: str) -> Estimate | Estimates:
        """Return the mean of a column of numbers, of its rows that are not missing."""
        asked = self.asked((name,) if by is None else (name, by), target)
        values, there = self.numbers(name)
        return self._grouped(
            by, lambda rows, of: asked.ratio(values * there * rows, there * rows, f"the mean of {name!r}{of}")
        )

    def share(self, condition: Mapping[str, object], by: str | None, target: str) -> Estimate | Estimates:
        """Return the share of the rows that have these labels."""
        condition = self._by_items(condition)
        names = _named(condition)
        asked = self.asked(names if by is None else (*names, by), target)
        found = self.having(condition)
        self._require_rows(found, names)

        def one(rows: np.ndarray, of: str) -> Estimate:
            said = asked.ratio(found * rows, rows, f"the share of {_and(names)}{of}")
            return _bounded(said, 0.0, 1.0)

        return self._grouped(by, one)

    def count(self, condition: Mapping[str, object], target: str) -> Estimate:
        """Return the number of rows that have these labels; of all rows without any."""
        condition = self._by_items(condition)
        names = tuple(condition)
        asked = self.asked(names or (self.measured.names[0],), target)
        found = self.having(condition)
        self._require_rows(found, names)
        value = float(asked.calibration.total(found[:, None])[0])
        return _bounded(
            asked.estimate(value, found, f"the number of rows{' by ' + _and(names) if names else ''}"), 0.0, np.inf
        )

    def _by_items(self, condition: Mapping[str, object]) -> Mapping[str, object]:
        """Return a condition with the columns of truth values that stand for items of sets.

        Raises:
            ConfigError: it names an item that is none of the column's.
        """
        sets = self.measured.release.schema.set_columns
        if not isinstance(condition, Mapping) or not sets.keys() & condition.keys():
            return condition
        found: dict[str, object] = {}
        for name, value in condition.items():
            if name not in sets:
                found[name] = value
                continue
            for item in value if isinstance(value, list | tuple) else [value]:
                found[sets[name].items[sets[name].code_of(item)]] = Boolean().labels[IN]
        return found

    def _require_rows(self, found: np.ndarray, names: tuple[str, ...]) -> None:
        """Refuse labels that the model hardly draws: nothing above noise was measured of them, which is not 0 ± 0.

        Raises:
            EstimateError: they are such.
        """
        if np.count_nonzero(found) < FEWEST_ROWS:
            raise EstimateError(
                f"Expected labels of {_and(names)} that stand out of noise, got some of which the release has hardly a "
                "row. Ask of larger groups, or fit with a larger epsilon."
            )

    def crosstab(self, first: str, second: str, normalize: bool, target: str) -> Estimates:
        """Return how many rows have each pair of labels, or their shares."""
        if first == second:
            raise ConfigError(f"Expected two columns, got {first!r} twice.")
        asked = self.asked((first, second), target)
        whole = np.ones(self.measured.classes.size) if normalize else None
        groups = {
            (one, other): partial(self._cell, asked, these * those, whole, f"the pairs of {first!r} and {second!r}")
            for one, these in self.levels(first).items()
            for other, those in self.levels(second).items()
            if np.count_nonzero(these * those) >= FEWEST_ROWS  # else nothing above noise was measured of them
        }
        found, left_out = answered(groups)
        return Estimates(found, (first, second), left_out)

    def _cell(self, asked: Asked, rows: np.ndarray, whole: np.ndarray | None, what: str) -> Estimate:
        if whole is not None:
            return _bounded(asked.ratio(rows, whole, what), 0.0, 1.0)
        value = float(asked.calibration.total(rows[:, None])[0])
        return _bounded(asked.estimate(value, rows, what), 0.0, np.inf)

    def quantile(self, name: str, q: float, target: str) -> Estimate:
        """Return a quantile: the least value that so large a share of the rows does not exceed (Woodruff 1952)."""
        asked = self.asked((name,), target)
        q = require_open_unit(q=q)
        values, there = self.numbers(name)
        order = np.argsort(np.where(there > 0, values, np.inf), kind="stable")
        over = asked.positive(there, f"the quantiles of {name!r}")
        cumulative = np.maximum.accumulate(np.cumsum((asked.calibration.weights * there)[order])) / over

        def at(share: float) -> float:
            last = int(there.sum()) - 1
            return float(values[order[min(int(np.searchsorted(cumulative, share)), last)]])

        value = at(q)
        below = asked.ratio((values <= value) * there, there, f"a quantile of {name!r}")
        low, high = at(q - below.std_error), at(q + below.std_error)
        scale = (high - low) / 2 / max(below.std_error, 1e-300)
        sizes = {cause: size * scale for cause, size in below.parts.items()}
        return Estimate(
            value, (high - low) / 2, below.target, below.rests_on, sizes,
            lambda z: (at(q - z * below.std_error), at(q + z * below.std_error)),
        )  # fmt: skip

    def variance(self, name: str, by: str | None, target: str) -> Estimate | Estimates:
        """Return the variance of a column of numbers; its interval is on the logarithm, or from 0."""
        asked = self.asked((name,) if by is None else (name, by), target)
        values, there = self.numbers(name)

        def one(rows: np.ndarray, of: str) -> Estimate:
            what = f"the variance of {name!r}{of}"
            whole = there * rows
            middle = float(asked.calibration.total((values * whole)[:, None])[0]) / asked.positive(whole, what)
            squares = (values - middle) ** 2 * whole
            value = asked.ratio(squares, whole, what).value
            return asked.ratio(squares, whole, what, lambda error: _on_log(value, error))

        return self._grouped(by, one)

    def correlation(self, first: str, second: str, target: str) -> Estimate:
        """Return Pearson's correlation of two columns of numbers; its interval is made on Fisher's z."""
        asked = self.asked((first, second), target)
        (x, there), (y, also) = self.numbers(first), self.numbers(second)
        what = f"the correlation of {first!r} and {second!r}"
        both = there * also
        n = asked.positive(both, what)
        weights = asked.calibration.weights * both / n
        x, y = x - weights @ x, y - weights @ y
        vx, vy = float(weights @ x**2), float(weights @ y**2)
        if not (vx > 0 and vy > 0):
            raise EstimateError(
                f"Expected {first!r} and {second!r} to vary, got a column that does not stand out of noise."
            )
        x, y = x / np.sqrt(vx), y / np.sqrt(vy)
        value = float(np.clip(weights @ (x * y), -0.9999, 0.9999))
        influence = both * (x * y - value * (x**2 + y**2) / 2) / n
        return asked.estimate(value, influence, what, lambda error: _on_fisher(value, error))

    def _grouped(self, by: str | None, one: Callable[[np.ndarray, str], Estimate]) -> Estimate | Estimates:
        if by is None:
            return one(np.ones(self.measured.classes.size), "")
        groups = {label: partial(one, rows, f" by {by!r}") for label, rows in self.levels(by).items()}
        found, left_out = answered(groups)
        return Estimates(found, (by,), left_out)


def _named(condition: object) -> tuple[str, ...]:
    if not isinstance(condition, Mapping) or not condition:
        raise ConfigError("Expected labels by column, such as {'sex': 'f'}, got none.")
    return tuple(condition)


def _and(names: tuple[str, ...]) -> str:
    return " and ".join(map(repr, names))


def _bounded(estimate: Estimate, lowest: float, highest: float) -> Estimate:
    """Return an estimate whose interval stays within bounds that the target has."""
    value, error = estimate.value, estimate.std_error

    def ends(z: float) -> tuple[float, float]:
        return max(value - z * error, lowest), min(max(value + z * error, lowest), highest)

    inside = min(max(value, lowest), highest)
    return Estimate(inside, error, estimate.target, estimate.rests_on, estimate.parts, ends)


def _on_log(value: float, std_error: float) -> Ends:
    if std_error > _MOST_RELATIVE * value:  # where noise may be all of it, a factor says nothing
        return lambda z: (max(value - z * std_error, 0.0), max(value + z * std_error, 0.0))
    relative = std_error / value
    return lambda z: (value * np.exp(-z * relative), value * np.exp(z * relative))


def _on_fisher(value: float, std_error: float) -> Ends:
    middle, spread = np.arctanh(value), std_error / (1 - value**2)
    return lambda z: (float(np.tanh(middle - z * spread)), float(np.tanh(middle + z * spread)))
