"""docs/papers.md: every paper's tables, from the expected.json files.

python papers/page.py            # write it
python papers/page.py --check    # say whether it is up to date
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "p3gm"))
import section
from judged import ABSENT, PRINTED, Cell, here, judge, known, reasons, said
from tabulated import Row, by_epsilon, spread, table

HERE = Path(__file__).parent
PLACES = {
    "gowalla_nyc": "New York",
    "gowalla_world": "World",
    "gowalla_grid256": "The paper's number of places, drawn from a grid of 6.4 million, three folds",
}
EPOCHS = (1, 3, 6, 9, 12, 15, 20, 30, 40, 50)
PAGE = HERE.parent / "docs" / "papers.md"
DISTANCE_1 = "exact, the paper's distances"


def dp_em() -> str:
    """Its figures, on held-out rows."""
    expected = json.loads((HERE / "dp_em" / "expected.json").read_text(encoding="utf-8"))
    text = [
        "## DP-EM",
        "Park, Foulds, Chaudhuri and Welling (AISTATS 2017); scripts and notes in `papers/dp_em`. The paper prints no "
        "numbers. The published methods divide by exact masses and are not private as printed. Held-out rows.",
    ]
    for name, what in (
        ("figure_2", "Figure 2: log-likelihood, 100 dimensions"),
        ("figure_3", "Figure 3: log-likelihood, Life Sciences"),
    ):
        text += [
            f"### {what}",
            f"The paper: {expected[name]['paper']}. {here(name)}",
            by_epsilon(expected[name]["mean_and_error"], 2, partial(said, "dp_em", name)),
        ]
    llg = expected["figure_2_llg"]["mean_and_error"]
    text[-3:-3] = ["### Figure 2: scenario LLG, NOT PRIVATE as printed", _laplace(expected["figure_2"], llg)]
    text[2:2] = [
        "### Figure 1: an illustration in the plane",
        "Three Gaussians, 10,000 points, J = 30; mean log density of 10,000 other points.",
        table(["", "log density", "verdict"], _illustrated(expected["figure_1"]["found"])),
        "![a mixture of three Gaussians, fitted four ways](pictures/dp_em_mixtures.png)",
    ]
    text.append(_every_form(expected["as_published"]))
    text += [
        "### Figure 4: k-means, normalised intra-cluster variance",
        f"The paper: {expected['figure_4']['paper']}. {here('figure_4')}",
    ]
    for places, title in PLACES.items():
        curves = dict(expected["figure_4"]["mean_and_error"][places])
        if places in expected["figure_4"]["diffprivlib 0.6.6"]:
            curves["diffprivlib (pure ε)"] = expected["figure_4"]["diffprivlib 0.6.6"][places]
        text += [f"{title}:", by_epsilon(curves, 4, partial(said, "dp_em", "figure_4"))]
    faces = expected["faces"]
    text += [
        "### Figure 5: loadings, as published, on the paper's 400 faces and on MNIST",
        _loadings(faces["runs"] | expected["as_published"]["factor_analysis"]),
        f"The faces' second moment has the largest eigenvalue {faces['largest eigenvalue']:.2f}, its noise at "
        f"ε = 0.3 one of {faces['runs']['400 faces, printed ε = 0.3']['largest eigenvalue of the noise']:.1f}. They are "
        "64 × 64 pixels, divided by the longest one's norm, as printed: not private, and ε is what it would be if that "
        "norm were public.",
        "![ten loadings of faces without noise and at two ε](pictures/dp_em_faces.png)",
    ]
    return "\n\n".join(text)


def _illustrated(found: Mapping[str, float]) -> Iterable[Row]:
    for name, density in found.items():
        yield [name, f"{density:.3f}", said("dp_em", "figure_1", name.partition(",")[0])]


def _laplace(gaussian: Mapping[str, Any], curves: Mapping[str, Any]) -> str:
    """Say of every composition where LLG is above GGG by more than two standard errors, against what the paper says."""
    rows = []
    for name, points in curves.items():
        composition = name.rpartition(", ")[2]
        other = gaussian["mean_and_error"][f"published GGG, {composition}"]
        worse = [e for e in points if points[e][0] - other[e][0] > 2 * math.hypot(points[e][1], other[e][1])]
        verdict = f"missed: LLG is above GGG at ε = {', '.join(worse)}" if worse else "matched: GGG above LLG or level"
        rows.append([name, *(f"{points[e][0]:.2f} (GGG {other[e][0]:.2f})" for e in points), verdict])
    return table(["ε", *next(iter(curves.values())), "verdict"], rows)


def _every_form(found: Mapping[str, Any]) -> str:
    curves, private = found["mean_and_error"], found["epsilon_if_on_sums"]
    epsilons = list(next(iter(curves.values())))

    def verdict(name: str) -> str:
        """Say whether all-Gaussian noise is the better, as the paper says of Figure 2."""
        rest = name.split(", ", 1)[1]
        ours, other = curves[f"GGG, {rest}"], curves[f"LLG, {rest}"]
        worse = [epsilon for epsilon in epsilons if ours[epsilon][0] < other[epsilon][0]]
        return f"missed: LLG is above GGG at ε = {', '.join(worse)}" if worse else "matched: GGG above LLG"

    rows = []
    for name, points in curves.items():
        scenario, *_, composition = name.split(", ")
        same = private[f"{scenario}, {composition}"]["1"]
        rows.append([name, *(f"{points[e][0]:.2f}" for e in epsilons), f"{same:.3f}", verdict(name)])
    return "\n\n".join(
        [
            "### Figure 3's data, every printed form: NOT PRIVATE",
            "As printed: noise on quotients by exact masses, so no ε holds for them. Five splits. *On sums*: ε that "
            "the noise of the column ε = 1 would have on sums of records, add/remove.",
            table(["printed ε", *epsilons, "on sums", "verdict"], rows),
        ]
    )


def _loadings(found: Mapping[str, Any]) -> str:
    rows = [
        [
            name,
            spread(run["overlap"]),
            f"{run['true epsilon, add/remove']:.3f}",
            f"{run['true epsilon, replace one']:.3f}",
            said("dp_em", "figure_5", name.partition(" ")[0]),
        ]
        for name, run in found.items()
    ]
    return table(["", "overlap of subspaces", "true ε, add/remove", "true ε, replace one", "verdict"], rows)


def dpgm() -> str:
    """Its accounts, clusters and queries."""
    expected = json.loads((HERE / "dpgm" / "expected.json").read_text(encoding="utf-8"))
    accounts = expected["accounts"]
    text = [
        "## DPGM",
        "Acs, Melis, Castelluccia and De Cristofaro (TKDE 2018); scripts and notes in `papers/dpgm`.",
        "### The account of the published MNIST run",
        table(
            ["", "ε", "verdict"],
            [
                [name, epsilon, said("dpgm", "account", name)]
                for name, epsilon in (
                    ("as printed, reproduced", accounts["as_printed"]),
                    ("with the moment of a Gaussian in k-means", accounts["lemma_fixed"]),
                    (
                        "the published schedule at its exact cost, ten public equal clusters",
                        accounts["published_schedule_exact"]["10"],
                    ),
                    ("ours at the same noise", accounts["ours"]),
                )
            ],
        ),
        "### Figure 3: clustering accuracy, binarised MNIST",
        by_epsilon(expected["figure_3"]["mean_and_runs"], 3, partial(said, "dpgm", "figure_3")),
        "### Figures 5, 6 and 8: errors of counting queries",
        "Figure 6 is about k, the number of clusters; Figure 8 about networks of two layers. Runs in brackets.",
    ]
    for places, methods in expected["figure_5"]["errors"].items():
        kinds = list(next(iter(methods.values())))
        rows = [
            [
                f"{method} ({expected['figure_5']['runs'][places][method]})",
                *(" ".join(f"{e:.3f}" for e in found[kind]) for kind in kinds),
                said("dpgm", "figure_5", method),
            ]
            for method, found in methods.items()
        ]
        text += [f"{places}, five groups of lengths, then pairs and triples:", table(["", *kinds, "verdict"], rows)]
    text += [
        "### Figure 4: samples, a row per cluster",
        "![samples of handwritten digits](pictures/dpgm_samples.png)",
        "### Figure 7: fixed against adaptive clipping norms",
        "![held-out loss against the clip norm](pictures/dpgm_clipping.png)",
    ]
    return "\n\n".join(text)


def dpmix() -> str:
    """Accuracies on test images."""
    expected = json.loads((HERE / "dpmix" / "expected.json").read_text(encoding="utf-8"))
    printed, found = expected["paper"]["table_1"], expected["table_1"]
    text = [
        "## DPMix",
        "Lee, Kim, Lee, Suh and Ramchandran (ISIT 2019); scripts and notes in `papers/dpmix`. Test images, one seed a "
        "cell. *Published noise*: what the corrected Theorem 1 asks for with one σ, subsets, δ = 1/n. *Ours*: Poisson mixtures of "
        "clipped images; δ = 1/n at ε = 20 and 10, for comparison, 1.67e-6 at 3 and 1. The model is a discriminant on "
        "the mixtures' moments. ★: ℓ of the published noise chosen on a held-out tenth, of ours by `AutoDegree`.",
        "### Table I: MNIST",
        _table_1(found["mnist"], expected["degree"], printed),
        "Ours at ε = 10 has the noise of the last column times smaller than the published at the same ℓ.",
        "![accuracy against the degree](pictures/dpmix_degrees.png)",
        *(
            ["### Fashion-MNIST, with MNIST's settings", _table_1(found["fashion_mnist"], expected["degree"], None)]
            if "fashion_mnist" in found
            else []
        ),
        "### The paper's network, MNIST",
        table(
            ["mixtures", "training", "accuracy", "printed", "verdict"],
            [
                [run["mixtures"], run["training"], run["accuracy"], run["printed"], _of_network(run)]
                for run in expected["network"]
            ],
        ),
        "### The paper's network where norms are 1, MNIST",
        "Theorem 1 fixes d_X/σ_X² + d_Y/σ_Y² alone, and the paper prints neither σ. Elsewhere here both are one number, "
        "of pixels and labels in [0, 1]; here both are one where images and labels have norm at most 1, as the paper's "
        "section II has them. At the same Δ² labels then get much less noise and pixels about as much. **Not private as "
        "printed**: images are divided by the longest one's norm, which is read off the records. *Exact ε* is of the "
        "noise if that norm were public, with the paper's distance of 1 between records and with √2, the right one "
        "for entries that are not negative. Published schedule, cut to ten epochs; test images; σ in [0, 1].",
        table(
            ["ℓ, ε", "printed", "last epoch", "best epoch", "σ_X, σ_Y", "exact ε, distance 1", "exact ε", "verdict"],
            _unit_norms(expected["unit_norms"]["found"], printed),
        ),
        "### The paper's network by epoch, MNIST, a held-out tenth",
        _by_epoch(expected["network_by_epoch"]),
        "### Table II: baselines, linear",
        "The paper's own second column is CIFAR-10, for which Fashion-MNIST stands in.",
        table(["", "MNIST", "printed", "Fashion-MNIST", "verdict"], _table_2(expected)),
        *(
            text
            for name, title in (
                ("mixtures", "Figure 1: mixtures of images"),
                ("accounts", "Figure 3: ε against the noise"),
            )
            if (PAGE.parent / "pictures" / f"dpmix_{name}.png").exists()
            for text in (f"### {title}", f"![{title}](pictures/dpmix_{name}.png)")
        ),
    ]
    return "\n\n".join(text)


def _table_1(
    found: Mapping[str, Any], picked: Mapping[str, Mapping[str, int]], printed: Mapping[str, Sequence[float]] | None
) -> str:
    published, ours = ("inf", "20", "10"), ("20", "10", "3", "1")

    def shown(noise: str, degree: str, epsilon: str) -> str:
        star = " ★" if picked[noise].get(epsilon) == int(degree) else ""
        return f"{found[degree][noise][epsilon][0]:.3f}{star}"

    def row(degree: str) -> Row:
        figures = [f"{value:.3f}" for value in printed[degree]] if printed else []
        figures += [shown("published", degree, epsilon) for epsilon in published]
        figures += [shown("ours", degree, epsilon) for epsilon in ours]
        saved = f"{found[degree]['published']['10'][1] / found[degree]['ours']['10'][1]:.1f}"
        return [degree, *figures, saved, verdict(degree)]

    def verdict(degree: str) -> str:
        """Say what became of the published noise's figures, of our noise's at ε = 20 and 10 too."""
        if not printed:
            return ABSENT
        cells = {
            f"{noise}, ε = {epsilon.replace('inf', '∞')}": Cell(value, [found[degree][noise][epsilon][0]])
            for noise in ("published", "ours")
            for epsilon, value in zip(published, printed[degree], strict=True)
            if epsilon in found[degree][noise]
        }
        return judge(cells, reasons("dpmix", "table_1", degree))

    names = [f"printed, ε = {e}" for e in ("∞", "20", "10")] if printed else []
    names += [f"published noise, {e}" for e in ("∞", "20", "10")] + [f"ours, {e}" for e in ours]
    return table(["ℓ", *names, "noise saved at 10", "verdict"], map(row, sorted(found, key=int)))


def _table_2(expected: Mapping[str, Any]) -> Iterable[Row]:
    printed = expected["paper"]["table_2"]
    for name, figures in expected["test_images"]["mnist, linear"].items():
        if name in printed:
            verdict = judge({"ours": Cell(printed[name], [figures["accuracy"]])}, reasons("dpmix", "table_2", name))
            clothes = expected["test_images"]["fashion_mnist, linear"][name]["accuracy"]
            yield [name, f"{figures['accuracy']:.3f}", f"{printed[name]:.3f}", f"{clothes:.3f}", verdict]


def _by_epoch(found: Mapping[str, Any]) -> str:
    longest = max(len(arm["accuracy"]) for arm in found["arms"].values())
    epochs = [epoch for epoch in EPOCHS if epoch <= longest]
    rows = []
    for name, arm in found["arms"].items():
        shown = [f"{arm['accuracy'][e - 1]:.3f}" if e <= len(arm["accuracy"]) else "–" for e in epochs]
        picked = f"{arm['picked']['accuracy']:.3f} ({arm['picked']['epoch']})" if "picked" in arm else "–"
        best = f"{arm['best']:.3f} ({1 + arm['accuracy'].index(arm['best'])})"
        cell = Cell(found["printed"], [arm["best"]])
        rows.append([name, *shown, best, picked, judge({"ours": cell}, reasons("dpmix", "network_by_epoch", name))])
    head = ["after epochs", *map(str, epochs), "best (epoch)", "picked (epoch)", "verdict"]
    return "\n\n".join(
        [
            f"Published noise, ε = 10, ℓ = 64, one seed; printed {found['printed']}, the best on real images. The "
            "recipe: mean removed, labels moved to sum 1, batches of 512, averaged weights, a blur of one pixel, real "
            "images at a quarter of their contrast. *Picked*: the epoch of the least loss on a tenth of the mixtures, "
            "which reads no record.",
            table(head, rows),
        ]
    )


def _unit_norms(found: Mapping[str, Any], printed: Mapping[str, Sequence[float]]) -> Iterable[Row]:
    """Rows by ℓ and ε: runs of all seeds."""
    cells: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for name, run in found.items():
        _, epsilon, degree = name.partition(",")[0].split(":")
        cells.setdefault((int(degree), epsilon), []).append(run)
    for (degree, epsilon), runs in sorted(cells.items()):
        goal = printed[str(degree)][("inf", "20", "10").index(epsilon)]
        last = [run["accuracy by epoch"][-1] for run in runs]
        best = [max(run["accuracy by epoch"]) for run in runs]
        noise, exact = runs[0]["sigma"], runs[0]["epsilon"]
        yield [
            f"{degree}, {epsilon}",
            f"{goal:.3f}",
            f"{spread(last)} ({len(last)})",
            spread(best),
            f"{noise[0]:.3f}, {noise[1]:.4f}",
            f"{exact[DISTANCE_1]:.2f}",
            f"{exact['true']:.1f}",
            judge({"ours": Cell(goal, last)}, reasons("dpmix", "unit_norms", str(degree))),
        ]


def _of_network(run: Mapping[str, Any]) -> str:
    if not run["printed"]:
        return ABSENT
    return judge({"ours": Cell(run["printed"], [run["accuracy"]])}, reasons("dpmix", "network", run["mixtures"]))


def verdicts() -> str:
    """What became of every table and figure of the papers, from papers/verdicts.json."""
    rows = [
        [
            f"{entry['paper']} {entry['item']}",
            *(entry[name] for name in ("printed", "as_published", "best", "runs")),
            f"{entry['verdict']}: {entry['why']}" if "why" in entry else entry["verdict"],
        ]
        for entry in known()["items"]
    ]
    return "\n\n".join(
        [
            "## Verdicts",
            "Every table and figure of the four papers. *Matched*: within the spread of our runs (half their range, at "
            "least 0.005; 0.02 of a single run), or, of what prints no number, as the paper says; *beaten* and "
            f"*missed*: beyond it. In the tables below, *{PRINTED}* is the paper's own row, and *{ABSENT}* a row of "
            "ours that it does not have. Verdicts on rows with printed numbers follow from the runs "
            "(`papers/judged.py`); their reasons, and the other verdicts, are in `papers/verdicts.json`. *As "
            "published*: the published settings, at the true ε of their noise; what is not private as printed is in "
            "`papers/*/as_published.py`.",
            table(["figure", "the paper", "ours, as published", "ours, best", "runs", "verdict"], rows),
        ]
    )


def page() -> str:
    """The whole page."""
    head = [
        "# The papers' tables, and ours",
        "Made by `python papers/page.py` from the `expected.json` files under `papers/`, which also hold commands, "
        "seconds and settings. Everything here was scored on real records without noise: no figure is private.",
    ]
    return "\n\n".join([*head, verdicts(), section.section(), dp_em(), dpgm(), dpmix()]).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page is out of date")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit("docs/papers.md is out of date: run python papers/page.py.")


if __name__ == "__main__":
    main()
