"""The commands, and how their errors become exit codes."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.commands import LazyCommands
from sfumato.cli.ending import Ending
from sfumato.errors import ConfigError, NotAcceptedError, OutputError, SchemaError, SfumatoError

DONE, FAILED, WRONG_CALL, NOT_ACCEPTED = 0, 1, 2, 3

# newer versions of typer carry a copy of click of their own, so click's classes are not what they raise
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
_OUT_OF_MEMORY = "Out of memory. Nothing half-written was left behind."
_UNMAPPED = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")  # what a loader says of it
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_INTERRUPTED = 130  # what typer makes of Ctrl-C
_NO_LISTENER = -2  # standard output takes no more: that alone undoes no output

app = typer.Typer(
    name="sfumato",
    cls=LazyCommands,
    help="Synthetic data about people, under differential privacy, with a certificate of what it cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Defaults of options, in TOML; else sfumato.toml here, or \\[tool.sfumato] of pyproject.toml.",
        ),
    ] = None,  # read before the command is called: `LazyCommands`
) -> None:
    if version:
        from sfumato import __version__

        typer.echo(f"sfumato {__version__}")
        raise typer.Exit(DONE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code: the end of this process, so Ctrl-C has no effect after an output.

    Before numpy is loaded its linear algebra is kept to one thread, unless the caller says otherwise: products here are
    mostly small, and threads that wait for each other beside a busy neighbour took eight minutes for one.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show is no failure
            stream.reconfigure(errors="backslashreplace")
    with Ending(of_process=True) as ending:
        code = _run(arguments, ending)
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 wrong call, 3 nothing met its criteria."""
    with Ending() as ending:
        return _run(arguments, ending)


def _run(arguments: Sequence[str] | None, ending: Ending) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        code, problem = _outcome(arguments)
    is_mute, code = code == _NO_LISTENER, WRONG_CALL if code == _NO_LISTENER else code
    if ending.output is None:
        if problem:
            _tell("[bold red]Error:[/]", problem)
        return code
    has_failed = bool(problem) and not is_mute
    charged = "" if ending.ledger is None else f", and the ledger {ending.ledger} is charged for it"
    message = ""
    if problem:
        message = f"{ending.output} was written and is complete{charged}. Showing the result failed: {problem}"
    elif ending.interrupted:
        message = f"Interrupted after {ending.output} was written: it is complete{charged}."
    if message:
        with contextlib.suppress(OSError, SystemExit):  # standard error is gone too
            _tell("[bold red]Error:[/]" if has_failed else "[yellow]Note:[/]", message)
    return code if has_failed else DONE


def _outcome(arguments: Sequence[str] | None) -> tuple[int, str]:
    """Run the command line; return its exit code and what went wrong."""
    try:
        code = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code, ""
    except SystemExit as leave:  # nobody reads standard output any more
        return (leave.code if isinstance(leave.code, int) else FAILED), ""
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except _UsageError as error:
        # without arguments typer has shown the help already, and its error says nothing
        message = " ".join(getattr(error, "format_message", error.__str__)().split())
        end = "" if message.endswith((".", "?")) else "."
        call: Any = getattr(error, "ctx", None)
        words = "" if call is None else call.command_path.removeprefix(call.find_root().command_path)
        return _failed(WRONG_CALL, f"{message}{end} See `sfumato{words} --help`." if message else "")
    except SfumatoError as error:
        return _failed(_code_of(error), str(error))
    except MemoryError:
        return _failed(FAILED, _OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001 - a traceback could show a record
        return _unexpected(error)
    if code == _INTERRUPTED:
        return FAILED, "Interrupted. What was not finished has not been written."
    return (code if isinstance(code, int) else DONE), ""


def _code_of(error: SfumatoError) -> int:
    if isinstance(error, ConfigError | SchemaError | OutputError):
        return WRONG_CALL
    return NOT_ACCEPTED if isinstance(error, NotAcceptedError) else FAILED


def _unexpected(error: Exception) -> tuple[int, str]:
    if isinstance(error, ImportError) and any(text in str(error) for text in _UNMAPPED):
        return _failed(FAILED, _OUT_OF_MEMORY)
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        return _failed(_NO_LISTENER, f"Cannot write to standard output: {os.strerror(error.errno)}.")
    return _failed(
        FAILED,
        f"An unexpected error ({type(error).__name__}); its text is withheld because it could show a record. Please "
        "report how to reproduce it.",
    )


def _failed(code: int, problem: str) -> tuple[int, str]:
    """Return how a call ends, while its exception is still being handled."""
    return code, problem


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Show our own warnings in one line. Those of libraries are dropped: that one came at all can tell of a record."""
    if category.__module__.startswith("sfumato"):
        _tell("[yellow]Note:[/]", str(message))


def _tell(what: str, text: str) -> None:
    """Print a note to standard error; `text` is literal."""
    from rich.markup import escape

    from sfumato.cli.output import notes

    notes.print(f"{what} {escape(text)}", soft_wrap=True)
