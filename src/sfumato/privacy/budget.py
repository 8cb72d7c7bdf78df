"""How much privacy loss a release may cost: (ε, δ), chosen before any record is read."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from sfumato.errors import ConfigError, PrivacyWarning, require_integer, require_open_unit, require_positive

LARGEST_EPSILON = 100.0


def default_delta(n_public: int) -> float:
    """Return min(1e-5, 0.1 / n_public).

    Publishing one record drawn at random is (0, 1/n)-differentially private, so δ has to stay well below 1/n.

    Args:
        n_public: number of units that is public knowledge, at least 1.
    """
    return min(1e-5, 0.1 / require_integer(at_least=1, n_public=n_public))


@dataclass(frozen=True, slots=True)
class PrivacyBudget:
    """The privacy loss that may be spent: (ε, δ) under add/remove neighbours.

    Args:
        epsilon: ε in nats, 0 < ε ≤ 100.
        delta: δ, 0 < δ < 1.

    Raises:
        ConfigError: an argument is outside its domain.

    Example:
        >>> PrivacyBudget(epsilon=1.0, delta=1e-6)
        PrivacyBudget(epsilon=1.0, delta=1e-06)
        >>> PrivacyBudget(epsilon=0.0, delta=1e-6)
        Traceback (most recent call last):
            ...
        sfumato.errors.ConfigError: Expected epsilon to be a number above 0, got epsilon=0.0.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon = require_positive(epsilon=self.epsilon)
        if epsilon > LARGEST_EPSILON:
            raise ConfigError(
                f"Expected epsilon to be at most {LARGEST_EPSILON:g}, got epsilon={epsilon!r}. "
                "A larger epsilon protects nobody."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", require_open_unit(delta=self.delta))

    def warn_if_delta_is_large(self, n_public: int) -> None:
        """Warn when δ ≥ 1/n_public: publishing one whole record at random would satisfy such a δ."""
        if self.delta >= 1 / n_public:
            warnings.warn(
                f"delta={self.delta:g} is not below 1/n_public={1 / n_public:g}: releasing one record in the clear "
                f"would satisfy it. Choose a delta of at most {default_delta(n_public):g}.",
                PrivacyWarning,
                stacklevel=2,
            )


@dataclass(frozen=True, slots=True)
class NonPrivate:
    """In place of an epsilon: no noise at all, loudly. The release says that it is not private, for good.

    Example:
        >>> import sfumato
        >>> sfumato.MaxEntropy(epsilon=sfumato.NonPrivate()).epsilon
        NonPrivate()
    """


@dataclass(frozen=True, slots=True)
class EstimateCount:
    """In place of a number of rows: nothing is declared, a noisy count takes part of the budget."""
