"""What the papers' page says of DPMix's Table II, and of CIFAR-10: from expected.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from judged import Cell, judge, reasons
from tabulated import Row, made_by, spread, table

READINGS = {"pixels in [0, 1]": ("subsets", "projection"), "norms 1": ("unit", "unit-projection")}
IMAGES = {"mnist": ("MNIST", 64), "cifar10": ("CIFAR-10", 128)}  # and the paper's best ℓ, which it denoises


def table_2(expected: Mapping[str, Any]) -> list[str]:
    """Table II of both data sets: the printed forms in two readings, and sound ones with a linear model."""
    text = []
    for images, (title, degree) in IMAGES.items():
        sound = expected["test_images"].get(f"{images}, linear", {})
        done = expected["table_2"][images]
        text += [
            f"### Table II: {title}",
            table(
                ["", "printed", *READINGS, "sound, linear", "verdict"],
                _rows(expected["paper"]["table_2"][images], done["found"], sound, images, degree),
            ),
            made_by(
                {done["command"]: ["the readings of baselines, a cell each"]}
                | {done["denoised"]: ["the readings with denoising"]}
                | ({done["sound"]: ["sound, linear"]} if "sound" in done else {})
            ),
        ]
    return text


def _rows(
    printed: Mapping[str, float], found: Mapping[str, Any], sound: Mapping[str, Any], images: str, degree: int
) -> Iterable[Row]:
    for name, goal in printed.items():
        cells = {
            reading: last_epochs(found, *_cell(name, samplings, degree)) for reading, samplings in READINGS.items()
        }
        shown = [f"{spread(runs)} ({len(runs)})" if runs else "–" for runs in cells.values()]
        linear = f"{sound[name]['accuracy']:.3f}" if name in sound else "–"
        tried = {reading: Cell(goal, runs) for reading, runs in cells.items() if runs}
        judged = tried or {"ours": Cell(goal, [])}
        yield [name, f"{goal:.3f}", *shown, linear, judge(judged, reasons("dpmix", f"table_2_{images}", name))]


def _cell(name: str, samplings: tuple[str, str], degree: int) -> tuple[str, bool]:
    """Return the cell of as_published.py that a row is in a reading, and whether it is denoised."""
    row, _, epsilon = name.partition(" epsilon=")
    if row.startswith("random projection"):
        return f"{samplings[1]}:{epsilon}:{row.split()[-1]}", False
    return f"{samplings[0]}:{epsilon}:{1 if row.startswith('local') else degree}", row.endswith("denoising")


def last_epochs(found: Mapping[str, Any], cell: str, denoised: bool) -> list[float]:
    """Return accuracies of a cell after the last epoch, a seed each."""
    return [
        run["accuracy by epoch"][-1]
        for name, run in found.items()
        if name.partition(",")[0] == cell and (", denoised" in name) == denoised
    ]
