"""A table's model of marginals that somebody else measured, by the estimators of the table method.

    one-way tables, and sums of others   → shares of every column's cells, features
    tables of two columns                → E[φ_i φ_jᵀ] = Σ P(a, b) φ_i(a) φ_j(b)ᵀ, and the variance of its noise

A pair of columns that was not measured has a moment of infinite variance: the chain is fitted without it. Within a cell
of a table nothing is known of what goes together: a feature that tells its rows apart counts by its mean there.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from sfumato.columns.kinds import TabularKind
from sfumato.errors import ConfigError, ReleaseError, require_instance
from sfumato.fitting.contents import pandas_form
from sfumato.inference.noisy_totals import CountTable, pool_tables, tables_of
from sfumato.lenses.chain import plain_schema
from sfumato.maths.constants import SIZES
from sfumato.maths.streams import public_stream
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery, Measurement
from sfumato.measurements.stated_counts import require_finite
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.chain import Effort, fit_table_chain, lawful_moments
from sfumato.methods.tables.evidence import Evidence
from sfumato.methods.tables.features import ColumnShares, Features
from sfumato.methods.tables.second_stage import FirstRelease
from sfumato.methods.tables.settings import TableFacts, waves_of
from sfumato.methods.tables.shares import Resolution, drawn_shares, smoothed_shares
from sfumato.methods.tables.tails import NoisyCounts
from sfumato.privacy.certificate import measured_elsewhere
from sfumato.privacy.certificate_form import Protected
from sfumato.release.samplers import TableSoftmax
from sfumato.release_front import Release
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.schema import Schema, SchemaLike, read_schema
from sfumato.schema.shapes import MODEL, require_able

METHOD = "measurements of others"


def estimate_model(schema: SchemaLike, measurements: Iterable[Measurement]) -> Release:
    """A model of a table whose marginals somebody else measured with known Gaussian noise: rows and estimates of it.

    Privacy: none (a function of its arguments). The release guarantees nothing, and its certificate says so: what holds
        is what those guarantee who measured, and drew the noise. No record is read.

    Args:
        schema: public description of the table: columns of labels, numbers or dates. Without `rows` the number of rows
            is what the counts add up to.
        measurements: tables of counts, as `sfumato.marginal` makes them: every column in one at least, and those pairs
            in one together whose dependence is to be kept; what is not measured is as independent as the rest allows.
            A column's cells may differ between tables if they are put together from the finest.

    Raises:
        ConfigError: a measurement is no table of counts of the schema's columns, or a column is in none; or tables add
            up to numbers of rows that their noise does not explain.
        SchemaError: the schema cannot be read.

    Example:
        >>> import sfumato
        >>> yes_no = {"kind": "categorical", "categories": ["yes", "no"]}
        >>> schema = {"columns": {"smokes": yes_no, "coughs": yes_no}, "rows": 1000}
        >>> table = sfumato.marginal(schema, ["smokes", "coughs"], [[200, 100], [70, 630]], noise_std=2.0)
        >>> release = sfumato.estimate_model(schema, [table])
        >>> int(release.sample(1000, seed=0).value_counts()["yes", "yes"].round(-2))
        200
    """
    read = read_schema(schema)
    require_able(read, MODEL)
    common = _on_common_cells(read, _checked(read, measurements))
    tables = [table for measurement in common for table in CountTable.all_of(measurement)]
    n = _number_of_rows(read, tables)
    _require_same_rows(common)
    pairs = pair_tables(read.released, tables)
    # about the noise of the mean product of two features, of the median pair; 0 without pairs
    entry = float(np.median([np.sqrt(pair.variance * pair.value.size) / n for pair in pairs.values()] or [0.0]))
    grid = Grid(tuple(_grid_column(name, read, tables) for name in read.released))
    facts = TableFacts(len(grid.columns), sum(c.n_cells for c in grid.columns if not c.numeric), len(grid.columns))
    resolution = Resolution(SIZES.most_runs, waves_of(entry, facts), SIZES.level_groups, {})
    columns = [_shares(column, tables, n, resolution) for column in grid.columns]
    effort = Effort.of(entry)
    cut = Grid.of(plain_schema(read), numeric_cells=SIZES.fewest_cells).columns
    beside = [column for column in cut if column.name not in read.columns]  # of dates: nobody measured these
    grid = Grid((*grid.columns, *beside))
    columns += [_unmeasured(column) for column in beside]
    evidence = pair_moments(columns, pairs, n)
    chain = fit_table_chain(evidence, lawful_moments(evidence, effort), effort, public_stream(0))
    unit = Protected(**read.protects)
    return Release(
        schema=read,
        certificate=measured_elsewhere(METHOD, unit, n_public=n, declared=read.rows is not None),
        sampler={"name": TableSoftmax.name, "target": None},
        parameters={**chain.to_arrays(), **grid.arrays()},
        measurements=tuple(common),
        form=pandas_form(read),
    )


def _checked(schema: Schema, measurements: Iterable[Measurement]) -> list[Measurement]:
    """The measurements, each of them tables of counts of the schema's columns."""
    kinds, tables_of_counts = schema.of_kind(TabularKind), []
    require_instance(Iterable, "a list of what sfumato.marginal makes", measurements=measurements)
    for i, measurement in enumerate(measurements, 1):
        if not isinstance(measurement, Measurement):
            raise ConfigError(
                f"Expected measurements as sfumato.marginal makes them, got {type(measurement).__name__} as number {i}."
            )
        query = measurement.query
        counts = isinstance(query, MarginalQuery) and not any(cells.partial for cells in query.cells)
        if not counts or query.weight or query.norm is not None:  # type: ignore[union-attr] - as checked
            raise ConfigError(
                f"Expected tables of counts in which every row counts once, got {measurement.name} as number {i}."
            )
        if fault := measurement.fault(kinds):
            raise ConfigError(f"Expected measurements of the schema's columns: number {i} {fault}.")
        require_finite(measurement)
        tables_of_counts.append(measurement)
    counted = {cells.column for measurement in tables_of_counts for cells in measurement.query.cells}  # type: ignore[union-attr]
    if missing := [name for name in schema.released if name not in counted]:
        raise ConfigError(f"Expected a marginal with the column {missing[0]!r}, got none. Measure it, or leave it out.")
    return tables_of_counts


