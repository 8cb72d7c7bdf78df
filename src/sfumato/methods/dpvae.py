"""DP-VAE: a variational autoencoder trained end to end by private gradient descent; the baseline of P3GM.

    marginals        G(σ)                → ranks of numbers; tables only
    autoencoder      P(q, G(σ)), T times → weights of encoder and decoder

Latents are drawn from N(0, I). Without noise it is the VAE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sfumato.errors import require_integer, require_positive
from sfumato.methods.nets.batches import require_single_records
from sfumato.methods.nets.decoding import (
    is_table,
    map_records,
    marginal_stages,
    nominal_budget,
    require_device,
    require_heads,
    require_networks,
    sampler_of,
    schedule,
)
from sfumato.models.mixtures.covariances import FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.plugins import (
    Facts,
    Fit,
    FittedModel,
    Preset,
    Stage,
    Synthesizer,
    one_shot,
    sampled,
)

AUTOENCODER = "autoencoder"
MARGINALS_SHARE = 0.1
_PUBLISHED = {
    "epochs": 4, "batch_size": 300, "hidden": 1000, "learning_rate": 1e-3, "clip_norm": 1.0, "heads": "squared",
    "draw": False,
}  # fmt: skip
_DIFFERS = (
    "but Poisson batches, exact epsilon, of tables numbers as bought ranks; epochs and batches are those of MNIST."
)


@final
@dataclass(frozen=True, kw_only=True)
class DPVAE(Synthesizer):
    """A variational autoencoder. Needs the extra `nets`.

    Attributes:
        latent_dim: q.
        epochs: passes over the public number of records, in expectation.
        batch_size: expected members of a batch.
        hidden: units of a hidden layer.
        learning_rate: of Adam.
        clip_norm: bound on one record's gradient.
        heads: what the decoder's outputs mean: "squared" or "native".
        draw: whether one-hot entries are drawn from native heads, or the largest is taken.
        device: where the network is trained: "cpu" or "cuda".
    """

    method: ClassVar[str] = "dp-vae"
    resumable: ClassVar[bool] = True
    needs_declared_rows: ClassVar[bool] = True

    latent_dim: int = 30
    epochs: float = 4.0
    batch_size: int = 300
    hidden: int = 1000
    learning_rate: float = 1e-3
    clip_norm: float = 1.0
    heads: str = "native"
    draw: bool = True
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("latent_dim", "batch_size", "hidden"):
            require_integer(at_least=1, **{name: getattr(self, name)})
        for name in ("epochs", "learning_rate", "clip_norm"):
            require_positive(**{name: getattr(self, name)})
        require_heads(self.heads)
        require_device(self.device)

    @classmethod
    def presets(cls) -> Mapping[str, Preset]:
        """Return the settings of P3GM's paper (arXiv:2006.12101), and those of its authors' code."""
        return {
            "as-released": Preset({"latent_dim": 30, **_PUBLISHED}, f"as the code of P3GM's authors, {_DIFFERS}"),
            "as-written": Preset({"latent_dim": 10, **_PUBLISHED}, f"as P3GM's paper, {_DIFFERS}"),
        }

    def stages(self, facts: Facts) -> list[Stage]:
        """Return the one stage."""
        require_networks(self.device)
        require_single_records(facts.unit_rows)
        probability, n_steps = schedule(facts.rows, self.batch_size, self.epochs)
        budget = nominal_budget(self.epsilon, self.delta, facts.rows)
        share = MARGINALS_SHARE if is_table(facts.schema) else 0.0
        return [
            *marginal_stages(facts.schema, one_shot(MARGINALS_SHARE, budget)),
            Stage(
                name=AUTOENCODER,
                noise_multiplier=sampled(1 - share, budget, probability=probability, count=n_steps),
                sampling_probability=probability,
                count=n_steps,
                measures="how the autoencoder should change",
            ),
        ]

    def run(self, fit: Fit) -> FittedModel:
        """Train the autoencoder."""
        from sfumato.methods.nets.autoencoder import Autoencoder, Heads, Output, level_slices
        from sfumato.methods.nets.sgd import Descent, Task, train

        mapped = map_records(fit)
        vectors = mapped.vectors
        output = Output(Heads(self.heads), level_slices(vectors.parts))
        network = Autoencoder(
            vectors.dimension, self.latent_dim, self.hidden, axes=None, prior=None, variance=True, output=output
        )
        settings = Descent(clip_norm=self.clip_norm, learning_rate=self.learning_rate, device=self.device)
        train(fit, AUTOENCODER, Task(network, network.losses, self.latent_dim), fit.data, vectors, settings)
        q = self.latent_dim
        prior = GaussianMixture(np.ones(1), np.zeros((1, q)), np.eye(q)[None], FullCovariance())
        sampler, arrays = sampler_of(
            mapped, prior, network.layers(), heads=self.heads, draw=self.draw, class_column=None
        )
        return FittedModel(sampler, arrays, mapped.measured)
