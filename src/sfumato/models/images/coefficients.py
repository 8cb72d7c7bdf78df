"""Images and what the closed-form model sees of them: pose, exposure, area, and cosine coefficients.

Every map here is public and works on one image at a time. An image x with values in [0, 1] has

    exposure  s = Σx² / Σx          how bright its lit part is
    area      a = (Σx)² / Σx²       how much of it is lit; ‖x/s‖² = a
    pose      shift, shear, log scales of its second moments (`sfumato.models.images.warps`), where images are posed

and its coefficients are the orthonormal cosine transform of x/s moved to the reference pose, low frequencies first.
Pose, log s and √a come along as a few more columns, so that samples get them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import fft

from sfumato.columns.kinds import Image, LevelKind
from sfumato.errors import ConfigError
from sfumato.models.images.warps import POSE_PARTS, pose_limits, poses, with_pose, without_pose
from sfumato.schema.schema import Schema

AREA_BINS = 32
_MOST_PIXELS = 4096
_LEAST_POSED = 8  # pixels a side: a smaller picture has no pose to speak of
_LEAST_LOW = 8
_LEAST_EXPOSURE = 0.05
# what a column weighs beside the coefficients ÷ √d, per unit: pixels ÷ side, shear, log scale; log s; √(a/d)
_SHIFT, _SHEAR, _SCALE, _EXPOSURE, _AREA = 0.3, 0.054, 0.072, 0.107, 0.2


@dataclass(frozen=True)
class ImageLayout:
    """The image column, and the label column if there is one.

    Attributes:
        image: name of the image column.
        kind: its kind.
        label: name of the label column, or None.
        n_classes: number of labels, or 1.
    """

    image: str
    kind: Image
    label: str | None
    n_classes: int

    @classmethod
    def of(cls, schema: Schema) -> ImageLayout:
        """Read the layout off a schema.

        Raises:
            ConfigError: more than one image column or one label column, or too many pixels.
        """
        images, levels = schema.of_kind(Image), schema.of_kind(LevelKind)
        others, labels = [name for name in schema.released if name not in images], list(levels)
        if len(images) != 1 or len(others) > 1 or others != labels:
            listed = ", ".join(f"{name!r} ({schema.columns[name].name})" for name in schema.released)
            raise ConfigError(
                "Expected one image column and at most one label column, categorical, ordinal or boolean, got "
                f"{listed}. Declare labels that are numbers categorical, with the list of their categories, and other "
                "columns identifier to leave them out."
            )
        ((image, kind),) = images.items()
        if np.prod(kind.shape) > _MOST_PIXELS:
            raise ConfigError(
                f"Expected images of at most {_MOST_PIXELS} values, got shape {list(kind.shape)} in {image!r}. "
                "Shrink the images first."
            )
        label = labels[0] if labels else None
        classes = 1 if label is None else levels[label].width
        return cls(image, kind, label, classes)

    @property
    def dimension(self) -> int:
        """Number of values d of an image."""
        return int(np.prod(self.kind.shape))

    @property
    def picture(self) -> tuple[int, int, int]:
        """Channels, height and width; a shape that is no picture is one row of values."""
        shape = self.kind.shape
        if len(shape) not in (2, 3):
            return 1, 1, self.dimension
        return (1 if len(shape) == 2 else shape[2]), shape[0], shape[1]

    @property
    def can_be_posed(self) -> bool:
        """Whether images are large enough to have a pose."""
        return min(self.picture[1:]) >= _LEAST_POSED

    def classes(self, rows: Mapping[str, Any]) -> np.ndarray:
        """Return the class of each row, shape (n,); `n_classes` of one without a label."""
        if self.label is None:
            return np.zeros(len(rows[self.image]), dtype=np.int64)
        return rows[self.label].astype(np.int64)

    def pictures(self, pixels: np.ndarray) -> np.ndarray:
        """Return images scaled to [0, 1], shape (n, channels, height, width), float32; what is not a number is 0."""
        flat = pixels.reshape(len(pixels), self.dimension).astype(np.float64)
        flat[np.isnan(flat)] = self.kind.lower
        # clamped before it is scaled: a huge pixel must not overflow
        np.clip(flat, self.kind.lower, self.kind.upper, out=flat)
        # bounds may lie further apart than the largest number
        unit = 1.0 if np.isfinite(self.kind.upper - self.kind.lower) else 0.5
        flat *= unit
        flat -= self.kind.lower * unit
        flat /= self.kind.upper * unit - self.kind.lower * unit
        channels, height, width = self.picture
        return flat.astype(np.float32).reshape(-1, height, width, channels).transpose(0, 3, 1, 2)

    def pixels(self, pictures: np.ndarray) -> np.ndarray:
        """Return pictures, shape (n, channels, height, width), as images in the schema's shape, values as they are."""
        # Arrow takes no other strides
        return np.ascontiguousarray(pictures.transpose(0, 2, 3, 1)).reshape(len(pictures), *self.kind.shape)

    def stored(self, pictures: np.ndarray) -> np.ndarray:
        """Return pictures in [0, 1], shape (n, channels, height, width), as images of the schema's dtype and bounds."""
        dtype = np.dtype(self.kind.dtype)
        whole = dtype.kind in "iu"
        limits = np.iinfo(dtype) if whole else np.finfo(dtype)
        # so written, bounds that are far apart do not overflow
        shares = self.pixels(pictures).astype(np.float64)
        pixels = self.kind.lower * (1 - shares) + self.kind.upper * shares
        pixels = np.clip(np.rint(pixels) if whole else pixels, float(limits.min), float(limits.max))
        return pixels.astype(dtype)


