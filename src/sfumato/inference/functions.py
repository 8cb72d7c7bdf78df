"""Which measured functions of a record an estimate about some columns rests on.

Counts of runs and cells of these columns, and products of two features of theirs. Features are turned first: the
symmetric noise of a second moment has the same law in every orthonormal basis, so that a column of many features is
kept to the few directions that say what is asked of it, each with the same noise as before. Where a record is a unit
with rows, a function of it is the sum over these, each as it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy import sparse

from sfumato.errors import EstimateError
from sfumato.inference.noisy_totals import CountTable, Products, Totals, UnitSums, coarsest, pool_tables, tables_of
from sfumato.inference.table_measurements import OnGivenRows, TableMeasurements
from sfumato.maths.arrays import Functions
from sfumato.measurements.queries import MarginalQuery, MomentQuery, unit_weights
from sfumato.records.sequences import UNIT_BITS, clipped
from sfumato.release.model import ReleaseValue

_DIRECTIONS = {1: 8, 2: 6, 3: 5, 4: 4}  # of a numeric column, by the number of columns together
_FEWEST_DIRECTIONS = 3
_MOST_LEVELS = 25  # labels of which all features are kept: of two such columns, as many products as can be solved for
_TINY = 1e-6
_FEW_CLASSES = 6
_MOST_PRODUCTS = 400
_MOST_TOGETHER = 60  # columns, beside the target, of which one direction each is asked of
_MOST_NAMED = 400  # cells and terms of named questions, beside the products
_MOST_COUNTED = 1_500  # cells of tables of several columns, beside those of all that are asked of
_MOST_SINGLE = 8  # values of one of all columns
_MOST_SOLVED = 700  # where all labels are kept: those of two columns of 24; of more functions most entries are 0
_AT_ONCE = 64  # of these, that are made together

CellFunctions = Sequence[np.ndarray]
"""Functions of a column's cells, each of shape (cells,)."""


def cell_functions(measured: TableMeasurements, columns: Iterable[str]) -> dict[str, CellFunctions]:
    """Return the functions of columns' cells that matter most: of numbers the cells' middles, centred; else none."""
    functions: dict[str, CellFunctions] = {}
    for name in columns:
        column = measured.column(name)
        functions[name] = []
        if column.edges is not None:
            values = np.zeros(column.n_cells)
            inside = (column.edges[:-1] + column.edges[1:] - 1) / 2.0
            values[: inside.size] = (inside - inside.mean()) / max(float(np.ptp(inside)), 1.0)
            functions[name] = [values]
    return functions


def measured_functions(measured: TableMeasurements, functions: Mapping[str, CellFunctions]) -> Totals:
    """Return the noisy totals that say something of some columns together.

    Args:
        measured: what a release holds.
        functions: by column, its cells' functions that matter most: such as their values, or a level's indicator.
    """
    tables = [*tables_of(measured.tables, functions), *measured.values_of(functions)]
    parts = _counts(measured, tables, n_columns=len(functions))
    products = measured.products
    if products is not None:
        places = [products.features[name] for name in functions if name in products.features]
        if places:
            most = _direction_counts(products, places)
            parts += _products(measured, products, places, functions, most)
        parts += _products_by_class(measured, products.by_class, functions)
    parts += [scores.totals(measured.base) for scores in measured.scores if scores.of_columns(functions)]
    return Totals.joined([part.with_rows() for part in parts], _MOST_SOLVED)


class UnitPart(OnGivenRows):
    """The measurements of one of the two tables, of which each unit has one row.

    Args:
        part: of a release, of these rows.
        rows: of the model's units.
        numbers: columns that say how many rows a unit has.
    """

    def __init__(self, part: ReleaseValue, rows: dict[str, np.ndarray], numbers: Iterable[str]) -> None:
        super().__init__(part)
        self._rows, self._numbers = rows, [name for name in numbers if name in self.columns]

    def totals(self, columns: Sequence[str]) -> Totals:
        """Return the noisy totals, of functions of units, that say something of some columns."""
        return measured_functions(self, cell_functions(self, [*columns, *self._numbers]))


