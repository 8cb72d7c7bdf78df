"""The commands, and how their errors become exit codes."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence

import typer
from rich.markup import escape

from sfumato import __version__
from sfumato.cli import data_commands, ledger_commands, quality_commands, release_commands, search_commands
from sfumato.cli.output import notes
from sfumato.errors import ConfigError, OutputError, SchemaError, SfumatoError

DONE, FAILED, WRONG_CALL = 0, 1, 2

# newer versions of typer carry a copy of click of their own, so click's classes are not what they raise
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_INTERRUPTED = 130  # what typer makes of Ctrl-C

app = typer.Typer(
    name="sfumato",
    help="Publish data about people without publishing the people: synthetic data under differential privacy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_commands.register(app)
release_commands.register(app)
search_commands.register(app)
quality_commands.register(app)
ledger_commands.register(app)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit(DONE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show is no failure
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 the work failed, 2 the call was wrong."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except _UsageError as error:
        # without arguments typer has shown the help already, and its error says nothing
        said = getattr(error, "format_message", error.__str__)()
        end = "" if said.endswith((".", "?")) else "."
        return _fail(f"{said}{end} See `sfumato --help`.", WRONG_CALL) if said else WRONG_CALL
    except (ConfigError, SchemaError, OutputError) as error:
        return _fail(str(error), WRONG_CALL)
    except SfumatoError as error:
        return _fail(str(error), FAILED)
    except MemoryError:
        return _fail("Out of memory. Nothing half-written was left behind.", FAILED)
    except Exception as error:  # noqa: BLE001 - a traceback could show a record
        return _fail_unexpectedly(error)
    if code == _INTERRUPTED:
        return _fail("Interrupted. What was not finished has not been written.", FAILED)
    return code if isinstance(code, int) else DONE


def _fail_unexpectedly(error: Exception) -> int:
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        return _fail(f"Cannot write to standard output: {os.strerror(error.errno)}.", WRONG_CALL)
    return _fail(
        f"An unexpected error ({type(error).__name__}); its text is withheld because it could show a record. Please "
        "report how to reproduce it.",
        FAILED,
    )


def _fail(message: str, code: int) -> int:
    notes.print(f"[bold red]Error:[/] {escape(message)}", soft_wrap=True)
    return code


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Show our own warnings in one line. Those of libraries are dropped: that one came at all can tell of a record."""
    if category.__module__.startswith("sfumato"):
        notes.print(f"[yellow]Note:[/] {escape(str(message))}", soft_wrap=True)
