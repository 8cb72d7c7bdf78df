"""Samples of a table's chain, tilted to what named questions measured: rows are accepted by how well they agree.

The law is p(x)·exp(Σ λ·g(x)) up to a factor: of all laws with these means of g, the one nearest to the chain's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import ReleaseError
from sfumato.lenses.lens import Sampler
from sfumato.maths.arrays import require_array, require_well_formed
from sfumato.maths.streams import public_stream
from sfumato.measurements.cells import BaseCells, joint_cells
from sfumato.measurements.queries import MarginalQuery, query_fault
from sfumato.measurements.query_form import QueryArrays, read_query, write_query
from sfumato.measurements.score_query import ONE, ScoreQuery
from sfumato.privacy.reading import Place
from sfumato.release.table_samplers import TableSoftmax
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
    return query.turn.size + query.products.size if isinstance(query, ScoreQuery) else len(query.tables[0])


def total_exponents(tilts: Sequence[Tilt], rows: Mapping[str, Any]) -> np.ndarray:
    """Σ λ·g of coded rows, shape (n,)."""
    base = BaseCells(rows)
    total = tilts[0].exponents(base)
    for tilt in tilts[1:]:
        total = total + tilt.exponents(base)
    return np.clip(total, -_LARGEST, _LARGEST)


class TiltedRows:
    """Rows of a sampler, accepted with chances in proportion to their exponents' exponentials.

    The largest of many rows' exponents is taken for the largest: a row above it is accepted once, and not more often.
    A row that 64 rounds of candidates have not replaced is the last candidate.
    """

    def __init__(self, plain: Sampler, tilts: Sequence[Tilt], given: bool = False) -> None:
        self._plain, self._tilts = plain, tilts
        self.width, self.class_column = plain.width, plain.class_column
        exponents = total_exponents(tilts, plain.rows(_TRIAL_ROWS, public_stream(_STREAM, given)))
        self._top = float(np.quantile(exponents, _TAKEN))

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have."""
        return self._plain.possible

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler of the conditional law."""
        return TiltedRows(self._plain.given(codes), self._tilts, given=True)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows."""
        rows = dict(self._plain.rows(n, rng, classes))
        left = self._refused(rows, np.arange(n), rng)
        for _ in range(_MOST_ROUNDS):
            if not left.size:
                break
            new = self._plain.rows(left.size, rng, None if classes is None else classes[left])
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
        plain = TableSoftmax(schema, settings, parameters)
        super().__init__(plain, _read_tilts(settings, parameters, schema))
