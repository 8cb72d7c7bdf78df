"""What the figures share: where the data lie, results on disk so that a stopped run goes on, and curves against ε."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def parser(text: str | None, *, runs: int) -> argparse.ArgumentParser:
    """Arguments of every figure."""
    arguments = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=os.environ.get("SFUMATO_DATA"), help="folder of the data")
    arguments.add_argument("--out", type=Path, default=Path("papers/dpgm/out"), help="folder of results and pictures")
    arguments.add_argument("--runs", type=int, default=runs)
    return arguments


def read(arguments: argparse.Namespace) -> Path:
    """Folder of the data, or an error that says how to give it."""
    if arguments.data is None:
        raise SystemExit("Expected the folder of the data: --data FOLDER, or SFUMATO_DATA=FOLDER.")
    return Path(arguments.data)


class Results:
    """Figures by key, one JSON line each; what is there is not computed again."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._found: dict[str, Any] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self._found[entry["key"]] = entry["value"]

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the figure, computing it if it is not on disk."""
        if key not in self._found:
            self._found[key] = compute()
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "value": self._found[key]}) + "\n")
        return self._found[key]

    def note(self, name: str, table: object) -> None:
        """Print a table, and write it beside the results."""
        text = json.dumps({name: table}, indent=1)
        sys.stdout.write(text + "\n")
        safe = "".join(c if c.isalnum() else "_" for c in name)
        (self._path.parent / f"{self._path.stem}_{safe}.json").write_text(text + "\n", encoding="utf-8")


def summary(values: dict[tuple[str, float], list[float]]) -> dict[str, dict[str, list[float]]]:
    """Mean and standard error per method and ε."""
    table: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for (method, epsilon), found in values.items():
        error = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
        table[method][f"{epsilon:g}"] = [round(float(np.mean(found)), 4), round(error, 4)]
    return dict(table)


def draw(table: dict[str, dict[str, list[float]]], path: Path, *, label: str, title: str) -> None:
    """Curves with error bars against ε."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 5))
    for method, entries in table.items():
        means, errors = zip(*entries.values(), strict=True)
        axis.errorbar([float(epsilon) for epsilon in entries], means, yerr=errors, label=method, capsize=2)
    axis.set(xscale="log", xlabel="ε", ylabel=label, title=title)
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
