"""Columns of labels: categorical and ordinal, and what boolean ones share with them.

A cell and a label are the same where their canonical texts are (`1` for the integer 1 and the float 1.0, `true` for a
boolean), so one list of labels describes a column however it is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.canonical import canonical, canonical_faults
from sfumato.columns.cells import are_tokens, is_scalar, is_text, looked_up, plain, read_text, valid_mask, values_of
from sfumato.columns.facts import flag, label_text, labels_text, shown
from sfumato.columns.hierarchies import Keep, level_of_codes, read_keep, read_parents
from sfumato.columns.kind import Fault, GivenValue, TabularKind, refuse, settle
from sfumato.columns.storage import has_text, text_of, unmodelled, values_of_texts
from sfumato.errors import SchemaError

UNKNOWN, MISSING = -1, -2
"""Marks of `LevelKind.find` for a value that is no label, and for no value at all."""

_MOST_LABELS_SHOWN = 12


class LevelKind(TabularKind):
    """A kind whose cells are labels of a closed list; a code is a label's place in it, int32.

    After all labels comes the blank level, of cells without a label: the missing level of a nullable kind, and a hidden
    one, which samples never write, of a kind that is neither nullable nor has an `other`.
    """

    __slots__ = ()

    is_numeric: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """One entry per label, and one for the missing level of a nullable kind."""
        return len(self.labels) + self.nullable

    @property
    def cell_bytes(self) -> int:
        """The longest label, in UTF-8."""
        return max(len(label.encode("utf-8", "surrogatepass")) for label in self.labels)

    @property
    def n_levels(self) -> int:
        """The number of codes, the blank level included."""
        return len(self.labels) + self.has_blank

    @property
    def has_blank(self) -> bool:
        """Whether cells without a label have a level of their own, the last."""
        return self.nullable or not self.goes_to_other

    @property
    def n_categories(self) -> int:
        """The number of labels without a declared `other`."""
        return len(self.labels)

    @property
    def missing_code(self) -> int:
        """The code of a missing cell: the missing level, else `other`, else the hidden level."""
        return len(self.labels) if self.nullable or self._other_code is None else self._other_code

    @property
    def unknown_code(self) -> int:
        """The code of an undeclared value: `other`, else the blank level."""
        return len(self.labels) if self._other_code is None else self._other_code

    @property
    def goes_to_other(self) -> bool:
        """Whether `other` is declared."""
        return self._other_code is not None

    @property
    def _other_code(self) -> int | None:
        return None

    def texts(self, storage: pa.DataType) -> tuple[str, ...]:
        """Return the labels as a storage type writes them."""
        del storage
        return self.labels

    def _read_texts(self, storage: pa.DataType) -> tuple[str, ...]:
        """Return the texts of cells of a storage type that have a level."""
        return self.texts(storage)

    def names(self) -> tuple[Sequence[str], Sequence[int]]:
        """Return the texts that name a level, and their codes."""
        return self.labels, range(len(self.labels))

    def folded(self, text: pa.Array, missing: Sequence[str]) -> tuple[pa.Array, Sequence[str]]:
        """Return text cells and missing tokens as they are compared with the texts that name a level."""
        return text, missing

    def find(self, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
        """Return for each cell the int32 code of its label, or UNKNOWN, or MISSING."""
        cells = plain(cells)
        storage = cells.type
        if types.is_dictionary(storage):
            return looked_up(self.find(cells.dictionary, missing), cells, MISSING)
        if is_text(storage):
            return _find_text(self, read_text(cells), missing)
        if not has_text(storage):
            return np.where(valid_mask(cells), UNKNOWN, MISSING).astype(np.int32)
        coded = cells.dictionary_encode()
        return looked_up(_find_text(self, text_of(coded.dictionary), missing), coded, MISSING)

    def _code(self, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
        places = self.find(cells, missing)
        places[places == UNKNOWN] = self.unknown_code
        places[places == MISSING] = self.missing_code
        return places

    def _missing_codes(self, n: int) -> np.ndarray:
        return np.full(n, self.missing_code, dtype=np.int32)

    def decode(self, codes: np.ndarray, storage: pa.DataType) -> pa.Array:
        """Return the labels of codes in exactly the storage type; the blank level is null."""
        if types.is_string_view(storage) or types.is_binary_view(storage):
            base = pa.string() if types.is_string_view(storage) else pa.binary()
            return self.decode(codes, base).cast(storage)  # Arrow takes nothing from a view
        labels = _stored_labels(self, storage.value_type if types.is_dictionary(storage) else storage)
        whole = np.clip(np.asarray(codes).astype(np.int64), 0, self.n_levels - 1)
        places = pa.array(whole, mask=whole >= len(labels))
        if not types.is_dictionary(storage):
            return labels.take(places)
        indices = places.cast(storage.index_type)
        return pa.DictionaryArray.from_arrays(indices, labels, ordered=storage.ordered)

    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return why the labels cannot be stored in a type, or None if they can."""
        values = storage
        if types.is_dictionary(storage):
            values = storage.value_type
            index = storage.index_type
            capacity = 2 ** (index.bit_width - types.is_signed_integer(index))
            if len(self.labels) > capacity:
                return (
                    f"Expected at most {capacity} labels for type {storage}, "
                    f"got {len(self.labels)}. Store the column as plain text."
                )
        unfit = _first_unfit(self, values)
        if unfit is None:
            return None
        return (
            f"Expected labels that type {storage} can hold, got {shown(unfit)}. "
            "Declare a label of that type, or store the column as text."
        )

    def reading_fault(self, storage: pa.DataType) -> str | None:
        """Return why no cell of a type can be a label: it has no text, or is a date where no label is.

        Of numbers and truth values one cell more, of text, makes text: `label_fault` says what does not fit.
        """
        values = values_of(storage)
        if not (is_scalar(values) or has_text(values)):
            return unmodelled(values)
        return None if is_scalar(values) else self.label_fault(storage)

    def label_fault(self, storage: pa.DataType) -> str | None:
        """Return why a column that is declared to hold values of a type has no label; None if it may have one."""
        values = values_of(storage)
        if is_text(values) or types.is_null(values):
            return None
        if is_scalar(values) and not types.is_boolean(values):
            values = pa.float64()  # 40.0 is 40
        fits = any(values_of_texts((text,), values) for text in self._read_texts(values))
        return None if fits else self.storage_fault(values)

    @property
    def sample_type(self) -> pa.DataType:
        """Whole numbers, or else numbers, if every label is written as such; else text."""
        fitting = (kind for kind in (pa.int64(), pa.float64()) if self.storage_fault(kind) is None)
        numbers = (kind for kind in fitting if text_of(_stored_labels(self, kind)).to_pylist() == list(self.labels))
        return next(numbers, pa.string())

    def faults(self, cells: pa.Array, missing: Sequence[str]) -> dict[Fault, np.ndarray]:
        """Return which cells have no value, and which no label."""
        codes = self.find(cells, missing)
        return {"missing": codes == MISSING, "unknown": codes == UNKNOWN}

    def becomes(self, fault: Fault) -> str:
        """Say what a fit makes of a cell with a fault."""
        code = self.missing_code if fault == "missing" else self.unknown_code
        if code < len(self.labels):
            return f"the label {self.labels[code]!r}"
        return "missing" if self.nullable else "no label: it counts for none"

    def text_or_missing(self, text: str, missing: Sequence[str]) -> str | None:
        """Return text as it is, or None if it stands for no value and has no level."""
        return None if text in missing and text not in self._read_texts(pa.string()) else text

    def _read_given(self, column: str, value: object, storage: pa.DataType, faults: list[str]) -> GivenValue:
        text = label_text(column, value, faults)
        code = -1 if faults else int(self.find(pa.array([text]), ())[0])
        if code < 0:
            labels = [repr(label) for label in self.labels[:_MOST_LABELS_SHOWN]]
            more = ", …" if len(self.labels) > len(labels) else ""
            faults[:] = [f"Expected one of {', '.join(labels)}{more} for {column!r}, got {shown(value)}."]
        code = max(code, 0)
        return GivenValue(float(code), self.decode(np.array([code]), storage))

    def parts(self, n: int) -> list[str]:
        """Return the labels."""
        del n
        return list(self.labels)

    def corner(self, share: float) -> np.ndarray:
        """Return the first level or the last that samples write."""
        return np.array([round(share * (self.width - 1))], dtype=np.int32)


