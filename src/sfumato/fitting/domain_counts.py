"""Counts of open columns: cells of the public grids of numbers and of years, missing cells, and words.

Proof: docs/proofs/discovery.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from sfumato.columns.number_grid import MISSING, cells_of, year_cells
from sfumato.columns.open import OpenKind
from sfumato.columns.written import Written
from sfumato.mechanisms.statistics import Counts
from sfumato.mechanisms.unlisted_words import Tally
from sfumato.records.engine import Rows
from sfumato.records.open_data import numbers_of, years_of
from sfumato.schema.schema import Schema


@dataclass(frozen=True)
class DomainCounts(Counts):
    """Per open column, how many records lie in each cell of the public grid, are missing, or hold each word.

    One record adds a single 1 to each of the c columns: norm √c. Two records are at most √(2c) apart. Where records are
    counted too, that is one more 1, the same for all: norm √(c + 1). Value: a `Tally`.

    Attributes:
        kinds: the open columns with their kinds, none unknown.
        formats: of those of unknown kind that are dates, the format.
        unit_rows: most rows of a unit.
        written: how the numbers of some are written as text.
        with_records: whether a last listed cell counts the records, whose number is not public.
    """

    kinds: Mapping[str, OpenKind]
    unit_rows: int = 1
    name: str = "counts of open columns"
    written: Mapping[str, Written | None] = field(default_factory=dict)
    formats: Mapping[str, str | None] = field(default_factory=dict)
    with_records: bool = False

    @property
    def squares(self) -> float:
        """The number of columns, and 1 where records are counted."""
        return len(self.kinds) + self.with_records

    @property
    def word_columns(self) -> tuple[str, ...]:
        """Columns with words."""
        return tuple(name for name, kind in self.kinds.items() if kind == "categorical")

    @property
    def ends(self) -> np.ndarray:
        """Where each column's listed cells end: the grid and missing; missing; or present and missing."""
        sizes = {"categorical": 1, "boolean": 2}
        return np.cumsum([sizes.get(kind, MISSING + 1) for kind in self.kinds.values()])

    def zero(self) -> Tally:
        """Return an empty tally."""
        return Tally(
            np.zeros(self.ends[-1] + self.with_records), {name: Counter() for name in self.word_columns}, self.unit_rows
        )

    def add(self, total: Tally, rows: Rows) -> None:
        """Count some records."""
        if self.with_records:
            total.listed[-1] += len(next(iter(rows.values())))
        parts = np.split(total.listed[: self.ends[-1]], self.ends[:-1])
        for part, (name, kind) in zip(parts, self.kinds.items(), strict=True):
            column = rows[name]
            if kind in ("integer", "continuous"):
                numbers = column if column.dtype.kind == "f" else numbers_of(column, self.written.get(name))
                part += np.bincount(cells_of(numbers), minlength=MISSING + 1)
                continue
            if kind == "datetime":
                years = column if column.dtype.kind == "f" else years_of(column, self.formats.get(name))
                part += np.bincount(year_cells(years), minlength=MISSING + 1)
                continue
            texts = [text.strip() if text is not None else "" for text in column]
            missing = sum(not text for text in texts)
            part[-1] += missing
            if kind == "boolean":
                part[0] += len(texts) - missing
            else:
                total.words[name].update(text for text in texts if text)


def one_row_a_unit(schema: Schema) -> Schema:
    """Return the schema of the records that discovery reads: of each unit one row alone, so that noise is for one.

    Which row follows from the unit's own rows, as `max_rows` chooses them.
    """
    unit = schema.unit
    return schema if unit is None or unit.max_rows == 1 else replace(schema, unit=replace(unit, max_rows=1))


def domain_counts(schema: Schema, kinds: Mapping[str, OpenKind]) -> DomainCounts:
    """Return the counts that domains of open columns are read off, with the number of units where none is known.

    Args:
        schema: what is public.
        kinds: of its open columns, none unknown.
    """
    return DomainCounts(kinds, with_records=one_row_a_unit(schema) is not schema)
