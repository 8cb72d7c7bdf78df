"""The images of the papers as arrays: MNIST, Fashion-MNIST and CIFAR-10, which is JPEG among our data."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image as Picture

NAMES = ("mnist", "fashion_mnist", "cifar10")
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def images_of(folder: Path, name: str) -> Arrays:
    """Return images to train on, uint8, (n, h, w) or (n, h, w, 3), and labels, then those to test."""
    if name != "cifar10":
        with np.load(folder / f"{name}.npz") as file:
            x, y, test_x, test_y = (file[key] for key in ("x_train", "y_train", "x_test", "y_test"))
        return x, y.astype(np.int64), test_x, test_y.astype(np.int64)
    frame = pd.read_parquet(folder / "cifar10_jpeg.parquet")
    train, test = (frame[frame["split"] == split] for split in ("train", "test"))
    return *_decoded(train), *_decoded(test)


def _decoded(part: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    pixels = np.stack([np.asarray(Picture.open(io.BytesIO(jpeg))) for jpeg in part["jpeg"]])
    return pixels, part["label"].to_numpy(np.int64)
