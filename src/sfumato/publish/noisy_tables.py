"""Tables beside a release: its codebook, and noisy counts of columns and of pairs, with their standard errors.

Free: they are functions of the measurements that the release holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pyarrow as pa

from sfumato.columns.kinds import LevelKind, NumericKind
from sfumato.errors import EstimateError
from sfumato.inference.answer_batches import Batch, cell_counts, pair_counts
from sfumato.inference.linked_rows import questions_of_units
from sfumato.inference.questions import Questions
from sfumato.release.unit_releases import parts_of_units, units_of
from sfumato.release_front import Release
from sfumato.report.column_lines import column_lines
from sfumato.rules import rule_text
from sfumato.schema.branch_schemas import branch_views
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.schema import Schema

_SHOWN = ("lower", "upper", "resolution", "nullable", "other", "format")
_NOT_STATED = "the holder's word"
MOST_PAIRS, MOST_CELLS = 100, 400
_MOST_WORK = 200_000  # on pairs: a part of a second
_MARGIN = 1.96  # standard errors: of an interval of 95 %
_COUNTS = ("column", "value", "lower", "upper", "missing")
_PAIRS = ("first_column", "first_value", "second_column", "second_value")
_FIGURES = ("count", "std_error", "margin", "low", "high")


def columns_table(release: Release) -> pa.Table:
    """Return a row per released column: kind, bounds, number of categories, rules, origin of its facts, losses."""
    schema, lines = release.schema, {line.name: line for line in column_lines(release)}
    plan = schema.rule_plan
    rules = () if plan is None else zip(schema.rules, plan.rules, strict=True)
    named = [(rule_text(entry), set(rule.columns)) for entry, rule in rules]
    rows = []
    for place, name in enumerate(schema.released, 1):
        kind = schema.columns[name]
        facts = kind.to_dict()
        source = schema.sources.get(name, _NOT_STATED)
        rows.append(
            {
                "position": place,
                "table": next((table for table, own in schema.table_columns.items() if name in own), None),
                "column": name,
                "kind": str(facts.get("kind", kind.name)),
                **{fact: None if facts.get(fact) is None else str(facts[fact]) for fact in _SHOWN},
                "categories": len(kind.labels) if isinstance(kind, LevelKind) else None,
                "rules": "; ".join(text for text, columns in named if name in columns) or None,
                "source": source if isinstance(source, str) else "; ".join(f"{k}: {v}" for k, v in source.items()),
                "lost": lines[name].loss or None,
            }
        )
    texts = (*("table", "column", "kind"), *_SHOWN, "rules", "source", "lost")
    types = {**dict.fromkeys(texts, pa.string()), "position": pa.int64(), "categories": pa.int64()}
    order = ("column", "kind", *_SHOWN, "categories", "rules", "source", "lost")
    order = ("position", *(["table"] if schema.database else []), *order)
    return pa.table({name: pa.array([row[name] for row in rows], types[name]) for name in order})


def categories_table(schema: Schema) -> pa.Table:
    """Return a row per label of each released column of labels, in order."""
    labels = [(name, str(label)) for name, kind in schema.of_kind(LevelKind).items() for label in kind.labels]
    columns: Mapping[str, list[str]] = {"column": [c for c, _ in labels], "category": [v for _, v in labels]}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


@dataclass(slots=True)
class NoisyTables:
    """Noisy tables.

    Attributes:
        counts: a row per label or cell of each column; None where the release has no such measurements.
        pairs: a row per pair of labels; None as `counts`, or without two columns of labels.
        left_out: what is not in them, and why, a sentence each.
    """

    counts: pa.Table | None = None
    pairs: pa.Table | None = None
    left_out: list[str] = field(default_factory=list)


def noisy_tables(release: Release) -> NoisyTables:
    """Return the noisy tables of a release; `margin`, `low` and `high` are of 95 % intervals of the records' counts."""
    schema, tables, parts = release.schema, NoisyTables(), {"": release}
    tree, counts, pairs = schema.tree, list[tuple[object, ...]](), list[tuple[object, ...]]()
    if schema.linked:
        parts = parts_of_units(release)
        tables.left_out.append(
            "Counts are of units, or of rows above: their constants, their number of rows, and their first row, which "
            "is missing where there is none. What later rows are is in the release, and not in the noisy tables."
        )
    strange: set[str] = set() if schema.weight is None else {schema.weight.column}
    first = () if schema.unit is None else schema.unit.constant
    for name, part in parts.items():
        if tree is not None:  # columns that tables before have, or say, are theirs
            context = branch_views(schema)[name].schema.unit
            strange = set(() if context is None else context.constant).difference(first)
            first = ()
        try:
            questions = questions_of_units(part, units_of(part)) if schema.linked else Questions(part)
        except EstimateError as error:
            tables.left_out.append(f"There are no noisy tables{' of ' if name else ''}{name}. {error}")
            continue
        columns = [column for column in questions.measured.columns.values() if column.name not in strange]
        own = () if tree is None else (name,)
        counts += [(*own, *row) for column in columns for row in _of_column(questions, column, tables)]
        pairs += [(*own, *row) for row in _of_pairs(questions, _label_pairs(questions, columns, tables), tables)]
    own = () if tree is None else ("table",)
    tables.counts = _table((*own, *_COUNTS), counts) if counts else None
    tables.pairs = _table((*own, *_PAIRS), pairs) if pairs else None
    return tables


