"""Scores of synthetic images: a network taught by them, and how near their means and classes are.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato.columns.kinds import Image, LevelKind
from sfumato.errors import ConfigError, DataError
from sfumato.evaluate.fidelity import distance
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema

EPOCHS, BATCH = 10, 32
_SMALLEST_SIDE = 4


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """Images in memory, shape (n, height, width, channels) in [0, 1], and their labels (n,), None without."""

    pixels: np.ndarray
    labels: np.ndarray | None

    def __repr__(self) -> str:
        return "Pictures()"


def image_names(schema: Schema) -> tuple[str, str | None] | None:
    """Return the image column and the label column beside it, or None for a table."""
    images = schema.images
    if not images:
        return None
    labels = list(schema.of_kind(LevelKind))
    return images[0], labels[0] if labels else None


def evaluate_pictures(
    real: object, synthetic: object, *, schema: Schema, test: object, target: str | None, seed: int
) -> dict[str, Any]:
    """As `evaluate`, of images; see there."""
    _, label = image_names(schema) or ("", None)
    if target is not None and target != label:
        raise ConfigError(f"Expected target to be the label column of the images, {label!r}, got target={target!r}.")
    tables = {"real": real, "synthetic": synthetic} | ({} if test is None else {"test": test})
    read = {name: read_pictures(source, schema) for name, source in tables.items()}
    classes = None
    if label is not None:
        size = schema.of_kind(LevelKind)[label].width
        labels = [np.asarray(read[name].labels) for name in ("real", "synthetic")]
        classes = distance(*(np.bincount(own, minlength=size) / max(1, own.size) for own in labels))
    means = [read[name].pixels.mean(axis=0) for name in ("real", "synthetic")]
    return {
        "private": False,
        "rows": {name: len(pictures.pixels) for name, pictures in read.items()},
        "utility": None if target is None else _utility(read, schema, target, seed),
        "fidelity": {"classes": classes, "mean_image": float(np.sqrt(np.mean((means[0] - means[1]) ** 2)))},
    }


def read_pictures(source: object, schema: Schema) -> Pictures:
    """Read images and labels whole.

    Raises:
        SchemaError: a column is not in the source, or of another shape.
        DataError: the source cannot be read, or has no rows.
    """
    image, label = image_names(schema) or ("", None)
    kind = schema.of_kind(Image)[image]
    records = PrivateData(open_source(source, csv=schema.reader.csv), dataclasses.replace(schema, unit=None))
    chunks = list(records.coded())
    if not sum(len(chunk[image]) for chunk in chunks):
        raise DataError("Expected images to evaluate, got none.")
    pixels = np.concatenate([np.asarray(chunk[image], dtype=np.float32) for chunk in chunks])
    pixels = np.clip(np.nan_to_num((pixels - kind.lower) / (kind.upper - kind.lower)), 0, 1)
    pixels = pixels.reshape(len(pixels), *kind.shape) if len(kind.shape) > 1 else pixels
    pixels = pixels[..., None] if len(kind.shape) == 2 else pixels
    if label is None:
        return Pictures(pixels, None)
    labels = np.concatenate([np.asarray(chunk[label]) for chunk in chunks]).astype(np.int64)
    known = labels < schema.of_kind(LevelKind)[label].width
    return Pictures(pixels[known], labels[known])


def _utility(read: dict[str, Pictures], schema: Schema, target: str, seed: int) -> dict[str, Any]:
    """Accuracies of the network, or null with the reason why there is none."""
    scored_on = "test" if "test" in read else "real"
    missing = _why_not(read["real"].pixels)
    scores: dict[str, Any] = {"accuracy": None, "real": {"accuracy": None}, "classifier": "cnn", "scored_on": scored_on}
    if missing is not None:
        return {**scores, "missing": missing}
    classes = schema.of_kind(LevelKind)[target].width
    test = (read[scored_on].pixels, read[scored_on].labels)
    for name in ("synthetic", "real"):
        train = (read[name].pixels, read[name].labels)
        accuracy = cnn_accuracy(train, test, classes=classes, seed=seed)  # type: ignore[arg-type]
        (scores if name == "synthetic" else scores["real"])["accuracy"] = accuracy
    return scores


def _why_not(pixels: np.ndarray) -> str | None:
    if pixels.ndim != 4 or min(pixels.shape[1:3]) < _SMALLEST_SIDE:
        return f"the network needs images of at least {_SMALLEST_SIDE} by {_SMALLEST_SIDE} pixels"
    return None if has_torch() else "the network needs torch: install sfumato[nets]"


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
