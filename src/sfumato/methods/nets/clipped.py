"""Sums of clipped per-record gradients, with one backward pass and no gradient per record.

For a linear layer with input a and output gradient g, the gradient of one record is g aᵀ, of norm ‖g‖·‖a‖ (Goodfellow
2015, arXiv:1510.01799). So a backward pass to the layers' outputs gives every record's norm, and one product
Σ cᵢ gᵢ aᵢᵀ with the clip factors cᵢ the clipped sum, at the price of an ordinary backward pass ("book-keeping": Bu,
Wang, Zha and Karypis 2023, arXiv:2210.00038). A convolution's gradient per record is small and is made.

Every layer may be used once in a forward pass, and nothing in it may couple records.

k networks of one shape side by side, each record running through its own alone; in torch.

Records are sorted by network, and every layer multiplies consecutive slices with its k matrices: the work is that of
one network on all records, whatever k is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor, nn

from sfumato.errors import ConfigError
from sfumato.mechanisms.contributions import SAFETY


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


_FREE = (
    nn.ReLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.SiLU,
    nn.GELU,
    nn.Flatten,
    nn.Unflatten,
    nn.Upsample,
    nn.Identity,
)


_Layer: TypeAlias = nn.Linear | nn.Conv2d | StackedLinear


@dataclass
class _Use:
    """What one layer saw in a forward pass."""

    inputs: Tensor
    output: Tensor


@dataclass
class ClippedGradients:
    """Clipped gradients of a network's per-record losses.

    Args:
        network: made of linear layers and plain two-dimensional convolutions, each used once, and activations.

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
            # norms and sums in 64 bits: in 32, squares underflow, and rounding of a sum depends on who is in it
            parts = [
                _part(layer, self._uses[layer].inputs.double(), g.double())
                for layer, g in zip(self._layers, grads, strict=True)
            ]
            self._uses.clear()
            norms = torch.sqrt(torch.stack([part.squared_norms() for part in parts]).sum(0))
        return RecordGradients(tuple(parts), norms, loss.detach())


@dataclass(frozen=True)
class RecordGradients:
    """Gradients of records' losses. Exact: what is made of them may leave through a mechanism only.

    Attributes:
        norms: joint over all parameters, shape (b,), 64-bit; not finite for a record that is no good.
        losses: shape (b,).
    """

    _parts: tuple[_LinearPart | _StackedPart | _ConvPart, ...]
    norms: Tensor
    losses: Tensor

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """Return Σ fᵢ gᵢ per parameter, 64-bit; records whose norm is not finite are left out.

        Args:
            factors: shape (b,), 64-bit.
        """
        fine = torch.isfinite(self.norms)
        with torch.autocast(self.norms.device.type, enabled=False):
            return [total for part in self._parts for total in part.weighted(factors, fine)]


def clip_factors(norms: Tensor, clip_norms: float | Tensor) -> Tensor:
    """Return min(1, C/‖g‖) per record, less a margin for rounding; 0 where the norm is not finite."""
    factors = (clip_norms * SAFETY / norms.clamp_min(1e-300)).clamp_max(SAFETY)
    return torch.where(torch.isfinite(norms), factors, 0.0)


@dataclass(frozen=True)
class _LinearPart:
    """A linear layer's share of the gradients: inputs a (b, i), output gradients g (b, o)."""

    inputs: Tensor
    grads: Tensor
    has_bias: bool

    def squared_norms(self) -> Tensor:
        squares = torch.linalg.vector_norm(self.inputs, dim=1) ** 2 + self.has_bias
        return squares * torch.linalg.vector_norm(self.grads, dim=1) ** 2

    def weighted(self, factors: Tensor, fine: Tensor) -> Iterator[Tensor]:
        grads = torch.where(fine[:, None], self.grads, 0.0) * factors[:, None]
        yield grads.T @ torch.where(fine[:, None], self.inputs, 0.0)
        if self.has_bias:
            yield grads.sum(0)


