"""Ten cells of docs/papers.md by lot, to be run again from a fresh clone: a seeded order of all cells of ours.

    python papers/lot.py [--seed 53] [--first 40]

Printed figures, ε and verdicts are no cells. Whoever runs them walks down the order, passes over what is above a stated
limit of time, and writes down both in papers/lot.json, which docs/papers.md shows.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
NO_CELLS = ("Verdicts", "Ten cells by lot")


def cells(page: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Every cell with a figure of ours: paper, table, row, column, and what stands there."""
    paper = heading = ""
    head: list[str] = []
    for line in page.splitlines():
        if line.startswith("## "):
            paper = line[3:]
        elif line.startswith("### "):
            heading = line[4:]
        row = [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("| ") else []
        if head and paper not in NO_CELLS and len(row) == len(head) and row[-1] not in ("---", "printed"):
            for column, cell in zip(head[1:-1], row[1:-1], strict=True):
                if re.match(r"-?\d+\.\d", cell) and not column.startswith("printed") and column != "ε":
                    yield paper, heading, row[0], column, cell
        head = (head or row) if row else []


def is_within(cell: Mapping[str, Any]) -> bool:
    """Whether the figures of a rerun are within the stated spread of those on the page."""
    before, again = ([float(part.split()[0]) for part in cell[name].split(" / ")] for name in ("page", "again"))
    return all(abs(b - a) <= cell["spread"] + 1e-9 for a, b in zip(before, again, strict=True))


def main() -> None:
    """Print the order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=53)
    parser.add_argument("--first", type=int, default=40)
    options = parser.parse_args()
    found = list(cells(PAGE.read_text(encoding="utf-8")))
    random.Random(options.seed).shuffle(found)
    for number, cell in enumerate(found[: options.first], start=1):
        print(number, " | ".join(cell))


if __name__ == "__main__":
    main()
