"""docs/papers.md is up to date, and what README claims is in the files it names."""

import importlib.util
import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIGURES = README.partition("## Figures")[2].partition("\n## ")[0]
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def _page():
    spec = importlib.util.spec_from_file_location("papers_page", ROOT / "papers" / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_papers_is_what_the_files_say():
    page = _page()
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run python papers/page.py"


def test_pictures_of_the_page_are_there_and_small():
    page = ROOT / "docs" / "papers.md"
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    assert pictures
    assert all((page.parent / name).stat().st_size < 120_000 for name in pictures)


def _numbers(found: object) -> set[float]:
    """Every number of a JSON document, and the means over lists of runs."""
    if isinstance(found, bool) or found is None or isinstance(found, str):
        return set()
    if isinstance(found, int | float):
        return {float(found)}
    if isinstance(found, list):
        runs = [one for one in found if isinstance(one, dict)]
        shared = set.intersection(*map(set, runs)) if runs else set()
        means = {fmean(run[key] for run in runs) for key in shared if all(_is_number(run[key]) for run in runs)}
        return means.union(*map(_numbers, found))
    groups = defaultdict(list)
    for key, value in found.items():
        if key.count(" | ") == 2:
            groups[key.rpartition(" | ")[0]].append(value)
    return set().union(*map(_numbers, found.values()), *map(_numbers, groups.values()))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _known(text: str) -> set[float]:
    files = [ROOT / name for name in LINK.findall(text)]
    assert all(path.is_file() for path in files)
    return set().union(*(_numbers(json.loads(path.read_text())) for path in files if path.suffix == ".json"))


def _quoted(text: str) -> list[str]:
    return re.findall(r"(?<![\d.])0\.\d{2,3}(?!\d)", LINK.sub("", text))


@pytest.mark.parametrize("block", [b for b in FIGURES.split("\n\n") if _quoted(b)], ids=lambda b: b[:30])
def test_every_figure_of_the_readme_is_in_the_file_it_names(block: str) -> None:
    lines = block.splitlines()
    rows = [lines[0] + line for line in lines[2:]] if block.startswith("|") else [block]
    for row in rows:
        known = _known(row) | (_known("](papers/published.json)") if "real images" in row else set())
        missing = [q for q in _quoted(row) if not any(abs(float(q) - k) <= 0.51 * 10 ** -(len(q) - 2) for k in known)]
        assert not missing, row


def _cells(line: str) -> list[str]:
    """Cells of a table's row, without the addresses of their links."""
    return [LINK.sub("", cell).replace("[", "").strip() for cell in line.strip("|").split(" | ")]


def _rows_of_the_readme() -> dict[str, dict[str, list[str]]]:
    """Figures of its tables' rows, by the first word of the row and the title of the column."""
    rows = {}
    for lines in (block.splitlines() for block in FIGURES.split("\n\n") if block.startswith("| ")):
        titles = _cells(lines[0])
        for line in lines[2:]:
            cells = _cells(line)
            rows[cells[0].split()[0]] = dict(zip(titles, map(_quoted, cells), strict=True))
    return rows


def _are(quoted: list[str], values: list[float]) -> bool:
    return len(quoted) == len(values) and all(
        abs(float(q) - v) <= 0.51 * 10 ** -(len(q) - 2) for q, v in zip(quoted, values, strict=True)
    )


@pytest.mark.parametrize(
    ("row", "file", "data"),
    [
        ("UCI", "adult", "adult"),
        ("credit", "tables_credit", "credit"),
        ("epileptic", "tables_esr", "esr"),
        ("ISOLET", "tables_isolet", "isolet"),
    ],
)
def test_cells_of_the_readme_s_tables_are_those_figures(row: str, file: str, data: str) -> None:
    """Samples, real rows and the paper's own: two thirds of all figures are somewhere in P3GM's file."""
    measured = json.loads((ROOT / "benchmarks" / "results" / f"{file}.json").read_text(encoding="utf-8"))
    printed = json.loads((ROOT / "papers" / "p3gm" / "expected.json").read_text(encoding="utf-8"))["paper"]["table_6"]
    fits = measured["fits"]
    real = measured.get("real") or fits[0]["real"]
    expected = {}
    for score in ("auroc", "auprc"):
        title = score.upper()
        expected[title] = fmean(fit[score] for fit in fits)
        expected[f"{title} of real rows"] = real[score]
        expected[f"{title} in P3GM's paper"] = printed[data][score][printed["methods"].index("P3GM")]
    cells = _rows_of_the_readme()[row]
    assert cells.keys() - {"table"} == expected.keys()
    assert cells["table"] == []
    assert {title: cells[title] for title, value in expected.items() if not _are(cells[title], [value])} == {}


@pytest.mark.parametrize(("row", "data"), [("MNIST", "mnist"), ("Fashion-MNIST", "fashion_mnist")])
def test_cells_of_the_readme_s_images_are_those_figures(row: str, data: str) -> None:
    printed = json.loads((ROOT / "papers" / "p3gm" / "expected.json").read_text(encoding="utf-8"))["paper"]["table_7"]
    cells = _rows_of_the_readme()[row]
    for purpose in ("fidelity", "training"):
        found = json.loads((ROOT / "benchmarks" / "results" / f"images_{data}_{purpose}.json").read_text())
        assert _are(cells[f"for {purpose}"], [fmean(run["accuracy"] for run in found["runs"])])
    assert _are(cells["in P3GM's paper"], [printed[data][printed["methods"].index("P3GM")]])
    published = json.loads((ROOT / "papers" / "published.json").read_text(encoding="utf-8"))
    assert _are(cells["real images"], [published["networks on real images"][data]])


@pytest.mark.parametrize("block", [b for b in FIGURES.split("\n\n") if re.search(r"\d", b)], ids=lambda b: b[:30])
def test_every_claim_with_a_number_names_a_file(block: str) -> None:
    named = [name for name in LINK.findall(block) if name.startswith(("papers/", "benchmarks/"))]
    assert named
    assert all((ROOT / name).exists() for name in named)


PROSE = re.sub(r"```.*?```", "", README, flags=re.S).replace(FIGURES, "")


def test_figures_elsewhere_in_the_readme_are_in_a_file_of_results() -> None:
    files = [*(ROOT / "papers").glob("*/expected.json"), *(ROOT / "benchmarks" / "results").rglob("*.json")]
    known = set().union(*(_numbers(json.loads(path.read_text())) for path in files))
    missing = [q for q in _quoted(PROSE) if not any(abs(float(q) - k) <= 0.51 * 10 ** -(len(q) - 2) for k in known)]
    assert not missing


@pytest.mark.parametrize(
    ("heading", "folder"), [("P3GM", "p3gm"), ("DPGM", "dpgm"), ("DP-EM", "dp_em"), ("DPMix", "dpmix")]
)
def test_every_figure_of_the_page_is_in_the_paper_s_file_of_results(heading: str, folder: str) -> None:
    """Also those in sentences and verdicts, which are written by hand."""
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = json.loads((ROOT / "papers" / folder / "expected.json").read_text(encoding="utf-8"))
    if folder == "p3gm":  # whose rival is DPGM
        rival = json.loads((ROOT / "papers" / "dpgm" / "expected.json").read_text(encoding="utf-8"))
        found["rival"] = rival["as_published"]
    known = _numbers(found) | {0.005, 0.01, 0.02} | _of_classifiers(found)
    quoted = re.findall(r"(?<![\d.])-?\d+\.\d{2,4}(?![\de])", re.sub(r" ± [\d.]+", "", section))
    missing = {q for q in quoted if not any(abs(float(q) - k) <= 0.51 * 10 ** -len(q.partition(".")[2]) for k in known)}
    assert quoted
    assert not missing


def _of_classifiers(found: object) -> set[float]:
    """Means over the runs of a classifier's pair of scores."""
    runs = found.get("runs", {}) if isinstance(found, dict) else {}
    groups = defaultdict(list)
    for key, run in runs.items():
        for name, scores in run.get("per_classifier", {}).items():
            groups[key.rpartition(" | ")[0], name].append(scores)
    return {fmean(values) for done in groups.values() for values in zip(*done, strict=True)}


@pytest.mark.parametrize(("column", "name"), [(2, "mnist"), (3, "fashion_mnist")])
def test_the_decision_on_matched_features_has_the_figures_of_its_files(column: int, name: str) -> None:
    page = (ROOT / "docs" / "decisions" / "0045-no-matched-features.md").read_text(encoding="utf-8")
    found = json.loads((ROOT / "benchmarks" / "results" / f"feature_matching_{name}.json").read_text(encoding="utf-8"))
    rows = {
        line.split(" | ")[0].strip("| "): line.split("|")[column].split()[0]
        for line in page.splitlines()
        if "|" in line
    }
    assert rows["must be above"] == f"{found['must_exceed']:.3f}"
    shown = {
        "real images": "real images",
        "matched features, one Gaussian a class": "matched features, one Gaussian a class",
        "one Gaussian a class in pixels, full covariance": "one Gaussian a class, full covariance",
    }
    for label, key in shown.items():
        assert abs(float(rows[label]) - found["mean"][key]) <= 0.00051
    assert found["mean"]["matched features, one Gaussian a class"] < found["must_exceed"]
    assert not found["passes"]
    other = json.loads(
        (ROOT / "benchmarks" / "results" / f"feature_matching_{name}_scattering.json").read_text(encoding="utf-8")
    )
    row = next(line for line in page.splitlines() if line.startswith("| matched scattering"))
    matched = other["mean"]["matched features, one Gaussian a class"]
    assert abs(float(row.split("|")[column].split()[0]) - matched) <= 0.00051
    assert matched < other["must_exceed"] == found["must_exceed"]
    assert not other["passes"]
