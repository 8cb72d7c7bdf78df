"""Does a model have what was measured? The columns, and pairs of columns, of which its rows say something else.

A release holds noisy counts and products, and a model fitted to them. Rows of the model are asked the same queries;
where an answer is off the measurement by more than noise, drawing and what every fit may miss explain, the model is not
what was measured, and the release says so. The level is `LEVEL` of all comparisons of a release together.

    a share   z = (p − c/T) ÷ √(σ²/T² + p²τ²/T² + a²)      c counted with noise σ, T all rows, counted with noise τ
    a mean    the same of the cells' values
    a pair    Σ z² over the products of two columns' features, beside chi-square

a² = v(1/N + ε²): v the variance of the function under the model, N its rows, ε what a fit to simulated rows may miss.

Free: uses released values only.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from sfumato.columns.kinds import Continuous, Integer
from sfumato.errors import EstimateError, ModelWarning
from sfumato.inference.item_measurements import MODEL_SETS, MeasuredItems
from sfumato.inference.linked_rows import LinkedMeasurements
from sfumato.inference.noisy_totals import CountTable, Products, tables_of
from sfumato.inference.table_measurements import TableMeasurements, values
from sfumato.measurements.cells import ALL_ROWS, joint_cells
from sfumato.measurements.item_queries import WEIGHT_PARTS
from sfumato.release.model import ReleaseValue, kept
from sfumato.release.unit_releases import table_of
from sfumato.schema.set_columns import sets_alone

LEVEL = 1e-4
"""The chance that noise alone makes a good model differ anywhere."""
_ROWS = 1 << 13  # of the model
_HIDDEN = 5.0  # deviations of its noise from which a number of rows is seen
_MISSED = 0.03  # standard deviations by which a mean may be off in a good fit
_MOST_CELLS = 400  # of a pair that were counted: of more each has hardly a row
_MOST_SAID = 4
_MOST_FEATURES = 1_000  # of all columns, whose products are compared


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Something that was measured, and that the model's rows say otherwise.

    Attributes:
        columns: one, or two that go together otherwise.
        what: of these: `mean`, a label or cells of numbers; `together` of a pair.
        model: what the model's rows say; of a pair the largest entry.
        measured: what was measured.
        error: the standard error of the difference.
        chance: that a good model would differ so much here.
    """

    columns: tuple[str, ...]
    what: str
    model: float
    measured: float
    error: float
    chance: float

    def __str__(self) -> str:
        """The difference in words, as `dose: mean 1.25 in samples, 3.62 ± 0.05 measured`."""
        of = " and ".join(self.columns)
        if self.what == "together":
            return f"{of}: together otherwise in samples than measured"
        return f"{of}: {self.what} {self.model:.3g} in samples, {self.measured:.3g} ± {self.error:.2g} measured"


def disagreements(release: ReleaseValue) -> tuple[Disagreement, ...]:
    """Return what a model says otherwise than was measured, the least likely first, one of each column or pair.

    Empty where the model has what was measured, and where nothing was measured of columns.
    """
    return kept(release, "_disagreements", _differences)


def in_words(release: ReleaseValue) -> str:
    """Return what samples say otherwise than was measured, in a sentence for each of the first; empty if nothing."""
    differences = disagreements(release)
    more = f"; and {len(differences) - _MOST_SAID} more" if len(differences) > _MOST_SAID else ""
    listed = "; ".join(map(str, differences[:_MOST_SAID])) + more
    words = f"The model is not what was measured: {listed}. Ask the release, not its samples, about these."
    return words if differences else ""


def listed(release: ReleaseValue) -> list[dict[str, Any]]:
    """Return the same for JSON: `columns`, and what `says` of them."""
    return [{"columns": list(one.columns), "says": str(one)} for one in disagreements(release)]


def warn_of_disagreements(release: ReleaseValue) -> None:
    """Say that samples differ from what was measured, where they do. The release is as private and as paid for."""
    with contextlib.suppress(Exception):  # what is paid for is not lost to a check of it
        if words := in_words(release):
            warnings.warn(words, ModelWarning, 3)


def _differences(release: ReleaseValue) -> tuple[Disagreement, ...]:
    compared = [one for part in _parts(release) for one in _Comparison(part).all()]
    if sets_alone(release.schema):
        with contextlib.suppress(EstimateError):  # nothing was measured of items
            compared = list(_of_sets(MeasuredItems(release)))
    first: dict[tuple[str, ...], Disagreement] = {}
    for one in sorted(compared, key=lambda one: one.chance):
        if one.chance * len(compared) < LEVEL:
            first.setdefault(one.columns, one)
    return tuple(first.values())


def _parts(release: ReleaseValue) -> Iterator[TableMeasurements]:
    """Yield the tables of a release: measurements, and rows of its model."""
    tree = release.schema.tree
    for part in [release] if tree is None else [table_of(release, name) for name in tree.names]:
        with contextlib.suppress(EstimateError):  # nothing was measured of columns
            if part.schema.linked:
                linked = LinkedMeasurements(part)
                yield from (own for own in (linked.unit_part, linked.step_part) if own is not None)
            else:
                yield TableMeasurements(part, n_rows=_ROWS)