def _on_common_cells(schema: Schema, measurements: Sequence[Measurement]) -> list[Measurement]:
    """The measurements with the cells of every column as groups of its finest ones."""
    finest: dict[str, Cells] = {}
    for measurement in measurements:
        for cells in measurement.query.cells:  # type: ignore[union-attr]
            before = finest.get(cells.column)
            if before is None or cells.base > before.base:
                finest[cells.column] = cells.alone()
    of_common_cells = []
    for measurement in measurements:
        query = measurement.query
        assert isinstance(query, MarginalQuery)
        tables = tuple(tuple(_grouped(axis, finest) for axis in axes) for axes in query.tables)
        query = replace(query, tables=tables, by=tuple(_grouped(axis, finest) for axis in query.by))
        of_common_cells.append(replace(measurement, query=query))
    return of_common_cells


def _grouped(cells: Cells, finest: Mapping[str, Cells]) -> Cells:
    base = finest[cells.column]
    if cells.same_base(base):
        return cells if cells.groups is None else replace(base, groups=cells.groups)
    assert cells.edges is not None
    assert base.edges is not None
    if not np.isin(cells.edges, base.edges).all():
        raise ConfigError(
            f"Expected the cells of {cells.column!r} in all marginals to be put together from those of the finest, got "
            "edges that are not among its edges."
        )
    within = np.searchsorted(cells.edges, base.edges[:-1], side="right") - 1
    if base.nullable:
        within = np.append(within, cells.base - 1)
    return replace(base, groups=cells.grouped(within).astype(np.int64))


def _number_of_rows(schema: Schema, tables: Sequence[CountTable]) -> int:
    """The public number of rows, or what the counts add up to."""
    whole = tables_of(tables, ())[0]
    total, deviation = float(whole.value), float(np.sqrt(whole.variance))
    if schema.rows is None:
        if total < 1:
            raise ConfigError(f"Expected counts that add up to one row at least, got {total:.3g}.")
        return round(total)
    if abs(total - schema.rows) > SIZES.sum_deviations * deviation + SIZES.sum_part * schema.rows + 1:
        raise ConfigError(
            f"Expected counts that add up to the schema's rows, {schema.rows}, got {total:.6g}. Give counts, no shares."
        )
    return schema.rows


