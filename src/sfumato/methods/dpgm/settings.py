"""Settings of DPGM: its component networks, and how the budget is shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from sfumato.errors import ConfigError, require_integer, require_open_unit, require_positive


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VAE:
    """Each component is a variational autoencoder with prior N(0, I) and Bernoulli or softmax outputs.

    Attributes:
        hidden: units of the encoder's hidden layers, from the records inwards; the decoder has them reversed.
        latent_dim: q.
        learning_rate: of Adam.
    """

    hidden: tuple[int, ...] = (200,)
    latent_dim: int = 8
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple) or not self.hidden:
            raise ConfigError(f"Expected hidden to be a tuple of one or more numbers of units, got {self.hidden!r}.")
        for units in self.hidden:
            require_integer(at_least=1, hidden=units)
        require_integer(at_least=1, latent_dim=self.latent_dim)
        require_positive(learning_rate=self.learning_rate)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RBM:
    """Each component is a restricted Boltzmann machine, by persistent contrastive divergence.

    Attributes:
        hidden: units h.
        n_chains: Gibbs chains per component in training; they are released, and sampling goes on from them.
        gibbs_steps: by which chains move after a step of training.
        burn_in: Gibbs steps from a released chain to a sample.
        learning_rate: of Adam.
    """

    hidden: int = 200
    n_chains: int = 20
    gibbs_steps: int = 1
    burn_in: int = 100
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("hidden", "n_chains", "gibbs_steps", "burn_in"):
            require_integer(at_least=1, **{name: getattr(self, name)})
        require_positive(learning_rate=self.learning_rate)


Component: TypeAlias = VAE | RBM


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureShares:
    """Shares of the squared budget; the networks take what is left.

    Attributes:
        marginals: of a table's marginals; others have none.
        lengths: of the mean length of sets, which sets the kernel's width; others have none.
        clusters: of the clusters' centres; one cluster has none.
        profiles: of the clusters' sizes and mean vectors.
        whole: share of the profiles that the mean over all records has, beside those of clusters.
    """

    marginals: float = 0.1
    lengths: float = 0.005
    clusters: float = 0.15
    profiles: float = 0.2
    whole: float = 0.5

    def __post_init__(self) -> None:
        for name in ("marginals", "lengths", "clusters", "profiles", "whole"):
            require_open_unit(**{name: getattr(self, name)})
        left = 1 - self.marginals - self.lengths - self.clusters - self.profiles
        require_open_unit("Leave some for the networks.", shares=1 - left)