@dataclass(frozen=True, slots=True)
class Lit:
    """Exposure and area of some pictures.

    Attributes:
        exposure: s in [0.05, 1], shape (n,).
        area: a in [0, d], shape (n,).
    """

    exposure: np.ndarray
    area: np.ndarray

    @classmethod
    def of(cls, pictures: np.ndarray) -> Lit:
        """Measure pictures in [0, 1], first axis n."""
        flat = pictures.reshape(len(pictures), -1)
        total = flat.sum(axis=1, dtype=np.float64)
        squares = np.einsum("ij,ij->i", flat, flat, dtype=np.float64)
        some = squares > 0
        exposure = np.divide(squares, total, out=np.ones_like(total), where=some)
        area = np.divide(total**2, squares, out=np.zeros_like(total), where=some)
        return cls(np.clip(exposure, _LEAST_EXPOSURE, 1.0), np.clip(area, 0.0, flat.shape[1]))


def area_bins(area: np.ndarray, dimension: int) -> np.ndarray:
    """Return the bin of each area, of `AREA_BINS` of equal width in √(a/d)."""
    return np.clip(np.sqrt(area / dimension) * AREA_BINS, 0, AREA_BINS - 1).astype(np.intp)


@dataclass(frozen=True)
class ImageEncoder:
    """Images to vectors and back.

    Attributes:
        layout: the image column.
        reference: pose that images are moved to, shape (5,); None if images stay as they are.
    """

    layout: ImageLayout
    reference: np.ndarray | None = None

    @property
    def n_columns(self) -> int:
        """Number m of columns beside the coefficients: pose, if any, log exposure, √area."""
        return 2 + (0 if self.reference is None else POSE_PARTS)

    @cached_property
    def column_weights(self) -> np.ndarray:
        """What multiplies each column so that it weighs right beside the coefficients, shape (m,)."""
        _, height, width = self.layout.picture
        pose = [_SHIFT / width, _SHIFT / height, _SHEAR, _SCALE, _SCALE] if self.reference is not None else []
        d = self.layout.dimension
        return np.sqrt(d) * np.array([*pose, _EXPOSURE, _AREA / np.sqrt(d)])

    @cached_property
    def frequency(self) -> np.ndarray:
        """The larger of the two frequencies of each coefficient, non-decreasing, shape (d,); a row of values has 0."""
        return self._frequencies[self._order]

    @property
    def n_low(self) -> int:
        """Number of low-frequency coefficients: those below half the picture's larger side, at least below 8."""
        low = max(_LEAST_LOW, max(self.layout.picture[1:]) // 2)
        return int((self.frequency < low).sum())

    @cached_property
    def _frequencies(self) -> np.ndarray:
        channels, height, width = self.layout.picture
        if height == 1:
            return np.zeros(channels * width, dtype=np.intp)
        grid = np.maximum(*np.mgrid[:height, :width])
        return np.broadcast_to(grid, (channels, height, width)).ravel().astype(np.intp)

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self._frequencies, kind="stable")

    @property
    def _axes(self) -> tuple[int, ...]:
        # values in one row have no order that a frequency could mean anything in
        return (1, 2, 3) if self.layout.picture[1] > 1 else (1,)

    def straightened(self, pictures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pictures in [0, 1] moved to the reference pose ÷ exposure, same shape, and raw columns (n, m)."""
        lit = Lit.of(pictures)
        columns = [np.log(lit.exposure)[:, None], np.sqrt(lit.area)[:, None]]
        if self.reference is not None:
            channels, height, width = self.layout.picture
            pose = poses(pictures.sum(axis=1)) - self.reference
            columns.insert(0, pose)
            moved = without_pose(pictures.reshape(-1, height, width), np.repeat(pose, channels, axis=0))
            pictures = np.clip(moved, 0.0, 1.0).reshape(pictures.shape)
        exposure = lit.exposure.astype(np.float32)[:, None, None, None]
        return pictures / exposure, np.concatenate(columns, axis=1)

    def encode(self, pictures: np.ndarray) -> np.ndarray:
        """Return coefficients and weighted columns of pictures in [0, 1], shape (n, d + m), float64.

        The norm of the coefficients is at most √a before posing.
        """
        shares, columns = self.straightened(pictures)
        coefficients = np.asarray(fft.dctn(shares, axes=self._axes, norm="ortho")).reshape(len(shares), -1)
        coefficients = coefficients[:, self._order]
        return np.concatenate([coefficients, columns * self.column_weights], axis=1)

    def canonical(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the pictures of some coefficients, exposure 1 and reference pose, shape (n, c, h, w), float32."""
        ordered = np.empty(coefficients.shape, dtype=np.float32)
        ordered[:, self._order] = coefficients
        pictures = ordered.reshape(-1, *self.layout.picture)
        return np.asarray(fft.idctn(pictures, axes=self._axes, norm="ortho", overwrite_x=True))

    def columns(self, weighted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pose (or an array of no columns), exposure and area, each in its range, of weighted columns (n, m)."""
        columns = np.nan_to_num(weighted / self.column_weights)
        d = self.layout.dimension
        exposure = np.exp(np.clip(columns[:, -2], np.log(_LEAST_EXPOSURE), 0.0))
        area = np.clip(columns[:, -1], 0.0, np.sqrt(d)) ** 2
        limits = pose_limits(*self.layout.picture[1:])
        pose = columns[:, :-2]
        return (np.clip(pose, -2 * limits, 2 * limits) if pose.size else pose), exposure, area

    def posed(self, pictures: np.ndarray, pose: np.ndarray, outside: float) -> np.ndarray:
        """Return pictures at reference pose moved to their own pose; `outside` where the picture does not reach."""
        if self.reference is None:
            return pictures
        channels, height, width = self.layout.picture
        each = np.repeat(pose, channels, axis=0)
        flat = pictures.reshape(-1, height, width)
        covered = with_pose(np.ones_like(flat), each)
        return np.where(covered > 0.5, with_pose(flat, each), outside).reshape(pictures.shape)


def touches_border(pictures: np.ndarray, exposure: np.ndarray) -> np.ndarray:
    """Return whether any pixel of the outermost rows and columns is at least half as bright as the exposure, (n,)."""
    sides = (pictures[..., 0, :], pictures[..., -1, :], pictures[..., :, 0], pictures[..., :, -1])
    brightest = np.max([side.reshape(len(pictures), -1).max(axis=1) for side in sides], axis=0)
    return brightest >= exposure / 2
