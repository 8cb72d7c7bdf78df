"""Counting queries: answering 0, independent items, and MWEM, on retail and BMS-WebView-1.

    python papers/dpgm/baselines.py DATA_FOLDER [--epsilon 1.0] [--runs 5] [--out FILE]

The lists of items are declared public for the experiment: of retail the 1,303 most sold ones, of BMS-WebView-1 all. δ
is 0.1/n. MWEM's counts of items answer `all` and `any` as independent items do. Figures only: seeded, not private.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mwem import mwem
from scipy import sparse

import sfumato
from sfumato.evaluate.counting_queries import (
    KINDS,
    Queries,
    answers,
    combination_counts,
    independent_answers,
    random_queries,
    relative_errors,
)
from sfumato.maths.streams import public_stream

SETS = {  # file, items kept, longest set that is used
    "retail": ("retail_transactions.npz", 1303, 44),
    "bms": ("bms_webview1_transactions.npz", 497, 20),
}
N_FREQUENT = 100


def read(path: Path, n_items: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Return baskets as a matrix of the most frequent items, and which items these are."""
    with np.load(path) as arrays:
        shape = (arrays["indptr"].size - 1, int(arrays["n_items"]))
        whole = sparse.csr_array((np.ones(arrays["indices"].size), arrays["indices"], arrays["indptr"]), shape=shape)
    items = np.sort(np.argsort(-whole.sum(axis=0), kind="stable")[:n_items])
    return sparse.csr_array(whole[:, items]), items


def fitted_shares(matrix: sparse.csr_array, longest: int, epsilon: float, seed: int) -> np.ndarray:
    """Return the items' shares that IndependentItems releases."""
    n, m = matrix.shape
    schema = sfumato.Schema.from_dict(
        {"rows": n, "columns": {"items": {"kind": "set", "n_items": m, "max_length": longest}}}
    )
    data = {"indptr": matrix.indptr, "indices": matrix.indices, "n_items": np.array(m)}
    release = sfumato.IndependentItems(epsilon=epsilon, delta=0.1 / n).fit(data, schema=schema, seed=seed)
    return release.parameters["probabilities"]


def errors(
    matrix: sparse.csr_array,
    estimates: dict[str, np.ndarray],
    queries: Queries,
    frequent: np.ndarray,
) -> dict[str, Any]:
    """Return mean relative errors per kind and group, and of pairs and triples, of estimated shares of items."""
    n = matrix.shape[0]
    found: dict[str, Any] = {}
    for kind in KINDS:
        truth = answers(matrix, queries, kind)
        for name, shares in estimates.items():
            error = relative_errors(n * independent_answers(shares, queries, kind), truth, n)
            groups = [round(float(error[queries.groups == g].mean()), 4) for g in np.unique(queries.groups)]
            found.setdefault(kind, {})[name] = groups
    for label, size in (("pairs", 2), ("triples", 3)):
        truth = combination_counts(matrix, frequent, size)
        places = np.array(np.meshgrid(*[range(frequent.size)] * size, indexing="ij")).reshape(size, -1).T
        places = places[(np.diff(places, axis=1) > 0).all(axis=1)]
        found[label] = {
            name: round(float(relative_errors(n * shares[frequent][places].prod(axis=1), truth, n).mean()), 4)
            for name, shares in estimates.items()
        }
    return found


def main() -> None:
    """Print the figures, or write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"epsilon": options.epsilon, "runs": options.runs}
    for name, (file, n_items, longest) in SETS.items():
        matrix, _ = read(options.folder / file, n_items)
        queries = random_queries(n_items, int(np.diff(matrix.indptr).max()), public_stream(0))
        frequent = np.sort(np.argsort(-matrix.sum(axis=0), kind="stable")[:N_FREQUENT])
        runs = []
        for seed in range(options.runs):
            noisy = mwem(matrix, queries.items.astype(np.float64), options.epsilon, public_stream(seed, 1))
            estimates = {
                "zero": np.zeros(n_items),
                "independent": fitted_shares(matrix, longest, options.epsilon, seed),
                "independent, exact": np.asarray(matrix.sum(axis=0)).ravel() / matrix.shape[0],
                "mwem": np.clip(noisy / matrix.shape[0], 0, 1),
            }
            runs.append(errors(matrix, estimates, queries, frequent))
        results[name] = {
            kind: {
                method: np.round(np.mean([run[kind][method] for run in runs], axis=0), 4).tolist()
                for method in runs[0][kind]
            }
            for kind in runs[0]
        }
    text = json.dumps(results, indent=1)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
