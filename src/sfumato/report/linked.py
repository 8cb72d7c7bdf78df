"""Linked rows and databases on the page: how many rows units have, how rows depend on those before, units as strips.

With real rows the figures are NOT private; of synthetic rows alone they are functions of the release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.columns.kind import TabularKind
from sfumato.evaluate.database_scores import ReadTable, count_units, read_tables
from sfumato.evaluate.fidelity import read_bins
from sfumato.evaluate.linked import LinkedRows, linked_scores
from sfumato.release.blocks import joined_tables
from sfumato.release.model import ReleaseValue
from sfumato.report.columns import MOST_BINS, Bin, column_figures, pair_figures, share_bins
from sfumato.report.matrix import matrix_of
from sfumato.report.page import HEIGHT, WIDTH, Rectangle, rectangle
from sfumato.schema.linked import linked_tables
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import unweighted
from sfumato.schema.shapes import EVALUATION, require_able

SHOWN_UNITS = 10
MOST_DRAWN = 10_000
"""Units that are drawn for a page made from the release alone."""
_BAR, _LEAST = 3.0, 0.06  # width of a row's bar, and its least height, of 1


@dataclass(frozen=True, slots=True)
class UnitStrip:
    """A unit of linked rows: a sentence, and its rows as bars along their order."""

    shows: str
    bars: tuple[Rectangle, ...]


def linked_content(release: ReleaseValue, real: object, seed: int) -> dict[str, Any]:
    """Return the page's content on a release of linked rows or of a database; with real rows it is NOT private."""
    if real is not None:
        require_able(release.schema, EVALUATION)
    schema = unweighted(release.schema)
    n = min(MOST_DRAWN, release.certificate.n_public) if real is None else count_units(real, schema)
    sample = drawn_units(release, n, seed)
    real_tables = {} if real is None else read_tables(real, schema)
    parts = {
        name: table_content(table, real_tables.get(name))
        for name, table in read_tables(sample, schema).items()
        if real is None or name in real_tables
    }
    columns = [column for part in parts.values() for column in part["columns"]]
    outside = {name: share for part in parts.values() for name, share in part["outside"].items()}
    return {
        "tables": parts,
        "columns": columns if real is None else sorted(columns, key=lambda c: -(c.distance or 0.0)),
        "outside": sorted(outside.items(), key=lambda share: -share[1]),
        "linked": True,
        "sample": sample,
    }


def table_content(table: ReadTable, real: ReadTable | None) -> dict[str, Any]:
    """Return the page's content on one table; with real rows it is NOT private."""
    bins = read_bins(table.cells, table.schema)
    real_bins = None if real is None else read_bins(real.cells, real.schema)
    pairs = (None, 0) if real_bins is None else pair_figures(bins, real_bins, table.schema)
    return {
        "drawn": bins.n_rows,
        "columns": column_figures(bins, real_bins, table.schema),
        "matrix": matrix_of(table.known, None if real is None else real.known, table.wide),
        "pairs": pairs[0],
        "n_pairs": pairs[1],
        "outside": {} if real_bins is None else real_bins.outside_shares,
        "linked": _linked(table, real),
    }


def _linked(table: ReadTable, real: ReadTable | None) -> dict[str, Any] | None:
    """Return what rows of one unit, or of one row above, have to do with each other."""
    rows, columns, real_rows = table.rows, table.columns, None if real is None else real.rows
    if rows is None or columns is None:
        return None
    assert columns.unit is not None
    return {
        "unit": columns.unit.column,
        "drawn": rows.n_units,
        "sizes": size_bins(rows, real_rows),
        "figures": figure_lines(rows, real_rows, columns),
        "strips": strips(rows, columns, "synthetic"),
        "real_strips": [] if real_rows is None else strips(real_rows, columns, "real"),
        "strips_of": strip_column(columns),
        "order": linked_tables(columns).order,
    }


def drawn_units(release: ReleaseValue, n: int, seed: int) -> object:
    """Return n units with their rows, as tables of Arrow."""
    if release.schema.database is None:
        return pa.concat_tables(release.batches(n, seed=seed))
    return joined_tables(release.table_batches(n, seed=seed))


