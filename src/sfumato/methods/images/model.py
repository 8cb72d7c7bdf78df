"""From released statistics of images to the arrays of their sampler. Nothing here reads a record or spends budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.optimize import isotonic_regression

from sfumato.maths.gaussian import nearest_positive, shrink_spectrum, shrinkage_weight, symmetric_noise_edge
from sfumato.methods.images.statistics import ClassSums, PooledMoment, Profiles
from sfumato.models.images.coefficients import AREA_BINS, ImageEncoder
from sfumato.models.images.warps import pose_limits
from sfumato.plugins import Noisy

MOST_AXES = 40
_SEEN = 3.0  # a bin, or a faint tail, counts if it is this many standard deviations of its noise
_LEAST_VARIANCE = 0.005
# clip norm ÷ what earlier releases make one expect: a clipped tail costs more than the noise of a looser bound
_SUMS_SLACK, _POOLED_SLACK, _MOMENTS_SLACK = 1.1, 1.1, 1.3


@dataclass(frozen=True)
class Intensities:
    """What the profiles say.

    Attributes:
        curves: descending intensities ÷ exposure for each bin of area, shape (32, d).
        area: mean area, E‖x/s‖².
        pose: mean pose, shape (5,).
        bordered: share of images that touch the border.
    """

    curves: np.ndarray
    area: float
    pose: np.ndarray
    bordered: float

    @classmethod
    def of(cls, statistic: Profiles, noisy: Noisy) -> Intensities:
        """Read them off the noisy sums: bins below the noise take the curve of the nearest bin above it."""
        layout, d = statistic.layout, statistic.layout.dimension
        by_bin, rest = statistic.split(noisy.value)
        area = d * ((np.arange(AREA_BINS) + 0.5) / AREA_BINS) ** 2
        # hardly any image is lit beyond about twice its area: what is seen there is noise
        reach = np.minimum(2.2 * area + 20, d).astype(np.intp)
        counts = _counts(statistic, by_bin, area, reach, noisy.noise_std / statistic.constant)
        if not counts.any():  # all noise: images of any area, of linearly falling intensity
            counts, by_bin = np.ones(AREA_BINS), by_bin * 0
        total = counts.sum()
        each = np.maximum(counts, 1.0) * statistic.weights
        limits = pose_limits(*layout.picture[1:])
        share = rest[:-1] / total / (statistic.constant / np.sqrt(len(limits)))
        return cls(
            curves=_curves(by_bin[:, :-1] / each[:, None], (noisy.noise_std / each) ** 2, counts / total, area, reach),
            area=float(counts @ area / total),
            pose=np.clip(2 * share - 1, -1.0, 1.0) * limits,
            bordered=float(np.clip(rest[-1] / statistic.constant / total, 0.0, 1.0)),
        )


def _counts(statistic: Profiles, by_bin: np.ndarray, area: np.ndarray, reach: np.ndarray, error: float) -> np.ndarray:
    """Return the images of each bin, 0 where they may be noise.

    They are counted, with a standard `error`; and their values ÷ exposure, which sum to the area, tell it again.
    """
    counts, each = by_bin[:, -1] / statistic.constant, statistic.weights * area
    by_area = np.array([row[:m].sum() for row, m in zip(by_bin, reach, strict=True)]) / each
    spread = np.maximum(by_area, 0.0) / (np.sqrt(3) * (np.arange(AREA_BINS) + 0.5))  # areas vary within a bin
    variance = reach * (error * statistic.constant / each) ** 2 + spread**2
    share = error**2 / np.maximum(error**2 + variance, np.finfo(np.float64).tiny)
    counts = counts + share * (by_area - counts)
    return np.where(counts > _SEEN * error * np.sqrt(1 - share), counts, 0.0)


def _curves(means: np.ndarray, noise: np.ndarray, part: np.ndarray, area: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return non-increasing curves per bin; a bin without images has the curve of the nearest one that has some.

    Each is shrunk to the curve of all bins, stretched to its area, by what `noise`, of a value's variance, explains.
    """
    ranks, places, curves = np.arange(means.shape[1]) + 0.5, np.flatnonzero(part), np.zeros_like(means)
    for b, m in zip(places, reach[places], strict=True):
        each = [np.interp(ranks[:m] * area[other] / area[b], ranks, means[other], right=0.0) for other in places]
        curve = part[places] @ np.stack(each)
        apart = means[b, :m] - curve
        curve += shrinkage_weight(float(apart @ apart), float(m * noise[b])) * apart
        curve = isotonic_regression(curve, increasing=False).x
        faint = curve < _SEEN * np.sqrt(part[b] * noise[b] / m)  # a tail that may be noise would be a haze
        curves[b, :m] = np.where(faint, 0.0, np.minimum(curve, 1 / 0.05))
        if not curves[b].any():
            curves[b] = np.maximum(1 - (ranks - 0.5) / (2 * area[b]), 0.0)
    return curves[places[np.abs(places - np.arange(AREA_BINS)[:, None]).argmin(axis=1)]]


def sums_clip_norm(intensities: Intensities, encoder: ImageEncoder) -> float:
    """Return C of the class sums: a little above the root mean square norm of vectors."""
    d = encoder.layout.dimension
    columns = encoder.column_weights[-1] ** 2 * intensities.area + 0.002 * d
    return _SUMS_SLACK * float(np.sqrt(intensities.area + columns))