class _Listed(LevelKind):
    """Base of kinds with a list of labels. A declared `other` that is not among the categories is the last label."""

    __slots__ = ()

    categories: tuple[str, ...]
    other: str | None
    exact: bool

    def __post_init__(self) -> None:
        faults: list[str] = []
        categories = labels_text("categories", "a category", self.categories, faults)
        if not (categories or faults):
            faults.append("Expected at least one category, got an empty list.")
        other = None if self.other is None else label_text("other", self.other, faults)
        nullable = flag(self.nullable, faults)
        exact = flag(self.exact, faults, "exact")
        refuse(faults)
        if not exact:
            refuse(canonical_faults(categories if other is None or other in categories else (*categories, other)))
        settle(self, categories=categories, other=other, nullable=nullable, exact=exact)

    @classmethod
    def of_text(cls, categories: Iterable[Any], *, nullable: bool = False) -> Self:
        """Return the kind of labels that were found in text: `exact` where they cannot be told apart otherwise."""
        labels = categories if isinstance(categories, str) else tuple(categories)
        faults: list[str] = []
        texts = labels_text("categories", "a category", labels, faults)
        return cls(categories=labels, nullable=nullable, exact=not faults and bool(canonical_faults(texts)))  # type: ignore[arg-type]

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories, and `other` if it is not among them."""
        if self.other is None or self.other in self.categories:
            return self.categories
        return (*self.categories, self.other)

    @property
    def n_categories(self) -> int:
        """The number of categories."""
        return len(self.categories)

    @property
    def _other_code(self) -> int | None:
        return None if self.other is None else self.labels.index(self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorical(_Listed):
    """One of a closed list of labels.

    Attributes:
        categories: the labels, as canonical text (numbers and booleans are turned into it).
        other: the label that takes every value outside the list; among `categories` or not.
        nullable: whether missing is a value of its own. If not, a missing cell is `other` or, without it, no label.
        parents: of each category in order, or a mapping from categories: a category that is not kept is read as its
            parent, which is a level then. Empty: all are levels.
        keep: the categories that stay levels beside parents: the first so many, or these.
        exact: whether the column was text from the start, so that labels are compared letter by letter. Labels such as
            `250.0` beside `250.00`, and whole numbers of 16 digits and more, need it.

    Example:
        >>> Categorical(categories=("red", "blue"), other="another colour").categories
        ('red', 'blue')
        >>> Categorical(categories=(1, True)).categories  # as canonical text
        ('1', 'true')
        >>> Categorical(categories=("A00", "A01", "I10"), parents=("A", "A", "I"), keep=("I10",)).labels
        ('I10', 'A')
    """

    name: ClassVar[str] = "categorical"

    categories: tuple[str, ...]
    other: str | None = None
    nullable: bool = False
    parents: tuple[str, ...] = ()
    keep: Keep = 0
    exact: bool = False

    def __post_init__(self) -> None:
        super(Categorical, self).__post_init__()
        faults: list[str] = []
        parents: tuple[str, ...] = ()
        keep = read_keep(self.categories, self.keep, faults)
        if not (isinstance(self.parents, tuple | list) and len(self.parents) == 0):
            parents = read_parents(self.categories, self.parents, keep, faults)
        elif keep != 0:
            faults.append("Expected parents beside keep, got none. Add them, or leave keep out: all categories stay.")
        refuse(faults)
        if self.other is not None and level_of_codes(self.categories, parents, keep).get(self.other) not in (
            None,
            self.other,
        ):
            refuse([f"Expected other to be a level, got {self.other!r}, which is read as its parent. Keep it apart."])
        settle(self, parents=parents, keep=keep)
        if parents and not self.exact:
            refuse(canonical_faults(self.names()[0]))

    @property
    def _levels(self) -> dict[str, str]:
        return level_of_codes(self.categories, self.parents, self.keep)

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories kept apart, then the parents of the others, then `other` if it is not among them."""
        if not self.parents:
            return super(Categorical, self).labels
        return tuple(dict.fromkeys([*self._levels.values(), *([] if self.other is None else [self.other])]))

    @property
    def n_categories(self) -> int:
        """The number of levels without an `other` that is none of them."""
        return len(set(self._levels.values()))

    def names(self) -> tuple[Sequence[str], Sequence[int]]:
        """Return the levels and the categories that are read as one, and their codes."""
        codes = {label: code for code, label in enumerate(self.labels)}
        codes |= {code: codes[level] for code, level in self._levels.items()}
        return list(codes), list(codes.values())

    def _read_texts(self, storage: pa.DataType) -> tuple[str, ...]:
        return tuple(self.names()[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal(_Listed):
    """One of a closed list of labels whose order means something.

    Attributes:
        categories: the labels from lowest to highest, as canonical text.
        other: the label that takes every value outside the list; comes last if not among them.
        nullable: as of `Categorical`.
        exact: as of `Categorical`.

    Example:
        >>> Ordinal(categories=("low", "middle", "high"), nullable=True).labels
        ('low', 'middle', 'high')
    """

    name: ClassVar[str] = "ordinal"

    categories: tuple[str, ...]
    other: str | None = None
    nullable: bool = False
    exact: bool = False


@lru_cache(maxsize=256)
def _stored_labels(kind: LevelKind, storage: pa.DataType) -> pa.Array:
    """Return the labels of a kind as values of a storage type without a fault."""
    stored = values_of_texts(kind.texts(storage), storage)
    if stored is None:
        raise SchemaError(kind.storage_fault(storage))
    return stored


def _first_unfit(kind: LevelKind, storage: pa.DataType) -> str | None:
    """Return the first label that does not come back from a storage type as itself."""
    labels, texts = kind.labels, kind.texts(storage)
    stored = values_of_texts(texts, storage)
    if stored is None:
        alone = (label for label, t in zip(labels, texts, strict=True) if not values_of_texts((t,), storage))
        return next(alone, labels[0])
    back = kind.find(stored, ())
    wrong = np.flatnonzero(back != np.arange(len(back)))
    return labels[int(wrong[0])] if wrong.size else None


def _find_text(kind: LevelKind, text: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return label codes of texts, as written or by their canonical text; a missing token that is a label counts as it.

    Canonical texts tell cells of one value alike, whatever type a column had: `40`, `40.0`, and the number 40.
    """
    (text, tokens), exact = kind.folded(text, missing), getattr(kind, "exact", False)
    codes = _codes_of(kind, text)
    absent = ~valid_mask(text)
    unknown = np.flatnonzero(~absent & (codes == UNKNOWN))
    if unknown.size:
        rest = text.take(pa.array(unknown))
        coded = rest.dictionary_encode()
        texts = canonical(coded.dictionary)
        places = _codes_of(kind, texts)
        if tokens:
            absent_word = are_tokens(coded.dictionary, tokens, exact=exact).to_numpy(zero_copy_only=False)
            places[absent_word & (places == UNKNOWN)] = MISSING
        codes[unknown] = places[coded.indices.to_numpy(zero_copy_only=False)]
    codes[absent] = MISSING
    return codes


def _codes_of(kind: LevelKind, text: pa.Array) -> np.ndarray:
    labels, codes = _label_table(kind)
    places = pc.index_in(text, value_set=labels.cast(text.type), skip_nulls=True)
    return codes[places.fill_null(len(labels)).to_numpy(zero_copy_only=False)]


@lru_cache(maxsize=256)
def _label_table(kind: LevelKind) -> tuple[pa.Array, np.ndarray]:
    """Return the texts that name a level, written and canonical, and their codes with UNKNOWN after the last.

    A canonical text that several have, as where `exact` tells `250.0` from `250.00`, names none.
    """
    names, codes = kind.names()
    texts = canonical(pa.array(names, pa.string())).to_pylist()
    once = Counter(texts)
    table = {text: code for text, code in zip(texts, codes, strict=True) if text is not None and once[text] == 1}
    table |= dict(zip(names, codes, strict=True))
    return pa.array(list(table), pa.string()), np.array([*table.values(), UNKNOWN], dtype=np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPair(Categorical):
    """A label and the one in the row before, of which there may be none: in tables of rows that follow each other.

    Attributes:
        n: how many labels there are; n stands for none.
    """

    n: int = 0

    @classmethod
    def of(cls, n: int) -> LabelPair:
        """Return the pairs of n labels."""
        return cls(categories=tuple(map(str, range(n * (n + 1)))), n=n)

    @property
    def groups(self) -> np.ndarray:
        """The label of each code, n of that without one."""
        return np.append(np.repeat(np.arange(self.n), self.n + 1), self.n)

    def codes(self, labels: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return the codes of labels with those before them, shape (rows,)."""
        pairs = labels * (self.n + 1) + np.minimum(before, self.n)
        return np.where(labels < self.n, pairs, self.n * (self.n + 1)).astype(np.int64)
