"""Speed of the secret noise, as ratios against generators that keep no secret.

Draws 1.6 million normals (as many rounded ones, whose law is exact, and memberships of probability 0.01) with Sfumato's
cryptographic generator, with numpy's default generator and, if it is installed, with randomgen's
AES counter generator. They take turns, so that a busy neighbour slows them alike; medians over the repeats are
compared. Only ratios travel between machines.

    python benchmarks/noise.py [--repeats 40]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from sfumato.mechanisms.noise import SecureNoise

DRAWS = 1_600_000
PROBABILITY = 0.01
STEP = 2.0**-24
FEWEST_REPEATS = 20


def contestants() -> dict[str, dict[str, Callable[[], object]]]:
    """Return the tasks, each with its generators; the first is ours."""
    ours, numpy = SecureNoise(), np.random.default_rng()
    normals: dict[str, Callable[[], object]] = {
        "sfumato SecureNoise": lambda: ours.gaussian(DRAWS, 1.0),
        "numpy PCG64": lambda: numpy.standard_normal(DRAWS),
    }
    rounded: dict[str, Callable[[], object]] = {  # to a grid of 2^-24 of the standard deviation, as statistics get it
        "sfumato SecureNoise": lambda: ours.rounded_gaussian(DRAWS, 1.0, STEP),
        "sfumato, not rounded": lambda: ours.gaussian(DRAWS, 1.0),
        "numpy PCG64, np.rint": lambda: np.rint(numpy.standard_normal(DRAWS) / STEP).astype(np.int64),
    }
    members: dict[str, Callable[[], object]] = {
        "sfumato SecureNoise": lambda: ours.bernoulli(DRAWS, PROBABILITY),
        "numpy PCG64": lambda: numpy.random(DRAWS) < PROBABILITY,
    }
    try:
        from randomgen import AESCounter
    except ImportError:
        print("randomgen is not installed (pip install 'sfumato[bench]'): left out\n")
    else:
        aes = np.random.Generator(AESCounter())
        normals["randomgen AESCounter"] = lambda: aes.standard_normal(DRAWS)
        members["randomgen AESCounter"] = lambda: aes.random(DRAWS) < PROBABILITY
    return {"1.6 million normals": normals, "1.6 million rounded": rounded, "1.6 million memberships": members}


def medians(generators: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each generator; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in generators}
    for draw in generators.values():
        draw()  # page in code and memory
    for _ in range(repeats):
        for name, draw in generators.items():
            start = time.perf_counter()
            draw()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40, help=f"at least {FEWEST_REPEATS}")
    repeats = max(FEWEST_REPEATS, parser.parse_args().repeats)
    print(f"{'task':<26}{'generator':<24}{'median ms':>10}{'sfumato is':>14}")
    for task, generators in contestants().items():
        found = medians(generators, repeats)
        ours = next(iter(found.values()))
        for name, seconds in found.items():
            ratio = "" if seconds == ours else f"{ours / seconds:.2f} × as long"
            print(f"{task:<26}{name:<24}{1000 * seconds:>10.1f}{ratio:>18}")


if __name__ == "__main__":
    main()