@dataclass(frozen=True)
class ClassMeans:
    """What the class sums say.

    Attributes:
        counts: per class, floored above 0, shape (k,).
        means: of coefficients and weighted columns, shrunk, shape (k, d + m).
        residual: expected squared norm of the coefficients about their class mean.
    """

    counts: np.ndarray
    means: np.ndarray
    residual: float

    @classmethod
    def of(cls, statistic: ClassSums, noisy: Noisy, area: float) -> ClassMeans:
        """Divide noisy sums by noisy counts, and shrink per frequency: the mean of all classes to 0, classes to it."""
        encoder = statistic.encoder
        d = encoder.layout.dimension
        counts = np.maximum(noisy.value[:, -1], max(noisy.noise_std, statistic.constant)) / statistic.constant
        means = noisy.value[:, :-1] / counts[:, None]
        shares, variances = counts / counts.sum(), (noisy.noise_std / counts) ** 2
        explained = float(shares @ ((means[:, :d] ** 2).sum(axis=1) - d * variances))
        for frequency in np.unique(encoder.frequency):
            part = np.flatnonzero(encoder.frequency == frequency)
            middle = shares @ means[:, part]
            apart = means[:, part] - middle
            noise = len(part) * float(shares**2 @ variances)
            noise_apart = len(part) * max(float(variances.sum()) - len(counts) * float(shares**2 @ variances), 0.0)
            centre = shrinkage_weight(float((middle**2).sum()), noise) * middle
            means[:, part] = centre + shrinkage_weight(float((apart**2).sum()), noise_apart) * apart
        return cls(counts, means, max(area - explained, 0.05 * area))

    @property
    def clip_norm(self) -> float:
        """C' of the pooled moment."""
        return _POOLED_SLACK * float(np.sqrt(self.residual))


@dataclass(frozen=True)
class Spread:
    """What the pooled moment says.

    Attributes:
        axes: leading eigenvectors of the low frequencies above the noise's edge, shape (low, q), q ≥ 1.
        residual_std: standard deviation of every coefficient apart from the axes, shape (d,).
        clip_norm: C'' of the class moments.
    """

    axes: np.ndarray
    residual_std: np.ndarray
    clip_norm: float

    @classmethod
    def of(cls, statistic: PooledMoment, noisy: Noisy, n: float) -> Spread:
        """Cut the spectrum at the noise's edge; what is left keeps its variance without its covariance."""
        encoder = statistic.encoder
        low = encoder.n_low
        values, vectors = linalg.eigh(noisy.value[:low, :low] / n)
        edge = symmetric_noise_edge(noisy.noise_std, low) / n
        q = max(1, min(MOST_AXES, int((values > edge).sum())))
        axes, variances = vectors[:, ::-1][:, :q].copy(), np.maximum(values[::-1][:q], 0.0)
        rest = np.maximum(np.diag(noisy.value)[:low] / n - (axes**2) @ variances, 0.0)
        for frequency in np.unique(encoder.frequency[:low]):  # noise is halved, structure across frequencies kept
            part = encoder.frequency[:low] == frequency
            rest[part] = (rest[part] + rest[part].mean()) / 2
        high = statistic.high_frequencies
        energies = np.maximum(np.diag(noisy.value)[low:] / n, 0.0) / np.maximum(np.bincount(high), 1)
        columns = 0.001 * encoder.layout.dimension * encoder.n_columns / 7  # a public guess of their variance
        norm = float(np.sqrt(max(variances.sum(), _LEAST_VARIANCE) + columns))
        return cls(axes, np.sqrt(np.concatenate([rest, energies[high]])), _MOMENTS_SLACK * norm)


def class_factors(moments: Noisy, counts: np.ndarray) -> np.ndarray:
    """Return Cholesky factors of the classes' covariances, shape (k, q, q).

    Each class's difference from the pooled moment is shrunk at the edge of its noise; a class too small to be seen
    gets the pooled one.
    """
    q = moments.value.shape[1]
    shares = counts / counts.sum()
    each = moments.value / counts[:, None, None]
    pooled = np.einsum("k,kij->ij", shares, each)
    factors = np.empty_like(each)
    for k, count in enumerate(counts):
        spread = max(1 - 2 * shares[k] + len(shares) * shares[k] ** 2, 0.0)
        edge = symmetric_noise_edge(moments.noise_std, q) / count * np.sqrt(spread)
        moment = pooled + shrink_spectrum(each[k] - pooled, edge)
        factors[k] = np.linalg.cholesky(nearest_positive(moment, _LEAST_VARIANCE))
    return factors


def sampler_arrays(
    intensities: Intensities, known: ClassMeans, spread: Spread, factors: np.ndarray, encoder: ImageEncoder
) -> Mapping[str, np.ndarray]:
    """Return the arrays of the image sampler (`sfumato.models.images.sampler`)."""
    arrays = {
        "class_shares": known.counts / known.counts.sum(),
        "means": known.means,
        "axes": spread.axes,
        "factors": factors,
        "residual_std": spread.residual_std,
        "profiles": intensities.curves,
    }
    return arrays if encoder.reference is None else arrays | {"reference": encoder.reference}
