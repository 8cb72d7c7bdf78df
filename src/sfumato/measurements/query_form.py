"""Queries as JSON and arrays, there and back. What is read may be a stranger's: every entry is checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NoReturn

import numpy as np

from sfumato.columns.bounded import ListedSteps, Steps
from sfumato.columns.numbers import MOST_LISTED
from sfumato.columns.sets import ItemSet
from sfumato.measurements.cells import Cells
from sfumato.measurements.item_queries import ItemPairQuery, ItemQuery, SetsOf
from sfumato.measurements.queries import LARGEST, CellEntries, MarginalQuery, MomentBits, MomentQuery, Query, UnitNorm
from sfumato.measurements.score_query import LARGEST_NUMBER, LINKS, EstimatingEquation, ScoreQuery
from sfumato.privacy.reading import Place, document, entry, many, number, one_of, plain, reader, whole

ARRAYS = "queries."
_LARGEST = 1 << 20  # of an entry: the squared length of a record stays below 2^53
_MOST_BITS = 60
_MOST_FEW, _MOST_SQUARE = 1 << 40, 1 << 62


@document
class _Cells:
    column: str = entry(str)
    base: int = entry(whole(1))
    edges: str | None = entry(str, default=None)
    scale: float | None = entry(number(0, LARGEST), default=None)
    offset: float = entry(number(0, 1), default=0.0)
    places: str | None = entry(str, default=None)
    groups: str | None = entry(str, default=None)


@document
class _CellEntries:
    cells: _Cells = entry(_Cells)
    whole: str = entry(str)


@document
class _SetsOf:
    column: str = entry(str)
    n_items: int = entry(whole(1, ItemSet.MOST_ITEMS + 1))
    longest: int = entry(whole(1))


@document
class _Equation:
    formula: str = entry(str)
    functions: tuple[str, ...] = entry(many(str))
    products: str = entry(str)
    coefficients: str = entry(str)
    link: str = entry(one_of(*LINKS), default="identity")
    offset: int = entry(whole(-LARGEST_NUMBER), default=0)


@document
class _Scores:
    equations: tuple[_Equation, ...] = entry(many(_Equation))
    turn: str = entry(str)


_KINDS = (MarginalQuery.kind, MomentQuery.kind, ItemQuery.kind, ItemPairQuery.kind, ScoreQuery.kind)


@document
class _Query:
    kind: str = entry(one_of(*_KINDS))
    by: tuple[_Cells, ...] = entry(many(_Cells), default=())
    tables: tuple[tuple[_Cells, ...], ...] = entry(many(many(_Cells)), default=())
    features: tuple[_CellEntries, ...] = entry(many(_CellEntries), default=())
    clip_norm: float | None = entry(number(0, LARGEST, inside=True), default=None)
    entry_bits: int = entry(whole(1, _MOST_BITS), default=1)
    weight_bits: int = entry(whole(1, _MOST_BITS), default=1)
    weight: str = entry(str, default="")
    together: bool = entry(bool, default=False)
    norm: tuple[int, ...] = entry(many(whole(0, _MOST_SQUARE)), default=())
    sets: _SetsOf | None = entry(_SetsOf, default=None)
    watched: str | None = entry(str, default=None)
    bins: str | None = entry(str, default=None)
    held_bins: str | None = entry(str, default=None)
    set_weights: str | None = entry(str, default=None)
    few_weight: int = entry(whole(1, _MOST_FEW), default=1)
    scores: _Scores | None = entry(_Scores, default=None)


def query_words(query: Query) -> np.ndarray:
    """The SHA-256 of a query, its arrays among it, int64, shape (4,)."""
    arrays: dict[str, np.ndarray] = {}
    content = hashlib.sha256(json.dumps(write_query(query, arrays), sort_keys=True).encode())
    for name in sorted(arrays):
        content.update(name.encode() + arrays[name].tobytes())
    return np.frombuffer(content.digest(), dtype=np.int64)


def write_query(query: Query, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The document of a query; its arrays join the others, but for one that is there already, which it names."""

    def keep(array: np.ndarray | None) -> str | None:
        if array is None:
            return None
        packed = np.ascontiguousarray(array, dtype=np.int64)
        number = sum(name.startswith(ARRAYS) for name in arrays)
        same = next((name for name, known in arrays.items() if known is packed), f"{ARRAYS}{number}")
        arrays[same] = packed
        return same

    def cells(known: Cells) -> _Cells:
        steps = known.steps or Steps(0, 0.0, 0.0)
        scale = None if known.steps is None else steps.scale
        edges, groups = keep(known.edges), keep(known.groups)
        places = keep(np.array(steps.places).view(np.int64)) if isinstance(steps, ListedSteps) else None
        of_steps = {"scale": scale, "offset": steps.offset, "places": places}
        return _Cells(column=known.column, base=known.base, edges=edges, groups=groups, **of_steps)

    if isinstance(query, ItemQuery | ItemPairQuery):
        return plain(_items_form(query, keep))
    if isinstance(query, ScoreQuery):
        axes = tuple(tuple(map(cells, equation.axes)) for equation in query.equations)
        equations = tuple(
            _Equation(
                formula=equation.formula,
                functions=tuple(keep(functions) or "" for functions in equation.functions),
                products=keep(equation.products) or "",
                coefficients=keep(equation.coefficients) or "",
                link=equation.link,
                offset=equation.offset,
            )
            for equation in query.equations
        )
        scores = _Scores(equations=equations, turn=keep(query.turn) or "")
        return plain(_Query(kind=query.kind, weight=query.weight, tables=axes, scores=scores))
    rows: dict[str, Any] = {"weight": query.weight, "by": tuple(map(cells, query.by))}
    if isinstance(query, MarginalQuery):
        rows["norm"] = () if query.norm is None else (query.norm.square, query.norm.beside, *query.norm.tables)
        return plain(_Query(kind=query.kind, tables=tuple(tuple(map(cells, axes)) for axes in query.tables), **rows))
    rows["together"] = query.together
    features = tuple(_CellEntries(cells=cells(e.cells), whole=keep(e.whole) or "") for e in query.features)
    bits = {"entry_bits": query.bits.entries, "weight_bits": query.bits.weights}
    return plain(_Query(kind=query.kind, features=features, clip_norm=query.clip_norm, **bits, **rows))


