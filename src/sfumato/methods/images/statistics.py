"""Statistics of images, measured with four Gaussian releases (`sfumato.methods.images.recipe`).

With x an image in [0, 1]^d, s its exposure, a its area, v its coefficients and weighted columns, q its low-frequency
coefficients (`sfumato.models.images.coefficients`), and y its class:

    profiles                G(σ)   one-hot(bin of a) ⊗ (sorted x/s, const), pose, border     no entry is negative
    class sums              G(σ)   one-hot(y) ⊗ (clip(v, C), C/10)
    pooled second moment    G(σ)   qqᵀ and energies of the other frequencies of clip(v − mean of y, C')
    class second moments    G(σ)   one-hot(y) ⊗ uuᵀ,   u = clip(v − mean of y along the leading axes, C'')

Every C is a function of what was released before. Proofs: docs/proofs/gaussian_sum.md, docs/proofs/second_moment.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.models.images.coefficients import AREA_BINS, ImageEncoder, ImageLayout, Lit, area_bins, touches_border
from sfumato.models.images.warps import POSE_PARTS, pose_limits, poses
from sfumato.plugins import PRODUCT_BITS, NonNegativeSum, OuterProducts, Rows, row_by_row, step_of, whole_rows

_ROWS_AT_ONCE = 4096
_SMALL = 0.1  # weight of what is counted beside the vector it comes with ÷ that vector's bound


def blocks(layout: ImageLayout, rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pictures and classes of a few rows at a time; those without a label add nothing."""
    classes = layout.classes(rows)
    labelled = np.flatnonzero(classes < layout.n_classes)
    for start in range(0, labelled.size, _ROWS_AT_ONCE):
        part = labelled[start : start + _ROWS_AT_ONCE]
        yield layout.pictures(rows[layout.image][part]), classes[part]


