"""One noisy sum of several holders' records, of which each holder draws a part of the noise.

    S̃ = Σⱼ (Sⱼ + Rⱼ),   Rⱼ the rounding of N(0, (σB)² / (k − t))

k holders, t of whom may work together with whoever sees the sum: what the others added is N(0, (σB)²) at least. A
holder that takes its own part off is one such, so t is at least 1 where holders are to learn no more than others. A sum
of rounded normals is the rounding of a normal and of something that no record has a part in. Proof:
docs/proofs/holders.md.
"""

from __future__ import annotations

import numpy as np

from sfumato.errors import ConfigError, require_integer
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import (
    Noisy,
    charge_event,
    fill_symmetric,
    grid_step,
    matrix_steps,
    origin_of,
    with_noise,
)
from sfumato.privacy.ledger import Ledger
from sfumato.records.engine import Exact

MOST_HOLDERS = 100
"""The proof asks that a part of the noise is many steps of its grid."""


def noise_part(holders: int, colluding: int) -> float:
    """Return the part of the noise's variance that each holder draws, 1/(k − t).

    Raises:
        ConfigError: not 2 to 100 holders, or all of them work together.

    Example:
        >>> noise_part(5, 1)
        0.25
    """
    require_integer(at_least=2, holders=holders)
    require_integer(at_least=0, colluding=colluding)
    if holders > MOST_HOLDERS or colluding >= holders:
        raise ConfigError(
            f"Expected 2 to {MOST_HOLDERS} holders, and fewer that may work together, got {holders=} and {colluding=}."
        )
    return 1 / (holders - colluding)


def noise_share(
    exact: Exact, *, stage: str, ledger: Ledger, noise: NoiseSource, part: float, symmetric: bool = False
) -> np.ndarray:
    """Return one holder's sum with its part of the noise: for a one-time pad, never to be shown by itself.

        Sⱼ + Rⱼ,   Rⱼ the rounding of N(0, part · (σB)² I), in whole numbers of the grid of σB

    Privacy: one `Gaussian(σ)` event of the stage in the account of each holder, for all who see no more than sums of
        the shares of 1/part holders or more. ℓ2 sensitivity B under add/remove, B·replace_distance under replace-one:
        a unit has all its rows at one holder. Alone it would be `Gaussian(σ·√part)`. Proof: docs/proofs/holders.md.

    Args:
        exact: the holder's sum; whole numbers of a step.
        stage: name of the stage to charge.
        ledger: charged before the noise is drawn.
        noise: the source of randomness.
        part: of the noise's variance, as `noise_part`.
        symmetric: whether the noise is that of `noisy_second_moment`.

    Returns:
        int64, the shape of the sum: to be added modulo 2^64.

    Raises:
        ConfigError: sums of floats, or no noise; before anything is charged.
        LedgerError: the plan has another stage next. Nothing was drawn.
    """
    steps = _steps(exact, symmetric=symmetric)
    if noise.silent:
        raise ConfigError("Expected noise for one release of several holders, got none. Name epsilon.")
    noise_std = charge_event(exact, stage, ledger).noise_std
    whole = exact.whole_in_mechanism()
    if not symmetric:
        return with_noise(whole, steps, noise_std, noise, part)
    result = np.empty(whole.shape, dtype=np.int64)
    for index in np.ndindex(*whole.shape[:-2]):
        step = float(steps[index].item())
        fill_symmetric(
            whole[index],
            noise_std,
            lambda some, std, step=step: with_noise(some, step, std, noise, part),
            result[index],
        )
    return result


def sum_of_shares(
    bounds: Exact, total: np.ndarray, *, stage: str, ledger: Ledger, noise_factor: float, symmetric: bool = False
) -> Noisy:
    """Return what the shares of all holders add up to, data units.

    Privacy: the event that each share was charged for; a holder's ledger is charged once in every run of its fit.

    Args:
        bounds: a sum over no records, with the bounds and the step of the statistic.
        total: of the shares, int64, modulo 2^64.
        stage: name of the stage.
        ledger: charged.
        noise_factor: √(k/(k − t)), by which the noise of all holders is larger than what was charged.
        symmetric: as of `noise_share`.
    """
    steps = _steps(bounds, symmetric=symmetric)
    noise_std = charge_event(bounds, stage, ledger).noise_std
    grid = grid_step(steps, noise_std)[1]
    if symmetric:
        beside = grid_step(steps, noise_std / np.sqrt(2))[1]
        grid = np.where(np.eye(total.shape[-1], dtype=bool), grid, beside)
    origin = origin_of(bounds, stage, noise_std, symmetric=symmetric)
    return Noisy(np.asarray(total * grid, dtype=np.float64), noise_std * noise_factor, symmetric, origin)


def _steps(exact: Exact, *, symmetric: bool) -> np.ndarray:
    if exact.step is None:
        raise ConfigError(f"Expected whole numbers for one release of several holders, got floats in {exact!r}.")
    return matrix_steps(exact) if symmetric else np.asarray(exact.step, dtype=np.float64)
