"""One pass of a statistic over chunks of records: the only way from records to an exact value.

A statistic is a sum over records of bounded contributions. `reduce` returns it as `Exact`, which shows nothing of
itself; only a mechanism opens it, after charging the ledger. Contributions are whole numbers of public steps, so sums
are exact: neither order nor chunks of the records change a bit of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, TypeVar, final, runtime_checkable

import numpy as np

from sfumato.errors import ConfigError, require_positive
from sfumato.io.chunks import Source
from sfumato.schema.schema import Schema

Value = TypeVar("Value")

_PART_FLOATS, _FEWEST_ROWS = 8 << 20, 512
ROWS_AT_ONCE = 1 << 16
"""Most rows that `reduce` hands to a statistic at once: sums of so many contributions are exact in float64."""

Rows = Mapping[str, Any]
"""Coded columns of some records, all of one length: numpy arrays, and `CodedSets` for sets of items."""


class Bounded(Protocol):
    """Bounds of one record's contribution, data units; replace_bound is at most 2·norm_bound."""

    @property
    def name(self) -> str:
        """The sum's name, for messages."""
        ...

    @property
    def norm_bound(self) -> float:
        """Largest ℓ2 norm of one record's contribution."""
        ...

    @property
    def replace_bound(self) -> float:
        """Largest ℓ2 distance between two records' contributions."""
        ...


class Statistic(Bounded, Protocol):
    """A sum over records of bounded contributions.

    A record adds whole numbers, each 1 worth `step`. Sums over 65,536 records stay below 2^53.
    """

    @property
    def step(self) -> float | np.ndarray | None:
        """The worth of 1, data units: one number, or an array that broadcasts to the sum. Public.

        None if records add floats in data units instead, whose sum is not exact.
        """
        ...

    def zero(self) -> np.ndarray:
        """Return the sum over no records, float64, or int64 where sums of so many records may pass 2^53."""
        ...

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add the contributions of some records, whole numbers, to `total`, in place. Total: no record raises."""
        ...


class Compact(Protocol):
    """Counts in whole numbers of which a statistic's sum is a linear map, and which take less work than the sum itself.

    A statistic that has such counts says so by an attribute `compact`.
    """

    def zero(self) -> np.ndarray:
        """Return the counts over no records, float64."""
        ...

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add the counts of some records, whole numbers, to `total`, in place. Total: no record raises."""
        ...

    def expanded(self, total: np.ndarray) -> np.ndarray:
        """Return the statistic's sum of counts, int64 modulo 2^64."""
        ...


class TallyStatistic(Bounded, Protocol[Value]):
    """Counts over records of what has no place in an array."""

    def zero(self) -> Value:
        """Return the counts over no records."""
        ...

    def add(self, total: Value, rows: Rows) -> None:
        """Add the counts of some records to `total`, in place. Total: no record raises."""
        ...


