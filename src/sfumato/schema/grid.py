"""A public grid: every column of a table cut into cells, by its schema and a setting alone.

A level column has one cell per level. A numeric column has cells of equal width in steps of its resolution, a cell for
each value that stands *alone*, and a last cell for missing. Alone are 0, if it is within the bounds (amounts are often
exactly 0), and among wider cells the bounds where wanted: what lies beyond them is often recorded as the bound. A
column whose bounds hold 0 between them may have cells that widen away from 0: bounds on such a column are often wide.
With `narrow`, cells go on shrinking by a constant factor down to a step, toward 0 or, where bounds lie far apart on one
side of it, toward the bound nearest to it: such a column may lie anywhere on a logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from sfumato.columns.bounded import Steps
from sfumato.columns.kinds import NumericKind, TabularKind
from sfumato.errors import ConfigError, ReleaseError, require_integer
from sfumato.maths.arrays import malformed
from sfumato.schema.schema import Schema

MOST_NUMERIC_CELLS = 4096
EDGES, WEIGHTS = "edges", "weights"
"""The arrays of a release that hold the cells of numbers, and the weights of a column's values by its place, so that no
later definition of a grid moves its rows."""

MOST_WEIGHTS = 1 << 20
_MOST_LOOKED_UP = 1 << 16  # steps
_LINEAR_SHARE, _NARROW_SHARE = 100, 1000
# cells that widen away from 0 are about equally wide within bound ÷ this of it


_FAR_APART = 20.0  # times the nearer bound that the farther one has to be
_WIDEST, _EXTRA = 0.06, 8  # of a distance, of a cell; part of all cells that shrinking may add on a side
_SHRINKING, _LEAST = 1.3, 1e-6  # factor of widths, and of the first width where they end


def _widening_edges(steps: Steps, zero: float, most: int, linear_share: float) -> np.ndarray:
    """Return edges at equal steps of asinh(value ÷ scale), the scale a share of the farther bound."""
    scale = max(zero, 1 - zero) / linear_share
    places = np.linspace(np.arcsinh(-zero / scale), np.arcsinh((1 - zero) / scale), most + 1)[1:-1]
    inner = steps.at(zero + scale * np.sinh(places))
    return np.unique(np.concatenate([[0], inner, [steps.last + 1]]))


def _narrow_share(zero: float, most: int) -> float:
    """Return how small the scale of cells may be, that none is wider than 6 % of its distance from 0."""
    of_side = most * max(zero, 1 - zero)
    return float(np.clip(np.sinh(min(_WIDEST * of_side, 20.0)), _LINEAR_SHARE, _NARROW_SHARE))


def _narrowed(edges: np.ndarray, steps: Steps, zero: float, most: int) -> np.ndarray:
    """Return at most so many edges more on either side of a place, at distances that shrink by a constant factor."""
    place = int(steps.at(np.array(zero)))
    parts = [edges]
    for side in (-1, 1):
        distances = (edges - place) * side
        if not (distances > 0).any():
            continue
        shrunk = _SHRINKING ** np.arange(1, 1 + int(np.log(1 / _LEAST) / np.log(_SHRINKING)))
        inner = distances[distances > 0].min() / shrunk[:most]
        inner = np.unique(np.rint(inner[inner >= 1]).astype(np.int64))
        parts.append(place + side * inner)
    return np.unique(np.clip(np.concatenate(parts), 0, steps.last + 1))


def _place_of_zero(kind: NumericKind) -> float | None:
    """Return the code from which cells widen: of 0, or of the nearer of two bounds that lie far apart."""
    lower, upper = kind.bounds
    if kind.zero_code is not None or lower == upper or kind.name == "datetime":
        return kind.zero_code
    if lower > 0:
        return 0.0 if upper >= _FAR_APART * lower else None
    return 1.0 if -lower >= _FAR_APART * -upper else None


def single_codes(kind: NumericKind) -> list[float]:
    """Return the codes of the values that stand alone in every grid of a kind: of 0, and of those declared as atoms."""
    (lower, upper), zero = kind.bounds, kind.zero_code
    declared = [(value - lower) / (upper - lower) for value in kind.single_values if upper > lower]
    return [*dict.fromkeys([*([] if zero is None else [zero]), *declared])]


def _alone(edges: np.ndarray, kind: NumericKind, singles: Sequence[float]) -> dict[int, float]:
    """Return the cells that values have for themselves, and their codes, of some values by their codes."""
    cells = cell_of(np.array(singles), edges, kind.steps, edges.size - 1)
    return {cell: code for cell, code in zip(cells.tolist(), singles, strict=True) if np.diff(edges)[cell] == 1}


@dataclass(frozen=True, slots=True)
class ColumnGrid:
    """The cells of one column.

    Attributes:
        name: column name.
        kind: its kind.
        n_cells: number of cells; that of cells without a value, where there is one, is the last.
        edges: for a numeric column, the first step of every cell and one past the last, shape (cells + 1,).
        steps: for a numeric column, its steps.
        alone: the cells of one step that are values of their own, and the codes of these: a step is near 0, not at it,
            where the steps are not those of the resolution.
        weights: of a numeric column's steps within their cell, shape (steps,); None where they are alike.
    """

    name: str
    kind: TabularKind
    n_cells: int
    edges: np.ndarray | None = None
    steps: Steps | None = None
    alone: Mapping[int, float] = field(default_factory=dict)
    weights: np.ndarray | None = None

    @classmethod
    def numbers(
        cls, name: str, kind: NumericKind, most: int, *, ends: bool = False, narrow: bool = False
    ) -> ColumnGrid:
        """Cut a numeric column into at most `most` cells, and those of missing, of 0 and, with `ends`, of the bounds.

        Cells are of equal width, but those of a column with 0 between its bounds widen away from 0; with `narrow` those
        of a column with a bound at 0 or near it too, and they shrink down to a step.
        """
        steps = kind.steps
        width = -(-(steps.last + 1) // most)
        edges = np.append(np.arange(0, steps.last + 1, width, dtype=np.int64), steps.last + 1)
        start = _place_of_zero(kind) if narrow else kind.zero_code
        if width > 1 and start is not None and (0 < start < 1 or narrow):
            edges = _widening_edges(steps, start, most, _narrow_share(start, most) if narrow else _LINEAR_SHARE)
            if narrow:
                edges = _narrowed(edges, steps, start, most // _EXTRA)
        ends = ends and width > 1
        singles = [*(steps.codes(np.array([0, steps.last])).tolist() if ends else ()), *single_codes(kind)]
        places = steps.at(np.array(singles))
        edges = np.union1d(edges, np.concatenate([places, places + 1]))
        return replace(cls.stored(name, kind, edges), alone=_alone(edges, kind, singles))

    @classmethod
    def stored(cls, name: str, kind: NumericKind, edges: np.ndarray, weights: np.ndarray | None = None) -> ColumnGrid:
        """The cells between edges that a release holds, int64, shape (cells + 1,), and weights of steps, float32.

        Raises:
            ReleaseError: they are not of all steps of the column.
        """
        n = kind.steps.last + 1
        if weights is not None:
            fits = weights.dtype == np.float32 and weights.shape == (n,) and n <= MOST_WEIGHTS
            if not (fits and np.isfinite(weights).all() and (weights >= 0).all()):
                raise malformed(f"{WEIGHTS} of {name}")
        if not (edges.size > 1 and edges[-1] == n and (np.diff(edges) > 0).all()):
            raise ReleaseError(
                f"Expected cells of all values of the column {name!r} in the release, got others: its steps are not "
                "those that it was fitted with. Fit again."
            )
        alone = _alone(edges, kind, single_codes(kind))
        return cls(name, kind, edges.size - 1 + kind.nullable, edges, kind.steps, alone, weights)

    def whole(self) -> ColumnGrid:
        """The values of a numeric column, each a cell."""
        assert self.steps is not None
        return self.cut(np.arange(self.steps.last + 2))

    def cut(self, edges: np.ndarray, weights: np.ndarray | None = None) -> ColumnGrid:
        """The column in other cells, by their edges, with weights of its values."""
        return ColumnGrid.stored(self.name, self.kind, edges, weights)  # type: ignore[arg-type] - of numbers

    @property
    def shown(self) -> int:
        """How many cells samples may have, the first ones."""
        return self.n_cells - self.kind.hides_blank

    @property
    def groups(self) -> np.ndarray | None:
        """Of pairs of labels, the first label of each cell; None of others."""
        return getattr(self.kind, "groups", None)

    @property
    def numeric(self) -> bool:
        """Whether the cells are ordered and have a width."""
        return self.edges is not None

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """Return the cell of each code, shape (n,), int64 in [0, n_cells)."""
        return cell_of(codes, self.edges, self.steps, self.n_cells)

    def of_values(self, masses: np.ndarray) -> np.ndarray:
        """Return the mass at each value of a numeric column, missing apart, of those of cells: shape (steps,)."""
        assert self.edges is not None
        widths = np.diff(self.edges)
        weights = np.ones(self.edges[-1]) if self.weights is None else self.weights.astype(np.float64)
        sums = np.repeat(np.add.reduceat(weights, self.edges[:-1]), widths)
        even = np.repeat(1.0 / widths, widths)
        parts = np.divide(weights, sums, out=even, where=sums > 0)
        return np.repeat(masses[: widths.size], widths) * parts

    def codes(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a code for each cell: its level, or a step of the cell, drawn evenly or by weights."""
        if self.edges is None or self.steps is None:
            return cells.astype(np.int32)
        inside = np.minimum(cells, len(self.edges) - 2)
        first, end = self.edges[inside], self.edges[inside + 1]
        if self.weights is None:
            steps = rng.integers(first, end)
        else:
            sums = _sums(self.weights.tobytes())
            steps = np.searchsorted(sums, rng.uniform(sums[first], sums[end]), side="right") - 1
            steps = np.clip(steps, first, end - 1)
        codes = self.steps.codes(steps)
        for cell, code in self.alone.items():
            codes[cells == cell] = code
        if self.kind.nullable:
            codes[cells == self.n_cells - 1] = np.nan
        return codes


