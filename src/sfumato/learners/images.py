"""Class means and second moments of images, bought with four Gaussian releases.

    class counts                       G(σ)    one-hot(y)
    class sums                         G(σ)    one-hot(y) ⊗ x,        x clipped to C
    pooled second moment               G(σ)    zzᵀ,                   z = x − mean of its class, clipped to C'
    class second moments               G(σ)    one-hot(y) ⊗ uuᵀ,      u = z along the leading axes, clipped to C'

x is the image with pixels scaled to [0, 1] by the schema's bounds. C = √d/3 and C' = √d/4 are public: images fill
about a third of the cube's diagonal. Proofs: docs/proofs/gaussian_sum.md, docs/proofs/second_moment.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sfumato.data.engine import Rows
from sfumato.data.kinds import Image, LevelKind, n_levels
from sfumato.data.schema import Schema
from sfumato.errors import ConfigError
from sfumato.mechanisms.clip import clip_rows
from sfumato.mechanisms.queries import Noisy
from sfumato.models.gaussian import nearest_positive, shrink_spectrum, symmetric_noise_edge

_MOST_PIXELS = 4096
_ROWS_AT_ONCE = 4096
_SQRT2 = float(np.sqrt(2))


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
        images = [name for name in schema.released if isinstance(schema.columns[name], Image)]
        others = [name for name in schema.released if name not in images]
        labels = [name for name in others if isinstance(schema.columns[name], LevelKind)]
        if len(images) != 1 or len(others) > 1 or others != labels:
            raise ConfigError(
                "Expected one image column and at most one label column, categorical, ordinal or boolean, got "
                f"{', '.join(map(repr, schema.released))}. Declare the other columns as identifier to leave them out."
            )
        kind = schema.columns[images[0]]
        assert isinstance(kind, Image)
        if np.prod(kind.shape) > _MOST_PIXELS:
            raise ConfigError(
                f"Expected images of at most {_MOST_PIXELS} values, got shape {list(kind.shape)} in {images[0]!r}. "
                "Shrink the images first."
            )
        label = labels[0] if labels else None
        classes = 1 if label is None else n_levels(schema.columns[label])  # type: ignore[arg-type]
        return cls(images[0], kind, label, classes)

    @property
    def dimension(self) -> int:
        """Number of values of an image."""
        return int(np.prod(self.kind.shape))

    @property
    def clip_norm(self) -> float:
        """C = √d/3, for images scaled to [0, 1]."""
        return float(np.sqrt(self.dimension) / 3)

    @property
    def residual_clip_norm(self) -> float:
        """C' = √d/4, for images less the mean of their class."""
        return float(np.sqrt(self.dimension) / 4)

    def classes(self, rows: Rows) -> np.ndarray:
        """Return the class of each row, shape (n,)."""
        if self.label is None:
            return np.zeros(len(rows[self.image]), dtype=np.int64)
        return rows[self.label].astype(np.int64)

    def vectors(self, pixels: np.ndarray) -> np.ndarray:
        """Return images as vectors in [0, 1], shape (n, d), float64; a pixel that is not a number is 0."""
        flat = pixels.reshape(len(pixels), -1).astype(np.float64)
        flat[np.isnan(flat)] = self.kind.lower
        # clamped before it is scaled: a huge pixel must not overflow
        np.clip(flat, self.kind.lower, self.kind.upper, out=flat)
        flat -= self.kind.lower
        flat /= self.kind.upper - self.kind.lower
        return flat


