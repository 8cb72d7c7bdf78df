"""The chain of lenses of a schema, in its one order, and what follows from it.

    words     a word beside numbers          → a label beside them, and no number
    sets      a set beside other columns     → a truth value for each item
    rules     what follows from others       → left out; the later of two columns in order → its distance
    distances two dates                      → the time from one to the other beside them
    clocks    a moment                       → its time of day beside it
    weights   the weight                     → one column more, from 0 to its bound

Words come first: to all other lenses such a cell is missing. Then sets, so that rules are kept in rows of truth values;
distances and clocks after rules, which say what of a date is free; clocks last, so that moments have their times before
others are put at their distances from them.
Rows go back in the opposite order. Behind the chain, linked rows are two plain tables of units and of steps
(`sfumato.schema.linked`, `sfumato.records.linked`).

Samples never write the hidden level of a column of labels, which a model may have learnt of words outside a closed
list. A sampler that can draws given that no row has it; of any other, such cells are dealt anew: they have the labels
of other rows of the same draw.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.columns.kind import ColumnKind
from sfumato.columns.levels import LevelKind
from sfumato.lenses.date_columns import ClockRows, DatesLens, DistantRows
from sfumato.lenses.lens import Around, Lens, Sampler, UnitSampler
from sfumato.lenses.ruled_rows import RulesLens
from sfumato.lenses.sets import SetsLens
from sfumato.lenses.weights import WeightLens
from sfumato.lenses.word_rows import WordsLens
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import readable_weight_kind, weight_kind


def lenses_of(schema: Schema) -> tuple[Lens, ...]:
    """Lenses of a schema in the order in which records go through them; none of a plain table."""
    if schema.tree is not None:
        return ()  # each of its tables is linked rows
    lenses: list[Lens] = []
    if words := schema.word_columns:
        lenses.append(WordsLens(words))
    if sets := schema.set_columns:
        lenses.append(SetsLens(sets))
    if (plan := schema.rule_plan) is not None:
        lenses.append(RulesLens(plan))
    if distances := schema.distances:
        lenses.append(DatesLens(distances, DistantRows))
    if clocks := schema.clocks:
        lenses.append(DatesLens(clocks, ClockRows))
    if schema.weight is not None:
        lenses.append(WeightLens(schema.weight.column, weight_kind(schema)))
    return tuple(lenses)


def plain_schema(schema: Schema) -> Schema:
    """Schema of the plain table that is measured and modelled; a plain table's own."""
    lenses = lenses_of(schema)
    if not lenses:
        return schema
    columns = dict(schema.columns)
    for lens in lenses:
        columns = lens.columns(columns)
    areas = tuple(name for name in schema.areas if name in columns)  # the others follow from it
    cleared = {"sources": {}, "table_source": {}, "weight": None, "areas": areas, "questions": ()}
    return dataclasses.replace(schema, columns=columns, rules=(), accept=(), **cleared)


def read_kinds(schema: Schema) -> dict[str, ColumnKind]:
    """Kinds by which a record's cells are coded before the first lens: those of released columns, and the weight's."""
    kinds = {name: schema.columns[name] for name in schema.released}
    return kinds if schema.weight is None else kinds | {schema.weight.column: readable_weight_kind(schema)}


def plain_records(schema: Schema, rows: dict[str, Any]) -> dict[str, Any]:
    """Plain records of coded ones."""
    for lens in lenses_of(schema):
        rows = lens.code(rows)
    return rows


def shaped(schema: Schema, inner: Sampler) -> Sampler:
    """Sampler of a schema's rows, of one of plain rows, which may have hidden levels."""
    inner = labelled(plain_schema(schema), inner) if schema.tree is None else inner
    for lens in reversed(lenses_of(schema)):
        inner = lens.rows(inner)
    return inner


class PlainRows(Around):
    """Samples as plain records: rows of a schema, coded as the records are for a fit.

    Args:
        schema: as it was declared.
        inner: a sampler of plain rows.
    """

    def __init__(self, schema: Schema, inner: Sampler) -> None:
        super().__init__(shaped(schema, inner))
        self._schema = schema

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return n coded rows."""
        rows, weight = dict(self._inner.rows(n, rng, classes)), self._schema.weight
        if weight is not None:  # rows of the weighted population, one as good as another
            rows[weight.column] = np.ones(n)
        return plain_records(self._schema, rows)

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes."""
        return self._inner.given(codes)


def labelled(schema: Schema, inner: Sampler) -> Sampler:
    """Sampler of plain rows without hidden levels, of one that may draw them."""
    hiding = {name: len(kind.labels) for name, kind in schema.of_kind(LevelKind).items() if kind.hides_blank}
    among_labels = getattr(inner, "among_labels", None)  # the law given that no cell has a hidden level
    if among_labels is not None:
        return among_labels()
    return LabelledRows(hiding, inner) if hiding and not isinstance(inner, UnitSampler) else inner


class LabelledRows(Around):
    """Rows of a sampler whose cells without a label are dealt anew, in columns `hiding` one after so many."""

    def __init__(self, hiding: Mapping[str, int], inner: Sampler) -> None:
        super().__init__(inner)
        self._hiding = hiding

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have: none that is hidden."""
        possible = self._inner.possible.copy()
        possible[self._hiding.get(self.class_column or "", possible.size) :] = False
        return possible

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes."""
        return LabelledRows(self._hiding, self._inner.given(codes))

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return n coded rows; of a hidden class, whole rows are drawn anew."""
        rows, target = dict(self._inner.rows(n, rng, classes)), self.class_column
        if classes is None and target is not None and target in self._hiding:
            dealt = _dealt(rows[target], self._hiding[target], rng)
            if (wrong := np.flatnonzero(rows[target] != dealt)).size:
                anew = self._inner.rows(wrong.size, rng, dealt[wrong])
                for name, column in anew.items():
                    rows[name][wrong] = column
        return rows | {name: _dealt(rows[name], n_labels, rng) for name, n_labels in self._hiding.items()}


def _dealt(codes: np.ndarray, n_labels: int, rng: np.random.Generator) -> np.ndarray:
    """Return codes of which those that are no label are some of the others; any, where there is no other."""
    if not (blank := codes >= n_labels).any():
        return codes
    known = codes[~blank] if not blank.all() else np.arange(n_labels, dtype=codes.dtype)
    return np.where(blank, rng.choice(known, codes.size), codes)
