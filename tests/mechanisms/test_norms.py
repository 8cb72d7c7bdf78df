import numpy as np
import pytest

from harness.privacy import STAGE, accept_only_unit_scale, ledger_for
from sfumato.errors import ConfigError, LedgerError
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.mechanisms.norms import joint_exact, joint_weights, noisy_norms_and_sum, norm_bins

EDGES = np.array([0.5, 1.0, 4.0])


def test_bins_leave_nothing_out():
    norms = np.array([0.0, 1e-300, 0.5, 0.5000001, 1.0, 4.0, 4.1, 1e300, np.inf, np.nan])
    np.testing.assert_array_equal(norm_bins(norms, EDGES), [0, 0, 0, 1, 1, 2, 2, 2, 2, 2])


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_both_blocks_together_cost_what_is_charged(share):
    w0, w1 = joint_weights(share)
    counts = np.zeros((2, 3))
    norms, sums = noisy_norms_and_sum(
        counts, np.zeros(5), share=share, stage=STAGE, ledger=ledger_for(3.0), noise=SeededNoise(0)
    )
    assert (norms.noise_std**-2 + sums.noise_std**-2) ** -0.5 == pytest.approx(3.0)
    assert joint_exact(counts, np.zeros(5), share).replace_distance == pytest.approx((2 * w0**2 + 4 * w1**2) ** 0.5)


def test_the_noise_has_the_stated_law_in_either_block():
    ledger = ledger_for(2.0)
    counts, exact = np.arange(3000.0).reshape(3, 1000), np.linspace(-1, 1, 3000)
    norms, sums = noisy_norms_and_sum(counts, exact, share=0.2, stage=STAGE, ledger=ledger, noise=SeededNoise(1))
    accept_only_unit_scale((norms.value - counts).ravel() / norms.noise_std)
    accept_only_unit_scale((sums.value - exact) / sums.noise_std)
    assert abs(np.corrcoef((norms.value - counts).ravel(), sums.value - exact)[0, 1]) < 0.1
    ledger.close()


def test_one_charge_and_nothing_without_it():
    ledger = ledger_for(2.0)
    arguments = {"share": 0.2, "stage": STAGE, "ledger": ledger, "noise": NoNoise()}
    with pytest.raises(ConfigError, match="one vector"):
        noisy_norms_and_sum(np.zeros((1, 3)), np.zeros((2, 2)), **arguments)
    with pytest.raises(ConfigError, match="share"):
        noisy_norms_and_sum(np.zeros((1, 3)), np.zeros(2), **{**arguments, "share": 1.0})
    assert not ledger.charged
    counts, total = np.array([[1.0, 0.0, 2.0]]), np.array([0.5, -0.5])
    norms, sums = noisy_norms_and_sum(counts, total, **arguments)
    np.testing.assert_allclose(norms.value, counts)
    np.testing.assert_allclose(sums.value, total)
    assert ledger.charged == ((STAGE, 1),)
    with pytest.raises(LedgerError):
        noisy_norms_and_sum(counts, total, **arguments)
