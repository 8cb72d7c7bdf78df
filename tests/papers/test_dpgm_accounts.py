"""The accounts of papers/dpgm: the printed 1.74, what is wrong with it, and ours."""

import importlib.util
from pathlib import Path

import pytest

_PATH = Path(__file__).parents[2] / "papers" / "dpgm" / "accounts.py"


@pytest.fixture(scope="module")
def accounts():
    spec = importlib.util.spec_from_file_location("dpgm_accounts", _PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_printed_epsilon_is_reproduced(accounts):
    assert accounts.n_steps(20, 0.0017) == 11_780
    assert accounts.published(20) == pytest.approx(1.7424, abs=1e-3)


@pytest.mark.slow
def test_with_the_moment_of_a_gaussian_it_is_more(accounts):
    assert accounts.published(20, lemma_fixed=True) == pytest.approx(1.811, abs=2e-3)


@pytest.mark.parametrize(("clusters", "expected"), [(2, 0.924), (5, 1.445), (10, 2.101), (20, 3.117)])
def test_choosing_one_cluster_per_step_hides_nothing(accounts, clusters, expected):
    assert accounts.corrected(20, clusters=clusters) == pytest.approx(expected, abs=2e-3)


def test_all_clusters_at_once_cost_what_one_does(accounts):
    assert accounts.ours(20) == pytest.approx(0.6954, abs=1e-4)
    assert accounts.corrected(20, clusters=1) == pytest.approx(accounts.ours(20), rel=1e-3)
