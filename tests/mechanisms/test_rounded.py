"""Rounded normals: their law, and every bit of the way to it against slow fractions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from harness.privacy import FALSE_ALARM, accept_only_unit_scale
from sfumato.errors import ConfigError
from sfumato.mechanisms import rounded
from sfumato.mechanisms.noise import NoNoise, SecureNoise, SeededNoise

LARGE = 1.37 * 2.0**40


def chi_square(draws: np.ndarray, scale: float) -> float:
    """Against P(round(cZ) = m) of every m within four deviations, and both tails."""
    most = int(4 * scale)
    edges = np.arange(-most - 1, most + 1) + 0.5
    expected = np.diff(np.concatenate([[0.0], stats.norm.cdf(edges / scale), [1.0]]))
    found = np.bincount(np.clip(draws, -most - 1, most + 1) + most + 1, minlength=expected.size)
    return float(stats.chisquare(found, expected * draws.size).pvalue)


@pytest.mark.parametrize("scale", [1.0, 2.7, 16.0, 40.3])
def test_every_whole_number_has_its_probability(scale):
    draws = rounded.rounded_normals(SeededNoise(1).bits, 300_000, scale)
    assert chi_square(draws, scale) > FALSE_ALARM
    for wrong in (2 / 3, 3 / 2):
        assert chi_square(draws, scale * wrong) < FALSE_ALARM


@pytest.mark.parametrize("scale", [2.0**24, LARGE, 2.0**55])
def test_fine_grids_have_the_normal_law_at_no_other_scale(scale):
    accept_only_unit_scale(rounded.rounded_normals(SecureNoise().bits, 100_000, scale) / scale)


def test_the_edges_of_cells_and_the_tails_have_their_share():
    draws = rounded.rounded_normals(SeededNoise(2).bits, 1_000_000, 2.0**30) / 2.0**30
    edges = np.unique(np.concatenate([np.arange(-40, 41) / 16, np.arange(-48, 49) / 13.7, [-4.2, -3.8, 3.8, 4.2]]))
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    expected = np.diff(stats.norm.cdf(ends)) * draws.size
    assert stats.chisquare(np.histogram(draws, ends)[0], expected).pvalue > FALSE_ALARM


def test_the_last_bits_say_nothing_of_the_rest():
    draws = rounded.rounded_normals(SeededNoise(3).bits, 400_000, LARGE)
    for part in (draws[draws > 0], draws[np.abs(draws) < LARGE / 4]):
        counts = np.bincount(part & 255, minlength=256)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM


class Recorded:
    """Hands out words, and remembers them."""

    def __init__(self, seed):
        self.source, self.words = SeededNoise(seed), []

    def __call__(self, n):
        self.words.append(self.source.bits(n))
        return self.words[-1]


def test_a_number_is_the_floor_of_a_fraction_from_the_same_bits():
    exponent, cells = 41, rounded._cells(1 / 17)
    bits = Recorded(4)
    found, accepted = rounded._propose(bits, 300, cells, exponent)
    choices, places, heights = (part.tolist() for part in np.split(bits.words[0], 3))
    assert len(bits.words) == 1  # no doubt arose
    for value, choice, place, height, kept in zip(found, choices, places, heights, accepted, strict=True):
        cell = sum(choice << 64 >= end for end in cells.ends)
        size = (cell + Fraction(2 * place + 1, 2**65)) * 2**exponent
        assert value == (-size if height & 1 else size).__floor__()
        x = size / 2**exponent * Fraction(1, 17)
        assert kept == ((height >> 1) / 2**63 < np.exp(float((cell * Fraction(1, 17)) ** 2 - x**2) / 2))


def test_doubts_are_settled_without_changing_the_law(monkeypatch):
    plain = rounded._propose(SeededNoise(5).bits, 500, rounded._cells(0.05), 20)
    monkeypatch.setattr(rounded, "_DOUBT", 2.0)
    settled = rounded._propose(SeededNoise(5).bits, 500, rounded._cells(0.05), 20)
    for one, other in zip(plain, settled, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_word_on_the_edge_of_a_cell_is_settled_by_the_next():
    cells = rounded._cells(0.05)
    words = cells.first_words[[3, 100]]
    low, high = (lambda n, word=word: np.full(n, word, dtype=np.uint64) for word in (0, 2**64 - 1))
    np.testing.assert_array_equal(rounded._chosen(low, words, cells), [3, 100])
    np.testing.assert_array_equal(rounded._chosen(high, words, cells), [4, 101])


def test_cells_have_probabilities_in_proportion_to_the_density_at_their_start():
    cells = rounded._cells(0.05)
    shares = np.array([(end - before) / 2**128 for before, end in pairwise([0, *cells.ends])])
    heights = np.exp(-((np.arange(shares.size) * 0.05) ** 2) / 2)
    np.testing.assert_allclose(shares[:150] / shares[0], heights[:150], rtol=1e-13)
    assert (shares.size + 1) * 0.05 >= 14


class TestTheDoor:
    def test_steps_of_different_sizes(self):
        steps = np.array([0.5, 2.0**-20, 0.5, 3.0])
        draws = SeededNoise(0).rounded_gaussian((50_000, 4), 7.0, steps)
        assert draws.dtype == np.int64
        for column, step in zip(draws.T, steps, strict=True):
            assert np.std(column * step) == pytest.approx(np.hypot(7, step / np.sqrt(12)), rel=0.02)
            assert abs(np.mean(column * step)) < 0.2

    def test_shapes(self):
        source = SecureNoise()
        for shape in ((), (0,), (2, 0, 3), (4, 2)):
            assert source.rounded_gaussian(shape, 1.0, 0.5).shape == shape

    @pytest.mark.parametrize("step", [1.5, 2.0**-60, 0.0, -1.0, np.nan, np.array([0.5, np.inf])])
    def test_impossible_steps_are_refused(self, step):
        with pytest.raises(ConfigError, match="steps"):
            SeededNoise(0).rounded_gaussian(2, 1.0, step)

    @pytest.mark.parametrize("noise_std", [0.0, -1.0, np.nan, np.inf])
    def test_impossible_scales_are_refused(self, noise_std):
        with pytest.raises(ConfigError, match="noise_std"):
            SeededNoise(0).rounded_gaussian(2, noise_std, 0.5)

    def test_no_noise_is_none(self):
        assert not NoNoise().rounded_gaussian(5, 1.0, 0.5).any()

    def test_seeds_repeat_and_sources_differ(self):
        first, second, other = (SeededNoise(s).rounded_gaussian(50, 1.0, 2.0**-20) for s in (1, 1, 2))
        np.testing.assert_array_equal(first, second)
        assert not np.array_equal(first, other)
