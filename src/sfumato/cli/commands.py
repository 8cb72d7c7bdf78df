"""The commands by name: each one's module is imported when it is called, and the help of all needs none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is.

    Attributes:
        module: of `sfumato.cli`.
        name: of the function in it, or of the group of commands.
        help: its line in the list of commands: the first paragraph of its own help.
    """

    module: str
    name: str
    help: str


COMMANDS: Mapping[str, Entry] = {
    "validate": Entry(
        "data_commands",
        "validate_command",
        "List what a fit would clamp or replace. For the data holder's own screen: it shows values of records.",
    ),
    "plan": Entry(
        "release_commands",
        "plan_command",
        "Show what a fit would spend on what, and what its noise would mean. Reads no record.",
    ),
    "fit": Entry("release_commands", "fit_command", "Fit a release to private data."),
    "mixture": Entry(
        "model_commands",
        "mixture_command",
        "Fit a mixture of Gaussians to numeric columns, by private expectation maximisation (DP-EM).",
    ),
    "factors": Entry(
        "model_commands",
        "factors_command",
        "Fit a factor analysis to numeric columns, from one private second moment.",
    ),
    "cluster": Entry(
        "model_commands",
        "cluster_command",
        "Find centres of clusters of numeric columns by private k-means; samples of the release are centres.",
    ),
    "sample": Entry(
        "release_commands", "sample_command", "Draw synthetic rows from a release, any number, in constant memory."
    ),
    "estimate": Entry(
        "estimate_commands",
        "estimate_command",
        "Answer a question from a release's measurements, with an interval. Costs nothing, reads no record.",
    ),
    "certificate": Entry(
        "release_commands",
        "certificate_command",
        "Show what a release cost, and check it: epsilon is computed again from the listed events.",
    ),
    "pack": Entry(
        "publish_commands",
        "pack_command",
        "Write the folder to publish: release, rows, noisy tables, codebook, cards. Reads no record.",
    ),
    "export": Entry(
        "publish_commands",
        "export_command",
        "Describe a release for a catalogue: Croissant, Hugging Face, the registry of DP deployments.",
    ),
    "sign": Entry("signature_commands", "sign_command", "Sign a release, in a file beside it; or make a key."),
    "verify": Entry(
        "signature_commands", "verify_command", "Check who signed a release, and that it is as it was signed."
    ),
    "methods": Entry(
        "release_commands", "methods_command", "List the methods that `fit` knows, or what can be set of one."
    ),
    "demo": Entry(
        "release_commands",
        "demo_command",
        "Release a real table end to end, and score it: the RAND Health Insurance Experiment.",
    ),
    "tune": Entry(
        "search_commands", "tune_command", "Fit the best of several settings: a search whose whole cost is epsilon."
    ),
    "evaluate": Entry(
        "quality_commands",
        "evaluate_command",
        "Score synthetic rows against real ones. Reads real records: the scores are NOT private.",
    ),
    "report": Entry(
        "quality_commands",
        "report_command",
        "Write a page about a release. With --real it compares with real records and is NOT private.",
    ),
    "audit": Entry(
        "quality_commands",
        "audit_command",
        "Attack a release method, and bound its epsilon from below. Reads no record.",
    ),
    "studio": Entry(
        "studio_commands",
        "studio_command",
        "Lead from a table to a release on a page in your browser, on this machine alone.",
    ),
    "schema": Entry(
        "data_commands", "schema_app", "Write, import and check schemas: what is publicly known of a table."
    ),
    "ledger": Entry("ledger_commands", "ledger_app", "The account of a data set: what all fits of it cost together."),
}


def load_command(name: str) -> Any:  # noqa: ANN401 - a command or a group, of typer's own copy of click
    """Import a command, or a group of them, and return it."""
    entry = COMMANDS[name]
    found = getattr(import_module(f"sfumato.cli.{entry.module}"), entry.name)
    if not isinstance(found, typer.Typer):
        program = typer.Typer(add_completion=False)
        program.command(name)(found)
        found = program
    command = typer.main.get_command(found)
    command.name = name
    return command


class LazyCommands(TyperGroup):
    """A group that knows the names and the lines of its commands, and imports the one that is called."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - typer's
        super().__init__(**settings)
        self.commands.update((name, TyperCommand(name, help=entry.help)) for name, entry in COMMANDS.items())

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - of typer's own copy of click
        """Find the command that is called, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest
