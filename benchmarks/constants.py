"""The constants of the estimators of tables as a page: read off src/sfumato/maths/constants.py, which says each source.

python benchmarks/constants.py > docs/constants.md
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "sfumato" / "maths" / "constants.py"
DECISIONS = ROOT / "docs" / "decisions"

INTRODUCTION = """# Constants

What the estimators of tables take as given, and where each number comes from: a theorem, a known noise, tables on which
other values were measured, or nowhere. *Not tuned* says that no measurement of other values is on record, and *without*
names the decision in which leaving the step out was measured. The constants stand in `sfumato/maths/constants.py`, of
which this page is written (`python benchmarks/constants.py`); a test holds the two together. Settings that a user
chooses are those of the [method](method.md); what a proof rests on stands beside its statistic and in the
[proof](proofs/index.md).
"""


@dataclass(frozen=True)
class Constant:
    """One constant: its name and value as written, what it is, and where it comes from."""

    name: str
    value: str
    meaning: str
    source: str


@dataclass(frozen=True)
class Group:
    """Constants that belong together: their name in the source, what they are of, and each of them."""

    name: str
    about: str
    constants: tuple[Constant, ...]


def groups(text: str) -> list[Group]:
    """The groups of a module's text; a constant's comment stands behind it, or above it."""
    tree = ast.parse(text)
    names = {
        node.value.func.id: ast.unparse(node.targets[0])
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
    }
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [Group(names[node.name], ast.get_docstring(node) or "", tuple(_constants(node, text))) for node in classes]


def _constants(group: ast.ClassDef, text: str) -> list[Constant]:
    constants, above, lines = [], "", text.splitlines()
    fields = {node.lineno: node for node in group.body if isinstance(node, ast.AnnAssign)}
    for number in range(group.lineno, (group.end_lineno or group.lineno) + 1):
        code, _, comment = lines[number - 1].partition("#")
        if number in fields and isinstance(field := fields[number], ast.AnnAssign) and field.value is not None:
            meaning, _, source = (comment.strip() or above).partition(" | ")
            value = ast.get_source_segment(text, field.value) or ""
            constants.append(Constant(ast.unparse(field.target), value, meaning, source))
        above = f"{above} {comment.strip()}".strip() if not code.strip() else above if number not in fields else ""
    return constants


def page(text: str) -> str:
    """The page of a module's text."""
    decisions = {int(path.name[:4]): path.name for path in DECISIONS.glob("0*.md")}
    parts = [INTRODUCTION]
    for group in groups(text):
        parts += [
            f"## {group.name}\n\n{group.about}\n",
            "| constant | value | what it is | source |\n|---|---|---|---|",
        ]
        parts += [
            f"| `{c.name}` | `{c.value}` | {c.meaning} | {_linked(c.source, decisions)} |" for c in group.constants
        ]
        parts.append("")
    return "\n".join(parts)


def _linked(source: str, decisions: dict[int, str]) -> str:
    """A source with its decisions as links."""
    return re.sub(
        r"(?<=decision )\d+|(?<=decisions )\d+|(?<=\d, )\d+(?=$)",
        lambda number: f"[{number[0]}](decisions/{decisions[int(number[0])]})",
        source,
    )


def main() -> None:
    """Print the page."""
    print(page(SOURCE.read_text(encoding="utf-8")), end="")


if __name__ == "__main__":
    main()
