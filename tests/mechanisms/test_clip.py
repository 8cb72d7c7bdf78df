"""Clipping is total and never exceeds its bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sfumato.errors import ConfigError
from sfumato.mechanisms.contributions import SAFETY, clip_factors, clip_rows

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(0, 5), st.integers(0, 6)), elements=ANY_FLOAT),
    st.floats(1e-6, 1e6),
)
def test_any_input_comes_out_within_the_bound(vectors, clip_norm):
    clipped = clip_rows(vectors, clip_norm)
    assert clipped.shape == vectors.shape
    assert np.isfinite(clipped).all()
    assert (np.linalg.norm(clipped, axis=1) <= clip_norm).all()


@pytest.mark.parametrize("extreme", [1e308, 5e-324, 1e-200, 1e200])
def test_extreme_records_keep_their_direction(extreme):
    clipped = clip_rows(np.array([[extreme, -extreme, 0.0]]), 1.0)
    if extreme > 1:
        np.testing.assert_allclose(clipped, [[SAFETY / np.sqrt(2), -SAFETY / np.sqrt(2), 0]], rtol=1e-12)
    else:
        np.testing.assert_allclose(clipped, [[extreme * SAFETY, -extreme * SAFETY, 0.0]], rtol=1e-6, atol=5e-324)


@pytest.mark.parametrize(("clip_norm", "entry"), [(1e-300, 1e23), (1e-160, 1e163), (1e-15, 1e303), (1e300, 1e308)])
def test_extreme_ratios_stay_within_the_bound(clip_norm, entry):
    clipped = clip_rows(np.full((1, 5), entry), clip_norm)
    norm = np.linalg.norm(clipped / clip_norm)
    assert 0.9999 < norm <= 1


def test_one_bad_record_does_not_touch_the_others():
    good = np.array([[0.3, 0.4], [3.0, 4.0]])
    bad = np.array([[np.nan, 1.0], [np.inf, 0.0], [1e308, 1e308]])
    alone = clip_rows(good, 1.0)
    together = clip_rows(np.vstack([bad, good]), 1.0)
    np.testing.assert_array_equal(together[3:], alone)
    np.testing.assert_array_equal(together[:2], 0)


def test_a_record_is_clipped_alike_alone_and_in_any_batch():
    rows = np.random.default_rng(0).standard_normal((200, 7)) * 3
    batch = clip_rows(rows, 1.5)
    for i in range(200):
        np.testing.assert_array_equal(clip_rows(rows[i : i + 1], 1.5)[0], batch[i])


def test_a_record_is_clipped_alike_however_its_batch_lies_in_memory():
    """Column by column, norms would be added up in another order than those of a record alone."""
    rows = np.random.default_rng(1).standard_normal((500, 57))
    batch = clip_rows(np.asfortranarray(rows), 1.0)
    for i in range(500):
        np.testing.assert_array_equal(clip_rows(rows[i : i + 1], 1.0)[0], batch[i])


def test_short_records_are_only_shrunk_by_the_margin():
    np.testing.assert_allclose(clip_rows(np.array([[0.1, 0.2]]), 1.0), np.array([[0.1, 0.2]]) * SAFETY, rtol=1e-15)


def test_factors_of_impossible_norms_are_zero():
    np.testing.assert_array_equal(clip_factors(np.array([np.nan, np.inf]), 1.0), [0, 0])


@pytest.mark.parametrize("clip_norm", [0.0, -1.0, np.nan, np.inf])
def test_impossible_clip_norm_is_refused(clip_norm):
    with pytest.raises(ConfigError, match="clip_norm"):
        clip_rows(np.ones((1, 2)), clip_norm)
