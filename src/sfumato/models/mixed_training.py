"""Classifiers trained on released mixtures and their soft labels, in torch. Costs no privacy: it reads a release alone.

    loss = −Σ_k y'_k log softmax(f(x'))_k, with soft labels as they were released, negative entries included

The networks and the schedule are those of Lee et al. (ISIT 2019); a mixture has ℓ labels of mass 1/ℓ, and what is
trained on mixtures of images classifies single images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.maths.streams import public_stream

if TYPE_CHECKING:  # torch is loaded when something is trained
    from torch import Tensor, nn

_SIDE = 32  # of the published network's input: smaller images are padded with zeros
_SMALLEST_SIDE = 16
_HIDDEN = 100
_ROWS_AT_ONCE = 1024


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureTraining:
    """How a classifier is trained; the published schedule by default, of which the last epoch counts.

    Attributes:
        network: "cnn" for images, two convolutions and three layers; "fc" for vectors, three layers.
        epochs: passes over the mixtures.
        batch_size: mixtures per step of Adam.
        learning_rate: of the first epoch.
        halve_every: epochs after which the rate is halved.
    """

    network: Literal["cnn", "fc"] = "cnn"
    epochs: int = 50
    batch_size: int = 8
    learning_rate: float = 1e-4
    halve_every: int = 10

    def __post_init__(self) -> None:
        if self.network not in ("cnn", "fc"):
            raise ConfigError(f"Expected network to be 'cnn' or 'fc', got network={self.network!r}.")
        require_integer(at_least=1, epochs=self.epochs)
        require_integer(at_least=1, batch_size=self.batch_size)
        require_integer(at_least=1, halve_every=self.halve_every)
        require_positive(learning_rate=self.learning_rate)


@final
class MixtureClassifier:
    """A trained network."""

    def __init__(self, network: nn.Module, training: MixtureTraining) -> None:
        self._network, self._training = network, training

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return the most probable class of each record, int64, shape (n,); features as in training."""
        import torch

        inputs = _inputs(features, self._training)
        with torch.no_grad():
            return torch.cat([self._network(some).argmax(1) for some in inputs.split(_ROWS_AT_ONCE)]).numpy()


def train_on_mixtures(
    features: np.ndarray,
    labels: np.ndarray,
    *,
    training: MixtureTraining | None = None,
    seed: int = 0,
    progress: Callable[[int, MixtureClassifier], None] | None = None,
) -> MixtureClassifier:
    """Train a classifier on mixtures as they were released.

    Privacy: none is spent; do not choose settings or an epoch by real records that are not public.

    Args:
        features: mixtures on the scale of [0, 1]: images (T, h, w) or (T, channels, h, w) for "cnn", each side from 16
            to 32, or vectors (T, d) for "fc".
        labels: soft labels, shape (T, classes); entries may be negative.
        training: network and schedule; the published one if not given.
        seed: of the first weights and of the order.
        progress: called after each epoch with its number, from 1, and the classifier so far.

    Returns:
        The classifier after the last epoch.

    Raises:
        ConfigError: shapes that do not fit the network, or numbers that are not finite.
    """
    import torch

    training = MixtureTraining() if training is None else training
    inputs = _inputs(features, training)
    if labels.ndim != 2 or len(labels) != len(inputs) or not labels.size or not np.isfinite(labels).all():
        raise ConfigError(
            "Expected labels to be finite, one row per mixture and one column per class, "
            f"got {labels.shape[0]} rows for {len(inputs)} mixtures in {labels.ndim} dimensions."
        )
    targets = torch.from_numpy(np.ascontiguousarray(labels, dtype=np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = mixture_network(inputs, labels.shape[1], training)
    classifier = MixtureClassifier(network, training)
    optimiser = torch.optim.Adam(network.parameters(), training.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, training.halve_every, 0.5)
    for epoch in range(training.epochs):
        order = torch.from_numpy(public_stream(seed, epoch).permutation(len(inputs)))
        for chosen in order.split(training.batch_size):
            optimiser.zero_grad()
            loss = -(targets[chosen] * torch.log_softmax(network(inputs[chosen]), 1)).sum(1).mean()
            loss.backward()
            optimiser.step()
        schedule.step()
        if progress is not None:
            progress(epoch + 1, classifier)
    return classifier


def _inputs(features: np.ndarray, training: MixtureTraining) -> Tensor:
    """Check features, and pad images to the published size."""
    import torch

    if not np.isfinite(features).all():
        raise ConfigError("Expected finite features, got others. Train on a release as `sample` gives it.")
    if training.network == "fc":
        return torch.from_numpy(
            np.ascontiguousarray(features.reshape(len(features), math.prod(features.shape[1:])), np.float32)
        )
    return padded(features)


def padded(features: np.ndarray) -> Tensor:
    """Return images of 16 to 32 pixels a side, (n, h, w) or (n, c, h, w), padded with zeros to (n, c, 32, 32).

    Raises:
        ConfigError: another shape.
    """
    import torch

    images = features[:, None] if features.ndim == 3 else features
    if images.ndim != 4 or not all(_SMALLEST_SIDE <= side <= _SIDE for side in images.shape[2:]):
        raise ConfigError(
            f"Expected images of {_SMALLEST_SIDE} to {_SIDE} pixels a side, (n, h, w) or (n, channels, h, w), got the "
            f"shape {features.shape}. Use network='fc' for others."
        )
    before = [(_SIDE - side) // 2 for side in images.shape[2:]]
    padding = [(0, 0), (0, 0), *((b, _SIDE - s - b) for b, s in zip(before, images.shape[2:], strict=True))]
    tensor = torch.from_numpy(np.pad(images.astype(np.float32, copy=False), padding))
    return tensor.contiguous(memory_format=torch.channels_last)


def mixture_network(inputs: Tensor, n_classes: int, training: MixtureTraining) -> nn.Module:
    """Return the published network for inputs of that shape, at random weights of torch's global stream."""
    from torch import channels_last, nn

    head: list[nn.Module] = [nn.ReLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, n_classes)]
    if training.network == "fc":
        return nn.Sequential(nn.Linear(inputs.shape[1], _HIDDEN), *head)
    # pooling before the ReLU gives the same numbers with a quarter of the comparisons
    blocks: list[nn.Module] = [
        nn.Conv2d(inputs.shape[1], 32, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(32, 48, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(48 * 25, _HIDDEN),
    ]  # fmt: skip
    network = nn.Sequential(*blocks, *head)
    return network.to(memory_format=channels_last)  # type: ignore[call-overload] - torch's stub knows no keyword
