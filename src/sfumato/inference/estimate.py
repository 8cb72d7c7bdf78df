"""One estimated number, or several, with what is known of their errors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from sfumato.columns.wall_clock import Resolution
from sfumato.errors import ConfigError, EstimateError, UnknownGroupError, require_choice, require_flag
from sfumato.inference.calibration import Target
from sfumato.inference.joint_errors import HypothesisTest, JointErrors, any_law, deviations
from sfumato.inference.times import Value, figure, length, moment, plain, shown

T = TypeVar("T")
Ends = Callable[[float], tuple[Value, Value]]
"""From a number of standard deviations to the ends of an interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that a release says of its records, or of the population that they were drawn from.

    Attributes:
        value: in the column's unit; a share of 1; a number of records. Of dates a `pandas.Timestamp`.
        std_error: standard deviation of its error, same unit: privacy noise, sampling if the target is the population,
            and an allowance for what noise hides or nobody measured. Of dates a `pandas.Timedelta`.
        target: "population", of which the records are independent draws, or "table", the records themselves.
        rests_on: a sentence on what was measured, and what makes up the error.
        parts: standard errors by cause, "noise", "sampling" and "unmeasured", whose squares add up.
        effective_rows: how many rows a simple random sample of the same rows would need for this error; NaN where that
            is not known.
        influence: of each of the model's rows on the error, shape (N,); None where the estimate is no function of them.
        free_value: before it was moved within bounds that the target has; None where it has none.

    Example:
        >>> estimate = release.mean("age")  # doctest: +SKIP
        >>> estimate.value, estimate.low, estimate.high, estimate.interval(0.9)  # doctest: +SKIP
        (38.5, 38.0, 39.1, (38.1, 39.0))
    """

    value: Value
    std_error: Value
    target: Target
    rests_on: str
    parts: Mapping[str, Value] = field(default_factory=dict)
    ends: Ends | None = field(default=None, repr=False, compare=False)
    effective_rows: float = math.nan
    influence: np.ndarray | None = field(default=None, repr=False, compare=False)
    free_value: Value = field(default=None, repr=False, compare=False)

    @property
    def unbounded(self) -> Value:
        """The value that sums and differences take: without error in the mean, though it may be no possible value."""
        return self.value if self.free_value is None else self.free_value

    def as_moment(self, resolution: Resolution, microseconds: int) -> Estimate:
        """Return an estimate of steps since 1970, of so many microseconds each, as one of a moment."""

        def ends(z: float) -> tuple[pd.Timestamp, pd.Timestamp]:
            low, high = self.ends_at(z)
            return moment(low, resolution), moment(high, resolution)

        return replace(
            self,
            value=moment(self.value, resolution),
            std_error=length(self.std_error, microseconds),
            parts={cause: length(size, microseconds) for cause, size in self.parts.items()},
            ends=ends,
            free_value=moment(self.unbounded, resolution),
        )

    def interval(self, level: float = 0.95) -> tuple[Value, Value]:
        """Return the interval that covers the target so often over releases, and draws of the records.

        Args:
            level: in (0, 1).
        """
        return self.ends_at(deviations(level))

    @property
    def low(self) -> Value:
        """The low end of the 95 % interval."""
        return self.interval()[0]

    @property
    def high(self) -> Value:
        """The high end of the 95 % interval."""
        return self.interval()[1]

    def ends_at(self, z: float) -> tuple[Value, Value]:
        """Return the ends of the interval of so many standard deviations."""
        if self.ends is not None:
            return self.ends(z)
        return self.value - z * self.std_error, self.value + z * self.std_error

    def conf_int(self, level: float = 0.95) -> tuple[Value, Value]:
        """Return `interval`, by the name that statsmodels gives it."""
        return self.interval(level)

    def summary(self, level: float = 0.95) -> str:
        """Return the number with its interval, and what it rests on, as text."""
        low, high = self.interval(level)
        error = f"std_error={shown(self.std_error, 2)}"
        value, low, high = (shown(number, error=self.std_error) for number in (self.value, low, high))
        line = f"Estimate({value}, {error}, {100 * level:g} %: {low} to {high}, {self.target})"
        return f"{line}\n{self.rests_on}"

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return the estimate as plain values: the entries of `estimate --json`, of dates in ISO 8601."""
        low, high = self.interval(level)
        return {
            "value": plain(self.value),
            "std_error": plain(self.std_error),
            "low": plain(low),
            "high": plain(high),
            "level": level,
            "target": self.target,
            "parts": {cause: plain(size) for cause, size in self.parts.items()},
            "effective_rows": self.effective_rows if math.isfinite(self.effective_rows) else None,
            "rests_on": self.rests_on,
        }

    def __repr__(self) -> str:
        return self.summary()

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import LEVEL, estimate_card

        numbers = (self.value, self.std_error, *self.interval(LEVEL))
        return estimate_card(numbers, self.target, self.rests_on)


