"""What views of a release cost beside its fit, however many labels and columns there are.

Makes up tables of two columns of 900 labels, five of 300, sixty of 10, twelve mixed ones, 200 columns, 200 of which a
tenth of the cells is missing, and ten columns beside a target of 100 and 200 classes; fits each at epsilon = 1, and
makes report, folder to publish, list of answers and the studio's page of the release, each in a process of its own,
whose memory is limited so that it cannot take the machine down. Reports seconds of processor time and peak resident
memory, without and with imports, and whether a view stays within its bound: the fit's seconds and three more, and 600
MB.

    python benchmarks/views.py [--tables mixed wide] [--rows 20000] [--limit 4000] [--out figures.json]
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
import pandas as pd

MEGABYTE = 10**6
MORE_SECONDS, MOST_MEGABYTES = 3.0, 600
MIXED = (37, 25, 18, 7, 5, 2)  # labels, beside as many numbers
TABLES = {"2 x 900": (900,) * 2, "5 x 300": (300,) * 5, "60 x 10": (10,) * 60, "mixed": MIXED, "wide": MIXED * 17}
TABLES |= {"gaps": MIXED * 17, "100 classes": (100, *MIXED[:5]), "200 classes": (200, *MIXED[:5])}
NUMBERS = ("mixed", "wide", "gaps", "100 classes", "200 classes")  # beside labels
CLASSES = ("100 classes", "200 classes")  # of the first column, the target; the tables have ten more
MISSING = 0.1  # of the cells of every column


def columns_of(table: str) -> dict[str, dict[str, object]]:
    """Return the columns of a made-up table; in the last ones every second one holds numbers."""
    columns: dict[str, dict[str, object]] = {}
    for place, n in enumerate(TABLES[table]):
        gaps = {"nullable": True} if table == "gaps" else {}
        labels = {"kind": "categorical", "categories": [f"label {label:03d}" for label in range(n)], **gaps}
        columns[f"labels {place}"] = labels
        if table in NUMBERS:
            columns[f"number {place}"] = {"kind": "integer", "lower": 0, "upper": 100, **gaps}
    return dict(list(columns.items())[: 11 if table in CLASSES else 200])


def make_table(table: str, rows: int) -> pd.DataFrame:
    """Return made-up rows whose columns go together; a few labels are common, most are rare."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal(rows)
    columns = {}
    for name, facts in columns_of(table).items():
        own = 0.6 * common + 0.8 * rng.standard_normal(rows)
        part = pd.Series(own).rank(pct=True).to_numpy() - 0.5 / rows
        if facts["kind"] == "integer":
            columns[name] = np.floor(100 * part).astype(np.int64)
        else:
            labels = np.array(facts["categories"])
            columns[name] = labels[np.floor(len(labels) * part**3).astype(np.int64)]
        if facts.get("nullable"):
            columns[name] = pd.Series(columns[name]).mask(rng.random(rows) < MISSING)
    return pd.DataFrame(columns)


def fit(table: str, rows: int, folder: Path) -> None:
    import sfumato

    schema = sfumato.Schema.from_dict({"rows": rows, "columns": columns_of(table)})
    target = "labels 0" if table in CLASSES else None
    release = sfumato.MaxEntropy(epsilon=1.0, delta=1e-6).fit(folder / "rows.parquet", schema=schema, target=target)
    release.save(folder / "release.sfm")


def report(table: str, rows: int, folder: Path) -> None:
    import sfumato

    sfumato.load(folder / "release.sfm").report(folder / "page.html")


def pack(table: str, rows: int, folder: Path) -> None:
    import sfumato

    sfumato.pack(folder / "release.sfm", folder / "publish")


def answers(table: str, rows: int, folder: Path) -> None:
    import sfumato

    sfumato.load(folder / "release.sfm").answers()


def studio(table: str, rows: int, folder: Path) -> None:
    """The page of the release; the report that it links to is that of `report`, and its folder that of `pack`."""
    from sfumato.studio.pages import Pages
    from sfumato.studio.session import StudioSession

    shown = Pages(StudioSession(folder)).fit({})
    if shown.status_code != 200 or b"release.sfm" not in shown.body:
        raise RuntimeError("The studio shows no release.")


STEPS = {step.__name__: step for step in (fit, report, pack, answers, studio)}


def run_step(step: str, table: str, rows: int, folder: Path) -> None:
    """Run one step in this process and print its seconds and peak memory, imports untimed."""
    import sfumato  # noqa: F401

    start = time.process_time()
    STEPS[step](table, rows, folder)
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}))


def measure(table: str, rows: int, folder: Path, limit: int) -> dict[str, dict[str, object]]:
    """Run every step in a process of its own, of no more than `limit` megabytes of address space."""
    make_table(table, rows).to_parquet(folder / "rows.parquet")
    found: dict[str, dict[str, object]] = {}
    for step in STEPS:
        call = [sys.executable, "-W", "ignore", __file__, "--step", step, "--tables", table, "--rows", str(rows)]
        done = subprocess.run(
            [*call, "--folder", str(folder), "--limit", str(limit)], check=False, capture_output=True, text=True
        )
        if done.returncode == 0:
            found[step] = json.loads(done.stdout)
            most = found["fit"]["seconds"] + MORE_SECONDS
            found[step]["kept"] = step == "fit" or (
                found[step]["seconds"] <= most and found[step]["peak_mb"] <= MOST_MEGABYTES
            )
        else:
            found[step] = {"failed": done.stderr.strip().splitlines()[-1][:200], "kept": False}
        print(f"| {table} | {step} | {shown(found[step])} |", flush=True)
    return found


def shown(figures: dict[str, object]) -> str:
    if "failed" in figures:
        return f"{figures['failed']} | | no"
    return f"{figures['seconds']:.1f} s | {figures['peak_mb']:.0f} MB | {'yes' if figures['kept'] else 'no'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--limit", type=int, default=4_000, help="megabytes of address space of each process")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        resource.setrlimit(resource.RLIMIT_AS, (arguments.limit * MEGABYTE,) * 2)
        run_step(arguments.step, arguments.tables[0], arguments.rows, arguments.folder)
        return
    print("| table | step | processor time | peak memory | within its bound |\n| --- | --- | --- | --- | --- |")
    figures = {}
    for table in arguments.tables:
        with tempfile.TemporaryDirectory() as folder:
            figures[table] = measure(table, arguments.rows, Path(folder), arguments.limit)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
