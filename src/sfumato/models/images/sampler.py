"""Samples of class-conditional Gaussians over coefficients of images: pictures as stored, and their labels."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.columns.kinds import Image
from sfumato.errors import ReleaseError
from sfumato.maths.arrays import require_array, require_shares
from sfumato.models.images.coefficients import AREA_BINS, ImageEncoder, ImageLayout, area_bins
from sfumato.models.images.gradients import gradient_features, n_features
from sfumato.models.images.warps import POSE_PARTS, elastic
from sfumato.schema.schema import Schema

_LARGEST = 1e6  # coefficients beyond are cut: a stranger wrote them
_FARTHEST = 4.0  # intensities ÷ exposure beyond are cut before pictures are moved
_PIXELS = 28  # distortions are in pixels of pictures of this side
_JITTER = np.array([0.3, 0.3, 0.08, 0.06, 0.06])
_WIDEST = 4.0
_REDRAWS = 8
_BRIGHTEST, _LEAST_LIT = 1.5, 0.1


class ImagePortrait:
    """Class-conditional Gaussians over the leading axes of coefficients and over pose, exposure and area.

    A sample is drawn along the axes, the rest of its coefficients independently, and shown where the sample is lit; its
    picture is moved to its pose, and its values are replaced, in the order of their size, by the profile of its area,
    times its exposure.

    Parameters, with k classes, d values, l low-frequency coefficients, q axes and m columns: class_shares (k,), means
    (k, d + m), axes (l, q), factors (k, q + m, q + m), residual_std (d,), profiles (32, d), and reference (5,) where
    images are posed. A release for training adds teacher_coefficients (f, k) and teacher_offsets (k,): a classifier on
    f fixed features of a picture; samples that it would label otherwise are drawn again.

    Settings: image, label; and for pictures to learn from spread (factor of the Gaussian's standard deviations),
    elastic (pixels in 28) and jitter (of poses).
    """

    name = "image_portrait"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        self._image, self._label = settings.get("image"), settings.get("label")
        # a stranger's settings may name anything, a list among them
        names = {str(name) for name in (self._image, self._label) if name is not None}
        if not isinstance(schema.columns.get(str(self._image)), Image) or names != set(schema.released):
            raise ReleaseError("Expected the release's image and label to be the columns of its schema.")
        layout = ImageLayout.of(schema)
        self._layout, d = layout, layout.dimension
        self._encoder = ImageEncoder(layout, _reference(parameters, layout))
        self.class_column: str | None = self._label
        self._shares = require_shares(parameters, "class_shares")
        if self._shares.size != layout.n_classes:
            raise ReleaseError("Expected one class share per label in the release.")
        k, m = layout.n_classes, self._encoder.n_columns
        self._means = require_array(parameters, "means", np.float64, (k, d + m))
        self._axes = require_array(parameters, "axes", np.float64, (self._encoder.n_low, None))
        size = self._axes.shape[1] + m
        self._factors = require_array(parameters, "factors", np.float64, (k, size, size))
        self._residual_std = require_array(parameters, "residual_std", np.float64, (d,))
        self._profiles = require_array(parameters, "profiles", np.float64, (AREA_BINS, d))
        self._teacher = _teacher(parameters, self._encoder)
        self._spread = _setting(settings, "spread", 1.0)
        self._elastic = _setting(settings, "elastic", 0.0)
        self._jitter = _setting(settings, "jitter", 0.0)
        self.width = 3 * d + size
        self.possible = np.ones(k, dtype=bool)

    def given(self, codes: Mapping[str, float]) -> ImagePortrait:
        """Return the sampler of one class: the label is all that can be given."""
        chosen = copy.copy(self)
        if self._label is not None and self._label in codes:
            chosen._shares = (np.arange(self._shares.size) == int(codes[self._label])).astype(np.float64)
        return chosen

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n images of the schema's dtype and shape, within its bounds, and their label codes."""
        if classes is None:
            classes = rng.choice(self._shares.size, size=n, p=self._shares)
        with np.errstate(all="ignore"):  # a stranger's arrays may overflow anywhere; what comes of it is put in bounds
            pictures = self._pictures(classes, rng)
            if self._teacher is not None:
                self._agree(pictures, classes, rng)
        rows = {str(self._image): self._layout.stored(pictures)}
        if self._label is not None:
            rows[str(self._label)] = classes.astype(np.int32)
        return rows

    def _agree(self, pictures: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> None:
        """Redraw, in place and a few times, pictures that the teacher would give another label than their class."""
        assert self._teacher is not None
        coefficients, offsets = self._teacher
        for _ in range(_REDRAWS):
            labels = np.nan_to_num(gradient_features(pictures, self._encoder) @ coefficients + offsets).argmax(axis=1)
            other = np.flatnonzero(labels != classes)
            if not other.size:
                return
            pictures[other] = self._pictures(classes[other], rng)

    def _pictures(self, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return pictures in [0, 1], shape (n, c, h, w)."""
        d, q = self._layout.dimension, self._axes.shape[1]
        normals = rng.standard_normal((len(classes), self._factors.shape[1])) * self._spread
        rest = rng.standard_normal((len(classes), d), dtype=np.float32) * self._residual_std
        for k in np.unique(classes):
            members = classes == k
            normals[members] = normals[members] @ self._factors[k].T
        coefficients = self._means[classes, :d].astype(np.float32)
        coefficients[:, : self._axes.shape[0]] += normals[:, :q] @ self._axes.T
        columns = self._means[classes, d:] + normals[:, q:]
        coefficients = np.clip(np.nan_to_num(coefficients), -_LARGEST, _LARGEST)
        pose, exposure, area = self._encoder.columns(np.nan_to_num(columns))
        pictures = np.clip(self._encoder.canonical(coefficients), -_FARTHEST, _FARTHEST)
        pictures += self._texture(rest, pictures)
        _, height, width = self._layout.picture
        if self._elastic and self._layout.can_be_posed:
            pictures = elastic(pictures, self._elastic * min(height, width) / _PIXELS, rng)
        if self._jitter and pose.size:
            pose += self._jitter * _JITTER * [width / _PIXELS, height / _PIXELS, 1, 1, 1] * rng.normal(size=pose.shape)
        pictures = self._encoder.posed(pictures, pose, outside=-_FARTHEST)
        flat = pictures.reshape(len(pictures), -1)
        order = np.argsort(-flat, axis=1, kind="stable")
        shown = self._profiles[area_bins(area, d)] * exposure[:, None]
        np.put_along_axis(flat, order, np.clip(np.nan_to_num(shown), 0.0, 1.0).astype(np.float32), axis=1)
        return flat.reshape(pictures.shape)

    def _texture(self, rest: np.ndarray, pictures: np.ndarray) -> np.ndarray:
        """Return what the axes leave out, where pictures are lit: as much of it in all as if it were everywhere."""
        texture = self._encoder.canonical(np.clip(np.nan_to_num(rest), -_LARGEST, _LARGEST))
        lit = np.clip(pictures, 0.0, _BRIGHTEST)
        size = np.sqrt(np.mean(lit.reshape(len(lit), -1) ** 2, axis=1))
        texture *= lit / np.maximum(size, _LEAST_LIT)[:, None, None, None]
        return np.clip(texture, -_FARTHEST, _FARTHEST)


def _reference(parameters: Mapping[str, np.ndarray], layout: ImageLayout) -> np.ndarray | None:
    if "reference" not in parameters:
        return None
    if not layout.can_be_posed:
        raise ReleaseError("Expected images that can have a pose in a release with a reference pose.")
    return require_array(parameters, "reference", np.float64, (POSE_PARTS,))


def _teacher(parameters: Mapping[str, np.ndarray], encoder: ImageEncoder) -> tuple[np.ndarray, np.ndarray] | None:
    if "teacher_offsets" not in parameters:
        return None
    k = encoder.layout.n_classes
    coefficients = require_array(parameters, "teacher_coefficients", np.float64, (n_features(encoder), k))
    return coefficients, require_array(parameters, "teacher_offsets", np.float64, (k,))


def _setting(settings: Mapping[str, Any], name: str, default: float) -> float:
    value = settings.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _WIDEST:
        raise ReleaseError(f"Expected {name} between 0 and {_WIDEST:g} in the release.")
    return float(value)
