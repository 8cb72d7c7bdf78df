"""What the papers' page says of P3GM: tables and figures, from expected.json."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from judged import ABSENT, PRINTED, Cell, judge, reasons, said
from tabulated import Row, cell, grouped, made_by, spread, table, why_not

HERE = Path(__file__).parent
DATA = {"credit": "Credit", "esr": "Seizure", "adult": "Adult", "isolet": "ISOLET"}
METHODS = {
    "released": "P3GM, as released",
    "written": "P3GM, as written",
    "best": "P3GM, best form",
    "vae": "DP-VAE",
    "dpgm": "DPGM",
    "max-entropy": "**`max-entropy`**",
    "mst": "MST",
    "aim": "AIM",
    "privbayes": "PrivBayes",
    "mwem": "MWEM",
    "mwem-by-threes": "MWEM, columns in threes",
    "dp-ctgan": "DP-CTGAN",
    "pgm": "PGM, no noise",
    "plain vae": "VAE, no noise",
    "real": "real rows",
    "real-binned": "real rows in the peers' bins",
}
IMAGES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
RIVALS = {"mst": "Ryan's", "privbayes": "PrivBayes", "dpgm": "DP-GM", "real": "original", "plain vae": "VAE"}
OURS = ("released", "written", "best", "max-entropy", "max-entropy, fidelity", "max-entropy, training")
# Runs from before the scripts of this folder: what made them, by the file that they are taken from. DATA and NAME are
# a column and a row of the table.
EARLIER = {
    "p3gm": "python benchmarks/p3gm.py FOLDER --only DATA --methods NAME --out FILE",
    "adult": "python benchmarks/adult.py FOLDER/adult.parquet --fits 5",
    "tables": "python benchmarks/tables.py FOLDER DATA --fits 5",
    "peers": "python benchmarks/peers.py FOLDER --tables DATA --methods NAME",
    "images": "python benchmarks/images.py FOLDER DATA --purpose {purpose} --fits 5",
}
CLASSIFIERS = ("logistic_regression", "ada_boost", "gradient_boosting", "xgboost")


def section() -> str:
    """Tables V to VIII and the figures that have numbers."""
    expected = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
    paper, runs = expected["paper"], grouped(expected["runs"])
    text = [
        "## P3GM",
        "Takagi, Takahashi, Cao and Yoshikawa (ICDE 2021); scripts and notes in `papers/p3gm`. ε = 1 and δ = 1e-5 but "
        "for the published settings, at their true ε. Means, ± the standard deviation, number of runs in brackets. "
        "Peers have the settings they come with.",
        "### Table VI: AUROC / AUPRC, mean of four classifiers",
        table(
            ["", *DATA.values(), "verdict"],
            [*_table_6(paper["table_6"], runs), *_literal(expected), *_scaled(expected)],
        ),
        made_by(
            _of_tables(runs, METHODS, DATA)
            | {
                expected["as_published"]["esr"]["command"]: ["the released code's algorithm"],
                expected["scaled"]["command"]: ["rows on its own scale"],
            }
        ),
        "*As written* on Credit: by the paper's account its decoder alone costs 1.02, so that no noise of its mixture "
        "meets ε = 1. The mixture has Seizure's noise, and the true ε of all of it is below 1.",
        f"*On its own scale*: Seizure's 178 amplitudes as one line of an image, between the public bounds "
        f"±{expected['scaled']['bound']}, instead of ranks under bought marginals; private. The bound was fixed "
        "before a run. Why it misses, on validation rows (`python papers/p3gm/scaled.py --data FOLDER --validate "
        "--methods best 'best, no noise' 'released, no noise' --runs 2`): the released form reaches 0.81 and 0.82 "
        "AUROC, 0.66 and 0.70 AUPRC, without any noise, so that its form binds; our best form 0.86 and 0.81 without "
        "noise, and 0.83 and 0.71 with it, so that there noise does.",
        "### Table VIII: total variation of all pairs of columns",
        table(["", *DATA.values(), "verdict"], _table_8(paper["table_8"], runs)),
        made_by(_of_tables(runs, METHODS, DATA)),
        "The paper does not say how it bins numbers: in other bins than our 20 figures and verdicts would differ, and "
        "only the order of methods compares.",
        "### Table V: Credit, classifier by classifier, AUROC / AUPRC",
        table(
            ["", "VAE, no noise", "PGM, no noise", "P3GM, as released", "P3GM, best form", "`max-entropy`", "verdict"],
            _table_5(paper["table_5"], runs),
        ),
        made_by(_of_tables(runs, ("plain vae", "pgm", "released", "best", "max-entropy"), ("credit",))),
        "### Table VII: accuracy of a network that samples teach",
        table(
            ["", "MNIST", "Fashion-MNIST", "verdict"],
            _table_7(paper["table_7"], runs, expected["as_published"]),
        ),
        made_by(_of_table_7(runs, expected["as_published"])),
        "![samples of MNIST by five methods, a row per label](pictures/p3gm_samples.png)",
        "![samples of Fashion-MNIST by five methods, a row per label](pictures/p3gm_samples_fashion.png)",
        *(_in_colour(expected["colour"]) if expected["colour"]["runs"] else []),
        *_figures(expected["figures"]),
    ]
    return "\n\n".join(text)


def _of_tables(
    runs: Mapping[tuple[str, str], list[dict[str, Any]]], methods: Iterable[str], data: Iterable[str]
) -> dict[str, list[str]]:
    """Rows by the command that makes them, each with its name there."""
    found: dict[str, list[str]] = {}
    for method in methods:
        for command in sorted({_command(run["from"]) for name in data for run in runs.get((name, method), [])}):
            name = f" ({method})" if "NAME" in command else ""
            found.setdefault(command, []).append(f"{METHODS.get(method, method)}{name}")
    return found


def _command(source: str) -> str:
    """Return the command of a run: its own, or that of the file that it was taken from."""
    if source.startswith("python "):
        return f"{source} --only DATA --methods NAME" if "tables.py" in source else source
    stem = Path(source).stem
    return EARLIER[stem.partition("_")[0]].format(purpose=stem.rpartition("_")[2])


def _of_table_7(
    runs: Mapping[tuple[str, str], list[dict[str, Any]]], literal: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Rows by the command that makes them."""
    methods = ("plain vae", "vae", "released", "best", "max-entropy, fidelity", "max-entropy, training")
    found = _of_tables(runs, methods, IMAGES)
    for each in (literal, literal["fashion_mnist"]):
        found[each["command"]] = ["the released code's algorithm"]
    published = json.loads((HERE.parent / "dpgm" / "expected.json").read_text(encoding="utf-8"))["as_published"]
    for each in (published, published["fashion_mnist"]):
        found[each["command"]] = ["DPGM"]
    return found


