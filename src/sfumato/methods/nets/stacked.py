"""k networks of one shape side by side, each record running through its own alone; in torch.

Records are sorted by network, and every layer multiplies consecutive slices with its k matrices: the work is that of
one network on all records, whatever k is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