@dataclass(frozen=True)
class _StackedPart:
    """A stacked layer's share: inputs a (b, i), output gradients g (b, o), records sorted by network."""

    inputs: Tensor
    grads: Tensor
    slices: tuple[slice, ...]

    def squared_norms(self) -> Tensor:
        squares = torch.linalg.vector_norm(self.inputs, dim=1) ** 2 + 1
        return squares * torch.linalg.vector_norm(self.grads, dim=1) ** 2

    def weighted(self, factors: Tensor, fine: Tensor) -> Iterator[Tensor]:
        grads = torch.where(fine[:, None], self.grads, 0.0)
        yield stacked_sum(factors, grads, torch.where(fine[:, None], self.inputs, 0.0), self.slices)
        weighted = grads * factors[:, None]
        yield torch.stack([weighted[s].sum(0) for s in self.slices])


@dataclass(frozen=True)
class _ConvPart:
    """A convolution's share: one gradient per record, shape (b, o, i·k·k + 1)."""

    per_record: Tensor
    weight_shape: torch.Size
    has_bias: bool

    def squared_norms(self) -> Tensor:
        return torch.linalg.vector_norm(self.per_record.flatten(1), dim=1) ** 2

    def weighted(self, factors: Tensor, fine: Tensor) -> Iterator[Tensor]:
        kept = torch.where(fine[:, None, None], self.per_record, 0.0)
        total = torch.einsum("b,boj->oj", factors, kept)
        yield total[:, : self.weight_shape[1:].numel()].reshape(self.weight_shape)
        if self.has_bias:
            yield total[:, -1]


def _part(layer: _Layer, inputs: Tensor, grads: Tensor) -> _LinearPart | _StackedPart | _ConvPart:
    if isinstance(layer, StackedLinear):
        return _StackedPart(inputs, grads, layer.groups.slices())
    if isinstance(layer, nn.Linear):
        if inputs.dim() != 2:
            raise ConfigError(f"Expected linear layers of inputs (records, features), got {inputs.dim()} axes.")
        return _LinearPart(inputs, grads, layer.bias is not None)
    patches = nn.functional.unfold(
        inputs,
        layer.kernel_size,
        dilation=layer.dilation,
        padding=layer.padding,  # type: ignore[arg-type]
        stride=layer.stride,  # type: ignore[arg-type]
    )
    flat = grads.flatten(2)
    per_record = torch.bmm(flat, patches.transpose(1, 2))
    if layer.bias is not None:
        per_record = torch.cat([per_record, flat.sum(2, keepdim=True)], dim=2)
    return _ConvPart(per_record, layer.weight.shape, layer.bias is not None)


def _layers(network: nn.Module) -> Iterator[_Layer]:
    """Yield the layers with parameters; refuse what this module cannot clip."""
    seen: set[int] = set()
    for module in network.modules():
        own = list(module.parameters(recurse=False))
        if any(id(p) in seen for p in own):
            raise ConfigError("Expected layers that share no parameters, got a parameter of two layers.")
        seen.update(map(id, own))
        if isinstance(module, nn.Flatten | nn.Unflatten) and _first_axis(module) == 0:
            raise ConfigError(f"Expected {type(module).__name__} to leave the axis of records alone, got axis 0.")
        if isinstance(module, nn.Linear | StackedLinear):
            yield module
        elif isinstance(module, nn.Conv2d):
            if module.groups != 1 or module.padding_mode != "zeros" or isinstance(module.padding, str):
                raise ConfigError("Expected convolutions of one group with zeros for padding.")
            yield module
        elif own or (not isinstance(module, _FREE) and _is_torchs_own(module) and not _is_container(module)):
            raise ConfigError(
                f"Expected a network of linear layers, convolutions and activations, got {type(module).__name__}: "
                "a record's gradient could not be clipped alone."
            )


def _first_axis(module: nn.Flatten | nn.Unflatten) -> int | str:
    return module.start_dim if isinstance(module, nn.Flatten) else module.dim


def _is_torchs_own(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.")


def _is_container(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential | nn.ModuleList)
