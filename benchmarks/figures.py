"""The pictures of the documentation.

    pip install -c constraints.txt '.[papers]'
    python benchmarks/figures.py landing --out docs/pictures
    python benchmarks/figures.py shapes --out docs/pictures/shapes.png
    python benchmarks/figures.py images DATA --out docs/pictures/images.png
    python benchmarks/figures.py sweep SWEEP.json... --out docs/pictures/sweep.png

`sweep` draws what `adult.py` and `images.py` wrote with --out at several epsilons.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import sfumato
from sfumato.columns.kinds import Categorical, Continuous, Image
from sfumato.demo import demo_schema

mpl.use("Agg")
from matplotlib import pyplot as plt

LABELS = tuple("0123456789")
ROWS = 20_000
SHOWN = 2_000
INK, MADE = "#1b3a57", "#c1502e"


def landing(out: Path, epsilon: float) -> None:
    """Draw the demonstration's table into a folder: real rows, samples, and the mean by group that its schema names."""
    frame = randhie.load_pandas().data
    release = sfumato.MaxEntropy(epsilon=epsilon, delta=1e-6).fit(frame, schema=demo_schema(), target="hlthf")
    made = release.sample(len(frame))
    figures = {name: plt.subplots(figsize=(4.4, 3.4)) for name in ("visits", "diseases", "answer")}
    axes = [axis for _, axis in figures.values()]
    visits = np.arange(16)
    for rows, colour, shift, name in ((frame, INK, -0.2, "records"), (made, MADE, 0.2, "synthetic rows")):
        shares = [(rows["mdvis"] == k).mean() for k in visits]
        axes[0].bar(visits + shift, shares, width=0.4, color=colour, label=name)
        bins = np.arange(0, 61, 3)
        axes[1].hist(rows["disea"], bins=bins, density=True, histtype="step", color=colour, linewidth=1.8, label=name)
    axes[0].set(xlabel="visits to a doctor in a year", ylabel="share of rows")
    axes[1].set(xlabel="index of chronic diseases", ylabel="density")
    groups = ("individual\ndeductible", "no\ndeductible")
    by_label = release.mean("mdvis", by="idp")
    for place, label in enumerate(("1", "0")):
        answer = by_label[label]
        words = {"label": "the release’s answer, 95 %"} if place == 0 else {}
        axes[2].errorbar(answer.value, place, xerr=1.96 * answer.std_error, fmt="o", color=MADE, capsize=4, **words)
        real = frame.loc[frame["idp"].astype(int) == int(label), "mdvis"].mean()
        axes[2].plot(real, place, "|", color=INK, ms=22, mew=2, **({"label": "of the records"} if place == 0 else {}))
    axes[2].set(yticks=(0, 1), yticklabels=groups, ylim=(-0.6, 1.9), xlabel="mean visits, by plan")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
    out.mkdir(parents=True, exist_ok=True)
    for name, (figure, _) in figures.items():
        figure.tight_layout()
        figure.savefig(out / f"landing_{name}.png", dpi=130)