def _items_form(query: ItemQuery | ItemPairQuery, keep: Callable[[np.ndarray | None], str | None]) -> _Query:
    sets = _SetsOf(column=query.sets.column, n_items=query.sets.n_items, longest=query.sets.longest)
    if isinstance(query, ItemQuery):
        return _Query(kind=query.kind, sets=sets)
    return _Query(
        kind=query.kind,
        sets=sets,
        watched=keep(query.watched),
        bins=keep(query.bins),
        held_bins=keep(query.held_bins),
        set_weights=keep(query.weights),
        few_weight=query.few_weight,
    )


def read_query(value: object, place: Place, arrays: QueryArrays) -> Query:
    """The query that `write_query` was given.

    Raises:
        ReleaseError: an entry is not as it has to be.
    """
    form = reader(_Query)(value, place)

    if form.kind in (ItemQuery.kind, ItemPairQuery.kind):
        return arrays.items(form, place)
    cells = partial(arrays.cells, place=place)
    if form.kind == ScoreQuery.kind:
        if form.scores is None or len(form.tables) != len(form.scores.equations):
            return place.refuse("has no scores, or not the columns of each regression")
        axes = [tuple(map(cells, table)) for table in form.tables]
        return arrays.scores(form.scores, axes, form.weight, place)
    by = tuple(map(cells, form.by))
    if form.kind == MarginalQuery.kind:
        tables = tuple(tuple(map(cells, axes)) for axes in form.tables)
        if not (tables and all(tables)):
            place.refuse("has no table, or one without an axis")
        if form.norm and (len(form.norm) != 2 + len(tables) or max(form.norm[1:]) > _LARGEST):
            place.refuse("does not say what each table counts for units")
        norm = UnitNorm(form.norm[0], form.norm[2:], form.norm[1]) if form.norm else None
        return MarginalQuery(tables, by, form.weight, norm)
    bits = MomentBits(form.entry_bits, form.weight_bits)
    if form.clip_norm is None or not form.features or len(by) > 1 or 2 * bits.entries + bits.weights > _MOST_BITS:
        place.refuse("has no clip norm or no features, or too many bits or axes")
    features = tuple(arrays.entries(entries, place) for entries in form.features)
    return MomentQuery(features, float(form.clip_norm), bits, by, form.weight, form.together)


def _refuse_array(place: Place) -> NoReturn:
    place.refuse("names an array that is not there, or is none of whole numbers")


