"""Noisy sums: the ways out for an exact statistic.

Each mechanism takes (exact, stage, ledger, noise): it charges the stage, draws noise, and returns noisy values only.
The noise's standard deviation is the stage's noise multiplier times the norm bound that the statistic carries, so the
event that was charged is the event that happens. Proofs: docs/proofs/gaussian_sum.md, docs/proofs/second_moment.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.data.engine import Exact
from sfumato.errors import ConfigError
from sfumato.mechanisms.noise import NoiseSource
from sfumato.privacy.ledger import Ledger

_TILE = 256


@dataclass(frozen=True, slots=True)
class Noisy:
    """A released statistic.

    Attributes:
        value: noisy value, float64.
        noise_std: standard deviation of the noise of each entry (of diagonal entries, if symmetric), data units.
        symmetric: the last two axes are a symmetric matrix; off-diagonal noise has standard deviation noise_std/√2.
    """

    value: np.ndarray
    noise_std: float
    symmetric: bool = False


def charge_stage(exact: Exact, stage: str, ledger: Ledger, noise: NoiseSource) -> float:
    """Charge the stage and return the noise_std to use (0 with `NoNoise`)."""
    multiplier = ledger.plan[stage].noise_multiplier
    ledger.charge(stage, noise_multiplier=multiplier, replace_distance=exact.replace_distance)
    return 0.0 if noise.silent else multiplier * exact.norm_bound


def noisy_sum(exact: Exact, *, stage: str, ledger: Ledger, noise: NoiseSource) -> Noisy:
    """Release a sum of bounded vectors with independent Gaussian noise.

        s̃ = Σᵢ vᵢ + N(0, (σB)² I),   ‖vᵢ‖ ≤ B

    Privacy: one `Gaussian(σ)` event of the stage. ℓ2 sensitivity B under add/remove (one unit's contribution) and
        B·replace_distance under replace-one; both are carried by `exact`. Proof: docs/proofs/gaussian_sum.md.

    Args:
        exact: the sum, any shape.
        stage: name of the stage to charge.
        ledger: charged before the noise is drawn.
        noise: the door of randomness.

    Returns:
        The noisy sum, same shape, float64.

    Raises:
        LedgerError: the plan has another stage next, or a smaller replace distance. Nothing was released.
    Reference: Dwork and Roth 2014, Theorem A.1; accounted exactly, by privacy-loss distributions.
    """
    noise_std = charge_stage(exact, stage, ledger, noise)
    value = noise.gaussian(exact.open_in_mechanism().shape, noise_std)
    value += exact.open_in_mechanism()
    return Noisy(value, noise_std)


def noisy_histogram(exact: Exact, *, stage: str, ledger: Ledger, noise: NoiseSource) -> Noisy:
    """Release counts: `noisy_sum` of one-hot contributions.

    Privacy: as `noisy_sum`. A record that adds a single 1 to each of c tables has norm √c, and two records are at
        most √(2c) apart. Counts may come out negative: clamping and normalising them is free.
        Proof: docs/proofs/gaussian_sum.md.
    """
    return noisy_sum(exact, stage=stage, ledger=ledger, noise=noise)


def noisy_count(exact: Exact, *, stage: str, ledger: Ledger, noise: NoiseSource) -> Noisy:
    """Release a number of records: `noisy_sum` of ones, shape ().

    Privacy: as `noisy_sum`; sensitivity 1 (times the rows of a unit). Under replace-one the count is public, and the
        stage's distance of √2 or less only overstates the cost.
    """
    return noisy_sum(exact, stage=stage, ledger=ledger, noise=noise)


def noisy_second_moment(exact: Exact, *, stage: str, ledger: Ledger, noise: NoiseSource) -> Noisy:
    """Release sums of outer products with symmetric Gaussian noise.

        S̃ = Σᵢ xᵢxᵢᵀ + σB (G + Gᵀ)/2,   G iid standard normal,   ‖xᵢ‖² ≤ B

    With svec (diagonal entries, and √2 times the off-diagonal ones), ‖svec(xxᵀ)‖ = ‖x‖², and the noise above is iid
    N(0, (σB)²) in svec coordinates. Several classes in one array (c, d, d), each record feeding one class, cost the
    same single event.

    Privacy: one `Gaussian(σ)` event of the stage. Sensitivity B under add/remove, √2·B under replace-one (two
        outer products have a non-negative inner product). Proof: docs/proofs/second_moment.md.

    Args:
        exact: sums of outer products, shape (..., d, d), symmetric.
        stage: name of the stage to charge.
        ledger: charged before the noise is drawn.
        noise: the door of randomness.

    Returns:
        The noisy sums, same shape, symmetric; noise_std on the diagonal, noise_std/√2 off it.

    Raises:
        ConfigError: not square matrices; before anything is charged.
        LedgerError: the plan has another stage next. Nothing was released.
    Reference: Dwork, Talwar, Thakurta and Zhang 2014 (Analyze Gauss) copy the upper triangle of iid noise; the
        symmetric part used here has half that variance off the diagonal at the same guarantee.
    """
    value = exact.open_in_mechanism()
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        raise ConfigError(f"Expected square matrices in {exact!r}, got shape {value.shape}.")
    noise_std = charge_stage(exact, stage, ledger, noise)
    if value.ndim == 2:  # one matrix may be large: it is not held twice
        result = noise.gaussian(value.shape, noise_std)
        _symmetrise(result)
        result += value
        return Noisy(result, noise_std, symmetric=True)
    result = np.empty(value.shape)
    for index in np.ndindex(*value.shape[:-2]):
        draws = noise.gaussian(value.shape[-2:], noise_std)
        _symmetrise(draws)
        np.add(value[index], draws, out=result[index])
    return Noisy(result, noise_std, symmetric=True)


def _symmetrise(matrix: np.ndarray) -> None:
    """Replace a square matrix by its symmetric part, in place, a tile at a time."""
    size = len(matrix)
    for top in range(0, size, _TILE):
        for left in range(0, top + _TILE, _TILE):
            rows, columns = slice(top, top + _TILE), slice(left, left + _TILE)
            tile = matrix[rows, columns] + matrix[columns, rows].T
            tile *= 0.5
            matrix[rows, columns] = tile
            matrix[columns, rows] = tile.T