def cell_of(codes: np.ndarray, edges: np.ndarray | None, steps: Steps | None, n_cells: int) -> np.ndarray:
    """Return the cell of each code, shape (n,), int64 in [0, n_cells).

    Args:
        codes: levels, or numbers from 0 to 1 with NaN where missing.
        edges: of numbers, the first step of each cell and one past the last.
        steps: of numbers.
        n_cells: of numbers one more than lie between the edges, where a last one holds missing.
    """
    if edges is None or steps is None:
        return codes.astype(np.int64)
    missing = np.isnan(codes)
    places = steps.at(np.where(missing, 0.0, codes))
    if edges[-1] <= _MOST_LOOKED_UP:
        cells = _cell_of_step(edges.tobytes())[places]
    else:
        cells = np.searchsorted(edges, places, side="right") - 1
    if n_cells == edges.size:
        cells[missing] = n_cells - 1
    return cells


@lru_cache(maxsize=8)
def _sums(weights: bytes) -> np.ndarray:
    """Return sums of the first 0, 1, … weights, by their bytes."""
    return np.cumsum(np.append(0.0, np.frombuffer(weights, dtype=np.float32)))


@lru_cache(maxsize=256)
def _cell_of_step(edges: bytes) -> np.ndarray:
    """Return the cell of each step, by the bytes of int64 edges."""
    starts = np.frombuffer(edges, dtype=np.int64)
    return np.repeat(np.arange(starts.size - 1), np.diff(starts))


