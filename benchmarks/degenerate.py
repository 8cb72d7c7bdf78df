"""Fits of small degenerate tables, by the thousand: each ends in a release, or in a sentence before any charge.

    python benchmarks/degenerate.py [--first 0] [--fits 10000] [--shape network]

The cases are those of the tests (`tests/fixtures/degenerate.py`): tables that are constant, all equal but for one row,
twins, out of bounds, missing, huge, empty or of one row; with schemas and without, questions of every kind, a unit,
linked rows, a database, weights, sets, images, searches, estimators; ε of 0.01 to 100. A seed says which, and what went
wrong is printed with it. Figures: counts by how fits ended.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fixtures.degenerate import SHAPES, FaultError, quick_accounts, run
from fixtures.sampling import little_effort


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--shape", default="", choices=("", *SHAPES))
    asked = parser.parse_args()
    ends: Counter[str] = Counter()
    start = time.process_time()
    with pytest.MonkeyPatch.context() as patch, quick_accounts() as charged:
        little_effort(patch)
        for seed in range(asked.first, asked.first + asked.fits):
            try:
                ends[run(seed, charged, asked.shape)] += 1
            except FaultError as error:
                ends["fault"] += 1
                cause = error.__cause__
                where = traceback.format_exception(cause)[-3:] if cause is not None else []
                print(error, *where, flush=True)
            if (seed + 1 - asked.first) % 100 == 0:
                spent = time.process_time() - start
                print(f"{sum(ends.values())} fits, {dict(ends)}, {spent:.0f} s of processor time", flush=True)
    print(dict(ends))
    sys.exit(int(ends["fault"] > 0))


if __name__ == "__main__":
    main()
