"""DPMix's network by epoch: the published schedule, and a recipe that trains it better, on the same mixtures.

    python papers/dpmix/network.py --data FOLDER [--arms published recipe …] [--epochs 50]

MNIST, published noise at ε = 10, ℓ = 64, mixtures of nine tenths of the training images; accuracy after each epoch on
the other tenth. No test image is read. A stopped run goes on after its last whole epoch.

The recipe: mixtures and images less the mixtures' mean; noisy labels moved to sum 1, since noise in their sum scales
the loss; larger batches; an exponential mean of the weights; a Gaussian filter of unit variance, which is the paper's;
and real images at a quarter of their contrast about the mean, as mixtures have less. A tenth of the mixtures is kept
from training, and their loss picks the epoch: it reads the release alone, so it is free and private. The paper's rule,
the best epoch on real images, is not private.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from mixed import Images, arguments, published_mixtures
from scipy.ndimage import gaussian_filter
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sfumato.maths.streams import public_stream
from sfumato.models.mixed_training import MixtureTraining, mixture_network, padded

sys.path.insert(0, str(Path(__file__).parents[1]))
from jobs import Results

EPSILON, DEGREE = 10.0, 64
KEPT_BACK = 10  # one mixture in so many picks the epoch


@dataclass(frozen=True, kw_only=True)
class Arm:
    """How the paper's network is trained.

    Attributes:
        training: schedule.
        centred: whether the mixtures' mean is taken from mixtures and images.
        projected: whether labels are moved to sum 1.
        blur: standard deviation of the filter, pixels; 0 for none.
        scale: of mixtures' contrast.
        contrast: of real images'.
        decay: of the exponential mean of weights per step; 0 for none.
        shift: pixels up to which a batch is moved each way.
        keep: whether a tenth of the mixtures is kept from training.
    """

    training: MixtureTraining
    centred: bool = False
    projected: bool = False
    blur: float = 0.0
    scale: float = 1.0
    contrast: float = 1.0
    decay: float = 0.0
    shift: int = 0
    keep: bool = True


def _recipe(network: Literal["cnn", "fc"] = "cnn", **changed: Any) -> Arm:
    large = MixtureTraining(network=network, batch_size=512, learning_rate=1e-3)
    settings: dict[str, Any] = {"blur": 1.0, "scale": 4.0, "contrast": 1.0, "decay": 0.995} | changed
    return Arm(training=large, centred=True, projected=True, **settings)


ARMS = {
    "published": Arm(training=MixtureTraining(), keep=False),
    "recipe": _recipe(),
    "recipe, shifted": _recipe(shift=2),
    "recipe, fc": _recipe("fc"),
}


class Run:
    """An arm's training; `state` is all that the next epoch needs."""

    def __init__(self, arm: Arm, images: Images, x: np.ndarray, y: np.ndarray) -> None:
        self._arm, self._images = arm, images
        mean = x.mean(0) if arm.centred else np.zeros(x.shape[1:], np.float32)
        if arm.projected:
            y = y - (y.sum(1, keepdims=True) - 1) / y.shape[1]
        kept = (np.arange(len(x)) % KEPT_BACK == 0) & arm.keep
        self._x = self._seen(x - mean, arm.scale)
        self._y = torch.from_numpy(np.ascontiguousarray(y, np.float32))
        self._kept, self._rest = (torch.from_numpy(np.flatnonzero(which)) for which in (kept, ~kept))
        self._test = self._seen(images.test_x.astype(np.float32) / 255 - mean, arm.contrast)
        torch.manual_seed(0)
        self._network = mixture_network(self._x, y.shape[1], arm.training)
        self._mean = AveragedModel(self._network, multi_avg_fn=get_ema_multi_avg_fn(arm.decay)) if arm.decay else None
        self._optimiser = torch.optim.Adam(self._network.parameters(), arm.training.learning_rate)
        self._schedule = torch.optim.lr_scheduler.StepLR(self._optimiser, arm.training.halve_every, 0.5)

    def _seen(self, x: np.ndarray, contrast: float) -> torch.Tensor:
        x = contrast * (gaussian_filter(x, (0, self._arm.blur, self._arm.blur)) if self._arm.blur else x)
        return padded(x) if self._arm.training.network == "cnn" else torch.from_numpy(x.reshape(len(x), -1))

    def epoch(self, number: int) -> dict[str, float]:
        """Pass over the mixtures once; the accuracy on real images, and the loss on mixtures kept back."""
        stream, most = public_stream(0, number), self._arm.shift
        order = self._rest[torch.from_numpy(stream.permutation(len(self._rest)))]
        for chosen in order.split(self._arm.training.batch_size):
            x = self._x[chosen]
            if most:  # no further than the padding, so nothing wraps around
                x = torch.roll(x, tuple(stream.integers(-most, most + 1, size=2).tolist()), (2, 3))
            self._optimiser.zero_grad()
            _loss(self._network(x), self._y[chosen]).backward()
            self._optimiser.step()
            if self._mean is not None:
                self._mean.update_parameters(self._network)
        self._schedule.step()
        with torch.no_grad():
            network = self._network if self._mean is None else self._mean
            guesses = torch.cat([network(part).argmax(1) for part in self._test.split(1000)]).numpy()
            found = {"accuracy": round(float((guesses == self._images.test_y).mean()), 4)}
            if self._arm.keep:
                kept = torch.cat([network(self._x[part]) for part in self._kept.split(1000)])
                found["loss"] = round(float(_loss(kept, self._y[self._kept])), 5)
        return found

    @property
    def _parts(self) -> dict[str, torch.nn.Module | torch.optim.Adam | torch.optim.lr_scheduler.StepLR]:
        parts = {"network": self._network, "optimiser": self._optimiser, "schedule": self._schedule}
        return parts if self._mean is None else parts | {"mean": self._mean}

    def save(self, path: Path, found: list[dict[str, float]]) -> None:
        """Write what was found with the state that found it, so that a stopped run repeats no epoch and skips none."""
        torch.save({name: part.state_dict() for name, part in self._parts.items()} | {"found": found}, f"{path}.new")
        Path(f"{path}.new").replace(path)

    def load(self, path: Path) -> list[dict[str, float]]:
        """Return what was found up to the state on disk; nothing where there is none."""
        if not path.exists():
            return []
        state = torch.load(path, weights_only=True)
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        return state["found"]


