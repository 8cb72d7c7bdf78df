"""DPMix's printed samplings: who joins what, the accounts of their noise, and what is written down of them."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from harness.papers import PAPERS, script

pytest.importorskip("torch")
as_published, mixed = script("dpmix", "as_published"), script("dpmix", "mixed")
EXPECTED = json.loads((PAPERS / "dpmix" / "expected.json").read_text(encoding="utf-8"))
WRITTEN = EXPECTED["accounts"]
UNIT_NORMS = {name: run for name, run in EXPECTED["by_degree"]["found"].items() if name.startswith("unit")}


def test_every_record_joins_as_many_mixtures_as_the_degree():
    rows = np.eye(50, dtype=np.float32)
    made, labels = as_published.fixed_mixtures(rows, rows, 5, 0.0, 0)
    assert np.allclose(made.sum(axis=0), 1.0)
    assert set(np.unique(made.round(6))) == {0.0, np.float32(0.2).round(6)}
    assert np.array_equal(made, labels)
    assert len(set((made > 0).sum(axis=1))) > 1  # mixtures hold different numbers of records


def test_noise_of_fixed_mixtures_has_the_standard_deviation_asked_for():
    rows = np.zeros((200, 100), np.float32)
    made, _ = as_published.fixed_mixtures(rows, rows, 3, 0.7, 0)
    assert made.std() == pytest.approx(0.7, rel=0.02)


@pytest.mark.parametrize("cell", ["fixed:10:64", "fixed:20:64"])
def test_the_noise_is_what_theorem_3_asks_for(cell):
    sampling, epsilon, degree = cell.split(":")
    sigma = as_published.fixed_noise(float(epsilon), int(degree), 60_000, 1 / 60_000)
    assert sigma == pytest.approx(WRITTEN[cell]["sigma"][0], rel=1e-3)
    found = as_published.accounts(sampling, sigma, int(degree), 60_000, 1 / 60_000)
    assert found["Theorem 3"] <= float(epsilon)
    assert found["true"] == pytest.approx(WRITTEN[cell]["epsilon"]["true"], rel=1e-3)
    assert found["true"] < found["Theorem 3"]


@pytest.mark.parametrize("cell", ["subsets:10:64", "subsets:20:64"])
def test_the_account_of_subsets_is_below_theorem_1(cell):
    found = as_published.accounts("subsets", WRITTEN[cell]["sigma"][0], 64, 60_000, 1 / 60_000)
    assert found["Theorem 1, corrected"] == pytest.approx(WRITTEN[cell]["epsilon"]["Theorem 1, corrected"], rel=2e-3)
    assert found["true"] == pytest.approx(WRITTEN[cell]["epsilon"]["true"], rel=2e-3)


def test_replacing_a_record_is_one_gaussian_where_its_mixtures_are_fixed():
    """By the curve itself: a distance of √(786·64)/(64·σ)."""
    from scipy.stats import norm

    sigma, delta = 2.0, 1e-5
    mean = math.sqrt(786 * 64) / (64 * sigma)
    epsilon = as_published.accounts("fixed", sigma, 64, 60_000, delta)["true"]
    curve = norm.cdf(mean / 2 - epsilon / mean) - math.exp(epsilon) * norm.cdf(-mean / 2 - epsilon / mean)
    assert curve == pytest.approx(delta, rel=1e-3)


def test_where_norms_are_1_the_theorem_asks_for_the_same_and_the_true_epsilon_is_larger():
    """Δ² is what Theorem 1 fixes; two records of norm 1 without negative entries are √2 apart, and the paper says 1."""
    name, run = next(iter(UNIT_NORMS.items()))
    degree = int(name.partition(",")[0].split(":")[2])
    found = as_published.accounts("unit", run["sigma"][1], degree, 60_000, 1 / 60_000)
    assert found["Theorem 1, corrected"] == pytest.approx(10, rel=5e-3)
    assert found == pytest.approx(run["epsilon"], rel=5e-3)
    assert found["exact, the paper's distances"] < 10 < found["true"]


@pytest.mark.parametrize("unit_norms", [False, True])
def test_both_readings_have_one_squared_distance(unit_norms):
    images = SimpleNamespace(x=np.zeros((2_000, 28, 28)), longest_norm=17.0, n_features=784)
    pixels, labels = mixed.published_noise(images, 64, 10.0, unit_norms=unit_norms)
    longest = 17.0 if unit_norms else 1.0
    squares = (1.0, 1.0) if unit_norms else (784, 10)
    one = mixed.published_noise(images, 64, 10.0)[0]
    squared = squares[0] * (longest / pixels) ** 2 + squares[1] / labels**2
    assert squared == pytest.approx(794 / one**2)


def test_it_says_that_it_is_not_private():
    assert as_published.NOT_PRIVATE.startswith("NOT PRIVATE")
