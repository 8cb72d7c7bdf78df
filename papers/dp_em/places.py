"""Gowalla check-ins in public boxes: what figure 4 and its peer share. Needs numpy and pandas only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

BOXES = {
    "gowalla_nyc": ((-74.3, 40.4), (-73.6, 41.0)),
    "gowalla_world": ((-180.0, -90.0), (180.0, 90.0)),
    "gowalla_grid256": ((0.0, 0.0), (256.0, 256.0)),
}
PUBLISHED_ROWS = 1_256_384


def load(folder: Path, name: str) -> np.ndarray:
    """Read places; of the grid's 6.4 million counts as many as the paper has, drawn once, at the middles of cells."""
    if name == "gowalla_grid256":
        with np.load(folder / f"{name}.npz") as stored:
            counts = stored["counts"]
        drawn = np.random.default_rng(256).multivariate_hypergeometric(
            counts.ravel().astype(np.int64), PUBLISHED_ROWS, method="marginals"
        )
        return np.repeat(np.argwhere(np.ones_like(counts)) + 0.5, drawn, axis=0)
    return pd.read_parquet(folder / f"{name}.parquet")[["lon", "lat"]].to_numpy(np.float64)


def variance(points: np.ndarray, centres: np.ndarray) -> float:
    return float(np.min([((points - centre) ** 2).sum(axis=1) for centre in centres], axis=0).mean())


def fold(rows: np.ndarray, index: int, *, validate: bool) -> tuple[np.ndarray, np.ndarray]:
    """A tenth to test and the rest to train on; or, of the rest, a third and two."""
    order = np.random.default_rng(3000).permutation(len(rows))
    test = order[index::10]
    train = np.setdiff1d(order, test)
    if validate:
        train = np.random.default_rng(index).permutation(train)
        test, train = train[: len(train) // 3], train[len(train) // 3 :]
    return rows[train], rows[test]


class Place:
    """One data set's public map into the unit ball."""

    def __init__(self, box: tuple[tuple[float, float], tuple[float, float]]) -> None:
        self.lower, self.upper = np.array(box[0]), np.array(box[1])
        self.middle = (self.lower + self.upper) / 2
        self.radius = float(np.linalg.norm(self.upper - self.lower) / 2)
        # the estimators' norm counts half the wider side as 1
        self.clip_norm = self.radius / float((self.upper - self.lower).max() / 2)

    def inside(self, rows: np.ndarray) -> np.ndarray:
        return (np.clip(rows, self.lower, self.upper) - self.middle) / self.radius
