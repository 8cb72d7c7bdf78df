"""Words beside numbers or dates: the column of values alone, and one of labels beside it, which says the words.

A record has one cell in each of the two, of its own cell alone, so a table with words is a table like any other: norms,
sensitivities and events are those of its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.cells import valid_text
from sfumato.columns.kind import ColumnKind
from sfumato.columns.levels import Categorical
from sfumato.columns.words_beside import FIRST_WORD, label_kind
from sfumato.schema.schema_facts import SchemaFacts


@final
@dataclass(frozen=True, slots=True)
class WordColumn:
    """A column of numbers or dates beside which words may be.

    Attributes:
        name: of the column.
        kind: of its cells.
        column: name of the column of words.
    """

    name: str
    kind: NumericKind
    column: str

    @property
    def labels(self) -> Categorical:
        """The kind of the words, missing where a cell holds a value, or nothing."""
        return label_kind(self.kind.words)

    @property
    def columns(self) -> dict[str, ColumnKind]:
        """The kinds of the two columns in its place."""
        return {self.name: self.kind.wordless, self.column: self.labels}

    def split(self, cells: np.ndarray | Values) -> dict[str, Any]:
        """Return coded cells, shape (n,), as the two columns, each cell by itself: values, missing of words; words.

        Example:
            >>> from sfumato.columns import Integer
            >>> WordColumn("n", Integer(lower=0, upper=9, atoms=("<5",)), "w").split(np.array([0.5, 2.0]))
            {'n': array([0.5, nan]), 'w': array([1, 0], dtype=int32)}
        """
        if isinstance(cells, Values):
            words = np.full(len(cells), -1) if cells.words is None else cells.words
            numbers: np.ndarray | Values = Values(cells.values, cells.absent)
        else:
            words = np.where(cells >= FIRST_WORD, cells - FIRST_WORD, -1)
            numbers = np.where(words >= 0, np.nan, cells)
        return {self.name: numbers, self.column: np.where(words >= 0, words, self.labels.missing_code).astype(np.int32)}

    def joined(self, numbers: np.ndarray | Values, words: np.ndarray) -> tuple[np.ndarray | Values, np.ndarray]:
        """Return cells of drawn values and words, shape (n,), and which hold neither.

        The value where there is one, else the word, else missing.

        Args:
            numbers: codes of values, or these, shape (n,).
            words: codes of words, shape (n,).
        """
        absent = numbers.absent if isinstance(numbers, Values) else np.isnan(numbers)
        places = np.where(absent & (words < len(self.kind.words)), words, -1).astype(np.int64)
        cells = Values(numbers.values, absent, places) if isinstance(numbers, Values) else numbers
        if not isinstance(cells, Values):
            cells = np.where(places >= 0, FIRST_WORD + places, cells)
        return cells, absent & (places < 0)

    def given(self, code: float) -> dict[str, float]:
        """Return the code of a given cell as codes of the two columns; of a value its own alone: no word is beside."""
        if code < FIRST_WORD:
            return {self.name: code}
        word = self.labels.missing_code if np.isnan(code) else code - FIRST_WORD
        return {self.name: np.nan, self.column: float(word)}

    def condition(self, value: object) -> dict[str, object]:
        """Return what a caller asks of a cell as what is asked of the two columns: None stands for neither."""
        text = pa.array([valid_text(value) if isinstance(value, str) else None], pa.string())
        place = int(self.kind.word_places(text, ())[0])
        if place >= 0:
            return {self.column: self.kind.words[place]}
        return {self.name: value, self.column: None} if value is None else {self.name: value}


def word_name(name: str) -> str:
    """Return the name of the column of words of a column of numbers."""
    return f"{name} (word)"


def word_columns(schema: SchemaFacts) -> dict[str, WordColumn]:
    """Return the released columns of numbers or dates that have words beside them, by name."""
    numbers = schema.of_kind(NumericKind).items()
    return {name: WordColumn(name, kind, word_name(name)) for name, kind in numbers if kind.words}


def with_words(columns: Mapping[str, ColumnKind], words: Mapping[str, WordColumn]) -> dict[str, ColumnKind]:
    """Return columns with the two of values and of words in the place of those that have words."""
    kinds: dict[str, ColumnKind] = {}
    for name, kind in columns.items():
        kinds |= words[name].columns if name in words else {name: kind}
    return kinds
