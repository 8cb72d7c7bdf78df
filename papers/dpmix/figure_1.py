"""Figs. 1, 2 and 4: what mixtures look like, what they are worth against ℓ, and what denoising does.

    python papers/dpmix/figure_1.py --data FOLDER [--validate]

The picture of mixtures shows training images mixed under a seed: MNIST is public. Fig. 2 is drawn from the results of
`tables.py`, which runs first.
"""

from __future__ import annotations

import json

import matplotlib as mpl
from mixed import Images, arguments, our_mixtures, published_mixtures
from scipy import ndimage

mpl.use("Agg")
from matplotlib import pyplot as plt

DEGREES = (1, 4, 16, 64, 256)
TOO_MANY = 64


def main() -> None:
    options = arguments(__doc__).parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    suffix = "-validation" if options.validate else ""
    images = Images(options.data, "mnist", validate=options.validate)
    mixtures(images, options.out / "figure_1.png")
    found = options.out / f"mnist-linear{suffix}.jsonl"
    if found.exists():
        utility(found, options.out / "figure_2.png")


def mixtures(images: Images, path) -> None:
    """Rows: no noise, the published noise at ε = 10, ours at ε = 10 and denoised. Columns: ℓ."""
    delta = 1 / len(images.x)
    rows = {
        "ε = ∞": lambda degree: published_mixtures(images, degree, None, 0)[0][0],
        "published noise, ε = 10": lambda degree: published_mixtures(images, degree, 10.0, 0)[0][0],
        "ours, ε = 10": lambda degree: our_mixtures(images, degree, 10.0, 0, delta=delta)[0][0],
    }
    figure, axes = plt.subplots(4, len(DEGREES), figsize=(8, 7))
    for j, degree in enumerate(DEGREES):
        pictures = [make(degree) for make in rows.values()]
        pictures.append(ndimage.gaussian_filter(pictures[-1], 1.0))
        for i, picture in enumerate(pictures):
            axes[i, j].imshow(picture, cmap="gray")
            axes[i, j].set(xticks=[], yticks=[])
        axes[0, j].set_title(f"ℓ = {degree}")
    for i, name in enumerate([*rows, "the same, denoised"]):
        axes[i, 0].set_ylabel(name, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def utility(found, path) -> None:
    """Accuracy against ℓ, a curve per noise."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for line in found.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        name, _, degree = entry["key"].partition(" degree=")
        if degree:
            curves.setdefault(name, []).append((int(degree), entry["value"]["accuracy"]))
    figure, axis = plt.subplots(figsize=(7, 5))
    for name, points in curves.items():
        axis.plot(*zip(*sorted(points), strict=True), "o-", label=name.replace("epsilon=", "ε = "))
    axis.set(xscale="log", xlabel="ℓ", ylabel="accuracy on single images")
    axis.set_xscale("log", base=2)
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
