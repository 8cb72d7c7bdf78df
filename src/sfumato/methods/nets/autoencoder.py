"""Variational autoencoders whose encoder may be a fixed linear map: their networks and per-record losses, in torch.

    loss(x) = −log p(x | z) + KL(q(z | x) ‖ p(z)),   z = μ(x) + s(x)⊙e,  e ~ N(0, I)

P3GM (Takagi et al. 2021, arXiv:2006.12101): μ is the released projection on principal axes, p a released mixture of
Gaussians, and the decoder and s are trained. The divergence from a Gaussian to a mixture is the upper bound of
Hershey and Olsen (2007), −log Σ_b π_b exp(−KL(q ‖ N_b)): exact for one component.

k networks of one shape stand side by side, each record running through its own alone: records are sorted by network,
and every layer multiplies consecutive slices with its k matrices: the work is that of one network on all records,
whatever k is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.maths.streams import public_stream
from sfumato.methods.nets.axes import LatentAxes
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.models.nets.decoder import Layers

_LOG_VARIANCE = 10.0  # of q, at most, either way: exp must not overflow
_START_SEED = 0
_FIT_DRAWS = 8192
_RIDGE = 1e-4


class Groups:
    """Which of the k networks each record of a sorted batch belongs to; shared by the layers of a stack."""

    def __init__(self, n_parts: int) -> None:
        self.n_parts = n_parts
        self.bounds: tuple[int, ...] = (0,) * (n_parts + 1)

    def set(self, parts: Tensor) -> None:
        """Note the networks of a batch's records, shape (b,), ascending."""
        ends = torch.searchsorted(parts.contiguous(), torch.arange(self.n_parts, device=parts.device), right=True)
        self.bounds = (0, *ends.tolist())

    def slices(self) -> tuple[slice, ...]:
        """Return where each network's records are."""
        return tuple(slice(a, b) for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True))


