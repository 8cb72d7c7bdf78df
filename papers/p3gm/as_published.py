"""P3GM as written and as its authors released it, on images or tables of numbers. NOT PRIVATE.

    python papers/p3gm/as_published.py --data FOLDER [--images mnist] [--forms written released] [--runs 3] [--validate]
    python papers/p3gm/as_published.py --data FOLDER --table esr --forms released [--scalings "unit variance"]

The printed ε is 1 at δ = 1e-5. No ε holds: both take the exact mean of the records, and means and covariances of the
mixture divide by exact masses, as DP-EM prints them. Beside it stand Theorem 4's ε of the settings, and the exact one
of the same noise with a bought mean and one release per iteration, which `as-written` and `as-released` state.

As written: ten axes, three diagonal components from a start without data, a decoder from random weights, Poisson
batches, samples from the mixture. As released: thirty axes, one component, whose first M-step, on random
responsibilities, is a release that nothing is charged for; a decoder fitted to the inverse projection; batches that
are fixed blocks, taken at random and charged as Poisson; latents of samples from N(0, I), not from the mixture. Labels
are ten more columns. Neither says how records are scaled: here to norm 1 for the axes, and latents by 10 for the
mixture, where longer ones are clipped. Columns of a table are brought to unit variance or to [0, 1] by exact values.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import figure_9
import numpy as np
import pandas as pd
import torch
from cells import parser, peer_tables, read, split

from sfumato.evaluate.utility import classifier_scores
from sfumato.mechanisms.contributions import clip_rows
from sfumato.methods.p3gm.recipe import P3GM
from sfumato.methods.p3gm.settings import Published, published
from sfumato.models.mixtures.covariances import DiagonalCovariance
from sfumato.models.mixtures.mixture import GaussianMixture

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "dp_em")]
import images  # noqa: E402
from jobs import Results  # noqa: E402
from published import Printed  # noqa: E402

HIDDEN, RATE, CLIP, ITERATIONS, WARM_STEPS, WARM_BATCH = 1000, 1e-3, 1.0, 20, 3_000, 100
DELTA, LATENT_NORM = 1e-5, 10.0
UNIT_VARIANCE, UNIT_RANGE = "unit variance", "unit range"  # of numeric columns, by exact values
NOT_PRIVATE = "NOT PRIVATE: the exact mean and quotients by exact masses are used, so no ε holds."


@dataclass(frozen=True)
class Form:
    """Settings of one of the two; noise is in multiples of one record's norm."""

    n_axes: int
    n_components: int
    axes_noise: float
    mixture_noise: float
    released: bool


FORMS = {
    "written": Form(10, 3, 48.0893, 74.774, released=False),
    "released": Form(30, 1, 5.0, 100.0, released=True),
}


