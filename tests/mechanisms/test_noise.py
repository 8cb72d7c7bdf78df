"""The one door of randomness: law, independence, secrecy."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest
from scipy import stats

from harness.privacy import FALSE_ALARM, accept_only_unit_scale
from sfumato.errors import ConfigError
from sfumato.mechanisms import noise as door
from sfumato.mechanisms.noise import NoNoise, SecureNoise, SeededNoise

SOURCES = [SecureNoise, lambda: SeededNoise(7)]


@pytest.mark.parametrize("make", SOURCES)
def test_gaussian_is_standard_normal_and_no_other_scale(make):
    accept_only_unit_scale(make().gaussian(200_000, 1.0))


def test_noise_std_scales():
    accept_only_unit_scale(SeededNoise(1).gaussian((500, 400), 12.5).ravel() / 12.5)


def _chi_square(draws: np.ndarray, edges: np.ndarray) -> float:
    counts = np.histogram(draws, bins=np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    expected = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]]))) * draws.size
    return float(stats.chisquare(counts, expected).pvalue)


def test_every_region_has_its_share():
    """Fine bins with the layers' edges among them: a wrong layer shows, a wrong tail too."""
    draws = SeededNoise(2).gaussian(4_000_000, 1.0)
    inner = np.unique(np.concatenate([np.linspace(-3.5, 3.5, 141), door._WIDTH[1::16], -door._WIDTH[1::16]]))
    edges = np.concatenate([[-4.2, -3.8], inner[np.abs(inner) < 3.6], [3.8, 4.2]])
    assert _chi_square(draws, edges) > FALSE_ALARM


@pytest.mark.slow
def test_law_of_two_hundred_million_draws():
    edges = np.concatenate([-door._WIDTH[1:240:4], [0], door._WIDTH[1:240:4][::-1], [3.8, 4.2, 4.6, -3.8, -4.2, -4.6]])
    edges = np.unique(np.round(edges, 12))
    counts = np.zeros(edges.size + 1)
    source, block = SecureNoise(), 2_000_000
    for _ in range(100):
        counts += np.bincount(np.searchsorted(edges, source.gaussian(block, 1.0)), minlength=edges.size + 1)
    expected = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]]))) * block * 100
    assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM


def test_ziggurat_layers_have_equal_area():
    """Each layer but the base: width times height; the base: rectangle plus tail. From first principles."""
    area = door._LAYER_AREA
    heights = door._TOP - door._BOTTOM
    np.testing.assert_allclose(door._WIDTH[1:-1] * heights[1:-1], area, rtol=1e-9)
    # the top layer closes at the density's maximum, so the constants belong together
    assert door._WIDTH[-1] * (1 - door._BOTTOM[-1]) == pytest.approx(area, rel=1e-6)
    tail = stats.norm.sf(door._TAIL_START) * np.sqrt(2 * np.pi)
    base = door._TAIL_START * np.exp(-(door._TAIL_START**2) / 2) + tail
    assert base == pytest.approx(area, rel=1e-9)


def test_neighbouring_draws_are_independent():
    draws = SeededNoise(3).gaussian(1_000_000, 1.0)
    bound = stats.norm.isf(FALSE_ALARM / 20) / np.sqrt(draws.size)
    for lag in (1, 2, 3, 255, 256, door._BLOCK - 1, door._BLOCK, door._BLOCK + 1):
        assert abs(np.mean(draws[:-lag] * draws[lag:])) < bound
        assert abs(np.mean(np.sign(draws[:-lag]) * draws[lag:])) < bound
        assert abs(np.mean((draws[:-lag] ** 2 - 1) * (draws[lag:] ** 2 - 1)) / 2) < bound