def table_kinds(schema: Schema) -> dict[str, TabularKind]:
    """Return the released columns, all of which have one code per cell.

    Raises:
        ConfigError: one of them has not.
    """
    kinds = schema.of_kind(TabularKind)
    for name in schema.released:
        if name not in kinds:
            raise ConfigError(
                f"Expected columns of a table, got {name!r} of kind {schema.columns[name].name}. "
                "A stack of images has one image column and at most one label column."
            )
    return kinds


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of every column of a table, in schema order."""

    columns: tuple[ColumnGrid, ...]

    @classmethod
    def of(cls, schema: Schema, *, numeric_cells: int, ends: bool = False, narrow: bool = False) -> Grid:
        """Cut the released columns of a schema.

        Args:
            schema: public description of the table.
            numeric_cells: most cells of a numeric column, 2 to 4096; those of 0, missing and bounds come on top.
            ends: whether bounds have cells of their own.
            narrow: whether cells shrink down to a step, also toward a bound at 0, or near 0 of two that lie far apart.

        Raises:
            ConfigError: a column is an image, or `numeric_cells` is out of range.
        """
        if require_integer(at_least=2, numeric_cells=numeric_cells) > MOST_NUMERIC_CELLS:
            raise ConfigError(f"Expected numeric_cells of at most {MOST_NUMERIC_CELLS}, got {numeric_cells=}.")
        numbers = schema.of_kind(NumericKind)
        columns = (
            ColumnGrid.numbers(name, numbers[name], numeric_cells, ends=ends, narrow=narrow)
            if name in numbers
            else ColumnGrid(name, kind, kind.n_levels)
            for name, kind in table_kinds(schema).items()
        )
        return cls(tuple(columns))

    @classmethod
    def stored(cls, schema: Schema, parameters: Mapping[str, np.ndarray]) -> Grid:
        """The cells that `arrays` wrote, whatever `of` would cut today.

        Raises:
            ConfigError: a column is an image.
            ReleaseError: the array is missing, or its cells are not of the schema's columns.
        """
        kinds, numbers = table_kinds(schema), schema.of_kind(NumericKind)
        edges = parameters.get(EDGES)
        if edges is None or edges.dtype != np.int64 or edges.ndim != 1 or (edges[:1] != 0).any():
            raise malformed(EDGES)
        each = np.split(edges, np.flatnonzero(edges == 0)[1:]) if edges.size else []
        if len(each) != sum(name in numbers for name in kinds):
            raise malformed(EDGES)
        left = iter(each)
        columns = (
            ColumnGrid.stored(name, numbers[name], next(left), parameters.get(f"{WEIGHTS}.{place}"))
            if name in numbers
            else ColumnGrid(name, kind, kind.n_levels)
            for place, (name, kind) in enumerate(kinds.items())
        )
        return cls(tuple(columns))

    def arrays(self) -> dict[str, np.ndarray]:
        """The edges of numbers' cells, one column after the other, each from its step 0 on, and weights."""
        edges = [column.edges for column in self.columns if column.edges is not None]
        weights = {f"{WEIGHTS}.{j}": c.weights for j, c in enumerate(self.columns) if c.weights is not None}
        return {EDGES: np.concatenate([np.zeros(0, dtype=np.int64), *edges]), **weights}

    def cells(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the cells of coded rows, shape (n, columns), int64."""
        return np.stack([column.cells(rows[column.name]) for column in self.columns], axis=1)

    def rows(self, cells: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return coded rows for cells of shape (n, columns)."""
        return {column.name: column.codes(cells[:, index], rng) for index, column in enumerate(self.columns)}
