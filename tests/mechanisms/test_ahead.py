"""Noise drawn ahead in a second thread: its law, its source, its end, and that timing changes nothing."""

import threading
import time

import numpy as np
import pytest

import sfumato.mechanisms.ahead as module
from harness.privacy import accept_only_unit_scale
from sfumato.errors import ConfigError, TrainingError
from sfumato.mechanisms.ahead import drawn_ahead
from sfumato.mechanisms.noise import NoNoise, SecureNoise, SeededNoise

SOURCES = [SecureNoise, lambda: SeededNoise(7)]


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(module, "_cores", lambda: 2)


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("sfumato-noise")]


def taken(make, size=50, draws=6, slow=lambda: None):
    """Noise of so many releases, with other draws from the door between them."""
    noise, found = make(), []
    with drawn_ahead(noise, size, draws) as ahead:
        for _ in range(draws):
            slow()
            found.append((ahead.gaussian(size, 2.0), ahead.bernoulli(20, 0.5), ahead.normals((3, 2))))
    return found


@pytest.mark.parametrize("make", SOURCES)
def test_it_has_the_stated_law_and_no_other_scale(make):
    draws = np.array([noise for noise, _, _ in taken(make, size=4000, draws=40)])
    accept_only_unit_scale(draws.ravel() / 2.0)
    # no two releases share their noise: correlations of 4,000 numbers, seven standard deviations
    correlations = np.corrcoef(draws)[~np.eye(40, dtype=bool)]
    assert np.abs(correlations).max() < 7 / np.sqrt(4000)


def test_timing_changes_nothing(monkeypatch):
    """A seed gives the same noise whichever thread is slow."""
    plain = taken(lambda: SeededNoise(3))
    late = taken(lambda: SeededNoise(3), slow=lambda: time.sleep(0.01))
    original = SeededNoise.normals

    def slow(self, shape):
        time.sleep(0.01)
        return original(self, shape)

    monkeypatch.setattr(SeededNoise, "normals", slow)
    slow_thread = taken(lambda: SeededNoise(3))
    monkeypatch.setattr(module, "_cores", lambda: 1)
    one_core = taken(lambda: SeededNoise(3))
    for other in (late, slow_thread, one_core):
        for one, two in zip(plain, other, strict=True):
            for a, b in zip(one, two, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make", SOURCES)
def test_the_second_thread_has_a_source_of_its_own(make, monkeypatch):
    threads = {}
    for kind in (SecureNoise, SeededNoise):
        original = kind.bits

        def watched(self, n, original=original):
            threads.setdefault(id(self), set()).add(threading.get_ident())
            return original(self, n)

        monkeypatch.setattr(kind, "bits", watched)
    noise = make()
    with drawn_ahead(noise, 100, 3) as ahead:
        for _ in range(3):
            ahead.normals(5)
            ahead.gaussian(100, 1.0)
    here = threading.get_ident()
    assert threads.pop(id(noise)) == {here}
    (second,) = threads.values()
    assert len(second) == 1
    assert here not in second


def test_sources_apart_are_independent():
    for noise in (SecureNoise(), SeededNoise(1), SeededNoise(2)):
        sources = [noise, noise.apart(), noise.apart()]
        assert all(type(source) is type(noise) for source in sources)
        draws = np.array([source.normals(4000) for source in sources])
        assert np.abs(np.corrcoef(draws)[np.triu_indices(3, 1)]).max() < 7 / np.sqrt(4000)
    one, other = SeededNoise(1).apart(), SeededNoise(2).apart()
    assert not np.array_equal(one.normals(10), other.normals(10))


def test_no_more_is_drawn_than_there_are_releases(monkeypatch):
    sizes, original = [], SeededNoise.normals

    def watched(self, shape):
        sizes.append(shape)
        return original(self, shape)

    monkeypatch.setattr(SeededNoise, "normals", watched)
    with drawn_ahead(SeededNoise(1), 30, 4) as ahead:
        for _ in range(4):
            ahead.gaussian((5, 6), 1.0)
        assert sizes == [30] * 4
        assert ahead.gaussian(30, 1.0).shape == (30,)  # drawn as it is asked for
        assert sizes == [30] * 4
    assert not workers()


def test_one_core_has_one_thread(monkeypatch):
    monkeypatch.setattr(module, "_cores", lambda: 1)
    with drawn_ahead(SecureNoise(), 30, 2) as ahead:
        draws = [ahead.gaussian(30, 1.0) for _ in range(3)]
        assert not workers()
    assert len({tuple(draw) for draw in draws}) == 3


def test_another_size_is_drawn_as_it_is_asked_for():
    with drawn_ahead(SeededNoise(1), 30, 2) as ahead:
        assert ahead.gaussian(7, 1.0).shape == (7,)
        assert ahead.gaussian(30, 1.0).shape == (30,)


def test_other_doors_are_left_alone():
    for noise in (NoNoise(1), object()):
        with drawn_ahead(noise, 30, 2) as ahead:
            assert ahead is noise
    secret = SecureNoise()
    with drawn_ahead(secret, 30, 0) as ahead:
        assert ahead is secret


def test_privacy_is_that_of_the_door():
    for noise in (SecureNoise(), SeededNoise(1)):
        with drawn_ahead(noise, 3, 1) as ahead:
            assert ahead.private == noise.private
            assert not ahead.silent


@pytest.mark.parametrize("std", [0.0, -1.0, float("nan")])
def test_a_wrong_scale_is_refused(std):
    with drawn_ahead(SeededNoise(1), 3, 1) as ahead, pytest.raises(ConfigError, match="noise_std"):
        ahead.gaussian(3, std)


def test_an_error_of_the_thread_is_one_clear_error(monkeypatch):
    def fails(self, shape):
        raise MemoryError("Unable to allocate 12.3 MiB")

    monkeypatch.setattr(SeededNoise, "normals", fails)
    with drawn_ahead(SeededNoise(1), 30, 4) as ahead, pytest.raises(TrainingError, match="Noise") as error:
        ahead.gaussian(30, 1.0)
    assert error.value.__context__ is None
    assert not workers()


def test_an_interrupted_fit_leaves_no_thread():
    def interrupted():
        with drawn_ahead(SeededNoise(1), 100_000, 50) as ahead:
            ahead.gaussian(100_000, 1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not workers()
