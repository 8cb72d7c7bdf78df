"""Processor time of reading a million records into codes, beside the sources of another checkout, in turn.

Tables are made: words, codes in digits, intervals, numbers, dates, days with a time, truth values, whose each row is;
as CSV, as Parquet and as a pandas frame. Each reading is a process of its own, one thread; the least of some counts.

    python benchmarks/readers.py [--against ../before/src] [--rows 1000000] [--times 3]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

LABELS = {
    "word": [f"a word of {i}" for i in range(12)],
    "digits": [f"{i:02}" for i in range(40)],
    "code": list(range(100, 160)),
    "many": [f"K{i:03}.{i % 10}" for i in range(900)],
    "span": [f"({i}, {i + 10}]" for i in range(0, 100, 10)],
}
COLUMNS: dict[str, Any] = {
    **{name: {"kind": "categorical", "categories": labels, "other": "other"} for name, labels in LABELS.items()},
    "whole": {"kind": "integer", "lower": 0, "upper": 10_000},
    "number": {"kind": "continuous", "lower": -5, "upper": 5, "nullable": True},
    "day": {"kind": "datetime", "lower": "2000-01-01", "upper": "2020-12-31"},
    "moment": {"kind": "datetime", "lower": "2000-01-01", "upper": "2020-12-31", "resolution": "second"},
    "yes": "boolean",
}
CASES = {
    **{name: [name] for name in COLUMNS},
    "labels": list(LABELS),
    "numbers and dates": ["whole", "number", "day", "moment", "yes"],
    "all": list(COLUMNS),
    "all, of units": [*COLUMNS, "owner"],
}


def made(rows: int) -> Any:
    """The records, as a pandas frame."""
    import pandas as pd

    rng = np.random.default_rng(0)
    columns = {name: np.array(labels)[rng.integers(0, len(labels), rows)] for name, labels in LABELS.items()}
    number = rng.normal(size=rows).round(3)
    number[rng.random(rows) < 0.05] = np.nan
    seconds = rng.integers(0, 20 * 365 * 86_400, rows)
    start = np.datetime64("2000-01-01", "s")
    return pd.DataFrame(
        {
            **columns, "whole": rng.integers(0, 10_001, rows), "number": number,
            "day": (start + seconds).astype("datetime64[D]").astype("datetime64[s]"), "moment": start + seconds,
            "yes": rng.random(rows) < 0.3, "owner": rng.integers(0, rows // 2, rows),
        }
    )  # fmt: skip


def read(data: Any, case: str, rows: int) -> float:
    """Seconds of processor time that one pass over the coded records takes."""
    import sfumato
    from sfumato.records.private import PrivateData
    from sfumato.records.table_sources import open_records

    columns = {name: COLUMNS.get(name, "identifier") for name in CASES[case]}
    unit = {"unit": {"column": "owner", "max_rows": 4}} if "owner" in columns else {}
    schema = sfumato.Schema.from_dict({"rows": rows, "columns": columns, **unit})
    begun = time.process_time()
    for _ in PrivateData(open_records(data, schema), schema).coded():
        pass
    return time.process_time() - begun


def run(path: Path, case: str, rows: int, sources: str | None) -> float:
    """Read in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if sources is not None:
        environment["PYTHONPATH"] = sources
    call = [sys.executable, __file__, "--one", str(path), case, "--rows", str(rows)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", help="folder of the other sources")
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        path, case = asked.one
        import pandas as pd

        data = pd.read_parquet(path) if path.endswith(".frame.parquet") else path
        print(json.dumps(read(data, case, asked.rows)))
        return
    with tempfile.TemporaryDirectory() as folder:
        frame = made(asked.rows)
        paths = {kind: Path(folder) / name for kind, name in NAMES.items()}
        frame.to_csv(paths["CSV"], index=False)
        for kind in ("Parquet", "frame"):
            frame.to_parquet(paths[kind])
        for case in asked.cases:
            line = []
            for kind, path in paths.items():
                ours, theirs = [], []
                for _ in range(asked.times):
                    if asked.against:
                        theirs.append(run(path, case, asked.rows, asked.against))
                    ours.append(run(path, case, asked.rows, None))
                ratio = f", {min(ours) / min(theirs):.2f} of the other's" if theirs else ""
                line.append(f"{kind} {min(ours):.2f} s{ratio}")
            print(f"{case:18} " + "; ".join(line), flush=True)


NAMES = {"CSV": "people.csv", "Parquet": "people.parquet", "frame": "people.frame.parquet"}

if __name__ == "__main__":
    main()
