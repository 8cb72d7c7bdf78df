"""Settings of methods as the command line takes them: `--set KEY=VALUE`, `--set FILE`, and their list."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._lazy import later
from sfumato.errors import ConfigError
from sfumato.methods import registry
from sfumato.privacy.budget import NonPrivate
from sfumato.schema import documents

if TYPE_CHECKING:
    from sfumato.cli import setting_types
    from sfumato.cli.setting_types import Flat, Setting
    from sfumato.fitting import purposes, synthesizer
    from sfumato.fitting.purposes import Preset
    from sfumato.fitting.synthesizer import Synthesizer
else:
    setting_types, purposes = later("sfumato.cli.setting_types"), later("sfumato.fitting.purposes")
    synthesizer = later("sfumato.fitting.synthesizer")

_PRESET = "preset"  # a name of several settings, which no method has for one of its own
_KIND = "kind"  # in a file: which type a setting is, beside that type's own settings


def settings_file(entries: Sequence[str] | None) -> Path | None:
    """Return the file among the entries of `--set`: the one without a `=`.

    Raises:
        ConfigError: there are several, or it is not there.
    """
    paths = [entry for entry in entries or () if "=" not in entry]
    if len(paths) > 1 or not all(map(os.path.exists, paths)):
        raise ConfigError(f"Expected --set KEY=VALUE, or one file of settings, got {' and '.join(map(repr, paths))}.")
    return Path(paths[0]) if paths else None


def flat_settings(entries: Sequence[str] | None) -> dict[str, Any]:
    """Return the settings of `--set` by dotted names.

    Raises:
        ConfigError: an entry of another form, or a setting given twice.
        SchemaError: a file that cannot be read.
    """
    settings: dict[str, Any] = {}
    path = settings_file(entries)
    if path is not None:
        content = documents.read_document(path)
        if not isinstance(content, dict):
            raise ConfigError(f"Expected {path} to hold a mapping, setting: value, got another form.")
        settings = flatten(content)
    for key, equals, text in (entry.partition("=") for entry in entries or ()):
        if equals and not (key.strip() and text.strip()):
            raise ConfigError(f"Expected --set KEY=VALUE, got {key + equals + text!r}.")
        if equals:
            add(settings, setting_name(key), text.strip())
    return settings


def setting_name(key: object) -> str:
    """Return a setting's name as Python has it: `level-groups` is `level_groups`."""
    return str(key).strip().replace("-", "_")


def flatten(content: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a file's mapping by dotted names: `prior: {kind: mixture, n_components: 5}` is two settings."""
    settings: dict[str, Any] = {}
    for key, value in content.items():
        name = setting_name(key)
        if not isinstance(value, dict):
            add(settings, name, value)
            continue
        for inner, given in flatten(value).items():
            add(settings, name if inner == _KIND else f"{name}.{inner}", given)
    return settings


def add(settings: dict[str, Any], name: str, value: object) -> None:
    """Add a setting that is not there yet.

    Raises:
        ConfigError: it is.
    """
    if name in settings:
        raise ConfigError(f"Expected each setting once, got {name!r} twice. Give it in one place.")
    settings[name] = value


def make_method(method: str, epsilon: float | None, delta: float | None, flat: Flat) -> Synthesizer:
    """Return a method with settings by name.

    Args:
        method: its name.
        epsilon: ε; None for a method without noise.
        delta: δ, or None for the default.
        flat: settings by dotted names, of their types or as text. They go over those of the preset that `preset` names.

    Raises:
        ConfigError: no such method or preset, a name that is no setting of it, a value that it cannot have, or an ε too
            many or too few.
    """
    chosen = registry.find_method(method)
    flat = dict(flat)
    preset = flat.pop(_PRESET, None)
    base = {} if preset is None else dict(purposes.find_preset(presets_of(method), str(preset), method).settings)
    inner = _inside_preset(base, flat)
    plain = {name: value for name, value in flat.items() if name not in inner}
    what = f"the method {method}"
    read = setting_types.read_settings(chosen.make, plain, what)
    for name in inner:
        first, _, rest = name.partition(".")
        base[first] = replace(
            base[first], **setting_types.read_settings(type(base[first]), {rest: flat[name]}, what, f"{first}.")
        )
    if chosen.private and epsilon is None:
        raise ConfigError(f"Expected --epsilon for the method {method}, got none. Add it, such as --epsilon 1.")
    if not chosen.private and epsilon is not None:
        raise ConfigError(f"Expected no --epsilon for the method {method}, which has no noise, got {epsilon:g}.")
    return chosen.make(epsilon=NonPrivate() if epsilon is None else epsilon, delta=delta, **{**base, **read})


def presets_of(method: str) -> Mapping[str, Preset]:
    """Return the presets of a method by its name; those of other packages' classes too."""
    make = registry.find_method(method).make
    return make.presets() if isinstance(make, type) and issubclass(make, synthesizer.Synthesizer) else {}


def _inside_preset(base: Mapping[str, Any], given: Flat) -> list[str]:
    """Return which settings change a part of what the preset has: dotted, and their type is not given anew."""
    parts = [name.partition(".") for name in given]
    return [
        first + dot + rest for first, dot, rest in parts if dot and is_dataclass(base.get(first)) and first not in given
    ]


def describe_settings(method: str) -> list[dict[str, Any]]:
    """Return the settings that a method has: `name`, `type`, `default`, `required`, `with` and `about`."""
    return list(_setting_lines(setting_types.settings_of(registry.find_method(method).make), "", None))


def _setting_lines(known: Mapping[str, Setting], before: str, beside: str | None) -> Iterable[dict[str, Any]]:
    for name, setting in known.items():
        full = before + name
        yield {
            "name": full, "type": setting.form, "default": setting.plain_default, "required": setting.required,
            "with": beside, "about": setting.about,
        }  # fmt: skip
        for word, type_ in setting.types.items():
            yield from _setting_lines(setting_types.settings_of(type_), f"{full}.", f"{full}={word}")


def plain_text(value: object) -> str:
    """Return a default as `--set` would take it."""
    if isinstance(value, list):
        return ",".join(f"{part:.6g}" for part in value)
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
