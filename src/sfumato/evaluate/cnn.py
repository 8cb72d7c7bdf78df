"""The network of P3GM's paper as a classifier of images; in torch, which is loaded when it is used."""

from __future__ import annotations

import importlib.util

import numpy as np

EPOCHS, BATCH = 10, 32


def has_torch() -> bool:
    """Whether torch is installed."""
    return importlib.util.find_spec("torch") is not None


def cnn_accuracy(
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    *,
    classes: int,
    seed: int,
    epochs: int = EPOCHS,
) -> float:
    """Train the network on some images, and return the share of others that it classifies rightly.

    28 kernels of 3 × 3, max pooling 2 × 2, 128 hidden units with ReLU, dropout 0.2; Adam at 1e-3, batches of 32, fixed
    epochs, the last one reported.

    Args:
        train: images (n, height, width, channels) in [0, 1], at least 4 × 4, and labels (n,) below `classes`.
        test: the same of other images.
        classes: number of classes.
        seed: of weights, order and dropout.
        epochs: passes over `train`.

    Reference: Takagi et al. 2021 (P3GM), section VI; their code stops when the accuracy on the test images falls and
        reports the best, which looks at the test images.
    """
    import torch

    state = torch.random.get_rng_state()
    try:
        torch.manual_seed(seed)
        x, y = _pixels(train[0]), torch.as_tensor(train[1]).long()
        height, width = x.shape[2:]
        net = torch.nn.Sequential(
            torch.nn.Conv2d(x.shape[1], 28, 3),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(28 * ((height - 2) // 2) * ((width - 2) // 2), 128),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(128, classes),
        )
        optimiser = torch.optim.Adam(net.parameters(), 1e-3)
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(BATCH):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
                optimiser.step()
        net.eval()
        with torch.no_grad():
            guesses = torch.cat([net(part).argmax(1) for part in _pixels(test[0]).split(1024)]).numpy()
    finally:
        torch.random.set_rng_state(state)
    return float(np.mean(guesses == test[1]))


def _pixels(images: np.ndarray):  # noqa: ANN202 - a tensor, and torch is not loaded here
    import torch

    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(images, -1, 1), dtype=np.float32))
