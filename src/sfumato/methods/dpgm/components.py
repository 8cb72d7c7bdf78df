"""k generative networks, one per cluster, trained at once: autoencoders or restricted Boltzmann machines; in torch.

    step    P(q, G(σ))    Σ over a Poisson sample of *all* records of e_a(x) ⊗ clip(g_a(x)(x), C)

a(x) is a public rule of a record's own vector, so a record adds to one network alone and the joint norm of its part is
C, whatever k is; every network gets noise at every step. Proof: docs/proofs/sampled_gradients.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.maths.streams import public_stream
from sfumato.methods.nets.autoencoder import Groups, Output, StackedLinear, as_tensor, draw_start, stacked_sum
from sfumato.methods.nets.clipped import RecordGradients
from sfumato.methods.nets.gradients import Gradients, NetworkGradients
from sfumato.models.nets.decoder import Layers
from sfumato.models.nets.ensemble import Boltzmann
from sfumato.models.nets.flat import Part

Assign = Callable[[np.ndarray], np.ndarray]
"""Vectors (b, m) → their clusters (b,): a public rule that looks at one row at a time, to the last bit."""

_START_SEED = 0
_LOG_VARIANCE = 10.0
_SMALL_WEIGHTS = 0.01
_ROUNDING = 1e-12  # of sums of at most some ten thousand products, relative, 64-bit


class StackedAutoencoders(nn.Module):
    """k variational autoencoders with prior N(0, I).

    Args:
        groups: of the batch that runs through.
        dimension: m.
        latent_dim: q.
        hidden: units of each hidden layer, from the records inwards.
        output: the likelihood.
        biases: where the outputs' biases start, shape (k, m).
    """

    def __init__(
        self, groups: Groups, dimension: int, latent_dim: int, hidden: Sequence[int], output: Output, biases: np.ndarray
    ) -> None:
        super().__init__()
        self.groups, self.output = groups, output
        self.trunk = _chain(groups, (dimension, *hidden), last_relu=True)
        self.mean = StackedLinear(groups, hidden[-1], latent_dim)
        self.log_variance = StackedLinear(groups, hidden[-1], latent_dim)
        self.decoder = _chain(groups, (latent_dim, *reversed(hidden), dimension), last_relu=False)
        draw_start(self)
        with torch.no_grad():
            self._decoder_layers()[-1].bias.copy_(as_tensor(biases))

    def losses(self, x: Tensor, normals: Tensor) -> Tensor:
        """Return −log p(x | z) + KL(q(z | x) ‖ N(0, I)) of sorted records, shape (b,)."""
        inner = self.trunk(x)
        mean = self.mean(inner)
        log_variance = self.log_variance(inner).clamp(-_LOG_VARIANCE, _LOG_VARIANCE)
        divergence = 0.5 * (torch.exp(log_variance) + mean**2 - 1 - log_variance).sum(1)
        return self.output.losses(self.decoder(mean + torch.exp(0.5 * log_variance) * normals), x) + divergence

    def layers(self) -> tuple[Layers, ...]:
        """Return the k decoders as arrays."""
        stacks = [(_array(layer.weight), _array(layer.bias)) for layer in self._decoder_layers()]
        return tuple(
            Layers(tuple(w[c] for w, _ in stacks), tuple(b[c] for _, b in stacks)) for c in range(self.groups.n_parts)
        )

    def _decoder_layers(self) -> list[StackedLinear]:
        return [layer for layer in self.decoder if isinstance(layer, StackedLinear)]


class AutoencoderGradients(NetworkGradients):
    """Gradients of k autoencoders; the first axis of every parameter is that of the networks."""

    def __init__(self, network: StackedAutoencoders, assign: Assign) -> None:
        super().__init__(network, network.groups.n_parts, network.mean.weight.shape[1])
        self._stack, self._assign = network, assign

    def of(self, vectors: Tensor, normals: Tensor) -> tuple[RecordGradients, Tensor]:
        """Return the gradients of some records and their clusters, sorted by cluster."""
        order, parts = _sorted(vectors, self._assign)
        self._stack.groups.set(parts)
        x, e = vectors[order], normals[order]
        return self.per_record(lambda _: self._stack.losses(x, e)), parts


class StackedMachines(nn.Module):
    """k restricted Boltzmann machines.

    Args:
        hidden: h.
        biases: where visible biases start, shape (k, m).
        parts: of a visible vector.
    """

    def __init__(self, hidden: int, biases: np.ndarray, parts: Sequence[Part]) -> None:
        super().__init__()
        self.parts, (k, dimension) = parts, biases.shape
        draws = public_stream(_START_SEED).standard_normal((k, hidden, dimension))
        self.weight = nn.Parameter(as_tensor(_SMALL_WEIGHTS * draws), requires_grad=False)
        self.visible = nn.Parameter(as_tensor(biases), requires_grad=False)
        self.hidden = nn.Parameter(torch.zeros(k, hidden), requires_grad=False)

    def machines(self) -> tuple[Boltzmann, ...]:
        """Return the k machines as arrays."""
        weight, visible, hidden = _array(self.weight), _array(self.visible), _array(self.hidden)
        return tuple(Boltzmann(weight[c], visible[c], hidden[c], self.parts) for c in range(len(weight)))


class MachineGradients(Gradients):
    """Descent directions of k machines by persistent contrastive divergence (`Gradients`).

        gᵢ = (M − hᵢvᵢᵀ, v̄' − vᵢ, h̄' − hᵢ),   hᵢ = p(h | vᵢ),   M = mean of h'v'ᵀ over the chains

    The negative phase is the mean over all chains, the same for every record, so no record decides which chain another
    one meets. Chains start from released biases and move by released parameters and public randomness: they hold
    nothing of a record.

    Args:
        network: the machines.
        n_chains: per machine.
        gibbs_steps: by which chains move after a step.
        assign: clusters of records.
    """

    n_normals = 0

    def __init__(self, network: StackedMachines, *, n_chains: int, gibbs_steps: int, assign: Assign) -> None:
        self.network: nn.Module = network
        self.n_parts = len(network.weight)
        self._stack, self._steps, self._assign = network, gibbs_steps, assign
        rng = public_stream(_START_SEED, 1)
        self.chains = np.stack(
            [machine.visible_draws(np.tile(machine.visible, (n_chains, 1)), rng) for machine in network.machines()]
        )

    def parameters(self) -> list[nn.Parameter]:
        """Return W, b and a; the first axis is that of the machines."""
        return [self._stack.weight, self._stack.visible, self._stack.hidden]

    def of(self, vectors: Tensor, normals: Tensor) -> tuple[MachineDirections, Tensor]:
        """Return the directions of some records and their clusters, sorted by cluster."""
        order, parts = _sorted(vectors, self._assign)
        groups = Groups(self.n_parts)
        groups.set(parts)
        v = vectors[order].double()
        weight, hidden = self._stack.weight.double(), self._stack.hidden.double()
        h = torch.cat([torch.sigmoid(v[s] @ weight[c].T + hidden[c]) for c, s in enumerate(groups.slices())])
        chains = torch.from_numpy(self.chains).to(v)
        chain_means = torch.sigmoid(torch.einsum("cnm,chm->cnh", chains, weight) + hidden[:, None])
        return MachineDirections.of(v, h, chains, chain_means, groups.slices()), parts

    def narrow(self, block: int) -> bool:
        """Return that they are summed in 64 bits."""
        return False

    def stepped(self, step: int) -> None:
        """Move the chains by the machines that were just released."""
        rng = public_stream(_START_SEED, 2, step)
        machines = self._stack.machines()
        self.chains = np.stack([m.gibbs(c, self._steps, rng) for m, c in zip(machines, self.chains, strict=True)])

    def keep(self) -> dict[str, np.ndarray]:
        """Return the chains."""
        return {"chains": self.chains}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on with the chains."""
        self.chains = arrays["chains"].copy()


