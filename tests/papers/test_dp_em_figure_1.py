"""DP-EM's illustration: without noise and from enough points every method finds the three Gaussians."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

PAPERS = Path(__file__).parents[2] / "papers"


@pytest.fixture(scope="module")
def figure():
    sys.path[:0] = [str(PAPERS), str(PAPERS / "dp_em")]
    try:
        return import_module("figure_1")
    finally:
        del sys.path[:2]


@pytest.mark.slow
def test_the_three_gaussians_are_found_where_noise_is_small(figure):
    points = figure.drawn(20_000, 1)
    mixtures = figure.fitted(points, 90.0, 1)
    for mixture in mixtures.values():
        nearest = np.linalg.norm(mixture.means[:, None] - figure.MEANS, axis=2).min(axis=0)
        assert (nearest < 0.1).all()


def test_only_the_printed_form_is_marked_as_not_private(figure):
    names = figure.fitted(figure.drawn(300, 0), 1.0, 0)
    assert [name for name in names if "not private" in name] == ["as printed, zCDP, ε = 1: not private"]


def test_it_is_drawn(figure, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    points = figure.drawn(300, 0)
    figure.picture(points, figure.fitted(points, 1.0, 0), tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 10_000
