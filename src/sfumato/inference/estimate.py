"""One estimated number, or several, with what is known of their errors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import pandas as pd
from scipy import special

from sfumato.columns.resolutions import Resolution
from sfumato.errors import ConfigError, EstimateError, UnknownGroupError, require_choice, require_open_unit
from sfumato.inference.calibration import Target
from sfumato.inference.times import Value, length, moment, plain, shown

T = TypeVar("T")
Ends = Callable[[float], tuple[Value, Value]]
"""From a number of standard deviations to the ends of an interval."""


def deviations(level: float) -> float:
    """Return how many standard deviations of a normal law hold this share about their middle.

    Raises:
        ConfigError: the level is not between 0 and 1.
    """
    return float(special.ndtri((1 + require_open_unit(level=level)) / 2))


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

    Example:
        >>> release.mean("age").interval(0.9)  # doctest: +SKIP
        (38.1, 39.0)
    """

    value: Value
    std_error: Value
    target: Target
    rests_on: str
    parts: Mapping[str, Value] = field(default_factory=dict)
    ends: Ends | None = field(default=None, repr=False, compare=False)

    def as_moment(self, resolution: Resolution, microseconds: int) -> Estimate:
        """Return an estimate of steps since 1970, of so many microseconds each, as one of a moment."""

        def ends(z: float) -> tuple[pd.Timestamp, pd.Timestamp]:
            low, high = self._ends(z)
            return moment(low, resolution), moment(high, resolution)

        return replace(
            self,
            value=moment(self.value, resolution),
            std_error=length(self.std_error, microseconds),
            parts={cause: length(size, microseconds) for cause, size in self.parts.items()},
            ends=ends,
        )

    def interval(self, level: float = 0.95) -> tuple[Value, Value]:
        """Return the interval that covers the target so often over releases, and draws of the records.

        Args:
            level: in (0, 1).
        """
        return self._ends(deviations(level))

    def _ends(self, z: float) -> tuple[Value, Value]:
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
            "rests_on": self.rests_on,
        }

    def __repr__(self) -> str:
        return self.summary()

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
    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return the results as a frame with intervals of a level in (0, 1): columns low and high among others."""

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return the intervals of `to_frame`: columns low and high."""
        return self.to_frame(level)[["low", "high"]]

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

    def __init__(self, estimates: Mapping[Any, Estimate], names: tuple[str, ...], left_out: Mapping[Any, str]) -> None:
        super().__init__(estimates, left_out)
        self._names = names

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return a row for each estimate: value, std_error, low, high."""
        rows = []
        for key, estimate in self.items():
            labels = dict(zip(self._names, key if isinstance(key, tuple) else (key,), strict=True))
            low, high = estimate.interval(level)
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

    @property
    def rests_on(self) -> str:
        """A sentence on what was measured; what makes up each error is in the `parts` of each estimate."""
        return next(iter(self.values())).rests_on.partition(" Its variance")[0]

    def summary(self, level: float = 0.95) -> str:
        """Return the estimates with their intervals, what was left out, and what they rest on, as text."""
        table = self.to_frame(level).to_string(float_format="{:.5g}".format)
        return "\n".join([table, *self._omissions(), self.rests_on])

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import LEVEL, estimates_card

        return estimates_card(self.to_frame(LEVEL), self.left_out, self.rests_on)


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
