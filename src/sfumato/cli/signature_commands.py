"""Commands about signatures of releases: sign, verify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import OverwriteOption
from sfumato.cli.ending import last_output
from sfumato.cli.options import ReleaseArgument
from sfumato.cli.output import say
from sfumato.errors import ConfigError
from sfumato.io.atomic import refuse_inputs

if TYPE_CHECKING:
    from sfumato.release import signature as signatures
else:
    signatures = later("sfumato.release.signature")


def sign_command(
    release: Annotated[
        Path | None, typer.Argument(metavar="[RELEASE]", help="A directory or a .sfm file.", show_default=False)
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="An Ed25519 private key, PEM without a password.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The signature to write; default: RELEASE.sig.")
    ] = None,
    new: Annotated[
        Path | None,
        typer.Option("--new-key", metavar="FILE", help="Make a private key, and FILE.pub, instead of signing."),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Sign a release, in a file beside it; or make a key."""
    if new is not None:
        if release is not None or key is not None or out is not None:
            raise ConfigError("Expected --new-key alone, got others beside it. Sign in another call.")
        with last_output(signatures.public_path(new)):
            fingerprint = sfumato.new_key(new)
        say(f"Wrote {new}, which is secret, and {signatures.public_path(new)}, to hand out. The key is {fingerprint}.")
        return
    if release is None or key is None:
        raise ConfigError("Expected a release and --key FILE, or --new-key FILE. `sfumato sign -h` describes them.")
    place = signatures.signature_path(release) if out is None else out
    refuse_inputs(place, release=release, key=key)
    with last_output(place):
        fingerprint = sfumato.sign_release(release, key, place, overwrite=overwrite)
    say(f"Wrote {place}: {release} as it is, signed with the key {fingerprint}.")


def verify_command(
    release: ReleaseArgument,
    public_key: Annotated[
        Path, typer.Option("--public-key", metavar="FILE", help="The signer's Ed25519 public key, PEM.")
    ],
    signature: Annotated[
        Path | None, typer.Option("--signature", metavar="FILE", help="The signature; default: RELEASE.sig.")
    ] = None,
) -> None:
    """Check who signed a release, and that it is as it was signed."""
    fingerprint = sfumato.verify_release(release, public_key, signature)
    say(f"The signature holds: {release} is as it was signed with the key {fingerprint}.")
