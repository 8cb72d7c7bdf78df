"""docs/gallery.md: ten public tables, from the figures in `results`.

python benchmarks/gallery.py            # write it
python benchmarks/gallery.py --check    # say whether it is up to date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "gallery.md"

HEAD = """# A gallery of public tables

What the default method keeps of ten tables that anybody can get, at ε = 1 and δ = 1e-5: one row is protected, and
nothing is public but the schema and a round number of rows. Figures are means over fits, each with new noise. This
page is written from the files in `benchmarks/results` by `benchmarks/gallery.py`; how they were measured stands in
`benchmarks/README.md`. To make figures of your own: `sfumato evaluate table`.
"""
KEPT_HEAD = """## What seven tables keep

Classifiers (for houses: regressions) are taught by synthetic rows and tested on real rows that no fit saw: AUROC, or
R². Errors are total variation distances between synthetic and fitted rows, means over all columns and all pairs: the
share of rows that would have to move. **A tenth** is a random tenth of the real rows, *without privacy*: what you
would lose by giving away few rows in place of synthetic ones. The last column counts synthetic rows that break a rule
which no real row breaks, found by a search and **not declared** to the fit.

| table | rows × columns | score | real rows | a tenth | error of a column | of a pair | a tenth | break a rule |
|---|---|---|---|---|---|---|---|---|
"""
KEPT_END = """
Of the first four tables, pairs of columns are as near to the records as a tenth of the real rows is, or nearer; of
the three surveys, a tenth is nearer. What is lost: rules that nobody declared, the more of them the more columns hang
together by definition, as in the surveys; and regressions on houses, where place matters in patches. Rules that
**are** declared hold in every row ([how](rules.md)):

| table | rules | break one without them | with them | error of a pair without | with |
|---|---|---|---|---|---|
"""
TAUGHT_HEAD = """
## What three wide or rare tables teach

AUROC and area under the precision-recall curve of four classifiers, taught by synthetic and by real rows, tested on a
tenth that no fit saw.

| table | rows × columns | AUROC | real rows | AUPRC | real rows | fits |
|---|---|---|---|---|---|---|
"""
END = """
Where it falls short: ISOLET has 617 numbers for each of 7,017 rows, and there noise on every pair of them is what
binds. Of the seizures, one of the four classifiers is a coin on real rows too.

Pictures of made-up tables, and what the method cannot represent: [the method](method.md). Other methods and peers:
[the papers' tables](papers.md).
"""


class Table(NamedTuple):
    """A table, and where its figures are."""

    name: str
    title: str
    what: str
    size: str


KEPT = (
    Table("adult", "Adult", "US census of 1994, income above 50,000 dollars", "48,842 × 15"),
    Table("telco_churn", "Telco churn", "customers of a telephone company, who leaves", "7,043 × 20"),
    Table("california_housing", "California housing", "blocks of houses in 1990, their value", "20,640 × 9"),
    Table("magic04", "MAGIC", "showers in a telescope, gamma or hadron", "19,020 × 11"),
    Table("ma2019", "ACS, Massachusetts", "American Community Survey, excerpt of NIST", "7,634 × 24"),
    Table("tx2019", "ACS, Texas", "the same", "9,276 × 24"),
    Table("national2019", "ACS, national", "the same", "27,253 × 24"),
)
RULED = (("telco_churn", "Telco churn", 5), ("tx2019", "ACS, Texas", 11), ("hospital", "a made-up hospital", 7))
TAUGHT = (
    Table("tables_credit", "Credit card fraud", "all frauds of a sample, and 10,000 other transactions", "10,492 × 31"),
    Table("tables_esr", "Epileptic seizure", "a second of an electroencephalogram", "11,500 × 179"),
    Table("tables_isolet", "ISOLET", "spoken letters, vowel or not", "7,797 × 618"),
)


def kept() -> str:
    """Rows of the first table."""
    lines = []
    for table in KEPT:
        found = _lines(table.name)
        fits = [value for key, value in found.items() if key.startswith("max-entropy, 1/")]
        score = "auroc" if "auroc" in fits[0] else "r2"
        tenth = found["tenth"]
        broken = f"{100 * _mean(fits, 'contradictions'):.0f} %" if "contradictions" in fits[0] else "none found"
        lines.append(
            f"| **{table.title}**: {table.what} | {table.size} | {_mean(fits, score):.3f} | {found['real'][score]:.3f} "
            f"| {tenth[score]:.3f} | {_mean(fits, 'tvd_1way'):.3f} | {_mean(fits, 'tvd_2way'):.3f} "
            f"| {tenth['tvd_2way']:.3f} | {broken} |"
        )
    return "\n".join(lines) + "\n"


def ruled() -> str:
    """Rows of the table of rules."""
    found = json.loads((RESULTS / "rules.json").read_text(encoding="utf-8"))
    lines = []
    for name, title, count in RULED:
        without, ours = found[name]["without"], found[name]["with"]
        lines.append(
            f"| {title} | {count} | {100 * without['broken']:.0f} % | {100 * ours['broken']:.0f} % "
            f"| {without['tvd_2way']:.3f} | {ours['tvd_2way']:.3f} |"
        )
    return "\n".join(lines) + "\n"


def taught() -> str:
    """Rows of the last table."""
    lines = []
    for table in TAUGHT:
        found = json.loads((RESULTS / f"{table.name}.json").read_text(encoding="utf-8"))
        fits, real = found["fits"], found["real"]
        lines.append(
            f"| **{table.title}**: {table.what} | {table.size} | {_mean(fits, 'auroc'):.3f} | {real['auroc']:.3f} "
            f"| {_mean(fits, 'auprc'):.3f} | {real['auprc']:.3f} | {len(fits)} |"
        )
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    return "\n".join((HEAD, KEPT_HEAD + kept() + KEPT_END + ruled() + TAUGHT_HEAD + taught() + END))


def _lines(name: str) -> dict[str, dict[str, float]]:
    text = (RESULTS / "dependence" / f"{name}.jsonl").read_text(encoding="utf-8")
    return {line["key"]: line["value"] for line in map(json.loads, text.splitlines())}


def _mean(fits: list[dict[str, Any]], key: str) -> float:
    return sum(fit[key] for fit in fits) / len(fits)


def main() -> None:
    """Write the page, or say whether it is up to date."""
    if "--check" in sys.argv[1:]:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
