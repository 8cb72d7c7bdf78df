"""Commands of one release of several holders: model join, model round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption
from sfumato.cli.inputs import DataArgument
from sfumato.cli.option_groups import PublicFacts, grouped
from sfumato.cli.options import LedgerOption, ReleaseOutOption, SchemaOption, SeedOption
from sfumato.cli.output import print_json, say

if TYPE_CHECKING:
    from sfumato import holders
else:
    holders = later("sfumato.holders")

StateArgument = Annotated[
    Path, typer.Argument(metavar="STATE", help="This holder's own folder, with its keys. Keep it secret.")
]
MessagesOption = Annotated[
    Path,
    typer.Option("--messages", metavar="FOLDER", help="The folder of what all holders exchange: cards and messages."),
]


@dataclass(frozen=True, kw_only=True)
class JointPlan:
    """What all holders agree on: the same for each of them."""

    schema: SchemaOption
    holders: Annotated[int, typer.Option("--holders", metavar="K", help="The number of holders, 2 to 100.")]
    epsilon: Annotated[
        float, typer.Option("--epsilon", metavar="E", help="The privacy budget epsilon of the release, above 0.")
    ]
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="The delta of the release.")]
    colluding: Annotated[
        int,
        typer.Option(
            "--colluding",
            metavar="T",
            help="The number of holders who may put together what they know and learn no more than the release. 0: "
            "each holder may, as it knows its own part of the noise.",
        ),
    ] = 1


@grouped
def join_command(
    state: StateArgument,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of this holder, in the certificate.")],
    messages: MessagesOption,
    *,
    plan: JointPlan,
    facts: PublicFacts,
    json_output: JsonOption = False,
) -> None:
    """Take part in one release of the records of several holders: make keys and a card. Reads no record."""
    card = holders.init_holder(
        state, facts.described(sfumato.OpenSchema.load(plan.schema)), messages=messages, name=name,
        holders=plan.holders, colluding=plan.colluding, epsilon=plan.epsilon, delta=plan.delta, target=facts.target,
        n_public=facts.n_public,
    )  # fmt: skip
    if json_output:
        print_json(card.to_dict())
        return
    say(f"Wrote {messages / name}.card.json for the other holders, and {state} for this one: keep it secret.")
    say(f"When all cards are there: sfumato model round {state} DATA --messages {messages} --out all.sfm")


def round_command(
    state: StateArgument,
    data: DataArgument,
    messages: MessagesOption,
    out: ReleaseOutOption,
    fingerprint: Annotated[
        str | None,
        typer.Option(
            "--fingerprint",
            metavar="HEX",
            help="The fingerprint of all cards, once the other holders have read out the same, by telephone say. "
            "Needed once.",
        ),
    ] = None,
    ledger: LedgerOption = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="NAME",
            help="A holder who dropped out. The others begin a further attempt, for a charge of its own. Repeatable.",
        ),
    ] = None,
    rows_left: Annotated[
        int | None,
        typer.Option(
            "--rows-left",
            metavar="N",
            help="With --without: the public number of rows of those who go on, all together.",
        ),
    ] = None,
    seed: SeedOption = None,
    json_output: JsonOption = False,
) -> None:
    """Go on with one release of the records of several holders, as far as the messages that are there allow."""
    result = holders.holder_round(
        state, data, messages=messages, out=out, fingerprint=fingerprint, ledger=ledger, without=without or (),
        rows_left=rows_left, seed=seed,
    )  # fmt: skip
    if json_output:
        print_json(
            {
                "attempt": result.attempt,
                "round": result.number,
                "waiting": list(result.waiting),
                "cards": result.cards,
                "fingerprint": result.fingerprint,
                "written": None if result.release is None else str(out),
            }
        )
        return
    if result.release is not None:
        say(f"Wrote {out}, the same model as that of the other holders. {result.release.certificate}")
    elif result.fingerprint is None:
        again = "" if result.attempt == 1 else ", who are to name the same ones --without whom they go on"
        say(f"Waiting for the cards of other holders{again}: {result.cards} are not in {messages}.")
    elif not result.number:
        say(f"The fingerprint of the cards of {', '.join(result.names)} is {result.fingerprint}")
        say("Compare it with the other holders by another way than the files came, by telephone say. Then:")
        say(
            f"  sfumato model round {state} DATA --messages {messages} --out {out} --fingerprint '{result.fingerprint}'"
        )
    else:
        say(f"Wrote the message of round {result.number}. Waiting for those of {', '.join(result.waiting)}.")
        say("When they are there, run the same command again.")
