"""The commands by name: each one's module is imported when it is called, and the help of all needs none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

from sfumato.cli.configuration import option_defaults
from sfumato.cli.example_calls import EXAMPLES, JOURNEY, epilog


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is.

    Attributes:
        module: of `sfumato.cli`.
        name: of the function in it, or of the group of commands.
        panel: the heading under which it is listed.
        help: its line in the list of commands: the first paragraph of its own help.
    """

    module: str
    name: str
    panel: str
    help: str


_HELP: Mapping[str, Mapping[str, str]] = {
    "Start here": {
        "demo": "Release a real table end to end, and score it: the RAND Health Insurance Experiment.",
        "studio": "Make a release step by step in your browser. Everything stays on this machine.",
        "methods": "List the methods that `fit` knows, or what can be set of one.",
    },
    "Describe the data": {
        "schema": "Write, import and check schemas: what is publicly known of a table. Compare data with one."
    },
    "Plan and fit": {
        "plan": "Show what a fit would spend the budget on, and how accurate it would be. Reads no record.",
        "fit": "Fit a model to private data, and write it as a release that can be published.",
        "model": "Fit otherwise: the best of several settings, several holders together, a mixture, a factor analysis "
        "or clusters.",
    },
    "Use a release": {
        "sample": "Draw synthetic rows from a release, any number, in constant memory.",
        "estimate": "Answer a question from a release's measurements, with an interval. Costs nothing, reads no "
        "record.",
    },
    "Check a release": {
        "certificate": "Show what a release cost, and check it, and its signature: epsilon is computed again from the "
        "listed events.",
        "report": "Write a page about a release. With --real it compares with real records and is NOT private.",
        "evaluate": "Score synthetic rows, ask the records about a finding, or attack a method.",
    },
    "Publish it": {"publish": "Write the folder to publish, descriptions for catalogues, and signatures."},
    "Keep the account": {"ledger": "The account of a data set: what all fits of it cost together."},
}
"""Panel → command → its line of help. In the order of a journey: from a table to what is published."""

_MODULES = {
    "data": ("schema",), "estimate": ("estimate",), "ledger": ("ledger",), "model": ("model",),
    "publish": ("publish",), "quality": ("report", "evaluate"),
    "release": ("plan", "fit", "sample", "certificate"), "start": ("demo", "studio", "methods"),
}  # fmt: skip
_GROUPS = ("schema", "model", "evaluate", "publish", "ledger")
_HOMES = {command: f"{module}_commands" for module, names in _MODULES.items() for command in names}
COMMANDS: Mapping[str, Entry] = {
    name: Entry(_HOMES[name], f"{name}_{'app' if name in _GROUPS else 'command'}", panel, line)
    for panel, lines in _HELP.items()
    for name, line in lines.items()
}


_DEFAULTS = {"evaluate": "table"}
"""Group → the command that is meant where none of the group is named."""


def full_words(words: Sequence[str]) -> list[str]:
    """Return the words of a call with the group's, or the command's, that may be left out.

    Example:
        >>> full_words(["validate", "people.csv"])
        ['schema', 'validate', 'people.csv']
        >>> full_words(["evaluate", "people.csv", "rows.csv"])
        ['evaluate', 'table', 'people.csv', 'rows.csv']
    """
    if not words:
        return []
    first, *rest = words
    pairs = [full.split() for full in EXAMPLES if " " in full]
    groups = [group for group, command in pairs if command == first]
    if first not in COMMANDS and len(groups) == 1:
        return [groups[0], *words]
    if (
        first in _DEFAULTS
        and rest
        and rest[0] not in {"-h", "--help", *(child for group, child in pairs if group == first)}
    ):
        return [first, _DEFAULTS[first], *rest]
    return list(words)


def load_command(name: str) -> Any:  # noqa: ANN401 - a command or a group, of typer's own copy of click
    """Import a command, or a group of them, and return it."""
    entry = COMMANDS[name]
    program = getattr(import_module(f"sfumato.cli.{entry.module}"), entry.name)
    if not isinstance(program, typer.Typer):
        function, program = program, typer.Typer(add_completion=False)
        program.command(name)(function)
    command = typer.main.get_command(program)
    command.name = name
    command.help = command.help or entry.help
    for full, leaf in _leaves(name, command):
        leaf.epilog = epilog(EXAMPLES[full])
    return command


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - of typer's own copy of click
    """Return the commands of a group by full name, or the one command itself."""
    children = getattr(command, "commands", None)
    return [(name, command)] if children is None else [(f"{name} {child}", children[child]) for child in children]


class LazyCommands(TyperGroup):
    """A group that knows the names and the lines of its commands, and imports the one that is called."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - typer's
        super().__init__(**settings)
        self.epilog = epilog(JOURNEY)
        for name, entry in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=entry.help, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - of typer's own copy of click
        """Find the command that is called, and import it; a configuration file gives defaults of its options."""
        name, command, rest = super().resolve_command(ctx, full_words(args))
        if name is None:
            return name, command, rest
        loaded = load_command(name)
        if not ctx.resilient_parsing:  # of completion, which may not fail
            ctx.default_map = {name: option_defaults(loaded, name, rest, ctx.params.get("config"))}
        return name, loaded, rest
