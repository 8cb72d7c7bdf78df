"""Memory and time on a large table: does a fit need more memory than reading the file once?

Makes a Parquet file of mixed columns in a temporary folder, then, each in a process of its own:
streams it through `open_source(...).chunks()` (the yardstick), fits a release at epsilon = 1, and
samples as many rows to Parquet. Reports seconds and peak resident memory, the latter also as a
ratio to the yardstick's. It should not grow with --rows.

    python benchmarks/large_table.py [--rows 10000000] [--out figures.json]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PIECE = 250_000
EPSILON, DELTA = 1.0, 1e-9
KIB_PER_MIB = 1024  # getrusage counts KiB on Linux


def levels(*categories: str, **facts: object) -> dict[str, object]:
    return {"kind": "categorical", "categories": list(categories), **facts}


COLUMNS: dict[str, dict[str, object]] = {
    "age": {"kind": "integer", "lower": 0, "upper": 110},
    "income": {"kind": "continuous", "lower": 0, "upper": 500_000, "resolution": 0.01},
    "weight": {"kind": "continuous", "lower": 30, "upper": 200, "nullable": True},
    "children": {"kind": "integer", "lower": 0, "upper": 15, "nullable": True},
    "height": {"kind": "integer", "lower": 100, "upper": 220},
    "region": levels(*(f"region {i:02d}" for i in range(50))),
    "trade": levels(*(f"trade {i:03d}" for i in range(500))),
    "status": levels("single", "married", "parted", "widowed"),
    "schooling": levels("none", "primary", "secondary", "tertiary", kind="ordinal", nullable=True),
    "employed": {"kind": "boolean"},
    "since": {"kind": "datetime", "lower": "1990-01-01", "upper": "2024-12-31"},
    "outcome": levels("no", "yes"),
}
TARGET = "outcome"


def make_piece(n: int, rng: np.random.Generator):
    """Return n made-up rows whose columns go together."""
    import pyarrow as pa

    z = rng.standard_normal((n, 4))
    age = np.clip(45 + 18 * z[:, 0], 0, 110).astype(np.int16)
    income = np.round(np.clip(np.exp(10 + 0.5 * z[:, 0] + 0.7 * z[:, 1]), 0, 500_000), 2)

    def pick(name: str, codes: np.ndarray) -> np.ndarray:
        return np.array(COLUMNS[name]["categories"])[codes]

    level = np.digitize(z[:, 1] + 0.5 * z[:, 2], [-1.5, 0.0, 1.0])
    return pa.table(
        {
            "age": age,
            "income": income,
            "weight": pa.array(np.clip(75 + 15 * z[:, 2], 30, 200), mask=rng.random(n) < 0.1),
            "children": pa.array(rng.poisson(1.5, n).clip(0, 15), mask=rng.random(n) < 0.05),
            "height": np.clip(170 + 8 * z[:, 3] + 3 * z[:, 2], 100, 220).astype(np.int16),
            "region": pick("region", rng.integers(0, 50, n)),
            "trade": pick("trade", (rng.beta(1, 6, n) * 500).astype(int)),
            "status": pick("status", np.digitize(z[:, 0], [-1.0, 1.0, 2.0])),
            "schooling": pa.array(pick("schooling", level), mask=rng.random(n) < 0.02),
            "employed": z[:, 1] > -0.8,
            "since": pa.array((7305 + rng.integers(0, 12_784, n)).astype(np.int32), type=pa.date32()),
            "outcome": pick("outcome", (z[:, 0] + z[:, 1] + rng.standard_normal(n) > 1).astype(int)),
        }
    )


def generate(data: Path, rows: int) -> None:
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, PIECE):
        piece = make_piece(min(PIECE, rows - start), rng)
        writer = writer or pq.ParquetWriter(data, piece.schema, compression="zstd")
        writer.write_table(piece)
    writer.close()


def stream(data: Path, rows: int) -> None:
    """The yardstick: read every chunk, keep none."""
    from sfumato.io.sources import open_source

    source = open_source(data)
    for _ in source.chunks(source.names):
        pass


def fit(data: Path, rows: int) -> None:
    import sfumato

    schema = sfumato.Schema.from_dict({"rows": rows, "columns": COLUMNS})
    synthesizer = sfumato.MaxEntropy(epsilon=EPSILON, delta=DELTA)
    synthesizer.fit(data, schema=schema, target=TARGET).save(data.with_name("release"))


def sample(data: Path, rows: int) -> None:
    import sfumato

    sfumato.load(data.with_name("release")).write_sample(data.with_name("synthetic.parquet"), rows)


STEPS = {"generate": generate, "stream": stream, "fit": fit, "sample": sample}


def run_step(step: str, data: Path, rows: int) -> None:
    """Run one step in this process and print its seconds and peak memory, imports untimed."""
    if step != "generate":
        import sfumato  # noqa: F401
    start = time.perf_counter()
    STEPS[step](data, rows)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB
    print(json.dumps({"seconds": seconds, "peak_mib": peak}))


def measure(rows: int, folder: Path) -> dict[str, dict[str, float]]:
    """Run every step in a process of its own."""
    data, found = folder / "data.parquet", {}
    for step in STEPS:
        call = [sys.executable, __file__, "--step", step, "--rows", str(rows), "--data", str(data)]
        done = subprocess.run(call, check=True, capture_output=True, text=True)
        found[step] = json.loads(done.stdout)
        print(f"  {step}: {found[step]['seconds']:.1f} s", file=sys.stderr)
    found["file"] = {"mib": data.stat().st_size / 2**20}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        run_step(arguments.step, arguments.data, arguments.rows)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments.rows, Path(folder))
    size = f"{found['file']['mib']:.0f} MiB of Parquet"
    print(f"{arguments.rows:,} rows × {len(COLUMNS)} columns, {size}")
    print(f"{'step':<10}{'seconds':>10}{'peak MiB':>10}{'÷ streaming':>13}")
    for step in ("stream", "fit", "sample"):
        figures = found[step]
        ratio = figures["peak_mib"] / found["stream"]["peak_mib"]
        print(f"{step:<10}{figures['seconds']:>10.1f}{figures['peak_mib']:>10.0f}{ratio:>13.2f}")
    if arguments.out:
        arguments.out.write_text(json.dumps({"rows": arguments.rows, **found}, indent=1))


if __name__ == "__main__":
    main()
