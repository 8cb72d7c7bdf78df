"""One step of private gradient descent on P3GM's network, beside a plain step and Opacus, interleaved in one run.

Network of P3GM for MNIST (1.6 million weights), squared error, Adam. A private step here is everything between two
batches: forward and backward pass, clipping, secret 64-bit noise, the optimiser. One thread.

    pip install -c constraints.txt '.[papers]' opacus
    python benchmarks/sgd.py [--batch 300] [--steps 30] [--hooks]

Prints CPU time as ratios to the plain step, the parts of our step, and the growth of peak memory.
"""

from __future__ import annotations

import argparse
import copy
import resource
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.mechanisms.noise import SecureNoise
from sfumato.methods.nets.clipped import ClippedGradients, clip_factors

FEATURES, LATENT, HIDDEN, SIGMA = 794, 10, 1000, 1.4


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


def plain(network: Network) -> Callable[[Tensor, Tensor], None]:
    optimiser = torch.optim.Adam(network.parameters(), 1e-3, fused=True)

    def step(x: Tensor, e: Tensor) -> None:
        optimiser.zero_grad(set_to_none=True)
        network(x, e).mean().backward()
        optimiser.step()

    return step


def ours(network: Network, parts: dict[str, list[float]]) -> Callable[[Tensor, Tensor], None]:
    clipped = ClippedGradients(network)
    parameters = clipped.parameters()
    optimiser = torch.optim.Adam(parameters, 1e-3, fused=True)
    noise, size = SecureNoise(), sum(p.numel() for p in parameters)

    def step(x: Tensor, e: Tensor) -> None:
        marks = [time.process_time()]
        found = clipped.per_record(lambda net: net(x, e))
        sums = found.weighted(clip_factors(found.norms, 1.0))
        marks.append(time.process_time())
        total = noise.gaussian(size, SIGMA)
        marks.append(time.process_time())
        place = 0
        for gradient in sums:
            total[place : place + gradient.numel()] += gradient.reshape(-1).numpy()
            place += gradient.numel()
        flat = torch.from_numpy((total / len(x)).astype(np.float32))
        place = 0
        for p in parameters:
            p.grad = flat[place : place + p.numel()].reshape(p.shape)
            place += p.numel()
        marks.append(time.process_time())
        optimiser.step()
        marks.append(time.process_time())
        for name, seconds in zip(("clipped sum", "noise", "adding", "optimiser"), np.diff(marks), strict=True):
            parts.setdefault(name, []).append(float(seconds))

    return step


def opacus(network: Network) -> Callable[[Tensor, Tensor], None]:
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    wrapped = GradSampleModule(network, loss_reduction="sum")
    optimiser = DPOptimizer(
        torch.optim.Adam(network.parameters(), 1e-3), noise_multiplier=SIGMA, max_grad_norm=1.0, expected_batch_size=300
    )

    def step(x: Tensor, e: Tensor) -> None:
        optimiser.zero_grad(set_to_none=True)
        wrapped(x, e).sum().backward()
        optimiser.step()

    return step


def opacus_ghost(network: Network, batch: int) -> Callable[[Tensor, Tensor], None]:
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

    return step


def peak() -> float:
    """Return the peak resident memory so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=300)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--hooks", action="store_true", help="also Opacus with a gradient per record: slow, gigabytes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    start = Network()
    parts: dict[str, list[float]] = {}
    steps = {"plain": plain(copy.deepcopy(start)), "ours": ours(copy.deepcopy(start), parts)}
    warnings.filterwarnings("ignore", message="Full backward hook is firing")
    steps["Opacus, ghost"] = opacus_ghost(copy.deepcopy(start), arguments.batch)
    if arguments.hooks:
        steps["Opacus, hooks"] = opacus(copy.deepcopy(start))
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    memory = {}
    for name, step in steps.items():  # each alone first, for memory
        before = peak()
        step(torch.rand(arguments.batch, FEATURES), torch.randn(arguments.batch, LATENT))
        memory[name] = peak() - before
    for _ in range(arguments.steps):
        x, e = torch.rand(arguments.batch, FEATURES), torch.randn(arguments.batch, LATENT)
        for name, step in steps.items():
            begun = time.process_time()
            step(x, e)
            seconds[name].append(time.process_time() - begun)
    base = float(np.median(seconds["plain"]))
    for name, found in seconds.items():
        print(
            f"{name:<16}{1e3 * np.median(found):8.1f} ms {np.median(found) / base:7.2f} x  peak +{memory[name]:.0f} MiB"
        )
    for name, found in parts.items():
        print(f"  ours: {name:<14}{1e3 * np.median(found):8.1f} ms {np.median(found) / base:7.2f} x")


if __name__ == "__main__":
    main()
