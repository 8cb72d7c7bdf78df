"""Samples of a table's chain, tilted to what named questions measured: rows are accepted by how well they agree.

The law is p(x)·exp(Σ λ·g(x)) up to a factor: of all laws with these means of g, the one nearest to the chain's.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.errors import ConfigError, ReleaseError
from sfumato.lenses.lens import Around, Sampler
from sfumato.maths.arrays import require_array, require_well_formed
from sfumato.maths.streams import public_stream
from sfumato.measurements.cells import BaseCells, joint_cells
from sfumato.measurements.queries import MarginalQuery, query_fault
from sfumato.measurements.query_form import QueryArrays, read_query, write_query
from sfumato.measurements.score_query import ONE, ScoreQuery
from sfumato.models.tables.softmax_chain import SoftmaxChain
from sfumato.models.tables.softmax_given import SoftmaxGiven
from sfumato.privacy.reading import Place
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

TILT = "tilt."
MOST_TILTS, MOST_WORK = 256, 1 << 17
"""Of one release: tilts, and the operations on a row that all of them take."""
LARGEST_MULTIPLIER = 20.0
_LARGEST = 50.0  # of a row's exponent
_STREAM, _TRIAL_ROWS, _TAKEN = 20_261, 4096, 0.999
_MOST_ROUNDS = 64
_PLACE = Place("The release's sampler")

TiltQuery = MarginalQuery | ScoreQuery


class TableSoftmax:
    """Samples of a chain of softmaxes (`sfumato.models.tables.softmax_chain`), as coded rows of a table."""

    name = "table_softmax"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        self._grid, target = Grid.stored(schema, parameters), settings.get("target")
        if target is not None and target not in schema.released:
            raise ReleaseError("Expected the release's target to be one of its columns.")
        self.columns = self._grid.columns
        self._chain = SoftmaxChain.from_arrays(parameters, tuple(c.n_cells for c in self.columns))
        self.class_column: str | None = None
        self.possible = np.ones(1, dtype=bool)
        if target is not None and not self.columns[place := schema.released.index(target)].numeric:
            self.class_column, self.possible = target, self._chain.columns[place].shares > 0
        runs = max((column.tilts.size for column in self._chain.columns), default=1)
        self.width = len(self._chain.weights) + 2 * runs + len(self.columns)

    def among_labels(self) -> TableSoftmax:
        """Return the sampler given that no cell has a hidden level."""
        hiding = {j: column.shown for j, column in enumerate(self.columns) if column.kind.hides_blank}
        sampler = copy.copy(self)
        sampler.__dict__.pop("_of_classes", None)
        columns = (c.without(hiding[j]) if j in hiding else c for j, c in enumerate(self._chain.columns))
        sampler._chain, sampler.possible = replace(self._chain, columns=tuple(columns)), self.possible.copy()
        target = next((j for j, column in enumerate(self.columns) if column.name == self.class_column), -1)
        sampler.possible[hiding.get(target, sampler.possible.size) :] = False
        return sampler

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler of the conditional law."""
        return GivenSoftmax(self, codes)

    def conditional(self, codes: Mapping[str, float]) -> SoftmaxGiven:
        """Return the chain given some codes.

        Raises:
            ConfigError: rows of the chain do not have these.
        """
        columns = enumerate(self.columns)
        cells = {j: int(c.cells(np.array([codes[c.name]]))[0]) for j, c in columns if c.name in codes}
        chain = SoftmaxGiven(self._chain, cells)
        if not chain.possible:
            raise ConfigError(
                f"Expected given values that this release's rows can have together, got {', '.join(map(repr, codes))} "
                "with values of probability 0. Give fewer columns or other values."
            )
        return chain

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows."""
        if classes is not None:
            return self._of_classes.rows(n, rng, classes)
        return self.coded(self._chain.draw(n, rng), rng)

    @cached_property
    def _of_classes(self) -> GivenSoftmax:
        return GivenSoftmax(self, {})

    def coded(self, cells: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return coded rows for cells, shape (n, columns)."""
        return self._grid.rows(cells, rng)

    def followed(
        self,
        codes: Mapping[str, np.ndarray],
        rng: np.random.Generator,
        rough: Mapping[str, np.ndarray] | None = None,
        never: Mapping[str, Sequence[float] | np.ndarray] | None = None,
    ) -> dict[str, np.ndarray]:
        """Return coded rows whose first columns have these codes, the others drawn given these.

        The columns behind these, if they are `rough`, have codes near those, as often as in all rows. Others have none
        of the codes in `never`, if the law of a row leaves any other.

        Raises:
            ReleaseError: they are not the columns that are drawn first.
        """
        rough, never = rough or {}, never or {}
        self.require_first(len(codes) + len(rough))
        first, at = self.columns[: len(codes) + len(rough)], {**codes, **rough}
        known = np.stack([column.cells(at[column.name]) for column in first], axis=1)
        barred = {j: c.cells(np.asarray(never[c.name])) for j, c in enumerate(self.columns) if c.name in never}
        cells = self._chain.followed(known, rng, rough=len(rough), never=barred)
        return {**self.coded(cells, rng), **codes}

    def require_first(self, n: int) -> None:
        """Refuse a chain that draws other columns before the first n.

        Raises:
            ReleaseError: it does.
        """
        if sorted(self._chain.order[:n].tolist()) != list(range(n)):
            raise ReleaseError("Expected a chain of steps that draws the row before first in the release.")