class SharedPart(UnitPart):
    """The measurements of one of the two tables, whose rows share the bound of their unit.

    They are steps; or, where the rows above are several of a unit, these.

    Args:
        part: of a release, of these rows.
        weight: the column by which units count; "" where each counts once.
        rows: of the model's units, one unit's after the other's.
        sums: over the rows of each unit.
        most: the most rows of a unit.
        numbers: columns that say how many rows a unit has.
        beside: per column, another one that says more of it.

    Attributes:
        room: how many rows of a unit count whole where they lie apart.
    """

    def __init__(
        self, part: ReleaseValue, weight: str, rows: dict[str, np.ndarray], sums: UnitSums, most: int,
        numbers: Iterable[str], beside: Mapping[str, str],
    ) -> None:  # fmt: skip
        queries = [(m, m.query) for m in part.measurements]
        moments = [(m, q) for m, q in queries if isinstance(q, MomentQuery) and q.weight == weight]
        counts = [(m, q) for m, q in queries if isinstance(q, MarginalQuery) and q.weight == weight]
        norms = [query.norm for _, query in counts if query.norm is not None]
        if len(norms) < len(counts) or not norms or not all(query.together for _, query in moments):
            raise EstimateError("Expected a release whose measurements say how steps count, got another. Fit it again.")
        of_rows = (
            *(replace(m, query=replace(query, norm=None, weight="")) for m, query in counts),
            *(replace(m, query=replace(query, together=False, weight="")) for m, query in moments),
        )
        super().__init__(replace(part, measurements=of_rows), rows, numbers)
        self.sums, self.most, self._beside = sums, most, beside
        self._counting = [query for _, query in counts]
        self.room = norms[0].square / max(sum(sum(norm.tables) for norm in norms) + norms[0].beside, 1)

    @property
    def parts(self) -> tuple[UnitPart, ...]:
        """Itself."""
        return (self,)

    def counts(self, name: str) -> None:
        """None: no count of cells is one of all rows."""
        del name

    @cached_property
    def row_counts(self) -> np.ndarray:
        """What each row counts, that of its unit, shape (n,)."""
        return self.sums.spread(self._weights * 2.0**-UNIT_BITS)

    @cached_property
    def _weights(self) -> np.ndarray:
        return np.maximum(unit_weights(self._counting, self.base, self.sums.owners, self.sums.units), 1)

    @cached_property
    def clipping(self) -> np.ndarray:
        """u, by which the rows of a unit are weighed and clipped together, shape (n,)."""
        assert self.products is not None
        query: MomentQuery = self.products.query
        vectors = [entries.whole[self.base.of(entries.cells)] for entries in query.features]
        most = 2.0 ** (2 * query.bits.entries + query.bits.weights)
        together = np.concatenate(vectors, axis=1).astype(np.float64)
        clipping = clipped(together, self.sums.owners, self._weights, most)
        return self.sums.spread(clipping * 2.0**-query.bits.weights)

    def totals(self, columns: Sequence[str]) -> Totals:
        """Return the noisy totals, of functions of units, that say something of some columns of their rows."""
        more = [self._beside[name] for name in columns if name in self._beside]
        wanted = cell_functions(self, [c for c in (*columns, *more, *self._numbers) if c in self.columns])
        for name in self._numbers:
            wanted[name] = [self._unweighing(name), *wanted[name]]
        of_rows = measured_functions(self, wanted)
        return replace(of_rows, functions=self.sums.of(of_rows.functions)).with_rows()

    def _unweighing(self, number: str) -> np.ndarray:
        """Return 1/w of the rows in each cell of a column that says how many there are, shape (cells,)."""
        cells = self.cells(number)
        sizes = np.bincount(cells, minlength=self.column(number).n_cells)
        return np.bincount(cells, 1 / self.row_counts, sizes.size) / np.maximum(sizes, 1)


