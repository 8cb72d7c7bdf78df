"""Sets beside other columns: one truth value for each item, which is what is measured and modelled.

A record has one cell in each of these columns, so a table with sets is a table like any other: norms, sensitivities and
events are those of its columns. Proof: docs/proofs/sets_beside_columns.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.columns.booleans import Boolean, Truth
from sfumato.columns.facts import shown
from sfumato.columns.images import Image
from sfumato.columns.kind import ColumnKind
from sfumato.columns.sets import CodedSets, ItemSet
from sfumato.errors import ConfigError, SchemaError
from sfumato.schema.schema_facts import SchemaFacts
from sfumato.schema.word_columns import with_words, word_columns

MOST_ITEMS = 64
"""Items of all sets beside other columns, together: each is a column that noise and time are spent on."""

IN, OUT = 1, 0
"""Codes of the truth values."""


@final
@dataclass(frozen=True, slots=True)
class SetColumn:
    """A column of sets, and the columns of truth values that stand for it.

    Attributes:
        name: of the column of sets.
        kind: of its sets.
        items: names of the columns of truth values, in the order of the items' codes.
    """

    name: str
    kind: ItemSet
    items: tuple[str, ...]

    def truth_values(self, sets: CodedSets) -> dict[str, np.ndarray]:
        """Return which sets hold each item, as codes of truth values, shape (n,) each; a set's own alone."""
        table = np.zeros((len(self.items), len(sets)), dtype=np.int32)
        table[sets.codes, sets.owners] = IN
        return dict(zip(self.items, table, strict=True))

    def sets(
        self, codes: Mapping[str, np.ndarray], rng: np.random.Generator, fixed: frozenset[int] = frozenset()
    ) -> CodedSets:
        """Return the sets of modelled rows; of a set longer than `max_length` a random part.

        Args:
            codes: of truth values by column, shape (n,) each.
            rng: public randomness; untouched where no set is too long.
            fixed: codes of items that stay in the sets that have them, at most `max_length`.
        """
        table = np.stack([codes[name] == IN for name in self.items], axis=1)
        long = np.flatnonzero(table.sum(axis=1) > self.kind.max_length)
        if long.size:
            order = rng.random((long.size, len(self.items)))
            order[:, sorted(fixed)] += 1.0
            order[~table[long]] = -1.0
            first = np.argsort(-order, axis=1)[:, : self.kind.max_length]
            table[long] = OUT
            table[long[:, None], first] = True
        owners, items = np.nonzero(table)
        return CodedSets.of(owners, items, len(table))

    def code_of(self, item: object) -> int:
        """Return the code of an item that a caller names.

        Raises:
            ConfigError: it is none of the column's.
        """
        text = str(item)
        labels = self.kind.labels
        if isinstance(item, str | int | np.integer) and not isinstance(item, bool):
            if labels is None and text.isascii() and text.isdecimal() and str(int(text)) == text:
                code = int(text)
                if code < self.kind.size:
                    return code
            elif labels is not None and text in labels:
                return labels.index(text)
        raise ConfigError(
            f"Expected an item of column {self.name!r}, got {shown(item)}. Items are those of its schema."
        )

    def taken_from(self, given: dict[str, object]) -> dict[int, int]:
        """Take what is given of the column, and of its items by their own columns, and return truth values by code.

        Raises:
            ConfigError: a value is none that they can have, an item is given twice, or more than a set can hold.
        """
        truths = self._given(given.pop(self.name)) if self.name in given else {}
        for code, name in enumerate(self.items):
            if name in given:
                if code in truths:
                    raise ConfigError(f"Expected each item of {self.name!r} to be given once, got {name!r} twice.")
                truths[code] = int(Boolean().given(name, given.pop(name), pa.bool_()).code)
        if sum(truths.values()) > self.kind.max_length:
            raise ConfigError(
                f"Expected at most {self.kind.max_length} items of {self.name!r} to be given as true, its max_length, "
                f"got {sum(truths.values())}."
            )
        return truths

    def _given(self, value: object) -> dict[int, int]:
        if not isinstance(value, Mapping) or not all(isinstance(truth, bool | np.bool_) for truth in value.values()):
            example = "0" if self.kind.labels is None else self.kind.labels[0]
            raise ConfigError(
                f"Expected items of {self.name!r} to be given with true or false each, such as "
                f"{{{self.name!r}: {{{example!r}: True}}}}, got another value. Items that are not named are "
                "drawn."
            )
        truths = {self.code_of(item): IN if truth else OUT for item, truth in value.items()}
        if len(truths) < len(value):
            raise ConfigError(f"Expected each item of {self.name!r} to be given once, got one twice.")
        return truths


def set_columns(schema: SchemaFacts) -> dict[str, SetColumn]:
    """Return the columns of sets that are released beside other columns, by name; none of sets alone.

    Raises:
        SchemaError: they have too many items together, or an item's column is called like another.
    """
    sets = schema.of_kind(ItemSet)
    if not sets or len(schema.released) < 2:
        return {}
    if image := next(iter(schema.of_kind(Image)), None):
        raise SchemaError(
            f"Expected sets beside labels, numbers or dates, got images in column {image!r} beside them. Declare one "
            "of them as identifier to leave it out."
        )
    most = sum(kind.size for kind in sets.values())
    if most > MOST_ITEMS:
        raise SchemaError(
            f"Expected sets beside other columns to have at most {MOST_ITEMS} items together, got {most} in "
            f"{', '.join(map(repr, sets))}. List fewer items, with `other` for the rest, or release the sets alone, "
            "by latent-classes or dpgm, and declare the other columns as identifier."
        )
    labels = {name: range(kind.size) if kind.labels is None else kind.labels for name, kind in sets.items()}
    columns = {n: SetColumn(n, kind, tuple(f"{n}: {label}" for label in labels[n])) for n, kind in sets.items()}
    names = set(schema.columns) | {own.column for own in word_columns(schema).values()}
    items = [item for column in columns.values() for item in column.items]
    if twice := next((item for item in items if item in names or names.add(item)), None):
        raise SchemaError(
            f"Expected the items of sets to have names of their own as columns, got {twice!r} twice. Rename the column."
        )
    return columns


def sets_alone(schema: SchemaFacts) -> bool:
    """Whether a schema releases sets and nothing beside them."""
    return bool(schema.of_kind(ItemSet)) and len(schema.released) == 1


def itemised(schema: SchemaFacts) -> dict[str, ColumnKind]:
    """Return the released columns in order, of sets those of truth values, of words labels: what can be asked of each.

    Sets alone are themselves.
    """
    released = {name: schema.columns[name] for name in schema.released}
    return with_items(with_words(released, word_columns(schema)), set_columns(schema))


def with_items(columns: Mapping[str, ColumnKind], sets: Mapping[str, SetColumn]) -> dict[str, ColumnKind]:
    """Return columns with those of truth values in the place of sets."""
    kinds: dict[str, ColumnKind] = {}
    for name, kind in columns.items():
        kinds |= dict.fromkeys(sets[name].items, Truth()) if name in sets else {name: kind}
    return kinds
