"""Commands about how good and how private a release is: report, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.data_commands import OverwriteOption
from sfumato.cli.output import say
from sfumato.cli.release_commands import ReleaseArgument
from sfumato.data.atomic import refuse_existing
from sfumato.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command("report")(report_command)


def report_command(
    release: ReleaseArgument,
    out: Annotated[Path, typer.Option("--out", metavar="PAGE", help="The page to write, .html.")],
    real: Annotated[
        Path | None,
        typer.Option("--real", metavar="REAL", help="The real rows that were released: the page is then NOT private."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="REAL_TEST", help="Real rows that were not released, to score classifiers on."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COL", help="Column the classifiers predict; default: the release's target."),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of the rows that are drawn, and of the classifiers.")
    ] = 0,
    overwrite: OverwriteOption = False,
) -> None:
    """Write a page about a release. With --real it compares with real records and is NOT private."""
    from sfumato.report import write_report

    for option, value in (("--test", test), ("--target", target)):
        if value is not None and real is None:
            raise ConfigError(f"Expected --real beside {option}, got none. Pass the real rows that were released.")
    if out.suffix.lower() not in {".html", ".htm"}:
        raise ConfigError(f"Expected --out to name a page that ends in .html, got {str(out)!r}.")
    refuse_existing(out, overwrite=overwrite)
    write_report(release, out, real=real, test=test, target=target, seed=seed, overwrite=overwrite)
    if real is None:
        say(f"Wrote {out}, from the release alone: it tells nothing that the release does not tell.")
    else:
        say(f"Wrote {out}, from real records: it is NOT private. Do not publish it.")
