"""Speed and memory of DPMix: mixtures of 784 features, as ratios in one run.

The time to draw T mixtures, against numpy copying their bytes, and their members' bytes, in memory: the
limit of bandwidth. The peak of memory is told for two T: beside the mixtures it does not
grow.

    python benchmarks/mixing.py [--mixtures 100000] [--degree 64] [--records 20000]
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from sfumato import DPMix, Schema
from sfumato.columns.kinds import Categorical, Image

SHAPE, CLASSES = (28, 28), 10
FEATURES = 784


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixtures", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=64)
    parser.add_argument("--records", type=int, default=20_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (options.records, *SHAPE), dtype=np.uint8)
    y = rng.integers(CLASSES, size=options.records)
    kinds = {"x": Image(shape=SHAPE), "y": Categorical(categories=tuple(map(str, range(CLASSES))))}
    schema = Schema(columns=kinds, rows=options.records)
    copy = copying(options.mixtures)
    for count in (options.mixtures // 4, options.mixtures):
        made = DPMix(epsilon=1.0, mixture_degree=options.degree, n_mixtures=count)
        start = time.perf_counter()
        made.plan(schema)
        planned = time.perf_counter() - start
        start = time.perf_counter()
        made.fit((x, y), schema=schema)
        seconds = time.perf_counter() - start - planned  # fitting plans again
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        reads = copy * options.degree * count / options.mixtures  # every member is read once
        print(f"{count} mixtures: {count / seconds:.0f} per second, peak {peak:.0f} MiB")
        print(f"  time ÷ time to copy the members' features in memory: {seconds / reads:.1f}")
        print(f"  time ÷ time to copy the mixtures in memory: {seconds / (copy * count / options.mixtures):.0f}")


def copying(count: int) -> float:
    """Return the seconds to copy that many mixtures of float32 in memory, by parts that no cache holds."""
    part = np.ones((min(count, 50_000), FEATURES), dtype=np.float32)
    target = np.empty_like(part)
    np.copyto(target, part)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        np.copyto(target, part)
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * count / len(part)


if __name__ == "__main__":
    main()
