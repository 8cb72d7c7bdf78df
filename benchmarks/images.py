"""The acceptance protocol on MNIST and Fashion-MNIST: a network taught by samples, scored on real images.

The official split. A release at (epsilon, 1e-5) with secret noise, as many samples as training images, and the network
of P3GM's paper (28 kernels of 3 × 3, max pooling, 128 hidden units, dropout 0.2; Adam at 1e-3), a fixed number of
epochs, the last one reported. Settings are chosen with `--validate`: fitted on the first 50,000 training images and
scored on the other 10,000; test images are not read.

Beside the accuracy: precision and recall (Kynkäänniemi et al. 2019, 3 nearest neighbours, 5,000 images of each, on 50
principal components of real training images), which say how many samples look like images and how many images are
covered. None of these figures is private.

    pip install -c constraints.txt '.[papers]'
    python benchmarks/images.py DATA {mnist,fashion_mnist} [--purpose training] [--validate] [--fits 5]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Picture
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

import sfumato
from sfumato.columns.kinds import Categorical, Image

LABELS = tuple("0123456789")
DELTA = 1e-5
VALIDATION_FROM = 50_000
COMPARED = 5_000


def accuracy(
    x: np.ndarray, y: np.ndarray, test_x: np.ndarray, test_y: np.ndarray, *, epochs: int, batch: int, seed: int
) -> list[float]:
    """Train the network on (x, y) and return its accuracy on the test images after each epoch."""
    torch.manual_seed(seed)
    height, width = x.shape[1:3]
    channels = x.shape[3] if x.ndim == 4 else 1
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(channels, 28, 3),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(28 * ((height - 2) // 2) * ((width - 2) // 2), 128),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(128, len(LABELS)),
    )
    net = layers.to(memory_format=torch.channels_last)  # twice as fast on a CPU
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    images, labels = _scaled(x), torch.tensor(y).long()
    test_images, test_labels = _scaled(test_x), torch.tensor(test_y).long()

    def channels_last(batch: torch.Tensor) -> torch.Tensor:
        return batch.contiguous(memory_format=torch.channels_last)

    scores = []
    for _ in range(epochs):
        net.train()
        for chosen in torch.randperm(len(images)).split(batch):
            optimiser.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(net(channels_last(images[chosen])), labels[chosen]).backward()
            optimiser.step()
        net.eval()
        with torch.no_grad():
            found = torch.cat([net(channels_last(part)).argmax(1) for part in test_images.split(2000)])
        scores.append(float((found == test_labels).double().mean()))
    return scores


def _scaled(x: np.ndarray) -> torch.Tensor:
    """Return images (n, h, w) or (n, h, w, channels) of bytes as (n, channels, h, w) in [0, 1]."""
    pixels = torch.tensor(x)
    return (pixels[:, None] if x.ndim == 3 else pixels.permute(0, 3, 1, 2)).float() / 255


def precision_recall(real: np.ndarray, made: np.ndarray, neighbours: int = 3) -> tuple[float, float]:
    """Return the share of made images within real ones' neighbourhoods, and the share of real within made ones'."""
    flat = [images[:COMPARED].reshape(-1, np.prod(images.shape[1:])) / 255 for images in (real, made)]
    basis = PCA(50, random_state=0).fit(flat[0])
    a, b = (basis.transform(part) for part in flat)

    def covered(by: np.ndarray, points: np.ndarray) -> float:
        index = NearestNeighbors(n_neighbors=neighbours + 1).fit(by)
        radius = index.kneighbors(by)[0][:, -1]
        distance = NearestNeighbors(n_neighbors=50).fit(by).kneighbors(points)
        return float((distance[0] <= radius[distance[1]]).any(axis=1).mean())

    return covered(a, b), covered(b, a)


def sheet(path: Path, rows: list[tuple[np.ndarray, np.ndarray]], each: int = 10) -> None:
    """Write real and made images side by side: one row per label, `each` images of every source."""
    lines = []
    for label in range(len(LABELS)):
        blocks = [np.hstack(x[y == label][:each]) for x, y in rows]
        gap = np.full((blocks[0].shape[0], 6), 128, dtype=np.uint8)
        lines.append(np.hstack([part for block in blocks for part in (block, gap)][:-1]))
    picture = np.vstack(lines)
    Picture.fromarray(picture).resize((picture.shape[1] * 2, picture.shape[0] * 2), Picture.Resampling.NEAREST).save(
        path
    )


def main() -> None:
    """Fit, sample, train and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the .npz files")
    parser.add_argument("images", choices=["mnist", "fashion_mnist"])
    parser.add_argument("--purpose", choices=["fidelity", "training"], default="fidelity")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--validate", action="store_true", help="score on training images instead")
    parser.add_argument("--sheet", type=Path, help="also write a sheet of real and synthetic images (PNG)")
    parser.add_argument("--out", type=Path, help="also write every figure as JSON; goes on from the runs in it")
    arguments = parser.parse_args()
    with np.load(arguments.data / f"{arguments.images}.npz") as stored:
        x, y = stored["x_train"], stored["y_train"]
        if arguments.validate:
            x, test_x, y, test_y = x[:VALIDATION_FROM], x[VALIDATION_FROM:], y[:VALIDATION_FROM], y[VALIDATION_FROM:]
        else:
            test_x, test_y = stored["x_test"], stored["y_test"]
    schema = sfumato.Schema(columns={"x": Image(shape=(28, 28)), "y": Categorical(categories=LABELS)}, rows=len(x))
    purpose = sfumato.Training() if arguments.purpose == "training" else sfumato.Fidelity()
    method = sfumato.MaxEntropy(epsilon=arguments.epsilon, delta=DELTA, purpose=purpose)
    runs: list[dict[str, Any]] = []
    if arguments.out and arguments.out.exists():
        runs = json.loads(arguments.out.read_text())["runs"]
    for run in range(len(runs), arguments.fits):
        start = time.perf_counter()
        release = method.fit((x, y), schema=schema)
        fitted = time.perf_counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        made = release.sample(len(x))
        sampled = time.perf_counter()
        made_x, made_y = made["x"], made["y"].astype(int)
        if arguments.sheet and run == 0:
            sheet(arguments.sheet, [(x, y), (made_x, made_y)])
        scores = accuracy(made_x, made_y, test_x, test_y, epochs=arguments.epochs, batch=arguments.batch, seed=run)
        precision, recall = precision_recall(x, made_x)
        runs.append(
            {
                "epsilon": release.certificate.epsilon,
                "fit_s": fitted - start,
                "sample_s": sampled - fitted,
                "fit_peak_mib": peak if run == 0 else None,
                "accuracy": scores[-1],
                "by_epoch": scores,
                "precision": precision,
                "recall": recall,
            }
        )
        print(json.dumps(runs[-1]), flush=True)
        if arguments.out:
            write(arguments.out, arguments, runs)
    print(json.dumps({"mean": means(runs)}))


def means(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Return means over runs, and the standard deviation of the accuracy."""
    mean = {name: float(np.mean([r[name] for r in runs])) for name in ("accuracy", "precision", "recall", "fit_s")}
    return mean | {"accuracy_sd": float(np.std([r["accuracy"] for r in runs], ddof=1)) if len(runs) > 1 else 0.0}


def write(out: Path, arguments: argparse.Namespace, runs: list[dict[str, Any]]) -> None:
    """Write every figure so far; a run of the same command goes on from there."""
    kept = ("images", "purpose", "epsilon", "epochs", "batch", "validate")
    settings = {name: getattr(arguments, name) for name in kept}
    out.write_text(json.dumps({"settings": settings, "mean": means(runs), "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
