"""Fixtures of this folder: a command line that tells what went wrong, and forgives nothing unforeseen."""

import contextlib
import functools
import io
import logging

import pytest
import typer.main

from fixtures.sampling import small_simulations
from fuzz.planted import assert_silent, handled
from sfumato.cli import app

__all__ = ["small_simulations", "speak"]


_commands = functools.cache(lambda: typer.main.get_command(app.app))


@pytest.fixture
def speak(monkeypatch, caplog):
    """Run one command; return its exit code and whatever it said: output, logs, exceptions and their contexts."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("COLUMNS", "100")
    failed = app._failed
    chains: list[str] = []

    def failing(code, problem):
        chains.append(handled())
        return failed(code, problem)

    monkeypatch.setattr(app, "_failed", failing)
    # typer builds all commands anew for every call
    monkeypatch.setattr(app, "app", _commands().main)

    def speaking(case: object, *arguments: object, private: bool = True) -> int:
        chains.clear()
        caplog.clear()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = app.run([str(argument) for argument in arguments])
        said = "\n".join([out.getvalue(), err.getvalue(), caplog.text, *chains])
        where = f"case {case}, {arguments[0]}"
        assert "unexpected error" not in said, f"{where}: {said}"
        assert "Traceback" not in said, f"{where}: {said}"
        assert code in {0, 1, 2}, f"{where}: {code}"
        assert bool(code) == ("Error: " in err.getvalue()), f"{where}: {said}"
        if private:
            assert_silent(said, where)
        return code

    return speaking
