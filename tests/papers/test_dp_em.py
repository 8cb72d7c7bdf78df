"""The compositions of papers/dp_em against the golden values of the paper's settings."""

import importlib.util
import math
from pathlib import Path

import pytest

_PATH = Path(__file__).parents[2] / "papers" / "dp_em" / "compositions.py"


@pytest.fixture(scope="module")
def compositions():
    spec = importlib.util.spec_from_file_location("dp_em_compositions", _PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FIGURE_3 = {"iterations": 10, "components": 3, "delta": 1e-4, "delta_i": 1e-8}
FIGURE_2 = {"iterations": 20, "components": 10, "delta": 1e-4, "delta_i": 1e-6}


@pytest.mark.parametrize(
    ("epsilon", "linear", "advanced", "zcdp", "moments"),
    [
        (0.1, 4274.5, 2205.4, 360.06, 669.08), (0.3, 1424.8, 743.0, 120.66, 120.66), (1, 427.4, 230.8, 36.858, 36.859),
        (2, 213.7, 120.8, 18.881, 18.890), (4, 106.9, 65.3, 9.864, 9.865),
    ],
)  # fmt: skip
def test_multipliers_of_figure_3(compositions, epsilon, linear, advanced, zcdp, moments):
    found = [
        compositions.published_multiplier(name, epsilon=epsilon, **FIGURE_3)
        for name in ("linear", "advanced", "zcdp", "moments")
    ]
    assert found == pytest.approx([linear, advanced, zcdp, moments], rel=5e-4)


@pytest.mark.parametrize(
    ("epsilon", "zcdp", "moments"), [(0.1, 881.97, 1638.9), (1, 90.284, 90.285), (4, 24.162, 24.164)]
)
def test_multipliers_of_figure_2(compositions, epsilon, zcdp, moments):
    found = [compositions.published_multiplier(name, epsilon=epsilon, **FIGURE_2) for name in ("zcdp", "moments")]
    assert found == pytest.approx([zcdp, moments], rel=1e-4)


def test_figure_2s_deltas_exceed_the_total(compositions):
    assert compositions.published_multiplier("advanced", epsilon=1.0, **FIGURE_2) is None
    assert compositions.published_multiplier("linear", epsilon=1.0, **FIGURE_2) is None


@pytest.mark.parametrize(
    ("iterations", "epsilon", "replace_one", "add_remove"),
    [
        (10, 0.1, 189.84, 134.24), (10, 0.3, 71.91, 50.85), (10, 1, 24.68, 17.45), (10, 2, 13.43, 9.499),
        (10, 4, 7.426, 5.251), (20, 0.1, 268.47, 189.84), (20, 1, 34.90, 24.68), (20, 4, 10.50, 7.426),
    ],
)  # fmt: skip
def test_noise_of_the_joint_release(compositions, iterations, epsilon, replace_one, add_remove):
    found = [
        compositions.joint_sum_std(iterations=iterations, epsilon=epsilon, delta=1e-4, replace_one=relation)
        for relation in (True, False)
    ]
    assert found == pytest.approx([replace_one, add_remove], rel=5e-4)


def test_the_conversion_of_zcdp(compositions):
    """Multiplier 3 at δ = 1e-5: ρ = 1/18 costs 1.6551."""
    assert compositions.zcdp_rho(1.6551, 1e-5) == pytest.approx(1 / 18, rel=1e-4)


def test_laplace_log_moment(compositions):
    assert compositions.laplace_log_moment(2.5, 1.0) == pytest.approx(1.96277247, abs=5e-9)


def test_the_log_moment_is_the_integral_it_stands_for(compositions):
    """E exp(λL) of Laplace noise, by a sum over a fine grid."""
    step, order, epsilon = 1e-4, 3.0, 0.7
    total = 0.0
    for i in range(-400_000, 400_000):
        x = (i + 0.5) * step
        loss = epsilon * (abs(x - 1) - abs(x))
        total += 0.5 * epsilon * math.exp(-epsilon * abs(x) + order * loss) * step
    assert compositions.laplace_log_moment(order, epsilon) == pytest.approx(math.log(total), rel=1e-4)


def test_every_composition_costs_less_than_the_one_before_it(compositions):
    for scenario in ("GGG", "LLG"):
        found = [
            compositions.published_multiplier(name, scenario, epsilon=1.0, **FIGURE_3)
            for name in ("linear", "advanced", "zcdp", "pld")
        ]
        assert found == sorted(found, reverse=True)
