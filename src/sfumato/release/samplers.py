"""The samplers that a release may name: a closed list of our own, and those of packages that the user has installed.

What they are built from, a stranger may have written. A release names a sampler and, of one that is not ours, its
package; it never says what to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from sfumato.columns.facts import shown
from sfumato.entry_points import OURS, canonical, find, is_package, names, package_named
from sfumato.errors import ConfigError, ReleaseError
from sfumato.models.images.sampler import ImagePortrait
from sfumato.models.mixed import MixtureSet
from sfumato.models.mixtures.samplers import CentrePoints, FactorPoints, MixturePoints
from sfumato.models.nets.decoder import LatentDecoder
from sfumato.models.nets.ensemble import NetworkMixture
from sfumato.models.sets import IndependentItems
from sfumato.models.tables.gaussian_chain import ChainModel, ConditionalChain, given_first
from sfumato.models.tables.softmax_chain import SoftmaxChain
from sfumato.models.tables.softmax_given import SoftmaxGiven
from sfumato.schema.grid import MOST_NUMERIC_CELLS, Grid
from sfumato.schema.schema import Schema

C = TypeVar("C", ChainModel, SoftmaxChain)


class Sampler(Protocol):
    """Draws coded rows.

    Attributes:
        width: numbers that drawing one row takes, which bounds the rows of a block.
        class_column: name of the column whose classes are modelled apart; None for one class.
    """

    width: int
    class_column: str | None

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have, given what is given, shape (k,)."""
        ...

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return n coded rows: codes per column, images as stored, or `CodedSets`. Classes are drawn if not given."""
        ...

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler of the conditional law, given the codes of some columns.

        Raises:
            ConfigError: the release gives such rows probability 0, or cannot fix these columns.
        """
        ...


class _OnGrid(Generic[C]):
    """What the samplers of tables share: codes of the cells that their chain draws."""

    _grid: Grid
    _target: int | None
    _chain: C

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows."""
        return self.coded(*self._chain.sample(n, rng, classes), rng)

    def coded(self, classes: np.ndarray, cells: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return coded rows for classes and the cells of the other columns."""
        if self._target is not None:
            cells = np.insert(cells, self._target, classes, axis=1)
        return self._grid.rows(cells, rng)


class TableChain(_OnGrid[ChainModel]):
    """Samples of a chain model (`sfumato.models.tables.gaussian_chain`), as coded rows of a table."""

    name = "table_chain"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        widening = _switch(settings, "widening")  # releases of before the setting have cells of equal width
        self._grid, self._target = _table_grid(schema, settings, widening=widening)
        self.class_column: str | None = settings.get("target")
        self._features = [c for j, c in enumerate(self._grid.columns) if j != self._target]
        self._chain = ChainModel.from_arrays(parameters, tuple(c.n_cells for c in self._features))
        n_classes = 1 if self._target is None else self._grid.columns[self._target].n_cells
        if self._chain.class_shares.size != n_classes:
            raise ReleaseError("Expected one class share per level of the target in the release.")
        self.width = self._chain.factors.shape[1] + len(self._grid.columns)
        self.possible = np.ones(n_classes, dtype=bool)
        self._orders: dict[tuple[int, ...], tuple[ChainModel, tuple[int, ...]]] = {}

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler of the conditional law. The chain of each set of columns is made once."""
        cells = {j: int(c.cells(np.array([codes[c.name]]))[0]) for j, c in enumerate(self._features) if c.name in codes}
        columns = tuple(cells)
        if columns not in self._orders:
            self._orders[columns] = given_first(self._chain, columns)
        chain = ConditionalChain.of(*self._orders[columns], cells)
        shares = _fixed_class(self._chain.class_shares, self.class_column, codes)
        return GivenChain(self, chain, chain.posterior(shares), codes)


class GivenChain:
    """Samples of a chain model given the cells of some columns, as coded rows of a table."""

    def __init__(
        self, plain: TableChain, chain: ConditionalChain, shares: np.ndarray | None, codes: Mapping[str, float]
    ) -> None:
        if shares is None:
            raise _impossible(codes)
        self._plain, self._chain, self._shares = plain, chain, shares
        self.width, self.class_column = plain.width, plain.class_column
        self.possible = chain.probabilities > 0

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows; a given number is the code of some value in its cell."""
        return self._plain.coded(*self._chain.sample(n, rng, self._shares, classes), rng)

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes instead."""
        return self._plain.given(codes)


class TableSoftmax(_OnGrid[SoftmaxChain]):
    """Samples of a chain of softmaxes (`sfumato.models.tables.softmax_chain`), as coded rows of a table."""

    name = "table_softmax"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        # releases of before a setting have bounds among other values, and cells of one least width
        cuts = {name: _switch(settings, name) for name in ("ends", "narrow")}
        self._grid, self._target = _table_grid(schema, settings, widening=True, from_zero=True, **cuts)
        self.class_column: str | None = settings.get("target")
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


def _switch(settings: Mapping[str, Any], name: str) -> bool:
    """Return a setting of a release, off where it is not there."""
    value = settings.get(name, False)
    if not isinstance(value, bool):
        raise ReleaseError(f"Expected {name} to be true or false in the release.")
    return value


def _table_grid(schema: Schema, settings: Mapping[str, Any], **cuts: bool) -> tuple[Grid, int | None]:
    """Return the grid that a release's settings name, and the place of its target."""
    cells, target = settings.get("numeric_cells"), settings.get("target")
    if not isinstance(cells, int) or not 2 <= cells <= MOST_NUMERIC_CELLS:
        raise ReleaseError(f"Expected numeric_cells between 2 and {MOST_NUMERIC_CELLS} in the release.")
    if target is not None and target not in schema.released:
        raise ReleaseError("Expected the release's target to be one of its columns.")
    grid = Grid.of(schema, numeric_cells=cells, **cuts)
    return grid, None if target is None else schema.released.index(target)


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


