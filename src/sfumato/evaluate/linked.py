"""Scores of linked rows: how many rows units have, what a row has to do with the one before, first rows, constants.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.desk.rule_breaks import count_breaks
from sfumato.errors import DataError
from sfumato.evaluate.coded_tables import CodedTable
from sfumato.evaluate.fidelity import bin_codes, distance, mean_distances, rule_scores, set_distance
from sfumato.io.sources import Source
from sfumato.records.linked import LinkedData
from sfumato.records.table_sources import open_records
from sfumato.rules.cells import numeric
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.schema import Schema
from sfumato.schema.set_columns import with_items

LAGS = (2, 3, 5)
GAP_BINS = 20
"""Bins of the distances between rows, each with as many of the real ones, as far as these differ."""


@dataclass(frozen=True, slots=True)
class LinkedRows:
    """Units of a table with their rows in order, coded; the repr shows no cell.

    Attributes:
        label: what the table is called in messages.
        sizes: number of rows of each unit, shape (units,).
        codes: coded columns of all rows, units one after the other.
        first: coded columns of units: constants, number of rows, first row, which a unit of two tables may lack.
    """

    label: str
    sizes: np.ndarray
    codes: Mapping[str, np.ndarray]
    first: Mapping[str, np.ndarray]

    def __repr__(self) -> str:
        return f"LinkedRows({self.label}, {list(self.codes)!r})"

    @classmethod
    def read(cls, source: Source, schema: Schema) -> LinkedRows:
        """Read them: of each unit the first `max_rows` by order, as a fit does.

        Raises:
            SchemaError: a column is not in the source.
            DataError: the source cannot be read, or has no unit.
        """
        # rules take no part: all columns are compared, also those that follow from others
        data = LinkedData(source, dataclasses.replace(schema, rules=(), accept=(), questions=()))
        sequences = data.sequences()
        if not sequences.sizes.any():
            raise DataError(f"Expected linked rows to evaluate in {source.label}, got none with a unit.")
        has_row = np.repeat(
            sequences.sizes > 0, np.maximum(sequences.sizes, 1)
        )  # a unit without rows has a place of its own
        parts = list(data.coded())
        first = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return cls(
            source.label, sequences.sizes, {name: codes[has_row] for name, codes in sequences.codes.items()}, first
        )

    @property
    def starts(self) -> np.ndarray:
        """Where each unit begins, shape (units,); of one without rows, where it would."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return int(self.sizes.size)

    @property
    def owners(self) -> np.ndarray:
        """The unit of each row, shape (rows,)."""
        return np.repeat(np.arange(self.n_units), self.sizes)

    @property
    def later(self) -> np.ndarray:
        """The places of rows that have one before them."""
        first = np.zeros(int(self.sizes.sum()), dtype=bool)
        first[self.starts[self.sizes > 0]] = True
        return np.flatnonzero(~first)


def evaluate_linked(real: object, synthetic: object, schema: Schema) -> dict[str, Any]:
    """Compare linked rows; arguments as `evaluate`.

    Returns:
        `private`: false. `rows` and `units`: how many count, of each table. `fidelity`: `tvd_1way` and `tvd_2way` of
        all rows, and `rules`, as `evaluate` has them. `linked`: `rows_a_unit`, the means and the total variation;
        `first_rows`, total variation of one and of two columns of units with their first row, constants and
        number of rows among them; `gap`, null without a column of order, or the mean distance between a row's order
        and that of the row before, in the column's own steps, the total variation, and the share of synthetic rows that
        go back; `numbers`, per column that varies the correlation with the row before (`before`), with rows two, three
        and five before (`further_back`) and the part of the
        variance between units (`between`), of both tables; `labels`, per column that varies the
        total variation of the pairs (row before, row); `constants_vary`, the share of units in whose rows a
        constant is not the same. JSON-ready.
    """
    sources = {"real": open_records(real, schema), "synthetic": open_records(synthetic, schema)}
    tables = {name: LinkedRows.read(source, schema) for name, source in sources.items()}
    plain = linked_columns(schema)
    whole = [_bin_table(tables[name].codes, plain, tables[name].label) for name in ("real", "synthetic")]
    fidelity: dict[str, Any] = mean_distances(*whole, schema=plain, most=2)
    fidelity["rules"] = rule_scores({name: count_breaks(source, schema) for name, source in sources.items()})
    return {
        "private": False,
        "rows": {name: int(table.sizes.sum()) for name, table in tables.items()},
        "units": {name: table.n_units for name, table in tables.items()},
        "fidelity": fidelity,
        "linked": linked_scores(tables["real"], tables["synthetic"], plain),
    }


def linked_columns(schema: Schema) -> Schema:
    """The columns that scores of linked rows compare: all, without rules, and items in the place of their sets."""
    columns = with_items(schema.columns, schema.set_columns)
    return dataclasses.replace(schema, columns=columns, rules=(), accept=(), questions=(), sources={})


