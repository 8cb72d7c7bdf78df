"""Commands about publishing a release: pack, export."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import OverwriteOption
from sfumato.cli.ending import last_output
from sfumato.cli.options import ReleaseArgument
from sfumato.cli.output import say
from sfumato.io.atomic import refuse_existing, refuse_inputs

if TYPE_CHECKING:
    from sfumato.publish import pack
    from sfumato.schema import documents
else:
    pack, documents = later("sfumato.publish.pack"), later("sfumato.schema.documents")


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


TitleOption = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Of the data.")]
PublisherOption = Annotated[str | None, typer.Option("--publisher", metavar="TEXT", help="Who publishes them.")]
PublisherTypeOption = Annotated[
    str | None, typer.Option("--publisher-type", metavar="T", help="Government, Industry or Nonprofit.")
]
DescriptionOption = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="What they are.")]
LicenseOption = Annotated[str | None, typer.Option("--license", metavar="ID", help="Such as CC-BY-4.0.")]
UrlOption = Annotated[str | None, typer.Option("--url", metavar="URL", help="Where they will be found.")]
DateOption = Annotated[str | None, typer.Option("--date", metavar="DAY", help="Of publication; default today.")]


def _said(**entries: str | None) -> dict[str, str]:
    return {key: value for key, value in entries.items() if value is not None}


def pack_command(
    release: ReleaseArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder to make; nothing is replaced.")],
    n: Annotated[
        int | None, typer.Option("-n", metavar="N", help="Rows to draw; default: the public number of rows.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="The same seed gives the same rows.")] = None,
    format_: Annotated[RowsFormat, typer.Option("--format", help="Of the rows of a table.")] = RowsFormat.csv,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe", help="In rows.csv: put ' before text that a spreadsheet takes for a formula."
        ),
    ] = False,
    public_key: Annotated[
        Path | None, typer.Option("--public-key", metavar="FILE", help="The key it is signed with: checked.")
    ] = None,
    title: TitleOption = None,
    publisher: PublisherOption = None,
    publisher_type: PublisherTypeOption = None,
    description: DescriptionOption = None,
    license_: LicenseOption = None,
    url: UrlOption = None,
    date: DateOption = None,
) -> None:
    """Write the folder to publish: release, rows, noisy tables, codebook, cards. Reads no record."""
    said = _said(
        title=title, publisher=publisher, publisher_type=publisher_type, description=description, license=license_,
        url=url, date=date,
    )  # fmt: skip
    formats = pack.FORMATS if format_ is RowsFormat.both else (format_.value,)
    with last_output(out):
        sfumato.pack(
            release, out, n=n, seed=seed, formats=formats, spreadsheet_safe=spreadsheet_safe, publication=said,
            public_key=public_key,
        )  # fmt: skip
    say(f"Wrote {out}: {', '.join(sorted(item.name for item in out.iterdir()))}.")
    say(f"Everything in it may be published. Next: read {out / 'README.md'}, and fill in {out / 'registry.yaml'}.")


def export_command(
    release: ReleaseArgument,
    form: Annotated[ExportForm, typer.Option("--as", help="What to write.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write it; default: standard output.")
    ] = None,
    title: TitleOption = None,
    publisher: PublisherOption = None,
    publisher_type: PublisherTypeOption = None,
    description: DescriptionOption = None,
    license_: LicenseOption = None,
    url: UrlOption = None,
    date: DateOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Describe a release for a catalogue: Croissant, Hugging Face, the registry of DP deployments."""
    if out is not None:
        refuse_inputs(out, release=release)
        refuse_existing(out, overwrite=overwrite)
    said = _said(
        title=title, publisher=publisher, publisher_type=publisher_type, description=description, license=license_,
        url=url, date=date,
    )  # fmt: skip
    text = sfumato.export(release, form.value, publication=said)
    if out is None:
        typer.echo(text, nl=False)
        return
    with last_output(out):
        documents.write_text(out, text, overwrite=overwrite)
    say(f"Wrote {out}.")
