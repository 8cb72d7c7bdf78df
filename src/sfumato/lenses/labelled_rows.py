"""Rows with a label in every cell that has to have one: samples never write the hidden level of a column of labels.

A model may have learnt that level of words outside a closed list. A sampler that can draws given that no row has it;
of any other, such cells are dealt anew: they have the labels of other rows of the same draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sfumato.columns.levels import LevelKind
from sfumato.lenses.lens import Around, Sampler, UnitSampler
from sfumato.schema.schema import Schema


@runtime_checkable
class AmongLabels(Protocol):
    """A sampler that can draw given that no cell has a hidden level."""

    def among_labels(self) -> Sampler:
        """Return the sampler of that law."""
        ...


def labelled(schema: Schema, inner: Sampler) -> Sampler:
    """Sampler of plain rows without hidden levels, of one that may draw them."""
    hiding = {name: len(kind.labels) for name, kind in schema.of_kind(LevelKind).items() if kind.hides_blank}
    if isinstance(inner, AmongLabels):
        return inner.among_labels()
    return LabelledRows(hiding, inner) if hiding and not isinstance(inner, UnitSampler) else inner


class LabelledRows(Around):
    """Rows of a sampler whose cells without a label are dealt anew.

    Args:
        hiding: columns with a hidden level, and how many labels they have.
        inner: the sampler.
    """

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
    blank = codes >= n_labels
    if not blank.any():
        return codes
    known = codes[~blank] if not blank.all() else np.arange(n_labels)
    dealt = codes.copy()
    dealt[blank] = rng.choice(known, int(blank.sum()))
    return dealt
