"""The acceptance protocol on tables of numeric columns: seizure, credit and ISOLET.

As `adult.py`: a tenth held out with seed 0 before anything else, releases at (epsilon, 1e-5) with secret noise, four
classifiers trained on samples and scored on real rows. Settings are chosen with `--validate`, which never touches the
held-out rows: it scores on a third of the training rows (seed 1).

    python benchmarks/tables.py DATA {esr,credit,isolet} [--validate] [--fits 3] [--out scores.json]

Bounds are public knowledge: 12-bit amplitudes for the EEG; [-1, 1] for ISOLET, by its documentation. Principal
components of credit have none, so wide ones are taken, and EUR 25,691 for the amount, from the data set's description.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from adult import DELTA, split

import sfumato
from sfumato.columns.kinds import Categorical, ColumnKind, Continuous, Integer
from sfumato.evaluate.utility import classifier_scores

LABEL = Categorical(categories=("0", "1"))
VOWELS = (1, 5, 9, 15, 21)


def esr(folder: Path) -> tuple[pd.DataFrame, sfumato.Schema, str]:
    """Seizure (class 1) against the rest."""
    frame = pd.read_parquet(folder / "esr.parquet")
    columns: dict[str, ColumnKind] = {name: Integer(lower=-2048, upper=2047) for name in frame.columns.drop("y")}
    frame["y"] = np.where(frame["y"] == 1, "1", "0")
    return frame, sfumato.Schema(columns={**columns, "y": LABEL}, rows=10_000), "y"


def credit(folder: Path) -> tuple[pd.DataFrame, sfumato.Schema, str]:
    """All frauds and 10,000 random normal rows, without the time."""
    frame = pd.read_parquet(folder / "credit_sample.parquet").drop(columns="Time")
    frauds, normal = frame[frame["Class"] == 1], frame[frame["Class"] == 0]
    chosen = np.random.default_rng(0).choice(len(normal), 10_000, replace=False)
    frame = pd.concat([frauds, normal.iloc[chosen]]).reset_index(drop=True)
    frame["Class"] = frame["Class"].astype(str)
    columns: dict[str, ColumnKind] = {name: Continuous(lower=-50, upper=50) for name in frame.columns}
    columns |= {"Amount": Continuous(lower=0, upper=25_691, resolution=0.01), "Class": LABEL}
    return frame, sfumato.Schema(columns=columns, rows=9_000), "Class"


def isolet(folder: Path) -> tuple[pd.DataFrame, sfumato.Schema, str]:
    """Vowels against the rest."""
    stored = pd.read_parquet(folder / "isolet.parquet")
    frame = stored.drop(columns="class") / 10_000
    columns: dict[str, ColumnKind] = {name: Continuous(lower=-1, upper=1, resolution=0.0001) for name in frame.columns}
    frame = frame.assign(vowel=np.where(stored["class"].isin(VOWELS), "1", "0"))
    return frame, sfumato.Schema(columns={**columns, "vowel": LABEL}, rows=7_000), "vowel"


TABLES = {"esr": esr, "credit": credit, "isolet": isolet}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the Parquet files")
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--validate", action="store_true", help="score on training rows instead")
    parser.add_argument("--out", type=Path, help="also write every figure as JSON")
    arguments = parser.parse_args()
    frame, schema, target = TABLES[arguments.table](arguments.data)
    train, test = split(frame, share=0.1, seed=0)
    if arguments.validate:
        train, test = split(train, share=1 / 3, seed=1)

    def scores(rows: Any) -> dict[str, Any]:
        return classifier_scores(rows, test, schema=schema, target=target, positive="1")

    made = []
    for _ in range(arguments.fits):
        start = time.perf_counter()
        release = sfumato.MaxEntropy(epsilon=arguments.epsilon, delta=DELTA).fit(train, schema=schema, target=target)
        seconds = time.perf_counter() - start
        made.append({**scores(release.sample(len(train))), "fit_seconds": seconds})
    real = scores(train)
    rows = "validation" if arguments.validate else "test"
    print(f"{arguments.table}, {len(made)} fits, epsilon = {arguments.epsilon:g}, scored on {rows} rows")
    for key in ("auroc", "auprc"):
        ours = [one[key] for one in made]
        print(f"{key:<8}{np.mean(ours):8.4f}  range {max(ours) - min(ours):.4f}  real {real[key]:.4f}")
    print(f"fit     {np.mean([one['fit_seconds'] for one in made]):8.1f} s")
    print("Made from real records without noise: these figures are NOT private.")
    if arguments.out:
        arguments.out.write_text(json.dumps({"scored_on": rows, "fits": made, "real": real}, indent=1))


if __name__ == "__main__":
    main()
