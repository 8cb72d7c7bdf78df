"""Every row of docs/papers.md has a verdict, and verdicts follow from figures."""

import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path
from statistics import fmean

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


@pytest.mark.parametrize("table", TABLES[1:], ids=lambda table: table[:40])
def test_every_table_says_which_command_makes_its_cells(table):
    """All but the first, of verdicts. The scripts are there, and have the options."""
    line = PAGE.partition(f"{table}\n\n")[2].partition("\n")[0]
    commands = re.findall(r"`(python [^`]+)`", line)
    assert line.startswith("Made")
    assert commands
    for command in commands:
        script, *words = shlex.split(command)[1:]
        text = (ROOT / script).read_text(encoding="utf-8")
        shared = ["papers/drawing.py", "papers/p3gm/cells.py", "papers/dpmix/mixed.py"]
        text += "".join((ROOT / name).read_text(encoding="utf-8") for name in shared)
        options = [word.removeprefix("--") for word in words if word.startswith("--")]
        assert not [name for name in options if f'"--{name}"' not in text and f'=("{name}",' not in text], command


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


def _tables(paper):
    """Tables of a paper by heading: rows by label, cells by column."""
    section = PAGE.partition(f"\n## {paper}\n")[2].partition("\n## ")[0]
    found = {}
    for block in section.split("\n### ")[1:]:
        heading, lines = block.splitlines()[0], [line for line in block.splitlines() if line.startswith("| ")]
        if lines:
            head = _cells(lines[0])
            found[heading] = [dict(zip(head, _cells(line), strict=True)) for line in lines[2:]]
    return found


def _row(rows, label):
    """All rows, or the one whose first cell is the label."""
    found = [row for row in rows if label in ("*", next(iter(row.values())))]
    assert found, label
    assert label == "*" or len(found) == 1, label
    return found


def _first_number(text):
    found = re.match(r"-?\d+\.\d+", text)
    return None if found is None else float(found[0])


def _source(paper, where):
    """The figures at a place of the page, or in the paper's file of results."""
    tables = _tables(paper)
    if where[0] in tables:
        heading, label, column = where
        rows = _row(tables[heading], label)
        columns = list(rows[0])[1:-1] if column == "*" else [column]
        return [number for row in rows for name in columns if (number := _first_number(row[name])) is not None]
    found = _found({"P3GM": "p3gm", "DP-EM": "dp_em", "DPGM": "dpgm", "DPMix": "dpmix"}[paper])
    for key in where:
        found = found[key]
    return [fmean(found)] if isinstance(found, list) else [found]


def _is(quoted, value):
    return abs(float(quoted) - value) <= 0.51 * 10 ** -len(quoted.partition(".")[2])


DECIMAL = re.compile(r"(?<![\d.])-?\d+\.\d+")


def _unsourced(entry):
    """Figures of ours that an item quotes and that are not what stands at the place it names."""
    sources = entry.get("figures_from", {})
    text = re.sub(r"[εσ] = [\d.]+", "", f"{entry['as_published']} {entry['best']}")
    wrong = []
    for quoted, where in sources.items():
        low, *high = quoted.split(" to ")
        values = _source(entry["paper"], where)
        right = _is(low, min(values)) and _is(high[0], max(values)) if high else len(values) == 1 and _is(low, *values)
        if not right or quoted not in text:
            wrong.append(quoted)
        text = text.replace(quoted, "")
    return wrong + DECIMAL.findall(text)


@pytest.mark.parametrize("entry", KNOWN["items"], ids=lambda e: f"{e['paper']} {e['item']}")
def test_figures_that_an_item_quotes_are_where_it_says(entry):
    """Of ours. That a number is somewhere in a file says little: two thirds of all are, of a file of 1,800."""
    assert not _unsourced(entry)


BEST_FIRST = ("beaten", "matched", "not run", "missed")


def _better_than_its_rows(entry):
    if "follows_from" not in entry:
        return False
    heading, label = entry["follows_from"]
    verdicts = [row["verdict"] for row in _row(_tables(entry["paper"])[heading], label)]
    words = {re.match(r"[a-z ]+", part)[0] for text in verdicts for part in _parts(text)} & set(BEST_FIRST)
    assert words
    return BEST_FIRST.index(entry["verdict"]) < max(map(BEST_FIRST.index, words))


