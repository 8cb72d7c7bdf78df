"""Figure 2: test log-likelihood against ε in 100 dimensions: K = 10, J = 20, δ = 1e-4.

    python papers/dp_em/figure_2.py --data FOLDER [--splits 3] [--validate]

The paper's data, the insurance records of 50,345 patients on 100 principal components, are not public. Their stand-in:
the 60,000 training images of MNIST on their own first 100 principal components, divided by a public bound on the length
of a record and clipped to 1. The axes are exact, as the paper's are, and part of the data set, not of the method. All
else is as in `figure_3.py`; δᵢ is δ/(2M), as the printed one does not meet δ. The published methods are not private as
printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from figure_3 import Problem, run

from sfumato.mechanisms.contributions import clip_rows

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import parser, read

DIMENSION, NORM = 100, 10.0  # an image of 784 pixels in [0, 1] about the mean is rarely longer
STAND_IN = Problem(
    components=10, iterations=20, delta=1e-4, delta_i=1e-4 / 840, unit=NORM, epsilons=(0.1, 0.3, 1.0, 4.0)
)


def load(arguments: argparse.Namespace) -> np.ndarray:
    """Return images on their principal components, at most 1 long."""
    images = np.load(read(arguments) / "mnist.npz")["x_train"].reshape(-1, 784) / 255.0
    images -= images.mean(axis=0)
    _, axes = np.linalg.eigh(images.T @ images)
    return clip_rows(images @ axes[:, : -DIMENSION - 1 : -1], NORM) / NORM


def main() -> None:
    arguments = parser(__doc__, "dp_em", repeats=("splits", 10), validate=True).parse_args()
    title = "100 principal components of MNIST, K = 10, J = 20"
    run(STAND_IN, load(arguments), arguments, figure="figure_2", title=title)


if __name__ == "__main__":
    main()
