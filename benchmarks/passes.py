"""Processor time of a fit's passes over the records, and of the rest, against rows, columns and classes.

Tables are made: a hidden factor, half of the columns numbers, half labels of two to fifty levels (of 1,000 columns and
more, numbers alone: second moments hold 5,792 entries). Each fit is a process of its own, one thread; figures are CPU
seconds, workers included, so that a busy machine changes them little. With `--against`, each fit runs with the sources
of another checkout too, in turn.

    python benchmarks/passes.py rows|columns|classes [--against ../before/src] [--workers N] [--out figures.json]
    python benchmarks/passes.py draw figures.json ... --picture passes.svg
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CASES: dict[str, list[tuple[int, int, int]]] = {  # rows, columns, classes
    "rows": [(10**5, 12, 2), (10**6, 12, 2), (10**7, 12, 2)],
    "columns": [(50_000, columns, 2) for columns in (12, 50, 200, 617, 2000)],
    "classes": [(10**5, 12, classes) for classes in (2, 26, 1000)],
}
PIECE = 250_000
_NUMBERS_ALONE = 1000
LIMIT = 900  # seconds of one fit
MIB = 1024  # getrusage counts KiB on Linux


def columns_of(columns: int, classes: int) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for j in range(columns - 1):
        levels = (2, 4, 10, 50)[j // 2 % 4]
        number = {"kind": "continuous", "lower": -4, "upper": 4}
        found[f"c{j}"] = (
            number
            if j % 2 or columns >= _NUMBERS_ALONE
            else {"kind": "categorical", "categories": [f"l{i}" for i in range(levels)]}
        )
    found["class"] = {"kind": "categorical", "categories": [f"class {i}" for i in range(classes)]}
    return found


def make(path: Path, rows: int, columns: int, classes: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    load = rng.normal(size=columns) * 0.6
    piece_rows = max(1, min(PIECE, 20_000_000 // columns))
    for start in range(0, rows, piece_rows):
        n = min(piece_rows, rows - start)
        factor, cells = rng.standard_normal(n), {}
        for j, (name, kind) in enumerate(columns_of(columns, classes).items()):
            z = load[j] * factor + rng.standard_normal(n)
            if kind["kind"] == "continuous":
                cells[name] = pa.array(z)
            else:
                labels: Any = kind["categories"]
                codes = (len(labels) / (1 + np.exp(-z))).astype(np.int32).clip(0, len(labels) - 1)
                cells[name] = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(labels)).dictionary_decode()
        table = pa.table(cells)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def fit(path: Path, rows: int, columns: int, classes: int, workers: int) -> dict[str, float]:
    """Fit in this process; return CPU seconds of each pass and of the rest."""
    import sfumato
    from sfumato.fitting import account

    passes: dict[str, float] = {}
    inner = account.Account.measure

    def measure(self: Any, stage: str, *arguments: Any, **named: Any) -> Any:
        begun = cpu()
        found = inner(self, stage, *arguments, **named)
        passes[stage] = cpu() - begun
        return found

    account.Account.measure = measure  # type: ignore[method-assign]
    schema = sfumato.Schema.from_dict({"rows": rows, "columns": columns_of(columns, classes)})
    begun, wall = cpu(), time.perf_counter()
    more = {"workers": workers} if workers > 1 else {}
    sfumato.MaxEntropy(epsilon=1.0, delta=1e-9).fit(path, schema=schema, target="class", **more)
    total = cpu() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    found = {"total": total, "wall": time.perf_counter() - wall, "peak_mib": peak, "rest": total - sum(passes.values())}
    return found | passes


def cpu() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def run(case: tuple[int, int, int], path: Path, sources: str | None, workers: int) -> dict[str, float] | None:
    """Run one fit in a process of its own; None if it takes too long."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if sources is not None:
        environment["PYTHONPATH"] = sources
    call = [sys.executable, __file__, "fit", *map(str, case), str(path), str(workers)]
    try:
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout.splitlines()[-1])


def measure(what: str, against: str | None, workers: int, only: int | None) -> list[dict[str, Any]]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        place = ["rows", "columns", "classes"].index(what)
        for case in (case for case in CASES[what] if only in (None, case[place])):
            path = Path(folder) / "data.parquet"
            make(path, *case)
            figures: dict[str, Any] = dict(zip(("rows", "columns", "classes"), case, strict=True))
            figures["now"] = run(case, path, None, workers)
            if against is not None:
                figures["before"] = run(case, path, against, 1)
            figures["load"] = os.getloadavg()[0]
            print(json.dumps(figures), file=sys.stderr)
            found.append(figures)
    return found


def show(what: str, found: list[dict[str, Any]]) -> None:
    print(f"{what:<10}{'passes s':>10}{'rest s':>9}{'total s':>9}{'peak MiB':>10}{'÷ before: passes':>18}{'total':>8}")
    for figures in found:
        now, before = figures["now"], figures.get("before")
        if now is None:
            print(f"{figures[what]:<10}{f'over {LIMIT} s':>28}")
            continue
        passes = now["total"] - now["rest"]
        line = f"{figures[what]:<10}{passes:>10.2f}{now['rest']:>9.1f}{now['total']:>9.1f}{now['peak_mib']:>10.0f}"
        if before is not None:
            line += f"{passes / (before['total'] - before['rest']):>18.2f}{now['total'] / before['total']:>8.2f}"
        print(line)


def draw(files: list[Path], picture: Path) -> None:
    import matplotlib.pyplot as plt

    kept = [json.loads(file.read_text()) for file in files]
    figure, axes = plt.subplots(1, len(kept), figsize=(4.2 * len(kept), 3.4), squeeze=False)
    for axis, data in zip(axes[0], kept, strict=True):
        what = data["what"]
        for name, style in (("before", "--"), ("now", "-")):
            done = [entry for entry in data["figures"] if entry.get(name)]
            x = [entry[what] for entry in done]
            for part, colour in (("passes", "C0"), ("rest", "C1")):
                y = [e[name]["rest"] if part == "rest" else e[name]["total"] - e[name]["rest"] for e in done]
                if done:
                    axis.loglog(x, y, style, marker="o", color=colour, label=f"{part}, {name}")
        axis.set(xlabel=what, ylabel="CPU seconds")
        axis.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(picture)


def main() -> None:
    if sys.argv[1:2] == ["fit"]:
        rows, columns, classes, path, workers = sys.argv[2:]
        print(json.dumps(fit(Path(path), int(rows), int(columns), int(classes), int(workers))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=[*CASES, "draw"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--only", type=int, help="one case, by its number of rows, columns or classes")
    parser.add_argument("--against", help="a folder of other sources")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    parser.add_argument("--picture", type=Path, default=Path("passes.svg"))
    arguments = parser.parse_args()
    if arguments.what == "draw":
        draw(arguments.files, arguments.picture)
        return
    found = measure(arguments.what, arguments.against, arguments.workers, arguments.only)
    show(arguments.what, found)
    if arguments.out:
        arguments.out.write_text(json.dumps({"what": arguments.what, "figures": found}, indent=1))


if __name__ == "__main__":
    main()
