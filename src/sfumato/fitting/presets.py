"""Presets: settings of a method by a name, such as those of a paper, and what the method does otherwise than the paper.

A preset is settings alone. The account is the library's, so a preset is private at the ε of its certificate, whatever
the paper's own account says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from sfumato.errors import ConfigError


@final
@dataclass(frozen=True, slots=True)
class Preset:
    """Settings by a name.

    Attributes:
        settings: arguments of the method's class, without ε and δ.
        differs: how the method with these settings differs from the paper, in one line of public text.
    """

    settings: Mapping[str, Any]
    differs: str


def find_preset(presets: Mapping[str, Preset], name: str, method: str) -> Preset:
    """Return a preset by its name.

    Raises:
        ConfigError: the method has none of that name.
    """
    if not presets:
        raise ConfigError(f"Expected no preset for the method {method}, which has none. Leave it out.")
    if name not in presets:
        raise ConfigError(
            f"Expected the preset of the method {method} to be one of {', '.join(presets)}, got {name!r}."
        )
    return presets[name]


def preset_of(presets: Mapping[str, Preset], settings: Mapping[str, Any]) -> str | None:
    """Return the line of the preset whose settings these are, its name first; None if they are of none."""
    for name, preset in presets.items():
        if all(settings[key] == value for key, value in preset.settings.items()):
            return f"{name}: {preset.differs}"
    return None