def _of_sets(measured: MeasuredItems) -> Iterator[Disagreement]:
    """Compare the shares of sets that hold an item, and weighted ones of those that hold two."""
    sets, n, missed = measured.model_sets, measured.n_public, _MISSED**2 + 1 / MODEL_SETS
    of_all = (measured.count_variance or 0.0) / n**2
    counts = np.bincount(sets.codes, minlength=measured.items.value.size)
    parts = [("share", counts / len(sets), measured.items.value, measured.items.noise_std, 1.0)]
    if measured.pairs is not None and (query := measured.pair_query) is not None:
        query.add(total := np.zeros(query.shape), sets)
        (_, pairs, *_), (_, value, *_) = query.split(total / WEIGHT_PARTS), query.split(measured.pairs.value)
        most = query.weights.max() / WEIGHT_PARTS
        parts.append(("two items together", pairs / len(sets), value, measured.pairs.noise_std, most))
    for what, shares, values_, noise, most in parts:
        errors = np.sqrt(noise**2 / n**2 + shares**2 * of_all + shares * np.maximum(most - shares, 0.0) * missed)
        for share, value, error in zip(shares, values_ / n, errors, strict=True):
            yield _compared((measured.column.name,), what, float(share), float(value), float(error))


class _Comparison:
    """One table of a release beside rows of its model."""

    def __init__(self, measured: TableMeasurements) -> None:
        self._measured, self._base = measured, measured.drawn
        counted = np.ones(measured.n_rows) if measured.row_counts is None else measured.row_counts
        self._weights = counted / counted.sum()
        self._missed = _MISSED**2 + float((self._weights**2).sum())
        (whole,) = tables_of(measured.tables, ())[:1]
        self._rows, self._rows_variance = max(float(whole.value), np.sqrt(whole.variance), 1.0), whole.variance

    def all(self) -> Iterator[Disagreement]:
        """Yield every comparison."""
        for name in self._measured.columns:
            yield from self._of_column(name)
        several = {table.columns for table in self._measured.tables if len(table.columns) == 2}
        for columns in sorted(several, key=sorted):
            for table in tables_of(self._measured.tables, columns):
                if table.columns == columns and table.value.size <= _MOST_CELLS:
                    yield from self._of_cells(table, "together")
        if self._measured.products is not None:
            yield from self._of_products(self._measured.products)

    def _of_column(self, name: str) -> Iterator[Disagreement]:
        column = self._measured.column(name)
        own = (table for table in tables_of(self._measured.tables, {name}) if table.columns == {name})
        tables = sorted(own, key=lambda table: -table.value.size)
        for table in tables if column.edges is None else tables[-1:]:
            yield from self._of_cells(table, "share")
        if not isinstance(column.kind, Integer | Continuous) or not tables or tables[0].value.size != column.n_cells:
            return
        assert column.edges is not None
        inside = np.zeros(column.n_cells)  # of a value
        inside[: column.edges.size - 1] = 1.0
        middles = inside.copy()
        steps = (column.edges[:-1] + column.edges[1:] - 1) / 2.0
        middles[: steps.size] = values(column.kind, steps / max(float(column.edges[-1] - 1), 1.0)).to_numpy(float)
        shares, counts, variance = self._shares(tables[0]), tables[0].value, tables[0].variance
        present, rows = float(shares @ inside), float(counts @ inside)
        if present <= 0 or rows <= _HIDDEN * np.sqrt(variance * inside.sum()):
            return
        model, mean = float(shares @ middles) / present, float(counts @ middles) / rows
        centred = (middles - model) * inside
        spread = float(shares @ centred**2) / present**2
        error = np.sqrt(variance * float((centred**2).sum()) / rows**2 + spread * self._missed)
        yield _compared((name,), "mean", model, mean, float(error))

    def _shares(self, table: CountTable) -> np.ndarray:
        """The shares of the model's rows in the cells of a table, of its shape flattened."""
        place = joint_cells(table.axes, [self._base.of(axis) for axis in table.axes])
        return np.bincount(place, self._weights, table.value.size)

    def _of_cells(self, table: CountTable, what: str) -> Iterator[Disagreement]:
        shares = self._shares(table)
        counted = table.value.reshape(-1) / self._rows
        variance = (table.variance + shares**2 * self._rows_variance) / self._rows**2
        errors = np.sqrt(variance + shares * (1 - shares) * self._missed)
        columns = tuple(axis.column for axis in table.axes)
        for share, count, error in zip(shares, counted, errors, strict=True):
            yield _compared(columns, what, float(share), float(count), float(error))

    def _of_products(self, products: Products) -> Iterator[Disagreement]:
        """Compare the products of every two columns' features."""
        if (ends := products.ends)[-1] > _MOST_FEATURES:
            return
        entries, base = products.query.features, self._base
        features = np.hstack([products.vectors(j)[base.of(one.cells)] for j, one in enumerate(entries)])
        # rows that share the bound of their unit are clipped together, and are as they were drawn
        own = products.clipping(self._base) if self._measured.row_counts is None else self._measured.clipping
        clipped = self._weights * own
        means, squares = (part.T @ (part * clipped[:, None]) for part in (features, features**2))
        variances = np.maximum(squares - means**2, 0.0) * self._missed + products.variance / 2 / self._rows**2
        z = (products.pooled / self._rows - means) ** 2 / np.maximum(variances, 1e-300)
        for j, one in enumerate(entries):
            for i, other in enumerate(entries[:j]):
                block = z[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
                if block.size and ALL_ROWS not in (one.cells.column, other.cells.column):
                    chance, largest = float(stats.chi2.sf(block.sum(), block.size)), float(np.sqrt(block.max()))
                    yield Disagreement((other.cells.column, one.cells.column), "together", 0.0, largest, 1.0, chance)


def _compared(columns: tuple[str, ...], what: str, model: float, measured: float, error: float) -> Disagreement:
    chance = float(2 * stats.norm.sf(abs(model - measured) / max(error, 1e-300)))
    return Disagreement(columns, what, model, measured, error, chance)
