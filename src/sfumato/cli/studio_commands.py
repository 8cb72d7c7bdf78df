"""The command `studio`: a local page from a table to a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato._lazy import later
from sfumato.cli.output import say
from sfumato.extras import require_extra

if TYPE_CHECKING:
    from sfumato import studio
else:
    studio = later("sfumato.studio")


def studio_command(
    data: Annotated[str | None, typer.Argument(metavar="[DATA]", help="A table on this machine.")] = None,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where schema, release and report are written.")
    ] = Path("studio"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0: any free port.")] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Lead from a table to a release on a page in your browser, on this machine alone."""
    require_extra("studio", "show the studio")

    def opened(url: str) -> None:
        say(f"Open {url}")
        say("The address is a secret. Ctrl-C ends the studio; a fit at work is ended first.")
        if open_:
            typer.launch(url)

    studio.serve(studio.Session(folder, data), port, opened=opened)
