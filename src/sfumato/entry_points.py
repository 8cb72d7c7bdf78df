"""What joins by name: families of methods that come with Sfumato, and plugins, which other installed packages declare.

Nothing of the core imports a family: it is asked for by a name of `FAMILIES`. Only names are read until one is asked
for; then its module is imported. A name comes from a caller, or from a file that a stranger wrote: it is looked up
among ours and what is installed, and is never taken for the path of a module.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeAlias, get_args

from sfumato.errors import ConfigError

What: TypeAlias = Literal["method", "sampler", "format", "kind"]

OURS = "sfumato"
FAMILIES: Mapping[str, Mapping[str, str]] = {
    "method": {
        "p3gm": "sfumato.methods.p3gm.recipe:P3GM",
        "dpgm": "sfumato.methods.dpgm.recipe:DPGM",
        "dpmix": "sfumato.methods.dpmix:DPMix",
    },
    "images": {"max-entropy": "sfumato.methods.images.recipe:ImageEntropy"},
    "sampler": {
        "image_portrait": "sfumato.models.images.sampler:ImagePortrait",
        "latent_decoder": "sfumato.models.nets.decoder:LatentDecoder",
        "network_mixture": "sfumato.models.nets.ensemble:NetworkMixture",
        "mixtures": "sfumato.models.mixed:MixtureSet",
        "gaussian_mixture": "sfumato.models.mixtures.mixture:MixturePoints",
        "factor_analysis": "sfumato.models.mixtures.mixture:FactorPoints",
        "kmeans_centres": "sfumato.models.mixtures.mixture:CentrePoints",
    },
}
"""Parts of families: what it is → its name → where it stands, as an entry point says it. "images": a method of that
name where records are images."""
_PACKAGE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")


def built_in(what: str, name: str) -> Any:  # noqa: ANN401 - a class
    """Import a part of one of our families, by one of the names of `FAMILIES`."""
    module, _, attribute = FAMILIES[what][name].partition(":")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True, slots=True)
class Plugin:
    """Something that an installed package declares, not loaded yet.

    Attributes:
        what: "method", "sampler", "format" or "kind".
        name: what callers and files call it.
        package: the distribution that declares it.
        version: the distribution's version.
    """

    what: What
    name: str
    package: str
    version: str
    entry: EntryPoint = field(repr=False)

    def load(self) -> Any:  # noqa: ANN401 - the caller checks what it is
        """Import the plugin.

        Raises:
            ConfigError: it cannot be imported; of the failure its type, and what is missing.
        """
        try:
            return self.entry.load()
        except ImportError as error:
            problem = f"{error.name} is missing" if error.name else type(error).__name__
        except Exception as error:  # noqa: BLE001 - a stranger's module does what it likes
            problem = type(error).__name__
        raise ConfigError(
            f"Expected the {self} to import, but {self.entry.value} does not ({problem}). Repair or uninstall it."
        )

    def wrong(self, expected: str) -> ConfigError:
        """Return the error of a plugin that is something else than it has to be."""
        return ConfigError(
            f"Expected {expected} of the {self}, got something else at {self.entry.value}. Ask its authors."
        )

    def __str__(self) -> str:
        return f"{self.what} {self.name!r} of the package {self.package} {self.version}"


def find(what: What, name: str, own: Collection[str]) -> Plugin | None:
    """Return the installed plugin of a name, not loaded; None if there is none, or if the name is Sfumato's own.

    Args:
        what: "method", "sampler", "format" or "kind".
        name: any text.
        own: names that Sfumato has itself.

    Raises:
        ConfigError: two packages claim the name.
    """
    plugins = _declared(what).get(name, ())
    packages = [*([OURS] if name in own else []), *(plugin.package for plugin in plugins)]
    if plugins and len(packages) > 1:
        raise ConfigError(
            f"Expected one package to bring the {what} {name!r}, got {' and '.join(packages)}. Uninstall "
            f"{'the second' if packages[0] == OURS else 'one of them'}, or ask its authors for another name."
        )
    return plugins[0] if plugins else None


def names(what: What, own: Collection[str]) -> Iterator[str]:
    """Yield the names that plugins add to Sfumato's own, in alphabetical order. Nothing is loaded."""
    yield from sorted(set(_declared(what)) - set(own))


def package_named(what: What, name: str) -> str | None:
    """Return the package that brings a plugin, the first of several; None without one. Nothing is loaded."""
    plugins = _declared(what).get(name, ())
    return plugins[0].package if plugins else None


def package_of(kind: type) -> Plugin | None:
    """Return a plugin of the package that a class is defined in; None if no plugin comes from there."""
    top = kind.__module__.partition(".")[0]
    plugins = (plugin for what in get_args(What) for claims in _declared(what).values() for plugin in claims)
    return next((plugin for plugin in plugins if plugin.entry.module.partition(".")[0] == top), None)


def canonical(package: str) -> str:
    """Return a package's name as indexes compare it: small letters, one dash for every run of `-`, `_` and `.`."""
    return re.sub(r"[-_.]+", "-", package).lower()


def is_package(name: object) -> bool:
    """Whether a value, of a stranger, is text that can be a package's name other than ours."""
    return isinstance(name, str) and name != OURS and _PACKAGE_NAME.fullmatch(name) is not None


def is_ours(kind: type) -> bool:
    """Whether a class is defined in Sfumato itself."""
    return kind.__module__.partition(".")[0] == OURS


def _declared(what: What) -> Mapping[str, tuple[Plugin, ...]]:
    return _scan(what, tuple(sys.path))


@lru_cache(maxsize=32)
def _scan(what: What, path: tuple[str, ...]) -> Mapping[str, tuple[Plugin, ...]]:
    """Read the declarations of one group; once for each search path."""
    declarations: dict[str, dict[str, Plugin]] = {}
    for entry in entry_points(group=f"{OURS}.{what}s"):
        package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("an unknown package", "")
        declarations.setdefault(entry.name, {})[f"{package}:{entry.value}"] = Plugin(
            what, entry.name, package, version, entry
        )
    return {name: tuple(plugins.values()) for name, plugins in declarations.items()}