def test_sign_is_independent_of_magnitude():
    draws = SeededNoise(4).gaussian(1_000_000, 1.0)
    assert stats.ks_2samp(draws[draws > 0], -draws[draws < 0]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("probability", [1e-6, 0.005, 0.5, 0.999])
def test_bernoulli_has_its_probability(probability):
    n = 2_000_000
    hits = int(SeededNoise(5).bernoulli(n, probability).sum())
    assert stats.binomtest(hits, n, probability).pvalue > FALSE_ALARM
    for wrong in (probability * 2 / 3, min(probability * 1.5, 0.9995)):
        if n * abs(wrong - probability) > 1000:
            assert stats.binomtest(hits, n, wrong).pvalue < FALSE_ALARM


def test_certain_membership():
    assert SeededNoise(0).bernoulli(1000, 1).all()


def test_seed_repeats_and_says_so():
    first, second, other = (SeededNoise(s).gaussian(1000, 1.0) for s in (11, 11, 12))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert not SeededNoise(11).private
    assert SecureNoise().private


def test_secure_sources_differ():
    assert not np.array_equal(SecureNoise().gaussian(8, 1.0), SecureNoise().gaussian(8, 1.0))


def test_successive_draws_differ():
    source = SeededNoise(0)
    assert not np.array_equal(source.gaussian(100, 1.0), source.gaussian(100, 1.0))


@pytest.mark.parametrize("make", SOURCES)
def test_a_source_cannot_be_copied(make):
    """A copy would draw the same noise twice, and the difference of two releases would show the records."""
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="not picklable"):
            duplicate(make())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_draws_other_noise():
    source = SecureNoise()
    source.gaussian(4, 1.0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, source.gaussian(4, 1.0).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reading, 32))
    assert not np.array_equal(theirs, source.gaussian(4, 1.0))


@pytest.mark.parametrize("words", [1, 100, 50_000])
def test_hardening_6_a_snapshot_draws_other_noise(words):
    """A virtual machine that is resumed twice has every byte of its memory twice."""
    source, snapshot = SecureNoise(), SecureNoise()
    source.bits(5)
    snapshot._chain = source._chain  # the rest of the state is made anew from it
    theirs, ours = snapshot.bits(words), source.bits(words)
    assert (theirs != ours).mean() > 0.99
    assert (source.bits(words) != ours).mean() > 0.99


def test_what_a_source_keeps_does_not_tell_what_it_drew(monkeypatch):
    """Each stream has a key that no later state holds."""
    keys = []
    monkeypatch.setattr(SecureNoise, "_start", lambda _, key: keys.append(key))
    monkeypatch.setattr(SecureNoise, "_stream", lambda _, n: np.zeros(n, dtype=np.uint64))
    source = SecureNoise()
    source.bits(3 << 14)
    assert len(set(keys)) == len(keys) == 4
    assert source._chain not in keys


@pytest.mark.parametrize("noise_std", [0.0, -1.0, np.nan, np.inf])
def test_impossible_scale_is_refused(noise_std):
    with pytest.raises(ConfigError, match="noise_std"):
        SeededNoise(0).gaussian(3, noise_std)


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.1, np.nan])
def test_impossible_probability_is_refused(probability):
    with pytest.raises(ConfigError, match="probability"):
        SeededNoise(0).bernoulli(3, probability)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None, True])
def test_impossible_seed_is_refused(seed):
    with pytest.raises(ConfigError, match="seed"):
        SeededNoise(seed)


def test_shapes():
    source = SeededNoise(0)
    assert source.gaussian((), 1.0).shape == ()
    assert source.gaussian(0, 1.0).shape == (0,)
    assert source.gaussian((2, 0, 3), 1.0).shape == (2, 0, 3)
    assert source.gaussian((3, 2), 1.0).dtype == np.float64
    assert source.bernoulli(0, 0.5).shape == (0,)


def test_no_noise_is_zero_but_draws_who_is_in_a_batch():
    source = NoNoise()
    assert not source.gaussian(5, 1.0).any()
    assert not source.private
    assert 400 < source.bernoulli(1000, 0.5).sum() < 600
    assert not np.array_equal(source.normals(5), NoNoise().normals(5))


@pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(1), NoNoise()], ids=lambda s: type(s).__name__)
def test_normals_of_a_contribution_are_standard(source):
    draws = source.normals((500, 40))
    assert draws.shape == (500, 40)
    assert stats.kstest(draws.ravel(), "norm").pvalue > 1e-7


def test_threads_share_a_source_without_repeating_a_word():
    source = SecureNoise()
    words: list[np.ndarray] = []

    def draw():
        words.extend(source.bits(1000) for _ in range(50))

    threads = [threading.Thread(target=draw) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drawn = np.concatenate(words)
    assert drawn.size == 300_000
    assert np.unique(drawn).size == drawn.size
