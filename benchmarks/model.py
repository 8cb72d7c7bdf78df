"""The model of tables on real and made-up tables: worst and mean of several secret fits, beside simpler things.

    python benchmarks/model.py [TABLE ...] [--data DATA] [--epsilon 1] [--fits 5] [--against TREE] [--seed 0]

A tenth of the rows is held out; releases are at (epsilon, 1e-5), add or remove one row. Of each table:

    here          this code; `noiseless` the same without noise
    there         the code of another checkout, its folder named by --against, with the same seeds, in the same run
    independent   columns of a fit that has its whole budget for them, each shuffled alone
    tenth         a tenth of the rows, without noise

and of each the mean and the worst of its fits:

    auroc, r2     of models (adult.py) taught on samples and asked about the rows held out; accuracy of many classes
    2-way, 3-way  mean total variation of pairs and triples of columns, numbers in 20 equal-width bins
    strongest     of the p − 1 pairs that go together most
    flagged       fits whose release says that its model is not what was measured
    cpu           seconds of a fit
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from adult import split
from model_tables import MODEL_TABLES
from sklearn.ensemble import HistGradientBoostingClassifier
from suite import Case
from swift_aim import case_of, scores

import sfumato

DELTA = 1e-5
DATA = ("telco_churn", "california_housing", "magic04", "adult", "ma2019")
HIGHER = ("auroc", "r2", "accuracy")
SHOWN = {"auroc": "auroc", "r2": "r2", "accuracy": "accuracy", "tvd_1way": "1-way", "tvd_2way": "2-way",
         "tvd_3way": "3-way", "strongest": "strongest", "flagged": "flagged", "cpu": "cpu"}  # fmt: skip
ALL = 0.98
"""Part of the squared budget that independent columns have for themselves: next to all."""


def case(name: str, data: Path | None) -> Case:
    """Return a table by name; of more classes than two the target stays."""
    if name not in MODEL_TABLES:
        return case_of(name, data)
    found = case_of(name, data, MODEL_TABLES)
    target = MODEL_TABLES[name](np.random.default_rng(0))[2]
    return replace(found, table=replace(found.table, target=target))


def figures(of: Case, fitted: pd.DataFrame, rows: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """Return the scores of rows that stand for those fitted; of many classes how many a boosted model knows."""
    table = of.table
    if of.regression or table.target is None or len(fitted[table.target].unique()) == 2:
        return scores(of, fitted, rows, test)
    found = scores(replace(of, table=replace(table, target=None)), fitted, rows, test)
    numbers = list(fitted.select_dtypes("number"))
    model = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    model.fit(rows[numbers], rows[table.target].astype(str))
    return {"accuracy": float(model.score(test[numbers], test[table.target].astype(str))), **found}


def fit(
    name: str,
    data: Path | None,
    epsilon: float,
    seed: int,
    share: float | None,
    out: Path,
) -> None:
    """Fit once in this process, write as many samples as there are rows fitted, and print what it took."""
    of = case(name, data).table
    fitted, _ = split(of.frame, share=0.1, seed=0)
    budget = epsilon if epsilon > 0 else sfumato.NonPrivate()
    more = {} if share is None else {"marginal_share": share}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        method = sfumato.MaxEntropy(epsilon=budget, delta=DELTA, **more)
        release = method.fit(fitted, schema=of.schema, target=of.target, seed=seed)
        seconds = time.process_time() - start
        said = None if not hasattr(release, "disagreements") else float(bool(release.disagreements()))
        release.sample(len(fitted), seed=seed).to_parquet(out)
    print(json.dumps({"cpu": seconds, "flagged": said}))


def fitted_apart(source: Path, arguments: list[str], out: Path) -> dict[str, float]:
    """Fit in a process of its own, with the code in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *arguments, "--worker", str(out)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    return json.loads(ended.stdout.splitlines()[-1])


def rows_of(
    name: str, kind: str, asked: argparse.Namespace, fitted: pd.DataFrame, seed: int
) -> tuple[pd.DataFrame, dict]:
    """Return the rows of one kind that stand for those fitted, and what they took."""
    rng = np.random.default_rng(seed)
    if kind == "tenth":
        return fitted.iloc[rng.permutation(len(fitted))[: len(fitted) // 10]].reset_index(drop=True), {}
    source = asked.against / "src" if kind == "there" else Path(sfumato.__file__).parents[1]
    epsilon = 0.0 if kind == "noiseless" else asked.epsilon
    arguments = [name, "--epsilon", str(epsilon), "--seed", str(seed)]
    arguments += [] if asked.data is None else ["--data", str(asked.data)]
    arguments += ["--share", str(ALL)] if kind == "independent" else []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.parquet"
        took = fitted_apart(source, arguments, out)
        rows = pd.read_parquet(out)
    if kind == "independent":
        rows = pd.DataFrame({c: rows[c].to_numpy()[rng.permutation(len(rows))] for c in rows})
    return rows, took


def line(name: str, kind: str, fits: list[dict[str, Any]]) -> str:
    """Return means and worst figures of the fits of a table by one kind of rows."""
    parts = []
    for key, shown in SHOWN.items():
        values = [one[key] for one in fits if one.get(key) is not None]
        if values:
            worst = min(values) if key in HIGHER else max(values)
            parts.append(f"{shown} {np.mean(values):.4f} ({worst:.4f})")
    return f"{name:<18} {kind:<12} " + "  ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="TABLE", help=", ".join((*DATA, *MODEL_TABLES)))
    parser.add_argument("--data", type=Path, default=os.environ.get("SFUMATO_DATA"))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the first fit")
    parser.add_argument("--against", type=Path, help="another checkout, with whose code each table is fitted too")
    parser.add_argument("--kinds", nargs="+", default=["here", "there", "noiseless", "independent", "tenth"])
    parser.add_argument("--out", type=Path, help="figures of every fit, a JSON line each, added to what is there")
    parser.add_argument("--share", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker is not None:
        return fit(
            asked.names[0],
            asked.data,
            asked.epsilon,
            asked.seed,
            asked.share,
            asked.worker,
        )
    known = DATA if asked.data is not None else ()
    for name in asked.names or (*known, *MODEL_TABLES):
        of = case(name, asked.data)
        fitted, test = split(of.table.frame, share=0.1, seed=0)
        for kind in asked.kinds:
            if kind == "there" and asked.against is None:
                continue
            found = []
            for seed in range(asked.seed, asked.seed + (1 if kind == "noiseless" else asked.fits)):
                rows, took = rows_of(name, kind, asked, fitted, seed)
                found.append({**figures(of, fitted, rows, test), **took})
                if asked.out is not None:
                    with asked.out.open("a") as file:
                        file.write(json.dumps({"table": name, "kind": kind, "seed": seed, **found[-1]}) + "\n")
            print(line(name, kind, found), flush=True)
    return None


if __name__ == "__main__":
    main()
