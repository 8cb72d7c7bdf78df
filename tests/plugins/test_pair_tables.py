"""The example of `examples/pair_tables`: another second stage, by Python and under our attacks."""

import ast
import importlib
import re

import numpy as np
import pytest

import sfumato
from fixtures import tables
from fixtures.packages import EXAMPLES, ROOT, install_example, passed_suites
from harness.coupling import attack, leaves
from sfumato import two_stages
from sfumato.errors import LedgerError
from sfumato.methods.registry import METHODS

ODD = {"sex": "x", "grade": None, "age": 10**6, "weight": np.nan, "income": "?"}


@pytest.fixture
def example(site):
    install_example(site, "pair_tables")
    return METHODS["pair-tables"].make


def test_it_is_one_short_file():
    (module,) = (EXAMPLES / "pair_tables").rglob("*.py")
    assert len(module.read_text().splitlines()) <= 80


def test_it_imports_nothing_but_public_names():
    (module,) = (EXAMPLES / "pair_tables").rglob("*.py")
    imports = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.ImportFrom)]
    ours = {node.module: node.names for node in imports if (node.module or "").startswith("sfumato")}
    assert ours.keys() == {"sfumato.plugins", "sfumato.two_stages"}
    for room, names in ours.items():
        assert {name.name for name in names} <= set(importlib.import_module(room).__all__)


def test_all_that_a_second_stage_is_written_with_is_described():
    page = (ROOT / "docs" / "plugins.md").read_text()
    section = page.partition("## Another second stage")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)", section, re.M)) == set(two_stages.__all__)


@pytest.mark.parametrize("target", [None, "sex"])
def test_it_keeps_what_goes_together(example, tmp_path, target):
    frame = tables.frame(5000)
    release = example(epsilon=2.0).fit(frame, schema=tables.schema(), n_public=5000, target=target, seed=0)
    release.save(tmp_path / "r.sfm")
    rows = sfumato.load(tmp_path / "r.sfm").sample(5000, seed=0)
    kept, true = (np.corrcoef(f["age"], f["income"] == ">50K")[0, 1] for f in (rows, frame))
    assert true > 0.7
    assert kept > 0.5
    assert [stage.name for stage in release.certificate.events] == ["marginals", "tables of pairs"]
    assert release.crosstab("sex", "income", target="table")


@pytest.mark.slow
@pytest.mark.audit
def test_it_passes_the_attack_on_tables(site):
    """Two neighbours, added and replaced: sensitivities are those charged, and nothing else differs."""
    assert passed_suites(site, "pair_tables", "pair-tables and not TestFrames") > 40


BUGS = {  # what the attack says, and a change of the source
    "replaced records nearer than they are": ("replace", "replace_distance=2**0.5", "replace_distance=1.0"),
    "half the sensitivity": (
        "times as far apart",
        "QueryCounts(MarginalQuery(tuple(pairs)), PAIRS)",
        "type('Own', (QueryCounts,), {'squares': len(pairs) / 4})(MarginalQuery(tuple(pairs)), PAIRS)",
    ),
    "noise that is not charged, in place of what is": (
        "depends on more",
        "counted_moments(first, noisy)",
        "counted_moments(first, replace(noisy, value=plugins.reduce(QueryCounts(noisy.query, PAIRS), fit.data)"
        ".open_in_mechanism()))",
    ),
    "columns chosen by the records": (
        "depends on the records",
        "        chosen = sorted(",
        "        true = sum(len(rows['age']) for rows in fit.data.coded())\n"
        "        self = replace(self, most_columns=2 + true % 2)\n        chosen = sorted(",
    ),
}


def neighbours_attacked(monkeypatch, method) -> None:
    """A record more, and one replaced by another, as for every method."""
    frame = tables.frame(71)
    other = frame.assign(**{name: [*frame[name][:-1], value] for name, value in ODD.items()})

    def fit(data):
        # so large that noise does not keep the moments of 70 records out of the model
        return leaves(method(epsilon=50.0).fit(data, schema=tables.schema(), n_public=70, target="income", seed=1))

    attack(monkeypatch, fit, frame.head(70), frame)
    assert attack(monkeypatch, fit, frame, other, replaced=True) > 0.9


def test_without_a_bug_its_neighbours_release_the_same(example, monkeypatch):
    neighbours_attacked(monkeypatch, example)


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_that_is_planted_in_it_is_found(site, monkeypatch, bug):
    install_example(site, "pair_tables")
    problem, text, wrong = BUGS[bug]
    module = site / "sfumato_pair_tables" / "__init__.py"
    source = module.read_text()
    assert text in source
    imports = "from sfumato import plugins\nfrom dataclasses import replace\nfrom sfumato.plugins import Cells"
    module.write_text(source.replace(text, wrong).replace("from sfumato.plugins import Cells", imports))
    with pytest.raises((AssertionError, LedgerError), match=problem):
        neighbours_attacked(monkeypatch, METHODS["pair-tables"].make)
