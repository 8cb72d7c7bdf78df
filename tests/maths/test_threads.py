"""Linear algebra has one thread while the library works, as many as before afterwards, and more where that is asked."""

import pytest
import scipy.linalg  # noqa: F401 - it brings its own linear algebra
from threadpoolctl import threadpool_info, threadpool_limits

import sfumato
from fixtures import tables
from sfumato.errors import ConfigError
from sfumato.maths.threads import VARIABLE, few_threads


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        yield


def test_there_is_one_while_a_function_runs_and_as_many_as_before_afterwards():
    assert few_threads(threads)() == {1}
    assert threads() == {2}
    with pytest.raises(ZeroDivisionError):
        few_threads(lambda: 1 / 0)()
    assert threads() == {2}


def test_a_function_within_another_leaves_it_limited():
    inner = few_threads(threads)
    assert few_threads(lambda: (inner(), threads()))() == ({1}, {1})


def test_the_environment_gives_threads_back(monkeypatch):
    monkeypatch.setenv(VARIABLE, "2")
    assert few_threads(threads)() == {2}


@pytest.mark.parametrize("text", ["0", "-1", "two", "", "1.5", "²"])
def test_other_words_are_refused(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigError, match="SFUMATO_THREADS to be a whole number of at least 1"):
        few_threads(threads)()


def test_fits_samples_and_answers_have_one(monkeypatch):
    seen = []
    method = sfumato.MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=200)
    release = method.fit(tables.frame(400), schema=tables.schema(), progress=lambda _: seen.append(threads()))
    assert seen
    monkeypatch.setattr(type(release), "batches", lambda *_, **__: seen.append(threads()) or iter(()))
    with pytest.raises(Exception):  # noqa: B017, PT011 - no rows are drawn here
        release.sample(10)
    monkeypatch.setattr(type(release), "_questions", property(lambda _: seen.append(threads())))
    with pytest.raises(AttributeError):
        release.mean("age")
    assert len(seen) >= 4
    assert all(found == {1} for found in seen)
    assert threads() == {2}
