"""What was measured, kept beside what the paper prints: adds the cells of a folder of results to expected.json.

    python papers/p3gm/expected.py [--out papers/p3gm/out]

A cell that is there already is kept, one that did not finish is replaced by one that did. Runs from before these
scripts are taken over from benchmarks/results, each with the name of its file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import parser
from jobs import FINISHED, Results

HERE = Path(__file__).parent
DATA = ("adult", "credit", "esr", "isolet")
MEASURED = HERE.parents[1] / "benchmarks" / "results"
KEPT = ("auroc", "auprc", "tvd_2way", "tvd_2way_test", "accuracy", "accuracy_best_epoch", "epsilon")
COSTS = ("status", "limit", "error", "fit_seconds", "seconds", "cpu_seconds", "peak_gib", "epsilon_by_own_account")
COMMAND = "python papers/p3gm/tables.py --data FOLDER"


def taken_over() -> Iterator[tuple[str, dict[str, Any]]]:
    """Runs of earlier benchmarks on held-out rows: key and figures."""
    for name, runs in json.loads((MEASURED / "p3gm.json").read_text()).items():
        data, _, method = name.rpartition(" ")
        for i, run in enumerate(runs):
            yield f"{data} | {method} | p3gm {i}", {**run, "from": "benchmarks/results/p3gm.json"}
    for data in DATA:
        path = MEASURED / ("adult.json" if data == "adult" else f"tables_{data}.json")
        measured = json.loads(path.read_text())
        real = measured.get("real") or measured["fits"][0]["real"]
        yield f"{data} | real | {path.stem}", {**real, "from": f"benchmarks/results/{path.name}"}
        for i, run in enumerate(measured["fits"]):
            yield f"{data} | max-entropy | {path.stem} {i}", {**run, "from": f"benchmarks/results/{path.name}"}
    for name, run in json.loads((MEASURED / "peers.json").read_text())["cells"].items():
        data, method, i = name.split("/")
        if data in DATA and method == "mst":
            yield f"{data} | {method} | peers {i}", {**run, "from": "benchmarks/results/peers.json"}
    for images in ("mnist", "fashion_mnist"):
        for purpose in ("fidelity", "training"):
            path = MEASURED / f"images_{images}_{purpose}.json"
            for i, run in enumerate(json.loads(path.read_text())["runs"]):
                found = {"accuracy": run["accuracy"], "epsilon": run["epsilon"], "fit_seconds": run["fit_s"]}
                key = f"{images} | max-entropy, {purpose} | {path.stem} {i}"
                yield key, {**found, "from": f"benchmarks/results/{path.name}"}


def taught(out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Runs of figure 2, for Table VII: key and figures."""
    for images in ("mnist", "fashion_mnist"):
        for key, run in Results(out / f"figure_2_{images}_test.jsonl").found.items():
            method, _, i = key.partition(" | ")
            name = "max-entropy, fidelity" if method == "max-entropy" else method
            command = f"python papers/p3gm/figure_2.py --data FOLDER --images {images}"
            yield f"{images} | {name} | figure 2 {i}", {**run, "from": command}


def trimmed(run: dict[str, Any]) -> dict[str, Any]:
    """Figures to four digits; of a table's run those that the tables show."""
    kept = (
        (*KEPT, *COSTS, "from") if "auroc" not in run else tuple(k for k in (*KEPT, *COSTS, "from") if k != "accuracy")
    )
    found = {key: round(run[key], 4) if isinstance(run[key], float) else run[key] for key in kept if key in run}
    if "per_classifier" in run:
        scores = run["per_classifier"].items()
        found["per_classifier"] = {name: [round(one["auroc"], 4), round(one["auprc"], 4)] for name, one in scores}
    return found


def merge(kept: dict[str, Any], figures: dict[str, Any]) -> None:
    """Replace the points of a figure that were measured again, and keep the others."""
    for key, value in figures.items():
        if isinstance(value, dict) and isinstance(kept.get(key), dict):
            merge(kept[key], value)
        else:
            kept[key] = value


def main() -> None:
    options = parser(__doc__, "p3gm").parse_args()
    path = HERE / "expected.json"
    expected = json.loads(path.read_text())
    runs = expected["runs"]
    for key, run in taken_over():
        runs.setdefault(key, trimmed(run))
    for key, run in Results(options.out / "tables_test.jsonl").found.items():
        if runs.get(key, {}).get("status") != FINISHED:
            runs[key] = trimmed({**run, "from": COMMAND})
    for key, run in taught(options.out):
        if runs.get(key, {}).get("status") != FINISHED:
            runs[key] = trimmed(run)
    for notes in sorted(options.out.glob("figure_*_figure_*.json")):
        if "_validation_" not in notes.name:
            for name, figures in json.loads(notes.read_text()).items():
                merge(expected["figures"].setdefault(name.replace(" ", "_"), {}), figures)
    path.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(runs)} runs in {path.name}")


if __name__ == "__main__":
    main()