def axes(rows: np.ndarray, form: Form, rng: np.random.Generator, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact mean, and the leading eigenvectors of the second moment with noise on its triangle."""
    mean, d = rows.mean(axis=0), rows.shape[1]
    scaled = clip_rows(rows - mean, 1.0)
    triangle = np.triu(noise * form.axes_noise * rng.standard_normal((d, d)))
    _, vectors = np.linalg.eigh(scaled.T.astype(np.float64) @ scaled + triangle + np.triu(triangle, 1).T)
    return mean, vectors[:, : -form.n_axes - 1 : -1].astype(np.float32)


def mixture(latents: np.ndarray, form: Form, rng: np.random.Generator, noise: float = 1.0) -> GaussianMixture:
    """Fit the prior by DP-EM as printed, whose sensitivities are twice what P3GM's multipliers stand for."""
    k, q = form.n_components, latents.shape[1]
    means, variances = 0.1 * rng.standard_normal((k, q)), np.full((k, q), 0.1)
    start = GaussianMixture(np.full(k, 1 / k), means, variances, DiagonalCovariance())
    found = Printed(diagonal=True).fit(
        clip_rows(latents / LATENT_NORM, 1.0),
        start,
        iterations=ITERATIONS + form.released,  # the M-step on random responsibilities; one component's are 1
        multiplier=noise * form.mixture_noise / 2,
        rng=rng,
    )
    scaled = LATENT_NORM * found.means, LATENT_NORM**2 * found.covariances
    return GaussianMixture(found.weights, *scaled, DiagonalCovariance())


class Decoder:
    """The variance branch of the encoder and the decoder, with Adam and gradients clipped by record."""

    def __init__(self, n_columns: int, n_axes: int, generator: torch.Generator) -> None:
        sizes = ((n_columns, HIDDEN), (HIDDEN, n_axes), (n_axes, HIDDEN), (HIDDEN, n_columns))
        self.weights = [torch.randn(wide, high, generator=generator) / math.sqrt(wide) for wide, high in sizes]
        self.biases = [torch.zeros(high) for _, high in sizes]
        self.optimiser = torch.optim.Adam([*self.weights, *self.biases], RATE)

    def step(
        self, x: torch.Tensor, means: torch.Tensor, prior: GaussianMixture, expected: float, std: float,
        generator: torch.Generator,
    ) -> None:  # fmt: skip
        """Make one step of DP-SGD: squared error and the divergence from the mixture, one draw a record."""
        outputs: list[torch.Tensor] = []
        hidden = self._layer(outputs, x).relu()
        log_variance = self._layer(outputs, hidden)
        latent = means + (log_variance / 2).exp() * torch.randn(means.shape, generator=generator)
        decoded = self._layer(outputs, latent).relu()
        loss = (self._layer(outputs, decoded) - x).pow(2).sum() + divergence(means, log_variance, prior).sum()
        errors = torch.autograd.grad(loss, outputs)
        inputs = [x, hidden.detach(), latent.detach(), decoded.detach()]
        # a record's gradient of a layer is an outer product, so its norm is a product of norms
        squares = sum((a.pow(2).sum(1) + 1) * e.pow(2).sum(1) for a, e in zip(inputs, errors, strict=True))
        factors = (CLIP / torch.as_tensor(squares).sqrt().clamp_min(1e-12)).clamp_max(1)[:, None]
        for i, (a, e) in enumerate(zip(inputs, errors, strict=True)):
            for parameter, total in ((self.weights[i], a.T @ (factors * e)), (self.biases[i], (factors * e).sum(0))):
                parameter.grad = (total + std * torch.randn(parameter.shape, generator=generator)) / expected
        self.optimiser.step()

    def _layer(self, outputs: list[torch.Tensor], value: torch.Tensor) -> torch.Tensor:
        i = len(outputs)
        outputs.append((value @ self.weights[i] + self.biases[i]).requires_grad_())
        return outputs[-1]

    def warm_start(self, projection: torch.Tensor, mean: torch.Tensor, generator: torch.Generator) -> None:
        """Fit the decoder to the inverse projection of draws from N(0, I)."""
        parts = [*self.weights[2:], *self.biases[2:]]
        for part in parts:
            part.requires_grad_()
        optimiser = torch.optim.Adam(parts, RATE)
        for _ in range(WARM_STEPS):
            drawn = torch.randn(WARM_BATCH, len(projection.T), generator=generator)
            optimiser.zero_grad(set_to_none=True)
            (self.decode(drawn) - drawn @ projection.T - mean).pow(2).sum(1).mean().backward()
            optimiser.step()
        for part in parts:
            part.requires_grad_(requires_grad=False)
            part.grad = None

    def decode(self, latents: torch.Tensor) -> torch.Tensor:
        """Return means of records."""
        return (latents @ self.weights[2] + self.biases[2]).relu() @ self.weights[3] + self.biases[3]


def divergence(means: torch.Tensor, log_variance: torch.Tensor, prior: GaussianMixture) -> torch.Tensor:
    """Return the bound of Hershey and Olsen on KL(N(means, variances) ‖ prior) of each record, shape (n,)."""
    centres, variances = (torch.tensor(a, dtype=torch.float32) for a in (prior.means, prior.covariances))
    near = (centres - means[:, None]) ** 2 + log_variance.exp()[:, None]
    each = 0.5 * (variances.log() - log_variance[:, None] - 1 + near / variances).sum(2)
    return -torch.logsumexp(torch.tensor(prior.weights, dtype=torch.float32).log() - each, 1)


def batches(n: int, size: int, steps: int, form: Form, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the records of each step: Poisson samples, or fixed blocks taken at random."""
    if not form.released:
        return [np.flatnonzero(rng.random(n) < size / n) for _ in range(steps)]
    blocks = np.array_split(rng.permutation(n), n // size)
    return [blocks[i] for i in rng.integers(len(blocks), size=steps)]


def sampled(rows: np.ndarray, form: Form, settings: Published, seed: int) -> np.ndarray:
    """Fit to rows in [0, 1] or of unit variance, labels among their columns, and return as many that are made."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    mean, projection = axes(rows, form, rng)
    latents = (rows - mean) @ projection
    prior = mixture(latents.astype(np.float64), form, rng)
    network = Decoder(rows.shape[1], form.n_axes, generator)
    if form.released:
        network.warm_start(torch.tensor(projection), torch.tensor(mean), generator)
    steps = round(settings.epochs * len(rows) / settings.batch_size)
    held_rows, held_latents = torch.tensor(rows), torch.tensor(latents.astype(np.float32))
    for chosen in batches(len(rows), settings.batch_size, steps, form, rng):
        network.step(
            held_rows[chosen], held_latents[chosen], prior, settings.batch_size, settings.decoder * CLIP, generator
        )
    drawn = rng.standard_normal((len(rows), form.n_axes)) if form.released else prior.sample(len(rows), rng)[0]
    return network.decode(torch.tensor(np.asarray(drawn), dtype=torch.float32)).numpy()


def run(x: np.ndarray, y: np.ndarray, held: tuple[np.ndarray, np.ndarray], form: Form, seed: int) -> dict[str, float]:
    """Fit, sample as many images as were fitted, and score."""
    rows = np.hstack([x.reshape(len(x), -1) / np.float32(255), np.eye(10, dtype=np.float32)[y]]).astype(np.float32)
    made = sampled(rows, form, published("mnist"), seed)
    pixels = (made[:, :784].clip(0, 1) * 255).round().astype(np.uint8).reshape(-1, 28, 28)
    accuracy = images.accuracy(pixels, made[:, 784:].argmax(axis=1), *held, epochs=10, batch=128, seed=seed)
    return {"accuracy": round(accuracy[-1], 4), "accuracy_best_epoch": round(max(accuracy), 4)}


def run_table(folder: Path, data: str, form: Form, *, scaling: str, seed: int, validate: bool) -> dict[str, float]:
    """Fit to a table of numbers and a label of two classes, sample as many rows, and score."""
    table = peer_tables.TABLES[data](folder)
    train, held = split(table.frame, share=0.1, seed=0)
    if validate:
        train, held = split(train, share=1 / 3, seed=1)
    numbers = train.drop(columns=table.target)
    low, width = numbers.mean(), numbers.std()
    if scaling == UNIT_RANGE:
        low, width = numbers.min(), numbers.max() - numbers.min()
    labels = np.eye(2, dtype=np.float32)[(train[table.target] == table.positive).to_numpy(int)]
    rows = np.hstack([((numbers - low) / width).to_numpy(np.float32), labels])
    made = sampled(rows, form, published(data), seed)
    columns = pd.DataFrame(made[:, :-2], columns=numbers.columns) * width + low
    columns[table.target] = made[:, -2:].argmax(axis=1).astype(str)
    scores = classifier_scores(columns, held, schema=table.schema, target=table.target, positive=table.positive)
    return {name: round(scores[name], 4) for name in ("auroc", "auprc")}


def accounts(name: str) -> dict[str, float | None]:
    """Return the printed ε of MNIST's settings, what holds (none), and the exact one of the repaired algorithm."""
    form, rows = FORMS[name], published("mnist").rows
    preset = {"written": P3GM.as_written, "released": P3GM.as_released}[name]
    repaired = preset("mnist", n_public=rows, delta=DELTA).epsilon
    at = (
        a / (2 * form.axes_noise**2)
        + (ITERATIONS * (2 * form.n_components + 1) * a) / (2 * form.mixture_noise**2)
        + (figure_9.STEPS * figure_9.step_moment(a, published("mnist").decoder) + math.log(1 / DELTA)) / (a - 1)
        for a in figure_9.ORDERS
    )
    return {"printed": 1.0, "Theorem 4": round(float(min(at)), 3), "true": None, "repaired": round(float(repaired), 3)}


def of_table(options: argparse.Namespace) -> None:
    """Run what is missing of a table, and print."""
    results = Results(options.out / f"as_published_{options.table}.jsonl")
    shared = {"folder": read(options), "data": options.table, "validate": options.validate}
    found = {
        f"{name}, {scaling}": [
            results.get(
                f"{name} {scaling} {i}{' validation' if options.validate else ''}",
                partial(run_table, form=FORMS[name], scaling=scaling, seed=i, **shared),
            )
            for i in range(options.runs)
        ]
        for name in options.forms
        for scaling in options.scalings
    }
    print(NOT_PRIVATE)
    results.note(f"as published {options.table}", {"private": False, "runs": found})


def main() -> None:
    """Run what is missing, and print."""
    arguments = parser(__doc__)
    arguments.add_argument("--images", default="mnist", choices=("mnist", "fashion_mnist"))
    arguments.add_argument("--table", choices=("esr", "isolet", "credit"))
    arguments.add_argument("--scalings", nargs="+", default=[UNIT_VARIANCE, UNIT_RANGE])
    arguments.add_argument("--forms", nargs="+", default=list(FORMS), choices=FORMS)
    options = arguments.parse_args()
    if options.table:
        of_table(options)
        return
    with np.load(read(options) / f"{options.images}.npz") as stored:
        x, y = stored["x_train"], stored["y_train"].astype(int)
        held = (stored["x_test"], stored["y_test"].astype(int))
    if options.validate:
        cut = images.VALIDATION_FROM
        x, y, held = x[:cut], y[:cut], (x[cut:], y[cut:])
    results = Results(options.out / f"as_published_{'validation' if options.validate else 'test'}.jsonl")
    found = {
        name: [
            results.get(f"{options.images} {name} {i}", lambda n=name, i=i: run(x, y, held, FORMS[n], i))
            for i in range(options.runs)
        ]
        for name in options.forms
    }
    print(NOT_PRIVATE)
    account = {name: accounts(name) for name in options.forms}
    results.note(f"as published {options.images}", {"private": False, "epsilon": account, "runs": found})


if __name__ == "__main__":
    main()