@dataclass(frozen=True)
class Profiles(NonNegativeSum):
    """Sums of sorted intensities by area, with counts, poses and how many images touch the border.

    A record adds, in its area's bin, its values ÷ exposure in descending order times a public weight of the bin, and
    the constant R/10, with R = √d/2; its pose scaled into [0, 1] per part, of norm at most R/10; and R/10 if it
    touches the border. Norm at most R·√1.03; no entry is negative, so two records are at most √2 times that apart.
    Value: shape (32·(d + 1) + 6,).
    """

    layout: ImageLayout
    name: str = "profiles"

    @property
    def radius(self) -> float:
        """R."""
        return float(np.sqrt(self.layout.dimension) / 2)

    @property
    def constant(self) -> float:
        """R/10."""
        return _SMALL * self.radius

    @property
    def norm_bound(self) -> float:
        """R·√1.03."""
        return self.radius * float(np.sqrt(1 + 3 * _SMALL**2))

    @property
    def weights(self) -> np.ndarray:
        """Weight of a profile in each bin: the norm √a of a profile is brought below R, shape (32,)."""
        largest = np.sqrt(self.layout.dimension) * (np.arange(AREA_BINS) + 1) / AREA_BINS
        return np.minimum(1.0, self.radius / largest)

    @property
    def step(self) -> np.ndarray:
        """R/2^26 for values, R/10 for counts, R/10/2^26 for poses."""
        step = np.full(self.zero().shape, step_of(self.radius))
        by_bin, rest = self.split(step)
        by_bin[:, -1] = rest[-1] = self.constant
        rest[:-1] = step_of(self.constant)
        return step

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(AREA_BINS * (self.layout.dimension + 1) + POSE_PARTS + 1)

    def split(self, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return views of the bins, shape (32, d + 1), and of pose and border, shape (6,)."""
        return total[: -POSE_PARTS - 1].reshape(AREA_BINS, -1), total[-POSE_PARTS - 1 :]

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some images."""
        by_bin, rest = self.split(total)
        for pictures, _ in blocks(self.layout, rows):
            lit = Lit.of(pictures)
            bins = area_bins(lit.area, self.layout.dimension)
            values = np.sort(pictures.reshape(len(pictures), -1), axis=1)[:, ::-1] / lit.exposure[:, None]
            values = whole_rows(values * self.weights[bins][:, None], self.radius)
            for b in np.unique(bins):
                by_bin[b, :-1] += values[bins == b].sum(axis=0)
            by_bin[:, -1] += np.bincount(bins, minlength=AREA_BINS)
            if not self.layout.can_be_posed:
                continue
            limits = pose_limits(*self.layout.picture[1:])
            shares = (poses(pictures.sum(axis=1)) / limits + 1) / 2
            rest[:-1] += whole_rows(shares * self.constant / np.sqrt(POSE_PARTS), self.constant).sum(axis=0)
            rest[-1] += np.count_nonzero(touches_border(pictures, lit.exposure))


@dataclass(frozen=True)
class ClassSums:
    """Per class, the sum of clipped vectors of coefficients and columns, and a constant C/10 that counts.

    Norm at most C·√1.01; two records of one class are at most 2C apart, of two classes √2·√1.01·C. Value: shape
    (k, d + m + 1).
    """

    encoder: ImageEncoder
    clip_norm: float
    name: str = "sums by class"

    @property
    def constant(self) -> float:
        """C/10."""
        return _SMALL * self.clip_norm

    @property
    def norm_bound(self) -> float:
        """C·√1.01."""
        return self.clip_norm * float(np.sqrt(1 + _SMALL**2))

    @property
    def replace_bound(self) -> float:
        """2C."""
        return 2 * self.clip_norm

    @property
    def step(self) -> np.ndarray:
        """C/2^26, and C/10 for counts."""
        step = np.full(self.zero().shape, step_of(self.clip_norm))
        step[:, -1] = self.constant
        return step

    def zero(self) -> np.ndarray:
        """Return zeros."""
        layout = self.encoder.layout
        return np.zeros((layout.n_classes, layout.dimension + self.encoder.n_columns + 1))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some images."""
        for pictures, classes in blocks(self.encoder.layout, rows):
            vectors = whole_rows(self.encoder.encode(pictures), self.clip_norm)
            for k in np.unique(classes):
                total[k, :-1] += vectors[classes == k].sum(axis=0)
            total[:, -1] += np.bincount(classes, minlength=len(total))


@dataclass(frozen=True)
class PooledMoment(OuterProducts):
    """Sum of outer products of low-frequency residuals, and the energies of each other frequency on the diagonal.

    The residual r of all coefficients is clipped to C. A record's matrix has the block qqᵀ, q the low part of r, and
    diagonal entries eⱼ = ‖part of r at frequency j‖². Its squared Frobenius norm ‖q‖⁴ + Σ eⱼ² is at most
    (‖q‖² + Σ eⱼ)² = ‖r‖⁴ ≤ C⁴, and two such matrices have a non-negative inner product: norm at most C², distance at
    most √2·C². Value: shape (low + f, low + f) for f other frequencies.
    """

    encoder: ImageEncoder
    means: np.ndarray
    clip_norm: float
    name: str = "second moments"
    bits: int = PRODUCT_BITS

    @property
    def high_frequencies(self) -> np.ndarray:
        """Which of the other frequencies each high coefficient has, shape (d − low,)."""
        high = self.encoder.frequency[self.encoder.n_low :]
        return high - high[0] if high.size else high

    def zero(self) -> np.ndarray:
        """Return zeros."""
        high = self.high_frequencies
        size = self.encoder.n_low + (int(high[-1]) + 1 if high.size else 0)
        return np.zeros((size, size))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some images."""
        low, d, high = self.encoder.n_low, self.encoder.layout.dimension, self.high_frequencies
        for pictures, classes in blocks(self.encoder.layout, rows):
            residuals = (self.encoder.encode(pictures) - self.means[classes])[:, :d]
            residuals = whole_rows(residuals, self.clip_norm, self.bits)
            total[:low, :low] += residuals[:, :low].T @ residuals[:, :low]
            energies = np.bincount(high, weights=np.einsum("ij,ij->j", residuals[:, low:], residuals[:, low:]))
            total[range(low, len(total)), range(low, len(total))] += energies


@dataclass(frozen=True)
class ClassMoments(OuterProducts):
    """Per class, sums of outer products of clipped residuals along some axes of the coefficients, and of the columns.

    Norm at most C², two records at most √2·C² apart. Value: shape (k, q + m, q + m).
    """

    encoder: ImageEncoder
    means: np.ndarray
    axes: np.ndarray
    clip_norm: float
    name: str = "second moments by class"
    bits: int = PRODUCT_BITS

    def zero(self) -> np.ndarray:
        """Return zeros."""
        size = self.axes.shape[1] + self.encoder.n_columns
        return np.zeros((self.encoder.layout.n_classes, size, size))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some images."""
        low, d = self.encoder.n_low, self.encoder.layout.dimension
        for pictures, classes in blocks(self.encoder.layout, rows):
            residuals = self.encoder.encode(pictures) - self.means[classes]
            inner = row_by_row(lambda some: some @ self.axes, residuals[:, :low])
            along = np.concatenate([inner, residuals[:, d:]], axis=1)
            along = whole_rows(along, self.clip_norm, self.bits)
            for k in np.unique(classes):
                members = along[classes == k]
                total[k] += members.T @ members
