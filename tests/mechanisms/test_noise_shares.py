"""Parts of noise: what a sum of rounded normals is, its law for any number of holders, and what is refused."""

import numpy as np
import pytest
from scipy import signal, stats

from harness.privacy import STAGE, ledger_for
from sfumato.errors import ConfigError, LedgerError
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.mechanisms.noise_shares import noise_part, noise_share, sum_of_shares
from sfumato.records.engine import Exact


@pytest.mark.parametrize("scale", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("holders", [2, 3, 5])
def test_a_sum_of_rounded_normals_is_a_rounded_normal_beside_uniforms(scale, holders):
    """The lemma of docs/proofs/holders.md: Σ r(cZⱼ) and r(√m cZ + V), both by convolution."""
    reach, fine = int(14 * scale) + 2, 400
    whole = np.arange(-reach, reach + 1)
    one = np.diff(stats.norm.cdf(np.append(whole - 0.5, reach + 0.5), scale=scale))
    several = one
    for _ in range(holders - 1):
        several = np.convolve(several, one)
    step, ends = 1 / fine, holders * reach
    grid = np.arange(-ends * fine, ends * fine + 1) * step
    density = stats.norm.pdf(grid, scale=np.sqrt(holders) * scale)
    box = np.append(np.append(0.5, np.ones(fine - 1)), 0.5) * step  # uniform on [-1/2, 1/2], by the trapezoid rule
    for _ in range(holders):
        density = signal.fftconvolve(density, box, "same")
    rounded = density[::fine][: several.size]
    bound = (28 * holders * scale + 2 * holders + 1) * (holders + 1) * 3 * np.exp(-(np.pi**2) * scale**2 / 2)
    assert np.abs(several - rounded).sum() / 2 < min(bound, 1) + 1e-5


def test_it_is_not_the_rounding_of_a_normal():
    """What the lemma is for: at a coarse grid the sum of two rounded normals has the variance of a rounding more."""
    noise = SeededNoise(1)
    draws = [noise.rounded_gaussian(200_000, 1.0, 1.0) + noise.rounded_gaussian(200_000, 1.0, 1.0)]
    assert np.var(draws) == pytest.approx(2 + 2 / 12, rel=0.01)
    assert np.var(noise.rounded_gaussian(200_000, np.sqrt(2), 1.0)) == pytest.approx(2 + 1 / 12, rel=0.01)


def shares_of(exact, count, part, noise):
    return [noise_share(exact, stage=STAGE, ledger=ledger_for(2.0), noise=noise, part=part) for _ in range(count)]


@pytest.mark.parametrize(("holders", "colluding"), [(2, 0), (2, 1), (5, 0), (5, 2), (100, 1)])
def test_the_noise_of_all_is_that_of_the_plan_and_of_those_who_may_collude(holders, colluding):
    exact, noise = whole_sum(4_000), SeededNoise(3)
    total = np.sum(shares_of(exact, holders, noise_part(holders, colluding), noise), axis=0)
    factor = np.sqrt(holders / (holders - colluding))
    noisy = sum_of_shares(exact, total, stage=STAGE, ledger=ledger_for(2.0), noise_factor=factor)
    assert noisy.noise_std == pytest.approx(2.0 * exact.norm_bound * factor)
    residual = (noisy.value - holders * exact.open_in_mechanism()) / noisy.noise_std
    assert stats.kstest(residual, "norm").pvalue > 1e-7
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(residual * wrong, "norm").pvalue < 1e-7
    honest = np.sum(shares_of(exact, holders - colluding, noise_part(holders, colluding), noise), axis=0)
    left = sum_of_shares(exact, honest, stage=STAGE, ledger=ledger_for(2.0), noise_factor=1.0)
    residual = (left.value - (holders - colluding) * exact.open_in_mechanism()) / (2.0 * exact.norm_bound)
    assert stats.kstest(residual, "norm").pvalue > 1e-7


def whole_sum(size, step=0.125):
    whole = np.random.default_rng(0).integers(-50, 50, size)
    return Exact(whole, name="sum", norm_bound=4.0, replace_distance=2.0, step=step)


def test_a_share_charges_its_stage_once():
    ledger = ledger_for(2.0)
    noise_share(whole_sum(3), stage=STAGE, ledger=ledger, noise=SeededNoise(0), part=0.5)
    ledger.close()
    with pytest.raises(LedgerError):
        noise_share(whole_sum(3), stage=STAGE, ledger=ledger, noise=SeededNoise(0), part=0.5)


@pytest.mark.parametrize(
    ("exact", "noise", "symmetric", "text"),
    [
        (whole_sum(3), NoNoise(), False, "Expected noise"),
        (whole_sum(3, step=None), SeededNoise(0), False, "whole numbers"),
        (whole_sum(3), SeededNoise(0), True, "square matrices"),
    ],
)
def test_what_is_refused_charges_nothing(exact, noise, symmetric, text):
    ledger = ledger_for(2.0)
    with pytest.raises(ConfigError, match=text):
        noise_share(exact, stage=STAGE, ledger=ledger, noise=noise, part=0.5, symmetric=symmetric)
    assert not ledger.charged


@pytest.mark.parametrize(("holders", "colluding"), [(1, 0), (101, 1), (3, 3), (3, -1), (2.0, 0)])
def test_numbers_of_holders_that_no_proof_covers(holders, colluding):
    with pytest.raises(ConfigError):
        noise_part(holders, colluding)
