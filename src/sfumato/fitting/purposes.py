"""What samples of a release are for, and how images are posed: settings that families of methods share.

A preset is settings alone. The account is the library's, so a preset is private at the ε of its certificate, whatever
the paper's own account says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final, get_args

from sfumato.columns.sets import ItemSet
from sfumato.errors import ConfigError, require_open_unit
from sfumato.lenses.chain import plain_schema
from sfumato.schema.schema import Schema


@final
@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a plan may depend on: the data's description, and nothing that was read off the records.

    Attributes:
        schema: columns and unit, as they are modelled, of the plain table.
        described: the schema as it was declared.
        target: column whose classes are modelled apart; None for one class.
        n_public: the public number of rows; None where it is going to be measured.

    Example:
        >>> from sfumato import Schema
        >>> from sfumato.columns import Boolean
        >>> from sfumato.plugins import Facts
        >>> Facts(Schema(columns={"member": Boolean()}), None, 1000).rows
        1000
    """

    schema: Schema
    target: str | None
    n_public: int | None

    described: Schema = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "described", self.schema)
        object.__setattr__(self, "schema", plain_schema(self.schema))

    @property
    def class_column(self) -> str | None:
        """The column that all others are counted by: the areas, or else the target."""
        return next(iter(self.schema.areas), self.target)

    @property
    def rows(self) -> int:
        """The public number of rows, where a plan cannot do without: for methods of `needs_declared_rows`."""
        assert self.n_public is not None
        return self.n_public

    @property
    def unit_rows(self) -> int:
        """How many times a record's contribution a unit's may be: its most rows, or 1 where these are one record."""
        unit = self.schema.unit
        return 1 if unit is None or unit.linked else unit.max_rows

    @property
    def sets(self) -> list[str]:
        """Released columns of sets."""
        return list(self.schema.of_kind(ItemSet))


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


@final
@dataclass(frozen=True, slots=True)
class Fidelity:
    """Samples look and count like the records."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Samples teach a classifier.

    Images are varied beyond the records, and only those are kept that a privately trained classifier labels as the
    model does: samples carry what that classifier learned from the records, which others call distillation.
    Tables are the same as for `Fidelity`: nothing that was tried taught a classifier better.

    Attributes:
        teacher_share: part of the squared budget that trains the classifier, in (0, 1).
        spread: factor of the Gaussian's standard deviations, in [0, 4].
        elastic: smooth distortion in pixels of a picture of 28 × 28, in [0, 4].
        jitter: noise on poses, where images are posed, in [0, 4].
    """

    teacher_share: float = 0.25
    spread: float = 1.2
    elastic: float = 1.0
    jitter: float = 1.2

    def __post_init__(self) -> None:
        require_open_unit(teacher_share=self.teacher_share)
        for name in ("spread", "elastic", "jitter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 4:
                raise ConfigError(f"Expected {name} between 0 and 4, got {name}={value!r}.")


Purpose: TypeAlias = Fidelity | Training
Pose: TypeAlias = Literal["auto", "affine", "none"]
POSES: tuple[Pose, ...] = get_args(Pose)
