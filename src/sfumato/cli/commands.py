"""The commands by name: each one's module is imported when it is called, and the help of all needs none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

from sfumato.cli.configuration import configured
from sfumato.cli.examples import EXAMPLES, JOURNEY, epilog


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


COMMANDS: Mapping[str, Entry] = {
    "demo": Entry(
        "release_commands",
        "demo_command",
        "Start here",
        "Release a real table end to end, and score it: the RAND Health Insurance Experiment.",
    ),
    "studio": Entry(
        "studio_commands",
        "studio_command",
        "Start here",
        "Lead from a table to a release on a page in your browser, on this machine alone.",
    ),
    "methods": Entry(
        "release_commands",
        "methods_command",
        "Start here",
        "List the methods that `fit` knows, or what can be set of one.",
    ),
    "schema": Entry(
        "data_commands",
        "schema_app",
        "Describe the data",
        "Write, import and check schemas: what is publicly known of a table.",
    ),
    "validate": Entry(
        "data_commands",
        "validate_command",
        "Describe the data",
        "List what a fit would clamp or replace. For the data holder's own screen: it shows values of records.",
    ),
    "plan": Entry(
        "release_commands",
        "plan_command",
        "Plan and fit",
        "Show what a fit would spend on what, and what its noise would mean. Reads no record.",
    ),
    "fit": Entry(
        "release_commands",
        "fit_command",
        "Plan and fit",
        "Fit a release to private data.",
    ),
    "tune": Entry(
        "search_commands",
        "tune_command",
        "Plan and fit",
        "Fit the best of several settings: a search whose whole cost is epsilon.",
    ),
    "mixture": Entry(
        "model_commands",
        "mixture_command",
        "Plan and fit",
        "Fit a mixture of Gaussians to numeric columns, by private expectation maximisation (DP-EM).",
    ),
    "factors": Entry(
        "model_commands",
        "factors_command",
        "Plan and fit",
        "Fit a factor analysis to numeric columns, from one private second moment.",
    ),
    "cluster": Entry(
        "model_commands",
        "cluster_command",
        "Plan and fit",
        "Find centres of clusters of numeric columns by private k-means; samples of the release are centres.",
    ),
    "sample": Entry(
        "release_commands",
        "sample_command",
        "Use a release",
        "Draw synthetic rows from a release, any number, in constant memory.",
    ),
    "estimate": Entry(
        "estimate_commands",
        "estimate_command",
        "Use a release",
        "Answer a question from a release's measurements, with an interval. Costs nothing, reads no record.",
    ),
    "certificate": Entry(
        "release_commands",
        "certificate_command",
        "Check a release",
        "Show what a release cost, and check it: epsilon is computed again from the listed events.",
    ),
    "report": Entry(
        "quality_commands",
        "report_command",
        "Check a release",
        "Write a page about a release. With --real it compares with real records and is NOT private.",
    ),
    "evaluate": Entry(
        "quality_commands",
        "evaluate_command",
        "Check a release",
        "Score synthetic rows against real ones. Reads real records: the scores are NOT private.",
    ),
    "audit": Entry(
        "quality_commands",
        "audit_command",
        "Check a release",
        "Attack a release method, and bound its epsilon from below. Reads no record.",
    ),
    "pack": Entry(
        "publish_commands",
        "pack_command",
        "Publish it",
        "Write the folder to publish: release, rows, noisy tables, codebook, cards. Reads no record.",
    ),
    "export": Entry(
        "publish_commands",
        "export_command",
        "Publish it",
        "Describe a release for a catalogue: Croissant, Hugging Face, the registry of DP deployments.",
    ),
    "sign": Entry(
        "signature_commands",
        "sign_command",
        "Publish it",
        "Sign a release, in a file beside it; or make a key.",
    ),
    "verify": Entry(
        "signature_commands",
        "verify_command",
        "Publish it",
        "Check who signed a release, and that it is as it was signed.",
    ),
    "ledger": Entry(
        "ledger_commands",
        "ledger_app",
        "Keep the account",
        "The account of a data set: what all fits of it cost together.",
    ),
}
"""In the order of a journey: from a table to what is published."""


def load_command(name: str) -> Any:  # noqa: ANN401 - a command or a group, of typer's own copy of click
    """Import a command, or a group of them, and return it."""
    entry = COMMANDS[name]
    program = getattr(import_module(f"sfumato.cli.{entry.module}"), entry.name)
    if not isinstance(program, typer.Typer):
        function, program = program, typer.Typer(add_completion=False)
        program.command(name)(function)
    command = typer.main.get_command(program)
    command.name = name
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
        name, command, rest = super().resolve_command(ctx, args)
        if name is None:
            return name, command, rest
        loaded = load_command(name)
        if not ctx.resilient_parsing:  # of completion, which may not fail
            ctx.default_map = {name: configured(loaded, name, rest, ctx.params.get("config"))}
        return name, loaded, rest