class Records(Protocol):
    """Coded records in chunks, as `reduce` reads them, with a public bound on the records of one unit.

    Records that lie with workers have `summed` as well: see `SummedElsewhere`. Those that count by weights have
    `weighed`: see `WeighedRecords`.
    """

    @property
    def max_rows_per_unit(self) -> int:
        """Most records that one unit contributes."""
        ...

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns."""
        ...


@runtime_checkable
class WeighedRecords(Protocol):
    """Records that may count by weights. No `reduce` of them leaves these out."""

    def weighed(self, statistic: Statistic) -> Statistic:
        """Return what they add to a statistic: each at most what it adds to that one, in the same bounds."""
        ...


@runtime_checkable
class SummedElsewhere(Protocol):
    """Records that workers sum: the same whole numbers as `partial_sum` of all of them, modulo 2^64."""

    def summed(self, statistic: Statistic, width: int | None = None) -> np.ndarray | None:
        """Return the sum of what `partial_sum` adds up, int64; None if these records are summed here.

        Args:
            statistic: what to sum; its records add whole numbers.
            width: as of `InParts`.
        """
        ...


class SplitRecords(Records, Protocol):
    """Records that can be read a part at a time, in other processes: they can be pickled, `over` what can."""

    @property
    def schema(self) -> Schema:
        """Their public description."""
        ...

    @property
    def source(self) -> Source:
        """Where they lie."""
        ...

    @property
    def read_columns(self) -> list[str]:
        """The columns of the source that are read."""
        ...

    def over(self, piece: Source) -> Records:
        """Return the records of a part of the source, or of a copy of one."""
        ...


class Engine(Protocol):
    """Workers that sum: processes of this machine, or a cluster. The sum does not depend on which."""

    def check(self, source: Source) -> None:
        """Refuse data that the workers cannot read; nothing is charged before.

        Raises:
            ConfigError: says what they can read.
        """
        ...

    def summed(self, statistic: Statistic, records: SplitRecords, width: int | None) -> np.ndarray | None:
        """Return the sum over the records as `SummedElsewhere.summed` does.

        Raises:
            EngineError: the workers did not finish.
            DataError: the records cannot be read.
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class InParts:
    """The same records in smaller chunks, for what makes wide vectors of them.

    Attributes:
        records: coded records in chunks.
        width: floats that are made of one record at a time.
    """

    records: Records
    width: int

    @property
    def max_rows_per_unit(self) -> int:
        """Most records that one unit contributes."""
        return self.records.max_rows_per_unit

    def weighed(self, statistic: Statistic) -> Statistic:
        """Return the statistic as the records weigh it."""
        return self.records.weighed(statistic) if isinstance(self.records, WeighedRecords) else statistic

    def coded(self) -> Iterator[Rows]:
        """Yield parts of chunks, of about 64 MiB of floats each."""
        at_once = max(_FEWEST_ROWS, _PART_FLOATS // self.width)
        for rows in self.records.coded():
            yield from _pieces(rows, at_once)

    def summed(self, statistic: Statistic, width: int | None = None) -> np.ndarray | None:
        """Return the sum by workers, where the records have some."""
        if not isinstance(self.records, SummedElsewhere):
            return None
        return self.records.summed(statistic, self.width if width is None else width)


class Sealed(Generic[Value]):
    """An exact value of the records. It shows nothing, cannot be pickled, and has one exit: a mechanism.

    Attributes:
        name: what it is.
        norm_bound: largest ℓ2 norm of what one *unit* contributes to it.
        replace_distance: largest ℓ2 distance between two units' contributions ÷ norm_bound.
        step: what 1 is worth, if it is whole numbers; None if it is 64-bit floats, as sums of gradients are.
        sampling_probability: of the Poisson sample that it is of; None if it is of all records.
    """

    __slots__ = ("__value", "name", "norm_bound", "replace_distance", "sampling_probability", "step")

    def __init__(
        self,
        value: Value,
        *,
        name: str,
        norm_bound: float,
        replace_distance: float,
        step: float | np.ndarray | None = None,
        sampling_probability: float | None = None,
    ) -> None:
        self.__value = value
        self.step, self.sampling_probability = step, sampling_probability
        self.name = name
        self.norm_bound = require_positive(norm_bound=norm_bound)
        self.replace_distance = require_positive(replace_distance=replace_distance)
        if not 1 <= replace_distance <= 2:
            # below 1, units of several records could be further apart than the bound for one record says
            raise ConfigError(f"Expected replace_distance between 1 and 2, got {replace_distance=}.")

    def whole_in_mechanism(self) -> Value:
        """Hand the value as it was summed to a mechanism that has charged the ledger. Nothing else may call this."""
        return self.__value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def __getstate__(self) -> NoReturn:
        return self.__reduce__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is not picklable or copyable: exact values leave through a mechanism only.")

    __array__ = None  # numpy must not look inside either


@final
class Exact(Sealed[np.ndarray]):
    """An exact statistic of the records, an array: whole numbers (int64, modulo 2^64) of a step, or floats."""

    __slots__ = ()

    def open_in_mechanism(self) -> np.ndarray:
        """Hand the exact value, data units, to a mechanism that has charged the ledger. Nothing else may call this."""
        whole = self.whole_in_mechanism()
        return whole if self.step is None else whole * self.step


def reduce(statistic: Statistic, records: Records) -> Exact:
    """Sum a statistic over all records, chunk by chunk.

    A unit that owns up to m records contributes up to m times a record's norm, so the bounds are multiplied by m.

    Args:
        statistic: what to sum.
        records: coded records.

    Returns:
        The exact sum, unprintable.
    """
    if isinstance(records, WeighedRecords):
        statistic = records.weighed(statistic)
    value = None
    if statistic.step is not None and isinstance(records, SummedElsewhere):
        value = records.summed(statistic)
    return finish(statistic, partial_sum(statistic, records) if value is None else value, records)


def sum_of_none(statistic: Statistic, records: Records) -> Exact:
    """Return the sum over no record, with the bounds that `reduce` gives that over these."""
    if isinstance(records, WeighedRecords):
        statistic = records.weighed(statistic)
    return Exact(np.zeros(statistic.zero().shape, dtype=np.int64), **_bounds(statistic, records), step=statistic.step)


def partial_sum(statistic: Statistic, records: Records) -> np.ndarray:
    """Return the sum over some of the records: of their counts where the statistic has such.

    Partial sums of whole numbers add up, modulo 2^64, to that of all records, whatever the parts and their order.

    Returns:
        Whole numbers, int64 (modulo 2^64); floats for a statistic without a step.
    """
    compact: Compact | None = getattr(statistic, "compact", None)
    total = _Total(compact or statistic)
    _add_all(total.add, records)
    return total.value


def finish(statistic: Statistic, value: np.ndarray, records: Records) -> Exact:
    """Seal the sum of all partial sums, with the bounds of a unit."""
    compact: Compact | None = getattr(statistic, "compact", None)
    whole = value if compact is None else compact.expanded(value)
    return Exact(whole, **_bounds(statistic, records), step=statistic.step)


def tally(statistic: TallyStatistic[Value], records: Records) -> Sealed[Value]:
    """Count over all records, chunk by chunk, into what is no array: words that nobody listed have no place in one.

    Args:
        statistic: what to count; a 1 is worth 1.
        records: records in chunks.

    Returns:
        The exact counts, unprintable; bounds as of `reduce`.
    """
    total = statistic.zero()
    _add_all(lambda rows: statistic.add(total, rows), records)
    return Sealed(total, **_bounds(statistic, records), step=1.0)


def _add_all(add: Callable[[Rows], None], records: Records) -> None:
    # a warning of numpy's would say something of a record
    with np.errstate(all="ignore"):
        for rows in records.coded():
            add(rows)


def _bounds(statistic: Bounded, records: Records) -> dict[str, Any]:
    return {
        "name": statistic.name,
        "norm_bound": statistic.norm_bound * records.max_rows_per_unit,
        "replace_distance": statistic.replace_bound / statistic.norm_bound,
    }


class _Total:
    """A sum of whole numbers modulo 2^64: exact within a piece of the rows, as floats, and over pieces, as int64."""

    def __init__(self, statistic: Statistic | Compact) -> None:
        self._statistic = statistic
        empty = statistic.zero()
        self._adds_up = getattr(statistic, "step", 1) is None  # floats, as they are
        self.value = empty if self._adds_up else np.zeros(empty.shape, dtype=np.int64)

    def add(self, rows: Rows) -> None:
        if self._adds_up:
            self._statistic.add(self.value, rows)
            return
        for piece in _pieces(rows, ROWS_AT_ONCE):
            partial = self._statistic.zero()
            self._statistic.add(partial, piece)
            into, flat = self.value.reshape(-1), partial.reshape(-1)
            for start in range(0, flat.size, ROWS_AT_ONCE):  # a part at a time: the array may be large
                part = slice(start, start + ROWS_AT_ONCE)
                into[part] += flat[part].astype(np.int64)


def _pieces(rows: Rows, at_once: int) -> Iterator[Rows]:
    n = len(next(iter(rows.values()))) if rows else 0
    if n <= at_once:
        yield rows
        return
    for start in range(0, n, at_once):
        yield {name: column[start : start + at_once] for name, column in rows.items()}
