"""The glossary: the terms of the pages are in it, each with a source or a page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
# where a stranger begins, and the commands
NAMES_OF_PAGES = ("index", "guide", "faq", "comparison", "choosing_epsilon", "cli", "report")
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in NAMES_OF_PAGES)]
TERMS = """
differential privacy; privacy budget; unit of privacy; contribution bound; neighbouring tables; sensitivity; mechanism;
noise multiplier; clip norm; composition; privacy loss distribution; zCDP; post-processing; private selection;
partition selection; membership inference; canary; advantage; marginal; second moments; maximum entropy;
Gaussian copula; raking; shrinkage; total variation distance; k-marginal score; AUROC; AUPRC; confidence interval;
coverage; replicates; linked rows; relational database; design weights; resolution; clamping; Cramér's V;
log-likelihood; p-value; simultaneous intervals; area; ledger; certificate; event; stage; share; release; holder; kind;
draft; prior; rule; engine; named question; preset; checkpoint; target
""".replace("\n", " ")
# names of tables, papers, programs and products, and abbreviations that are in every dictionary
NAMES = """
AIM AISTATS BLAS CITATION CPU CSV CTGAN DATA DD DDI DP DPGM DPMix EM FAQ FETA GPU GPUs HTML ICDE IOM ISIT ISO
ISOLET JSON LD LinkedIn MM MNIST MST MWEM MiB NIST NOT OMOP OpenDP PATE PEM PGM PowerShell RAND SCHEMA SDV SP SPDX STATE
SWIFT SmartNoise TKDE TOML UCI URL URLs US UTF YAML YYYY
"""


def rows() -> list[list[str]]:
    """The cells of each line of its tables."""
    lines = [line.strip("|").split("|") for line in GLOSSARY.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines]
    return [line for line in cells if line[0] not in ("word", "here") and not set(line[0]) <= {"-"}]


def words(line: list[str]) -> list[str]:
    """The terms that a line explains: `ε (epsilon), privacy loss` has three."""
    return [word.strip() for word in re.split(r"[,;()]", line[0]) if word.strip()]


def plain(text: str) -> str:
    """The words of a page, without code and addresses."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "", text))


def test_the_terms_of_the_pages_are_explained() -> None:
    terms = [term.strip() for term in TERMS.split(";")]
    known = {word.casefold() for line in rows() for word in words(line)}
    assert len(set(terms)) == len(terms) >= 40
    assert [term for term in terms if term.casefold() not in known] == []


def test_every_line_says_what_it_means_and_where_more_is_said() -> None:
    assert len(rows()) > 60
    for line in rows():
        assert len(line) == 3, line
        assert all(line), line
    privacy, rest = GLOSSARY.split("## Data and models")
    for line in (privacy + rest.split("## Words of this project")[0]).splitlines():
        if line.startswith("| ") and not line.startswith("| word"):
            assert re.search(r"\]\((?:https://|[a-z_/]+\.md|decisions/|proofs/)", line), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_abbreviations_are_explained_or_names(page: Path) -> None:
    found = set(re.findall(r"\b[A-Z][A-Za-z]*[A-Z][A-Za-z]*\b", plain(page.read_text(encoding="utf-8"))))
    assert {word for word in found - set(NAMES.split()) if not re.search(rf"\b{word}\b", GLOSSARY)} == set()
