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
    assert all(lot.is_within(cell) or cell["why"] for cell in found["cells"])


def test_a_cell_outside_its_spread_is_told():
    cell = {"page": "0.984 / 0.950", "again": "0.9838 / 0.9501", "spread": 0.0005}
    assert lot.is_within(cell)
    assert not lot.is_within({**cell, "again": "0.9838 / 0.9510"})