class StackedLinear(nn.Module):
    """k linear layers of one shape.

    Args:
        groups: of the batch that runs through.
        inputs: i.
        outputs: o.

    Attributes:
        weight: shape (k, o, i).
        bias: shape (k, o).
    """

    def __init__(self, groups: Groups, inputs: int, outputs: int) -> None:
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(torch.zeros(groups.n_parts, outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(groups.n_parts, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs of sorted records, shape (b, o)."""
        parts = [nn.functional.linear(x[s], self.weight[c], self.bias[c]) for c, s in enumerate(self.groups.slices())]
        return torch.cat(parts)


def stacked_sum(factors: Tensor, left: Tensor, right: Tensor, groups: tuple[slice, ...]) -> Tensor:
    """Return Σ fᵢ lᵢ rᵢᵀ over the records of each group, shape (k, l, r)."""
    weighted = left * factors[:, None]
    return torch.stack([weighted[s].T @ right[s] for s in groups])


class Heads(Enum):
    """What a decoder's outputs mean.

    SQUARED: every entry is Gaussian of variance ½ about its output: squared error.
    NATIVE: a number in [0, 1] is Bernoulli with the logistic of its output; one-hot entries are a softmax.
    """

    SQUARED = "squared"
    NATIVE = "native"


@dataclass(frozen=True)
class Output:
    """The likelihood of a record given the decoder's outputs.

    Attributes:
        heads: what outputs mean.
        levels: entries that are one-hot, when heads are native.
    """

    heads: Heads
    levels: tuple[slice, ...]

    def losses(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return −log p(x | z) up to a constant, shape (b,)."""
        if self.heads is Heads.SQUARED:
            return ((outputs - x) ** 2).sum(1)
        total = x.new_zeros(len(x))
        start = 0
        for entries in (*self.levels, slice(x.shape[1], x.shape[1])):
            numbers = slice(start, entries.start)
            if numbers.stop > numbers.start:
                total = total + nn.functional.binary_cross_entropy_with_logits(
                    outputs[:, numbers], x[:, numbers], reduction="none"
                ).sum(1)
            if entries.stop > entries.start:
                total = total - (x[:, entries] * torch.log_softmax(outputs[:, entries], 1)).sum(1)
            start = entries.stop
        return total

    def link(self, means: np.ndarray) -> np.ndarray:
        """Return outputs that stand for expected vectors."""
        if self.heads is Heads.SQUARED:
            return means
        inside = np.clip(means, 1e-2, 1 - 1e-2)
        result = np.log(inside / (1 - inside))
        for entries in self.levels:
            result[:, entries] = np.log(inside[:, entries])
        return result


class Autoencoder(nn.Module):
    """Encoder and decoder of one hidden layer each.

    Args:
        dimension: entries d of a vector.
        latent_dim: q.
        hidden: units of a hidden layer.
        axes: fixed linear mean of the encoder; None trains it.
        prior: p(z), in latents scaled to order 1; None is N(0, I).
        variance: whether q(z | x) has a variance, by a trained network; if not, z = μ(x) and no divergence is charged.
        output: the likelihood.
    """

    def __init__(
        self,
        dimension: int,
        latent_dim: int,
        hidden: int,
        *,
        axes: LatentAxes | None,
        prior: GaussianMixture | None,
        variance: bool,
        output: Output,
    ) -> None:
        super().__init__()
        self.latent_dim = latent_dim
        self.output = output
        self.variance = _network(dimension, hidden, latent_dim) if variance else None
        self.mean = None if axes is not None else _network(dimension, hidden, latent_dim)
        self.decoder = _network(latent_dim, hidden, dimension)
        self._axes = None if axes is None else _Projection(axes)
        self._prior = None if prior is None else _Prior(prior)
        draw_start(self)

    def latent_means(self, x: Tensor) -> Tensor:
        """Return μ(x), shape (b, q)."""
        return self._axes(x) if self.mean is None else self.mean(x)  # type: ignore[misc]

    def losses(self, x: Tensor, normals: Tensor) -> Tensor:
        """Return per-record losses, shape (b,)."""
        mean = self.latent_means(x)
        if self.variance is None:
            return self.output.losses(self.decoder(mean), x)
        log_variance = self.variance(x).clamp(-_LOG_VARIANCE, _LOG_VARIANCE)
        latent = mean + torch.exp(0.5 * log_variance) * normals
        return self.output.losses(self.decoder(latent), x) + self.divergence(mean, log_variance)

    def divergence(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        """Return the (bound on the) divergence from q(z | x) to the prior, shape (b,)."""
        if self._prior is None:
            return 0.5 * (torch.exp(log_variance) + mean**2 - 1 - log_variance).sum(1)
        return self._prior.divergence(mean, log_variance)

    def start_from(self, axes: LatentAxes, prior: GaussianMixture) -> None:
        """Fit the decoder's last layer to the inverse projection of latents drawn from the prior.

        Privacy: none (post-processing of released axes and prior).
        """
        rng = public_stream(_START_SEED, 1)
        latents, _ = prior.sample(_FIT_DRAWS, rng)
        latents = latents + 0.1 * latents.std(axis=0) * rng.standard_normal(latents.shape)
        targets = self.output.link(axes.inverse(latents / axes.scale))
        first, last = (layer for layer in self.decoder if isinstance(layer, nn.Linear))
        with torch.no_grad():
            hidden = torch.relu(first(as_tensor(latents))).double().numpy()
        design = np.concatenate([hidden, np.ones((len(hidden), 1))], axis=1)
        gram = design.T @ design
        gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
        solution = np.linalg.solve(gram, design.T @ targets)
        with torch.no_grad():
            last.weight.copy_(as_tensor(solution[:-1].T))
            last.bias.copy_(as_tensor(solution[-1]))

    def layers(self) -> Layers:
        """Return the decoder as arrays."""
        linear = [layer for layer in self.decoder if isinstance(layer, nn.Linear)]
        return Layers(
            tuple(layer.weight.detach().cpu().numpy().copy() for layer in linear),
            tuple(layer.bias.detach().cpu().numpy().copy() for layer in linear),
        )


class _Projection(nn.Module):
    """The projection on released axes, clipped and scaled to order 1, as constants."""

    centre: Tensor
    axes: Tensor

    def __init__(self, axes: LatentAxes) -> None:
        super().__init__()
        self.register_buffer("centre", as_tensor(axes.centre))
        self.register_buffer("axes", as_tensor(axes.axes))
        self._radius, self._scale = axes.radius, axes.scale

    def forward(self, x: Tensor) -> Tensor:
        projected = (x - self.centre) @ self.axes
        norms = torch.linalg.vector_norm(projected, dim=1, keepdim=True)
        return projected * (self._scale / norms.clamp_min(self._radius))


class _Prior(nn.Module):
    """A mixture of Gaussians as constants."""

    log_weights: Tensor
    means: Tensor
    precisions: Tensor
    log_determinants: Tensor

    def __init__(self, prior: GaussianMixture) -> None:
        super().__init__()
        covariances = prior.dense_covariances()
        precisions = np.linalg.inv(covariances)
        self.register_buffer("log_weights", as_tensor(np.log(np.maximum(prior.weights, 1e-12))))
        self.register_buffer("means", as_tensor(prior.means))
        self.register_buffer("precisions", as_tensor(precisions))
        self.register_buffer("log_determinants", as_tensor(np.linalg.slogdet(covariances)[1]))

    def divergence(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        away = mean[:, None] - self.means
        squares = torch.einsum("bki,kij,bkj->bk", away, self.precisions, away)
        traces = torch.exp(log_variance) @ torch.diagonal(self.precisions, dim1=1, dim2=2).T
        apart = 0.5 * (self.log_determinants - log_variance.sum(1, keepdim=True) - mean.shape[1] + traces + squares)
        return -torch.logsumexp(self.log_weights - apart, dim=1)


def _network(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def draw_start(module: nn.Module) -> None:
    """Draw weights as torch does, from a public stream: the start is no secret, and the same for one seed."""
    rng = public_stream(_START_SEED)
    with torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, nn.Linear | StackedLinear):
                bound = 1 / np.sqrt(layer.weight.shape[-1])
                for parameter in layer.parameters():
                    parameter.copy_(as_tensor(rng.uniform(-bound, bound, tuple(parameter.shape))))


def level_slices(parts: Sequence[object]) -> tuple[slice, ...]:
    """Return the entries of one-hot parts."""
    return tuple(part.entries for part in parts if part.levels)  # type: ignore[attr-defined]


def as_tensor(array: np.ndarray) -> Tensor:
    """Return an array as 32-bit floats of torch."""
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