def _of_figure(number: int, more: str = "") -> str:
    return made_by(f"python papers/p3gm/figure_{number}.py --data FOLDER{more}")


def _epsilon(runs: Mapping[tuple[str, str], list[dict[str, Any]]], method: str, data: str) -> str:
    found = [run["epsilon"] for run in runs.get((data, method), []) if run.get("epsilon")]
    return f", ε = {found[-1]:.2f}" if found and method in ("released", "written") else ""


def _table_6(paper: Mapping[str, Any], runs: Mapping[tuple[str, str], list[dict[str, Any]]]) -> Iterable[Row]:
    for i, name in enumerate(paper["methods"]):
        label = {"original": "real rows, as printed"}.get(name, f"{name}, as printed")
        yield [label, *(f"{paper[data]['auroc'][i]:.3f} / {paper[data]['auprc'][i]:.3f}" for data in DATA), PRINTED]
    for method, label in METHODS.items():
        found = [cell(runs.get((data, method), []), "auroc", "auprc") + _epsilon(runs, method, data) for data in DATA]
        yield [label, *found, _verdict("table_6", paper, runs, method, {"auroc": "AUROC", "auprc": "AUPRC"})]


def _literal(expected: Mapping[str, Any]) -> Iterable[Row]:
    """Rows of the released code's algorithm on Seizure, by how columns are scaled: not private."""
    printed = expected["paper"]["table_6"]["esr"]
    rival = expected["paper"]["table_6"]["methods"].index("P3GM")
    for name, found in expected["as_published"]["esr"]["runs"].items():
        cells = {
            f"Seizure {measure.upper()}": Cell(printed[measure][rival], [run[measure] for run in found])
            for measure in ("auroc", "auprc")
        }
        row = ["–", cell(found, "auroc", "auprc"), "–", "–"]
        verdict = judge(cells, reasons("p3gm", "table_6", "literal"))
        yield [f"P3GM, the released code's algorithm, {name.partition(', ')[2]}: not private", *row, verdict]


