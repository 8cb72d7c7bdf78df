"""Commands about how good and how private a release is: report, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.output import notes, number, print_json, print_table, say
from sfumato.cli.release_commands import (
    DeltaOption,
    EpsilonOption,
    MethodOption,
    ReleaseArgument,
    RowsOption,
    SchemaOption,
    TargetOption,
)
from sfumato.data.atomic import refuse_existing
from sfumato.data.schema import Schema
from sfumato.errors import ConfigError, PrivacyError
from sfumato.synthesizers.gaussian import ConditionalGaussian
from sfumato.synthesizers.methods import make_synthesizer


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command("report")(report_command)
    app.command("audit")(audit_command)


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


def audit_command(
    schema: SchemaOption,
    epsilon: EpsilonOption = None,
    method: MethodOption = ConditionalGaussian.method,
    delta: DeltaOption = None,
    rows: RowsOption = None,
    target: TargetOption = None,
    fits: Annotated[int, typer.Option("--fits", metavar="N", help="Shadow fits; more of them bound sharper.")] = 1_000,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", help="With which the lower bounds hold.")
    ] = 0.999,
    json_output: JsonOption = False,
) -> None:
    """Attack a release method, and bound its epsilon from below. Reads no record."""
    from sfumato.audit import audit

    synthesizer = make_synthesizer(method, epsilon, delta)
    known = Schema.load(schema)
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task("Shadow fits", total=fits)
        found = audit(
            synthesizer,
            known,
            target=target,
            n_public=rows,
            fits=fits,
            confidence=confidence,
            progress=lambda done: progress.update(task, completed=done),
        )
    if json_output:
        print_json(found)
    else:
        title = f"epsilon at delta = {found['delta']:.3g}; lower bounds at confidence {confidence:g}, {fits} fits"
        lines = [
            ("certified, at most", number(found["epsilon_certified"])),
            ("found by attack, at least", number(found["epsilon_lower"])),
            ("the same, for Gaussian noise", number(found["epsilon_lower_gaussian"])),
        ]
        print_table(title, ["", "epsilon"], lines)
        if found["holds"]:
            say("No attack broke the certificate. That refutes nothing, and proves nothing: the proofs do.")
    if not found["holds"]:
        raise PrivacyError(
            "The attack got more out of the method than its certificate allows. Do not use it; report it."
        )
