"""Sums of clipped per-record gradients, with one backward pass and no gradient per record.

For a linear layer with input a and output gradient g, the gradient of one record is g aᵀ, of norm ‖g‖·‖a‖ (Goodfellow
2015, arXiv:1510.01799). So a backward pass to the layers' outputs gives every record's norm, and one product
Σ cᵢ gᵢ aᵢᵀ with the clip factors cᵢ the clipped sum, at the price of an ordinary backward pass ("book-keeping": Bu,
Wang, Zha and Karypis 2023, arXiv:2210.00038).

Every layer may be used once in a forward pass, and nothing in it may couple records.

How far a sum in 32 bits is from the exact one, which adds to its sensitivity:

    |fl(Σ wᵢⱼaᵢₖ) − Σ wᵢⱼaᵢₖ| ≤ γ_r Σ |wᵢⱼaᵢₖ|,   γ_r = r u/(1 − r u),   u = 2^-24

for any order of summation in which no term is rounded more than r times (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed. 2002, chapters 3 and 4). Over all parameters that is at most γ_r times the sum of the records'
norms, so at most γ_r b C in a batch of b records. Proof: docs/proofs/sampled_gradients.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor, nn

from sfumato.errors import ConfigError
from sfumato.methods.nets.autoencoder import StackedLinear
from sfumato.methods.nets.shares import LinearShare, share_of
from sfumato.plugins import SAFETY

UNIT = 2.0**-24  # half a unit in the last place of a 32-bit float, relative
MOST_NARROW = 1024
"""Records of a batch at most whose gradients are summed in 32 bits; they are worked off at once."""
_BLOCKS = (128, 96, 64)  # records a product: the first of which the slack is small, or the last
_TAIL = 4.0  # standard deviations of a batch's size above its mean: what is larger takes 64 bits, which is slower
_SMALL_SLACK, _MOST_SLACK = 0.005, 0.01
_UPWARD = 1 + 2.0**-40  # the reckoning below is in 64 bits
_FREE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.SiLU, nn.GELU, nn.Identity, nn.Sequential, nn.ModuleList)


_Layer: TypeAlias = nn.Linear | StackedLinear


@dataclass(frozen=True, slots=True)
class Blocks:
    """How batches are summed in 32 bits: all facts are public, and none depends on a batch at hand.

    Attributes:
        most: records of a batch that is summed in 32 bits; larger ones are summed in 64.
        block: records at most in one product; the products are added in 32 bits.
    """

    most: int
    block: int

    @property
    def rounding(self) -> float:
        """γ: error of a sum ÷ the sum of its terms' sizes.

        A term is rounded at most `block` times in its product, and once per addition of products.
        """
        roundings = self.block + math.ceil(self.most / self.block) - 1
        return roundings * UNIT / (1 - roundings * UNIT)

    @property
    def slack(self) -> float:
        """What rounding adds to the sensitivity, in clip norms: the errors of both neighbours' sums, γ·most each."""
        return 2 * self.most * self.rounding * _UPWARD


def blocks_for(expected: float) -> Blocks | None:
    """Return how batches of so many records on the mean are summed in 32 bits; None where 64 bits are better.

    Args:
        expected: public mean of a batch's size: sampling probability times the public number of records.
    """
    most = math.ceil(expected + _TAIL * math.sqrt(expected)) + 1
    if most > MOST_NARROW:
        return None
    sizes = [Blocks(most, min(block, most)) for block in _BLOCKS]
    chosen = next((blocks for blocks in sizes if blocks.slack <= _SMALL_SLACK), sizes[-1])
    return chosen if chosen.slack <= _MOST_SLACK else None


def products_are_whole(shapes: Sequence[tuple[int, int]], block: int, device: str | torch.device) -> bool:
    """Return whether products of these shapes keep all 24 bits of 32-bit floats: settings of torch may cut them to 8.

    Args:
        shapes: rows and columns of the products.
        block: terms of each entry.
        device: where they are made.
    """
    last = 1 + 2 * UNIT
    for rows, columns in shapes:
        left, right = torch.zeros(block, rows, device=device), torch.zeros(block, columns, device=device)
        for one, other in ((last, 1.0), (1.0, last)):
            left[0], right[0] = one, other
            if not torch.equal(torch.mm(left.T, right), torch.full((rows, columns), last, device=device)):
                return False
    return True


@dataclass
class _Use:
    """What one layer saw in a forward pass."""

    inputs: Tensor
    output: Tensor


