"""Columns of truth values, which are labels with more than one way of writing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import is_text
from sfumato.columns.facts import flag, labels_text, shown
from sfumato.columns.kind import refuse, settle
from sfumato.columns.levels import LevelKind

_TRUE = ("true", "yes", "y", "t", "1")
_FALSE = ("false", "no", "n", "f", "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean(LevelKind):
    """True or false.

    Attributes:
        text: how false and true are written where the column is text, such as ("No", "Yes"); samples then are text.
            None: samples are truth values.
        nullable: whether missing is a value of its own. If not, a missing cell is neither false nor true.

    Example:
        >>> Boolean(nullable=True).n_levels  # false, true, missing
        3
        >>> Boolean(text=("No", "Yes")).labels
        ('No', 'Yes')
    """

    name: ClassVar[str] = "boolean"

    text: tuple[str, str] | None = None
    nullable: bool = False

    def __post_init__(self) -> None:
        faults: list[str] = []
        text = None if self.text is None else labels_text("text", "a word", self.text, faults)
        nullable = flag(self.nullable, faults)
        if not faults and text is not None:
            words = [word.strip().lower() for word in text]
            if len(set(words)) != 2 or len(words) != 2 or words[0] in _TRUE or words[1] in _FALSE:
                faults.append(
                    'Expected text to be the word for false and the word for true, such as ["No", "Yes"], got '
                    f"{shown(self.text)}."
                )
        refuse(faults)
        settle(self, text=text, nullable=nullable)

    @property
    def labels(self) -> tuple[str, ...]:
        """False and true."""
        return ("false", "true") if self.text is None else self.text

    @property
    def sample_type(self) -> pa.DataType:
        """Truth values, or text where it is declared how it is written."""
        return pa.bool_() if self.text is None else pa.string()

    def texts(self, storage: pa.DataType) -> tuple[str, ...]:
        """Return the labels where text is stored, else false and true, or 0 and 1 where numbers are."""
        if is_text(storage):
            return self.labels
        return ("false", "true") if types.is_boolean(storage) else ("0", "1")

    def names(self) -> tuple[Sequence[str], Sequence[int]]:
        """Return the words for false and true, and their codes."""
        declared = dict(zip(([word.lower() for word in self.text or ()]), (0, 1), strict=False))
        words = dict.fromkeys(_FALSE, 0) | dict.fromkeys(_TRUE, 1) | declared
        return list(words), list(words.values())

    def folded(self, text: pa.Array, missing: Sequence[str]) -> tuple[pa.Array, Sequence[str]]:
        """Return both in small letters."""
        return pc.utf8_lower(text), tuple(token.lower() for token in missing)


class Truth(Boolean):
    """A truth value that is made of other cells, whatever they hold: it needs no level of cells without one."""

    __slots__ = ()

    @property
    def has_blank(self) -> bool:
        """Whether cells without a value have a level: if the column is nullable."""
        return self.nullable
