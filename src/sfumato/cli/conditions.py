"""Reading `COL=VALUE`, `LABEL=N` and `COL=KIND` from the command line."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.columns.given import text_or_missing
from sfumato.errors import ConfigError
from sfumato.schema.schema import Schema


def given_values(texts: Sequence[str] | None, schema: Schema) -> dict[str, str | None]:
    """Read `--given COL=VALUE`. A column's name may hold `=`; one of the schema's tokens for missing is None."""
    found: dict[str, str | None] = {}
    for text in texts or ():
        splits = [(text[:i], text[i + 1 :]) for i, letter in enumerate(text) if letter == "="]
        if not splits:
            raise ConfigError(f"Expected --given COL=VALUE, got --given {text!r}.")
        name, value = next((split for split in splits if split[0] in schema.released), splits[0])
        if name in found:
            raise ConfigError(f"Expected --given once per column, got {name!r} twice.")
        known = name in schema.released
        found[name] = text_or_missing(schema.columns[name], value, schema.missing) if known else value
    return found


def class_counts(texts: Sequence[str] | None) -> dict[str, int] | None:
    """Read `--class-count LABEL=N`; None without any."""
    if not texts:
        return None
    found: dict[str, int] = {}
    for text in texts:
        label, equals, count = text.rpartition("=")
        if not equals or not (count.isascii() and count.isdigit()):
            raise ConfigError(f"Expected --class-count LABEL=N with a whole N of at least 0, got {text!r}.")
        if label in found:
            raise ConfigError(f"Expected --class-count once per label, got {label!r} twice.")
        found[label] = int(count)
    return found


def column_kinds(text: str | None) -> dict[str, str]:
    """Read `--kinds COL=KIND,COL=KIND`; nothing without any."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, kind = part.rpartition("=")
        if not equals or not name:
            raise ConfigError(f"Expected --kinds COL=KIND,COL=KIND, got {part!r}.")
        if name in found:
            raise ConfigError(f"Expected --kinds once per column, got {name!r} twice.")
        found[name] = kind
    return found
