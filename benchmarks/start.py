"""Processor time until a command has said its help, or its answer, beside that of `import pandas`.

User and system time of the child process, bytecode cached as after `pip install`, median of five; each row beside its
own `import pandas`, run in turn, so that a busy machine changes the ratio little. Commands that answer read a small
schema; those that account load dp-accounting, which alone takes twice as long as pandas.

    python benchmarks/start.py [--runs 5] [--only fit]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.cli.example_calls import EXAMPLES

SCHEMA = """
rows: 1000
columns:
  age: {kind: integer, lower: 0, upper: 99}
  sex: {kind: categorical, categories: [f, m]}
"""
PANDAS = ("-c", "import pandas")


def cpu(arguments: Sequence[str], folder: Path) -> float:
    """Return user and system seconds of a Python that runs to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def calls() -> Iterator[tuple[str, ...]]:
    yield ("-c", "import sfumato")
    for words in (["--version"], ["--help"], *([*name.split(), "--help"] for name in EXAMPLES)):
        yield ("-m", "sfumato", *words)
    yield ("-m", "sfumato", "methods")
    yield ("-m", "sfumato", "schema", "check", "schema.yaml")
    yield ("-m", "sfumato", "plan", "--schema", "schema.yaml", "--epsilon", "1")


def measured(call: Sequence[str], runs: int, folder: Path) -> tuple[float, float]:
    """Return the medians of a call and of `import pandas`, after one run of each that fills the caches."""
    for arguments in (PANDAS, call):
        cpu(arguments, folder)
    pairs = [(cpu(call, folder), cpu(PANDAS, folder)) for _ in range(runs)]
    own, pandas = zip(*pairs, strict=True)
    return statistics.median(own), statistics.median(pandas)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", help="calls that have this word")
    arguments = parser.parse_args()
    print(f"{'seconds':>8} {'pandas':>8} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        for call in calls():
            if arguments.only and arguments.only not in call:
                continue
            own, pandas = measured(call, arguments.runs, folder)
            print(f"{own:8.3f} {pandas:8.3f} {own / pandas:6.2f}  {' '.join(call[1:])}", flush=True)


if __name__ == "__main__":
    main()
