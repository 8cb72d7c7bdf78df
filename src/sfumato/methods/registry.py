"""The methods, by the names that the command line knows: Sfumato's own, and those of installed packages."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from sfumato._lazy import later
from sfumato.entry_points import Plugin, built_in, find, names
from sfumato.errors import ConfigError, PluginWarning, did_you_mean

if TYPE_CHECKING:
    from sfumato.fitting import synthesizer
    from sfumato.fitting.synthesizer import Synthesizer
    from sfumato.methods import items, max_entropy
    from sfumato.methods.sets import recipe as sets
else:  # a list of names needs none of them
    synthesizer = later("sfumato.fitting.synthesizer")
    items, max_entropy = later("sfumato.methods.items"), later("sfumato.methods.max_entropy")
    sets = later("sfumato.methods.sets.recipe")


@dataclass(frozen=True, slots=True)
class Method:
    """A method as a person chooses it.

    Attributes:
        load: gives what builds the synthesizer, and imports it.
        about: what it is, in a sentence or two.
        private: whether it spends a budget; if not, it takes no ε and its releases say that they are not private.
    """

    load: Callable[[], Callable[..., Synthesizer]]
    about: str
    private: bool = True

    @property
    def make(self) -> Callable[..., Synthesizer]:
        """The class of the synthesizer, or a function that builds one."""
        return self.load()


OWN: Mapping[str, Method] = {
    "max-entropy": Method(
        lambda: max_entropy.MaxEntropy,
        "Noisy counts and moments, and the law of most entropy with these. Tables and images, in seconds. The default.",
    ),
    "p3gm": Method(
        partial(built_in, "method", "p3gm"),
        "Principal axes, a Gaussian per class, and a decoder by private gradient descent; with preset=dp-vae its "
        "baseline DP-VAE, a variational autoencoder. Minutes; needs torch.",
    ),
    "latent-classes": Method(
        lambda: sets.LatentClasses,
        "Sets of items: noisy counts of pairs of frequent items, explained by latent classes. In seconds.",
    ),
    "independent-items": Method(
        lambda: items.IndependentItems, "Sets of items: each item on its own, with its noisy frequency. A baseline."
    ),
    "dpgm": Method(
        partial(built_in, "method", "dpgm"),
        "Private kernel k-means, and a network per cluster. Sets of items, images, tables. Minutes; needs torch.",
    ),
    "dpmix": Method(
        partial(built_in, "method", "dpmix"),
        "A data set, not a model: noisy averages of few random records with soft labels, to train classifiers on.",
    ),
    "pgm": Method(
        partial(built_in, "method", "p3gm"),
        "p3gm without noise: NOT private, for seeing what noise costs.",
        private=False,
    ),
}


@final
class Methods(Mapping[str, Method]):
    """All methods by name: Sfumato's own, then those of installed packages, which are loaded when they are asked for.

    To go through all of them skips one that cannot be loaded, with a `PluginWarning`; to ask for it is a ConfigError.
    """

    def __getitem__(self, name: str) -> Method:
        plugin = find("method", name, OWN)
        return OWN[name] if plugin is None else _loaded(plugin)

    def __iter__(self) -> Iterator[str]:
        yield from OWN
        for name in names("method", OWN):
            try:
                self[name]
            except ConfigError as error:
                warnings.warn(f"The method {name!r} is left out. {error}", PluginWarning, stacklevel=2)
            else:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)


METHODS: Mapping[str, Method] = Methods()


def _loaded(plugin: Plugin) -> Method:
    """Return the method of an entry point, which names a synthesizer's class."""
    kind = plugin.load()
    if not (isinstance(kind, type) and issubclass(kind, synthesizer.Synthesizer) and is_dataclass(kind)):
        raise plugin.wrong("a dataclass that is a sfumato.plugins.Synthesizer")
    if kind.__dict__.get("method") != plugin.name:
        raise plugin.wrong(f"a synthesizer whose `method` is {plugin.name!r}")
    about = (kind.__doc__ or "").strip().partition("\n\n")[0]
    return Method(lambda: kind, f"{' '.join(about.split())} [{plugin.package} {plugin.version}]")


def find_method(method: str) -> Method:
    """Return a method by its name; ConfigError if there is none."""
    if method not in METHODS:
        hint = did_you_mean(method, METHODS)
        raise ConfigError(f"Expected method (--method) to be one of {', '.join(METHODS)}, got {method!r}.{hint}")
    return METHODS[method]
