"""Sets beside a column of numbers: baskets of retail with their size, by the method for tables.

    python benchmarks/sets_beside.py DATA_FOLDER [--fits 5] [--items 5 20 40 64] [--epsilons 1 8] [--out FILE.json]

`retail_transactions.npz`: the most frequent items, and how many items of any kind a basket has, up to 80. δ = 1e-6, add
or remove one basket, seeds 1, 2, … A release gives as many baskets as there are.

    share              largest difference of the share of baskets that hold an item
    pair               of the share that holds both of two items
    size by item       largest difference of the mean size of baskets that hold an item
    independent        pair, where items were drawn one by one: what the release has to beat
    a tenth of them    real baskets, one of ten: what sampling alone leaves

The lists of items are read off the records, for the measurement alone: a release needs a public one. Figures are made
from real records without noise: they are not private.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato import MaxEntropy, Schema
from sfumato.columns import Integer, ItemSet

DELTA, MOST, LENGTH = 1e-6, 80, 20
NAME = "retail_transactions.npz"


def baskets(folder: Path) -> tuple[pa.Table, list[str]]:
    """Return baskets with their sizes, and items from the most frequent on."""
    with np.load(folder / NAME) as stored:
        numbers, starts, ids = stored["indices"], stored["indptr"], stored["item_id"].astype(str)
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(ids[numbers]))
    order = np.argsort(-np.bincount(numbers), kind="stable")
    return pa.table({"size": np.diff(starts), "items": lists}), [str(ids[i]) for i in order]


def held(table: pa.Table, items: list[str]) -> np.ndarray:
    """Return whether each basket holds each item, shape (n, k)."""
    lists = table["items"].combine_chunks()
    places = pc.index_in(lists.flatten().cast(pa.string()), value_set=pa.array(items))
    which, whose = pc.fill_null(places, -1).to_numpy(), pc.list_parent_indices(lists).to_numpy()
    found = np.zeros((len(lists), len(items)))
    found[whose[which >= 0], which[which >= 0]] = 1
    return found


def figures(table: pa.Table, items: list[str]) -> dict[str, np.ndarray]:
    """Return shares of items, shares of pairs, and mean sizes of baskets by item."""
    found, size = held(table, items), np.clip(table["size"].to_numpy(), 0, MOST)
    pairs = found.T @ found / len(found)
    upper = np.triu_indices(len(items), 1)
    return {"share": found.mean(0), "pair": pairs[upper], "size by item": found.T @ size / np.maximum(found.sum(0), 1)}


def apart(real: dict[str, np.ndarray], made: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the largest difference of each."""
    return {name: float(np.abs(real[name] - made[name]).max()) for name in real}


def fitted(table: pa.Table, items: list[str], epsilon: float, seed: int) -> tuple[pa.Table, dict[str, float]]:
    """Return the baskets of one release, and the seconds of its fit and of its sample."""
    kind = ItemSet(items=tuple(items), max_length=min(len(items), LENGTH))
    n = round(table.num_rows, -3)
    schema = Schema(columns={"size": Integer(lower=0, upper=MOST), "items": kind}, rows=n)
    start = time.perf_counter()
    release = MaxEntropy(epsilon=epsilon, delta=DELTA).fit(table, schema=schema, seed=seed)
    middle = time.perf_counter()
    made = release.sample(n, seed=seed)
    return made, {"fit s": middle - start, "sample s": time.perf_counter() - middle}


def summary(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {"mean": round(float(np.mean(values)), 5), "largest": round(max(values), 5)}
        for name in runs[0]
        for values in [[run[name] for run in runs]]
    }


def compare(table: pa.Table, items: list[str], epsilons: list[float], fits: int) -> dict[str, object]:
    """Return all figures of one list of items."""
    real = figures(table, items)
    alone = np.outer(real["share"], real["share"])[np.triu_indices(len(items), 1)]
    some = np.random.default_rng(0).permutation(table.num_rows)[: table.num_rows // 10]
    found: dict[str, object] = {
        "size by item, spread": round(float(np.ptp(real["size by item"])), 3),
        "independent": round(float(np.abs(real["pair"] - alone).max()), 5),
        "a tenth of them": {k: round(v, 5) for k, v in apart(real, figures(table.take(pa.array(some)), items)).items()},
    }
    for epsilon in epsilons:
        runs = []
        for seed in range(1, fits + 1):
            made, seconds = fitted(table, items, epsilon, seed)
            runs.append(apart(real, figures(made, items)) | seconds)
        found[f"epsilon {epsilon:g}"] = summary(runs)
    return found


def main() -> None:
    """Print the figures, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--items", type=int, nargs="+", default=[5, 20, 40, 64])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table, items = baskets(options.folder)
    found: dict[str, object] = {"delta": DELTA, "fits": options.fits}
    for k in options.items:
        found[f"{k} items"] = compare(table, items[:k], options.epsilons, options.fits)
        print(k, json.dumps(found[f"{k} items"]), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
