"""What became of a row of a paper's table: matched, beaten, missed or not run, and why.

Of figures that the paper prints, the verdict follows from the runs. Of pictures without numbers it is about what the
paper says of them, and stands in verdicts.json; tests/papers/test_verdicts.py holds it to the figures where it can.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

PRINTED, ABSENT = "printed", "not in the paper"
WORDS = ("matched", "beaten", "missed", "not run", PRINTED, ABSENT)
NEEDS_A_REASON = ("missed", "not run")
ONE_RUN, LEAST = 0.02, 0.005  # what a single run is taken to vary by, and several that agree
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Cell:
    """A printed figure and our runs of it; `why_not` says why there are none."""

    printed: float
    runs: Sequence[float]
    why_not: str = ""
    higher: bool = True

    def word(self) -> str:
        """Say what became of it: within the spread of the runs of the printed figure, better, or worse."""
        if not self.runs:
            return "not run"
        spread = max(stdev(self.runs), LEAST) if len(self.runs) > 1 else ONE_RUN
        gain = (fmean(self.runs) - self.printed) * (1 if self.higher else -1)
        return "matched" if abs(gain) <= spread + _ROUNDING else "beaten" if gain > 0 else "missed"


@cache
def known() -> dict[str, Any]:
    """Return verdicts.json."""
    return json.loads((Path(__file__).parent / "verdicts.json").read_text(encoding="utf-8"))


def judge(cells: Mapping[str, Cell], why: Mapping[str, str]) -> str:
    """Return the verdict on a row: names of cells by word, and why of what is missed or not run.

    Raises:
        KeyError: a cell is missed and has no reason, under its name or `*`.
    """
    found: dict[str, list[str]] = {}
    for name, cell in cells.items():
        word = cell.word()
        reason = ""
        if word in NEEDS_A_REASON:
            said = why.get(name) or (cell.why_not if word == "not run" else "") or why["*"]
            reason = f" ({said})"
        found.setdefault(word, []).append(f"{name}{reason}")
    if len(found) == 1 and next(iter(found)) not in NEEDS_A_REASON:
        return next(iter(found))
    if len(cells) == 1:
        return f"{next(iter(found))}: {reason.strip(' ()')}"
    ordered = sorted(found, key=WORDS.index)
    return "; ".join(f"{word}: {', '.join(_merged(found[word]))}" for word in ordered)


def _merged(names: Sequence[str]) -> Iterable[str]:
    """Give names with the same reason the reason once."""
    reasons: dict[str, list[str]] = {}
    for name in names:
        head, _, reason = name.partition(" (")
        reasons.setdefault(reason, []).append(head)
    for reason, heads in reasons.items():
        yield ", ".join(heads) + (f" ({reason}" if reason else "")


def reasons(paper: str, table: str, row: str) -> Mapping[str, str]:
    """Return why cells of a row were missed or not run."""
    found = known()["why"].get(paper, {}).get(table, {})
    return found.get(row, found.get("*", {}))


def said(paper: str, table: str, row: str) -> str:
    """Return the verdict on a row that has no printed figure.

    Raises:
        KeyError: it has none.
    """
    return known()["rows"][paper][table][row]


def here(figure: str) -> str:
    """Return what our figures say to what the paper says of its own."""
    return known()["here"][figure]
