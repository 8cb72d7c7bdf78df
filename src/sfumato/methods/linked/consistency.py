"""Chains of linked rows that agree with what they are drawn after.

A chain of units draws rows given their context, one of steps given the row before and the lines ahead. Each measures
what is given too, with noise of its own, while samples have what other chains drew, or the same chain a step earlier.
Where the two laws differ, numbers of rows and ties from row to row drift. So units are drawn from the model, and the
columns after what is given are fitted again to these, by the same releases.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.driver import FittedModel
from sfumato.maths.constants import CHAIN, LINKS
from sfumato.methods.tables.recipe import MeasuredTable
from sfumato.models.tables.softmax_chain import SoftmaxChain
from sfumato.records.engine import Rows
from sfumato.records.sequences import STEPS, Sequences, Sharing, flattened, step_records, unit_records
from sfumato.release.linked import LinkedTable
from sfumato.schema.linked import LinkedTables

Simulation: TypeAlias = Callable[[FittedModel], Sequences]
"""Draws units of a model with what is known of them before they are drawn."""


@dataclass(frozen=True, slots=True)
class FittedRows:
    """The releases of units or of steps, and a chain of them.

    Attributes:
        measured: the releases.
        chain: fitted to them.
        n_given: how many columns, the first ones, are known before others are drawn.
        sharing: how much each row of a record counts; None where a record is one.
    """

    measured: MeasuredTable
    chain: SoftmaxChain
    n_given: int
    sharing: Sharing | None

    @classmethod
    def of(cls, measured: MeasuredTable, n_given: int, sharing: Sharing | None) -> FittedRows:
        """Return the first fit, to rows that its own chain simulates."""
        return cls(measured, measured.chain(), n_given, sharing)

    @property
    def model(self) -> FittedModel:
        """The model of these rows alone."""
        return self.measured.model(self.chain)

    def again(self, records: Iterator[Rows], n: int) -> FittedRows:
        """Return the fit to what is given in records of the model, of which n rows are taken."""
        if not self.n_given:
            return self
        names = [column.name for column in self.measured.layout.features[: self.n_given]]
        rows = self._counted(records, names, n)
        if rows is None:
            return self
        return replace(self, chain=self.measured.chain(rows, self.chain))

    def _counted(self, records: Iterator[Rows], names: list[str], n: int) -> dict[str, np.ndarray] | None:
        """Return n rows, each as often as it counts, in order; None of records without rows."""
        parts: list[Mapping[str, np.ndarray]] = []
        weights: list[np.ndarray] = []
        for rows in records:
            flat, counts = rows, np.ones(next(iter(rows.values())).shape[0])
            if STEPS in rows:
                flat, owners, sizes = flattened(rows)
                counts = (self.sharing or Sharing(1)).weights(sizes)[owners].astype(np.float64)
            parts.append({name: flat[name] for name in names})
            weights.append(counts)
        total = np.cumsum(np.concatenate(weights)) if weights else np.zeros(0)
        if total.size < CHAIN.fewest_rows or not total[-1] > 0:
            return None
        places = np.searchsorted(total, (np.arange(n) + 0.5) / n * total[-1], side="right")
        return {name: np.concatenate([part[name] for part in parts])[places] for name in names}


def simulated_units(mean: float) -> int:
    """Return how many units are drawn that have so many rows each."""
    return int(np.clip(LINKS.rows / max(mean, 1e-9), LINKS.fewest_units, LINKS.most_units))


def consistent(
    tables: LinkedTables, units: FittedRows, steps: FittedRows | None, simulate: Simulation | None, n: int
) -> FittedModel:
    """Return the model of linked rows whose chains are fitted to what it draws, of which n rows are taken.

    Once: what the model draws then is nearly the same. Without a simulation chains stay as they are.
    """
    model = joined(tables, units, steps)
    if simulate is None:
        return model
    try:
        sequences = simulate(model)
    except ConfigError:
        return model  # no unit of the model keeps the rules: whoever samples it is told
    units = units.again(unit_records(tables, sequences), n)
    return joined(tables, units, None if steps is None else steps.again(step_records(tables, sequences), n))


def joined(tables: LinkedTables, units: FittedRows, steps: FittedRows | None) -> FittedModel:
    """Return the model of linked rows."""
    weighted = {"weight": tables.weight} if tables.weight else {}
    parts = {"units": units.model} | ({} if steps is None else {"steps": steps.model})
    return FittedModel(
        sampler={"name": LinkedTable.name, **weighted, **{name: dict(part.sampler) for name, part in parts.items()}},
        parameters={f"{name}.{key}": a for name, part in parts.items() for key, a in part.parameters.items()},
        measurements=tuple((f"{name}: {key}", m) for name, part in parts.items() for key, m in part.measurements),
    )
