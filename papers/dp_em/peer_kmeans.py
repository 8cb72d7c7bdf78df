"""Figure 4 for diffprivlib's KMeans, in an environment of its own: `pip install diffprivlib pandas pyarrow`.

    python papers/dp_em/peer_kmeans.py --data FOLDER [--splits 10] [--validate]

diffprivlib 0.6 gives pure ε, δ = 0; it draws its own start and number of iterations. Folds and scale are figure 4's.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import KMeans
from places import BOXES, Place, fold, load, variance


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--splits", type=int, default=10)
    arguments.add_argument("--validate", action="store_true")
    arguments = arguments.parse_args()
    tables = {}
    for name, box in list(BOXES.items())[:2]:
        rows, place = load(arguments.data, name), Place(box)
        table = {}
        for epsilon in (0.01, 0.1, 1.0):
            found = []
            for index in range(arguments.splits):
                train, test = fold(rows, index, validate=arguments.validate)
                bounds = (place.inside(place.lower), place.inside(place.upper))
                model = KMeans(5, epsilon=epsilon, bounds=bounds, random_state=index)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    centres = model.fit(place.inside(train)).cluster_centers_
                found.append(variance(place.inside(test), centres))
            table[f"{epsilon:g}"] = [
                round(float(np.mean(found)), 4),
                round(float(np.std(found, ddof=1) / len(found) ** 0.5), 4),
            ]
        tables[name] = table
    print(json.dumps(tables, indent=1))


if __name__ == "__main__":
    main()
