"""Commands about publishing a release: publish pack, export, sign, combine."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.ending import last_output
from sfumato.cli.option_groups import grouped
from sfumato.cli.options import NumberOption, ReleaseArgument, RowsSeedOption, command_group
from sfumato.cli.output import print_json, say
from sfumato.cli.progress import working
from sfumato.errors import ConfigError
from sfumato.io.atomic import refuse_existing, refuse_inputs
from sfumato.schema import documents

if TYPE_CHECKING:
    from sfumato.publish import pack
    from sfumato.release import files
    from sfumato.release import signature as signatures
else:
    pack, files = later("sfumato.publish.pack"), later("sfumato.release.files")
    signatures = later("sfumato.release.signature")

publish_app = command_group()


def combine_command(
    releases: Annotated[
        list[Path], typer.Argument(metavar="RELEASE...", help="At least two releases, each of other people.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="A .sfm file.")],
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="Your word that no person is in two of the releases. Required.")
    ] = False,
    overwrite: OverwriteOption = False,
    json_output: JsonOption = False,
) -> None:
    """Put releases of disjoint people under one schema together: one release of them all, at the largest epsilon."""
    files.require_archive(out)
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


def combined_at(path: Path, **options: object) -> sfumato.CombinedRelease | None:
    """Return the combined release at a path; None where another or none is there.

    Args:
        path: of a release.
        options: by their names on the command line, those that a combined release does not take.

    Raises:
        ConfigError: one of them is given.
        ReleaseError: it is damaged.
    """
    if not files.is_combination(path):
        return None
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise ConfigError(f"Expected no {given[0]} for a combined release, got one. Ask one of its parts: unzip it.")
    return sfumato.CombinedRelease.load(path)


def show_if_combined(combined: sfumato.CombinedRelease | None, *, json_output: bool) -> None:
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


publish_app.command("combine")(combine_command)


class RowsFormat(StrEnum):
    """Formats of rows in a folder to publish."""

    csv = "csv"
    parquet = "parquet"
    both = "both"


class ExportForm(StrEnum):
    """Descriptions of a release that others read."""

    croissant = "croissant"
    huggingface = "huggingface"
    registry = "registry"
    datacard = "datacard"
    schema = "schema"
    certificate = "certificate"


@dataclass(frozen=True, kw_only=True)
class PublicationOptions:
    """Who publishes what, for catalogues."""

    PANEL: ClassVar[str] = "What catalogues say"

    title: Annotated[str | None, typer.Option(metavar="TEXT", help="The title of the data.")] = None
    publisher: Annotated[str | None, typer.Option(metavar="TEXT", help="Who publishes the data.")] = None
    publisher_type: Annotated[
        str | None, typer.Option(metavar="T", help="The kind of publisher: Government, Industry or Nonprofit.")
    ] = None
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What the data are.")] = None
    license_: Annotated[str | None, typer.Option("--license", metavar="ID", help="The licence, such as CC-BY-4.0.")] = (
        None
    )
    url: Annotated[str | None, typer.Option(metavar="URL", help="Where the data will be found.")] = None
    date: Annotated[str | None, typer.Option(metavar="DAY", help="The day of publication. Default: today.")] = None

    def entries(self) -> dict[str, str]:
        """Those that are given."""
        given = {entry.name.rstrip("_"): getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in given.items() if value is not None}


@publish_app.command("pack")
@grouped
def pack_command(
    release: ReleaseArgument,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to make; nothing is replaced.")],
    n: NumberOption = None,
    seed: RowsSeedOption = None,
    format_: Annotated[
        RowsFormat, typer.Option("--format", help="The format of the rows of a table.")
    ] = RowsFormat.csv,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe", help="In rows.csv: put ' before text that a spreadsheet takes for a formula."
        ),
    ] = False,
    public_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The signer's public key: the signature is checked.")
    ] = None,
    *,
    publication: PublicationOptions,
    json_output: JsonOption = False,
) -> None:
    """Write the folder to publish: release, rows, noisy tables, codebook, cards. Reads no record."""
    formats = pack.FORMATS if format_ is RowsFormat.both else (format_.value,)
    with last_output(out), working("Making rows, page and tables…"):
        sfumato.pack(
            release, out, n=n, seed=seed, formats=formats, spreadsheet_safe=spreadsheet_safe,
            publication=publication.entries(), public_key=public_key,
        )  # fmt: skip
    names = sorted(item.name for item in out.iterdir())
    if json_output:
        print_json({"written": str(out), "files": names})
        return
    say(f"Wrote {out}: {', '.join(names)}.")
    say(f"Everything in it may be published. Next: read {out / 'README.md'}, and fill in {out / 'registry.yaml'}.")


@publish_app.command("export")
@grouped
def export_command(
    release: ReleaseArgument,
    form: Annotated[ExportForm, typer.Option("--as", help="The form to write.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it; default: standard output.")
    ] = None,
    *,
    publication: PublicationOptions,
    overwrite: OverwriteOption = False,
) -> None:
    """Describe a release for a catalogue: Croissant, Hugging Face, the registry of DP deployments."""
    if out is not None:
        refuse_inputs(out, release=release)
        refuse_existing(out, overwrite=overwrite)
    text = sfumato.export(release, form.value, publication=publication.entries())
    if out is None:
        typer.echo(text, nl=False)
        return
    with last_output(out):
        documents.write_text(out, text, overwrite=overwrite)
    say(f"Wrote {out}.")


@publish_app.command("sign")
def sign_command(
    release: Annotated[
        Path | None, typer.Argument(metavar="[RELEASE]", help="A directory or a .sfm file.", show_default=False)
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An Ed25519 private key, PEM without a password.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The signature to write; default: RELEASE.sig.")
    ] = None,
    new: Annotated[
        Path | None,
        typer.Option("--new-key", metavar="FILE", help="Make a private key, and FILE.pub, instead of signing."),
    ] = None,
    overwrite: OverwriteOption = False,
    json_output: JsonOption = False,
) -> None:
    """Sign a release, in a file beside it; or make a key."""
    if new is not None:
        if release is not None or key is not None or out is not None:
            raise ConfigError("Expected --new-key alone, got others beside it. Sign in another call.")
        with last_output(signatures.public_path(new)):
            fingerprint = sfumato.new_key(new)
        public = signatures.public_path(new)
        if json_output:
            print_json({"written": str(new), "public_key": str(public), "key": fingerprint})
        else:
            say(f"Wrote {new}, which is secret, and {public}, to hand out. The key is {fingerprint}.")
        return
    if release is None or key is None:
        raise ConfigError("Expected a release and --key FILE, or --new-key FILE. See `sfumato publish sign -h`.")
    place = signatures.signature_path(release) if out is None else out
    refuse_inputs(place, release=release, key=key)
    with last_output(place):
        fingerprint = sfumato.sign_release(release, key, place, overwrite=overwrite)
    if json_output:
        print_json({"written": str(place), "key": fingerprint})
    else:
        say(f"Wrote {place}: {release} as it is, signed with the key {fingerprint}.")
