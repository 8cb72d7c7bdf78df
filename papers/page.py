"""docs/papers.md: every paper's tables, from the expected.json files.

python papers/page.py            # write it
python papers/page.py --check    # say whether it is up to date
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "p3gm"))
sys.path.insert(0, str(Path(__file__).parent / "dpmix"))
import mixing_section
import section
from judged import ABSENT, PRINTED, here, known, said
from lot import is_within
from tabulated import Row, by_epsilon, made_by, spread, table

HERE = Path(__file__).parent
PLACES = {
    "gowalla_nyc": "New York",
    "gowalla_world": "World",
    "gowalla_grid256": "The paper's number of places, drawn from a grid of 6.4 million, three folds",
}
PAGE = HERE.parent / "docs" / "papers.md"


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
            made_by(expected[name]["command"]),
        ]
    llg = expected["figure_2_llg"]["mean_and_error"]
    text[-4:-4] = [
        "### Figure 2: scenario LLG, NOT PRIVATE as printed",
        _laplace(expected["figure_2"], llg),
        made_by(expected["figure_2_llg"]["command"]),
    ]
    text[2:2] = [
        "### Figure 1: an illustration in the plane",
        "Three Gaussians, 10,000 points, J = 30; mean log density of 10,000 other points.",
        table(["", "log density", "verdict"], _illustrated(expected["figure_1"]["found"])),
        made_by(expected["figure_1"]["command"]),
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
        text.append(made_by(_of_places(expected["figure_4"], places)))
    text += [
        "### Figure 4: more iterations, ε = 0.01",
        "The paper prints no J, and Laplace noise under zCDP is less than under linear composition only for "
        "J > 2 ln(1/δ) = 18.4. *Charged once*: the K noisy means of an iteration are one mechanism and their sizes "
        "another; *sizes exact*: the means alone. None of the published forms is private.",
        _by_iterations(expected["figure_4"]["iterations"]),
        made_by(_of_iterations(expected["figure_4"])),
    ]
    faces = expected["faces"]
    text += [
        "### Figure 5: loadings, as published, on the paper's 400 faces and on MNIST",
        _loadings(faces["runs"] | expected["as_published"]["factor_analysis"]),
        made_by({faces["command"]: ["faces"], expected["as_published"]["command"]: ["images"]}),
        f"The faces' second moment has the largest eigenvalue {faces['largest eigenvalue']:.2f}, its noise at ε = 0.3 "
        f"one of {faces['runs']['400 faces, printed ε = 0.3']['largest eigenvalue of the noise']:.1f}. They are "
        "64 × 64 pixels, divided by the longest one's norm, as printed: not private, and ε is what it would be if that "
        "norm were public.",
        "![ten loadings of faces without noise and at two ε](pictures/dp_em_faces.png)",
    ]
    return "\n\n".join(text)


def _of_places(found: Mapping[str, Any], places: str) -> dict[str, list[str]]:
    """Rows by command of a table of Figure 4."""
    made = found["grid"]["command"] if places == "gowalla_grid256" else f"{found['command']} --places {places}"
    peer = found["diffprivlib 0.6.6"]
    return {made: ["rows but the last"], peer["command"]: ["the last"]} if places in peer else {made: ["all rows"]}


def _of_iterations(found: Mapping[str, Any]) -> dict[str, list[str]]:
    """Columns by command of the table of Figure 4 by J."""
    return {run["command"]: [title] for title, run in _columns(found["iterations"]).items()}


def _columns(found: Mapping[str, Any]) -> dict[str, Any]:
    """Runs of Figure 4 at ε = 0.01 by places and J."""
    return {
        f"{'New York' if places == 'gowalla_nyc' else 'its number'}, J = {j}": run
        for places, runs in found.items()
        for j, run in runs.items()
    }


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
            made_by(found["command"]),
        ]
    )


def _by_iterations(found: Mapping[str, Any]) -> str:
    """Tabulate variances at ε = 0.01 by places and J, and say of the printed form whether it is below DPLloyd."""
    columns = {title: next(iter(run["mean_and_error"].values())) for title, run in _columns(found).items()}
    names = [name for name, points in next(iter(columns.values())).items() if "0.01" in points]
    rows = [
        [
            name,
            *(f"{curves[name]['0.01'][0]:.4f} ± {curves[name]['0.01'][1]:.4f}" for curves in columns.values()),
            _in_order(name, columns),
        ]
        for name in names
    ]
    return table(["", *columns, "verdict"], rows)


def _in_order(name: str, columns: Mapping[str, Mapping[str, Any]]) -> str:
    """Say where a published form of DP-EM has the paper's place, below DPLloyd under zCDP and that below linear."""
    if not name.startswith("DP-EM"):
        return said("dp_em", "figure_4_iterations", name)

    def ordered(curves: Mapping[str, Any]) -> bool:
        em, zcdp, linear = (curves[n]["0.01"][0] for n in (name, "DPLloyd, zCDP", "DPLloyd, linear"))
        return em < zcdp < linear

    at = [column for column, curves in columns.items() if ordered(curves)]
    rest = [column for column in columns if column not in at]
    words = {"matched: the printed order": at, "missed: another order than the paper's": rest}
    return "; ".join(f"{word} at {'; '.join(columns)}" for word, columns in words.items() if columns)


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
        made_by(accounts["command"]),
        "### Figure 3: clustering accuracy, binarised MNIST",
        by_epsilon(expected["figure_3"]["mean_and_runs"], 3, partial(said, "dpgm", "figure_3")),
        made_by(expected["figure_3"]["command"]),
        "*As printed*: 20 iterations from ten public records, noise by the printed moments, no cluster parted. Exact ε "
        "of both, add/remove: "
        f"{', '.join(f'{exact} at {e}' for e, exact in expected['figure_3']['exact epsilon of Algorithm 2'].items())}.",
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
        data, _, epsilon = places.partition(", ε = ")
        names = " ".join(f'"{method}"' for method in methods)
        text.append(made_by(f"{expected['figure_5']['command']} --only {data} --epsilons {epsilon} --methods {names}"))
    text += [
        "### Figure 4: samples, a row per cluster",
        "![samples of handwritten digits](pictures/dpgm_samples.png)",
        "### Figure 7: fixed against adaptive clipping norms",
        "![held-out loss against the clip norm](pictures/dpgm_clipping.png)",
    ]
    return "\n\n".join(text)


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
            "Every table and figure of the four papers. *Matched*: within the spread of our runs (their standard "
            "deviation, at least 0.005; 0.02 of a single run), or, of what prints no number, as the paper says; "
            f"*beaten* and *missed*: beyond it. In the tables below, *{PRINTED}* is the paper's own row, and "
            f"*{ABSENT}* a row of ours that it does not have. Verdicts on rows with printed numbers follow from runs "
            "(`papers/judged.py`); their reasons, and the other verdicts, are in `papers/verdicts.json`. *As "
            "published*: the published settings, at the true ε of their noise; what is not private as printed is in "
            "`papers/*/as_published.py`.",
            table(["figure", "the paper", "ours, as published", "ours, best", "runs", "verdict"], rows),
        ]
    )