def _loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return -(labels * torch.log_softmax(scores, 1)).sum(1).mean()


def curve(name: str, images: Images, out: Path, epochs: int) -> list[dict[str, float]]:
    """Train until `epochs`, from what is on disk."""
    run, state = Run(ARMS[name], images, *published_mixtures(images, DEGREE, EPSILON, seed=1)[:2]), out / f"{name}.pt"
    found = run.load(state)
    for number in range(len(found), epochs):
        found.append(run.epoch(number))
        run.save(state, found)
        print(f"{name}, epoch {number + 1}: {found[-1]}", flush=True)
    return found


def picked(found: list[dict[str, float]]) -> int:
    """Return the epoch, from 1, at which the loss on mixtures kept back is least."""
    return 1 + int(np.argmin([epoch["loss"] for epoch in found]))


def main() -> None:
    """Run what is missing, and print."""
    parser = arguments(__doc__)
    parser.add_argument("--arms", nargs="*", default=["published", "recipe"], choices=ARMS)
    parser.add_argument("--epochs", type=int, default=50)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    images = Images(options.data, "mnist", validate=True)
    for name in options.arms:
        found = curve(name, images, options.out, options.epochs)
        accuracies = [epoch["accuracy"] for epoch in found]
        shown = {"by epoch": accuracies, "best": max(accuracies)}
        if ARMS[name].keep:
            chosen = picked(found)
            shown |= {"picked epoch": chosen, "accuracy at it": accuracies[chosen - 1]}
        Results(options.out / "network.jsonl").note(f"network, {name}", shown)


if __name__ == "__main__":
    main()
