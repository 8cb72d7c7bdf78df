"""The command that verifies a finding on the records: verify-finding."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

import sfumato
from sfumato.cli.data_commands import JsonOption
from sfumato.cli.inputs import DataArgument, InputFormatOption, open_data
from sfumato.cli.options import DeltaOption, LedgerOption, ReleaseArgument, SeedOption
from sfumato.cli.output import print_json, say


class VerifiedFamily(StrEnum):
    """Regressions whose findings can be verified."""

    ols = "ols"
    logit = "logit"
    poisson = "poisson"


def verify_finding_command(
    data: DataArgument,
    release: ReleaseArgument,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="A regression that the release answers.")],
    term: Annotated[str, typer.Argument(metavar="TERM", help="The coefficient, as the release names it.")],
    epsilon: Annotated[
        float, typer.Option("--epsilon", metavar="E", help="The privacy budget of this answer, beside the release's.")
    ],
    *,
    family: Annotated[VerifiedFamily, typer.Option("--family", help="The kind of regression.")] = VerifiedFamily.ols,
    delta: DeltaOption = None,
    ledger: LedgerOption = None,
    input_format: InputFormatOption = None,
    seed: SeedOption = None,
    json_output: JsonOption = False,
) -> None:
    """Ask the records, with noise and for a charge, whether they show a finding of a release."""
    known = sfumato.load(release)
    source = open_data(data, input_format, known.schema)
    answer = sfumato.verify_finding(
        known, source, formula, term, epsilon=epsilon, family=family.value, delta=delta, ledger=ledger, seed=seed
    )
    if json_output:
        print_json(answer.to_dict())
    else:
        say(answer.summary())
