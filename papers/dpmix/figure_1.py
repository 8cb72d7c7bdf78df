"""Figs. 1 and 4: what mixtures look like, and what denoising does.

    python papers/dpmix/figure_1.py --data FOLDER

The picture shows training images mixed under a seed: MNIST is public. All noise is that of n = T = 60,000 mixtures.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from baselines import clip
from mixed import CLASSES, CLIP_NORM, FEATURES, Images, arguments, delta_of, our_noise
from published import noise_by_theorem_1
from scipy import ndimage

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import pyplot

DEGREES = (1, 4, 16, 64, 256)
# who made the noise, ε, whether denoised
ROWS = (("", None, False), ("published", 20.0, False), ("published", 10.0, False), ("published", 10.0, True),
        ("ours", 10.0, False), ("ours", 10.0, True), ("ours", 3.0, False), ("ours", 1.0, False))  # fmt: skip


def main() -> None:
    options = arguments(__doc__).parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    images = Images(options.data, "mnist", validate=options.validate)
    plt = pyplot()
    figure, axes = plt.subplots(len(ROWS), len(DEGREES), figsize=(7, 11.5))
    for j, degree in enumerate(DEGREES):
        axes[0, j].set_title(f"ℓ = {degree}")
        for i, row in enumerate(ROWS):
            axes[i, j].imshow(picture(images, degree, *row), cmap="gray")
            axes[i, j].set(xticks=[], yticks=[])
    for i, (noise, epsilon, denoised) in enumerate(ROWS):
        name = "no noise" if epsilon is None else f"{noise}, ε = {epsilon:g}"
        axes[i, 0].set_ylabel(name + "\ndenoised" * denoised, fontsize=8)
    figure.tight_layout()
    figure.savefig(options.out / "figure_1.png", dpi=120)


def picture(images: Images, degree: int, noise: str, epsilon: float | None, denoised: bool) -> np.ndarray:
    """One mixture: the same members and the same normals in every row."""
    n, rng = len(images.x), np.random.default_rng(degree)
    members = images.x[rng.choice(n, degree, replace=False)].reshape(degree, -1) / 255
    if noise == "ours" and epsilon is not None:
        members, sigma = clip(members, CLIP_NORM), our_noise(n, degree, epsilon, delta_of(n, epsilon))[0]
    elif epsilon is not None:
        sigma = noise_by_theorem_1(epsilon, degree, n, n, 1 / n, n_features=FEATURES, n_labels=CLASSES)
    else:
        sigma = 0.0
    made = (members.mean(0) + sigma * rng.standard_normal(FEATURES)).reshape(28, 28)
    return ndimage.gaussian_filter(made, 1.0) if denoised else made


if __name__ == "__main__":
    main()
