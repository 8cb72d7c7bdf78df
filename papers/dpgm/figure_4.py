"""Figure 4: samples of DPGM on MNIST, a row per cluster, and the accuracy of a network that learns from them.

    python papers/dpgm/figure_4.py --data FOLDER [--epsilon 1.74] [--component vae] [--validate]

δ = 1e-5. The label is a one-hot part of each record. The network is that of P3GM's Table VII, 10 epochs, with as many
samples as rows were fitted. With --validate two thirds of the training images are fitted and the rest scored: settings
were chosen so. Without, all training images are fitted, and the test images are scored.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import sfumato
from sfumato.maths.streams import public_stream
from sfumato.methods.dpgm.settings import RBM, VAE

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from drawing import parser, pyplot, read
from images import accuracy
from jobs import Cell, Results, run_cells

DELTA = 1e-5
SHARED: dict[str, Any] = {"n_clusters": 20, "epochs": 1.0, "batch_size": 500}
SETTINGS: dict[str, dict[str, Any]] = {
    "vae": {**SHARED, "component": VAE()},
    "two layers": {**SHARED, "component": VAE(hidden=(200, 200))},
    "no clusters": {**SHARED, "n_clusters": 1, "component": VAE()},
    "clusters blind to labels": {**SHARED, "class_distance": 0.0, "component": VAE()},
    "rbm": {**SHARED, "component": RBM()},
}


def fitted(x: np.ndarray, y: np.ndarray, epsilon: float, seed: int, binary: bool, **settings: Any) -> sfumato.Release:
    """Return a release of images and labels."""
    schema = sfumato.Schema.from_dict(
        {
            "rows": len(x),
            "columns": {
                "x": {"kind": "image", "shape": [28, 28], "dtype": "uint8"},
                "y": {"kind": "categorical", "categories": list(range(10))},
            },
        }
    )
    x = np.where(x >= 128, 255, 0).astype(np.uint8) if binary else x
    return sfumato.DPGM(**{"epsilon": epsilon, "delta": DELTA, **settings}).fit(
        {"x": x, "y": y}, schema=schema, seed=seed
    )


def by_component(release: sfumato.Release, each: int) -> np.ndarray:
    """Return mean images of samples of each component, shape (k, each, 28, 28), in [0, 1]."""
    from sfumato.release.samplers import build_sampler

    shares = release.parameters["component_shares"]
    rows = []
    for c in range(shares.size):
        alone = {**release.parameters, "component_shares": np.eye(shares.size)[c]}
        sampler = build_sampler(release.schema, release.sampler, alone)
        rows.append(np.asarray(sampler.rows(each, public_stream(0, c))["x"]).reshape(each, 28, 28) / 255)
    return np.array(rows)


def picture(grids: dict[str, np.ndarray], path: Path) -> None:
    """Draw a grid of samples per release, a row per cluster."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(grids), figsize=(4 * len(grids), 5), squeeze=False)
    for axis, (title, grid) in zip(axes[0], grids.items(), strict=True):
        axis.imshow(np.vstack([np.hstack(list(row)) for row in grid]), cmap="gray_r", vmin=0, vmax=1)
        axis.set(title=title, xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def load(folder: Path, *, validate: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images and labels to fit, and others to score on."""
    with np.load(folder / "mnist.npz") as arrays:
        x, y = arrays["x_train"], arrays["y_train"].astype(np.int64)
        if not validate:
            return x, y, arrays["x_test"], arrays["y_test"].astype(np.int64)
    order = public_stream(0, 9).permutation(len(x))
    fit, held = order[:40_000], order[40_000:]
    return x[fit], y[fit], x[held], y[held]


def cell(folder: Path, component: str, epsilon: float, seed: int, flags: dict[str, bool], grid: str) -> dict[str, Any]:
    """Fit once, keep a grid of samples if it has a name, and teach the network."""
    x, y, test_x, test_y = load(folder, validate=flags["validate"])
    begun = time.monotonic()
    release = fitted(x, y, epsilon, seed, flags["binary"], **SETTINGS[component])
    seconds = round(time.monotonic() - begun)
    if grid:
        np.save(grid, by_component(release, 8))
    made = release.sample(len(x), seed=seed)
    taught = accuracy(made["x"], made["y"].astype(np.int64), test_x, test_y, epochs=10, batch=128, seed=seed)
    return {"accuracy": taught[-1], "fit_seconds": seconds}


def main() -> None:
    """Run the cells that are missing, print, draw."""
    arguments = parser(__doc__, "dpgm", repeats=("runs", 1))
    arguments.add_argument("--epsilon", type=float, default=1.74)
    arguments.add_argument("--components", nargs="+", choices=SETTINGS, default=["vae"])
    arguments.add_argument("--validate", action="store_true")
    arguments.add_argument("--binary", action="store_true", help="binarised images, as in the paper")
    options = arguments.parse_args()
    folder = read(options)
    name = f"figure_4{'_validation' if options.validate else ''}{'_binary' if options.binary else ''}"
    results = Results(options.out / f"{name}_cells.jsonl")
    kept = {c: options.out / f"{name}_{c.replace(' ', '_')}_{options.epsilon:g}.npy" for c in options.components}
    flags = {"validate": options.validate, "binary": options.binary}
    cells = {
        f"{component} | {options.epsilon:g} | run {seed}": Cell(
            cell, (folder, component, options.epsilon, seed, flags, "" if seed else str(kept[component]))
        )
        for component in options.components
        for seed in range(options.runs)
    }
    results.note("accuracy", run_cells(results, cells))
    grids = {}
    if options.validate:
        x, y, _, _ = load(folder, validate=True)
        grids["real"] = np.array([x[y == digit][:8] / 255 for digit in range(10)])
    grids |= {f"{c}, ε = {options.epsilon:g}": np.load(path) for c, path in kept.items() if path.exists()}
    if grids:
        picture(grids, options.out / f"{name}.png")


if __name__ == "__main__":
    main()