@dataclass(frozen=True)
class MachineDirections:
    """Directions of records, with norms in closed form: no outer product per record is made.

    ‖g‖² = ‖h‖²‖v‖² − 2 hᵀMv + ‖M‖² + ‖v − v̄'‖² + ‖h − h̄'‖²,   hᵀMv = mean over chains of (h·h')(v·v')
    """

    v: Tensor
    h: Tensor
    norms: Tensor
    negative: Tensor
    chain_v: Tensor
    chain_h: Tensor
    slices: tuple[slice, ...]

    @classmethod
    def of(
        cls, v: Tensor, h: Tensor, chains: Tensor, chain_means: Tensor, slices: tuple[slice, ...]
    ) -> MachineDirections:
        """Compute norms; v (b, m) and h (b, h) sorted by machine, chains (k, n, m), their hidden means (k, n, h)."""
        negative = torch.einsum("cnh,cnm->chm", chain_means, chains) / chains.shape[1]
        chain_v, chain_h = chains.mean(1), chain_means.mean(1)
        squares = (h**2).sum(1) * (v**2).sum(1)
        for c, s in enumerate(slices):
            crossed = ((h[s] @ chain_means[c].T) * (v[s] @ chains[c].T)).mean(1)
            apart = ((v[s] - chain_v[c]) ** 2).sum(1) + ((h[s] - chain_h[c]) ** 2).sum(1)
            size = squares[s] + apart + (negative[c] ** 2).sum()
            # terms that nearly cancel leave their rounding behind: never call a direction shorter than it is
            squares[s] = size - 2 * crossed + _ROUNDING * size
        # what is no number stays none
        norms = torch.sqrt(torch.where(squares < 0, 0.0, squares))
        return cls(v, h, norms, negative, chain_v, chain_h, slices)

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """Return Σ fᵢ gᵢ for W, b and a, 64-bit; records whose norm is not finite are left out."""
        fine = torch.isfinite(self.norms)
        f = torch.where(fine, factors, 0.0)
        v, h = torch.where(fine[:, None], self.v, 0.0), torch.where(fine[:, None], self.h, 0.0)
        masses = torch.stack([f[s].sum() for s in self.slices])
        return [
            masses[:, None, None] * self.negative - stacked_sum(f, h, v, self.slices),
            masses[:, None] * self.chain_v - torch.stack([f[s] @ v[s] for s in self.slices]),
            masses[:, None] * self.chain_h - torch.stack([f[s] @ h[s] for s in self.slices]),
        ]


def _sorted(vectors: Tensor, assign: Assign) -> tuple[Tensor, Tensor]:
    """Return an order of the records by cluster, and the clusters in it."""
    parts = torch.from_numpy(np.asarray(assign(vectors.cpu().numpy()), dtype=np.int64)).to(vectors.device)
    order = torch.argsort(parts, stable=True)
    return order, parts[order]


def _chain(groups: Groups, sizes: Sequence[int], *, last_relu: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [StackedLinear(groups, inputs, outputs), nn.ReLU()]
    return nn.Sequential(*(layers if last_relu else layers[:-1]))


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().copy()