def size_bins(rows: LinkedRows, real: LinkedRows | None) -> tuple[Bin, ...]:
    """Return the shares of units by number of rows; the largest numbers together."""
    tables = [rows] if real is None else [rows, real]
    fewest = 0 if any(bool((t.sizes == 0).any()) for t in tables) else 1
    most = max(int(table.sizes.max()) for table in tables)
    last = min(most, MOST_BINS)
    shares = [np.bincount(np.minimum(t.sizes, last), minlength=last + 1)[fewest:] / t.n_units for t in tables]
    labels = [str(k) for k in range(fewest, last)] + [str(last) if most == last else f"{last} or more"]
    return share_bins(labels, shares)


def figure_lines(rows: LinkedRows, real: LinkedRows | None, schema: Schema) -> list[tuple[str, float, float | None]]:
    """Return figures on how rows of one unit depend on each other: a sentence, of synthetic units, of real ones."""
    scores = linked_scores(rows if real is None else real, rows, schema)
    pairs: list[tuple[str, dict[str, float] | None]] = [("rows a unit, mean", scores["rows_a_unit"])]
    if scores["gap"] is not None:
        pairs.append((f"{linked_tables(schema).order}: distance from the row before, mean", scores["gap"]))
    for name, of_name in scores["numbers"].items():
        pairs.append((f"{name}: correlation with the row before", of_name["before"]))
        pairs.append((f"{name}: part of the variance between units", of_name["between"]))
    lines = [
        (text, score["synthetic"], None if real is None else score["real"])
        for text, score in pairs
        if score is not None and np.isfinite(score["synthetic"])
    ]
    if real is not None:
        pairs_of_rows = {f"{name}: row before and row": value for name, value in scores["labels"].items()}
        distances = {"rows a unit": scores["rows_a_unit"]["tvd"], **pairs_of_rows}
        if scores["gap"] is not None and scores["gap"]["tvd"] is not None:
            distances[f"{linked_tables(schema).order}: distance from the row before"] = scores["gap"]["tvd"]
        lines += [(f"{text}, total variation", value, 0.0) for text, value in distances.items()]
    return lines


def strip_column(schema: Schema) -> str:
    """Return the column that strips show: the first number that varies and is not the order, else the first label."""
    tables, kinds = linked_tables(schema), schema.of_kind(TabularKind)
    varying = [name for name in kinds if name not in (*tables.constants, tables.order)]
    numbers = [name for name in varying if kinds[name].is_numeric]
    return next(iter([*numbers, *varying, *kinds]))


def strips(rows: LinkedRows, schema: Schema, kind: str) -> list[UnitStrip]:
    """Return the first units as strips: a bar for each row, along the order, its height the shown column."""
    tables, name = linked_tables(schema), strip_column(schema)
    shown = schema.of_kind(TabularKind)[name]
    units = range(min(SHOWN_UNITS, rows.n_units))
    ends = int(rows.starts[units[-1]] + rows.sizes[units[-1]])
    heights = rows.codes[name][:ends] / (1.0 if shown.is_numeric else max(shown.width - 1, 1))
    along = _along(rows, tables.order, ends)
    pictures = []
    for unit in units:
        places = range(int(rows.starts[unit]), int(rows.starts[unit] + rows.sizes[unit]))
        bars = tuple(_bar(kind, float(along[i]), float(heights[i])) for i in places)
        pictures.append(UnitStrip(f"{len(bars)} row{'' if len(bars) == 1 else 's'}", bars))
    return pictures


def _along(rows: LinkedRows, order: str | None, ends: int) -> np.ndarray:
    """Return where rows lie from left to right, in [0, 1]: by the order, else by their number."""
    if order is None:
        number = np.arange(ends) - np.repeat(rows.starts, rows.sizes)[:ends]
        return number / max(int(number.max()), 1)
    codes = rows.codes[order][:ends]
    known = codes[~np.isnan(codes)]
    if not known.size:
        return np.zeros(ends)
    first, last = float(known.min()), float(known.max())
    return np.where(np.isnan(codes), 1.0, (codes - first) / ((last - first) or 1.0))


def _bar(kind: str, along: float, height: float) -> Rectangle:
    # a missing number is a thin bar of the whole height
    tall = HEIGHT if np.isnan(height) else HEIGHT * max(min(height, 1.0), _LEAST)
    width = _BAR / 3 if np.isnan(height) else _BAR
    return rectangle(kind, along * (WIDTH - _BAR), HEIGHT - tall, width, tall)
