"""A configuration file: defaults of options, in TOML. It is public, as all settings of a fit are.

    epsilon = 1.0
    schema = "schema.yaml"

    [fit]
    ledger = "people.ledger"

    ["schema draft"]
    exact = true

An option of the call goes over the section of the command, and that over the top of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import ConfigError, did_you_mean
from sfumato.io.untrusted import UnreadableFileError, read_bounded

FILE, PROJECT = "sfumato.toml", "pyproject.toml"
_MOST_BYTES, _MOST_OF_OTHERS = 1 << 20, 1 << 26
_LONG_KEY = re.compile(rb"""(?:\.[ \t]*[\w"'-]+[ \t]*){100}""")  # time grows with the square of its parts

SHARED = (
    "schema", "epsilon", "delta", "method", "target", "rows", "ledger", "types", "input-format", "workers", "title",
    "publisher", "publisher-type", "license", "url", "key", "public-key",
)  # fmt: skip
"""Options that may stand at the top, for all commands that have them."""

NOT_IN_FILES = ("seed", "accept-draft", "overwrite", "names-are-public", "rows-are-records", "help", "new-key", "real")
"""Options that no file gives: who calls has to say them, for they change what is guaranteed, or what is lost."""


def option_defaults(command: Any, name: str, rest: list[str], path: Path | None) -> dict[str, Any]:  # noqa: ANN401
    """Return the defaults that the configuration file gives to a command, by names of its parameters.

    Args:
        command: a command, or a group of them, of typer's own copy of click.
        name: its name.
        rest: what stands after its name on the call: of a group, the command in it.
        path: the file; None looks in the working directory for `sfumato.toml`, then for `[tool.sfumato]` of
            `pyproject.toml`.

    Raises:
        ConfigError: the file cannot be read, or names what is no option.
    """
    place, content = _read(path)
    if not content:
        return {}
    inner = getattr(command, "commands", None)
    if inner is None:
        return _of_one(command, name, content, place)
    child = next((part for part in rest if part in inner), None)
    if child is None:
        return {}
    return {child: _of_one(inner[child], f"{name} {child}", content, place)}


def _of_one(command: Any, full: str, content: Mapping[str, Any], place: Path) -> dict[str, Any]:  # noqa: ANN401
    """Return the defaults of one command, and say on standard error that there are some."""
    options = {opt.removeprefix("--"): p for p in command.params for opt in p.opts if opt.startswith("--")}
    section = content.get(full, {})
    top = {key: value for key, value in content.items() if not isinstance(value, Mapping)}
    for key in top:
        if key not in SHARED:
            raise ConfigError(_unknown(key, SHARED, f"at the top of {place}"))
    for key in section:
        if key in NOT_IN_FILES:
            raise ConfigError(f"Expected --{key} on the call itself, got it in {place}. Take it out there.")
        if key not in options:
            raise ConfigError(_unknown(key, list(options), f"under [{full}] of {place}"))
    given = {key: value for key, value in {**top, **section}.items() if key in options}
    if given:
        from rich.markup import escape

        from sfumato.cli.output import notes

        notes.print(f"[yellow]Note:[/] defaults from {escape(str(place))}: {escape(', '.join(given))}.", soft_wrap=True)
    return {options[key].name: _plain(value, key, place) for key, value in given.items()}


def _plain(value: Any, key: str, place: Path) -> Any:  # noqa: ANN401 - a value of TOML
    """Return a value as the command line would take it."""
    if isinstance(value, Mapping):
        raise ConfigError(f"Expected a value for {key!r} in {place}, got a table.")
    if isinstance(value, list):
        return [str(part) for part in value]
    return value if isinstance(value, bool) else str(value)


def _read(path: Path | None) -> tuple[Path, Mapping[str, Any]]:
    """Return the file that holds the configuration, and its content."""
    if path is not None:
        return path, _sections(_parse_toml(path), path)
    if Path(FILE).is_file():
        return Path(FILE), _sections(_parse_toml(Path(FILE)), Path(FILE))
    project = Path(PROJECT)
    # files of others are none of our business
    if project.is_file() and b"tool.sfumato" in _bytes(project, _MOST_OF_OTHERS):
        tool = _parse_toml(project).get("tool")
        return project, _sections((tool or {}).get("sfumato", {}), project)
    return Path(FILE), {}


def _bytes(path: Path, most: int = _MOST_BYTES) -> bytes:
    try:
        return read_bounded(path, most)
    except UnreadableFileError as error:
        reason = str(error)
    raise ConfigError(f"Expected to read the configuration {path}, got: {reason}.")


def _parse_toml(path: Path) -> dict[str, Any]:
    import tomllib

    content = _bytes(path)
    if _LONG_KEY.search(content):
        raise ConfigError(f"Expected the configuration {path} to have short keys, got one of 100 parts.")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except RecursionError:
        reason = "nesting too deep"
    except ValueError as error:  # TOML's own errors and those of decoding are such
        reason = str(error)
    raise ConfigError(f"Expected the configuration {path} in TOML, got: {reason}.")


def _sections(content: Any, place: Path) -> Mapping[str, Any]:  # noqa: ANN401 - of a file
    """Check the names of sections, which are those of commands."""
    from sfumato.cli.example_calls import EXAMPLES

    if not isinstance(content, Mapping):
        raise ConfigError(f"Expected the configuration {place} to be a table, got another form.")
    for key, value in content.items():
        if isinstance(value, Mapping) and key not in EXAMPLES:
            raise ConfigError(_unknown(key, list(EXAMPLES), f"as a section of {place}"))
    return content


def _unknown(key: str, known: Any, where: str) -> str:  # noqa: ANN401 - several names
    return f"Expected one of {', '.join(known)} {where}, got {key!r}.{did_you_mean(key, known)}"