def _require_same_rows(measurements: Sequence[Measurement]) -> None:
    """Refuse a table that adds up to another number of rows than the one whose sum is in the middle."""
    sums = [(m.name, table.over(())) for m in measurements for table in CountTable.all_of(m)]
    _, middle = sorted(sums, key=lambda named: float(named[1].value))[(len(sums) - 1) // 2]
    for name, own in sums:
        apart, deviation = abs(float(own.value - middle.value)), float(np.sqrt(own.variance + middle.variance))
        if apart > SIZES.sum_deviations * deviation + SIZES.sum_part * abs(float(middle.value)) + 1:
            raise ConfigError(
                f"Expected counts of the same rows in all measurements, got {name} that add up to "
                f"{float(own.value):.6g}, and others to {float(middle.value):.6g}."
            )


def _grid_column(name: str, schema: Schema, tables: Sequence[CountTable]) -> ColumnGrid:
    """The finest cells of a column."""
    cells = next(axis for table in tables for axis in table.axes if axis.column == name)
    kind = schema.of_kind(TabularKind)[name]
    if cells.edges is None:
        return ColumnGrid(name, kind, cells.base)
    try:
        return ColumnGrid.stored(name, kind, cells.edges)  # type: ignore[arg-type] - edges are of numbers
    except ReleaseError as error:
        raise ConfigError(str(error)) from None


def _unmeasured(column: ColumnGrid) -> ColumnShares:
    """A column without features: missing, or anywhere."""
    free = np.ones(column.n_cells)
    if column.edges is not None and not column.kind.nullable:
        free = np.diff(column.edges).astype(np.float64)
    elif column.kind.nullable:
        free = (np.arange(column.n_cells) == column.n_cells - 1).astype(np.float64)
    cells = np.arange(column.n_cells)
    none = np.zeros((column.n_cells, 0))
    return ColumnShares(free / free.sum(), cells, cells, Features(none, np.zeros(0), none), 1.0, 0)


def _shares(column: ColumnGrid, tables: Sequence[CountTable], n: int, resolution: Resolution) -> ColumnShares:
    """One column's shares and features, from all tables that it is in."""
    own = Cells.of(column)
    alone = pool_tables(table.over({column.name}) for table in tables if column.name in table.columns)
    fine = next((table for table in alone if table.axes[0].same(own)), None)
    if fine is None:
        raise ConfigError(f"Expected a marginal in which every cell of {column.name!r} is counted by itself, got none.")
    coarse = min((t for t in alone if t is not fine), key=lambda t: t.variance, default=None)
    std = float(np.sqrt(fine.variance))
    counts = NoisyCounts(fine.value, std, fine.value, SIZES.uncounted * std, np.arange(column.n_cells))
    if coarse is not None:
        runs = coarse.axes[0].grouped(np.arange(column.n_cells))
        counts = NoisyCounts(fine.value, std, coarse.value, float(np.sqrt(coarse.variance)), runs)
    shares = smoothed_shares(column, resolution, np.inf, counts, float(n))
    return drawn_shares(column, shares, counts.runs, resolution, min(std, counts.coarse_std) / n)


def pair_tables(names: Sequence[str], tables: Sequence[CountTable]) -> dict[tuple[int, int], CountTable]:
    """The finest table of every pair of columns that was measured, its axes in the order of the columns."""
    pairs = {}
    for (i, one), (j, other) in combinations(enumerate(names), 2):
        candidates = pool_tables(t.over({one, other}) for t in tables if {one, other} <= t.columns)
        if candidates:
            table = max(candidates, key=lambda t: t.value.size)
            if table.axes[0].column != one:
                table = CountTable(table.axes[::-1], table.value.T, table.variance)
            pairs[i, j] = table
    return pairs


def counted_moments(first: FirstRelease, noisy: Noisy) -> Evidence:
    """The moments of features that follow from noisy tables of two columns; of other pairs nothing was measured.

    Args:
        first: the first release, whose columns they are.
        noisy: measured by a `QueryCounts` of tables of two columns.
    """
    tables = CountTable.all_of(Measurement("", noisy.value, noisy.noise_std, query=noisy.query))
    pairs = pair_tables([column.name for column in first.grid.columns], tables)
    return pair_moments(first.columns, pairs, first.total)


def pair_moments(columns: Sequence[ColumnShares], pairs: Mapping[tuple[int, int], CountTable], n: float) -> Evidence:
    """The moments of features of the measured pairs.

    Args:
        columns: shares and features of each column.
        pairs: tables of two columns, by the places of these, the first one first.
        n: number of rows that were counted.
    """
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    d = int(ends[-1])
    values, variances = np.zeros((d, d)), np.full((d, d), np.inf)
    for (i, j), table in pairs.items():
        groups = [
            (columns[k], axis.grouped(np.arange(axis.base)), axis.size)
            for k, axis in zip((i, j), table.axes, strict=True)
        ]
        first, second = (column.means_in(cells, size) for column, cells, size in groups)
        here = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        values[here] = first.T @ table.value @ second / n
        # Var Σ z(a, b) φ(a) φ(b) = σ² Σ φ(a)² Σ φ(b)²
        variances[here] = np.outer((first**2).sum(axis=0), (second**2).sum(axis=0)) * table.variance / n**2
    upper = np.triu(np.ones((d, d), dtype=bool))
    return Evidence(np.where(upper, values, values.T), np.where(upper, variances, variances.T), columns)
