"""Adult from a CSV with no schema, beside the same rows with one: what discovery costs.

    python benchmarks/adult_without_schema.py DATA/adult.parquet [--validate] [--fits 3]

Rows, classifiers and limits are those of `adult.py`. Without a schema the fit is the command line's, of a CSV of the
training rows: kinds, bounds, categories, missing cells and the number of rows are estimated out of the same ε.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from adult import DELTA, POSITIVE, SCHEMA, TARGET, arguments_of, locate, read

import sfumato
from sfumato.evaluate.utility import classifier_scores


def sfumato_command(*arguments: object) -> None:
    """Run the command line of this installation, quietly."""
    run = "import sys; from sfumato.cli import app; sys.exit(app.run(sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", run, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def without_schema(train: Any, folder: Path, epsilon: float) -> Any:
    """As many synthetic rows as were fitted, from the CSV alone."""
    data, release, made = folder / "train.csv", folder / "release", folder / "made.csv"
    train.to_csv(data, index=False)
    sfumato_command("fit", data, "--epsilon", epsilon, "--delta", DELTA, "--target", TARGET, "--out", release)
    sfumato_command("sample", release, "-n", len(train), "--out", made)
    return pd.read_csv(made)


def with_schema(train: Any, epsilon: float) -> Any:
    """The same with the public schema."""
    method = sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA)
    return method.fit(train, schema=SCHEMA, target=TARGET).sample(len(train))


def main() -> None:
    arguments = arguments_of(__doc__).parse_args()
    train, test = read(locate(arguments.data), validate=arguments.validate)
    found: dict[str, list[float]] = {"without a schema": [], "with a schema": []}
    for _ in range(arguments.fits):
        with tempfile.TemporaryDirectory() as folder:
            samples = without_schema(train, Path(folder), arguments.epsilon), with_schema(train, arguments.epsilon)
        for scores, made in zip(found.values(), samples, strict=True):
            scores.append(classifier_scores(made, test, schema=SCHEMA, target=TARGET, positive=POSITIVE)["auroc"])
    for name, scores in found.items():
        print(f"{name:<18} AUROC {statistics.fmean(scores):.4f}, range {max(scores) - min(scores):.4f}")
    print("Made from real records without noise: these figures are NOT private.")


if __name__ == "__main__":
    main()