def linked_scores(real: LinkedRows, synthetic: LinkedRows, schema: Schema) -> dict[str, Any]:
    """The scores of linked rows, as `evaluate_linked` describes them; the schema has no rules."""
    tables, kinds = linked_tables(schema), schema.of_kind(TabularKind)
    pair = (real, synthetic)
    varying = [name for name in kinds if name not in tables.constants]
    stepped = tables.steps is not None and all(rows.later.size for rows in pair)
    numbers = [name for name in varying if kinds[name].is_numeric and name != tables.order]
    labels = [name for name in varying if not kinds[name].is_numeric]
    most = max(int(real.sizes.max()), int(synthetic.sizes.max())) + 1
    lags = [lag for lag in LAGS if all((rows.sizes > lag).any() for rows in pair)]
    shares = [np.bincount(rows.sizes, minlength=most) / rows.n_units for rows in pair]
    first = [_bin_table(rows.first, tables.units, rows.label) for rows in pair]
    return {
        "rows_a_unit": {**_both(real.sizes.mean(), synthetic.sizes.mean()), "tvd": distance(*shares)},
        "first_rows": mean_distances(*first, schema=tables.units, most=min(2, len(tables.units.released))),
        "gap": _gap_scores(real, synthetic, tables.order, kinds) if stepped and tables.order else None,
        "numbers": {
            name: {
                "before": _both(*(_with_before(rows, name) for rows in pair)) if stepped else None,
                "further_back": {lag: _both(*(_with_before(rows, name, lag) for rows in pair)) for lag in lags},
                "between": _both(*(_between_share(rows, name) for rows in pair)),
            }
            for name in numbers
        },
        "labels": _transitions(real, synthetic, tables, labels) if stepped else {},
        "constants_vary": _both(*(_varying_units(rows, tables.constants) for rows in pair)),
    }


def _both(real: float, synthetic: float) -> dict[str, float]:
    return {"real": float(real), "synthetic": float(synthetic)}


def _bin_table(codes: Mapping[str, np.ndarray], schema: Schema, label: str) -> CodedTable:
    kinds = schema.of_kind(TabularKind)
    columns = {name: bin_codes(kind, codes[name]) for name, kind in kinds.items()}
    return CodedTable(columns=columns, n_rows=len(next(iter(columns.values()))), label=label)


def _gap_scores(
    real: LinkedRows, synthetic: LinkedRows, order: str, kinds: Mapping[str, TabularKind]
) -> dict[str, Any]:
    """Distances between rows, in the steps of the column of order; rows without an order are left out."""
    lower, upper = numeric(kinds, order).bounds
    gaps = []
    for rows in (real, synthetic):
        codes, later = rows.codes[order], rows.later
        distances = (codes[later] - codes[later - 1]) * float(upper - lower)
        gaps.append(distances[~np.isnan(distances)])
    if not all(some.size for some in gaps):
        return {**_both(float("nan"), float("nan")), "tvd": None, "back": None}
    edges = np.unique(np.quantile(gaps[0], np.arange(1, GAP_BINS) / GAP_BINS))
    shares = [np.bincount(np.searchsorted(edges, some), minlength=edges.size + 1) / some.size for some in gaps]
    return {
        **_both(gaps[0].mean(), gaps[1].mean()),
        "tvd": distance(*shares),
        "back": float((gaps[1] < -1e-9 * float(upper - lower)).mean()),
    }


def _with_before(rows: LinkedRows, name: str, lag: int = 1) -> float:
    """Pearson's correlation of a number with that `lag` rows before; 0 where one of them is constant."""
    owners = rows.owners
    later = np.flatnonzero(owners[lag:] == owners[: owners.size - lag]) + lag
    now, before = rows.codes[name][later], rows.codes[name][later - lag]
    known = ~(np.isnan(now) | np.isnan(before))
    now, before = now[known], before[known]
    if now.size < 2 or np.ptp(now) == 0 or np.ptp(before) == 0:
        return 0.0
    return float(np.corrcoef(now, before)[0, 1])


def _between_share(rows: LinkedRows, name: str) -> float:
    """Part of a number's variance between units: the intraclass correlation of one-way analysis of variance.

    Reference: Fisher 1925; for groups of unequal size, Snedecor and Cochran.
    """
    codes, owners = rows.codes[name], rows.owners
    known = ~np.isnan(codes)
    codes, owners = codes[known], owners[known]
    sizes = np.bincount(owners, minlength=rows.n_units)
    sums = np.bincount(owners, weights=codes, minlength=rows.n_units)
    n, units = codes.size, int((sizes > 0).sum())
    if n <= units or units < 2:
        return 0.0
    means = sums / np.maximum(sizes, 1)
    within = float(((codes - means[owners]) ** 2).sum()) / (n - units)
    between = float((sizes * (means - codes.mean()) ** 2).sum()) / (units - 1)
    typical = (n - (sizes.astype(float) ** 2).sum() / n) / (units - 1)
    whole = between + (typical - 1) * within
    return float((between - within) / whole) if whole > 0 else 0.0


def _transitions(real: LinkedRows, synthetic: LinkedRows, tables: LinkedTables, labels: list[str]) -> dict[str, float]:
    """Total variation of the pairs (label of the row before, label of the row), per column."""
    assert tables.steps is not None
    distances = {}
    kinds = tables.steps.of_kind(TabularKind)
    for name in labels:
        before, steps = tables.before[name], []
        for rows in (real, synthetic):
            later = rows.later
            codes = {before: rows.codes[name][later - 1], name: rows.codes[name][later]}
            columns = {column: bin_codes(kinds[column], codes[column]) for column in codes}
            steps.append(CodedTable(columns=columns, n_rows=later.size, label=rows.label))
        distances[name] = set_distance(steps[0], steps[1], [before, name], tables.steps)
    return distances


def _varying_units(rows: LinkedRows, constants: tuple[str, ...]) -> float:
    """Share of units in whose rows a constant is not the same."""
    varies = np.zeros(rows.n_units, dtype=bool)
    first = np.repeat(rows.starts, rows.sizes)
    for name in constants:
        if name not in rows.codes:  # a column of another table
            continue
        codes = rows.codes[name]
        other = ~((codes == codes[first]) | (np.isnan(codes) & np.isnan(codes[first])))
        varies |= np.bincount(rows.owners, weights=other, minlength=rows.n_units) > 0
    return float(varies.mean())