class GivenSoftmax:
    """Samples of a chain of softmaxes given the cells of some columns, as coded rows of a table."""

    def __init__(self, plain: TableSoftmax, codes: Mapping[str, float]) -> None:
        self._plain, self._codes, self._chain = plain, codes, plain.conditional(codes)
        self._of_class: dict[int, SoftmaxGiven] = {}
        self.width, self.class_column = plain.width, plain.class_column
        own = None if self.class_column is None else codes.get(self.class_column)
        self.possible = plain.possible if own is None else np.arange(plain.possible.size) == int(own)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows, of classes or of what the chain draws; a given number is the code of one in its cell."""
        if classes is None:
            return self._plain.coded(self._chain.draw(n, rng), rng)
        assert self.class_column is not None
        cells = np.empty((n, len(self._chain.chain.columns)), dtype=np.int64)
        for k in np.unique(classes).tolist():
            places = np.flatnonzero(classes == k)
            if k not in self._of_class:
                self._of_class[k] = self._plain.conditional({**self._codes, self.class_column: k})
            cells[places] = self._of_class[k].draw(places.size, rng)
        return self._plain.coded(cells, rng)

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes instead."""
        return self._plain.given(codes)


@dataclass(frozen=True, eq=False)
class Tilt:
    """One question's part in a row's exponent.

    Attributes:
        query: of one table, or of scores.
        multipliers: λ, shape of the query, flat.
    """

    query: TiltQuery
    multipliers: np.ndarray

    def exponents(self, base: BaseCells) -> np.ndarray:
        """λ·g of rows, shape (n,)."""
        if isinstance(self.query, ScoreQuery):
            return np.asarray(self.query.scores(base) @ self.multipliers) / ONE
        (axes,) = self.query.tables
        return self.multipliers[joint_cells(axes, [base.of(axis) for axis in axes])]


def written_tilts(tilts: Sequence[Tilt]) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """A sampler's entry of tilts, and the arrays that belong to it."""
    arrays: dict[str, np.ndarray] = {}
    queries = [write_query(tilt.query, arrays) for tilt in tilts]
    return queries, {**arrays, **{f"{TILT}{i}": tilt.multipliers for i, tilt in enumerate(tilts)}}


def _read_tilts(settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray], schema: Schema) -> list[Tilt]:
    documents, arrays, tilts = settings.get("tilts"), QueryArrays(parameters), []
    if not isinstance(documents, list | tuple) or not 0 < len(documents) <= MOST_TILTS:
        raise ReleaseError("Expected the release's sampler to list its tilts.")
    for i, document in enumerate(documents):
        query = read_query(document, _PLACE.at("tilts"), arrays)
        multipliers = require_array(parameters, f"{TILT}{i}", np.float64, (None,))
        if not isinstance(query, MarginalQuery | ScoreQuery) or query_fault(query, schema.columns, query.weight):
            raise ReleaseError("Expected tilts of the schema's columns in the release's sampler.")
        one = isinstance(query, ScoreQuery) or (len(query.tables) == 1 and not query.by)
        small = bool((np.abs(multipliers) <= LARGEST_MULTIPLIER).all())
        require_well_formed(one and small and multipliers.size == query.shape[-1], f"{TILT}{i}")
        tilts.append(Tilt(query, multipliers))
    if sum(work_of(tilt.query) for tilt in tilts) > MOST_WORK:
        raise ReleaseError("Expected fewer terms in the tilts of the release's sampler, got more than rows can take.")
    return tilts


def work_of(query: TiltQuery) -> int:
    """Operations that a tilt takes on a row."""
    if isinstance(query, ScoreQuery):
        return query.turn.size + sum(equation.products.size for equation in query.equations)
    return len(query.tables[0])


def total_exponents(tilts: Sequence[Tilt], rows: Mapping[str, Any]) -> np.ndarray:
    """Σ λ·g of coded rows, shape (n,)."""
    base = BaseCells(rows)
    return np.clip(sum(tilt.exponents(base) for tilt in tilts), -_LARGEST, _LARGEST)


class TiltedRows(Around):
    """Rows of a sampler, accepted with chances in proportion to their exponents' exponentials.

    The largest of many rows' exponents is taken for the largest: a row above it is accepted once, and not more often.
    A row that 64 rounds of candidates have not replaced is the last candidate.
    """

    def __init__(self, plain: Sampler, tilts: Sequence[Tilt], given: bool = False) -> None:
        super().__init__(plain)
        self._tilts = tilts
        exponents = total_exponents(tilts, plain.rows(_TRIAL_ROWS, public_stream(_STREAM, given)))
        self._top = float(np.quantile(exponents, _TAKEN))

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler of the conditional law."""
        return TiltedRows(self._inner.given(codes), self._tilts, given=True)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows."""
        rows = dict(self._inner.rows(n, rng, classes))
        left = self._refused(rows, np.arange(n), rng)
        for _ in range(_MOST_ROUNDS):
            if not left.size:
                break
            new = self._inner.rows(left.size, rng, None if classes is None else classes[left])
            for name, column in new.items():
                rows[name][left] = column
            left = self._refused(new, left, rng)
        return rows

    def _refused(self, rows: Mapping[str, Any], places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The places of rows that are not accepted."""
        chances = np.exp(np.minimum(total_exponents(self._tilts, rows) - self._top, 0.0))
        return places[rng.random(places.size) >= chances]


class TiltedTable(TiltedRows):
    """Samples of a chain of softmaxes (`TableSoftmax`), tilted to what named questions measured."""

    name = "tilted_table"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        self._plain = TableSoftmax(schema, settings, parameters)
        self.columns = self._plain.columns
        super().__init__(self._plain, _read_tilts(settings, parameters, schema))

    def among_labels(self) -> TiltedRows:
        """Return the sampler given that no cell has a hidden level."""
        return TiltedRows(self._plain.among_labels(), self._tilts)