def lot() -> str:
    """The cells that a lot chose and a fresh clone ran again, from papers/lot.json."""
    found = json.loads((HERE / "lot.json").read_text(encoding="utf-8"))
    rows = [
        [
            *(cell[name] for name in ("number", "paper", "table", "row", "column", "page", "again", "spread")),
            "matched" if is_within(cell) else f"missed: {cell['why']}",
        ]
        for cell in found["cells"]
    ]
    return "\n\n".join(
        [
            "## Ten cells by lot",
            found["what"],
            table(["", "paper", "table", "row", "column", "page", "again", "spread", "verdict"], rows),
            made_by(
                {
                    command: [str(cell["number"]) for cell in found["cells"] if cell["command"] == command]
                    for command in dict.fromkeys(cell["command"] for cell in found["cells"])
                }
            ),
            f"Passed over: {'; '.join(f'{number} ({why})' for number, why in found['passed over'].items())}.",
        ]
    )


def page() -> str:
    """The whole page."""
    head = [
        "# The papers' tables, and ours",
        "Made by `python papers/page.py` from the `expected.json` files under `papers/`, which also hold commands, "
        "seconds and settings. Everything here was scored on real records without noise: no figure is private. "
        "Under each table stands the command that makes its cells, FOLDER being that of the data; `make papers-quick` "
        "reruns the cheap ones and compares.",
    ]
    papers = section.section(), dp_em(), dpgm(), mixing_section.section()
    return "\n\n".join([*head, verdicts(), lot(), *papers]).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page is out of date")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit("docs/papers.md is out of date: run python papers/page.py.")


if __name__ == "__main__":
    main()
