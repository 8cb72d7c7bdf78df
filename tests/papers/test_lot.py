"""Cells by lot: what is a cell, and what was run again of them."""

import json
import sys
from importlib import import_module

from harness.papers import PAPERS

sys.path.insert(0, str(PAPERS))
lot = import_module("lot")
PAGE = """
## Verdicts
| figure | ours | verdict |
| --- | --- | --- |
| Table I | 0.1 | matched |

## DPMix
### Table I
| ℓ | printed, ε = 10 | ours, 1 | ε | verdict |
| --- | --- | --- | --- | --- |
| 2 | 0.098 | 0.775 ★ | 1.00 | beaten |
| 4 | 0.098 | – | 1.00 | not run: time |
| as printed | 0.098 | 0.098 | 1.00 | printed |
"""


def test_cells_are_figures_of_ours():
    assert list(lot.cells(PAGE)) == [("DPMix", "Table I", "2", "ours, 1", "0.775 ★")]


def test_ten_were_run_and_no_number_is_left_out():
    found = json.loads((PAPERS / "lot.json").read_text(encoding="utf-8"))
    numbers = [cell["number"] for cell in found["cells"]]
    assert len(set(numbers)) == 10
    assert sorted([*numbers, *map(int, found["passed over"])]) == list(range(1, 1 + max(numbers)))
    for cell in found["cells"]:
        apart = [abs(float(again) - float(page)) for page, again in zip(*map(_figures, (cell["page"], cell["again"])), strict=True)]
        assert cell["within"] == all(each <= cell["spread"] + 1e-9 for each in apart)
        assert cell["within"] or cell["why"]


def _figures(text):
    return [each.split()[0] for each in text.split(" / ")]