def _table(names: tuple[str, ...], rows: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    types = [pa.bool_() if name == "missing" else pa.string() for name in names] + [pa.float64()] * len(_FIGURES)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table(arrays, names=[*names, *_FIGURES])


def _figures(counts: Batch, lowest: float = -np.inf) -> list[tuple[float, ...]]:
    """Return count, standard error, margin and both ends of counts that are at least so much."""
    columns = (counts.std_error, _MARGIN * counts.std_error, *counts.ends(0.95, lowest))
    return list(map(tuple, np.stack([np.maximum(counts.value, lowest), *columns], axis=1).tolist()))


def _of_column(questions: Questions, column: ColumnGrid, tables: NoisyTables) -> Iterator[tuple[object, ...]]:
    try:
        questions.require_column(column.name)
        counts = cell_counts(questions, column.name, column.n_cells)
    except EstimateError as error:
        tables.left_out.append(f"Counts of {column.name!r}: {error}")
        return
    figures = _figures(counts)
    for cell, answered in enumerate(counts.answered[: column.shown]):  # what is no label counts for none
        row = figures[cell] if answered else _measured_figures(questions, column.name, cell)
        yield (column.name, *_cell(column, cell), *row)


def _measured_figures(questions: Questions, name: str, cell: int) -> tuple[float | None, ...]:
    """Return the noisy count itself, where the model has no such row and the cell was counted by itself."""
    counts = questions.measured.counts(name)
    if counts is None:
        return (None,) * len(_FIGURES)
    value, error = float(counts.cells[cell]), float(np.sqrt(counts.cell_variance))
    return value, error, _MARGIN * error, value - _MARGIN * error, value + _MARGIN * error


def _cell(column: ColumnGrid, cell: int) -> tuple[str | None, str | None, str | None, bool]:
    """Return the label of a cell, or its bounds, and whether it is that of missing values."""
    if column.edges is None or column.steps is None or not isinstance(column.kind, NumericKind):
        labels = [str(label) for label in column.kind.labels]  # type: ignore[attr-defined]
        label = labels[cell] if cell < len(labels) else None
        return label, None, None, label is None
    if column.kind.nullable and cell == column.n_cells - 1:
        return None, None, None, True
    ends = column.steps.codes(np.array([column.edges[cell], column.edges[cell + 1] - 1]))
    lower, upper = column.kind.decode(ends, column.kind.sample_type).cast(pa.string()).to_pylist()
    return None, lower, upper, False


def _label_pairs(questions: Questions, among: Sequence[ColumnGrid], tables: NoisyTables) -> list[tuple[str, str]]:
    """Return pairs of columns of labels, those with the target first: few enough, and each of few enough cells."""
    plan = questions.measured.release.schema.rule_plan
    ruled = set() if plan is None else {*plan.follows, *plan.gaps}
    columns = [c for c in among if not c.numeric and c.name not in ruled]
    target = questions.measured.target
    sizes = {column.name: column.shown for column in columns}
    pairs = sorted(combinations(sizes, 2), key=lambda pair: target not in pair)
    small = [pair for pair in pairs if sizes[pair[0]] * sizes[pair[1]] <= MOST_CELLS]
    if len(small) < len(pairs):
        tables.left_out.append(f"{len(pairs) - len(small)} pairs of columns of more than {MOST_CELLS} cells.")
    if len(small) > MOST_PAIRS:
        tables.left_out.append(f"{len(small) - MOST_PAIRS} pairs of columns beyond the first {MOST_PAIRS}.")
    return small[:MOST_PAIRS]


def _of_pairs(
    questions: Questions, pairs: Sequence[tuple[str, str]], tables: NoisyTables
) -> Iterator[tuple[object, ...]]:
    left = float(_MOST_WORK)
    for place, pair in enumerate(pairs):
        if left <= 0:
            tables.left_out.append(f"{len(pairs) - place} more pairs of columns: the tables are kept short.")
            return
        rows = list(_of_pair(questions, pair, tables))
        with suppress(EstimateError):
            left -= questions.estimator(pair, "table").calibration.work(len(rows))
        yield from rows


def _of_pair(questions: Questions, pair: tuple[str, str], tables: NoisyTables) -> Iterator[tuple[object, ...]]:
    try:
        cells, counts = pair_counts(questions, *pair)
    except EstimateError as error:
        tables.left_out.append(f"The pair {pair[0]!r}, {pair[1]!r}: {error}")
        return
    labels = [list(map(str, questions.measured.column(name).kind.labels)) for name in pair]  # type: ignore[attr-defined]
    for place, figures in zip(cells, _figures(counts, 0.0), strict=True):
        first, second = divmod(int(place), len(labels[1]))
        yield (pair[0], labels[0][first], pair[1], labels[1][second], *figures)
