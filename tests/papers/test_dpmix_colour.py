"""DPMix in colour, and Table II's printed baselines: shapes, filters, noise, and where a row's runs are."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from harness.papers import script

pytest.importorskip("torch")
as_published, baselines = script("dpmix", "as_published"), script("dpmix", "baselines")
discriminant, section = script("dpmix", "discriminant"), script("dpmix", "baseline_section")


def pictures(n):
    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(n, 3, 16, 16)).astype(np.uint8)
    shape = {"shape": x.shape[1:], "n_features": 768, "longest_norm": 20.0, "name": "cifar10"}
    return SimpleNamespace(x=x, y=np.arange(n) % 10, test_x=x[:20], test_y=np.arange(20) % 10, **shape)


@pytest.mark.parametrize("denoise", [False, True])
@pytest.mark.parametrize("cell", ["unit:inf:4", "projection:20:50", "unit-projection:20:50"])
def test_cells_in_colour_run(cell, denoise):
    found = as_published.run(pictures(40), cell, 1, 0, denoise=denoise)
    assert len(found["accuracy by epoch"]) == 1
    assert all(sigma >= 0 for sigma in found["sigma"])


def test_channels_are_filtered_apart():
    columns = np.random.default_rng(0).standard_normal((3 * 64, 2))
    made = discriminant.low_passed(columns, (3, 8, 8), 4.0)
    for i in range(3):
        own = slice(64 * i, 64 * (i + 1))
        np.testing.assert_allclose(made[own], discriminant.low_passed(columns[own], (8, 8), 4.0))


def test_a_projection_has_the_printed_noise():
    x = np.zeros((4_000, 100), np.float32)
    made, matrix, sigma = baselines.printed_projection(x, width=20, epsilon=10.0, delta=1e-5, seed=0)
    spectral = np.linalg.svd(matrix, compute_uv=False)[0]
    assert sigma == pytest.approx(spectral * math.sqrt(math.log(0.5e5) + 10) / 10, rel=1e-4)
    assert made.std() == pytest.approx(sigma, rel=0.01)


@pytest.mark.parametrize(
    ("row", "cell", "denoised"),
    [
        ("local perturbation epsilon=20", "unit:20:1", False),
        ("random projection 50 epsilon=10", "unit-projection:10:50", False),
        ("DPMix with denoising epsilon=10", "unit:10:64", True),
    ],
)
def test_a_row_of_table_2_has_its_own_runs(row, cell, denoised):
    found = {
        "unit:10:64, 10 epochs, seed 0": {"accuracy by epoch": [0.1, 0.8]},
        "unit:10:64, 10 epochs, denoised, seed 0": {"accuracy by epoch": [0.2, 0.7]},
        "unit:20:1, 1 epochs, seed 0": {"accuracy by epoch": [0.3]},
        "unit-projection:10:50, 1 epochs, seed 0": {"accuracy by epoch": [0.4]},
    }
    assert section._cell(row, section.READINGS["norms 1"], 64) == (cell, denoised)
    assert section.last_epochs(found, cell, denoised) == [{"u": 0.7, "-": 0.4, ":": 0.3}["u" if denoised else cell[4]]]
