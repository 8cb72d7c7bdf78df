"""Noisy sums: the ways out for an exact statistic.

Each mechanism takes (exact, stage, ledger, noise): it charges the stage, draws noise, and returns noisy values only.
The noise's standard deviation is the stage's noise multiplier times the norm bound that the statistic carries; the
ledger is charged with the event that follows from that noise and these bounds, and the noise that was charged is drawn.
A statistic is whole numbers, and so is what is added to it: normal noise, rounded. That is the Gaussian mechanism over
the reals, and a rounding of its result; nothing is lost to floating point. Proofs: docs/proofs/gaussian_sum.md,
docs/proofs/second_moment.md, docs/proofs/grid.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import ConfigError
from sfumato.measurements.queries import Query
from sfumato.mechanisms.noise import NoiseSource, Step
from sfumato.mechanisms.rounded import LARGEST_SCALE
from sfumato.privacy.ledger import GaussianEvent, Ledger
from sfumato.privacy.origin import Origin, simplest
from sfumato.records.engine import Exact, Sealed

_FINENESS = 24  # a grid step is at most 2^-24 of the noise's standard deviation
_MOST_FINER = 62
_ROW_NUMBERS = 1 << 16


@dataclass(frozen=True, slots=True)
class Noisy:
    """A released statistic.

    Attributes:
        value: noisy value, float64.
        noise_std: standard deviation of the noise of each entry (of diagonal entries, if symmetric), data units.
        symmetric: the last two axes are a symmetric matrix; off-diagonal noise has standard deviation noise_std/√2.
        origin: the stage, bound and grid of it, where it is what one event released, or a part of that.
        query: what it is a noisy value of, where that is a function of columns' cells.
    """

    value: np.ndarray
    noise_std: float
    symmetric: bool = False
    origin: Origin | None = None
    query: Query | None = None


def origin_of(exact: Sealed[Any], stage: str, noise_std: float, *, symmetric: bool = False) -> Origin | None:
    """Return the origin of what a stage released of a statistic: public facts alone; None without noise."""
    if not noise_std:
        return None
    if exact.step is None:
        return Origin(stage, exact.norm_bound)
    beside = simplest(grid_step(exact.step, noise_std / np.sqrt(2))[1]) if symmetric else None
    return Origin(stage, exact.norm_bound, simplest(grid_step(exact.step, noise_std)[1]), beside)


def together(released: Sequence[Noisy], join: Callable[[list[np.ndarray]], np.ndarray] = np.stack) -> Noisy:
    """Return several releases as one; it has an origin if all are of one stage, with one noise and one bound."""
    first, values = released[0], [noisy.value for noisy in released]
    origins = [noisy.origin for noisy in released if noisy.origin is not None]
    origin = None
    if len(origins) == len(released) and not first.symmetric:
        alike = {(o.stage, o.norm_bound, n.noise_std) for o, n in zip(origins, released, strict=True)}
        grids = [np.broadcast_to(o.grid, v.shape) for o, v in zip(origins, values, strict=True) if o.grid is not None]
        if len(alike) == 1 and len(grids) == len(released):
            origin = Origin(origins[0].stage, origins[0].norm_bound, simplest(join(grids)))
    return Noisy(join(values), first.noise_std, origin=origin)


def charge_stage(exact: Sealed[Any], stage: str, ledger: Ledger, noise: NoiseSource) -> float:
    """Charge the stage and return the noise_std that was charged (0 with `NoNoise`): see `charge_event`."""
    event = charge_event(exact, stage, ledger)
    return 0.0 if noise.silent else event.noise_std


def charge_event(exact: Sealed[Any], stage: str, ledger: Ledger, *, extra_delta: float = 0.0) -> GaussianEvent:
    """Charge the stage with the event of its noise on a statistic, and return it: noise is drawn by what it says.

    Raises:
        ConfigError: so much noise that its grid would not fit into 64 bits. Nothing was charged.
        LedgerError: the event is not the stage's. Nothing was charged.
    """
    noise_std = ledger.plan[stage].noise_multiplier * exact.norm_bound
    if exact.step is not None and noise_std > LARGEST_SCALE / 2 * np.min(exact.step):
        raise ConfigError(
            f"Expected less noise for stage {stage!r} than 2^19 times the bound. Ask for a larger epsilon."
        )
    event = GaussianEvent.of(exact, noise_std, extra_delta=extra_delta)
    ledger.charge(stage, event)
    return event


def noisy_sum(exact: Exact, *, stage: str, ledger: Ledger, noise: NoiseSource) -> Noisy:
    """Release a sum of bounded vectors with independent Gaussian noise: whole numbers on a grid, floats as they are.

        s̃ = Σᵢ vᵢ + N(0, (σB)² I),   ‖vᵢ‖ ≤ B

    Privacy: one `Gaussian(σ)` event of the stage. ℓ2 sensitivity B under add/remove (one unit's contribution) and
        B·replace_distance under replace-one; both are carried by `exact`. Proof: docs/proofs/gaussian_sum.md.

    Args:
        exact: the sum, any shape.
        stage: name of the stage to charge.
        ledger: charged before the noise is drawn.
        noise: the source of randomness.

    Returns:
        The noisy sum, same shape, float64.

    Raises:
        LedgerError: the plan has another stage next, or a smaller replace distance. Nothing was released.
    Reference: Dwork and Roth 2014, Theorem A.1; accounted exactly, by privacy-loss distributions.
    """
    noise_std = charge_stage(exact, stage, ledger, noise)
    if exact.step is not None:
        return Noisy(on_grid(exact.whole_in_mechanism(), exact.step, noise_std, noise), noise_std)
    value = noise.gaussian(exact.open_in_mechanism().shape, noise_std)
    value += exact.open_in_mechanism()
    return Noisy(value, noise_std)


def on_grid(whole: np.ndarray, step: Step, noise_std: float, noise: NoiseSource) -> np.ndarray:
    """Return whole numbers of a step with rounded normal noise, data units: multiples of a step that may be finer.

    For mechanisms that have charged the ledger. Sums and shifts are modulo 2^64: what does not fit is lost, which is a
    function of what the Gaussian mechanism released.

    Args:
        whole: int64, any shape.
        step: what 1 is worth, data units; broadcasts to the shape.
        noise_std: 0 for none.
        noise: the source of randomness.

    Raises:
        ConfigError: a step is below 2^-54 of the noise.
    """
    if not noise_std:
        return np.asarray(whole * step, dtype=np.float64)
    return np.asarray(with_noise(whole, step, noise_std, noise) * grid_step(step, noise_std)[1], dtype=np.float64)


def with_noise(whole: np.ndarray, step: Step, noise_std: float, noise: NoiseSource, part: float = 1.0) -> np.ndarray:
    """Return what `on_grid` does in whole numbers of the grid, int64, with so large a part of the noise's variance."""
    finer, grid = grid_step(step, noise_std)
    value = noise.rounded_gaussian(whole.shape, noise_std * np.sqrt(part), grid)
    value += whole << finer
    return value


def grid_step(step: Step, noise_std: float) -> tuple[np.ndarray, np.ndarray]:
    """Return s ≥ 0 and the grid step, step/2^s: the largest that is at most 2^-24 of the noise."""
    exponent = np.frexp(np.asarray(step) / noise_std)[1]
    finer = np.clip(exponent + _FINENESS, 0, _MOST_FINER).astype(np.int64)
    return finer, np.ldexp(step, -finer)


def noisy_histogram(exact: Exact, *, stage: str, ledger: Ledger, noise: NoiseSource) -> Noisy:
    """Release counts: `noisy_sum` of one-hot contributions.

    Privacy: as `noisy_sum`. A record that adds a single 1 to each of c tables has norm √c, and two records are at
        most √(2c) apart. One that adds a_i to one cell of the table i has norm √(Σ a_i²), and two are at most √2 times
        that apart, as no entry is negative. Counts may come out negative: clamping and normalising them is free.
        Proofs: docs/proofs/gaussian_sum.md, docs/proofs/cell_counts.md.
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

        S̃ = Σᵢ xᵢxᵢᵀ + E,   E symmetric, Eᵢᵢ ~ N(0, (σB)²), Eᵢⱼ ~ N(0, (σB)²/2),   ‖xᵢ‖² ≤ B

    With svec (diagonal entries, and √2 times the off-diagonal ones), ‖svec(xxᵀ)‖ = ‖x‖², and the noise above is iid
    N(0, (σB)²) in svec coordinates. Several matrices in one array (c, d, d) cost the same single event: each record
    feeds one of them, or several with weights whose squares add up to at most 1. All have the same noise, and steps of
    their own.

    Privacy: one `Gaussian(σ)` event of the stage. Sensitivity B under add/remove, √2·B under replace-one (two
        outer products have a non-negative inner product, and weights are not negative); of units, times their rows.
        Proof: docs/proofs/second_moment.md.

    Args:
        exact: sums of outer products, shape (..., d, d), symmetric; whole numbers of one step, or of one a matrix.
        stage: name of the stage to charge.
        ledger: charged before the noise is drawn.
        noise: the source of randomness.

    Returns:
        The noisy sums, same shape, symmetric; noise_std on the diagonal, noise_std/√2 off it.

    Raises:
        ConfigError: not square matrices of whole numbers; before anything is charged.
        LedgerError: the plan has another stage next. Nothing was released.
    Reference: Dwork, Talwar, Thakurta and Zhang 2014 (Analyze Gauss) copy the upper triangle of iid noise; the
        symmetric noise used here has half that variance off the diagonal at the same guarantee.
    """
    steps = matrix_steps(exact)
    noise_std = charge_stage(exact, stage, ledger, noise)
    value = exact.whole_in_mechanism()
    result = np.empty(value.shape)
    for index in np.ndindex(*value.shape[:-2]):
        _noisy_matrix(value[index], float(steps[index].item()), noise_std, noise, result[index])
    return Noisy(result, noise_std, symmetric=True)


def _noisy_matrix(whole: np.ndarray, step: float, noise_std: float, noise: NoiseSource, result: np.ndarray) -> None:
    fill_symmetric(whole, noise_std, lambda some, std: on_grid(some, step, std, noise), result)


def matrix_steps(exact: Exact) -> np.ndarray:
    """Return the step of each of several square matrices, shape (..., 1, 1).

    Raises:
        ConfigError: not square matrices of whole numbers of one step a matrix.
    """
    shape = exact.whole_in_mechanism().shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ConfigError(f"Expected square matrices in {exact!r}, got shape {shape}.")
    steps = None if exact.step is None else np.asarray(exact.step, dtype=np.float64)
    if steps is None or (steps.ndim and steps.shape != (*shape[:-2], 1, 1)):
        raise ConfigError(f"Expected whole numbers of one step a matrix in {exact!r}.")
    return np.broadcast_to(steps, (*shape[:-2], 1, 1))


def fill_symmetric(
    whole: np.ndarray, noise_std: float, draw: Callable[[np.ndarray, float], np.ndarray], result: np.ndarray
) -> None:
    """Fill a symmetric matrix: the diagonal with noise of noise_std, then what is right of it with noise_std/√2.

    Args:
        whole: whole numbers, shape (d, d).
        noise_std: of the diagonal.
        draw: returns some of these with noise of so large a deviation.
        result: shape (d, d).
    """
    np.fill_diagonal(result, draw(np.diagonal(whole), noise_std))
    size = len(whole)
    height = max(1, _ROW_NUMBERS // max(size, 1))
    for top in range(0, size, height):  # some rows at a time: one matrix may be large, and is not held twice
        rows = slice(top, min(top + height, size))
        upper = np.arange(size) > np.arange(rows.start, rows.stop)[:, None]
        result[rows][upper] = draw(whole[rows][upper], noise_std / np.sqrt(2))
        result[:, rows].T[upper] = result[rows][upper]
