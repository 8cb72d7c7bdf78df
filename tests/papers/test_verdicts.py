"""Every row of docs/papers.md has a verdict, and verdicts follow from figures."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "papers"))
judged = import_module("judged")

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
KNOWN = judged.known()
TABLES = re.findall(r"^\| .*(?:\n\| .*)+", PAGE, flags=re.M)
ITEMS = {
    "P3GM": [*(f"Table {n}" for n in ("V", "VI", "VII", "VIII")), *(f"Figure {n}" for n in (2, 4, 5, 6, 7, 8, 9))],
    "DP-EM": [f"Figure {n}" for n in (1, 2, 3, 4, 5)],
    "DPGM": [f"Figure {n}" for n in (2, 3, 4, 5, 6, 7, 8)],
    "DPMix": [
        *(f"Table {n}, {data}" for n in ("I", "II") for data in ("MNIST", "CIFAR-10")),
        *(f"Figure {n}" for n in (1, 2, 3, 4)),
    ],
}


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def _found(paper):
    return json.loads((ROOT / "papers" / paper / "expected.json").read_text(encoding="utf-8"))


def _is_verdict(text):
    """A word, or words before cells; what is missed or not run says why."""
    parts = [re.fullmatch(rf"({'|'.join(judged.WORDS)})(?:: (.+))?", part) for part in _parts(text)]
    return all(parts) and all(part[2] for part in parts if part[1] in judged.NEEDS_A_REASON)


def _parts(text):
    """Split at semicolons before a word, not at those inside a reason."""
    return re.split(rf"; (?=(?:{'|'.join(judged.WORDS)})(?:: |$))", text)


def test_the_page_has_tables():
    assert len(TABLES) >= 20


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table[:40])
def test_every_row_has_a_verdict(table):
    head, _, *rows = table.splitlines()
    assert _cells(head)[-1] == "verdict"
    for line in rows:
        assert len(_cells(line)) == len(_cells(head)), line
        assert _is_verdict(_cells(line)[-1]), line


@pytest.mark.parametrize("text", ["", "won", "missed", "not run", "matched: a; missed", "beaten; not run"])
def test_what_is_no_verdict_is_told(text):
    assert not _is_verdict(text)


def test_every_table_and_figure_of_the_papers_is_there():
    found = {paper: [e["item"] for e in KNOWN["items"] if e["paper"] == paper] for paper in ITEMS}
    assert {paper: sorted(items) for paper, items in found.items()} == {p: sorted(i) for p, i in ITEMS.items()}


@pytest.mark.parametrize(
    ("printed", "runs", "higher", "word"),
    [
        (0.80, [0.78, 0.82], True, "matched"),
        (0.80, [0.82, 0.83], True, "beaten"),
        (0.80, [0.78, 0.77], True, "missed"),
        (0.80, [0.78, 0.77], False, "beaten"),
        (0.80, [0.81], True, "matched"),
        (0.80, [0.83], True, "beaten"),
        (0.80, [], True, "not run"),
    ],
)
def test_the_rule(printed, runs, higher, word):
    assert judged.Cell(printed, runs, higher=higher).word() == word


def test_what_is_missed_without_a_reason_is_an_error():
    with pytest.raises(KeyError):
        judged.judge({"MNIST": judged.Cell(0.9, [0.5])}, {})


def test_a_paper_s_order_that_is_called_matched_holds():
    """DP-EM's compositions: linear below advanced, advanced far below zCDP, which is not below moments."""
    for figure in ("figure_2", "figure_3"):
        curves = _found("dp_em")[figure]["mean_and_error"]
        names = [f"published GGG, {name}" for name in ("linear", "advanced", "moments", "zcdp")]
        assert all(KNOWN["rows"]["dp_em"][figure][name].startswith("matched") for name in names)
        for epsilon in curves["joint, ours"]:
            linear, advanced, moments, zcdp = (curves[name][epsilon] for name in names)
            assert linear[0] <= advanced[0] <= moments[0] <= zcdp[0] + zcdp[1]
            assert curves["joint, ours"][epsilon][0] > max(curves["published GGG, pld"][epsilon][0], zcdp[0])


def test_a_paper_s_order_that_is_called_missed_does_not_hold():
    """DP-EM's k-means at the paper's ε: it prints DP-EM < zCDP < linear."""
    for curves in _found("dp_em")["figure_4"]["mean_and_error"].values():
        linear, zcdp, em = (
            curves[name]["0.01"][0] for name in ("DPLloyd, linear", "DPLloyd, zCDP", "DP-EM as published, zCDP")
        )
        assert em > zcdp > linear
        ours, others = curves["joint, bought grid (ours)"], ("DPLloyd, linear", "DPLloyd, zCDP")
        assert all(ours[e][0] < min(curves[name][e][0] for name in others) for e in ours)


def test_peers_of_figure_4_and_7_are_as_said():
    figures = _found("p3gm")["figures"]
    best, privbayes = figures["figure_4"]["best"], figures["figure_4"]["privbayes"]
    assert [e for e in best if privbayes[e][0] > best[e][0]] == ["0.5"]
    mnist = figures["figure_7_mnist"]
    assert mnist["P3GM(AE)"]["10"][0] > mnist["P3GM"]["10"][0] > mnist["DP-VAE"]["10"][0]


def _numbers(found):
    if isinstance(found, bool) or found is None:
        return set()
    if isinstance(found, int | float):
        return {float(found)}
    if isinstance(found, str):
        return set()
    return set().union(*(_numbers(value) for value in (found.values() if isinstance(found, dict) else found)), set())


@pytest.mark.parametrize("entry", KNOWN["items"], ids=lambda e: f"{e['paper']} {e['item']}")
def test_figures_that_an_item_quotes_are_on_the_page_or_in_a_file(entry):
    """Of ours: in the paper's tables on the page, which is made from files, or in its file of results."""
    folder = {"P3GM": "p3gm", "DP-EM": "dp_em", "DPGM": "dpgm", "DPMix": "dpmix"}[entry["paper"]]
    section = PAGE.partition(f"\n## {entry['paper']}\n")[2].partition("\n## ")[0]
    shown = {float(text) for text in re.findall(r"(?<![\d.])-?\d+\.\d+", section)} | _numbers(_found(folder))
    quoted = re.findall(r"(?<![\d.])\d\.\d{2,3}(?!\d)", f"{entry['as_published']} {entry['best']}")
    missing = [q for q in quoted if not any(abs(float(q) - k) <= 0.51 * 10 ** -(len(q) - 2) for k in shown)]
    assert not missing


def test_forms_of_dp_em_are_as_their_item_says():
    """All-Gaussian noise is the better under zCDP and moments, and under linear and advanced it is not."""
    curves = _found("dp_em")["as_published"]["mean_and_error"]
    for name, points in curves.items():
        if name.startswith("GGG"):
            other = curves[name.replace("GGG", "LLG")]
            better = all(points[epsilon][0] > other[epsilon][0] for epsilon in points)
            assert better == name.endswith(("zcdp", "moments"))
