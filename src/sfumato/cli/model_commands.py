"""Commands that fit a model of another kind, with a release as output: model mixture, factors, cluster, join, round."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.ending import save_release
from sfumato.cli.inputs import DataArgument, InputFormatOption, open_data, refuse_data
from sfumato.cli.option_groups import PublicFacts, grouped
from sfumato.cli.options import (
    EPSILON,
    DeltaOption,
    LedgerOption,
    ReleaseOutOption,
    RowsAreRecordsOption,
    RowsOption,
    SchemaOption,
    SeedOption,
    command_group,
)
from sfumato.cli.output import print_json, say, tell_written
from sfumato.cli.search_commands import tune_command
from sfumato.errors import require_positive

if TYPE_CHECKING:
    from sfumato.estimators import records
    from sfumato.estimators.base import PrivateEstimator
    from sfumato.models.mixtures import covariances
    from sfumato.release import files
    from sfumato.schema import sources
else:
    records, covariances = later("sfumato.estimators.records"), later("sfumato.models.mixtures.covariances")
    files, sources = later("sfumato.release.files"), later("sfumato.schema.sources")

StateArgument = Annotated[
    Path, typer.Argument(metavar="STATE", help="This holder's own folder, with its keys. Keep it secret.")
]
MessagesOption = Annotated[
    Path, typer.Option(metavar="FOLDER", help="The folder of what all holders exchange: cards and messages.")
]
model_app = command_group()


@dataclass(frozen=True, kw_only=True)
class JointPlan:
    """What all holders agree on: the same for each of them."""

    schema: SchemaOption
    holders: Annotated[int, typer.Option(metavar="K", help="The number of holders, 2 to 100.")]
    epsilon: Annotated[float, typer.Option(metavar="E", help="The privacy budget epsilon of the release, above 0.")]
    delta: Annotated[float, typer.Option(metavar="D", help="The delta of the release.")]
    colluding: Annotated[
        int,
        typer.Option(
            metavar="T",
            help="The number of holders who may put together what they know and learn no more than the release. 0: "
            "each holder may, as it knows its own part of the noise.",
        ),
    ] = 1


@grouped
def join_command(
    state: StateArgument,
    name: Annotated[str, typer.Option(metavar="NAME", help="The name of this holder, in the certificate.")],
    messages: MessagesOption,
    *,
    plan: JointPlan,
    facts: PublicFacts,
    json_output: JsonOption = False,
) -> None:
    """Take part in one release of the records of several holders: make keys and a card. Reads no record."""
    card = sfumato.holders.init_holder(
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
            metavar="HEX",
            help="The fingerprint of all cards, once the other holders have read out the same, by telephone say. "
            "Needed once.",
        ),
    ] = None,
    ledger: LedgerOption = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A holder who dropped out. The others begin a further attempt, for a charge of its own. Repeatable.",
        ),
    ] = None,
    rows_left: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --without: the public number of rows of those who go on, all together."),
    ] = None,
    seed: SeedOption = None,
    rows_are_records: RowsAreRecordsOption = False,
    json_output: JsonOption = False,
) -> None:
    """Go on with one release of the records of several holders, as far as the messages that are there allow."""
    result = sfumato.holders.holder_round(
        state, data, messages=messages, out=out, fingerprint=fingerprint, ledger=ledger, without=without or (),
        rows_left=rows_left, seed=seed, rows_are_records=rows_are_records,
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


model_app.command("tune")(tune_command)
model_app.command("join")(join_command)
model_app.command("round")(round_command)


@dataclass(frozen=True, kw_only=True)
class ModelTask:
    """The table to fit to, ε, and the release to write."""

    data: DataArgument
    schema: SchemaOption
    epsilon: Annotated[float, EPSILON]
    out: ReleaseOutOption


@dataclass(frozen=True, kw_only=True)
class ModelRun:
    """How an estimator is fitted."""

    clip_norm: Annotated[
        float | None,
        typer.Option(
            metavar="C", help="The clipping norm of a record, in half widths of the columns' bounds. Default: √columns."
        ),
    ] = None
    delta: DeltaOption = None
    rows: RowsOption = None
    seed: SeedOption = None
    ledger: LedgerOption = None
    input_format: InputFormatOption = None
    overwrite: OverwriteOption = False
    rows_are_records: RowsAreRecordsOption = False
    json_output: JsonOption = False

    def settings(self, task: ModelTask) -> dict[str, Any]:
        """Settings that every estimator has."""
        return {"epsilon": task.epsilon, "delta": self.delta, "clip_norm": self.clip_norm, "seed": self.seed}


class Covariance(StrEnum):
    """Forms of the covariances of a mixture's components."""

    full = "full"
    diagonal = "diagonal"
    spherical = "spherical"
    tied = "tied"


@model_app.command("mixture")
@grouped
def mixture_command(
    task: ModelTask,
    components: Annotated[int, typer.Option(metavar="K", help="The number of Gaussians in the mixture.")] = 1,
    covariance: Annotated[
        Covariance, typer.Option(help="The form of the covariances of the Gaussians.")
    ] = Covariance.full,
    iterations: Annotated[
        int, typer.Option(metavar="J", help="The number of noisy releases, with the start's. All are charged.")
    ] = 10,
    *,
    run: ModelRun,
) -> None:
    """Fit a mixture of Gaussians to numeric columns, by private expectation maximisation (DP-EM)."""
    settings = {"covariance": covariances.FORMS[covariance], "iterations": iterations, **run.settings(task)}
    model = sfumato.estimators.DPGaussianMixture(components, **settings)
    _fit(model, task, run)


@model_app.command("factors")
@grouped
def factors_command(
    task: ModelTask,
    factors: Annotated[int, typer.Option(metavar="R", help="The number of latent factors.")] = 2,
    *,
    run: ModelRun,
) -> None:
    """Fit a factor analysis to numeric columns, from one private second moment."""
    model = sfumato.estimators.DPFactorAnalysis(factors, **run.settings(task))
    _fit(model, task, run)


@model_app.command("cluster")
@grouped
def cluster_command(
    task: ModelTask,
    clusters: Annotated[int, typer.Option(metavar="K", help="The number of centres.")] = 8,
    iterations: Annotated[int, typer.Option(metavar="J", help="The number of iterations. All are charged.")] = 7,
    *,
    run: ModelRun,
) -> None:
    """Find centres of clusters of numeric columns by private k-means; samples of the release are centres."""
    model = sfumato.estimators.DPKMeans(clusters, iterations=iterations, **run.settings(task))
    _fit(model, task, run)


def _fit(model: PrivateEstimator, task: ModelTask, run: ModelRun) -> None:
    """Check all that is public, fit, and write the release."""
    require_positive(epsilon=model.epsilon)
    refuse_data(task.out, {"data": task.data}, schema=task.schema, ledger=run.ledger)
    files.refuse_place(task.out, overwrite=run.overwrite)
    known = sfumato.OpenSchema.load(task.schema)
    sources.accepted(known, accept_draft=False)
    table = records.SchemaRecords(open_data(task.data, run.input_format, known), known)
    model.set_params(n_public=known.rows if run.rows is None else run.rows)
    model.fit(table, bounds=table.bounds, ledger=run.ledger, rows_are_records=run.rows_are_records)
    release = model.release()
    save_release(release, task.out, overwrite=run.overwrite, ledger=run.ledger)
    tell_written(release, task.out, json_output=run.json_output)