def _scaled(expected: Mapping[str, Any]) -> Iterable[Row]:
    """Rows on Seizure's own scale."""
    printed = expected["paper"]["table_6"]["esr"]
    rival = expected["paper"]["table_6"]["methods"].index("P3GM")
    for method, found in expected["scaled"]["runs"].items():
        cells = {
            f"Seizure {measure.upper()}": Cell(printed[measure][rival], [run[measure] for run in found])
            for measure in ("auroc", "auprc")
        }
        row = ["–", f"{cell(found, 'auroc', 'auprc')}, ε = {found[0]['epsilon']:.2f}", "–", "–"]
        yield [f"{METHODS[method]}, on its own scale", *row, judge(cells, reasons("p3gm", "table_6", "scaled"))]


def _in_colour(found: Mapping[str, Any]) -> list[str]:
    """What `Image` columns in colour come to, by method, ε, images and epochs of the network."""
    rows = []
    for key, run in found["runs"].items():
        method, epsilon, images, epochs, _ = key.split(" | ")
        shown = f"{run['accuracy']:.3f}" if "accuracy" in run else why_not(run)
        rows.append([method, "∞" if method == "real" else epsilon, images, epochs, shown, ABSENT])
    return [
        "### CIFAR-10 through `Image` columns",
        found["what"],
        table(["method", "ε", "images", "epochs", "accuracy on test images", "verdict"], rows),
        made_by(found["command"]),
    ]


def _table_8(paper: Mapping[str, Any], runs: Mapping[tuple[str, str], list[dict[str, Any]]]) -> Iterable[Row]:
    for i, name in enumerate(paper["methods"]):
        yield [f"{name}, as printed", *(f"{paper[data][i]:.3f}" for data in DATA), PRINTED]
    for method, label in METHODS.items():
        if method == "real":
            continue
        found = [cell(runs.get((data, method), []), "tvd_2way") for data in DATA]
        yield [label, *found, _verdict("table_8", paper, runs, method, {"tvd_2way": ""}, higher=False)]


def _table_5(paper: Mapping[str, Any], runs: Mapping[tuple[str, str], list[dict[str, Any]]]) -> Iterable[Row]:
    columns = {"plain vae": "VAE", "pgm": "PGM", "released": "P3GM", "best": None, "max-entropy": None}
    for i, name in enumerate(CLASSIFIERS):
        row = [name.replace("_", " ")]
        for method, printed in columns.items():
            done = [run["per_classifier"][name] for run in runs.get(("credit", method), []) if "per_classifier" in run]
            ours = " / ".join(f"{fmean(values):.3f}" for values in zip(*done, strict=True)) or "not run"
            beside = (
                f" (printed {paper[printed]['auroc'][i]:.3f} / {paper[printed]['auprc'][i]:.3f})" if printed else ""
            )
            row.append(ours + beside)
        yield [*row, _of_classifier(paper, runs, i, name)]


