"""What a fit shows on a terminal: stages, a bar, an estimate, and nothing that counts records."""

import io
import re

import pytest
from rich.console import Console

import sfumato
from fixtures import tables
from sfumato import MaxEntropy, Schema
from sfumato.cli import progress
from sfumato.cli.progress import stages


@pytest.fixture
def terminal(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(progress, "notes", Console(file=screen, force_terminal=True, width=120))
    return screen


def _shown(screen: io.StringIO) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())


def test_stages_bar_and_estimate(terminal) -> None:
    method, schema = MaxEntropy(epsilon=1.0), tables.schema()
    with stages(method, schema, "income", None) as show:
        method.fit(tables.frame(), schema=schema, target="income", progress=show)
    shown = _shown(terminal)
    assert "of about 3 seconds" in shown
    assert "Released: second moments. Going on…" in shown


def test_a_long_fit_says_before_how_long_it_takes(terminal) -> None:
    schema = Schema.from_dict({"rows": 100_000, "columns": {f"c{i}": "boolean" for i in range(100)}})
    with stages(MaxEntropy(epsilon=1.0), schema, None, None):
        assert "Note: this takes about 15 seconds." in _shown(terminal)


def test_what_is_shown_is_a_function_of_public_facts(terminal) -> None:
    """Tables of other sizes under one declared number of rows show the same, but for the time that has gone."""
    said = []
    method, schema = MaxEntropy(epsilon=1.0), tables.schema()
    for n in (40, 400):
        terminal.truncate(0)
        with stages(method, schema, "income", None) as show:
            method.fit(tables.frame(n), schema=schema, target="income", progress=show)
        text = re.sub(r"0:00:0\d|[━╸╺⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏\s]", "", _shown(terminal).replace("\0", ""))
        said.append(set(re.findall(r"of about.*?…", text)))
    assert said[0] == said[1]
    assert not re.search(r"\b(40|400)\b", _shown(terminal))


def test_nothing_is_shown_where_nobody_looks(capsys) -> None:
    with stages(MaxEntropy(epsilon=1.0), tables.schema(), None, None) as show:
        show("marginals")
    assert capsys.readouterr() == ("", "")


def test_plan_says_how_long_a_fit_takes(call, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    said = call("plan", "--schema", "schema.yaml", "--epsilon", 1).out
    assert "A fit takes about 3 seconds of processor time" in said
    bought = call("plan", "--schema", "schema.yaml", "--epsilon", 1, "--delta", "1e-6", "--rows", "estimate").out
    assert "A fit takes" not in bought


def test_commands_that_take_seconds_say_what_they_do(terminal, tmp_path, call) -> None:
    """Of a pass over the records nothing is said but that there is one."""
    tables.write_csv(tmp_path / "people.csv")
    assert call("schema", "draft", tmp_path / "people.csv", "--out", tmp_path / "draft.yaml").code == 0
    assert "Reading the records…" in _shown(terminal)
    assert not re.search(r"\d", re.sub(r"\d:\d\d:\d\d", "", _shown(terminal)))
    release = sfumato.fit(tables.frame(), tables.schema(), epsilon=1.0, delta=1e-5, seed=0)
    release.save(tmp_path / "r.sfm")
    assert call("report", tmp_path / "r.sfm", "--out", tmp_path / "page.html").code == 0
    assert "Making the page…" in _shown(terminal)