def _counts(
    measured: TableMeasurements, tables: Sequence[CountTable], *, n_columns: int = 0, most: int = _MOST_COUNTED
) -> list[Totals]:
    """Return the totals of tables of counts.

    Args:
        measured: what a release holds.
        tables: of counts.
        n_columns: that are asked of: a table of all of them is kept whole.
        most: cells of tables of other columns together, the commonest of each.
    """
    several = [table for table in tables if len(table.columns) > 1 and len(table.columns) != n_columns]
    few = sum(table.value.size for table in several) <= most
    each = {id(table): most // len(several) for table in several} if not few else {}
    parts = [table.totals(measured.base, measured.n_rows, each.get(id(table))) for table in tables]
    rows = measured.row_counts
    return parts if rows is None else [replace(p, functions=sparse.diags_array(rows) @ p.functions) for p in parts]


def all_functions(measured: TableMeasurements, functions_of: Mapping[str, CellFunctions]) -> Totals:
    """Return the noisy totals that say most of all columns together, as many as can be solved for.

    Of few columns several directions of each; at the least one direction of each column with one of each other.

    Args:
        measured: what a release holds.
        functions_of: as `functions` of `measured_functions`, of all columns.

    Raises:
        EstimateError: there are more columns than that, or how columns go together was not measured.
    """
    products = _of_products(measured)
    places = list(products.features.values())
    own, parts = set[str](), []
    if measured.area is not None and measured.column(measured.area).n_cells <= _FEW_CLASSES:
        own = {measured.area}
    for name in measured.names:
        tables = coarsest(tables_of(measured.tables, {name, *own}))
        parts += [t.totals(measured.base, measured.n_rows, _MOST_SINGLE) for t in measured.values_of({name})]
        parts += _counts(measured, [table for table in tables if name in table.columns])
    most = _of_all(products, places)
    first = {name: list(functions)[: most[0]] for name, functions in functions_of.items()} if most else {}
    parts += _products(measured, products, places, first, most)
    return Totals.joined([*parts, *_named(measured)]).with_rows()


def _named(measured: TableMeasurements) -> list[Totals]:
    """Return the totals of questions that were named before the fit: scores, and tables of several columns.

    Of tables that nobody named, their commonest cells, as many as can be solved for beside.
    """
    named, others = _tables_of_several(measured)
    scores = [scores.totals(measured.base) for scores in measured.scores]
    whole = sum(table.value.size for table in named)
    left = max(_MOST_NAMED - whole, len(others))
    return [*_counts(measured, named, most=whole), *_counts(measured, others, most=left), *scores]


def _tables_of_several(measured: TableMeasurements) -> tuple[list[CountTable], list[CountTable]]:
    """Return the tables of several columns: of those that questions named the finest, and others.

    What a question names may have been counted for other reasons, too.
    """
    tables = pool_tables(table for table in measured.tables if len(table.columns - {measured.area}) > 1)
    of_questions = {frozenset(question.axes) for question in measured.release.schema.questions}
    finest: dict[frozenset[str], CountTable] = {}
    for table in tables:
        known = finest.get(table.columns)
        if table.columns in of_questions and (known is None or table.value.size > known.value.size):
            finest[table.columns] = table
    named = list(finest.values())
    return named, [table for table in tables if not any(table is other for other in named)]


def refuse_many_columns(measured: TableMeasurements) -> None:
    """Refuse to ask of all columns, and of all named questions, together where these are too many.

    Raises:
        EstimateError: they are; or how columns go together was not measured.
    """
    products = _of_products(measured)
    _of_all(products, list(products.features.values()))
    cells = sum(table.value.size for table in _tables_of_several(measured)[0])
    size = cells + sum(scores.query.shape[0] for scores in measured.scores)
    if size > _MOST_NAMED:
        raise EstimateError(
            f"Expected named questions of at most {_MOST_NAMED} cells and terms for replicates, got {size}: so many "
            "are more than can be solved for. Ask the release, or name fewer questions."
        )


def _of_products(measured: TableMeasurements) -> Products:
    products = measured.products
    if products is None or not set(measured.names) <= products.columns.keys():
        raise EstimateError(
            "Expected a release that measured how all of its columns go together for replicates, got one that did not: "
            "they would hold no noise of it, and analyses of them would be too sure. Ask the release, or fit with the "
            "method max-entropy."
        )
    return products


def _of_all(products: Products, places: list[int]) -> list[int]:
    """Return how many directions of each column are kept where all are asked of."""
    widths = [products.width(place) for place in places]
    for most in range(_DIRECTIONS[2], 0, -1):
        d = sum(min(width, most) for width in widths) + 1
        if d * (d + 1) // 2 <= _MOST_PRODUCTS:
            return [most] * len(places)
    if len(places) <= _MOST_TOGETHER:
        return [1] * len(places)
    raise EstimateError(
        f"Expected a release of at most {_MOST_TOGETHER} columns for replicates, got {len(places)}: how "
        "so many go together is more than can be solved for. Ask the release, or fit fewer columns."
    )


def _direction_counts(products: Products, places: list[int]) -> list[int]:
    """Return how many directions of each column are kept: all of few labels, unless that is too much to solve for."""
    few = _DIRECTIONS.get(len(places), _FEWEST_DIRECTIONS)
    widths, counted = [products.width(place) for place in places], [_has_counts(products, place) for place in places]
    all_of_few = [
        width if alone and width < _MOST_LEVELS else few for alone, width in zip(counted, widths, strict=True)
    ]
    sizes = [min(width, most) for width, most in zip(widths, all_of_few, strict=True)]
    d = sum(sizes)
    inside = sum(size * (size + 1) // 2 for alone, size in zip(counted, sizes, strict=True) if alone)
    return all_of_few if d * (d + 1) // 2 - inside <= _MOST_SOLVED else [few] * len(places)


def _products(
    measured: TableMeasurements, products: Products, places: list[int], functions_of: Mapping[str, CellFunctions],
    most: Sequence[int],
) -> list[Totals]:  # fmt: skip
    """Return the second moments of the columns' features, turned, clipped as they were measured."""
    d, ends = products.query.dimension, products.ends
    turned, values = [], []
    for place, n_directions in zip(places, most, strict=True):
        entries = products.query.features[place]
        cells, vectors = measured.base.of(entries.cells), products.vectors(place)
        rows_of_cells = np.bincount(cells, minlength=entries.cells.size)
        column, sizes = entries.cells.column, np.maximum(rows_of_cells, 1)
        wanted = [np.nan_to_num(f)[measured.cells(column)] for f in functions_of.get(column, ())]
        means = [np.bincount(cells, numbers, sizes.size) / sizes for numbers in wanted]
        own = directions(vectors, means, rows_of_cells / max(measured.n_rows, 1), n_directions)
        block = np.zeros((d, own.shape[1]))
        block[ends[place] : ends[place + 1]] = own
        turned.append(block)
        values.append((vectors @ own)[cells])
    if products.constant is not None:
        block = np.zeros((d, 1))
        block[ends[products.constant]] = 1.0
        turned.append(block)
        values.append(np.full((measured.n_rows, 1), products.vectors(products.constant)[0, 0]))
    turn, vectors = np.concatenate(turned, axis=1), np.concatenate(values, axis=1)
    rows, columns = _pairs([own.shape[1] for own in values], [_has_counts(products, place) for place in places])
    functions = _multiplied(vectors * measured.clipping[:, None], vectors, rows, columns)
    part = np.where(rows == columns, 1.0, 0.5)  # of the noise variance, off the diagonal
    return [Totals(functions, (turn.T @ products.pooled @ turn)[rows, columns], part * products.variance)]


def _products_by_class(
    measured: TableMeasurements, products: Products | None, functions_of: Mapping[str, CellFunctions]
) -> list[Totals]:
    """Return the second moments by class of what leads some columns, where their class is one of these."""
    if products is None or products.query.by[0].column not in functions_of:
        return []
    places = [place for name, place in products.columns.items() if name in functions_of]
    entries = [products.query.features[place] for place in places]
    values = [products.vectors(p)[measured.base.of(e.cells)] for p, e in zip(places, entries, strict=True)]
    if not values:
        return []
    ends = products.ends
    taken = np.concatenate([np.arange(ends[place], ends[place + 1]) for place in places])
    vectors, (rows, columns) = np.concatenate(values, axis=1), np.triu_indices(taken.size)
    functions = _multiplied(vectors * products.clipping(measured.base)[:, None], vectors, rows, columns)
    classes, part = measured.base.of(products.query.by[0]), np.where(rows == columns, 1.0, 0.5)
    return [
        Totals(functions * (classes == c)[:, None], matrix[taken[rows], taken[columns]], part * products.variance)
        for c, matrix in enumerate(products.pooled)
    ]


def _multiplied(one: np.ndarray, other: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Functions:
    """Return products of entries of each row; of more than are solved for whole, those that are not 0."""
    if rows.size > _MOST_SOLVED:
        some, entries = np.array_split(np.arange(rows.size), rows.size // _AT_ONCE), sparse.csc_array(other)
        return sparse.hstack([entries[:, columns[own]] * one[:, rows[own]] for own in some], format="csc")
    functions = np.take(one, rows, axis=1)
    for some in np.array_split(np.arange(len(functions)), 16):  # fewer products are held at once
        functions[some] *= np.take(other[some], columns, axis=1)
    return functions


def _has_counts(products: Products, place: int) -> bool:
    """Whether counts say what products of a column with itself would: of labels."""
    return products.query.features[place].cells.edges is None


def _pairs(sizes: list[int], counted: list[bool]) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of entries i ≤ j, without those inside columns of labels; classes come last, with no flag."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    alone = np.append(counted, np.ones(len(sizes) - len(counted), dtype=bool))[owner].astype(bool)
    rows, columns = np.triu_indices(owner.size)
    needed = (owner[rows] != owner[columns]) | ~alone[rows]
    return rows[needed], columns[needed]


def directions(vectors: np.ndarray, functions: CellFunctions, shares: np.ndarray, most: int) -> np.ndarray:
    """Return orthonormal directions of a column's entries, shape (q, r): first those nearest to what is asked.

    Args:
        vectors: entries of each cell, shape (c, q).
        functions: of the cells, shape (c,) each.
        shares: P(cell), shape (c,).
        most: of directions, beside those that are asked for; labels of few levels keep all.
    """
    q = vectors.shape[1]
    root = np.sqrt(np.maximum(shares, 0.0))[:, None]
    design = np.concatenate([np.ones((len(vectors), 1)), vectors], axis=1)
    wanted = []
    for function in functions:
        function = np.nan_to_num(function)
        coefficients = np.linalg.lstsq(design * root, function * root[:, 0], rcond=1e-9)[0]
        wanted.append(coefficients[1:])
    spread = np.maximum(shares, 0.0) @ vectors**2
    wanted += list(np.eye(q)[np.argsort(-spread, kind="stable")])
    basis: list[np.ndarray] = []
    for vector in wanted:
        if len(basis) >= min(q, max(most, len(functions))):
            break
        size = np.linalg.norm(vector)
        for _ in range(2):
            for other in basis:
                vector = vector - (vector @ other) * other
        norm = np.linalg.norm(vector)
        if norm > _TINY * max(size, 1e-300) and norm > 1e-12:
            basis.append(vector / norm)
    return np.array(basis).reshape(len(basis), q).T  # q is 0 where a column has no feature left