@pytest.mark.parametrize("entry", KNOWN["items"], ids=lambda e: f"{e['paper']} {e['item']}")
def test_no_item_claims_more_than_the_rows_it_follows_from(entry):
    assert not _better_than_its_rows(entry)


def _item(paper, item):
    return next(entry for entry in KNOWN["items"] if (entry["paper"], entry["item"]) == (paper, item))


@pytest.mark.parametrize(
    "changed",
    [
        {"best": "0.899"},  # is nobody's
        {"best": "0.782"},  # is in the file, as the paper's own
        {"best": "0.872 and 0.901"},  # one more, of no source
        {"figures_from": {}},
    ],
)
def test_a_figure_of_no_source_is_told(changed):
    entry = _item("DPMix", "Table I, MNIST")
    assert not _unsourced(entry)
    assert _unsourced({**entry, **changed})


@pytest.mark.parametrize(("paper", "item"), [("P3GM", "Table VI"), ("P3GM", "Figure 7"), ("DP-EM", "Figure 5")])
def test_a_verdict_better_than_its_rows_is_told(paper, item):
    assert all(_better_than_its_rows({**_item(paper, item), "verdict": word}) for word in ("matched", "beaten"))


def test_verdicts_of_whole_tables_follow_from_rows():
    """Wherever there is a table with verdicts of the paper's own methods."""
    without = [f"{e['paper']} {e['item']}" for e in KNOWN["items"] if "follows_from" not in e]
    assert [name for name in without if "Table" in name and "CIFAR" not in name] == []


def test_runs_of_dp_em_are_its_splits():
    assert _item("DP-EM", "Figure 2")["runs"] == str(_found("dp_em")["figure_2"]["splits"])


def _sentences(found):
    if isinstance(found, str):
        return [found]
    return [text for value in found.values() for text in _sentences(value)]


def test_figures_in_sentences_are_ours_or_printed():
    privbayes = _found("p3gm")["figures"]["figure_6"]["privbayes"].values()
    stated = {
        "0.773": _found("p3gm")["as_published"]["runs"]["released"][0]["accuracy_best_epoch"],
        "0.725": _found("p3gm")["as_published"]["fashion_mnist"]["runs"]["released"][0]["accuracy_best_epoch"],
        "0.02": max(privbayes) - min(privbayes),
        "1.74": _found("dpgm")["accounts"]["as_printed"],
        "0.5": 0.5,  # an ε
    }
    sentences = [*_sentences({name: KNOWN[name] for name in ("why", "rows", "here")})]
    sentences += [entry.get("why", "") for entry in KNOWN["items"]]
    quoted = {q for text in sentences for q in DECIMAL.findall(re.sub(r"[εσ] = [\d., ]+", "", text))}
    assert quoted <= set(stated)
    assert all(_is(q, stated[q]) for q in quoted)


def test_forms_of_dp_em_are_as_their_item_says():
    """All-Gaussian noise is the better under zCDP and moments, and under linear and advanced it is not."""
    curves = _found("dp_em")["as_published"]["mean_and_error"]
    for name, points in curves.items():
        if name.startswith("GGG"):
            other = curves[name.replace("GGG", "LLG")]
            better = all(points[epsilon][0] > other[epsilon][0] for epsilon in points)
            assert better == name.endswith(("zcdp", "moments"))


def test_kernels_of_dpgm_are_above_plain_where_it_is_said():
    """Figure 3: as printed from ε = 0.3 on, ours up to 0.5."""
    curves = _found("dpgm")["figure_3"]["mean_and_runs"]
    kernel, plain = (curves[f"as printed | {name}"] for name in ("Algorithm 2, d = 200", "plain, clip 28"))
    assert [e for e in kernel if kernel[e][0] > plain[e][0] + 0.1] == ["0.3", "0.5", "1"]
    for name, text in KNOWN["rows"]["dpgm"]["figure_3"].items():
        if text.endswith("up to ε = 0.5"):
            plain = curves[f"{name.partition(' | ')[0]} | plain, clip 28, not recentred"]
            assert [e for e in plain if curves[name][e][0] > plain[e][0]] == ["0.1", "0.3", "0.5"], name
