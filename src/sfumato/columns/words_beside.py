"""Values of a column of numbers or dates that many rows share: single numbers, and words beside all numbers.

    {kind: integer, lower: 0, upper: 500, atoms: ["<5", unknown, 0]}

A word has a code of its own, 2 for the first, where numbers have theirs between 0 and 1. Which word a cell is depends
on the text of that cell alone: as labels, words are the same where their canonical texts are.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.cells import are_tokens, plain
from sfumato.columns.date_forms import date_forms
from sfumato.columns.facts import label_text, shown
from sfumato.columns.levels import Categorical
from sfumato.columns.storage import from_text
from sfumato.columns.text_forms import floats, is_duration
from sfumato.errors import SchemaError

MOST_ATOMS = 100
FIRST_WORD = 2.0
"""The code of the first word; those of the others follow in whole steps."""


@lru_cache(maxsize=256)
def label_kind(words: tuple[str, ...]) -> Categorical:
    """Return the kind of words alone: labels, missing where a cell holds none of them."""
    return Categorical(categories=words, nullable=True)


def listed_atoms(
    atoms: object,
    is_value: Callable[[Sequence[str]], np.ndarray],
    value_of: Callable[[object], float],
    faults: list[str],
) -> tuple[str | float, ...]:
    """Return the words and the values of a list, or note what is wrong with it.

    Args:
        atoms: the list.
        is_value: which texts are values of the column.
        value_of: a number as the column has it, or notes why it has none.
        faults: gets a sentence for every fault.
    """
    if isinstance(atoms, str | bytes | set | frozenset | Mapping) or not isinstance(atoms, Iterable):
        faults.append(f"Expected atoms to be a list of words and numbers, got {shown(atoms)}.")
        return ()
    values: list[Any] = [label_text("a word", a, faults) if isinstance(a, str) else value_of(a) for a in atoms]
    if faults:
        return ()
    words = tuple(value for value in values if isinstance(value, str))
    if len(values) > MOST_ATOMS:
        faults.append(f"Expected at most {MOST_ATOMS} atoms, got {len(values)}. List those that many rows share.")
    if "" in words:
        faults.append("Expected atoms to be words and numbers, got an empty text. List it under missing.")
    if len(set(values)) < len(values):
        faults.append("Expected each of atoms once, got one twice. Remove it.")
    numbers = is_value(words) | ~are_words(words) if words else ()  # without words no reader is loaded
    if value := next((word for word, own in zip(words, numbers, strict=True) if own), None):
        faults.append(
            f"Expected words among atoms that read as no number, date or length of time, got {value!r}. Take it out, "
            "or write a number without quotes."
        )
    try:
        label_kind(words if words and not faults else ("a word",))
    except SchemaError as error:
        faults.append(f"Of the words among atoms: {error}")
    return tuple(values)


def are_words(texts: Sequence[str]) -> np.ndarray:
    """Return which texts are no numbers, dates or lengths of time, which other types than text hold too, shape (n,).

    Example:
        >>> are_words(["<5", "12", "2021-01-01", "2 days"]).tolist()
        [True, False, False, False]
    """
    cells = pa.array(texts, pa.string())
    return np.isnan(floats(cells)) & (date_forms(cells) < 0) & ~is_duration(cells)


def no_word(words: tuple[str, ...], missing: Collection[str]) -> str | None:
    """Return the first word that stands for no value; None if none does.

    Example:
        >>> no_word(("<5", "?"), ["", "?"])
        '?'
    """
    tokens = are_tokens(pa.array(words, pa.string()), tuple(missing)).to_pylist() if words and missing else ()
    return next((word for word, is_token in zip(words, tokens, strict=False) if is_token), None)


def with_words(cells: pa.Array, places: np.ndarray, words: tuple[str, ...]) -> pa.Array:
    """Return text cells, those of a place from 0 on as the word of it, shape (n,).

    Example:
        >>> with_words(pa.array(["7", None]), np.array([-1, 0]), ("<5",)).to_pylist()
        ['7', '<5']
    """
    some = pa.array(places >= 0)
    texts = pa.array(words, pa.string()).take(pa.array(places[places >= 0]))
    own = plain(cells)  # Arrow puts nothing into a view
    return pc.replace_with_mask(own, some, from_text(texts, own.type)).cast(cells.type)
