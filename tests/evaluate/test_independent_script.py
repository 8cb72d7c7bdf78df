"""`sfumato evaluate table` on files, beside a script of pandas and scikit-learn that uses nothing of ours."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from xgboost import XGBClassifier

from sfumato.cli.app import run

SCHEMA = """\
columns:
  age: {kind: integer, lower: 0, upper: 127}
  job: {kind: categorical, categories: [clerk, cook, pilot]}
  hours: {kind: continuous, lower: 0, upper: 64}
  income: {kind: categorical, categories: [low, high]}
"""
JOBS, BOUNDS = ["clerk", "cook", "pilot"], {"age": (0, 127), "hours": (0, 64)}


def write(path, n, seed, shift):
    """Numbers that are sums of few powers of two: scaling them is exact, so that trees split alike."""
    rng = np.random.default_rng(seed)
    age, job = rng.integers(0, 128, n), rng.integers(0, 3, n)
    hours = np.clip(np.round(rng.normal(30, 10, n) * 4) / 4, 0, 64)
    high = age / 20 + job + hours / 16 + rng.logistic(size=n) > 6 + shift
    table = {"age": age, "job": np.array(JOBS)[job], "hours": hours, "income": np.where(high, "high", "low")}
    pd.DataFrame(table).to_csv(path, index=False)


def script(real, synthetic, test):
    """AUROC, AUPRC and 1-, 2-, 3-way total variation, from three CSV files."""
    real, synthetic, test = map(pd.read_csv, (real, synthetic, test))
    scores = {}
    for name, train in (("synthetic", synthetic), ("real", real)):
        x, y = [], []
        for frame in (train, test):
            numbers = {c: (frame[c] - train[c].mean()) / train[c].std(ddof=0) for c in BOUNDS}
            jobs = [(frame["job"] == job).astype(float) for job in JOBS]
            x.append(np.column_stack([numbers["age"], *jobs, numbers["hours"]]))
            y.append((frame["income"] == "high").astype(int))
        forest = {"max_features": "sqrt", "max_depth": 8, "min_samples_leaf": 50, "min_samples_split": 200}
        models = [
            LogisticRegression(solver="liblinear", max_iter=1000, random_state=0),
            AdaBoostClassifier(random_state=0),
            GradientBoostingClassifier(**forest, random_state=0),
            XGBClassifier(random_state=0),
        ]
        guesses = [model.fit(x[0], y[0]).predict_proba(x[1])[:, 1] for model in models]
        scores[name] = {
            "auroc": np.mean([roc_auc_score(y[1], guess) for guess in guesses]),
            "auprc": np.mean([average_precision_score(y[1], guess) for guess in guesses]),
        }
    binned = []
    for frame in (real, synthetic):
        cells = {c: np.minimum((frame[c] - low) * 20 // (high - low), 19) for c, (low, high) in BOUNDS.items()}
        binned.append(frame.assign(**cells))
    for k in (1, 2, 3):
        distances = []
        for columns in itertools.combinations(real.columns, k):
            p, q = (frame.value_counts(list(columns), normalize=True) for frame in binned)
            distances.append(p.subtract(q, fill_value=0).abs().sum() / 2)
        scores[f"tvd_{k}way"] = np.mean(distances)
    return scores


def test_the_command_agrees_with_the_script(tmp_path, capsys):
    paths = [tmp_path / f"{name}.csv" for name in ("real", "synthetic", "test")]
    for seed, (path, n, shift) in enumerate(zip(paths, (900, 900, 500), (0, 1, 0), strict=True)):
        write(path, n, seed, shift)
    (tmp_path / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    options = ("--test", paths[2], "--target", "income", "--schema", tmp_path / "schema.yaml", "--json")
    assert run([str(part) for part in ("evaluate", "table", *paths[:2], *options)]) == 0
    ours, expected = json.loads(capsys.readouterr().out), script(*paths)
    for key in ("auroc", "auprc"):
        assert ours["utility"][key] == pytest.approx(expected["synthetic"][key], abs=1e-6)
        assert ours["utility"]["real"][key] == pytest.approx(expected["real"][key], abs=1e-6)
    for key in ("tvd_1way", "tvd_2way", "tvd_3way"):
        assert ours["fidelity"][key] == pytest.approx(expected[key], abs=1e-6)
