"""Words beside numbers as a lens: the words of a column are a column of labels beside its values, and go back there.

Proof: docs/proofs/cells.md: of two columns each cell follows from the one cell of the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.columns.kind import ColumnKind, GivenValue
from sfumato.lenses.lens import Around, Sampler, given_values
from sfumato.schema.word_columns import WordColumn, with_words


@dataclass(frozen=True, slots=True)
class WordsLens:
    """Columns of numbers or dates with words beside them.

    Attributes:
        words: the columns by name.
    """

    words: Mapping[str, WordColumn]

    def columns(self, columns: Mapping[str, ColumnKind]) -> dict[str, ColumnKind]:
        """Columns with those of words beside."""
        return with_words(columns, self.words)

    def code(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Records whose words are in columns of their own."""
        for name, column in self.words.items():
            rows = rows | column.split(rows[name])
        return rows

    def rows(self, inner: Sampler) -> Sampler:
        """Rows whose cells hold a value or a word."""
        return WordRows(self.words, inner)


class WordRows(Around):
    """Rows whose cells hold the values, or else the words, that a sampler draws beside them.

    A row with neither where something has to be is another row of the same class, whole, so that rules hold.

    Args:
        words: the columns with words.
        inner: a sampler of rows with columns of words.
    """

    def __init__(self, words: Mapping[str, WordColumn], inner: Sampler) -> None:
        super().__init__(inner, len(words))
        self._words = words

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows."""
        rows, lacking = dict(self._inner.rows(n, rng, classes)), np.zeros(n, dtype=bool)
        for name, column in self._words.items():
            rows[name], absent = column.joined(rows[name], rows.pop(column.column))
            lacking |= absent & (not column.kind.nullable)
        if lacking.any():
            places = _dealt(lacking, np.zeros(n, dtype=np.int64) if classes is None else classes, rng)
            rows = {name: cells[places] for name, cells in rows.items()}
        return rows

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes."""
        return WordRows(self._words, self._inner.given(self._split(codes)))

    def given_values(self, values: Mapping[str, GivenValue]) -> Sampler:
        """Return the sampler given these values."""
        codes = self._split({name: value.code for name, value in values.items()})
        same = {name: value for name, value in values.items() if codes[name] == value.code}
        others = {name: GivenValue(code, pa.nulls(1)) for name, code in codes.items() if name not in same}
        return WordRows(self._words, given_values(self._inner, same | others))

    def _split(self, codes: Mapping[str, float]) -> dict[str, float]:
        """Return given cells as what is given of values and of words."""
        split = dict(codes)
        for name in split.keys() & self._words.keys():
            split |= self._words[name].given(codes[name])
        return split


def _dealt(lacking: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the place of the row to take for each row: its own, or another's of its class where it lacks something."""
    places = np.arange(lacking.size)
    for label in np.unique(classes[lacking]):
        own, others = (np.flatnonzero((classes == label) & part) for part in (lacking, ~lacking))
        if others.size:
            places[own] = rng.choice(others, own.size)
    return places
