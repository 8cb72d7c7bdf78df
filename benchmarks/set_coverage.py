"""How often intervals of shares of items and of pairs hold the truth, on made-up laws of sets.

    python benchmarks/set_coverage.py --law topics --items 50 --rows 2000 --fits 40

Two laws: `topics` is the one that estimates were developed on, `clusters` was held out. Truths of the population are
those of 400,000 sets of the law, those of the table are counted. Sets are cut to `max_length` before either.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import sfumato
from sfumato.errors import EstimateError

OUT = Path(__file__).parent / "results" / "sets"
MAX_LENGTH = 10
ASKED_PAIRS = 60
POPULATION, PART = 400_000, 20_000
Law = Callable[[int, int, np.random.Generator], np.ndarray]


def topics(n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Three kinds of sets over items of falling frequency; each even item brings the next one with one half."""
    base = np.minimum(0.5, 0.6 / np.arange(1, m + 1) ** 0.7)
    lift = np.exp(np.random.default_rng(7).normal(0.0, 0.8, (3, m)))
    kind = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    held = rng.random((n, m)) < np.minimum(base * lift[kind], 0.9)
    held[:, 1::2] |= held[:, : m - m % 2 : 2] & (rng.random((n, m // 2)) < 0.5)
    return held


def clusters(n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Sizes with a long tail; items by Zipf's law, the first three also in blocks."""
    size = np.minimum(rng.poisson(rng.gamma(1.2, 2.5, n)), m)
    weights = 1 / np.arange(1, m + 1) ** 0.9
    keys = rng.exponential(size=(n, m)) / weights
    held = np.argsort(np.argsort(keys, axis=1), axis=1) < size[:, None]
    block = rng.random(n) < 0.12
    held[block, :3] = True
    held[~block, 1] &= rng.random(int((~block).sum())) < 0.3
    return held


METHODS = {"latent-classes": sfumato.LatentClasses, "independent-items": sfumato.IndependentItems}
LAWS: dict[str, Law] = {"topics": topics, "clusters": clusters}


def cut(held: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sets of at most `MAX_LENGTH` items: random ones are left out."""
    keys = np.where(held, rng.random(held.shape), 2.0)
    return held & (np.argsort(np.argsort(keys, axis=1), axis=1) < MAX_LENGTH)


def together(held: np.ndarray) -> np.ndarray:
    """Shares of sets that hold each two items, on the diagonal each one, shape (m, m)."""
    whole = held.astype(np.float32)
    return np.asarray(whole.T @ whole, dtype=np.float64) / len(held)


def drawn(law: Law, n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Sets of a law as a fit reads them."""
    return cut(law(n, m, rng), rng)


def one_fit(law: Law, n: int, m: int, seed: int, method: str, epsilon: float) -> tuple[sfumato.Release, np.ndarray]:
    """A release of n sets, and their own shares."""
    rng = np.random.default_rng([seed, n, m])
    drawn_seed = int(rng.integers(2**31))  # no noise twice
    held = drawn(law, n, m, rng)
    sets = [rng.permutation(np.flatnonzero(row)).tolist() for row in held]
    kind = {"kind": "set", "n_items": m, "max_length": MAX_LENGTH}
    schema = {"rows": n, "columns": {"basket": kind}}
    release = METHODS[method](epsilon=epsilon, delta=1e-6).fit(
        pa.table({"basket": sets}), schema=schema, seed=drawn_seed
    )
    return release, together(held)


def counted(law: Law, n: int, m: int, fits: int, method: str, epsilon: float) -> list[dict[str, object]]:
    """Of each fit and question: group, target, whether the interval holds the truth, its half, and the error."""
    rng = np.random.default_rng(99)
    population = np.mean([together(drawn(law, PART, m, rng)) for _ in range(POPULATION // PART)], axis=0)
    rows: list[dict[str, object]] = []
    for seed in range(fits):
        release, table = one_fit(law, n, m, seed, method, epsilon)
        pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
        chosen = np.random.default_rng(seed).choice(len(pairs), min(ASKED_PAIRS, len(pairs)), replace=False)
        asked = [(i,) for i in range(m)] + [(0, 1), (2, 3)] + [pairs[k] for k in chosen]
        for codes in asked:
            group = _group(codes, population, n)
            for target, truths in (("population", population), ("table", table)):
                truth = truths[codes[0], codes[-1]]
                try:
                    found = release.share({"basket": list(codes)}, target=target)
                except EstimateError:
                    rows.append({"group": group, "target": target, "answered": False})
                    continue
                low, high = found.interval()
                rows.append(
                    {"group": group, "target": target, "answered": True, "covered": bool(low <= truth <= high),
                     "half": (high - low) / 2, "error": abs(found.value - truth), "noise": found.parts["noise"],
                     "unmeasured": found.parts.get("unmeasured", 0.0)}
                )  # fmt: skip
    return rows


def _group(codes: tuple[int, ...], shares: np.ndarray, n: int) -> str:
    share = shares[codes[0], codes[-1]]
    if len(codes) == 1:
        return "item, frequent" if share >= 0.05 else "item, rare"
    tied = share > 1.5 * shares[codes[0], codes[0]] * shares[codes[1], codes[1]]
    return "pair, tied" if tied else "pair"


def summary(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Shares covered, by group and target."""
    found = []
    for group in sorted({str(row["group"]) for row in rows}):
        for target in ("population", "table"):
            own = [row for row in rows if (row["group"], row["target"]) == (group, target)]
            answered = [row for row in own if row["answered"]]
            line: dict[str, object] = {"group": group, "target": target, "asked": len(own), "answered": len(answered)}
            if answered:
                for name in ("covered", "half", "error", "noise", "unmeasured"):
                    line[name] = round(float(np.mean([float(row[name]) for row in answered])), 5)  # type: ignore[arg-type]
            found.append(line)
    return found


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--law", choices=LAWS, default="topics")
    parser.add_argument("--items", type=int, default=50)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--method", default="latent-classes")
    parser.add_argument("--epsilon", type=float, default=1.0)
    said = parser.parse_args()
    rows = counted(LAWS[said.law], said.rows, said.items, said.fits, said.method, said.epsilon)
    found = {**vars(said), "max_length": MAX_LENGTH, "lines": summary(rows)}
    for line in found["lines"]:
        print(line)
    OUT.mkdir(parents=True, exist_ok=True)
    name = f"{said.law}_{said.items}_{said.rows}_{said.epsilon:g}_{said.method}.json"
    (OUT / name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
