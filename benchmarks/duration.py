"""What `plan` says of the time of a fit, beside what fits take: a process for each, one thread, CPU seconds.

    python benchmarks/duration.py [DATA]

Tables are those of `passes.py`: a hidden factor, half of the columns numbers, half labels of 2 to 50 levels, a class of
two that is the target or a column like others. With a folder, real tables follow (`suite.py`). The runs that
`tests/methods/tables/test_duration.py` holds the forecast to are lines of this.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import passes
from suite import CASES as TABLES

from sfumato.methods.tables.duration import fit_seconds
from sfumato.schema.schema import Schema

CASES = (
    (1_000, 5, False), (1_000, 5, True), (1_000, 20, False), (3_000, 60, True), (10_000, 12, True),
    (10_000, 30, True), (10_000, 50, False), (100_000, 12, False), (100_000, 20, True), (100_000, 40, False),
    (100_000, 60, True),
)  # fmt: skip
"""Rows, columns, and whether there is a target."""
REAL = ("telco_churn", "california_housing", "magic04", "adult", "ma2019")
FIT = """
import sys, time
import sfumato
data, schema, target = sys.argv[1:]
begun = time.process_time()
sfumato.MaxEntropy(epsilon=1.0, delta=1e-6).fit(data, schema=sfumato.Schema.load(schema), target=target or None)
print(time.process_time() - begun)
"""


def seconds(data: Path, schema: Schema, target: str | None) -> float:
    """Fit in a process of its own."""
    path = data.with_suffix(".json")
    schema.save(path, overwrite=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    call = [sys.executable, "-W", "ignore", "-c", FIT, str(data), str(path), target or ""]
    return float(subprocess.run(call, env=environment, capture_output=True, text=True, check=True).stdout)


def show(name: str, data: Path, schema: Schema, target: str | None) -> None:
    took, said = seconds(data, schema, target), fit_seconds("max-entropy", schema, target=target) or float("nan")
    print(f"{name}: {took:.1f} s, said {said:.1f}, x {said / took:.2f}, load {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", help="folder of real tables; by default none")
    folder = parser.parse_args().data
    with tempfile.TemporaryDirectory() as home:
        place = Path(home) / "table.parquet"
        for rows, columns, by_class in CASES:
            passes.make(place, rows, columns, 2)
            schema = Schema.from_dict({"rows": rows, "columns": passes.columns_of(columns, 2)})
            show(f"{rows} x {columns}{', target' * by_class}", place, schema, "class" if by_class else None)
        for name in REAL if folder else ():
            table = TABLES[name](folder).table
            table.frame.to_parquet(place)
            show(name, place, table.schema, table.target)


if __name__ == "__main__":
    main()
