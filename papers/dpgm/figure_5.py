"""Figures 5, 6 and 8: errors of counting queries on retail and BMS-WebView-1, DPGM beside MWEM and independent items.

    python papers/dpgm/figure_5.py --data FOLDER [--only bms] [--epsilons 1 2] [--runs 3] [--methods "DPGM, k = 5"]
        [--validate]

Figure 6 is about the number of clusters, `DPGM, k = 5` and so on; Figure 8 about networks of two layers.

The call-detail and transit data of the paper are not public; these stand in. The lists of items are declared public for
the experiment, as in baselines.py; δ is 0.1/n. Synthetic sets are compared with the fitted ones, as in the paper. With
--validate only a random two thirds of the sets are used: settings were chosen so. Figures only: seeded, not private.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from baselines import N_FREQUENT, SETS, fitted_shares, read
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
from sfumato.methods.dpgm.settings import VAE, MixtureShares

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import parser, pyplot
from drawing import read as data_folder
from jobs import Results

SIZES = {"pairs": 2, "triples": 3}
SAMPLES = 60  # synthetic sets per public set: sampling noise is free to shrink
# most of what these sets let one learn is in the profiles of clusters: half an epoch of networks is left
SHARED = {
    "epochs": 0.5,
    "shares": MixtureShares.for_sets(),
    "component": VAE(hidden=(50,), latent_dim=4, learning_rate=3e-3),
}
METHODS = ("answer 0", "MWEM", "independent items", "DPGM", "latent classes")
SETTINGS: dict[str, dict[str, Any]] = {
    "retail": {"n_clusters": 10, "batch_size": 1000, **SHARED},
    "bms": {"n_clusters": 20, "batch_size": 500, **SHARED},
}


def synthetic(
    make: Callable[..., Any], matrix: sparse.csr_array, longest: int, epsilon: float, seed: int, **settings: Any
) -> Iterator[sparse.csr_array]:
    """Yield sets sampled from a method's release, as many as there are at a time."""
    n, m = matrix.shape
    schema = sfumato.Schema.from_dict(
        {"rows": n, "columns": {"items": {"kind": "set", "n_items": m, "max_length": longest}}}
    )
    data = {"indptr": matrix.indptr, "indices": matrix.indices, "n_items": np.array(m)}
    release = make(epsilon=epsilon, delta=0.1 / n, **settings).fit(data, schema=schema, seed=seed)
    for part in range(SAMPLES):
        made = release.sample(n, seed=SAMPLES * seed + part)
        yield sparse.csr_array((np.ones(made["indices"].size), made["indices"], made["indptr"]), shape=(n, m))


def compare(
    real: sparse.csr_array, queries: Queries, frequent: np.ndarray, made: Iterator[sparse.csr_array] | np.ndarray
) -> dict[str, Any]:
    """Return mean relative errors per kind and group, and of pairs and triples, of sets or of shares of items."""
    n, found = real.shape[0], {}
    truth = answered(real, queries, frequent)
    if isinstance(made, np.ndarray):
        estimate = {kind: independent_answers(made, queries, kind) for kind in KINDS}
        for label, size in SIZES.items():
            places = np.array(np.meshgrid(*[range(frequent.size)] * size, indexing="ij")).reshape(size, -1).T
            places = places[(np.diff(places, axis=1) > 0).all(axis=1)]
            estimate[label] = made[frequent][places].prod(axis=1)
    else:
        estimate, n_made = {label: np.zeros(len(found)) for label, found in truth.items()}, 0
        for part in made:
            n_made += part.shape[0]
            for label, counted in answered(part, queries, frequent).items():
                estimate[label] += counted
        estimate = {label: counted / n_made for label, counted in estimate.items()}
    for label, counted in truth.items():
        error = relative_errors(n * estimate[label], counted, n)
        groups = queries.groups if label in KINDS else np.zeros(len(error))
        found[label] = [float(error[groups == g].mean()) for g in np.unique(groups)]
    return found


def answered(matrix: sparse.csr_array, queries: Queries, frequent: np.ndarray) -> dict[str, np.ndarray]:
    """Return the answers of queries of each kind, and counts of pairs and triples."""
    found = {kind: answers(matrix, queries, kind) for kind in KINDS}
    return found | {label: combination_counts(matrix, frequent, size) for label, size in SIZES.items()}


