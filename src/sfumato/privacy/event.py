"""Noise and bounds of a mechanism's next release, and the event that follows, which a ledger compares with its plan.

    σ = (Σ_b (B_b/s_b)²)^(-1/2),   replace distance = σ (Σ_b (R_b/s_b)²)^(1/2)

of normal noise of standard deviation s_b in part b of a release, of whose contributions B_b bounds the norm and R_b the
distance: in units of the noise the parts are one vector, and one Gaussian event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

from sfumato.errors import LedgerError
from sfumato.privacy.plan import Subset


class StatedBounds(Protocol):
    """An exact statistic, as far as its event goes: what one unit contributes, and how its records were chosen."""

    norm_bound: float
    replace_distance: float
    sampling_probability: float | None


@final
@dataclass(frozen=True, slots=True)
class Noised:
    """One part of a release, and the noise to be drawn for it; all in data units.

    Attributes:
        noise_std: standard deviation of the noise.
        norm_bound: largest ℓ2 norm of what one unit contributes.
        replace_bound: largest ℓ2 distance between two units' contributions.
    """

    noise_std: float
    norm_bound: float
    replace_bound: float

    def __post_init__(self) -> None:
        if not all(0 < number < math.inf for number in (self.noise_std, self.norm_bound, self.replace_bound)):
            raise LedgerError("Expected noise and bounds above 0 in every part of a release. This is a bug.")


@final
@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Normal noise on a statistic. The noise that is drawn is that of `parts`, and of no other object.

    Attributes:
        parts: what is released, and its noise.
        sampling_probability: of the Poisson sample that the statistic is of; None for one of all units.
        subset: the subset without replacement that it is of; None without.
        count: how many such releases are charged at once.
        extra_delta: δ spent outside the event, for all events of the stage.
    """

    parts: tuple[Noised, ...]
    sampling_probability: float | None = None
    subset: Subset | None = None
    count: int = 1
    extra_delta: float = 0.0

    @classmethod
    def of(cls, statistic: StatedBounds, noise_std: float, *, extra_delta: float = 0.0) -> GaussianEvent:
        """Return the event of noise on an exact statistic, whose bounds are the statistic's own."""
        bound = statistic.norm_bound
        part = Noised(noise_std, bound, bound * statistic.replace_distance)
        return cls((part,), statistic.sampling_probability, extra_delta=extra_delta)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise of a release of one part."""
        (part,) = self.parts
        return part.noise_std

    @property
    def noise_multiplier(self) -> float:
        """σ: noise ÷ largest contribution of one unit."""
        return 1 / math.hypot(*(part.norm_bound / part.noise_std for part in self.parts))

    @property
    def replace_distance(self) -> float:
        """Largest distance between two units' contributions ÷ largest contribution of one."""
        return self.noise_multiplier * math.hypot(*(part.replace_bound / part.noise_std for part in self.parts))
