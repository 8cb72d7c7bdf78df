"""Moved pictures, against scipy's and against what the moves mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from sfumato.models.images.warps import POSE_PARTS, elastic, pose_limits, poses, with_pose, without_pose

HEIGHT, WIDTH = 28, 24


def bump(centre=(0.0, 0.0), sizes=(2.5, 3.0), shear=0.0, height=HEIGHT, width=WIDTH):
    """A smooth blob, shape (1, height, width); centre is (x, y) from the middle, sizes are (x, y)."""
    y = np.arange(height)[:, None] - (height - 1) / 2 - centre[1]
    x = np.arange(width) - (width - 1) / 2 - centre[0] - shear * y
    return np.exp(-((x / sizes[0]) ** 2 + (y / sizes[1]) ** 2) / 2)[None].astype(np.float32)


small_poses = st.tuples(
    st.floats(-2, 2), st.floats(-2, 2), st.floats(-0.4, 0.4), st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)
).map(lambda parts: np.array([parts]))


class TestPoses:
    def test_a_centred_blob_has_none_but_its_size(self):
        pose = poses(bump(sizes=(3.0, 4.0)))[0]
        np.testing.assert_allclose(pose[:3], 0, atol=1e-6)
        np.testing.assert_allclose(pose[3], 0.7 * np.log(3.0 * 7 / WIDTH), atol=0.01)
        np.testing.assert_allclose(pose[4], 0.7 * np.log(4.0 * 5.6 / HEIGHT), atol=0.01)

    def test_a_moved_and_sheared_blob_has_that_pose(self):
        pose = poses(bump(centre=(1.5, -2.0), sizes=(2.5, 2.5), shear=0.5))[0]
        np.testing.assert_allclose(pose[:3], [1.5, -2.0, 0.5], atol=0.02)

    def test_brightness_does_not_matter(self):
        blob = bump(centre=(1, 2), shear=0.2)
        np.testing.assert_allclose(poses(blob * 0.1), poses(blob), rtol=1e-4, atol=1e-6)

    def test_an_empty_picture_has_none(self):
        assert not poses(np.zeros((3, 9, 8), np.float32)).any()

    @given(seed=st.integers(0, 10**6), power=st.floats(0, 40), scale=st.sampled_from([1.0, 1e-3, 1e-20, 1e-45]))
    @settings(max_examples=40, deadline=None)
    def test_any_picture_is_within_the_range(self, seed, power, scale):
        rng = np.random.default_rng(seed)
        height, width = rng.integers(1, 20, 2)
        pictures = (rng.random((4, height, width)) ** power * scale).astype(np.float32)
        pose = poses(pictures)
        assert pose.shape == (4, POSE_PARTS)
        assert (np.abs(pose) <= pose_limits(height, width)).all()

    def test_moved_to_pose_zero_little_is_left_of_it(self):
        blob = bump(centre=(2, -3), sizes=(2.5, 4.0), shear=0.5)
        before = poses(blob)
        after = poses(np.clip(without_pose(blob, before), 0, 1))
        np.testing.assert_allclose(after[0, :3], 0, atol=0.05)
        # scales are brought 0.7 of the way
        np.testing.assert_allclose(after[0, 3:], 0.3 * before[0, 3:], atol=0.05)


class TestMoves:
    @given(pose=small_poses)
    @settings(max_examples=40, deadline=None)
    def test_there_and_back(self, pose):
        blob = bump()
        np.testing.assert_allclose(without_pose(with_pose(blob, pose), pose), blob, atol=0.03)
        np.testing.assert_allclose(with_pose(without_pose(blob, pose), pose), blob, atol=0.03)

    @given(pose=small_poses)
    @settings(max_examples=40, deadline=None)
    def test_they_are_the_affine_map_that_scipy_makes(self, pose):
        blob = bump(centre=(1, -1), shear=0.2)
        shift_x, shift_y, shear, log_x, log_y = pose[0]
        scale_x, scale_y = np.exp(log_x), np.exp(log_y)
        # rows first, as scipy counts: (y, x) of the output to (y, x) of the input
        matrix = np.array([[scale_y, 0], [shear * scale_y, scale_x]])
        middle = (np.array([HEIGHT, WIDTH]) - 1) / 2
        moved = [
            (without_pose, matrix, np.array([shift_y, shift_x])),
            (with_pose, np.linalg.inv(matrix), -np.linalg.inv(matrix) @ [shift_y, shift_x]),
        ]
        for move, linear, shift in moved:
            expected = ndimage.affine_transform(blob[0], linear, middle + shift - linear @ middle, order=3)
            assert np.abs(move(blob, pose)[0] - expected).max() < 0.02

    def test_whole_pixels_are_moved_exactly(self):
        rng = np.random.default_rng(0)
        picture = rng.random((1, 9, 10), dtype=np.float32)
        moved = without_pose(picture, np.array([[2.0, -1.0, 0, 0, 0]]))
        np.testing.assert_allclose(moved[0, 1:, :-2], picture[0, :-1, 2:], atol=1e-6)
        assert not moved[0, 0].any()
        assert not moved[0, :, -2:].any()

    def test_pose_zero_changes_nothing(self):
        picture = np.random.default_rng(0).random((3, 9, 10), dtype=np.float32)
        for move in (with_pose, without_pose):
            np.testing.assert_allclose(move(picture, np.zeros((3, POSE_PARTS))), picture, atol=1e-6)

    def test_each_picture_has_its_own(self):
        pictures = np.concatenate([bump(), bump(centre=(2, 1)), bump(shear=0.4)])
        pose = np.random.default_rng(0).normal(size=(3, POSE_PARTS)) * [2, 2, 0.3, 0.2, 0.2]
        apart = [with_pose(pictures[i : i + 1], pose[i : i + 1])[0] for i in range(3)]
        np.testing.assert_array_equal(with_pose(pictures, pose), apart)

    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=30, deadline=None)
    def test_the_farthest_poses_stay_finite(self, seed):
        rng = np.random.default_rng(seed)
        height, width = rng.integers(2, 20, 2)
        pose = rng.choice([-2, -1, 0, 1, 2], (6, POSE_PARTS)) * pose_limits(height, width)
        for move in (with_pose, without_pose):
            moved = move(np.ones((6, height, width), np.float32), pose)
            assert np.isfinite(moved).all()
            assert np.abs(moved).max() < 2  # cubic convolution overshoots a little along each axis


class TestElastic:
    def test_size_zero_changes_nothing(self):
        pictures = np.random.default_rng(0).random((4, 2, 9, 10), dtype=np.float32)
        np.testing.assert_allclose(elastic(pictures, 0.0, np.random.default_rng(1)), pictures, atol=1e-6)

    def test_channels_move_alike_and_pictures_do_not(self):
        one = np.random.default_rng(0).random((12, 12), dtype=np.float32)
        moved = elastic(np.broadcast_to(one, (3, 2, 12, 12)), 1.0, np.random.default_rng(1))
        np.testing.assert_array_equal(moved[:, 0], moved[:, 1])
        assert np.abs(moved[0] - moved[1]).max() > 0.1

    def test_values_stay_in_range(self):
        pictures = np.random.default_rng(0).random((20, 1, 16, 16), dtype=np.float32)
        moved = elastic(pictures, 20.0, np.random.default_rng(1))
        assert moved.min() >= -1e-6
        assert moved.max() <= 1 + 1e-6

    def test_displacements_have_mean_zero_and_the_size_asked_for(self):
        size, n = 0.5, 2000
        ramp = np.arange(28, dtype=np.float32)
        for pictures in (np.broadcast_to(ramp[:, None], (28, 28)), np.broadcast_to(ramp, (28, 28))):
            moved = elastic(np.broadcast_to(pictures, (n, 1, 28, 28)), size, np.random.default_rng(0))
            # inside, where the edge is far; a ramp reads the displacement off
            shift = (moved - pictures)[:, 0, 6:22, 6:22]
            assert abs(shift.mean()) < 5 * size / np.sqrt(n)
            # halfway between knots cubic convolution averages normals: 0.8 of the spread along each axis
            spread = shift.std(axis=0)
            assert spread.max() < 1.05 * size
            assert spread.min() > 0.6 * size
            # neighbours move together
            assert np.corrcoef(shift[:, 5, 5], shift[:, 5, 6])[0, 1] > 0.95


@pytest.mark.parametrize("move", [with_pose, without_pose])
def test_no_pictures(move):
    assert move(np.zeros((0, 8, 9), np.float32), np.zeros((0, POSE_PARTS))).shape == (0, 8, 9)