def main() -> None:
    """Measure what is missing, and draw."""
    arguments = parser(__doc__, "dpgm", repeats=("runs", 3))
    arguments.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0])
    arguments.add_argument("--methods", nargs="+", default=METHODS, help='also "DPGM, k = 5" and "DPGM, two layers"')
    arguments.add_argument("--validate", action="store_true")
    options = arguments.parse_args()
    folder = data_folder(options)
    results = Results(options.out / f"figure_5{'_validation' if options.validate else ''}.jsonl")
    for name in options.only:
        file, n_items, longest = SETS[name]
        matrix, _ = read(folder / file, n_items)
        fitted = real = part_of(matrix) if options.validate else matrix
        queries = random_queries(n_items, int(np.diff(matrix.indptr).max()), public_stream(0))
        frequent = np.sort(np.argsort(-matrix.sum(axis=0), kind="stable")[:N_FREQUENT])
        for epsilon in options.epsilons:
            table: dict[str, dict[str, list[float]]] = {}
            for method in options.methods:
                make = partial(estimated, method, name, fitted, longest, queries, epsilon)
                runs = [
                    results.get(
                        f"{name} | {epsilon:g} | {method} | run {seed}",
                        lambda make=make, seed=seed, ask=(real, queries, frequent): compare(*ask, make(seed)),
                    )
                    for seed in range(1 if method == "answer 0" else options.runs)
                ]
                table[method] = {k: np.round(np.mean([r[k] for r in runs], axis=0), 4).tolist() for k in runs[0]}
            results.note(f"{name}, ε = {epsilon:g}, {options.runs} runs", table)
            picture(table, options.out / f"figure_5_{name}_{epsilon:g}.png", f"{name}, ε = {epsilon:g}")


def estimated(
    method: str, name: str, fitted: sparse.csr_array, longest: int, queries: Queries, epsilon: float, seed: int
) -> Iterator[sparse.csr_array] | np.ndarray:
    """Return what a method answers with: synthetic sets, or shares of items."""
    if method == "MWEM":
        noisy = mwem(fitted, queries.items.astype(np.float64), epsilon, public_stream(seed, 1))
        return np.clip(noisy / fitted.shape[0], 0, 1)
    if method == "independent items":
        return fitted_shares(fitted, longest, epsilon, seed)
    if method == "answer 0":
        return np.zeros(fitted.shape[1])
    if method == "latent classes":
        return synthetic(sfumato.LatentClasses, fitted, longest, epsilon, seed)
    return synthetic(sfumato.DPGM, fitted, longest, epsilon, seed, **{**SETTINGS[name], **variant(method)})


def variant(method: str) -> dict[str, Any]:
    """Return the settings that a form of DPGM changes; two layers have the width of one."""
    _, _, form = method.partition(", ")
    if form.startswith("k = "):
        return {"n_clusters": int(form.removeprefix("k = "))}
    return {"component": VAE(hidden=(50, 50), latent_dim=4, learning_rate=3e-3)} if form == "two layers" else {}


def part_of(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a random two thirds of the sets."""
    order = public_stream(0, 9).permutation(matrix.shape[0])
    return sparse.csr_array(matrix[order[: 2 * matrix.shape[0] // 3]])


def picture(table: dict[str, dict[str, list[float]]], path: Path, title: str) -> None:
    """Draw errors by length group, one panel per kind."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(15, 4))
    for axis, kind in zip(axes, KINDS, strict=False):
        for method, errors in table.items():
            axis.plot(range(1, 6), errors[kind], marker="o", label=method)
        axis.set(title=f"{title}: {kind}", xlabel="group of lengths", ylabel="mean relative error", yscale="symlog")
        axis.set_yscale("symlog", linthresh=1e-3)
    axes[0].legend(fontsize=8)
    for i, (method, errors) in enumerate(table.items()):
        axes[3].bar([i, i + 5], [errors["pairs"][0], errors["triples"][0]], label=method)
    axes[3].set_xticks([1.5, 6.5], ["pairs", "triples"])
    axes[3].set_title("the 100 most frequent items")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