@dataclass
class ClippedGradients:
    """Clipped gradients of a network's per-record losses.

    Args:
        network: made of linear layers, each used once, and activations.

    Raises:
        ConfigError: the network has another layer with parameters, or one of torch's that couples records. A module of
            the caller's own without parameters is trusted not to.
    """

    network: nn.Module
    _layers: list[_Layer] = field(init=False)
    _uses: dict[nn.Module, _Use] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._layers = list(_layers(self.network))
        for layer in self._layers:
            layer.register_forward_hook(self._note)
            for parameter in layer.parameters():
                parameter.requires_grad_(False)  # output gradients are all that autograd has to find

    def _note(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        if not torch.is_grad_enabled():
            return
        if layer in self._uses:
            raise ConfigError("Expected every layer to be used once in a forward pass, got one used twice.")
        if not output.requires_grad:
            output.requires_grad_()
        self._uses[layer] = _Use(inputs[0].detach(), output)

    def parameters(self) -> list[nn.Parameter]:
        """Return the parameters, in the order of `weighted`: per layer its weight, then its bias if it has one."""
        return [p for layer in self._layers for p in layer.parameters()]

    def per_record(self, losses: Callable[[nn.Module], Tensor]) -> RecordGradients:
        """Return the gradients of records' losses, not yet summed: their norms, and a way to any weighted sum.

        Args:
            losses: given the network, runs it once and returns per-record losses, shape (b,).
        """
        self._uses.clear()
        # whatever the caller has switched on: a sum rounded to 16 bits moves by more than one record's part
        device = next(iter(self._layers)).weight.device.type
        with torch.autocast(device, enabled=False):
            loss = losses(self.network)
            unused = [layer for layer in self._layers if layer not in self._uses]
            if unused:
                raise ConfigError("Expected every layer to be used in a forward pass, got one that is not.")
            outputs = [self._uses[layer].output for layer in self._layers]
            grads = torch.autograd.grad(loss.sum(), outputs)
            shares = [
                share_of(layer, self._uses[layer].inputs, g) for layer, g in zip(self._layers, grads, strict=True)
            ]
            self._uses.clear()
            norms = torch.sqrt(torch.stack([share.squared_norms() for share in shares]).sum(0))
        return RecordGradients(tuple(shares), norms, loss.detach())

    def narrow(self, block: int) -> bool:
        """Return whether the products of `RecordGradients.sum_into` keep all bits of 32-bit floats on this machine."""
        device = next(iter(self._layers)).weight.device
        shapes = {tuple(layer.weight.shape[-2:]) for layer in self._layers}
        with torch.autocast(device.type, enabled=False):
            return products_are_whole([(rows, columns) for rows, columns in shapes], block, device)


@dataclass(frozen=True)
class RecordGradients:
    """Gradients of records' losses. Exact: what is made of them may leave through a mechanism only.

    Attributes:
        norms: joint over all parameters, shape (b,), 64-bit; not finite for a record that is no good.
        losses: shape (b,).
    """

    _shares: tuple[LinearShare, ...]
    norms: Tensor
    losses: Tensor

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """Return Σ fᵢ gᵢ per parameter, 64-bit; records whose norm is not finite are left out.

        Args:
            factors: shape (b,), 64-bit.
        """
        fine = torch.isfinite(self.norms)
        with torch.autocast(self.norms.device.type, enabled=False):
            return [total for share in self._shares for total in share.weighted(factors, fine)]

    def sum_into(self, out: Sequence[Tensor], factors: Tensor, block: int, scratch: Tensor) -> None:
        """Fill `out` with Σ fᵢ gᵢ per parameter, 32-bit, off by `Blocks.rounding` of the terms' sizes at most.

        Args:
            out: per parameter, contiguous.
            factors: shape (b,), 64-bit, such that ‖fᵢ gᵢ‖ ≤ 1: in units of the clip norm.
            block: records a product.
            scratch: room for the largest parameter.
        """
        fine, places = torch.isfinite(self.norms), iter(out)
        with torch.no_grad(), torch.autocast(self.norms.device.type, enabled=False):
            for share in self._shares:
                own = [next(places) for _ in range(1 + share.has_bias)]
                share.sum_into(own, factors, fine, block, scratch)


def clip_factors(norms: Tensor, clip_norms: float | Tensor) -> Tensor:
    """Return min(1, C/‖g‖) per record, less a margin for rounding; 0 where the norm is not finite."""
    factors = (clip_norms * SAFETY / norms.clamp_min(1e-300)).clamp_max(SAFETY)
    return torch.where(torch.isfinite(norms), factors, 0.0)


def _layers(network: nn.Module) -> Iterator[_Layer]:
    """Yield the layers with parameters; refuse what this module cannot clip."""
    known: set[int] = set()
    for module in network.modules():
        own = list(module.parameters(recurse=False))
        if any(id(p) in known for p in own):
            raise ConfigError("Expected layers that share no parameters, got a parameter of two layers.")
        known.update(map(id, own))
        if isinstance(module, nn.Linear | StackedLinear):
            yield module
        elif own or (not isinstance(module, _FREE) and type(module).__module__.startswith("torch.")):
            raise ConfigError(
                f"Expected a network of linear layers and activations, got {type(module).__name__}: a record's "
                "gradient could not be clipped alone."
            )
