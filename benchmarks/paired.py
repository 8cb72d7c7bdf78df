"""What a constant is worth: fits with it and without, of the same noise.

    python benchmarks/paired.py TABLE [TABLE ...] --set CHAIN.slack=0.65 [--epsilon 1] [--fits 4] [--samples 2]

Scores as of `swift_aim.py`, a tenth of the rows held out. Seeds give both fits the same noise, and several samples a
fit take most of the sampling off, so that differences of a few per cent show in four fits: a mean difference, and its
standard error. A mechanism that spends otherwise draws other noise, and gains nothing by this.

Scores read real records, and the noise has a seed: NOT private.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from adult import split
from suite import Case
from swift_aim import case_of, scores

import sfumato
from sfumato.maths import constants


def scores_of(case: Case, epsilon: float, seed: int, samples: int) -> dict[str, float]:
    """Fit once with the noise of a seed; return the mean scores of its samples, and seconds of the processor."""
    fitted, test = split(case.table.frame, share=0.1, seed=0)
    started = time.process_time()
    method = sfumato.MaxEntropy(epsilon=epsilon, delta=1e-5)
    release = method.fit(fitted, schema=case.table.schema, target=case.table.target, seed=seed)
    seconds = time.process_time() - started
    rows = [release.sample(len(fitted), seed=samples * seed + k) for k in range(samples)]
    cells = [scores(case, fitted, sample, test) for sample in rows]
    return {**{name: float(np.mean([cell[name] for cell in cells])) for name in cells[0]}, "cpu_seconds": seconds}


def set_constant(text: str) -> None:
    """Set a number, given as GROUP.name=value, for the rest of the process."""
    place, _, value = text.partition("=")
    group, _, name = place.partition(".")
    owner = getattr(constants, group, None)
    before = getattr(owner, name, None)
    if type(before) not in (int, float):
        sys.exit(f"Expected --set GROUP.name=value with a number of sfumato.maths.constants, got {text!r}.")
    object.__setattr__(owner, name, type(before)(value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", help="among those of swift_aim.py")
    parser.add_argument("--set", required=True, metavar="GROUP.name=value", help="of sfumato.maths.constants")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--samples", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # that noise of a seed is not private
    folder = os.environ.get("SFUMATO_DATA")
    cases = {name: case_of(name, Path(folder) if folder else None) for name in arguments.tables}

    def figures() -> dict[str, list[dict[str, float]]]:
        return {
            name: [scores_of(case, arguments.epsilon, seed, arguments.samples) for seed in range(arguments.fits)]
            for name, case in cases.items()
        }

    before = figures()
    set_constant(arguments.set)
    after = figures()
    print(f"| table | score | before | with {arguments.set} | standard error |\n|---|---|---|---|---|")
    for name in cases:
        for key in before[name][0]:
            one, other = (np.array([fit[key] for fit in fits[name]]) for fits in (before, after))
            difference = other - one
            error = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else float("nan")
            print(f"| {name} | {key} | {one.mean():.4f} | {difference.mean():+.4f} | {error:.4f} |", flush=True)
    print("\nMade from real records with the noise of a seed: these figures are NOT private.")


if __name__ == "__main__":
    main()
