"""Commands about the account of a data set: ledger create, ledger show, ledger verify."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption
from sfumato.cli.ending import last_output
from sfumato.cli.options import command_group
from sfumato.cli.output import number, print_json, print_table, say
from sfumato.errors import ReleaseError

if TYPE_CHECKING:
    from sfumato.data_ledger import ledger_check
else:
    ledger_check = later("sfumato.data_ledger.ledger_check")

ledger_app = command_group()

LedgerArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.")]


class Relation(StrEnum):
    """Relations that a ledger can be kept under."""

    add_remove = "add-remove"
    replace_one = "replace-one"


@ledger_app.command("create")
def create_command(
    file: LedgerArgument,
    epsilon: Annotated[float, typer.Option(metavar="E", help="The epsilon that all fits together may spend.")],
    delta: Annotated[float, typer.Option(metavar="D", help="The delta that all fits together may spend.")],
    relation: Annotated[
        Relation, typer.Option("--neighbours", help="What the guarantee compares. add-remove suits most methods.")
    ] = Relation.add_remove,
) -> None:
    """Open the account of a data set. Reads no record."""
    with last_output(file):
        sfumato.create_ledger(file, epsilon=epsilon, delta=delta, neighbours=sfumato.Neighbours[relation.name.upper()])
    say(f"Wrote {file}. Name it in every fit of these data: sfumato fit DATA --ledger {file} ...")


@ledger_app.command("show")
def show_command(file: LedgerArgument, json_output: JsonOption = False) -> None:
    """Show what is spent, and on which fits. Reads no record."""
    ledger = sfumato.read_ledger(file)
    account = ledger.describe()
    if json_output:
        print_json(account)
        return
    budget, spent = account["budget"], account["spent"]
    say(
        f"Spent: epsilon = {number(spent['epsilon'])} of {budget['epsilon']:g} at delta = {budget['delta']:.3g}, under "
        f"{account['neighbours']}, by {len(account['fits'])} fits. Epsilons do not simply add up."
    )
    if account["further"] is not None:
        say(f"Further fits like the last one that the budget pays for: {account['further']}, of 100 at most.")
    for line in ledger.risks():
        say(line)
    print_table(
        "Fits that charged it",
        ["started", "method", "unit", "epsilon alone", "status"],
        ([f["started"], f["method"], f["unit"], number(f["epsilon_alone"]), f["status"]] for f in account["fits"]),
    )


@ledger_app.command("verify")
def verify_command(
    file: LedgerArgument,
    releases: Annotated[list[Path], typer.Argument(metavar="RELEASE...", help="Releases that were charged to it.")],
    json_output: JsonOption = False,
) -> None:
    """Check that the ledger still knows what releases charged, one for each charge. Reads no record."""
    claims = ledger_check.check_releases(file, releases)
    if json_output:
        print_json([claim.to_dict() for claim in claims])
    else:
        for claim in claims:
            number_of = "" if claim.charge is None else f", charge {claim.charge}"
            say(f"{claim.release}{number_of}: {ledger_check.MEANINGS[claim.standing]}.")
    wrong = sum(claim.standing != "known" for claim in claims)
    if wrong:
        raise ReleaseError(
            f"Expected releases that charges of the ledger {file} paid for, got {wrong} of {len(claims)} that they did "
            "not. What all of them cost together is not what the ledger says."
        )
