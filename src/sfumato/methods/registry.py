"""The methods, by the names that the command line knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import ConfigError
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.methods.dpgm.recipe import DPGM
from sfumato.methods.dpmix import DPMix
from sfumato.methods.dpvae import DPVAE
from sfumato.methods.gaussian import ConditionalGaussian
from sfumato.methods.items import IndependentItems
from sfumato.methods.p3gm.recipe import P3GM
from sfumato.privacy.budget import NonPrivate


@dataclass(frozen=True, slots=True)
class Method:
    """A method as a person chooses it.

    Attributes:
        make: builds the synthesizer.
        about: what it is, in a sentence or two.
        options: settings that have a flag of their own.
        private: whether it spends a budget; if not, it takes no ε and its releases say that they are not private.
    """

    make: Callable[..., Synthesizer]
    about: str
    options: frozenset[str] = frozenset()
    private: bool = True


METHODS: Mapping[str, Method] = {
    ConditionalGaussian.method: Method(
        ConditionalGaussian,
        "Class-conditional marginals and second moments in closed form. Tables and images, in seconds. The default.",
        frozenset({"purpose", "pose"}),
    ),
    P3GM.method: Method(
        P3GM,
        "Principal axes, a Gaussian per class, and a decoder by private gradient descent. Minutes; needs torch.",
    ),
    IndependentItems.method: Method(
        IndependentItems, "Sets of items: each item on its own, with its noisy frequency. A baseline."
    ),
    DPGM.method: Method(
        DPGM,
        "Private kernel k-means, and a network per cluster. Sets of items, images, tables. Minutes; needs torch.",
    ),
    DPVAE.method: Method(
        DPVAE, "A variational autoencoder by private gradient descent: the baseline of p3gm. Minutes; needs torch."
    ),
    DPMix.method: Method(
        DPMix,
        "A data set, not a model: noisy averages of few random records with soft labels, to train classifiers on.",
        frozenset({"mixture_degree", "n_mixtures", "mixing", "clip_norm", "denoise"}),
    ),
    "pgm": Method(P3GM, "p3gm without noise: NOT private, for seeing what noise costs.", private=False),
    "vae": Method(DPVAE, "dp-vae without noise: NOT private, for seeing what noise costs.", private=False),
}


def find_method(method: str) -> Method:
    """Return a method by its name.

    Raises:
        ConfigError: there is none of that name.
    """
    if method not in METHODS:
        raise ConfigError(f"Expected --method to be one of {', '.join(METHODS)}, got {method!r}.")
    return METHODS[method]


def make_synthesizer(
    method: str, epsilon: float | None, delta: float | None, settings: Mapping[str, Any] | None = None
) -> Synthesizer:
    """Return the synthesizer of a method.

    Args:
        method: its name.
        epsilon: ε; None for a method without noise.
        delta: δ, or None for the default.
        settings: arguments of its class.

    Raises:
        ConfigError: no such method, a setting outside its domain, or an ε too many or too few.
    """
    chosen = find_method(method)
    if chosen.private and epsilon is None:
        raise ConfigError(f"Expected --epsilon for the method {method}, got none.")
    if not chosen.private and epsilon is not None:
        raise ConfigError(f"Expected no --epsilon for the method {method}, which has no noise, got {epsilon:g}.")
    return chosen.make(epsilon=NonPrivate() if epsilon is None else epsilon, delta=delta, **(settings or {}))
