"""Fig. 2: utility against ℓ, ours at several ε, and what `AutoDegree` picks. On the held-out tenth of training images.

    python papers/dpmix/figure_2.py --data FOLDER

Mixtures are drawn once for each ℓ as the package draws them, and each ε adds its noise to them: that is the law of a
release, and ten times as quick. Test images are never read. A stopped run goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from discriminant import Discriminant
from mixed import CLASSES, FEATURES, Images, arguments, delta_of, our_mixtures, our_noise

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import pyplot
from jobs import Results

from sfumato import AutoDegree, DPMix, Schema
from sfumato.columns.kinds import Categorical, Image
from sfumato.fitting.purposes import Facts

DEGREES = (64, 16, 32, 128, 8, 256, 4, 2, 1, 512)  # in the order of interest, should a run be stopped
EPSILONS = (None, 10.0, 1.0)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", default="mnist", choices=("mnist", "fashion_mnist"))
    parser.add_argument("--degrees", type=int, nargs="*", default=DEGREES)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    images = Images(options.data, options.images, validate=True)
    results = Results(options.out / f"{options.images}-figure-2.jsonl")
    curves = {}
    for degree in options.degrees:
        found = results.get(f"degree={degree}", lambda: accuracies(images, degree))  # noqa: B023
        print(degree, found, flush=True)
        for name, value in found.items():
            curves.setdefault(name, {})[degree] = value
    picked = {name: auto_degree(len(images.x), float(name)) for name in curves if name != "inf"}
    for name, degree in picked.items():
        best = max(curves[name].values())
        print(f"epsilon={name}: AutoDegree {degree}, {curves[name].get(degree)}; the best {best}")
    draw(curves, picked, options.out / f"figure_2{'' if options.images == 'mnist' else '-' + options.images}.png")


def accuracies(images: Images, degree: int) -> dict[str, float]:
    """Accuracy per ε of the discriminant on one drawing of mixtures."""
    n, found = len(images.x), {}
    x, y, _ = our_mixtures(images, degree, None, 1, delta=1 / n)
    for epsilon in EPSILONS:
        stds = (0.0, 0.0) if epsilon is None else our_noise(n, degree, epsilon, delta_of(n, epsilon))
        rng = np.random.default_rng(2)
        noisy_x = x + np.float32(stds[0]) * rng.standard_normal(x.shape, np.float32)
        noisy_y = y + np.float32(stds[1]) * rng.standard_normal(y.shape, np.float32)
        model = Discriminant(noisy_x, noisy_y, stds[0], degree, poisson=True)
        found["inf" if epsilon is None else f"{epsilon:g}"] = round(images.accuracy(model), 4)
    return found


def auto_degree(n: int, epsilon: float) -> int:
    """Return what `AutoDegree` picks for n images."""
    kinds = {"x": Image(shape=(28, 28)), "y": Categorical(categories=tuple(map(str, range(CLASSES))))}
    assert FEATURES == 28 * 28
    made = DPMix(epsilon=epsilon, delta=delta_of(n, epsilon), mixture_degree=AutoDegree())
    (stage,) = made.stages(Facts(Schema(columns=kinds, rows=n), None, n))
    assert stage.inclusion is not None
    return round(stage.inclusion * n)


def draw(curves: dict[str, dict[int, float]], picked: dict[str, int], path) -> None:
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7, 5))
    for name, points in curves.items():
        (line,) = axis.plot(*zip(*sorted(points.items()), strict=True), "o-", label=f"ε = {name.replace('inf', '∞')}")
        if picked.get(name) in points:
            axis.plot(picked[name], points[picked[name]], "*", color=line.get_color(), markersize=16)
    axis.set_xscale("log", base=2)
    axis.set(xlabel="ℓ", ylabel="accuracy on single images (held-out tenth)", title="★ what AutoDegree picks")
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
