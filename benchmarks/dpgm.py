"""One step of k networks trained at once, beside one network and beside k networks one after the other.

Autoencoders of DPGM for MNIST (794 → 200 → 8 and back). A step is everything between two batches: clusters of the
members, forward and backward pass, clipping, secret 64-bit noise for all networks, the optimiser. One thread.

    python benchmarks/dpgm.py [--clusters 10] [--batch 1000] [--steps 10]

Prints CPU time of
    one         one network on the whole batch
    wide        one network of as many weights as all k together, on the whole batch
    at once     k networks, each on its own records of the batch
    apart       k networks one after the other, each on its own records of the batch: the same total work
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from sfumato.mechanisms.noise import SecureNoise
from sfumato.methods.dpgm.components import AutoencoderGradients, StackedAutoencoders
from sfumato.methods.nets.autoencoder import Groups, Heads, Output
from sfumato.methods.nets.sgd import BatchSums, Descent, _State

FEATURES, LATENT, HIDDEN, SIGMA = 794, 8, 200, 1.0
OUTPUT = Output(Heads.NATIVE, (slice(784, 794),))


def stepper(k: int, hidden: int, clusters: np.ndarray | None = None) -> Callable[[np.ndarray], None]:
    """Return a function that takes one private step of k networks."""
    stack = StackedAutoencoders(Groups(k), FEATURES, LATENT, (hidden,), OUTPUT, np.zeros((k, FEATURES)))
    rule = (lambda rows: np.zeros(len(rows), int)) if clusters is None else (lambda rows: clusters[: len(rows)])
    gradients, noise = AutoencoderGradients(stack, rule), SecureNoise()
    sums = BatchSums(gradients, "cpu", 1000)
    state = _State(gradients, Descent())

    def step(batch: np.ndarray) -> None:
        total, _, _ = sums.of(batch, state.clip.factors, noise)
        total += noise.gaussian(total.shape, SIGMA)
        state.step(total, len(batch))

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng, k = np.random.default_rng(0), options.clusters
    clusters = rng.integers(0, k, options.batch)
    alone = [stepper(1, HIDDEN) for _ in range(k)]

    def apart(batch: np.ndarray) -> None:
        for c, step in enumerate(alone):
            step(batch[clusters == c])

    steps = {
        "one": stepper(1, HIDDEN),
        "wide": stepper(1, HIDDEN * k),
        "at once": stepper(k, HIDDEN, clusters),
        "apart": apart,
    }
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(options.steps):
        batch = rng.random((options.batch, FEATURES)).astype(np.float32)
        for name, step in steps.items():
            begun = time.process_time()
            step(batch)
            seconds[name].append(time.process_time() - begun)
    base = float(np.median(seconds["one"]))
    for name, found in seconds.items():
        print(f"{name:<10}{1e3 * np.median(found):8.1f} ms {np.median(found) / base:7.2f} x")


if __name__ == "__main__":
    main()