SAMPLERS: Mapping[str, Callable[..., Sampler | MixtureSet]] = {
    TableChain.name: TableChain,
    TableSoftmax.name: TableSoftmax,
    ImagePortrait.name: ImagePortrait,
    LatentDecoder.name: LatentDecoder,
    IndependentItems.name: IndependentItems,
    MixtureSet.name: MixtureSet,
    MixturePoints.name: MixturePoints,
    FactorPoints.name: FactorPoints,
    CentrePoints.name: CentrePoints,
    NetworkMixture.name: NetworkMixture,
}


def with_package(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sampler's settings with the name of its package, where that is not Sfumato."""
    package = None if settings["name"] in SAMPLERS else package_named("sampler", str(settings["name"]))
    return settings if package is None else {**settings, "package": package}


def build_sampler(
    schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]
) -> Sampler | MixtureSet:
    """Return the sampler that a release names.

    Raises:
        ReleaseError: neither ours nor of an installed package, of another package than the release says, or settings
            and arrays do not fit the schema.
    """
    try:
        return _sampler_class(settings)(schema, settings, parameters)
    except ConfigError as error:
        problem = str(error)
    raise ReleaseError(f"The release does not fit its own schema: {problem}")


def _sampler_class(settings: Mapping[str, Any]) -> Callable[..., Sampler | MixtureSet]:
    name, package = str(settings.get("name")), settings.get("package", OURS)
    problem = ""
    try:
        plugin = find("sampler", name, SAMPLERS)
        if plugin is None:
            found = SAMPLERS.get(name)
        else:
            _require_package(name, package, plugin.package)  # before any of its code is run
            found = plugin.load()
    except ConfigError as error:
        plugin, found, problem = None, None, str(error)
    if problem:
        raise ReleaseError(problem)
    if found is None:
        raise ReleaseError(_not_installed(name, package))
    if plugin is None:
        _require_package(name, package, OURS)
    elif not (isinstance(found, type) and all(hasattr(found, part) for part in ("rows", "given"))):
        raise plugin.wrong("a class of samplers with `rows` and `given`")
    return found


def _require_package(name: str, stated: object, found: str) -> None:
    if not (isinstance(stated, str) and canonical(stated) == canonical(found)):
        raise ReleaseError(
            f"Expected the sampler {shown(name)} of the package {shown(stated)}, as the release says, got that of "
            f"{found}. Do not use this release with it."
        )


def _not_installed(name: str, package: object) -> str:
    """Say what is missing. The release may be a stranger's, and so may be the package that it wants installed."""
    if is_package(package):
        return (
            f"Expected the sampler {shown(name)}, which this release says is of the package {package}, got no such "
            f"package. If you trust both, install it (pip install {package}): it can run any code."
        )
    return (
        f"Expected one of the samplers {', '.join([*SAMPLERS, *names('sampler', SAMPLERS)])}, got {shown(name)}. "
        "The release may be of a newer version: upgrade Sfumato."
    )
