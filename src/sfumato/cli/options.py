"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SchemaOption = Annotated[Path, typer.Option("--schema", metavar="SCHEMA", help="What is publicly known of the data.")]
MethodOption = Annotated[str, typer.Option("--method", metavar="M", help="See `sfumato methods`.")]
EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", metavar="E", help="Privacy loss to spend, in nats; above 0.")
]
PurposeOption = Annotated[
    str | None,
    typer.Option(
        "--purpose", metavar="P", help="fidelity (default): samples are like the records. training: they teach best."
    ),
]
PoseOption = Annotated[
    str | None,
    typer.Option("--pose", metavar="P", help="Of images: auto (default), affine (centre and straighten), or none."),
]
MixtureDegreeOption = Annotated[
    int | None,
    typer.Option(
        "--mixture-degree",
        metavar="L",
        help="Of dpmix: records in a mixture, on average. Default: by formula.",
    ),
]
NMixturesOption = Annotated[
    int | None, typer.Option("--n-mixtures", metavar="T", help="Of dpmix: how many mixtures. Default: as many as rows.")
]
MixingOption = Annotated[
    str | None,
    typer.Option("--mixing", metavar="X", help="Of dpmix: poisson (default), subset (replace-one), or fixed-degree."),
]
ClipNormOption = Annotated[
    float | None,
    typer.Option(
        "--clip-norm",
        metavar="C",
        help="Of dpmix: records are shrunk to this norm. Default: √d/3 for d pixels.",
    ),
]
DenoiseOption = Annotated[
    float | None, typer.Option("--denoise", metavar="S", help="Of dpmix: blur its images by S pixels, against noise.")
]
DeltaOption = Annotated[float | None, typer.Option("--delta", metavar="D", help="Default: min(1e-5, 0.1/rows).")]
RowsOption = Annotated[
    int | None, typer.Option("--rows", metavar="N", help="Public number of rows; overrides the schema's.")
]
BuyRowsOption = Annotated[
    bool, typer.Option("--buy-rows", help="Declare no number of rows: buy a noisy one. Needs --delta.")
]
TargetOption = Annotated[
    str | None, typer.Option("--target", metavar="COL", help="Column whose classes are modelled apart.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", help="Reproducible noise: NOT private.")]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="For long fits: keeps what is released so far; the same command goes on from it after a stop.",
    ),
]
LedgerOption = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="The account of these data: charged before a record is read."),
]
ReleaseArgument = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release: a directory or a .sfm file.")]
