"""The samplers that a release may name: a closed list of our own, and those of packages that the user has installed.

What they are built from, a stranger may have written. A release names a sampler and, of one that is not ours, its
package; it never says what to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sfumato.columns.facts import shown
from sfumato.entry_points import FAMILIES, OURS, built_in, canonical, find, is_package, names, package_named
from sfumato.errors import ConfigError, ReleaseError
from sfumato.lenses.lens import DataSet
from sfumato.models.item_classes import ItemClasses
from sfumato.models.sets import IndependentItems
from sfumato.release.database_sampler import DatabaseTables
from sfumato.release.linked import LinkedTable
from sfumato.release.tilted_table import Sampler, TableSoftmax, TiltedTable
from sfumato.schema.schema import Schema

_OF_CORE: Mapping[str, Callable[..., Sampler]] = {
    kind.name: kind for kind in (TableSoftmax, TiltedTable, IndependentItems, ItemClasses, LinkedTable, DatabaseTables)
}
SAMPLERS = (*_OF_CORE, *FAMILIES["sampler"])
"""Names of our own."""


def with_package(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sampler's settings with the name of its package, where that is not Sfumato."""
    package = None if settings["name"] in SAMPLERS else package_named("sampler", str(settings["name"]))
    return settings if package is None else {**settings, "package": package}


def build_sampler(
    schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]
) -> Sampler | DataSet:
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


def _sampler_class(settings: Mapping[str, Any]) -> Callable[..., Sampler | DataSet]:
    name, package = str(settings.get("name")), settings.get("package", OURS)
    sampler: Any = None
    problem = ""
    try:
        plugin = find("sampler", name, SAMPLERS)
        if plugin is not None:
            _require_package(name, package, plugin.package)  # before any of its code is run
            sampler = plugin.load()
    except ConfigError as error:
        plugin, problem = None, str(error)
    if problem:
        raise ReleaseError(problem)
    if plugin is None:
        if name not in SAMPLERS:
            raise ReleaseError(_not_installed(name, package))
        _require_package(name, package, OURS)
        return _OF_CORE[name] if name in _OF_CORE else built_in("sampler", name)
    if not (isinstance(sampler, type) and all(hasattr(sampler, part) for part in ("rows", "given"))):
        raise plugin.wrong("a class of samplers with `rows` and `given`")
    return sampler


def _require_package(name: str, stated: object, package: str) -> None:
    if not (isinstance(stated, str) and canonical(stated) == canonical(package)):
        raise ReleaseError(
            f"Expected the sampler {shown(name)} of the package {shown(stated)}, as the release says, got that of "
            f"{package}. Do not use this release with it."
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
