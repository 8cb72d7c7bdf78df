"""Samplers of tables: the chain of a table as coded rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.errors import ConfigError, ReleaseError
from sfumato.lenses.lens import Sampler
from sfumato.models.tables.softmax_chain import SoftmaxChain
from sfumato.models.tables.softmax_given import SoftmaxGiven
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema


class TableSoftmax:
    """Samples of a chain of softmaxes (`sfumato.models.tables.softmax_chain`), as coded rows of a table."""

    name = "table_softmax"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        self._grid, target = Grid.stored(schema, parameters), settings.get("target")
        if target is not None and target not in schema.released:
            raise ReleaseError("Expected the release's target to be one of its columns.")
        self.class_column: str | None = target
        self._target = None if target is None else schema.released.index(target)
        self._features = [c for j, c in enumerate(self._grid.columns) if j != self._target]
        self._chain = SoftmaxChain.from_arrays(parameters, tuple(c.n_cells for c in self._features))
        n_classes = 1 if self._target is None else self._grid.columns[self._target].n_cells
        if self._chain.class_shares.size != n_classes:
            raise ReleaseError("Expected one class share per level of the target in the release.")
        runs = max((column.tilts.shape[1] for column in self._chain.columns), default=1)
        self.width = self._chain.weights.shape[1] + 2 * runs + len(self._grid.columns)
        self.possible = np.ones(n_classes, dtype=bool)

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler of the conditional law."""
        cells = {j: int(c.cells(np.array([codes[c.name]]))[0]) for j, c in enumerate(self._features) if c.name in codes}
        shares = _fixed_class(self._chain.class_shares, self.class_column, codes)
        chain = SoftmaxGiven(self._chain, cells, shares)
        if not chain.possible or not shares.sum() > 0:
            raise _impossible(codes)
        return GivenSoftmax(self, chain)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows."""
        return self.coded(*self._chain.sample(n, rng, classes), rng)

    def coded(self, classes: np.ndarray, cells: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return coded rows for classes and the cells of the other columns."""
        if self._target is not None:
            cells = np.insert(cells, self._target, classes, axis=1)
        return self._grid.rows(cells, rng)

    def followed(
        self,
        codes: Mapping[str, np.ndarray],
        rng: np.random.Generator,
        rough: Mapping[str, np.ndarray] | None = None,
    ) -> dict[str, np.ndarray]:
        """Return coded rows whose first columns have these codes, the class among them, the others drawn given these.

        The columns behind these, if they are `rough`, have codes near those, as often as in all rows.

        Raises:
            ReleaseError: they are not the columns that are drawn first.
        """
        rough = rough or {}
        self.require_first(len(codes) + len(rough))
        first, at = self._features[: len(codes) + len(rough) - (self._target is not None)], {**codes, **rough}
        known = np.stack([column.cells(at[column.name]) for column in first], axis=1)
        classes = np.zeros(len(known), dtype=np.int64)
        if self.class_column is not None:
            classes = codes[self.class_column].astype(np.int64)
        return {**self.coded(classes, self._chain.followed(known, rng, classes, rough=len(rough)), rng), **codes}

    def require_first(self, n: int) -> None:
        """Refuse a chain that draws other columns before the first n, of which the class is one if there are classes.

        Raises:
            ReleaseError: it does.
        """
        n_features = n if self._target is None else n - (self._target < n)
        if sorted(self._chain.order[:n_features].tolist()) != list(range(n_features)):
            raise ReleaseError("Expected a chain of steps that draws the row before first in the release.")


class GivenSoftmax:
    """Samples of a chain of softmaxes given the cells of some columns, as coded rows of a table."""

    def __init__(self, plain: TableSoftmax, chain: SoftmaxGiven) -> None:
        self._plain, self._chain = plain, chain
        self.width, self.class_column = plain.width, plain.class_column
        self.possible = chain.class_shares > 0

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows; a given number is the code of some value in its cell."""
        return self._plain.coded(*self._chain.sample(n, rng, classes), rng)

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes instead."""
        return self._plain.given(codes)


def _impossible(codes: Mapping[str, float]) -> ConfigError:
    names = ", ".join(map(repr, codes))
    return ConfigError(
        f"Expected given values that this release's rows can have together, got {names} with values of "
        "probability 0. Give fewer columns or other values."
    )


def _fixed_class(shares: np.ndarray, column: str | None, codes: Mapping[str, float]) -> np.ndarray:
    """Return the shares of the classes, or all of them for the class that is given."""
    if column is None or column not in codes:
        return shares
    return (np.arange(shares.size) == int(codes[column])).astype(np.float64)
