"""Commands that fit a model of another kind, with a release as output: model mixture, factors, cluster; others join."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.ending import save_release
from sfumato.cli.holder_commands import join_command, round_command
from sfumato.cli.inputs import DataArgument, InputFormatOption, open_data, refuse_data
from sfumato.cli.option_groups import grouped
from sfumato.cli.options import (
    DeltaOption,
    LedgerOption,
    ReleaseOutOption,
    RowsOption,
    SchemaOption,
    SeedOption,
    command_group,
)
from sfumato.cli.output import tell_written
from sfumato.cli.search_commands import tune_command
from sfumato.errors import require_positive
from sfumato.io.atomic import refuse_existing

if TYPE_CHECKING:
    from sfumato import estimators
    from sfumato.estimators import records
    from sfumato.estimators.base import PrivateEstimator
    from sfumato.models.mixtures import covariances
    from sfumato.models.mixtures.covariances import CovarianceForm
    from sfumato.release import files
    from sfumato.schema import sources
else:
    estimators, records = later("sfumato.estimators"), later("sfumato.estimators.records")
    covariances, files = later("sfumato.models.mixtures.covariances"), later("sfumato.release.files")
    sources = later("sfumato.schema.sources")

model_app = command_group(
    "Fit otherwise: the best of several settings, several holders together, a mixture, a factor analysis or clusters."
)
model_app.command("tune")(tune_command)
model_app.command("join")(join_command)
model_app.command("round")(round_command)

EpsilonOption = Annotated[
    float,
    typer.Option(
        "--epsilon",
        metavar="E",
        help="The privacy budget epsilon, above 0. Smaller is more private; 1 is a common choice.",
    ),
]
ClipNormOption = Annotated[
    float | None,
    typer.Option(
        "--clip-norm",
        metavar="C",
        help="The clipping norm of a record, in half widths of the columns' bounds. Default: √columns.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ModelTask:
    """The table to fit to, ε, and the release to write."""

    data: DataArgument
    schema: SchemaOption
    epsilon: EpsilonOption
    out: ReleaseOutOption


@dataclass(frozen=True, kw_only=True)
class ModelRun:
    """How an estimator is fitted."""

    clip_norm: ClipNormOption = None
    delta: DeltaOption = None
    rows: RowsOption = None
    seed: SeedOption = None
    ledger: LedgerOption = None
    input_format: InputFormatOption = None
    overwrite: OverwriteOption = False
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


def _form(covariance: Covariance) -> CovarianceForm:
    return {
        Covariance.full: covariances.FullCovariance,
        Covariance.diagonal: covariances.DiagonalCovariance,
        Covariance.spherical: covariances.SphericalCovariance,
        Covariance.tied: covariances.TiedCovariance,
    }[covariance]()


@model_app.command("mixture")
@grouped
def mixture_command(
    task: ModelTask,
    components: Annotated[
        int, typer.Option("--components", metavar="K", help="The number of Gaussians in the mixture.")
    ] = 1,
    covariance: Annotated[
        Covariance, typer.Option("--covariance", help="The form of the covariances of the Gaussians.")
    ] = Covariance.full,
    iterations: Annotated[
        int,
        typer.Option(
            "--iterations", metavar="J", help="The number of noisy releases, with the start's. All are charged."
        ),
    ] = 10,
    *,
    run: ModelRun,
) -> None:
    """Fit a mixture of Gaussians to numeric columns, by private expectation maximisation (DP-EM)."""
    settings = {"covariance": _form(covariance), "iterations": iterations, **run.settings(task)}
    model = estimators.DPGaussianMixture(components, **settings)
    _fit(model, task, run)


@model_app.command("factors")
@grouped
def factors_command(
    task: ModelTask,
    factors: Annotated[int, typer.Option("--factors", metavar="R", help="The number of latent factors.")] = 2,
    *,
    run: ModelRun,
) -> None:
    """Fit a factor analysis to numeric columns, from one private second moment."""
    model = estimators.DPFactorAnalysis(factors, **run.settings(task))
    _fit(model, task, run)


@model_app.command("cluster")
@grouped
def cluster_command(
    task: ModelTask,
    clusters: Annotated[int, typer.Option("--clusters", metavar="K", help="The number of centres.")] = 8,
    iterations: Annotated[
        int, typer.Option("--iterations", metavar="J", help="The number of iterations. All are charged.")
    ] = 7,
    *,
    run: ModelRun,
) -> None:
    """Find centres of clusters of numeric columns by private k-means; samples of the release are centres."""
    model = estimators.DPKMeans(clusters, iterations=iterations, **run.settings(task))
    _fit(model, task, run)


def _fit(model: PrivateEstimator, task: ModelTask, run: ModelRun) -> None:
    """Check all that is public, fit, and write the release."""
    require_positive(epsilon=model.epsilon)
    refuse_data(task.out, {"data": task.data}, schema=task.schema, ledger=run.ledger)
    refuse_existing(task.out, overwrite=run.overwrite, marker=files.FILES)
    known = sfumato.OpenSchema.load(task.schema)
    sources.accepted(known, accept_draft=False)
    table = records.SchemaRecords(open_data(task.data, run.input_format, known), known)
    model.set_params(n_public=known.rows if run.rows is None else run.rows)
    model.fit(table, bounds=table.bounds, ledger=run.ledger)
    release = model.release()
    save_release(release, task.out, overwrite=run.overwrite, ledger=run.ledger)
    tell_written(release, task.out, json_output=run.json_output)
