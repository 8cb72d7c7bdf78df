"""What strangers wrote is shown, and steers no terminal."""

import io
import json

import pytest

from fixtures import tables
from sfumato import MaxEntropy
from sfumato.cli import output
from sfumato.cli.output import print_json, print_table, say, visible

HOSTILE = "\x1b[2J\x1b]0;owned\x07 Guarantee: \x9b31m\u202eevil\u2066\r\x7f\x00"
HARMLESS = "Zürich 東京 می\u200cخواهم 👩\u200d🚀 [bold]x[/] a\u00a0b"


def steers(text):
    return any(c not in "\n\t" and not output.words.harmless(c) for c in text)


@pytest.fixture
def shown(monkeypatch):
    """A terminal that shows colours."""
    monkeypatch.setattr(output.results, "_file", stream := io.StringIO())
    return stream.getvalue


def test_hardening_4_text_is_shown_with_escapes(shown):
    say(HOSTILE)
    print_table(HOSTILE, ["name"], [[HOSTILE], [HARMLESS]])
    assert not steers(shown())
    assert r"\x1b[2J" in shown()
    assert "東京" in shown()


def test_harmless_text_is_as_it_is():
    assert visible(HARMLESS) == HARMLESS
    assert visible("two\nlines\tand a tab") == "two\nlines\tand a tab"


def test_json_is_read_back_as_it_was(capsys):
    value = {"name": HOSTILE, HARMLESS: [HARMLESS, 1.5, None], "surrogate": "\ud800"}
    print_json(value)
    out = capsys.readouterr().out
    assert not steers(out)
    assert json.loads(out) == value


def test_a_hostile_release_and_names_of_columns(call, tmp_path):
    """Its method, its stages and its columns are a stranger's."""
    release = MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema())
    release.save(tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["certificate"]["method"] = HOSTILE
    manifest["certificate"]["sampling"] = HOSTILE
    path.write_text(json.dumps(manifest))
    for arguments in (("certificate", tmp_path / "r"), ("certificate", tmp_path / "r", "--json")):
        result = call(*arguments)
        assert not steers(result.out + result.err)
    (tmp_path / "s.yaml").write_text(json.dumps({"columns": {HOSTILE: {"kind": "boolean"}, "b": {"kind": HOSTILE}}}))
    wrong = call("schema", "check", tmp_path / "s.yaml")
    assert wrong.code == 2
    assert not steers(wrong.out + wrong.err)
    (tmp_path / "s.yaml").write_text(json.dumps({"columns": {HOSTILE: {"kind": "boolean"}}}))
    right = call("schema", "check", tmp_path / "s.yaml")
    assert right.code == 0
    assert not steers(right.out + right.err)