def _of_classifier(
    paper: Mapping[str, Any], runs: Mapping[tuple[str, str], list[dict[str, Any]]], i: int, name: str
) -> str:
    cells = {}
    for method, printed in {"plain vae": "VAE", "pgm": "PGM", "released": "P3GM"}.items():
        done = [run["per_classifier"][name] for run in runs[("credit", method)] if "per_classifier" in run]
        for j, measure in enumerate(("auroc", "auprc")):
            cells[f"{printed} {measure.upper()}"] = Cell(paper[printed][measure][i], [scores[j] for scores in done])
    return judge(cells, reasons("p3gm", "table_5", name))


def _verdict(
    name: str,
    paper: Mapping[str, Any],
    runs: Mapping[tuple[str, str], list[dict[str, Any]]],
    method: str,
    measures: Mapping[str, str],
    *,
    data: Mapping[str, str] = DATA,
    higher: bool = True,
) -> str:
    """Say what became of a row: against its own printed row, ours against the paper's P3GM."""
    rival = RIVALS.get(method, "P3GM" if method in OURS else None)
    if rival not in paper["methods"]:
        return ABSENT
    column, cells = paper["methods"].index(rival), {}
    for key, label in data.items():
        for measure, short in measures.items():
            printed = paper[key][measure] if short else paper[key]
            found = runs.get((key, method), [])
            values = [run[measure] for run in found if measure in run]
            reason = "" if values or not found else why_not(found[0])
            cells[f"{label} {short}".strip()] = Cell(printed[column], values, reason, higher)
    return judge(cells, reasons("p3gm", name, method))


def _table_7(
    paper: Mapping[str, Any], runs: Mapping[tuple[str, str], list[dict[str, Any]]], literal: Mapping[str, Any]
) -> Iterable[Row]:
    images = tuple(IMAGES)
    for i, name in enumerate(paper["methods"]):
        yield [f"{name}, as printed", *(f"{paper[data][i]:.3f}" for data in images), PRINTED]
    rows = {
        "plain vae": "VAE, no noise",
        "vae": "DP-VAE",
        "released": "P3GM, as released",
        "best": "P3GM, best form",
        "max-entropy, fidelity": "**`max-entropy`**, for fidelity",
        "max-entropy, training": "**`max-entropy`**, for training",
    }
    published = json.loads((HERE.parent / "dpgm" / "expected.json").read_text(encoding="utf-8"))["as_published"]
    rival = paper["methods"].index("P3GM")
    released = {"mnist": literal["runs"]["released"], "fashion_mnist": literal["fashion_mnist"]["runs"]["released"]}
    cells = {IMAGES[data]: Cell(paper[data][rival], [run["accuracy"] for run in released[data]]) for data in images}
    shown = [
        f"{cell(found, 'accuracy')}, best epoch {found[0]['accuracy_best_epoch']:.3f}" for found in released.values()
    ]
    yield [
        "P3GM, the released code's algorithm: not private",
        *shown,
        judge(cells, reasons("p3gm", "table_7", "literal")),
    ]
    rival, clothes = paper["methods"].index("DP-GM"), published["fashion_mnist"]["runs"]
    cells = {
        "MNIST": Cell(paper["mnist"][rival], [run["accuracy"] for run in published["runs"]]),
        "Fashion-MNIST": Cell(paper["fashion_mnist"][rival], [run["accuracy"] for run in clothes]),
    }
    yield [
        "DPGM, as published: not private, printed ε = 1.742",
        cell(published["runs"], "accuracy"),
        cell(clothes, "accuracy"),
        judge(cells, {}),
    ]
    for method, label in rows.items():
        yield [
            label,
            *(cell(runs.get((data, method), []), "accuracy") + _epsilon(runs, method, data) for data in images),
            _verdict("table_7", paper, runs, method, {"accuracy": ""}, data=IMAGES),
        ]


def _point(*scores: float | str) -> str:
    """Scores at a point of a figure, or why there are none."""
    return next((why for why in scores if isinstance(why, str)), "") or " / ".join(f"{score:.3f}" for score in scores)