@dataclass(frozen=True)
class ClassCounts:
    """Number of images per class: a one-hot contribution. Value: shape (k,)."""

    layout: ImageLayout
    name: str = "counts by class"
    norm_bound: float = 1.0
    replace_bound: float = _SQRT2

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.layout.n_classes)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some images."""
        total += np.bincount(self.layout.classes(rows), minlength=self.layout.n_classes)


@dataclass(frozen=True)
class ClassSums:
    """Per class, the sum of clipped images. Value: shape (k, d).

    Norm at most C. No pixel is negative, so two images' inner product is not either: they are at most √2·C apart.
    """

    layout: ImageLayout
    name: str = "sums by class"

    @property
    def norm_bound(self) -> float:
        """C."""
        return self.layout.clip_norm

    @property
    def replace_bound(self) -> float:
        """√2·C."""
        return _SQRT2 * self.layout.clip_norm

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros((self.layout.n_classes, self.layout.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some images."""
        classes = self.layout.classes(rows)
        for start in range(0, len(classes), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            vectors = clip_rows(self.layout.vectors(rows[self.layout.image][part]), self.layout.clip_norm)
            np.add.at(total, classes[part], vectors)


@dataclass(frozen=True)
class ResidualMoments:
    """Sums of outer products of clipped residuals, optionally along given axes and per class.

    Norm at most C'², two images at most √2·C'² apart. Value: shape (k or 1, q, q).
    """

    layout: ImageLayout
    means: np.ndarray
    axes: np.ndarray | None = None
    name: str = "second moments"

    @property
    def norm_bound(self) -> float:
        """C'²."""
        return self.layout.residual_clip_norm**2

    @property
    def replace_bound(self) -> float:
        """√2·C'²."""
        return _SQRT2 * self.layout.residual_clip_norm**2

    def zero(self) -> np.ndarray:
        """Return zeros."""
        if self.axes is None:
            return np.zeros((1, self.layout.dimension, self.layout.dimension))
        return np.zeros((self.layout.n_classes, self.axes.shape[1], self.axes.shape[1]))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some images."""
        classes = self.layout.classes(rows)
        for start in range(0, len(classes), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            residuals = self.layout.vectors(rows[self.layout.image][part]) - self.means[classes[part]]
            if self.axes is not None:
                residuals = residuals @ self.axes
            residuals = clip_rows(residuals, self.layout.residual_clip_norm)
            if self.axes is None:
                total[0] += residuals.T @ residuals
                continue
            for k in np.unique(classes[part]):
                members = residuals[classes[part] == k]
                total[k] += members.T @ members


@dataclass(frozen=True)
class ImageMoments:
    """What the releases say; every field is a function of released values.

    Attributes:
        counts: per class, floored above 0, shape (k,).
        means: per class, pixels in [0, 1], shape (k, d).
    """

    counts: np.ndarray
    means: np.ndarray

    @classmethod
    def of(cls, counts: Noisy, sums: Noisy) -> ImageMoments:
        """Divide noisy sums by noisy counts."""
        floored = np.maximum(counts.value, max(1.0, counts.noise_std))
        return cls(floored, np.clip(sums.value / floored[:, None], 0.0, 1.0))

    def axes(self, pooled: Noisy, most: int) -> np.ndarray:
        """Return up to `most` leading axes of the pooled moment, those above the noise's edge, shape (d, q), q ≥ 1."""
        values, vectors = linalg.eigh(pooled.value[0])
        edge = symmetric_noise_edge(pooled.noise_std, len(values))
        kept = max(1, min(most, int((values > edge).sum())))
        return vectors[:, ::-1][:, :kept].copy()

    def factors(self, moments: Noisy) -> np.ndarray:
        """Return Cholesky factors of the classes' covariances along the axes, shape (k, q, q).

        Each class's difference from the pooled moment is shrunk at the edge of its noise.
        """
        q = moments.value.shape[1]
        shares = self.counts / self.counts.sum()
        each = moments.value / self.counts[:, None, None]
        pooled = np.einsum("k,kij->ij", shares, each)
        factors = np.empty_like(each)
        for k, count in enumerate(self.counts):
            spread = max(1 - 2 * shares[k] + len(shares) * shares[k] ** 2, 0.0)
            edge = symmetric_noise_edge(moments.noise_std, q) / count * np.sqrt(spread)
            moment = pooled + shrink_spectrum(each[k] - pooled, edge)
            factors[k] = np.linalg.cholesky(nearest_positive(moment, 1e-6) + 1e-9 * np.eye(q))
        return factors

    def parameters(self, axes: np.ndarray, factors: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return the arrays of the image sampler."""
        return {
            "class_shares": self.counts / self.counts.sum(),
            "means": self.means,
            "axes": axes,
            "factors": factors,
        }
