"""The acceptance protocol on Adult: train on synthetic, test on real.

UCI Adult (Becker and Kohavi 1996), its 45,222 complete rows. A tenth is held out with seed 0
before anything else. Three releases are fitted to the rest at (epsilon, 1e-5) with secret noise, each is
sampled as often as rows were fitted, and four classifiers of `income` trained on the sample are
scored on the held-out rows. Beside them: the same classifiers trained on the real rows, and mean
2-way total variation against the fitted rows and, in brackets, the held-out ones.

    python benchmarks/adult.py DATA/adult.parquet [--validate] [--fits 3] [--out scores.json]

The data are not part of the project: pass the path of `adult.parquet`, or set SFUMATO_DATA to its
folder. Settings are chosen with `--validate`, which never touches the held-out rows: it scores on
a third of the training rows (seed 1) and fits to the other two thirds.

The schema below was written from the UCI code book and public knowledge, not from the records.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import sfumato
from sfumato.columns.kinds import Categorical, Integer, Ordinal
from sfumato.evaluate import evaluate, total_variation

TARGET, POSITIVE = "income", ">50K"
DELTA = 1e-5
NOMINAL_ROWS = 40_000
COMPLETE_ROWS = 45_222


def labels(text: str) -> tuple[str, ...]:
    """Return the words of a text: no label of Adult has a space."""
    return tuple(text.split())


WORKCLASS = labels("""
    Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked
""")
EDUCATION = labels("""
    Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm
    Bachelors Masters Prof-school Doctorate
""")
MARITAL_STATUS = labels("""
    Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent
    Married-AF-spouse
""")
OCCUPATION = labels("""
    Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners
    Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv
    Armed-Forces
""")
RELATIONSHIP = labels("Wife Own-child Husband Not-in-family Other-relative Unmarried")
RACE = labels("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black")
NATIVE_COUNTRY = labels("""
    United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India
    Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico
    Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala
    Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong
    Holand-Netherlands
