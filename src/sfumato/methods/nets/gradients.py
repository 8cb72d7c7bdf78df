"""What a descent learns: networks with a loss per record, or whatever else has gradients per record; in torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.methods.nets.clipped import ClippedGradients

Losses = Callable[[Tensor, Tensor], Tensor]


class BatchGradients(Protocol):
    """Gradients of some records, not yet summed: exact."""

    @property
    def norms(self) -> Tensor:
        """Joint over all parameters, shape (b,), 64-bit."""
        ...

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """Return Σ fᵢ gᵢ per parameter, 64-bit, leaving out records whose norm is not finite."""
        ...


class Gradients(ABC):
    """What is learned: a network by its losses, k networks side by side, or none of layers.

    A record's gradient is 0 in all parts but its own, which a public rule gives it from its vector alone.

    Attributes:
        network: holds the parameters.
        n_parts: k. With more than one, the first axis of every parameter is that of the parts.
        n_normals: secret random numbers that a record's gradient takes.
    """

    network: nn.Module
    n_parts: int
    n_normals: int

    @abstractmethod
    def parameters(self) -> list[nn.Parameter]:
        """Return the parameters, in the order of `BatchGradients.weighted`."""

    @abstractmethod
    def of(self, vectors: Tensor, normals: Tensor) -> tuple[BatchGradients, Tensor]:
        """Return the gradients of some records, and their parts, shape (b,); both in one order of the records."""

    @abstractmethod
    def narrow(self, block: int) -> bool:
        """Return whether what `of` finds can be summed in 32 bits, products of `block` records keeping all of them."""

    def stepped(self, step: int) -> None:  # noqa: B027 - mostly nothing else moves
        """Note that the parameters have moved: what follows from them and from public randomness may move too."""

    def keep(self) -> dict[str, np.ndarray]:
        """Return released values other than the parameters that are needed to go on."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:  # noqa: B027 - mostly nothing else is kept
        """Go on from what `keep` returned."""


class NetworkGradients(ClippedGradients, Gradients):
    """The gradients of a network that holds nothing but its parameters."""

    def __init__(self, network: nn.Module, n_parts: int, n_normals: int) -> None:
        super().__init__(network)
        self.n_parts, self.n_normals = n_parts, n_normals


class LossGradients(NetworkGradients):
    """The gradients of one network's losses.

    Args:
        network: its parameters, all of them, are trained.
        losses: (vectors (b, d), standard normals (b, q)) → per-record losses (b,). Record i's loss may depend on row i
            of both alone.
        n_normals: q, random numbers that a record's loss takes. They come from the secret source too: whoever could
            predict them would know, of all later records, by whose presence they were shifted.
    """

    def __init__(self, network: nn.Module, losses: Losses, n_normals: int = 0) -> None:
        super().__init__(network, 1, n_normals)
        self._losses = losses

    def of(self, vectors: Tensor, normals: Tensor) -> tuple[BatchGradients, Tensor]:
        """Return the gradients of the losses; all records are of part 0."""
        gradients = self.per_record(lambda _: self._losses(vectors, normals))
        return gradients, torch.zeros(len(vectors), dtype=torch.long)