class QueryArrays:
    """Arrays that queries name: each is checked once, however many name it, and equal cells are made once.

    Args:
        arrays: finite numbers, by name.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._known: dict[_Cells, Cells] = {}
        self._edges, self._groups = cache(self._as_edges), cache(self._as_groups)
        self._entries = cache(self._as_entries)

    def _array(self, name: str, dimensions: int) -> np.ndarray | None:
        array = self._arrays.get(name)
        return None if array is None or array.dtype != np.int64 or array.ndim != dimensions else array

    def _as_edges(self, name: str) -> np.ndarray | None:
        edges = self._array(name, 1)
        rise = edges is not None and edges.size > 1 and edges[0] == 0 and (edges[1:] > edges[:-1]).all()
        return edges if rise else None

    def _as_groups(self, name: str) -> tuple[np.ndarray, int] | None:
        """Groups, and their number."""
        groups = self._array(name, 1)
        distinct = np.unique([] if groups is None else groups)
        distinct = distinct[distinct != -1]
        if groups is None or not distinct.size or (distinct != np.arange(distinct.size)).any():
            return None
        return groups, distinct.size

    def _as_entries(self, name: str) -> np.ndarray | None:
        entries = self._array(name, 2)
        return None if entries is None or (entries < -_LARGEST).any() or (entries > _LARGEST).any() else entries

    def items(self, document: _Query, place: Place) -> ItemQuery | ItemPairQuery:
        """A query of sets of items; whether its parts fit each other is for `Measurement.fault`."""
        if document.sets is None:
            return place.refuse("has no column of sets")
        sets = SetsOf(document.sets.column, document.sets.n_items, document.sets.longest)
        if document.kind == ItemQuery.kind:
            return ItemQuery(sets)
        names = document.watched, document.bins, document.held_bins, document.set_weights
        watched, bins, held_bins, weights = (self._array(name or "", 1) for name in names)
        if watched is None or bins is None or held_bins is None or weights is None:
            return _refuse_array(place)
        return ItemPairQuery(sets, watched, bins, held_bins, weights, document.few_weight)

    def scores(self, form: _Scores, axes: Sequence[tuple[Cells, ...]], weight: str, place: Place) -> ScoreQuery:
        """Scores of regressions; whether their parts fit each other is for `Measurement.fault`."""
        equations = tuple(self._equation(*pair, place) for pair in zip(form.equations, axes, strict=True))
        turn = self._array(form.turn, 2)
        return _refuse_array(place) if turn is None else ScoreQuery(equations, turn, weight)

    def _equation(self, form: _Equation, axes: tuple[Cells, ...], place: Place) -> EstimatingEquation:
        functions = [self._array(name, 2) for name in form.functions]
        products, coefficients = self._array(form.products, 2), self._array(form.coefficients, 1)
        tables = tuple(table for table in functions if table is not None)
        if products is None or coefficients is None or len(tables) < len(functions):
            return _refuse_array(place)
        link: Any = form.link
        return EstimatingEquation(form.formula, axes, tables, products, coefficients, link, int(form.offset))

    def cells(self, form: _Cells, place: Place) -> Cells:
        """The cells of a column."""
        if form not in self._known:
            self._known[form] = self._cells(form, place)
        return self._known[form]

    def _cells(self, form: _Cells, place: Place) -> Cells:
        edges = steps = groups = None
        if form.edges is not None:
            edges = self._edges(form.edges)
            if edges is None or form.scale is None or form.base - edges.size not in (-1, 0):
                return place.refuse("has cells of numbers that do not follow each other from step 0")
            steps = Steps(int(edges[-1]) - 1, float(form.scale), float(form.offset))
        if form.places is not None:  # the bits of floats
            places = self._array(form.places, 1)
            if steps is None or places is None or places.size != steps.last + 1 or places.size > MOST_LISTED:
                return place.refuse("has places of values that are not those of its cells")
            steps = ListedSteps(steps.last, steps.scale, steps.offset, tuple(places.view(np.float64).tolist()))
        if form.groups is not None:
            groups = self._groups(form.groups)
            if groups is None or groups[0].size != form.base:
                return place.refuse("has groups that are not of its cells")
        return Cells(form.column, form.base, edges, steps, None if groups is None else groups[0])

    def entries(self, form: _CellEntries, place: Place) -> CellEntries:
        """The entries of a column's cells."""
        cells, entries = self.cells(form.cells, place), self._entries(form.whole)
        groups = None if form.cells.groups is None else self._groups(form.cells.groups)
        if entries is None or len(entries) != (cells.base if groups is None else groups[1]):
            return place.refuse("has entries that are not of its cells, or too large")
        return CellEntries(cells, entries)
