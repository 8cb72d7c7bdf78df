"""The clipped sum of a batch of any size, in units of the clip norm: one pass in 32 bits, or chunks in 64; in torch.

Batches up to a public size are summed in 32 bits, with a bounded error that the sensitivity covers (`slack`); larger
ones, which are rare, in 64. Copies to and from a device are one a step and go through pinned memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from sfumato.methods.nets.gradients import Gradients, NarrowGradients
from sfumato.methods.nets.rounding import Blocks, blocks_for
from sfumato.plugins import NoiseSource

Factors = Callable[[Tensor, Tensor], Tensor]
"""Norms (b,) and parts (b,) → what gradients are multiplied with, (b,), 64-bit: clip factor ÷ clip norm."""

_CHUNK = 1024  # records at a time in 64 bits; a public constant


class BatchSums:
    """Clipped sums of batches.

    Args:
        gradients: what is learned; already on the device.
        device: where.
        expected: public mean of a batch's size.

    Attributes:
        size: numbers in a sum.
        slack: what rounding adds to the sensitivity of a sum, in clip norms.
    """

    def __init__(self, gradients: Gradients, device: str, expected: float) -> None:
        blocks = blocks_for(expected)
        self._blocks: Blocks | None = blocks if blocks is not None and gradients.narrow(blocks.block) else None
        self.slack = self._blocks.slack if self._blocks is not None else 0.0
        self._gradients, self._device = gradients, device
        self._parameters = gradients.parameters()
        self.size = sum(p.numel() for p in self._parameters)
        if self._blocks is not None:
            self._flat = torch.zeros(self.size, device=device)
            self._scratch = torch.empty(max(p.numel() for p in self._parameters), device=device)

    def of(self, batch: np.ndarray, factors: Factors, noise: NoiseSource) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Σ fᵢ gᵢ as one vector, float64, and norms and parts of the records, all exact.

        Args:
            batch: vectors, shape (b, d), float32.
            factors: of the records, by their norms and parts.
            noise: the source of randomness, for the normals that gradients take.
        """
        if self._blocks is not None and len(batch) <= self._blocks.most:
            return self._narrow(batch, factors, noise, self._blocks)
        total = torch.zeros(self.size, dtype=torch.float64, device=self._device)
        norms, parts = [np.empty(0)], [np.empty(0, dtype=np.int64)]
        for start in range(0, len(batch), _CHUNK):
            gradients, own = self._gradients.of(*self._inputs(batch[start : start + _CHUNK], noise))
            sums = gradients.weighted(factors(gradients.norms, own))
            for place, own_sum in zip(self._places(total), sums, strict=True):
                place += own_sum
            norms.append(gradients.norms.cpu().numpy())
            parts.append(own.cpu().numpy())
        return to_host(total), np.concatenate(norms), np.concatenate(parts)

    def _narrow(
        self, batch: np.ndarray, factors: Factors, noise: NoiseSource, blocks: Blocks
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not len(batch):
            return np.zeros(self.size), np.empty(0), np.empty(0, dtype=np.int64)
        gradients, parts = self._gradients.of(*self._inputs(batch, noise))
        if not isinstance(gradients, NarrowGradients):
            raise TypeError("Expected gradients that can be summed in 32 bits, as they say. This is a bug.")
        gradients.sum_into(self._places(self._flat), factors(gradients.norms, parts), blocks.block, self._scratch)
        total = to_host(self._flat).astype(np.float64)
        return total, gradients.norms.cpu().numpy(), parts.cpu().numpy()

    def _inputs(self, batch: np.ndarray, noise: NoiseSource) -> tuple[Tensor, Tensor]:
        normals = noise.normals((len(batch), self._gradients.n_normals)).astype(np.float32)
        return to_device(batch, self._device), to_device(normals, self._device)

    def _places(self, flat: Tensor) -> list[Tensor]:
        """Return where each parameter is in a vector of all."""
        sizes = [p.numel() for p in self._parameters]
        return [part.view(p.shape) for part, p in zip(flat.split(sizes), self._parameters, strict=True)]


def to_device(array: np.ndarray, device: str) -> Tensor:
    """Return an array as a tensor: itself on the processor, else one copy from pinned memory that nothing waits for."""
    tensor = torch.from_numpy(array)
    return tensor if device == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def to_host(tensor: Tensor) -> np.ndarray:
    """Return a tensor as an array: itself on the processor, else one copy into pinned memory."""
    if tensor.device.type == "cpu":
        return tensor.numpy()
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return pinned.copy_(tensor).numpy()