def _figures(found: Mapping[str, Any]) -> list[str]:
    text = []
    if "figure_4" in found:
        curves = found["figure_4"]
        epsilons = list(next(iter(curves.values())))
        rows = [
            [METHODS[m], *(_point(*points[e]) if e in points else "–" for e in epsilons), said("p3gm", "figure_4", m)]
            for m, points in curves.items()
        ]
        text += [
            "### Figure 4: Credit, AUROC / AUPRC against ε",
            table(["ε", *epsilons, "verdict"], rows),
            _of_figure(4),
        ]
        text.append("![AUROC and AUPRC of Credit against ε](pictures/p3gm_figure_4.png)")
    if "figure_5" in found:
        points = found["figure_5"]
        rows = [["accuracy", *(f"{spread(values)} ({len(values)})" for values in found["figure_5_runs"].values())]]
        rows.append(["ε", *(f"{epsilon:.2f}" for _, epsilon in points.values())])
        rows = [[*row, said("p3gm", "figure_5", row[0])] for row in rows]
        head = ["axes", *points, "verdict"]
        text += ["### Figure 5: MNIST against the number of axes, published noise", table(head, rows), _of_figure(5)]
        text.append("![accuracy on MNIST against the number of axes](pictures/p3gm_figure_5.png)")
    if "figure_6" in found:
        curves = found["figure_6"]
        sizes = list(next(iter(curves.values())))
        rows = [
            [METHODS[m], *(_point(points[d]) if d in points else "–" for d in sizes), said("p3gm", "figure_6", m)]
            for m, points in curves.items()
        ]
        text += [
            "### Figure 6: AUROC against the number of numeric columns, two Gaussians",
            table(["columns", *sizes, "verdict"], rows),
            _of_figure(6),
            "![AUROC against the number of numeric columns](pictures/p3gm_figure_6.png)",
        ]
    if "figure_9" in found:
        lines = dict(found["figure_9"])
        sigmas = lines.pop("sigma")
        rows = [
            [name, *(f"{value:.2f}" for value in values), said("p3gm", "figure_9", name)]
            for name, values in lines.items()
        ]
        head = ["σ", *sigmas, "verdict"]
        text += ["### Figure 9: ε against the noise of a step, written settings of MNIST", table(head, rows)]
        text.append(made_by("python papers/p3gm/figure_9.py"))
        text.append("![ε against the noise of a step](pictures/p3gm_figure_9.png)")
    for data, title in (("credit", "Credit, AUROC"), ("mnist", "MNIST, accuracy")):
        if f"figure_7_{data}" in found:
            curves = found[f"figure_7_{data}"]
            epochs = list(next(iter(curves.values())))
            rows = [
                [
                    method,
                    *("{:.3f}, ε = {:.2f}".format(*points[e]) if e in points else "–" for e in epochs),
                    said("p3gm", f"figure_7_{data}", method),
                ]
                for method, points in curves.items()
            ]
            text += [f"### Figure 7: {title} by epochs, validation rows", table(["epochs", *epochs, "verdict"], rows)]
            text.append(_of_figure(7))
            text.append(f"![{title} by epochs](pictures/p3gm_figure_7_{data}.png)")
    if "figure_8" in found:
        points = found["figure_8"]["P3GM"]
        row = ["accuracy", *(f"{accuracy:.3f}" for accuracy in points.values()), said("p3gm", "figure_8", "accuracy")]
        adult = found["figure_8_adult"]
        aurocs = [f"{spread(adult[share])} ({len(adult[share])})" for share in points]
        text += [
            "### Figure 8: Adult, as in the paper, against the encoder's share of the budget, ε = 1, validation rows",
            table(["share", *points, "verdict"], [["AUROC", *aurocs, said("p3gm", "figure_8", "AUROC")]]),
            made_by(adult["command"]),
            "### Figure 8: MNIST against the encoder's share of the budget, ε = 1, validation images",
            table(["share", *points, "verdict"], [row]),
            _of_figure(8, " --of mnist --runs 1"),
        ]
    text += [
        "### Figures 7 and 8, best form",
        "![loss by epoch](pictures/p3gm_curves.png)",
        "![score against the share of the descent](pictures/p3gm_shares.png)",
    ]
    return text
