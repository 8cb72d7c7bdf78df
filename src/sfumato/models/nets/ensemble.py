"""Samples of a mixture of networks: a component, then its decoder of normal latents or its Gibbs chain.

Restricted Boltzmann machines in numpy: means of either side given the other, and block Gibbs sampling.

    p(v, h) ∝ exp(hᵀWv + bᵀv + aᵀh),   p(h = 1 | v) = σ(Wv + a),   p(v = 1 | h) = σ(Wᵀh + b)

One-hot entries of v are drawn together, by a softmax of their outputs. A release samples without torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from sfumato.columns.sets import ItemSet
from sfumato.errors import ReleaseError
from sfumato.maths.arrays import require_array, require_shares, require_well_formed
from sfumato.models.nets.decoder import (
    LARGEST,
    Layers,
    NetworkSampler,
    draw_levels,
    flat_vectors,
    mean_of_heads,
    read_layers,
)
from sfumato.models.nets.flat import Part, SetVectors
from sfumato.models.sets import SetEncoder
from sfumato.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Boltzmann:
    """A restricted Boltzmann machine.

    Attributes:
        weight: W, shape (h, m), float32.
        visible: b, shape (m,), float32.
        hidden: a, shape (h,), float32.
        parts: of a visible vector.
    """

    weight: np.ndarray
    visible: np.ndarray
    hidden: np.ndarray
    parts: Sequence[Part]

    def hidden_draws(self, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return hidden units drawn given visible vectors, shape (n, h), float32."""
        means = special.expit(vectors @ self.weight.T + self.hidden)
        return (rng.random(means.shape, dtype=np.float32) < means).astype(np.float32)

    def outputs(self, hidden: np.ndarray) -> np.ndarray:
        """Return what visible means are the logistic or softmax of, shape (n, m), float32."""
        return hidden @ self.weight + self.visible

    def visible_draws(self, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return visible vectors drawn given outputs, shape (n, m), float32."""
        means = mean_of_heads(outputs, self.parts)
        vectors = (rng.random(means.shape, dtype=np.float32) < means).astype(np.float32)
        one_hot = [part.entries for part in self.parts if part.levels]
        if one_hot:
            levels = draw_levels(means, self.parts, rng)
            for entries in one_hot:
                vectors[:, entries] = levels[:, entries]
        return vectors

    def gibbs(self, vectors: np.ndarray, steps: int, rng: np.random.Generator) -> np.ndarray:
        """Return visible vectors after so many steps of block Gibbs sampling."""
        for _ in range(steps):
            vectors = self.visible_draws(self.outputs(self.hidden_draws(vectors, rng)), rng)
        return vectors


_MOST_LAYERS, _MOST_STEPS = 8, 10_000


@dataclass(frozen=True)
class Decoders:
    """k decoders of normal latents."""

    layers: tuple[Layers, ...]

    def outputs(self, component: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return outputs of n latents, shape (n, m)."""
        layers = self.layers[component]
        return layers(rng.standard_normal((n, layers.weights[0].shape[1])))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return them as a release holds them."""
        arrays = {}
        for i in range(len(self.layers[0].weights)):
            arrays[f"decoder_weight{i}"] = np.stack([layers.weights[i] for layers in self.layers])
            arrays[f"decoder_bias{i}"] = np.stack([layers.biases[i] for layers in self.layers])
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_layers: int, k: int, m: int) -> Decoders:
        """Read what `to_arrays` made; a stranger may have written it.

        Raises:
            ReleaseError: arrays are missing or do not fit one another.
        """
        weights, biases = read_layers(arrays, n_layers, None, m, (k,))
        return cls(tuple(Layers(tuple(w[c] for w in weights), tuple(b[c] for b in biases)) for c in range(k)))


@dataclass(frozen=True)
class Machines:
    """k restricted Boltzmann machines; sampling goes on from released chains, so that few steps are enough.

    Attributes:
        machines: the k machines.
        chains: where Gibbs sampling starts, shape (k, n, m), float32.
        steps: of block Gibbs sampling.
    """

    machines: tuple[Boltzmann, ...]
    chains: np.ndarray
    steps: int

    def outputs(self, component: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return outputs of n chains that have moved, shape (n, m)."""
        machine, chains = self.machines[component], self.chains[component]
        vectors = machine.gibbs(chains[rng.integers(len(chains), size=n)], self.steps - 1, rng)
        return machine.outputs(machine.hidden_draws(vectors, rng))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return them as a release holds them."""
        return {
            "machine_weight": np.stack([machine.weight for machine in self.machines]),
            "machine_visible": np.stack([machine.visible for machine in self.machines]),
            "machine_hidden": np.stack([machine.hidden for machine in self.machines]),
            "chains": self.chains.astype(np.float32),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], steps: int, k: int, m: int, parts: tuple[Part, ...]
    ) -> Machines:
        """Read what `to_arrays` made; a stranger may have written it.

        Raises:
            ReleaseError: arrays are missing or do not fit one another.
        """
        weight = require_array(arrays, "machine_weight", np.float32, (k, None, m))
        visible = require_array(arrays, "machine_visible", np.float32, (k, m))
        hidden = require_array(arrays, "machine_hidden", np.float32, (k, weight.shape[1]))
        chains = require_array(arrays, "chains", np.float32, (k, None, m))
        require_well_formed(chains.shape[1] >= 1 and bool((np.abs(chains) <= 1).all()), "chains")
        machines = tuple(Boltzmann(weight[c], visible[c], hidden[c], parts) for c in range(k))
        return cls(machines, chains, steps)


class NetworkMixture(NetworkSampler):
    """A component by its share, a record from its network (`sfumato.methods.dpgm.recipe`)."""

    name = "network_mixture"
    class_column: str | None = None

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        sets = bool(schema.of_kind(ItemSet))
        super().__init__(SetVectors(SetEncoder.of(schema)) if sets else flat_vectors(schema, parameters), parameters)
        self._shares = require_shares(parameters, "component_shares")
        k, m = self._shares.size, self._vectors.dimension
        self._networks: Decoders | Machines
        if settings.get("component") == "vae":
            n_layers = _count(settings, "layers", _MOST_LAYERS)
            self._networks = Decoders.from_arrays(parameters, n_layers, k, m)
            inner = sum(len(bias) for bias in self._networks.layers[0].biases)
        elif settings.get("component") == "rbm":
            steps = _count(settings, "steps", _MOST_STEPS)
            self._networks = Machines.from_arrays(parameters, steps, k, m, self._parts)
            inner = len(self._networks.machines[0].hidden) + m
        else:
            raise ReleaseError("Expected component to be vae or rbm in the release.")
        self._shifts = require_array(parameters, "component_shifts", np.float64, (k, m))
        self._binary = settings.get("binary")
        if not isinstance(self._binary, bool):
            raise ReleaseError("Expected binary to be true or false in the release.")
        self.width = m + inner
        self.possible = np.ones(1, dtype=bool)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return n coded rows."""
        components = rng.choice(self._shares.size, size=n, p=self._shares)
        precision = np.float32 if self._calibration is None else np.float64
        outputs = np.empty((n, self._vectors.dimension), dtype=precision)
        with np.errstate(all="ignore"):  # a stranger's weights may overflow
            for c in range(self._shares.size):
                mine = np.flatnonzero(components == c)
                outputs[mine] = self._networks.outputs(c, mine.size, rng) + self._shifts[c].astype(precision)
            vectors = self._drawn(np.clip(np.nan_to_num(outputs), -LARGEST, LARGEST), rng)
        return self._vectors.decode(vectors, rng)

    def _drawn(self, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return vectors for outputs of the networks."""
        vectors = draw_levels(self._means(outputs, rng), self._parts, rng)
        if self._binary:
            for part in self._parts:
                if not part.levels:
                    vectors[:, part.entries] = rng.random(vectors[:, part.entries].shape) < vectors[:, part.entries]
        return vectors


def _count(settings: Mapping[str, Any], name: str, most: int) -> int:
    value = settings.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ReleaseError(f"Expected {name} to be a whole number from 1 to {most} in the release.")
    return value
