"""A step of private gradient descent on P3GM's network, beside a plain step and Opacus, in turns in one run.

Network of P3GM for MNIST (1.6 million weights), squared error, Adam. A private step is everything between two batches:
forward and backward pass, clipping, secret 64-bit noise, the optimiser.

    pip install -c constraints.txt '.[papers]' opacus
    python benchmarks/sgd.py [--batch 300] [--steps 8] [--rounds 15] [--ghost] [--hooks] [--out benchmarks/results]

Each method takes some steps in a row, so that what its second thread draws ahead is in its own time, and the methods
take turns. Prints medians over the rounds of time on the clock and of processor time a step, as ratios to the plain
step, on one core and on two; with --out, writes them to sgd_BATCH.json.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.mechanisms.ahead import drawn_ahead
from sfumato.mechanisms.noise import SecureNoise
from sfumato.methods.nets.gradients import LossGradients
from sfumato.methods.nets.sgd import BatchSums, Descent, _State

FEATURES, LATENT, HIDDEN, SIGMA = 794, 10, 1000, 1.4
SETTINGS = {"one core": (1, 1), "two cores, torch on one": (2, 1), "two cores, torch on both": (2, 2)}
NO_BLOCKS = 10**6  # a mean size of batches that are summed in 64 bits

Step = Callable[[Tensor, Tensor], None]
Method = Callable[[], AbstractContextManager[Step]]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.variance = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, FEATURES))
        self.register_buffer("axes", torch.randn(FEATURES, LATENT) / FEATURES**0.5)

    def forward(self, x: Tensor, normals: Tensor) -> Tensor:
        mean, log_variance = x @ self.axes, self.variance(x)
        out = self.decoder(mean + torch.exp(0.5 * log_variance) * normals)
        divergence = 0.5 * (torch.exp(log_variance) + mean**2 - 1 - log_variance).sum(1)
        return ((out - x) ** 2).sum(1) + divergence


def plain(network: Network) -> Method:
    optimiser = torch.optim.Adam(network.parameters(), 1e-3, fused=True)

    def step(x: Tensor, e: Tensor) -> None:
        optimiser.zero_grad(set_to_none=True)
        network(x, e).mean().backward()
        optimiser.step()

    return lambda: nullcontext(step)


def ours(network: Network, batch: int, steps: int, *, narrow: bool = True, ahead: bool = True) -> Method:
    gradients, noise = LossGradients(network, network, LATENT), SecureNoise()
    state = _State(gradients, Descent())
    sums = BatchSums(gradients, "cpu", batch if narrow else NO_BLOCKS)

    @contextmanager
    def method():
        with drawn_ahead(noise, sums.size, steps if ahead else 0) as door:

            def step(x: Tensor, e: Tensor) -> None:
                total, _, _ = sums.of(x.numpy(), state.clip.factors, noise)
                gradient = door.gaussian(total.shape, SIGMA * (1 + sums.slack))
                gradient += total
                state.step(gradient, batch)

            yield step

    return method


def opacus(network: Network, batch: int) -> Method:
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    wrapped = GradSampleModule(network, loss_reduction="sum")
    optimiser = DPOptimizer(
        torch.optim.Adam(network.parameters(), 1e-3),
        noise_multiplier=SIGMA,
        max_grad_norm=1.0,
        expected_batch_size=batch,
    )

    def step(x: Tensor, e: Tensor) -> None:
        optimiser.zero_grad(set_to_none=True)
        wrapped(x, e).sum().backward()
        optimiser.step()

    return lambda: nullcontext(step)


def opacus_ghost(network: Network, batch: int) -> Method:
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

    wrapped = GradSampleModuleFastGradientClipping(network, loss_reduction="sum", max_grad_norm=1.0)
    optimiser = DPOptimizerFastGradientClipping(
        torch.optim.Adam(network.parameters(), 1e-3),
        noise_multiplier=SIGMA,
        max_grad_norm=1.0,
        expected_batch_size=batch,
        loss_reduction="sum",
    )

    def step(x: Tensor, e: Tensor) -> None:
        optimiser.zero_grad(set_to_none=True)
        DPTensorFastGradientClipping(wrapped, optimiser, wrapped(x, e), loss_reduction="sum").backward()
        optimiser.step()

    return lambda: nullcontext(step)


def methods_of(arguments: argparse.Namespace) -> dict[str, Method]:
    """Return the methods, each with a network of its own."""
    torch.manual_seed(0)
    start, batch, steps = Network(), arguments.batch, arguments.steps

    def fresh() -> Network:
        return copy.deepcopy(start)

    methods = {
        "plain": plain(fresh()),
        "ours": ours(fresh(), batch, steps),
        "ours, noise in line": ours(fresh(), batch, steps, ahead=False),
        "ours, 64 bits, noise in line": ours(fresh(), batch, steps, narrow=False, ahead=False),
    }
    warnings.filterwarnings("ignore", message="Full backward hook is firing")
    if arguments.ghost:
        methods["Opacus, ghost"] = opacus_ghost(fresh(), batch)
    if arguments.hooks:
        methods["Opacus, hooks"] = opacus(fresh(), batch)
    return methods


def measured(methods: dict[str, Method], arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return median milliseconds a step, on the clock and of the processor, by method."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    batches = [
        (torch.rand(arguments.batch, FEATURES), torch.randn(arguments.batch, LATENT)) for _ in range(arguments.steps)
    ]
    for turn in range(arguments.rounds + 1):
        for name, method in methods.items():
            clock, processor = time.perf_counter(), time.process_time()
            with method() as step:
                for x, e in batches:
                    step(x, e)
            took = (time.perf_counter() - clock, time.process_time() - processor)
            if turn:  # the first is for caches
                seconds[name].append(took)
    return {
        name: dict(zip(("clock_ms", "processor_ms"), 1e3 / arguments.steps * np.median(found, axis=0), strict=True))
        for name, found in seconds.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=300)
    parser.add_argument("--steps", type=int, default=8, help="in a row, by each method")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ghost", action="store_true", help="also Opacus with ghost clipping")
    parser.add_argument("--hooks", action="store_true", help="also Opacus with a gradient per record: slow, gigabytes")
    parser.add_argument("--out", type=Path, help="folder for the figures")
    arguments = parser.parse_args()
    found: dict[str, object] = {"batch": arguments.batch, "steps": arguments.steps, "rounds": arguments.rounds}
    found["load_before"] = os.getloadavg()
    cores = sorted(os.sched_getaffinity(0))
    for setting, (n_cores, threads) in SETTINGS.items():
        if n_cores > len(cores):
            continue
        os.sched_setaffinity(0, cores[:n_cores])
        torch.set_num_threads(threads)
        figures = found[setting] = measured(methods_of(arguments), arguments)
        print(setting)
        for name, figure in figures.items():
            ratios = {key: value / figures["plain"][key] for key, value in figure.items()}
            print(
                f"  {name:<30}{figure['clock_ms']:8.1f} ms {ratios['clock_ms']:6.2f} x on the clock"
                f"{figure['processor_ms']:8.1f} ms {ratios['processor_ms']:6.2f} x of the processor"
            )
    found["load_after"] = os.getloadavg()
    if arguments.out is not None:
        path = arguments.out / f"sgd_{arguments.batch}.json"
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