""")

SCHEMA = sfumato.Schema(
    rows=NOMINAL_ROWS,
    columns={
        "age": Integer(lower=17, upper=90),
        "workclass": Categorical(categories=WORKCLASS),
        "fnlwgt": Integer(lower=0, upper=1_500_000),
        "education": Ordinal(categories=EDUCATION),
        "education-num": Integer(lower=1, upper=16),
        "marital-status": Categorical(categories=MARITAL_STATUS),
        "occupation": Categorical(categories=OCCUPATION),
        "relationship": Categorical(categories=RELATIONSHIP),
        "race": Categorical(categories=RACE),
        "sex": Categorical(categories=("Female", "Male")),
        "capital-gain": Integer(lower=0, upper=99_999),
        "capital-loss": Integer(lower=0, upper=4_500),
        "hours-per-week": Integer(lower=1, upper=99),
        "native-country": Categorical(categories=NATIVE_COUNTRY),
        "income": Categorical(categories=("<=50K", POSITIVE)),
    },
)


def split(frame: Any, *, share: float, seed: int) -> tuple[Any, Any]:
    """Return (the rest, a random share of the rows)."""
    order = np.random.default_rng(seed).permutation(len(frame))
    n = round(share * len(frame))
    rest, part = frame.iloc[order[n:]], frame.iloc[order[:n]]
    return rest.reset_index(drop=True), part.reset_index(drop=True)


def read(path: Path, *, validate: bool) -> tuple[Any, Any]:
    """Return (training rows, rows to score on)."""
    import pandas as pd

    complete = pd.read_parquet(path).dropna().reset_index(drop=True)
    if len(complete) != COMPLETE_ROWS:
        sys.exit(f"Expected {path.name} to hold Adult, got another table.")
    train, test = split(complete, share=0.1, seed=0)
    return split(train, share=1 / 3, seed=1) if validate else (train, test)


def one_fit(train: Any, test: Any, epsilon: float) -> dict[str, Any]:
    """Fit, sample as many rows as were fitted, and score."""
    synthesizer = sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA)
    start = time.perf_counter()
    release = synthesizer.fit(train, schema=SCHEMA, target=TARGET)
    fitted = time.perf_counter()
    synthetic = release.sample(len(train))
    sampled = time.perf_counter()
    scores = evaluate(train, synthetic, schema=SCHEMA, test=test, target=TARGET, positive=POSITIVE)
    utility, fidelity = scores["utility"], scores["fidelity"]
    return {
        "auroc": utility["auroc"],
        "auprc": utility["auprc"],
        "tvd_1way": fidelity["tvd_1way"],
        "tvd_2way": fidelity["tvd_2way"],
        "tvd_2way_test": total_variation(test, synthetic, schema=SCHEMA, k=2),
        "fit_seconds": fitted - start,
        "sample_seconds": sampled - fitted,
        "per_classifier": utility["per_classifier"],
        "real": utility["real"],
        "private": release.certificate.private,
        "epsilon": release.certificate.epsilon,
    }


def show(fits: list[dict[str, Any]]) -> None:
    """Print the mean of the fits beside the real data."""
    columns = {key: [fit[key] for fit in fits] for key, v in fits[0].items() if isinstance(v, float)}
    mean = {key: statistics.fmean(values) for key, values in columns.items()}
    spread = {key: max(values) - min(values) for key, values in columns.items()}
    real = fits[0]["real"]
    print(f"{'':<22}{'synthetic':>20}{'range':>9}{'real':>9}")
    for key, label in (("auroc", "AUROC, mean of 4"), ("auprc", "AUPRC, mean of 4")):
        print(f"{label:<22}{mean[key]:>20.4f}{spread[key]:>9.4f}{real[key]:>9.4f}")
    for name, figures in real["per_classifier"].items():
        ours = [fit["per_classifier"][name] for fit in fits]
        both = [statistics.fmean(one[key] for one in ours) for key in ("auroc", "auprc")]
        theirs = f"{figures['auroc']:.3f}/{figures['auprc']:.3f}"
        print(f"  {name:<20}{both[0]:>12.4f}/{both[1]:.4f} {theirs:>17}")
    tvd = f"{mean['tvd_2way']:.4f} ({mean['tvd_2way_test']:.4f})"
    print(f"{'2-way TVD':<22}{tvd:>20}{spread['tvd_2way']:>9.4f}{0:>9}")
    print(f"{'1-way TVD':<22}{mean['tvd_1way']:>20.4f}{spread['tvd_1way']:>9.4f}{0:>9}")
    print(f"{'seconds of fit':<22}{mean['fit_seconds']:>20.2f}{spread['fit_seconds']:>9.2f}")
    print("Made from real records without noise: these figures are NOT private.")


def locate(given: Path | None) -> Path:
    folder = os.environ.get("SFUMATO_DATA")
    path = given or (Path(folder) / "adult.parquet" if folder else None)
    if path is None or not path.is_file():
        print("Skipped: no adult.parquet. Pass its path, or set SFUMATO_DATA to its folder.")
        sys.exit(0)
    return path


def arguments_of(text: str) -> argparse.ArgumentParser:
    """What every script on Adult takes."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", help="path of adult.parquet")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--validate", action="store_true", help="score on training rows instead")
    return parser


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--out", type=Path, help="also write every figure as JSON")
    arguments = parser.parse_args()
    train, test = read(locate(arguments.data), validate=arguments.validate)
    fits = []
    for number in range(arguments.fits):
        fits.append(one_fit(train, test, arguments.epsilon))
        print(f"fit {number + 1} of {arguments.fits} scored", file=sys.stderr)
    rows = "validation" if arguments.validate else "test"
    settings = {"epsilon": arguments.epsilon, "delta": DELTA, "scored_on": rows}
    print(f"Adult, {len(fits)} fits, {settings}")
    show(fits)
    if arguments.out:
        arguments.out.write_text(json.dumps({**settings, "fits": fits}, indent=1))


if __name__ == "__main__":
    main()
