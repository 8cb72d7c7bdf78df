"""What the scripts of papers share: their arguments, means with errors, and curves against ε."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import numpy as np


def parser(
    text: str | None, paper: str, *, repeats: tuple[str, int] | None = None, validate: bool = False
) -> argparse.ArgumentParser:
    """Arguments of a script: folders of data and results, how often it repeats what, `--validate`."""
    arguments = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=os.environ.get("SFUMATO_DATA"), help="folder of the data")
    arguments.add_argument("--out", type=Path, default=Path(f"papers/{paper}/out"), help="folder of results, pictures")
    if repeats:
        arguments.add_argument(f"--{repeats[0]}", type=int, default=repeats[1])
    if validate:
        arguments.add_argument(
            "--validate", action="store_true", help="score on a third of the training rows; test rows are not read"
        )
    return arguments


def read(arguments: argparse.Namespace) -> Path:
    """Folder of the data, or an error that says how to give it."""
    if arguments.data is None:
        raise SystemExit("Expected the folder of the data: --data FOLDER, or SFUMATO_DATA=FOLDER.")
    return Path(arguments.data)


def summary(values: dict[tuple[str, float], list[float]]) -> dict[str, dict[str, list[float]]]:
    """Mean and standard error per method and ε."""
    table: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for (method, epsilon), found in values.items():
        error = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
        table[method][f"{epsilon:g}"] = [round(float(np.mean(found)), 4), round(error, 4)]
    return dict(table)


def pyplot() -> ModuleType:
    """Return matplotlib's pyplot without windows; scripts ask for it when they draw, so that all else runs without."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def draw(table: dict[str, dict[str, list[float]]], path: Path, *, label: str, title: str) -> None:
    """Curves with error bars against ε; what has the one ε 0 is a line."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
    styles = iter(((0, (1, 1)), "--", "-."))
    for method, entries in table.items():
        epsilons = [float(epsilon) for epsilon in entries]
        means, errors = zip(*entries.values(), strict=True)
        if epsilons == [0.0]:
            axis.axhline(means[0], linestyle=next(styles), color="black", linewidth=0.8, label=method)
        else:
            axis.errorbar(epsilons, means, yerr=errors, label=method, capsize=2)
    axis.set(xscale="log", xlabel="ε", ylabel=label, title=title)
    figure.legend(loc="outside right center")
    figure.savefig(path, dpi=120)
    plt.close(figure)
