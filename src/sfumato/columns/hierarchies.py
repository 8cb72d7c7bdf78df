"""Codes that are read as their parents: a public hierarchy of one step, and a public choice of the codes kept apart.

    categories: [A00, A01, I10, I11]      the codes
    parents:    [A, A, I, I]              of each code
    keep:       [I10]                     or the first so many; what is kept apart is not read off the records

has the levels I10, A, I: a cell `A01` is read as A, `I11` as I, and a cell `A` as A. Which level a code has follows
from these facts alone, so that a record still adds one to one level.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from sfumato.columns.facts import label_text, labels_text, plain_value, shown

Keep: TypeAlias = int | tuple[str, ...]
"""The codes kept apart: the first so many of the list, or these."""


@lru_cache(maxsize=256)
def level_of_codes(categories: tuple[str, ...], parents: tuple[str, ...], keep: Keep) -> dict[str, str]:
    """Return for every code its level: itself if it is kept, else its parent. Codes that are kept come first.

    Args:
        categories: the codes.
        parents: of each code; empty without a hierarchy.
        keep: the codes kept apart.

    Example:
        >>> level_of_codes(("A00", "I10"), ("A", "I"), ("I10",))
        {'I10': 'I10', 'A00': 'A'}
    """
    if not parents:
        return {code: code for code in categories}
    own = set(categories[:keep] if isinstance(keep, int) else keep)
    levels = {code: code for code in categories if code in own}
    return levels | {code: parent for code, parent in zip(categories, parents, strict=True) if code not in own}


def read_keep(categories: tuple[str, ...], keep: object, faults: list[str]) -> Keep:
    """Return which codes are kept apart, noting what is wrong with it."""
    keep = plain_value(keep)
    if isinstance(keep, int) and not isinstance(keep, bool):
        if not 0 <= keep <= len(categories):
            faults.append(f"Expected keep to be at most the number of categories, {len(categories)}, got {keep=}.")
        return keep
    hint = "Write how many of the first codes to keep apart, or name them."
    codes = labels_text("keep", "a code", keep, faults, hint=hint)
    unknown = next((code for code in codes if code not in set(categories)), None)
    if unknown is not None and not faults:
        faults.append(f"Expected keep to name categories, got {unknown!r}. Remove or correct it.")
    return codes


def read_parents(categories: tuple[str, ...], parents: object, keep: Keep, faults: list[str]) -> tuple[str, ...]:
    """Return the parent of each code, empty of a code that is kept and has none, noting what is wrong.

    Args:
        categories: the codes.
        parents: a mapping from codes to their parents, or one parent per code.
        keep: the codes kept apart.
        faults: gets a sentence for every fault.
    """
    if isinstance(parents, Mapping):
        given = {label_text("a code of parents", code, faults): parent for code, parent in parents.items()}
        unknown = next((code for code in given if code not in set(categories)), None)
        if unknown is not None:
            faults.append(f"Expected parents of categories, got one of {unknown!r}. Remove it, or add the category.")
        values = [given.get(code, "") for code in categories]
    elif isinstance(parents, list | tuple):
        values = list(parents)
    else:
        faults.append(f"Expected parents to map each code to its parent, got {shown(parents)}.")
        return ()
    texts = tuple(label_text("a parent", parent, faults) for parent in values)
    if len(texts) != len(categories):
        faults.append(f"Expected one parent per category, got {len(texts)} for {len(categories)}. Correct the lists.")
    if not faults:
        faults += _level_faults(categories, texts, keep)
    return texts


def _level_faults(categories: tuple[str, ...], parents: tuple[str, ...], keep: Keep) -> list[str]:
    levels, codes = level_of_codes(categories, parents, keep), set(categories)
    for code, level in levels.items():
        if not level:
            return [
                f"Expected a parent of every code that is not kept, got none of {code!r}. Add it, or keep the code."
            ]
        if level != code and level in codes:
            return [
                f"Expected parents that are no codes themselves, got {level!r}. Call it by another name, or take it "
                "out of the categories: a cell that holds a parent is read as it."
            ]
    return []
