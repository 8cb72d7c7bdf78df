"""The clip norm of a table's vectors: for rows as the released shares make them, whatever single simulated ones are."""

import numpy as np
import pytest

from sfumato.maths.constants import VECTORS
from sfumato.methods.tables.clip_norms import clip_norm_of, mean_square
from sfumato.methods.tables.features import Waves, level_features, number_features


def column(shares):
    features = number_features(np.asarray(shares), missing=False, waves=Waves(3, 0.83))
    return features.values * np.sqrt(features.weights), np.asarray(shares)


def at_variance_1(shares):
    """Features of single runs as long as those of other columns: a record of a rare one is a hundred times as long."""
    features = level_features(np.asarray(shares))
    return features.values * np.sqrt(0.4), np.asarray(shares)


ORDINARY = [column(np.full(40, 1 / 40)) for _ in range(6)]
NEARLY_CONSTANT = at_variance_1([0.5e-4, 1 - 1e-4, 0.5e-4])


def with_nearly_constant(place):
    columns = [*ORDINARY[:place], NEARLY_CONSTANT, *ORDINARY[place:]]
    return [entries for entries, _ in columns], [shares for _, shares in columns]


def test_the_mean_square_is_that_of_drawn_rows():
    vectors, shares = ([part[i] for part in ORDINARY] for i in range(2))
    rng = np.random.default_rng(0)
    rows = [entries[rng.choice(share.size, 4_000, p=share)] for entries, share in zip(vectors, shares, strict=True)]
    squares = sum((own**2).sum(axis=1) for own in rows)
    assert mean_square(vectors, shares) == pytest.approx(squares.mean(), rel=0.03)
    # orthonormal features: every column adds its weights
    assert mean_square(vectors, [3 * share for share in shares]) == pytest.approx(6, rel=1e-6)


def test_a_cell_that_hardly_a_row_has_moves_no_norm():
    """Its row is far longer than others."""
    longest = np.sqrt((NEARLY_CONSTANT[0] ** 2).sum(axis=1).max())
    assert longest > 50
    cases = [with_nearly_constant(place) for place in range(7)]
    cases += [(vectors, [share[::-1] for share in shares]) for vectors, shares in cases]
    norms = [clip_norm_of(*case, noisy=True) for case in cases]
    assert max(norms) < (1 + 1e-9) * min(norms)


def test_with_noise_the_norm_is_that_of_a_record_of_mean_length():
    vectors, shares = ([part[i] for part in ORDINARY] for i in range(2))
    assert clip_norm_of(vectors, shares, noisy=True) == pytest.approx(np.sqrt(6))
    assert clip_norm_of([0 * part for part in vectors], shares, noisy=True) == VECTORS.least_norm
    assert clip_norm_of([np.zeros((2, 0))], [np.ones(2)], noisy=False) == VECTORS.least_norm


def test_without_noise_nothing_is_clipped():
    vectors, shares = with_nearly_constant(0)
    longest = sum(float((entries**2).sum(axis=1).max()) for entries in vectors)
    assert clip_norm_of(vectors, shares, noisy=False) == pytest.approx(np.sqrt(longest))
    assert longest > 50**2
