"""Images for the figures: what is fitted and scored, what samples teach, and small pictures of curves and samples."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import sfumato
from sfumato.columns.kinds import Categorical, Image

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from drawing import pyplot
from image_data import images_of
from images import LABELS, VALIDATION_FROM, accuracy


class Pictures:
    """Images to fit and to score on; with `validate` both are training images."""

    def __init__(self, folder: Path, name: str, *, validate: bool) -> None:
        x, y, *test = images_of(folder, name)
        if validate:
            test = [x[VALIDATION_FROM:], y[VALIDATION_FROM:]]
            x, y = x[:VALIDATION_FROM], y[:VALIDATION_FROM]
        self.x, self.y, self.test = x, y, test

    def first(self, rows: int) -> Pictures:
        """Keep the first so many images to fit, and return these."""
        self.x, self.y = self.x[:rows], self.y[:rows]
        return self

    @property
    def schema(self) -> sfumato.Schema:
        """Of images and labels."""
        shape = Image(shape=self.x.shape[1:], dtype="uint8", lower=0, upper=255)
        return sfumato.Schema(columns={"x": shape, "y": Categorical(categories=LABELS)}, rows=len(self.x))

    @property
    def records(self) -> dict[str, np.ndarray]:
        """As a fit takes them."""
        return {"x": self.x, "y": self.y.astype(str)}

    def taught_by(self, release: sfumato.Release, *, seed: int, epochs: int = 10) -> dict[str, Any]:
        """Accuracy of the network of Table VII that as many samples as were fitted taught; of the last epoch."""
        made = release.sample(len(self.x))
        found = accuracy(made["x"], made["y"].astype(int), *self.test, epochs=epochs, batch=128, seed=seed)
        return {"accuracy": found[-1], "accuracy_best_epoch": max(found)}


def curve(lines: Mapping[str, Mapping[Any, float]], path: Path, *, x: str, y: str, log: bool = False) -> None:
    """Save lines."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(5, 3.2), layout="constrained")
    for name, points in lines.items():
        axis.plot(list(points), list(points.values()), "o-", markersize=4, label=name)
    axis.set(xlabel=x, ylabel=y, xscale="log" if log else "linear")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def sheet(columns: Mapping[str, tuple[np.ndarray, np.ndarray]], path: Path, each: int = 8) -> None:
    """Save samples side by side, a row per label."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(columns), figsize=(2.1 * len(columns), 2.9), layout="constrained")
    for axis, (title, (x, y)) in zip(np.atleast_1d(axes), columns.items(), strict=True):
        rows = [np.hstack(list(x[y == label][:each]) + [np.zeros(x.shape[1:], x.dtype)] * each) for label in range(10)]
        axis.imshow(np.vstack([row[:, : each * x.shape[2]] for row in rows]), cmap="gray_r", vmin=0, vmax=255)
        axis.set_title(title, fontsize=8)
        axis.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=80)
    plt.close(figure)
