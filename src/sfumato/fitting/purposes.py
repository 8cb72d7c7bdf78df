"""What samples of a release are for, and how images are posed: settings that families of methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final, get_args

from sfumato.errors import ConfigError, require_open_unit


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
