"""Pictures moved by affine maps and by smooth random fields. Pure functions of single pictures; nothing is estimated.

Coordinates are in pixels from the centre of the picture, x to the right and y downwards. Resampling is cubic
convolution (Keys 1981, a = −1/2) along one axis at a time, which an affine map without rotation allows.
"""

from __future__ import annotations

import numpy as np

POSE_PARTS = 5
_PADDING = 4
_FIELD_KNOTS = 6


def pose_limits(height: int, width: int) -> np.ndarray:
    """Return the largest absolute value of (x shift, y shift, shear, log x scale, log y scale), shape (5,), public."""
    return np.array([0.18 * width, 0.18 * height, 1.0, 0.9, 0.9])


def poses(pictures: np.ndarray) -> np.ndarray:
    """Return the pose of each picture from its first and second moments, within `pose_limits`.

    Centre of mass, shear that makes the second moments axis-parallel, and 0.7 times the logarithm of the standard
    deviations after the shear, against a seventh of the width and 5/28 of the height.

    Args:
        pictures: not negative, shape (n, height, width).

    Returns:
        (x shift, y shift, shear, log x scale, log y scale), shape (n, 5), float64; zeros for an empty picture.
    """
    _, height, width = pictures.shape
    y, x = _centred(height), _centred(width)
    by_row = pictures.sum(axis=2, dtype=np.float64)
    by_column = pictures.sum(axis=1, dtype=np.float64)
    mass = np.maximum(by_row.sum(axis=1), 1e-6)
    shift_x, shift_y = by_column @ x / mass, by_row @ y / mass
    from_x, from_y = x - shift_x[:, None], y - shift_y[:, None]
    xx = (by_column * from_x**2).sum(axis=1) / mass
    yy = (by_row * from_y**2).sum(axis=1) / mass
    # by rows first: one product with a matrix for all pictures
    xy = ((pictures @ x - shift_x[:, None] * by_row) * from_y).sum(axis=1) / mass
    shear = np.clip(xy / np.maximum(yy, 1.0), -1.0, 1.0)
    straight = np.maximum(xx - 2 * shear * xy + shear**2 * yy, 0.05)
    scale_x = 0.7 * np.log(np.sqrt(straight) * 7 / width)
    scale_y = 0.7 * np.log(np.sqrt(np.maximum(yy, 0.05)) * 5.6 / height)
    pose = np.stack([shift_x, shift_y, shear, scale_x, scale_y], axis=1)
    pose[by_row.sum(axis=1) <= 0] = 0.0
    limits = pose_limits(height, width)
    return np.clip(pose, -limits, limits)


def without_pose(pictures: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return each picture moved so that the pose becomes zero; empty outside. Shapes (n, height, width) and (n, 5)."""
    shift_x, shift_y, shear, log_x, log_y = pose.T
    scale_x, scale_y = np.exp(log_x), np.exp(log_y)
    return _resampled(pictures, (shift_y, scale_y), (shift_x, shear * scale_y, scale_x))


def with_pose(pictures: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return each picture moved from pose zero to the given one: the inverse map of `without_pose`."""
    shift_x, shift_y, shear, log_x, log_y = pose.T
    back_x, back_y = np.exp(-log_x), np.exp(-log_y)
    along_x = ((shear * shift_y - shift_x) * back_x, -shear * back_x, back_x)
    return _resampled(pictures, (-shift_y * back_y, back_y), along_x)


def elastic(pictures: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """Return each picture distorted by a smooth random field: normal displacements on 6 × 6 knots, cubic in between.

    Args:
        pictures: shape (n, channels, height, width); the channels of a picture are moved alike.
        size: standard deviation of the displacement at a knot, pixels.
        rng: a public stream.

    Reference: Simard, Steinkraus and Platt 2003, whose field is white noise smoothed by a Gaussian.
    """
    n, channels, height, width = pictures.shape
    rows, columns = _knots(height), _knots(width)
    fields = rows @ rng.normal(scale=size, size=(2, n, _FIELD_KNOTS, _FIELD_KNOTS)) @ columns.T
    down, right = np.repeat(fields.astype(np.float32), channels, axis=1)
    return _bilinear(pictures.reshape(-1, height, width), down, right).reshape(pictures.shape)


def _centred(size: int) -> np.ndarray:
    return np.arange(size) - (size - 1) / 2


def _cubic(distance: np.ndarray) -> np.ndarray:
    t = np.abs(distance)
    near = (1.5 * t - 2.5) * t * t + 1
    far = ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t < 1, near, np.where(t < 2, far, 0.0)).astype(np.float32)


def _resampled(
    pictures: np.ndarray, along_y: tuple[np.ndarray, np.ndarray], along_x: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return out[y, x] = picture[y₀ + y₁·y, x₀ + xᵧ·y + x₁·x] with per-picture coefficients, float32."""
    n, height, width = pictures.shape
    y, x = _centred(height).astype(np.float32), _centred(width).astype(np.float32)
    y0, y1 = (a.astype(np.float32)[:, None] for a in along_y)
    x0, xy, x1 = (a.astype(np.float32)[:, None] for a in along_x)
    centre = (height - 1) / 2
    rows = _cubic((y0 + y1 * y + centre)[:, :, None] - np.arange(height, dtype=np.float32))
    moved = np.matmul(rows, pictures.astype(np.float32, copy=False))
    padded = np.pad(moved, ((0, 0), (0, 0), (_PADDING, _PADDING)))
    place = (x0 + xy * y)[:, :, None] + x1[:, :, None] * x + np.float32((width - 1) / 2 + _PADDING)
    # places beyond the padding read its zeros
    np.clip(place, 1, width + 2 * _PADDING - 3, out=place)
    whole = np.floor(place)
    fraction = place - whole
    index = whole.astype(np.intp)
    result = np.zeros((n, height, width), dtype=np.float32)
    for tap in (-1, 0, 1, 2):
        result += _cubic(fraction - tap) * np.take_along_axis(padded, index + tap, axis=2)
    return result


def _knots(size: int) -> np.ndarray:
    """Return weights of the knots at each pixel, shape (size, knots)."""
    place = np.linspace(0, _FIELD_KNOTS - 1, size)
    return _cubic(place[:, None] - np.arange(_FIELD_KNOTS)).astype(np.float64)


def _bilinear(pictures: np.ndarray, down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return out[y, x] = picture[y + down, x + right], by linear interpolation; the edge is repeated outside."""
    n, height, width = pictures.shape
    padded = np.pad(pictures, ((0, 0), (0, 1), (0, 1)), mode="edge")
    y = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
    x = np.clip(np.arange(width) + right, 0, width - 1)
    top, left = np.floor(y).astype(np.intp), np.floor(x).astype(np.intp)
    from_top, from_left = y - top, x - left
    flat, row = padded.reshape(n, -1), width + 1
    corner = (top * row + left).reshape(n, -1)

    def pixel(offset: int) -> np.ndarray:
        return np.take_along_axis(flat, corner + offset, axis=1).reshape(n, height, width)

    upper = (1 - from_left) * pixel(0) + from_left * pixel(1)
    lower = (1 - from_left) * pixel(row) + from_left * pixel(row + 1)
    return (1 - from_top) * upper + from_top * lower
