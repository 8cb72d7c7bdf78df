"""Queries as JSON and arrays, there and back. What is read may be a stranger's: every entry is checked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.columns.steps import Steps
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import CellEntries, MarginalQuery, MomentBits, MomentQuery, Query
from sfumato.privacy.reading import Place, document, entry, many, number, one_of, plain, reader, whole

ARRAYS = "queries."
_LARGEST = 1 << 20  # of an entry: the squared length of a record stays below 2^53
_MOST_BITS = 60


@document
class _Cells:
    column: str = entry(str)
    base: int = entry(whole(1))
    edges: str | None = entry(str, default=None)
    scale: float | None = entry(number(0, sys.float_info.max), default=None)
    offset: float = entry(number(0, 1), default=0.0)
    groups: str | None = entry(str, default=None)


@document
class _CellEntries:
    cells: _Cells = entry(_Cells)
    whole: str = entry(str)


@document
class _Query:
    kind: str = entry(one_of(MarginalQuery.kind, MomentQuery.kind))
    by: tuple[_Cells, ...] = entry(many(_Cells), default=())
    tables: tuple[tuple[_Cells, ...], ...] = entry(many(many(_Cells)), default=())
    features: tuple[_CellEntries, ...] = entry(many(_CellEntries), default=())
    clip_norm: float | None = entry(number(0, sys.float_info.max, inside=True), default=None)
    entry_bits: int = entry(whole(1, _MOST_BITS), default=1)
    weight_bits: int = entry(whole(1, _MOST_BITS), default=1)
    weight: str = entry(str, default="")
    whole_rows: int = entry(whole(0), default=0)


def write_query(query: Query, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The document of a query; its arrays join the others, one that several queries hold once."""

    def keep(array: np.ndarray | None) -> str | None:
        if array is None:
            return None
        packed = np.ascontiguousarray(array, dtype=np.int64)
        known = [name for name in arrays if name.startswith(ARRAYS)]
        same = next((name for name in known if arrays[name] is packed), f"{ARRAYS}{len(known)}")
        arrays[same] = packed
        return same

    def cells(known: Cells) -> _Cells:
        steps = known.steps or Steps(0, 0.0, 0.0)
        scale = None if known.steps is None else steps.scale
        edges, groups = keep(known.edges), keep(known.groups)
        return _Cells(
            column=known.column, base=known.base, edges=edges, scale=scale, offset=steps.offset, groups=groups
        )

    rows = {"weight": query.weight, "whole_rows": query.whole_rows, "by": tuple(map(cells, query.by))}
    if isinstance(query, MarginalQuery):
        return plain(_Query(kind=query.kind, tables=tuple(tuple(map(cells, axes)) for axes in query.tables), **rows))
    features = tuple(_CellEntries(cells=cells(e.cells), whole=keep(e.whole) or "") for e in query.features)
    bits = {"entry_bits": query.bits.entries, "weight_bits": query.bits.weights}
    return plain(_Query(kind=query.kind, features=features, clip_norm=query.clip_norm, **bits, **rows))


def read_query(value: object, place: Place, arrays: Mapping[str, np.ndarray]) -> Query:
    """What `write_query` was given.

    Raises:
        ReleaseError: an entry is not as it has to be.
    """
    said = reader(_Query)(value, place)
    known = _Arrays(arrays, place)
    by = tuple(map(known.cells, said.by))
    if said.kind == MarginalQuery.kind:
        tables = tuple(tuple(map(known.cells, axes)) for axes in said.tables)
        if not (tables and all(tables)):
            place.refuse("has no table, or one without an axis")
        return MarginalQuery(tables, by, said.weight, said.whole_rows)
    bits = MomentBits(said.entry_bits, said.weight_bits)
    if said.clip_norm is None or not said.features or len(by) > 1 or 2 * bits.entries + bits.weights > _MOST_BITS:
        place.refuse("has no clip norm or no features, or too many bits or axes")
    features = tuple(known.entries(entries) for entries in said.features)
    return MomentQuery(features, float(said.clip_norm), bits, by, said.weight, said.whole_rows)


class _Arrays:
    """Arrays that a query names."""

    def __init__(self, arrays: Mapping[str, np.ndarray], place: Place) -> None:
        self._arrays, self._place = arrays, place

    def _array(self, name: str, dimensions: int) -> np.ndarray:
        found = self._arrays.get(name)
        if found is None or found.dtype != np.int64 or found.ndim != dimensions:
            return self._place.refuse("names an array that is not there, or is none of whole numbers")
        return found

    def cells(self, said: _Cells) -> Cells:
        """The cells of a column."""
        edges = steps = groups = None
        if said.edges is not None:
            edges = self._array(said.edges, 1)
            fits = edges.size > 1 and edges[0] == 0 and (np.diff(edges) > 0).all() and said.scale is not None
            if not fits or said.base - edges.size not in (-1, 0):
                self._place.refuse("has cells of numbers that do not follow each other from step 0")
            steps = Steps(int(edges[-1]) - 1, float(said.scale or 0.0), float(said.offset))
        if said.groups is not None:
            groups = self._array(said.groups, 1)
            distinct = np.unique(groups)
            if groups.size != said.base or not np.array_equal(distinct, np.arange(distinct.size)):
                self._place.refuse("has groups that are not of its cells")
        return Cells(said.column, said.base, edges, steps, groups)

    def entries(self, said: _CellEntries) -> CellEntries:
        """The entries of a column's cells."""
        cells, entries = self.cells(said.cells), self._array(said.whole, 2)
        if len(entries) != cells.size or (entries < -_LARGEST).any() or (entries > _LARGEST).any():
            self._place.refuse("has entries that are not of its cells, or too large")
        return CellEntries(cells, entries)
