"""Every tutorial runs from its first cell to its last, in a kernel of its own, and shows what it says it shows."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import pytest

from fixtures.cards import Card

with warnings.catch_warnings():  # of the kernel's libraries, about each other
    warnings.simplefilter("ignore")
    import nbformat
    from nbclient import NotebookClient

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
CARDS = {
    "four_lines": {
        "schema": "Schema: 10 columns",
        "release": "Release: synthetic rows of 10 columns",
        "release.mean": "Estimates",
        "release.ols": "mdvis ~ disea + physlm: least squares",
        "release.certificate": "Certificate: what this release cost",
    },
    "register": {
        "schema": "Schema: 9 columns, 8 released",
        "method.plan": "Plan",
        "release": "Release: synthetic rows of 8 columns",
        "sfumato.read_ledger": "Ledger",
        "release.mean": "Estimates",
    },
    "reviewer": {
        "release.certificate": "Certificate: what this release cost",
        "release.schema": "Schema: 10 columns",
        "release.answers": "What the release can answer",
    },
}
NAMES = sorted(path.stem for path in TUTORIALS.glob("*.ipynb"))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory):
    @cache
    def run(name: str) -> nbformat.NotebookNode:
        notebook = nbformat.read(TUTORIALS / f"{name}.ipynb", as_version=4)
        resources = {"metadata": {"path": str(tmp_path_factory.mktemp(name))}}
        client = NotebookClient(notebook, timeout=180, kernel_name="python3", resources=resources)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return client.execute()

    return run


def _shown(cell: nbformat.NotebookNode) -> dict[str, str]:
    return {form: text for output in cell.outputs for form, text in output.get("data", {}).items()}


def _cell(notebook: nbformat.NotebookNode, end: str) -> nbformat.NotebookNode:
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.endswith(end)]
    return cell


def test_every_tutorial_is_tested_and_listed() -> None:
    assert set(CARDS) == set(NAMES)
    index = (TUTORIALS / "index.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"({name}.ipynb)" not in index] == []


# of others the pages are made anew by `make docs`, which fails where a cell does
SHOWN = [name if name == "four_lines" else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_every_cell_that_ends_in_an_object_shows_its_card(executed, name: str) -> None:
    found = {}
    for cell in executed(name).cells:
        last = cell.source.splitlines()[-1].partition("(")[0]
        if cell.cell_type == "code" and last in CARDS[name]:
            found[last] = Card(_shown(cell)["text/html"]).text
    assert found.keys() == CARDS[name].keys()
    assert [last for last, begins in CARDS[name].items() if not found[last].startswith(begins)] == []


@pytest.mark.parametrize(("name", "column"), [("four_lines", "mdvis"), ("register", "discharged")])
@pytest.mark.slow
def test_rows_come_back_as_the_frame_that_went_in(executed, name: str, column: str) -> None:
    shown = _shown(_cell(executed(name), "synthetic.head()"))["text/html"]
    assert 'class="dataframe"' in shown
    assert column in shown


@pytest.mark.slow
def test_no_row_of_the_register_breaks_a_rule(executed) -> None:
    shown = _shown(_cell(executed("register"), ".to_frame()"))["text/plain"]
    assert [line.split()[-1] for line in shown.splitlines()[1:]] == ["0"] * 4


@pytest.mark.slow
def test_the_folder_of_the_register_may_be_published(executed) -> None:
    shown = _shown(_cell(executed("register"), "iterdir())"))["text/plain"]
    assert all(f"'{name}'" in shown for name in ("README.md", "rows.csv", "release.sfm", "release.sfm.sig"))
    assert "pem" not in shown
    assert "ledger" not in shown


@pytest.mark.slow
def test_the_reviewer_finds_the_forgery_and_the_same_epsilon(executed) -> None:
    printed = [
        output.text for cell in executed("reviewer").cells for output in cell.get("outputs", []) if "text" in output
    ]
    assert any("stated: ε = 0.99" in text or "stated: ε = 1.00" in text for text in printed)
    assert any("certificate" in text and "forged.sfm" in text for text in printed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_nothing_is_printed_to_standard_error(executed, name: str) -> None:
    outputs = [output for cell in executed(name).cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_kept_without_outputs(name: str) -> None:
    notebook = nbformat.read(TUTORIALS / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells if cell.get("outputs")] == []
