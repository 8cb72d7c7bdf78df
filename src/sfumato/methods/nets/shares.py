"""A layer's share of records' gradients: norms of records, and weighted sums in 64 bits or, bounded, in 32; in torch.

Factors of a linear layer's gradient, w = c g and a, are brought to norms near 1 by powers of two before they are
multiplied in 32 bits: then nothing overflows, and what vanishes is below 2^-80 of a clip norm. What 32 bits make of a
sum is bounded in `sfumato.methods.nets.clipped`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sfumato.errors import ConfigError
from sfumato.methods.nets.autoencoder import StackedLinear, stacked_sum

_LEAST = 2.0**-90  # a factor with a shorter norm counts as zero: its entries may be flushed
_LARGEST = 2.0**120  # much beyond it the power of two would be no normal number


@dataclass(frozen=True)
class LinearShare:
    """A linear layer's share: inputs a (b, i), output gradients g (b, o), 32-bit.

    Attributes:
        inputs: a.
        grads: g.
        input_norms: of (a, 1) with a bias, else of a; shape (b,), 64-bit.
        grad_norms: of g, shape (b,), 64-bit.
        has_bias: whether the layer has one.
        slices: where each network's records are, sorted by networks; None for one network.
    """

    inputs: Tensor
    grads: Tensor
    input_norms: Tensor
    grad_norms: Tensor
    has_bias: bool
    slices: tuple[slice, ...] | None

    @classmethod
    def of(cls, inputs: Tensor, grads: Tensor, has_bias: bool, slices: tuple[slice, ...] | None) -> LinearShare:
        """Take in factors of any type as 32-bit ones; norms are those of what will be summed."""
        a, g = inputs.float(), grads.float()
        # 64 bits: in 32, squares underflow
        squares = torch.linalg.vector_norm(a, dim=1, dtype=torch.float64) ** 2 + has_bias
        return cls(a, g, torch.sqrt(squares), torch.linalg.vector_norm(g, dim=1, dtype=torch.float64), has_bias, slices)

    def squared_norms(self) -> Tensor:
        """Return ‖g‖²(‖a‖² + 1) per record."""
        return (self.input_norms * self.grad_norms) ** 2

    def weighted(self, factors: Tensor, fine: Tensor) -> Iterator[Tensor]:
        """Yield Σ fᵢ gᵢ aᵢᵀ and Σ fᵢ gᵢ, 64-bit."""
        grads = torch.where(fine[:, None], self.grads.double(), 0.0)
        inputs = torch.where(fine[:, None], self.inputs.double(), 0.0)
        weighted = grads * factors[:, None]
        if self.slices is None:
            yield weighted.T @ inputs
        else:
            yield stacked_sum(factors, grads, inputs, self.slices)
        if self.has_bias:
            yield weighted.sum(0) if self.slices is None else torch.stack([weighted[s].sum(0) for s in self.slices])

    def sum_into(self, out: list[Tensor], factors: Tensor, fine: Tensor, block: int, scratch: Tensor) -> None:
        """Fill `out` with Σ fᵢ gᵢ aᵢᵀ and Σ fᵢ gᵢ, 32-bit; factors are such that ‖fᵢ gᵢ aᵢᵀ‖ ≤ 1."""
        fine = fine & (self.input_norms >= _LEAST) & (self.grad_norms >= _LEAST)
        input_scales, grad_scales = _powers(self.input_norms, fine), _powers(self.grad_norms, fine)
        right, left = self.inputs * input_scales.float()[:, None], self.grads * grad_scales.float()[:, None]
        left *= torch.where(fine, factors / (input_scales * grad_scales), 0.0).float()[:, None]
        left[~fine], right[~fine] = 0.0, 0.0  # also what is no number
        stacked = self.slices is not None
        for c, records in enumerate(self.slices or (slice(0, len(left)),)):
            block_product(left[records], right[records], block, out[0][c] if stacked else out[0], scratch)
            if self.has_bias:
                ones, bias = input_scales.float()[records, None], out[1][c] if stacked else out[1]
                block_product(left[records], ones, block, bias[:, None], scratch)


def share_of(layer: nn.Linear | StackedLinear, inputs: Tensor, grads: Tensor) -> LinearShare:
    """Return a layer's share, of its inputs and the gradients of the losses by its outputs."""
    if isinstance(layer, StackedLinear):
        return LinearShare.of(inputs, grads, True, layer.groups.slices())
    if inputs.dim() != 2:
        raise ConfigError(f"Expected linear layers of inputs (records, features), got {inputs.dim()} axes.")
    return LinearShare.of(inputs, grads, layer.bias is not None, None)


def block_product(left: Tensor, right: Tensor, block: int, out: Tensor, scratch: Tensor) -> None:
    """Fill `out` (l, r) with Σ lᵢ rᵢᵀ, 32-bit: products of `block` records at most, added up.

    Args:
        left: shape (b, l).
        right: shape (b, r).
        block: records a product.
        out: where the sum goes.
        scratch: room for l·r numbers.
    """
    if not len(left):
        out.zero_()
        return
    torch.mm(left[:block].T, right[:block], out=out)
    beside = scratch[: out.numel()].view(out.shape)
    for start in range(block, len(left), block):
        torch.mm(left[start : start + block].T, right[start : start + block], out=beside)
        out += beside


def _powers(norms: Tensor, fine: Tensor) -> Tensor:
    """Return powers of two, 64-bit, that bring norms from 2^-90 to 2^120 to [1/2, 1); 1 for what is not fine."""
    clamped = torch.where(fine, norms, 0.5).clamp(_LEAST, _LARGEST)
    return torch.frexp(clamped).mantissa / clamped  # exact: the quotient is a power of two
