"""Figure 5: loadings of factor analysis as pictures, on MNIST instead of the paper's 400 faces: 10 factors, δ = 1e-5.

    python papers/dp_em/figure_5.py --data FOLDER [--images mnist]

400 records cannot carry the stated budget: at ε = 0.3 and δ = 1e-4 the noise of a second moment of unit-norm records
is larger than any of its eigenvalues. The paper's δ = 1e-4 is above 1/n here, so it is smaller. What is measured is how
much of the subspace of the loadings without noise is found. Training images only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from sfumato.estimators import DPFactorAnalysis
from sfumato.privacy.budget import NonPrivate

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import parser, pyplot, read

EPSILONS = (0.2, 0.3, 1.0)
FACTORS, DELTA, CLIP_NORM = 10, 1e-5, 22.0  # in half ranges of a pixel, of at most 28


def main() -> None:
    arguments = parser(__doc__, "dp_em", repeats=("splits", 10), validate=True)
    arguments.add_argument("--images", default="mnist", choices=["mnist", "fashion_mnist"])
    arguments = arguments.parse_args()
    with np.load(read(arguments) / f"{arguments.images}.npz") as archive:
        images = archive["x_train"]
    rows = images.reshape(len(images), -1)
    loadings = {}
    for epsilon in (*EPSILONS, None):
        model = DPFactorAnalysis(
            FACTORS,
            epsilon=NonPrivate() if epsilon is None else epsilon,
            delta=DELTA,
            n_public=60_000,
            bounds=(0, 255),
            clip_norm=CLIP_NORM,
            seed=0,
        )
        loadings["no noise" if epsilon is None else f"ε = {epsilon:g}"] = model.fit(rows).components_
    exact = np.linalg.qr(loadings["no noise"].T)[0]
    overlaps = {
        name: round(float(np.sum((np.linalg.qr(components.T)[0].T @ exact) ** 2)) / FACTORS, 4)
        for name, components in loadings.items()
    }
    print(json.dumps({"images": arguments.images, "overlap_of_subspaces": overlaps}, indent=1))
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw(loadings, images.shape[1:], arguments.out / f"figure_5_{arguments.images}.png")


def draw(loadings: dict[str, np.ndarray], shape: tuple[int, ...], path: object) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(len(loadings), FACTORS, figsize=(FACTORS, 1.2 * len(loadings)))
    for line, (name, components) in zip(axes, loadings.items(), strict=True):
        order = np.argsort(-np.linalg.norm(components, axis=1))
        for axis, j in zip(line, order, strict=True):
            axis.imshow(components[j].reshape(shape), cmap="RdBu")
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
