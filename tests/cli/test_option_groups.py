"""Options that go together are a dataclass, and a command's help, defaults and values are those of single options."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from sfumato.cli.option_groups import grouped

Rows = Annotated[int | None, typer.Option("--rows", metavar="N", help="How many.")]
Form = Annotated[str, typer.Option("--form", help="Which.")]
Out = Annotated[str, typer.Option("--out", help="Where to.")]


@dataclass(frozen=True, kw_only=True)
class Shape:
    form: Form
    rows: Rows = None


def apart(data: str, form: Form, rows: Rows = None, *, out: Out = "here") -> None:
    """Say all."""
    typer.echo((data, form, rows, out))


@grouped
def together(data: str, shape: Shape, *, out: Out = "here") -> None:
    """Say all."""
    typer.echo((data, shape.form, shape.rows, out))


def _output(command, *words: str) -> tuple[int, str]:
    program = typer.Typer(add_completion=False)
    program.command("command")(command)
    done = CliRunner().invoke(program, words)
    return done.exit_code, done.output


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("a", "--form", "x"),
        ("a", "--out", "b", "--rows", "3", "--form", "x"),
        ("a",),
        ("a", "--form", "x", "--rows", "many"),
    ],
)
def test_a_group_is_its_options_in_its_place(words: tuple[str, ...]) -> None:
    assert _output(together, *words) == _output(apart, *words)


def test_two_options_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="duplicate parameter name: 'rows'"):

        @grouped
        def twice(shape: Shape, rows: Rows = None) -> None:
            """Never called."""
