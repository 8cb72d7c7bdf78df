"""Chains of units that agree with the context that they are drawn given.

A table below draws units given what other tables say of them. Its releases measure that context too, with noise of
their own, while samples have what other chains drew. Where the two laws differ, numbers of rows drift. So units are
drawn from the model, and the columns after the context are fitted again to these, by the same releases.

Steps are not: the row before has nearly the law of the rows themselves in the same release, and a second fit lost more
of what goes on from row to row than it mended (decision 90).

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.driver import FittedModel
from sfumato.maths.constants import CHAIN, LINKS
from sfumato.methods.tables.recipe import MeasuredTable
from sfumato.models.tables.softmax_chain import SoftmaxChain
from sfumato.records.engine import Rows
from sfumato.records.sequences import STEPS, Sequences, Sharing, flattened, unit_records
from sfumato.release.linked import LinkedTable
from sfumato.schema.linked import LinkedTables

Simulation: TypeAlias = Callable[[FittedModel], Sequences]
"""Draws units of a model with what is known of them before they are drawn."""


@dataclass(frozen=True, slots=True)
class FittedUnits:
    """The releases of units, and a chain of them.

    Attributes:
        measured: the releases.
        chain: fitted to them, at first with rows that it simulates itself.
        n_given: how many columns, the first ones, are known before others are drawn.
        sharing: how much each row of a record counts; None where a record is one.
    """

    measured: MeasuredTable
    chain: SoftmaxChain
    n_given: int
    sharing: Sharing | None

    @property
    def model(self) -> FittedModel:
        """The model of these rows alone."""
        return self.measured.model(self.chain)

    def again(self, records: Iterator[Rows], n: int) -> FittedUnits:
        """Return the fit to what is given in records of the model, of which n rows are taken."""
        names = [column.name for column in self.measured.grid.columns[: self.n_given]]
        rows = self._counted(records, names, n) if names else None
        return self if rows is None else replace(self, chain=self.measured.chain(rows, self.chain))

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
    """Return how many owners are drawn that have so many units each."""
    return int(np.clip(LINKS.rows / max(mean, 1e-9), LINKS.fewest_units, LINKS.most_units))


def consistent(
    tables: LinkedTables, units: FittedUnits, steps: FittedModel | None, simulate: Simulation | None, n: int
) -> FittedModel:
    """Return the model of linked rows whose units are fitted to what it draws, of which n are taken.

    Once: what the model draws then is nearly the same. Without a simulation the chain stays as it is.
    """
    model = joined(tables, units.model, steps)
    if simulate is None:
        return model
    try:
        sequences = simulate(model)
    except ConfigError:
        return model  # no unit of the model keeps the rules: whoever samples it is told
    return joined(tables, units.again(unit_records(tables, sequences), n).model, steps)


def joined(tables: LinkedTables, units: FittedModel, steps: FittedModel | None) -> FittedModel:
    """Return the model of linked rows."""
    weighted = {"weight": tables.weight} if tables.weight else {}
    parts = {"units": units} | ({} if steps is None else {"steps": steps})
    samplers = {name: dict(part.sampler) for name, part in parts.items()}
    return of_parts({"name": LinkedTable.name, **weighted, **samplers}, parts)


def of_parts(sampler: Mapping[str, Any], parts: Mapping[str, FittedModel]) -> FittedModel:
    """Return the model of a sampler that is made of others, with the arrays and measurements of these by name."""
    return FittedModel(
        sampler=sampler,
        parameters={f"{name}.{key}": a for name, part in parts.items() for key, a in part.parameters.items()},
        measurements=tuple((f"{name}: {key}", m) for name, part in parts.items() for key, m in part.measurements),
    )
