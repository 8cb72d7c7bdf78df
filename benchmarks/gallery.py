"""docs/gallery.md and its picture: ten public tables, from the figures in `results`.

python benchmarks/gallery.py            # write them
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
PICTURE = PAGE.parent / "pictures" / "gallery.svg"

NIST = HERE.parent / "docs" / "nist.md"
_WIDTH, _STEP, _LEFT = 380, 26, 150
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">
<title>Scores and errors of seven tables</title><style>
svg {{ background: #fff }} text {{ font: 12px system-ui, sans-serif; fill: #1b1b1f }} .title {{ font-weight: 600 }}
.end {{ text-anchor: end }}
.line {{ stroke: #c9c9d2 }} .synthetic {{ fill: #0b62a8 }} .real {{ stroke: #1b1b1f; stroke-width: 3 }}
.tenth {{ fill: none; stroke: #b45309; stroke-width: 2 }}
@media (prefers-color-scheme: dark) {{ svg {{ background: #15151a }} text {{ fill: #ececf1 }}
.line {{ stroke: #43434d }} .synthetic {{ fill: #6cb6f5 }} .real {{ stroke: #ececf1 }}
.tenth {{ stroke: #f5b062 }} }}</style>
{body}</svg>
"""

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

![Scores and errors for seven tables: synthetic rows, real rows, a tenth of the real rows](pictures/gallery.svg)

| table | rows × columns | score | real rows | a tenth | error of a column | of a pair | a tenth | break a rule |
|---|---|---|---|---|---|---|---|---|
"""
KEPT_END = """
Of the first four tables and of Texas, pairs of columns are nearer to the records than a tenth of the real rows is; of
the two other surveys, a tenth is nearer. What is lost: rules that nobody declared, the more of them the more columns
hang together by definition, as in the surveys; and regressions on houses, where place matters in patches. Rules that
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

## Beside others: NIST's public table of scores

1,000 is a perfect copy; ε = 1. The best private entries are of other packages, of 2023; random real rows are not
private at all. Ours name areas and a target, and changes of Sfumato are compared on these three tables too, so they are
not tables that nobody looked at. [How it was scored](nist.md).

| table, columns | Sfumato | best private entry | a tenth of the rows | a fifth |
|---|---|---|---|---|
{nist}
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


def nist() -> str:
    """Rows of NIST's table, from the page about it."""
    lines = []
    for line in NIST.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and "random rows" not in cells[4] and not cells[0].startswith("-"):
            tenth, fifth, _ = cells[4].split(", ")
            lines.append(f"| {cells[0]} | {cells[2].split(' (')[0]} | {cells[3]} | {tenth} | {fifth} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    return "\n".join(
        (HEAD, KEPT_HEAD + kept() + KEPT_END + ruled() + TAUGHT_HEAD + taught() + END.replace("{nist}", nist()))
    )


def picture() -> str:
    """Scores and errors of seven tables as lines of marks: SVG, for both colour schemes, readable on a phone."""
    parts, right = [], _WIDTH - 10
    panels = (
        ("AUROC, or R² of the houses (more is better)", 0.6, 1.0, _scores),
        ("error of a pair of columns (less is better)", 0.0, 0.1, _errors),
    )
    for panel, (title, low, top, marks) in enumerate(panels):
        foot = panel * (_STEP * len(KEPT) + 84)
        parts.append(f'<text class="title" x="4" y="{foot + 46}">{title}</text>')
        for row, table in enumerate(KEPT):
            y = foot + 72 + _STEP * row
            parts.append(f'<text x="4" y="{y + 4}">{table.title}</text><path class="line" d="M{_LEFT} {y}H{right}"/>')
            for kind, value in marks(table.name).items():
                share = min(max((value - low) / (top - low), 0.0), 1.0)
                parts.append(_mark(kind, round(_LEFT + (right - _LEFT) * share, 1), y))
        y = foot + 72 + _STEP * len(KEPT)
        parts.append(f'<text x="{_LEFT}" y="{y}">{low:g}</text><text class="end" x="{right}" y="{y}">{top:g}</text>')
    keys = (("synthetic", "synthetic rows"), ("real", "real rows"), ("tenth", "a tenth of them"))
    legend = "".join(
        f'{_mark(kind, 12 + 125 * i, 14)}<text x="{22 + 125 * i}" y="18">{text}</text>'
        for i, (kind, text) in enumerate(keys)
    )
    height = 2 * (_STEP * len(KEPT) + 84)
    return _SVG.format(width=_WIDTH, height=height, body=legend + "".join(parts))


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "synthetic":
        return f'<circle class="synthetic" cx="{x}" cy="{y}" r="5.5"/>'
    if kind == "real":
        return f'<path class="real" d="M{x} {y - 8}v16"/>'
    return f'<circle class="tenth" cx="{x}" cy="{y}" r="4.5"/>'


def _scores(name: str) -> dict[str, float]:
    found = _lines(name)
    fits = [value for key, value in found.items() if key.startswith("max-entropy, 1/")]
    score = "auroc" if "auroc" in fits[0] else "r2"
    return {"real": found["real"][score], "tenth": found["tenth"][score], "synthetic": _mean(fits, score)}


def _errors(name: str) -> dict[str, float]:
    found = _lines(name)
    fits = [value for key, value in found.items() if key.startswith("max-entropy, 1/")]
    return {"tenth": found["tenth"]["tvd_2way"], "synthetic": _mean(fits, "tvd_2way")}


def _lines(name: str) -> dict[str, dict[str, float]]:
    text = (RESULTS / "dependence" / f"{name}.jsonl").read_text(encoding="utf-8")
    return {line["key"]: line["value"] for line in map(json.loads, text.splitlines())}


def _mean(fits: list[dict[str, Any]], key: str) -> float:
    return sum(fit[key] for fit in fits) / len(fits)


def main() -> None:
    """Write the page and its picture, or say whether they are up to date."""
    written = {PAGE: page(), PICTURE: picture()}
    if "--check" in sys.argv[1:]:
        sys.exit(any(path.read_text(encoding="utf-8") != text for path, text in written.items()))
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
