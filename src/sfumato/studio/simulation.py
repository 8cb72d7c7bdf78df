"""A simulation of a budget on a table of this schema: invented rows, fitted and compared. Reads no record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sfumato.columns.booleans import Boolean
from sfumato.columns.kind import ColumnKind, TabularKind
from sfumato.columns.levels import Categorical, LevelKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.columns.open import Open
from sfumato.errors import ConfigError
from sfumato.evaluate.coded_tables import CodedTable
from sfumato.evaluate.fidelity import mean_distance, n_bins, read_bins, set_distance
from sfumato.maths.streams import public_stream
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.privacy.certificate import Description
from sfumato.schema.schema import Schema

MOST_ROWS = 50_000
"""Invented rows are no more than this, so that nobody waits long; with more rows the same ε costs less accuracy."""

MOST_COLUMNS = 60
_LABELS = Categorical(categories=tuple("abcdefghij"))
_STAND_INS: Mapping[str, ColumnKind] = {
    "integer": Integer(lower=0, upper=99), "continuous": Continuous(lower=0, upper=100), "boolean": Boolean(),
    "datetime": Open(kind="datetime").between(2000, 2020),
}  # fmt: skip
_FOUND_FIRST = ("count", "kinds of columns", "discovery")
_BARS = 10
_TOGETHER = 0.5  # what the invented columns share of one hidden factor: they hang together, so that pairs can be lost
_MISSING = 0.05


class Simulated(NamedTuple):
    """A column before and after.

    Attributes:
        name: of the column.
        error: total variation between invented and synthetic rows: the share of rows that would have to move.
        before: invented shares, as percentages of the tallest of both.
        after: synthetic ones.
    """

    name: str
    error: float
    before: tuple[float, ...]
    after: tuple[float, ...]


class Simulation(NamedTuple):
    """The outcome of a simulation.

    Attributes:
        rows: how many were invented.
        columns: each one's errors.
        pairs: mean total variation of two columns together; None of a single column.
    """

    rows: int
    columns: tuple[Simulated, ...]
    pairs: float | None


def with_stand_ins(schema: Schema) -> Schema:
    """Return a schema with plain stand-ins for columns that are left open: ten labels, or numbers between bounds."""
    stand_ins = {name: _STAND_INS.get(kind.kind, _LABELS) for name, kind in schema.of_kind(Open).items()}
    return replace(schema, columns={**schema.columns, **stand_ins})


def after_discovery(description: Description) -> float:
    """Return the ε that is left for marginals and moments, about: that of the squared budget which they have."""
    first = sum(stage.share for stage in description.stages if stage.name in _FOUND_FIRST)
    return (description.epsilon or 0.0) * float(np.sqrt(max(1.0 - first, 0.0)))


def simulate(schema: Schema, *, epsilon: float, delta: float | None, rows: int, target: str | None) -> Simulation:
    """Fit invented rows with the budget, and compare the sample with them.

    Labels fall off as 1 / rank, numbers lie about the middle of their bounds, and all columns hang together through one
    hidden factor. Units, weights and rules are left out. The seed is fixed: the same question gets the same answer.

    Args:
        schema: what is public; nothing in it may be left to be discovered.
        epsilon: in nats.
        delta: chance of failure; None takes the method's.
        rows: the public number of rows; at most `MOST_ROWS` are invented.
        target: the column whose classes are modelled apart.

    Raises:
        ConfigError: the schema has more than `MOST_COLUMNS` columns, none, or columns that no table has.
    """
    kinds = {name: kind for name, kind in schema.of_kind(TabularKind).items() if name in schema.released}
    if not kinds or len(kinds) < len(schema.released) or len(kinds) > MOST_COLUMNS:
        raise ConfigError(
            f"Expected 1 to {MOST_COLUMNS} columns of labels and numbers to simulate. Use `sfumato plan` for others."
        )
    plain, n = Schema(columns=kinds, rows=min(rows, MOST_ROWS)), min(rows, MOST_ROWS)
    table = _invent_rows(kinds, n)
    method = MaxEntropy(epsilon=epsilon, delta=delta)
    synthetic = method.fit(table, schema=plain, target=target, seed=0).sample(n, seed=0)
    bins = read_bins(table, plain), read_bins(synthetic, plain)
    columns = tuple(_compare(name, kind, bins, plain) for name, kind in kinds.items())
    return Simulation(n, columns, mean_distance(*bins, schema=plain, k=2) if len(kinds) > 1 else None)


def _compare(name: str, kind: TabularKind, bins: tuple[CodedTable, CodedTable], schema: Schema) -> Simulated:
    shares = [np.bincount(table.columns[name], minlength=n_bins(kind)) / table.n_rows for table in bins]
    used = np.flatnonzero(shares[0] + shares[1])
    # neighbouring bins in one bar, so that every column has few
    parts = np.array_split(used, min(_BARS, used.size))
    first, second = (np.array([share[part].sum() for part in parts]) for share in shares)
    top = max(first.max(), second.max())
    before, after = (tuple((100 * some / top).tolist()) for some in (first, second))
    return Simulated(name, set_distance(*bins, [name], schema), before, after)


def _invent_rows(kinds: Mapping[str, TabularKind], n: int) -> pa.Table:
    factor = public_stream(1).standard_normal(n)
    columns = {}
    for index, (name, kind) in enumerate(kinds.items()):
        stream = public_stream(1, index + 1)
        score = _TOGETHER * factor + np.sqrt(1 - _TOGETHER**2) * stream.standard_normal(n)
        if isinstance(kind, LevelKind):
            known = max(len(kind.labels), 1)
            ends = np.cumsum(1.0 / np.arange(1, known + 1))
            place = np.argsort(np.argsort(score)) / n
            codes = np.minimum(np.searchsorted(ends / ends[-1], place, side="right"), known - 1)
        else:
            codes = np.clip(0.5 + score / 6, 0.0, 1.0)
        if kind.nullable:
            gone = stream.random(n) < _MISSING
            codes = np.where(gone, kind.missing_code if isinstance(kind, LevelKind) else np.nan, codes)
        columns[name] = kind.decode(codes, kind.sample_type)
    return pa.table(columns)
