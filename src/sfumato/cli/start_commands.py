"""Commands to begin with: the demonstration, the studio, and the list of methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.output import notes, print_cost, print_json, print_scores, print_table, say
from sfumato.cli.settings import describe_settings, plain_text, presets_of
from sfumato.extras import require_extra
from sfumato.methods import registry

if TYPE_CHECKING:
    from sfumato import studio
    from sfumato.privacy import certificate as certificates
else:
    studio, certificates = later("sfumato.studio"), later("sfumato.privacy.certificate")


def methods_command(
    method: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A method, to show its settings.", show_default=False)
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """List the methods that `fit` knows, or what can be set of one."""
    if method is not None:
        _show_settings(method, json_output)
    elif json_output:
        print_json([{"method": name, "about": entry.about} for name, entry in registry.METHODS.items()])
    else:
        lines = ((name, entry.about) for name, entry in registry.METHODS.items())
        print_table("Methods", ["method", "what it is"], lines)


def _show_settings(method: str, json_output: bool) -> None:
    about, settings = registry.find_method(method).about, describe_settings(method)
    presets = [{"preset": name, "differs": preset.differs} for name, preset in presets_of(method).items()]
    if json_output:
        print_json({"method": method, "about": about, "settings": settings, "presets": presets})
        return
    say(f"{method}: {about}")
    for entry in presets:
        say(f"--set preset={entry['preset']}: {entry['differs']}")
    if not settings:
        say("It has no settings.")
        return
    rows = (
        (
            entry["name"],
            entry["type"],
            "to be given" if entry["required"] else plain_text(entry["default"]),
            entry["about"] if entry["with"] is None else f"With {entry['with']}: {entry['about']}",
        )
        for entry in settings
    )
    print_table(
        "Settings, for --set KEY=VALUE or a file", ["setting", "type", "default", "what it is"], rows, whole=True
    )


def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the release and the rows.")] = Path("demo"),
    epsilon: Annotated[
        float, typer.Option(metavar="E", help="The privacy budget epsilon. Smaller is more private.")
    ] = 1.0,
    open_: Annotated[bool, typer.Option("--open", help="Open the page about the release in a browser.")] = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Release a real table end to end, and score it: the RAND Health Insurance Experiment."""

    def show(title: str, content: Any) -> None:  # noqa: ANN401
        say()
        notes.rule(title) if notes.is_terminal else say(f"== {title}")
        if isinstance(content, str):
            say(content)
        elif isinstance(content, sfumato.demo.Lines):
            print_table("", *content)
        elif isinstance(content, certificates.Description):
            print_cost(content)
        else:
            print_scores(content)

    page = sfumato.demo.run_demo(out, epsilon=epsilon, overwrite=overwrite, show=show).resolve()
    say(f"Look at it: {page.as_uri()}")
    if open_:
        typer.launch(str(page))


def studio_command(
    data: Annotated[str | None, typer.Argument(metavar="[DATA]", help="A table on this machine.")] = None,
    folder: Annotated[Path, typer.Option(metavar="DIR", help="The folder for schema, release and report.")] = Path(
        "studio"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0: any free one.")] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Make a release step by step in your browser. Everything stays on this machine."""
    require_extra("studio", "show the studio")

    def opened(url: str) -> None:
        say(f"Open {url}")
        say("The address is a secret. Ctrl-C ends the studio; a fit at work is ended first.")
        if open_:
            typer.launch(url)

    studio.serve(studio.StudioSession(folder, data), port, opened=opened)
