"""Figure 5 on the paper's own 400 faces: loadings as published, at printed ε = 0.2, 0.3 and without noise.

    python papers/dp_em/faces.py --data FOLDER [--side 64] [--splits 3]

Faces (`att_faces.npz`) are cut down to 64 × 64, less the middle grey, and divided by the largest norm among them, as
the paper has it: that norm is read off the records, so this is NOT PRIVATE. Ten factors, δ = 1e-4. What is measured is
how much of the subspace of the loadings without noise is found, and the noise's spectrum against the moment's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from as_published import FACTORS, factor_noise, factors
from figure_5 import draw
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import parser, read
from jobs import Results

EPSILONS = (0.2, 0.3)


def load(folder: Path, side: int) -> np.ndarray:
    """Return faces as rows of norm at most 1."""
    with np.load(folder / "att_faces.npz") as stored:
        pictures = [Image.fromarray(face) for face in stored["images"]]
    faces = [np.asarray(picture.resize((side, side), Image.Resampling.BOX)) for picture in pictures]
    rows = (np.stack(faces).reshape(len(faces), -1) - 127.5) / 127.5
    return rows / np.linalg.norm(rows, axis=1).max()


def main() -> None:
    """Fit, draw, and print."""
    arguments = parser(__doc__, "dp_em", repeats=("splits", 3))
    arguments.add_argument("--side", type=int, default=64)
    arguments = arguments.parse_args()
    rows, side = load(read(arguments), arguments.side), arguments.side
    results = Results(arguments.out / "faces.jsonl")
    drawn = {"no noise": factors(rows, 0.0, 0)}
    exact = np.linalg.qr(drawn["no noise"])[0]
    found = {}
    for epsilon in EPSILONS:
        std, added, replaced = factor_noise(epsilon, len(rows))
        noisy = [factors(rows, std, seed) for seed in range(arguments.splits)]
        drawn[f"printed ε = {epsilon:g}"] = noisy[0]
        found[f"{len(rows)} faces, printed ε = {epsilon:g}"] = {
            "overlap": [round(float(np.sum((np.linalg.qr(one)[0].T @ exact) ** 2)) / FACTORS, 4) for one in noisy],
            "true epsilon, add/remove": round(added, 3),
            "true epsilon, replace one": round(replaced, 3),
            "largest eigenvalue of the noise": round(2 * std * side, 3),
        }
    top = float(np.linalg.norm(rows, 2) ** 2 / len(rows))
    results.note("faces", {"private": False, "largest eigenvalue": round(top, 3), "runs": found})
    draw({name: one.T for name, one in drawn.items()}, (side, side), arguments.out / "figure_5_faces.png")


if __name__ == "__main__":
    main()
