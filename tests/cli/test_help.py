"""Help in the order of a journey, examples that can be called as they stand, and completion."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato import cli
from sfumato.cli.commands import COMMANDS, full_words, load_command
from sfumato.cli.configuration import NOT_IN_FILES, SHARED
from sfumato.cli.example_calls import EXAMPLES, JOURNEY


def _leaf(full: str):
    name, _, child = full.partition(" ")
    command = load_command(name)
    return command.commands[child] if child else command


def _leaves() -> set[str]:
    found = set()
    for name in COMMANDS:
        children = getattr(load_command(name), "commands", None)
        found |= {name} if children is None else {f"{name} {child}" for child in children}
    return found


@pytest.mark.parametrize("full", [full for full in EXAMPLES if " " in full])
def test_the_word_of_a_group_may_be_left_out(full):
    group, command = full.split()
    assert full_words([command, "--json"]) == [group, command, "--json"]
    assert full_words([group, command]) == [group, command]


@pytest.mark.parametrize("words", [["fit"], ["evaluate"], ["evaluate", "--help"], ["nothing", "x"], []])
def test_other_words_stay_as_they_are(words):
    assert full_words(words) == words


def test_what_is_evaluated_is_a_table_unless_something_else_is_named():
    assert full_words(["evaluate", "--json", "a.csv", "b.csv"]) == ["evaluate", "table", "--json", "a.csv", "b.csv"]


def _takes(call: str) -> None:
    program, *words = shlex.split(call)
    full = next(name for name in (" ".join(words[:2]), words[0]) if name in EXAMPLES)
    assert program == "sfumato"
    command = _leaf(full)
    # parses options and arguments, with their types, and what is required; runs nothing
    context = command.make_context(full, words[len(full.split()) :])
    assert context.params


def test_every_command_has_an_example() -> None:
    assert set(EXAMPLES) == _leaves()
    assert [
        full for full, calls in EXAMPLES.items() if not all(call.startswith(f"sfumato {full}") for call in calls)
    ] == []


@pytest.mark.parametrize("call", [*JOURNEY, *(call for calls in EXAMPLES.values() for call in calls)])
def test_an_example_can_be_called_as_it_stands(call: str) -> None:
    _takes(call)


def test_an_example_that_is_wrong_would_be_found() -> None:
    for call in ("sfumato fit a.csv --sheme s.yaml --out r", "sfumato fit a.csv", "sfumato sample r -n x --out s.csv"):
        with pytest.raises(Exception, match=r"such option|Missing parameter|valid integer"):
            _takes(call)


@pytest.mark.parametrize("full", EXAMPLES)
def test_examples_are_in_the_help_whole(call, full: str) -> None:
    said = " ".join(call(*full.split(), "--help").out.split())
    for example in EXAMPLES[full]:
        assert example in said


def test_commands_are_in_the_order_of_a_journey(call) -> None:
    said = call("--help").out
    listed = [name for name in re.findall(r"^│ ([\w-]+) ", said, re.M) if name in COMMANDS]
    assert listed == list(COMMANDS)
    first = [name for name in COMMANDS if name in ("schema", "plan", "fit", "sample", "certificate", "publish")]
    assert first == ["schema", "plan", "fit", "sample", "certificate", "publish"]
    assert all(example in said for example in JOURNEY)


def test_options_at_the_top_of_a_configuration_are_options_of_commands() -> None:
    known = {
        option.removeprefix("--") for full in EXAMPLES for parameter in _leaf(full).params for option in parameter.opts
    }
    assert set(SHARED) - known == set()
    assert set(NOT_IN_FILES) - known == {"help"}
    assert set(SHARED) & set(NOT_IN_FILES) == set()


class TestCompletion:
    def shell(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        code = "import sys; sys.argv[0] = 'sfumato'; from sfumato.cli import main; main()"
        source = Path(cli.__file__).parents[2]
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True, text=True, timeout=60, check=False,
            env=os.environ | {"PYTHONPATH": str(source)} | environment,
        )  # fmt: skip

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("words", "found"),
        [("sfumato sc", {"schema"}), ("sfumato schema d", {"draft"}), ("sfumato fit --eps", {"--epsilon"}),
         ("sfumato publish pack --publisher", {"--publisher", "--publisher-type"})],
    )  # fmt: skip
    def test_names_of_commands_and_options_are_completed(self, words: str, found: set[str], tmp_path: Path) -> None:
        done = self.shell(_SFUMATO_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
        assert set(done.stdout.split()) == found

    def test_it_can_be_installed(self, tmp_path: Path) -> None:
        done = self.shell(
            "--install-completion",
            "bash",
            HOME=str(tmp_path),
            SHELL="/bin/bash",
            _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1",
        )
        assert done.returncode == 0, done.stderr
        written = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert any("_SFUMATO_COMPLETE" in path.read_text(encoding="utf-8") for path in written)


@pytest.mark.parametrize(
    ("words", "help"),
    [("fit --nonsense", "fit"), ("validate", "schema validate"), ("verify r.sfm", "ledger verify"), ("nothing", "")],
)
def test_a_wrong_call_is_pointed_to_the_help_of_its_command(call, words, help):
    message = call(*words.split()).err
    assert f"See `sfumato {help} --help`".replace("  ", " ") in " ".join(message.split())


def test_a_search_in_the_help_says_what_it_tries(call, tmp_path, monkeypatch):
    """Which no option requires by itself: the example was refused."""
    monkeypatch.chdir(tmp_path)
    for name in ("schema.yaml", "s.yaml"):
        Path(name).write_text("rows: 9\ncolumns: {age: {kind: integer, lower: 0, upper: 9}}\n", encoding="utf-8")
    for example in EXAMPLES["model tune"]:
        message = call(*shlex.split(example)[1:]).err
        assert "people.csv" in message, "all else is right"
