"""The kind of a column whose cells are sets of items: baskets, visited places, diagnoses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.columns.facts import label_text, labels_text, shown, whole_number
from sfumato.errors import SchemaError


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSet:
    """A set of items out of a closed list, at most `max_length` of them.

    A cell's items are taken in its own order: an item outside the list becomes `other` or is left out, an item that
    came before is left out, and of what remains the first `max_length` are kept. No other record has a part in it.

    Attributes:
        max_length: the most items of one set that are used.
        items: the items, as canonical text; or
        n_items: their number, where they are the whole numbers 0, 1, …, n_items − 1.
        other: the item that stands for every item outside the list; among the items or, if these are listed, one more.
        id: column of a long table, of one row per item, that says whose set a row belongs to; None where a cell holds
            a whole set.

    Example:
        >>> ItemSet(items=("bread", "milk"), other="else", max_length=5).size
        3
    """

    max_length: int
    items: tuple[str, ...] | None = None
    n_items: int | None = None
    other: str | None = None
    id: str | None = None

    MOST_ITEMS: ClassVar[int] = 2**24

    def __post_init__(self) -> None:
        faults: list[str] = []
        if (self.items is None) == (self.n_items is None):
            faults.append(f"Expected either items or n_items, got {'neither' if self.items is None else 'both'}.")
        items = None if self.items is None else _labels(self.items, faults)
        n_items = None if self.n_items is None else whole_number("n_items", self.n_items, faults)
        max_length = whole_number("max_length", self.max_length, faults)
        other = None if self.other is None else label_text("other", self.other, faults)
        if self.id is not None and (not isinstance(self.id, str) or not self.id):
            faults.append(f"Expected id to name a column, got id={shown(self.id)}.")
        if not faults:
            _check_sizes(n_items, max_length, other, faults)
        if faults:
            raise SchemaError(" ".join(faults[:5]))
        for name, value in {"items": items, "n_items": n_items, "max_length": max_length, "other": other}.items():
            object.__setattr__(self, name, value)

    @property
    def is_counted(self) -> bool:
        """Whether the items are whole numbers from 0."""
        return self.n_items is not None

    @property
    def size(self) -> int:
        """Number of codes of items, `other` included."""
        if self.items is None:
            return self.n_items or 0
        return len(self.items) + (self.other is not None and self.other not in self.items)

    @property
    def longest(self) -> int:
        """The most items that a set can hold."""
        return min(self.max_length, self.size)


def _labels(items: object, faults: list[str]) -> tuple[str, ...]:
    labels = labels_text("items", "an item", items, faults, hint="For 0 to n - 1 declare n_items.")
    if not faults and not 1 <= len(labels) <= ItemSet.MOST_ITEMS:
        faults.append("Expected 1 to 2^24 items.")
    return labels


def _check_sizes(n_items: int | None, max_length: int, other: str | None, faults: list[str]) -> None:
    if n_items is not None and not 1 <= n_items <= ItemSet.MOST_ITEMS:
        faults.append(f"Expected n_items between 1 and 2^24, got {n_items=}.")
    if max_length < 1:
        faults.append(f"Expected max_length of at least 1, got {max_length=}.")
    if n_items is not None and other is not None and not (other.isdecimal() and int(other) < n_items):
        faults.append(f"Expected other to be one of the items 0 to n_items - 1, got other={shown(other)}.")
    if n_items is not None and other is not None and not faults and other != str(int(other)):
        faults.append(f"Expected other to be a plain whole number, got other={shown(other)}.")
