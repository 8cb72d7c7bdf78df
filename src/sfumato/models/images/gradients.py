"""Histograms of oriented gradients of pictures: fixed features that a linear classifier does well on.

A public map of one picture at a time. Gradients of the picture and of it at half the size are shared among eight
orientations and pooled by overlapping triangular windows on a grid of cells; beside them the pooled picture itself; of
all, the square root. Reference: Dalal and Triggs 2005, with windows in place of block normalisation.
"""

from __future__ import annotations

import numpy as np

from sfumato.models.images.coefficients import ImageEncoder

_CELLS = 7
_ORIENTATIONS = 8
_LEAST_SIDE = 2  # pixels a cell
_SHARPNESS = 0.7  # how much of the gradient's length an orientation has to beat
_ROWS_AT_ONCE = 2048


def gradient_features(pictures: np.ndarray, encoder: ImageEncoder) -> np.ndarray:
    """Return features of pictures in [0, 1], moved to the encoder's reference pose and divided by their exposure.

    Args:
        pictures: shape (n, channels, height, width).
        encoder: of the pictures.

    Returns:
        Shape (n, f), float32, not negative. For 28 × 28 pictures of one channel f = 833.
    """
    if not len(pictures):
        return np.zeros((0, n_features(encoder)), dtype=np.float32)
    blocks = [
        _features(encoder.straightened(pictures[start : start + _ROWS_AT_ONCE])[0])
        for start in range(0, len(pictures), _ROWS_AT_ONCE)
    ]
    return np.concatenate(blocks)


def n_features(encoder: ImageEncoder) -> int:
    """Return f for pictures of this encoder."""
    channels, height, width = encoder.layout.picture
    return gradient_features(np.zeros((1, channels, height, width), dtype=np.float32), encoder).shape[1]


def _features(pictures: np.ndarray) -> np.ndarray:
    n, _, height, width = pictures.shape
    rows, columns = _windows(height), _windows(width)
    parts = [_pooled(pictures, rows, columns).reshape(n, -1)]
    grey = np.ascontiguousarray(pictures.mean(axis=1))
    parts.append(_oriented(grey, rows, columns))
    if min(height, width) >= 4:
        even = grey[:, : 2 * (height // 2), : 2 * (width // 2)]
        half = (even[:, ::2, ::2] + even[:, 1::2, ::2] + even[:, ::2, 1::2] + even[:, 1::2, 1::2]) / 4
        parts.append(_oriented(half, _windows(half.shape[1], len(rows)), _windows(half.shape[2], len(columns))))
    return np.sqrt(np.maximum(np.concatenate(parts, axis=1), 0.0))


def _oriented(pictures: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return pooled gradients by orientation, shape (n, orientations · cells)."""
    outside = np.pad(pictures, ((0, 0), (1, 1), (1, 1)))
    down = outside[:, 2:, 1:-1] - outside[:, :-2, 1:-1]
    right = outside[:, 1:-1, 2:] - outside[:, 1:-1, :-2]
    threshold = np.float32(_SHARPNESS) * np.hypot(down, right)
    pooled = []
    for k in range(_ORIENTATIONS):
        angle = np.pi * k / _ORIENTATIONS
        along = np.abs(np.float32(np.cos(angle)) * right + np.float32(np.sin(angle)) * down)
        along -= threshold
        np.maximum(along, 0, out=along)
        pooled.append(_pooled(along, rows, columns).reshape(len(pictures), -1))
    return np.concatenate(pooled, axis=1)


def _pooled(pictures: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return rows @ (pictures @ columns.T)


def _windows(size: int, cells: int | None = None) -> np.ndarray:
    """Return overlapping triangular windows of sum 1, shape (cells, size)."""
    cells = max(1, min(_CELLS, size // _LEAST_SIDE)) if cells is None else cells
    step = size / cells
    centres = (np.arange(cells) + 0.5) * step - 0.5
    weights = np.maximum(0.0, 1 - np.abs(np.arange(size) - centres[:, None]) / max(step, 1.0))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
