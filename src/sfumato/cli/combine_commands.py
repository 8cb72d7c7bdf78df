"""The command that puts releases of disjoint people together, and what others do with the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.ending import last_output
from sfumato.cli.output import print_json, say
from sfumato.cli.outputs import tell_sampled
from sfumato.errors import ConfigError
from sfumato.io.atomic import refuse_existing, refuse_inputs

if TYPE_CHECKING:
    from sfumato.cli.outputs import Write
    from sfumato.combined_release import CombinedRelease
    from sfumato.release import combination
else:
    combination = later("sfumato.release.combination")


def combine_command(
    releases: Annotated[
        list[Path], typer.Argument(metavar="RELEASE...", help="At least two releases, each of other people.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A .sfm file.")],
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="Your word that no person is in two of the releases. Required.")
    ] = False,
    overwrite: OverwriteOption = False,
    json_output: JsonOption = False,
) -> None:
    """Put releases of disjoint people under one schema together: one release of them all, at the largest epsilon."""
    combination.require_archive(out)
    for place, release in enumerate(releases, 1):
        refuse_inputs(out, **{f"release {place}": release})
    refuse_existing(out, overwrite=overwrite)
    combined = sfumato.combine_releases(releases, disjoint=disjoint)
    with last_output(out):
        combined.save(out, overwrite=overwrite)
    if json_output:
        print_json({"written": str(out), **combined.certificate.to_dict()})
        return
    say(combined.certificate.summary())
    say(f"Wrote {out}. Next: sfumato sample {out} -n 1000 --out synthetic.csv")


def combined_at(path: Path, **options: object) -> CombinedRelease | None:
    """Return the combined release at a path; None where another or none is there.

    Args:
        path: of a release.
        options: by their names on the command line, those that a combined release does not take.

    Raises:
        ConfigError: one of them is given.
        ReleaseError: it is damaged.
    """
    if not combination.is_combination(path):
        return None
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise ConfigError(f"Expected no {given[0]} for a combined release, got one. Ask one of its parts: unzip it.")
    return sfumato.CombinedRelease.load(path)


def sample_combined(
    combined: CombinedRelease, write: Write, name: str, release: Path, n: int | None, seed: int | None, workers: int
) -> None:
    """Write a sample of a combined release."""
    batches = combined.batches(n, seed=seed, workers=workers)
    write(batches, combined.parts[0].form.keys, combined.schema.csv_output)
    tell_sampled(name, release, report=False)


def show_if_combined(combined: CombinedRelease | None, *, json_output: bool) -> None:
    """Of a combined release, check what its parts cost against their events, show it, and end the command.

    Raises:
        ReleaseError: the events of a part cost more than it states.
    """
    if combined is None:
        return
    combined.certificate.verify()
    if json_output:
        print_json(combined.certificate.to_dict())
        raise typer.Exit
    say(combined.certificate.summary())
    say(
        "The costs of all parts were computed again from their events. `unzip` gives the parts back, each with its own."
    )
    raise typer.Exit