class GroupedResults(Mapping[Any, T]):
    """Results by group: a mapping that shows itself as a table.

    Attributes:
        left_out: groups that the release does not answer for, and why.
    """

    def __init__(self, results: Mapping[Any, T], left_out: Mapping[Any, str]) -> None:
        self._results, self.left_out = dict(results), dict(left_out)

    def __getitem__(self, key: object) -> T:
        try:
            if key in self._results:
                return self._results[key]
            why = self.left_out.get(key)
        except TypeError:  # no group has such a name
            why = None
        if why is not None:
            raise UnknownGroupError(f"Expected a group with an answer, got {key!r}, which was left out: {why}")
        raise UnknownGroupError(f"Expected one of the groups {', '.join(map(repr, self._results))}, got {key!r}.")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @abstractmethod
    def to_frame(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return the results as a frame with intervals: columns low and high among others.

        Args:
            level: in (0, 1).
            simultaneous: whether all intervals hold at once so often, not each.
        """

    def conf_int(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return the intervals of `to_frame`: columns low and high."""
        return self.to_frame(level, simultaneous=simultaneous)[["low", "high"]]

    @abstractmethod
    def _entries(self, level: float, simultaneous: bool) -> Iterator[dict[str, Any]]:
        """Yield each result as plain values, with intervals as `to_frame` has them."""

    def to_dict(self, level: float = 0.95, *, simultaneous: bool = False) -> dict[str, Any]:
        """Return the results as plain values: what `estimate --json` prints; arguments as `to_frame`."""
        keys = [list(key) if isinstance(key, tuple) else key for key in self]
        entries = self._entries(level, simultaneous)
        return {"groups": [{"group": key, **entry} for key, entry in zip(keys, entries, strict=True)]}

    @abstractmethod
    def summary(self, level: float = 0.95) -> str:
        """Return the results with their intervals, what was left out, and what they rest on, as text."""

    def _omissions(self) -> list[str]:
        """The line that names the groups without an answer, if there are any."""
        return [f"Left out: {', '.join(map(str, self.left_out))}"] if self.left_out else []

    def __repr__(self) -> str:
        return self.summary()


class Estimates(GroupedResults[Estimate]):
    """Estimates by group, or by pair of labels: a mapping that shows itself as a frame.

    Attributes:
        left_out: groups that the release does not answer for, and why.

    Example:
        >>> release.mean("age", by="sex")["f"].std_error  # doctest: +SKIP
        0.21
    """

    def __init__(
        self, estimates: Mapping[Any, Estimate], names: tuple[str, ...], left_out: Mapping[Any, str],
        joint: Callable[[Sequence[Estimate]], JointErrors] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(estimates, left_out)
        self._names, self._joint = names, joint

    def to_frame(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return a row for each estimate: value, std_error, low, high.

        Args:
            level: in (0, 1).
            simultaneous: whether all intervals hold at once so often, by the joint law of their errors, not each.
        """
        z = self._deviations(level, simultaneous)
        rows = []
        for key, estimate in self.items():
            labels = dict(zip(self._names, key if isinstance(key, tuple) else (key,), strict=True))
            low, high = estimate.ends_at(z)
            rows.append({**labels, "value": estimate.value, "std_error": estimate.std_error, "low": low, "high": high})
        return pd.DataFrame(rows).set_index(list(self._names))

    def table(self, entry: Literal["value", "std_error", "low", "high"] = "value", level: float = 0.95) -> pd.DataFrame:
        """Return one entry of the estimates of pairs, the first column's labels down, the second's across.

        Raises:
            ConfigError: these are estimates by one column, or there is no such entry.
        """
        require_choice(("value", "std_error", "low", "high"), entry=entry)
        if len(self._names) != 2:
            raise ConfigError(f"Expected estimates of pairs for a table, got some by {self._names[0]!r}: see to_frame.")
        return self.to_frame(level)[entry].unstack(sort=False)  # type: ignore[return-value]

    def _entries(self, level: float, simultaneous: bool) -> Iterator[dict[str, Any]]:
        z = self._deviations(level, simultaneous)
        for estimate in self.values():
            low, high = map(plain, estimate.ends_at(z))
            yield {**estimate.to_dict(level), "low": low, "high": high}

    def _deviations(self, level: float, simultaneous: bool) -> float:
        """Return the deviations of intervals that hold with this chance, each or all at once."""
        require_flag(simultaneous=simultaneous)
        if not simultaneous:
            return deviations(level)
        if self._joint is None:
            return any_law(level, len(self))
        return self._joint(list(self.values())).deviations(level)

    def difference(self, one: object, other: object) -> Estimate:
        """Return how much larger the estimate of a group is than that of another, with the error of both together.

        Raises:
            UnknownGroupError: there is no answer for one of them.

        Example:
            >>> release.mean("income", by="sex").difference("f", "m").interval()  # doctest: +SKIP
            (-7300.0, -5100.0)
        """
        first, second = self[one], self[other]
        signs = np.array([1.0, -1.0])
        if one == other:
            raise ConfigError(f"Expected two groups, got {one!r} twice.")
        if self._joint is None:  # nothing says how their errors go together: at worst they add up
            parts = {"together": figure(first.std_error) + figure(second.std_error)}
        else:
            parts = self._joint([first, second]).along(signs)
        parts = {cause: _like(first.std_error, size) for cause, size in parts.items()}
        error = _like(first.std_error, float(np.sqrt(sum(figure(part) ** 2 for part in parts.values()))))
        rests = f"{one} less {other}. {self.rests_on}"
        return Estimate(first.unbounded - second.unbounded, error, first.target, rests, parts)

    def homogeneity(self) -> HypothesisTest:
        """Return Wald's test that all groups have the same value: of means one-way analysis of variance.

        Raises:
            ConfigError: there are fewer than two groups, or their errors are not known together.
        """
        if len(self) < 2 or self._joint is None or len(self._names) != 1:
            raise ConfigError(f"Expected estimates of at least two groups of one column, got {len(self)} by others.")
        values = np.array([figure(estimate.unbounded) for estimate in self.values()])
        contrasts = np.column_stack([np.eye(len(self) - 1), -np.ones(len(self) - 1)])
        covariance = self._joint(list(self.values())).covariance
        first = next(iter(self.values()))
        name = self._names[0]
        rest = f", but {', '.join(map(str, self.left_out))}, which noise hides" if self.left_out else ""
        return HypothesisTest.of_zeros(
            contrasts @ values, contrasts @ covariance @ contrasts.T, f"the same for all groups of {name!r}{rest}.",
            first.target, self.rests_on,
        )  # fmt: skip

    @property
    def rests_on(self) -> str:
        """A sentence on what was measured; what makes up each error is in the `parts` of each estimate."""
        return next(iter(self.values())).rests_on.partition(" Its variance")[0]

    def summary(self, level: float = 0.95) -> str:
        """Return the estimates with their intervals, what was left out, and what they rest on, as text."""
        table = self.to_frame(level).to_string(float_format=shown)
        return "\n".join([table, *self._omissions(), self.rests_on])

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import LEVEL, estimates_card

        return estimates_card(self.to_frame(LEVEL), self.left_out, self.rests_on)


class Correlations(Estimates):
    """Correlations of each two of some columns: a mapping from pairs, which shows itself as a matrix."""

    def __init__(
        self, estimates: Mapping[Any, Estimate], left_out: Mapping[Any, str], columns: tuple[str, ...]
    ) -> None:
        super().__init__(estimates, ("first", "second"), left_out)
        self._columns = columns

    @property
    def rests_on(self) -> str:
        """A sentence on what was measured; what makes up each error is in the `parts` of each estimate."""
        return f"Measured: noisy counts and products of {', '.join(self._columns)}, each two together."

    def table(self, entry: Literal["value", "std_error", "low", "high"] = "value", level: float = 0.95) -> pd.DataFrame:
        """Return one entry as a matrix: of a column with itself 1, without error; NaN where there is no answer."""
        require_choice(("value", "std_error", "low", "high"), entry=entry)
        columns, alone = list(self._columns), 0.0 if entry == "std_error" else 1.0
        matrix = pd.DataFrame(np.where(np.eye(len(columns)) > 0, alone, np.nan), index=columns, columns=columns)
        for (first, second), number in self.to_frame(level)[entry].items():  # type: ignore[misc]
            matrix.loc[first, second] = matrix.loc[second, first] = number
        return matrix


def _like(error: Value, size: float) -> Value:
    """Return a standard error of the unit of another: of dates days as a time."""
    return pd.Timedelta(days=size) if isinstance(error, pd.Timedelta) else size


def answers_by_group(groups: Mapping[Any, Callable[[], T]]) -> tuple[dict[Any, T], dict[Any, str]]:
    """Return the answers for groups, and why there is none for others.

    Raises:
        EstimateError: there is an answer for none.
    """
    answers: dict[Any, T] = {}
    left_out: dict[Any, str] = {}
    for group, ask in groups.items():
        try:
            answers[group] = ask()
        except EstimateError as error:
            left_out[group] = str(error)
    if not answers:
        raise EstimateError(next(iter(left_out.values()), "Expected groups to answer for, got none."))
    return answers, left_out
