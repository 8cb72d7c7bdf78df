"""Verdicts on the papers' printed figures follow from the figures, and these are those of the page."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOUND = [entry for entry in json.loads((ROOT / "papers" / "verdicts.json").read_text(encoding="utf-8"))["p3gm"]]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROUNDING = 1e-9


def _verdict(paper: float, ours: float, spread: float) -> str:
    if abs(ours - paper) <= spread + ROUNDING:
        return "matched"
    return "beaten" if ours > paper else "missed"


@pytest.mark.parametrize("entry", FOUND, ids=lambda entry: entry["item"])
def test_a_verdict_follows_from_its_figures(entry):
    assert entry["verdict"] == _verdict(entry["paper"], entry["ours"], entry["spread"])
    assert (entry["verdict"] == "missed") == bool(entry.get("why"))


@pytest.mark.parametrize("entry", FOUND, ids=lambda entry: entry["item"])
def test_its_figures_are_those_of_the_page(entry):
    table = PAGE.partition(f"### {entry['item'].split(',')[0]}:")[2].partition("\n### ")[0]
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines() if line.startswith("| ")}
    assert f"{entry['ours']:.3f} ± {entry['spread']:.3f}" in rows[entry["row"]]
    assert f"{entry['paper']:.3f}" in rows["P3GM, as printed"]
