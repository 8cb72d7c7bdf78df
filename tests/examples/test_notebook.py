"""The notebook runs from its first cell to its last, in a kernel of its own, and shows a card where it says so."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from fixtures.cards import Card

with warnings.catch_warnings():  # of the kernel's libraries, about each other
    warnings.simplefilter("ignore")
    import nbformat
    from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "tutorials" / "four_lines.ipynb"
CARDS = {
    "schema": "Schema: 10 columns",
    "release": "Release: synthetic rows of 10 columns",
    "release.mean": "Estimates",
    "release.ols": "mdvis ~ disea + physlm: least squares",
    "release.certificate": "Certificate: what this release cost",
}


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    client = NotebookClient(notebook, timeout=180, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return client.execute()


def _shown(cell: nbformat.NotebookNode) -> dict[str, str]:
    return {form: text for output in cell.outputs for form, text in output.get("data", {}).items()}


def test_every_cell_that_ends_in_an_object_shows_its_card(executed: nbformat.NotebookNode) -> None:
    found = {}
    for cell in executed.cells:
        last = cell.source.splitlines()[-1].partition("(")[0]
        if cell.cell_type == "code" and last in CARDS:
            found[last] = Card(_shown(cell)["text/html"]).text
    assert found.keys() == CARDS.keys()
    assert [name for name, begins in CARDS.items() if not found[name].startswith(begins)] == []


def test_rows_come_back_as_the_frame_that_went_in(executed: nbformat.NotebookNode) -> None:
    (cell,) = [cell for cell in executed.cells if cell.source.endswith("synthetic.head()")]
    shown = _shown(cell)["text/html"]
    assert 'class="dataframe"' in shown
    assert "mdvis" in shown


def test_nothing_is_printed_to_standard_error(executed: nbformat.NotebookNode) -> None:
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells if cell.get("outputs")] == []