def shapes(out: Path) -> None:
    """Draw what survives: a ring among few and among many columns, and parity without and with a target."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, ROWS)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) * rng.normal(0.7, 0.04, (ROWS, 1))
    square = rng.uniform(-1, 1, (ROWS, 2))
    parity = (square[:, 0] * square[:, 1] > 0).astype(int)
    many = np.concatenate([ring, rng.uniform(-1, 1, (ROWS, 98))], axis=1)
    cases = [
        ("a ring, 2 columns", ring, None, None),
        ("a ring, 100 columns", many, None, None),
        ("parity, no target", square, parity, None),
        ("parity, as target", square, parity, "part"),
    ]
    figure, axes = plt.subplots(1, 8, figsize=(16, 2.5))
    for i, (title, points, part, target) in enumerate(cases):
        frame = pd.DataFrame(np.clip(points, -1, 1), columns=["x", "y", *(f"c{j}" for j in range(points.shape[1] - 2))])
        columns: dict[str, Any] = {name: Continuous(lower=-1, upper=1) for name in frame}
        if part is not None:
            frame["part"] = part.astype(str)
            columns["part"] = Categorical(categories=("0", "1"))
        schema = sfumato.Schema(columns=columns, rows=ROWS)
        made = sfumato.MaxEntropy(epsilon=1.0).fit(frame, schema=schema, target=target).sample(SHOWN, seed=0)
        for axis, rows in ((axes[2 * i], frame[:SHOWN]), (axes[2 * i + 1], made)):
            colour = np.where(rows["part"] == "1", INK, MADE) if part is not None else INK
            axis.scatter(rows["x"], rows["y"], s=1.5, c=colour, linewidths=0)
            axis.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), xticks=[], yticks=[], aspect="equal")
        axes[2 * i].set_title(f"{title}: rows", fontsize=9, loc="left")
        axes[2 * i + 1].set_title("samples", fontsize=9, loc="left")
    figure.tight_layout()
    save(figure, out)


def images(data: Path, out: Path, epsilon: float) -> None:
    """Draw test images of MNIST beside samples for both purposes."""
    with np.load(data / "mnist.npz") as stored:
        x, y, shown_x, shown_y = (stored[k] for k in ("x_train", "y_train", "x_test", "y_test"))
    schema = sfumato.Schema(columns={"x": Image(shape=(28, 28)), "y": Categorical(categories=LABELS)}, rows=60_000)
    blocks = [("real", shown_x, shown_y)]
    for title, purpose in (("fidelity", sfumato.Fidelity()), ("training", sfumato.Training())):
        release = sfumato.MaxEntropy(epsilon=epsilon, delta=1e-5, purpose=purpose).fit((x, y), schema=schema)
        made = release.sample(2_000)
        blocks.append((title, made["x"], made["y"].astype(int)))
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.3))
    for axis, (title, pictures, classes) in zip(axes, blocks, strict=True):
        sheet = np.vstack([np.hstack(pictures[classes == label][:10]) for label in range(10)])
        axis.imshow(sheet, cmap="gray", vmin=0, vmax=255)
        axis.set_title(title, fontsize=12)
        axis.axis("off")
    figure.tight_layout()
    save(figure, out)


def sweep(files: list[Path], out: Path) -> None:
    """Draw scores against epsilon: one panel per data set, means of runs, a line per score."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for file in files:
        content = json.loads(file.read_text())
        title, epsilon, scores = scores_of(content)
        for name, value in scores.items():
            panels.setdefault(title, {}).setdefault(name, []).append((epsilon, value))
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 3.6), squeeze=False)
    for axis, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for name, points in lines.items():
            axis.plot(*zip(*sorted(points), strict=True), marker="o", label=name)
        axis.set(title=title, xlabel="ε (δ = 1e-5)", xscale="log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=9)
    figure.tight_layout()
    save(figure, out)


def scores_of(content: dict[str, Any]) -> tuple[str, float, dict[str, float]]:
    """Return title, epsilon and mean scores of what `adult.py` or `images.py` wrote."""
    if "settings" in content:
        settings, mean = content["settings"], content["mean"]
        scores = {name: mean[name] for name in ("accuracy", "precision", "recall")}
        return settings["images"], settings["epsilon"], scores
    names = {"auroc": "AUROC", "auprc": "AUPRC", "tvd_2way": "2-way total variation"}
    fits = content["fits"]
    return "adult", content["epsilon"], {text: float(np.mean([f[n] for f in fits])) for n, text in names.items()}


def save(figure: Any, out: Path) -> None:
    """Write a picture."""
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def main() -> None:
    """Draw one of the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", choices=["landing", "shapes", "images", "sweep"])
    parser.add_argument("inputs", type=Path, nargs="*")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.picture == "landing":
        landing(arguments.out, arguments.epsilon)
    elif arguments.picture == "shapes":
        shapes(arguments.out)
    elif arguments.picture == "images":
        images(arguments.inputs[0], arguments.out, arguments.epsilon)
    else:
        sweep(arguments.inputs, arguments.out)


if __name__ == "__main__":
    main()
