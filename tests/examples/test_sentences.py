"""Pages and help that a stranger reads first: short sentences, and no private words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.cli.commands import COMMANDS, load_command

ROOT = Path(__file__).parents[2]
LONGEST = 30
NAMES = ("index", "guide", "faq", "comparison", "glossary")
FIRST_PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in NAMES)]
# pages that state measurements, decisions and proofs keep the words that they were written with
DATED = ("decisions", "proofs", "papers.md", "inference.md", "measurements.md", "nist.md")
PRIVATE_WORDS = re.compile(r"\b(?:bought|buy|buys|buying|door|doors|drown|drowns|drowned|what leaves)\b", re.I)


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a page: without code, tables and headings; a link is its text."""
    text = re.sub(r"^```.*?^```", "\n\n", text, flags=re.M | re.S)
    for block in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. |#|\|)", text):
        if block.lstrip().startswith(("|", "#")):
            continue
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
        plain = re.sub(r"`[^`]*`", "code", plain).replace("**", "")
        plain = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", plain)
        yield from re.split(r"(?<=[.!?])[\"')*]*\s+", " ".join(plain.split()))


def _long(text: str) -> list[str]:
    return [sentence for sentence in _sentences(text) if len(sentence.split()) > LONGEST]


def _help() -> dict[str, list[str]]:
    """Command → its help, and those of its options and arguments."""
    found: dict[str, list[str]] = {}

    def visit(command: object, path: str) -> None:
        found[path] = [getattr(command, "help", None) or ""]
        found[path] += [getattr(parameter, "help", None) or "" for parameter in getattr(command, "params", [])]
        for name, child in getattr(command, "commands", {}).items():
            visit(child, f"{path} {name}")

    for name in COMMANDS:
        visit(load_command(name), name)
    return found


def test_a_long_sentence_is_found_and_code_is_none() -> None:
    long = " ".join(["word"] * (LONGEST + 1))
    assert _long(f"Short. {long}. Short.") == [f"{long}."]
    assert _long(f"```text\n{long}\n```\n\n| {long} |\n|---|\n\n- Short.\n- {long[:-5]}.") == []


@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.name)
def test_no_sentence_of_the_first_pages_is_long(page: Path) -> None:
    assert _long(page.read_text(encoding="utf-8")) == []


def test_no_sentence_of_the_help_is_long() -> None:
    texts = _help()
    assert len(texts) > 20
    assert {
        path: long
        for path, parts in texts.items()
        if (long := [one for part in parts for one in _long(part.replace("; ", ". "))])
    } == {}


def test_every_option_says_what_it_is() -> None:
    assert [path for path, parts in _help().items() if not all(parts)] == []


def test_no_private_word_is_left() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    pages = [page for page in pages if page.relative_to(ROOT).parts[1:2] not in [(name,) for name in DATED]]
    source = [path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".html", ".json"}]
    assert len(source) > 100
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in (*pages, *source)}
    assert {name: words for name, text in texts.items() if (words := PRIVATE_WORDS.findall(text))} == {}
