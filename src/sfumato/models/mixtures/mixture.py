"""Mixtures of Gaussians: densities, responsibilities, arrays of a release file; and the samples of all estimators.

Pure functions of released values; nothing here reads a record or spends budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from sfumato.columns.kinds import Continuous
from sfumato.errors import ConfigError, ReleaseError, require_integer
from sfumato.maths.arrays import malformed, require_array, require_shares, require_well_formed
from sfumato.models.mixtures.covariances import FORMS, CovarianceForm, FullCovariance
from sfumato.models.mixtures.factors import FactorModel
from sfumato.schema.schema import Schema

_WORK_BYTES = 1 << 23  # of the widest work array: it stays in the processor's cache
_LEAST = -1e300  # stands for the log of a density that is 0 or not a number


@dataclass(frozen=True)
class GaussianMixture:
    """A mixture of k Gaussians in q dimensions.

    Attributes:
        weights: shape (k,), ≥ 0, sum 1.
        means: shape (k, q).
        covariances: shape (k, q, q) if full, (k, q) if diagonal, (k,) if spherical, (q, q) if tied.
        form: which of these.

    Raises:
        ConfigError: shapes do not fit, entries are not finite, weights are no shares, or a covariance is not positive
            definite.
    """

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    form: CovarianceForm = field(default_factory=FullCovariance)

    def __post_init__(self) -> None:
        k, q = self.means.shape if self.means.ndim == 2 else (0, 0)
        if k < 1 or q < 1 or self.weights.shape != (k,) or self.covariances.shape != self.form.shape(k, q):
            raise ConfigError(
                f"Expected weights, means and {self.form.name} covariances of k components, got shapes "
                f"{self.weights.shape}, {self.means.shape} and {self.covariances.shape}."
            )
        if not all(np.isfinite(array).all() for array in (self.weights, self.means, self.covariances)):
            raise ConfigError("Expected finite weights, means and covariances.")
        if (self.weights < 0).any() or abs(float(self.weights.sum()) - 1) > 1e-6:
            raise ConfigError("Expected weights that are at least 0 and sum to 1.")
        if not self._is_positive():
            raise ConfigError(f"Expected positive definite {self.form.name} covariances.")

    def _is_positive(self) -> bool:
        try:
            with np.errstate(all="ignore"):
                return bool(np.isfinite(self._whiteners).all() and np.isfinite(self._log_determinants).all())
        except np.linalg.LinAlgError:
            return False

    @property
    def n_components(self) -> int:
        """Return k."""
        return len(self.means)

    @property
    def dimension(self) -> int:
        """Return q."""
        return self.means.shape[1]

    @cached_property
    def _whiteners(self) -> np.ndarray:
        return self.form.whiteners(self.covariances)

    @cached_property
    def _log_determinants(self) -> np.ndarray:
        return self.form.log_determinants(self._whiteners, self.dimension)

    @cached_property
    def _factors(self) -> np.ndarray:
        return np.linalg.cholesky(self.dense_covariances())

    def dense_covariances(self) -> np.ndarray:
        """Return the covariances as matrices, shape (k, q, q), whatever the form."""
        return np.array(self.form.dense(self.covariances, self.n_components, self.dimension))

    def blocks(self, n: int) -> Iterator[slice]:
        """Yield slices of n rows, so many at a time that work arrays stay small."""
        step = max(64, _WORK_BYTES // (8 * self.n_components * self.dimension))
        for start in range(0, n, step):
            yield slice(start, start + step)

    def joint_log_densities(self, points: np.ndarray) -> np.ndarray:
        """Return log πₖ + log N(x | μₖ, Σₖ), shape (n, k), finite whatever the points are.

        Args:
            points: shape (n, q). Rows that are not finite get the least log density for every component.
        """
        with np.errstate(all="ignore"):
            offsets = np.log(self.weights) + self._log_determinants - 0.5 * self.dimension * np.log(2 * np.pi)
            joint = np.empty((len(points), self.n_components))
            for rows in self.blocks(len(points)):
                distances = self.form.squared_distances(points[rows], self.means, self._whiteners)
                distances *= -0.5
                np.add(distances, offsets, out=joint[rows])
            return np.nan_to_num(joint, copy=False, nan=_LEAST, neginf=_LEAST, posinf=-_LEAST)

    def log_densities(self, points: np.ndarray) -> np.ndarray:
        """Return log Σₖ πₖ N(x | μₖ, Σₖ), shape (n,)."""
        return np.asarray(special.logsumexp(self.joint_log_densities(points), axis=1))

    def responsibilities(self, points: np.ndarray) -> np.ndarray:
        """Return γₖ(x) = πₖ N(x | μₖ, Σₖ) ÷ their sum, shape (n, k). Every row lies in the simplex, whatever x is."""
        shares = self.joint_log_densities(points)
        shares -= shares.max(axis=1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def sample(
        self, n: int, rng: np.random.Generator, components: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw points.

        Args:
            n: how many.
            rng: public randomness.
            components: of each point, shape (n,); drawn if not given.

        Returns:
            Points, shape (n, q), and the component of each, shape (n,).
        """
        require_integer(at_least=0, n=n)
        if components is None:
            components = rng.choice(self.n_components, size=n, p=self.weights / self.weights.sum())
        points = rng.standard_normal((n, self.dimension))
        for k in range(self.n_components):
            members = components == k
            points[members] = points[members] @ self._factors[k].T + self.means[k]
        return points, components

    def to_arrays(self, prefix: str = "") -> dict[str, np.ndarray]:
        """Return the arrays that a release file holds."""
        return {
            f"{prefix}weights": self.weights,
            f"{prefix}means": self.means,
            f"{prefix}covariances": self.covariances,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], form: CovarianceForm, prefix: str = "") -> GaussianMixture:
        """Read what `to_arrays` wrote; a stranger may have written it.

        Raises:
            ReleaseError: an array is missing or malformed, or a covariance is not positive definite.
        """
        weights = require_shares(arrays, f"{prefix}weights")
        means = require_array(arrays, f"{prefix}means", np.float64, (weights.size, None))
        require_well_formed(means.shape[1] >= 1, f"{prefix}means")
        name = f"{prefix}covariances"
        covariances = require_array(arrays, name, np.float64, form.shape(*means.shape))
        if covariances.ndim > 1 and form.name in ("full", "tied"):
            # the factorisation reads one triangle only
            require_well_formed(bool(np.array_equal(covariances, np.swapaxes(covariances, -1, -2))), name)
        try:
            return cls(weights, means, covariances, form)
        except ConfigError:
            pass
        raise malformed(name)


class _Points:
    """What the samplers of points share: a schema of numbers, and how a point becomes a coded row.

    A model may put mass outside the public bounds; such coordinates come back as the bound, like those of records.
    Settings: weight, the column by which records counted, if one: all points weigh the same.
    """

    class_column: str | None = None

    def __init__(self, schema: Schema, settings: Mapping[str, Any]) -> None:
        self._weight = None if settings.get("weight") is None else str(settings["weight"])
        self._names = tuple(name for name in schema.released if name != self._weight)
        numbers = schema.of_kind(Continuous)
        kinds = [numbers[name] for name in self._names if name in numbers]
        if len(kinds) != len(self._names) or any(kind.nullable for kind in kinds):
            raise ReleaseError("Expected a schema of continuous columns that are never missing in the release.")
        self._lower = np.array([kind.lower for kind in kinds])
        self._upper = np.array([kind.upper for kind in kinds])
        self.possible = np.ones(1, dtype=bool)
        self.width = len(kinds)

    @property
    def dimension(self) -> int:
        """Return q, the number of columns."""
        return len(self._names)

    def points(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n draws, data units, shape (n, q)."""
        raise NotImplementedError

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows: positions between the bounds. There are no classes."""
        with np.errstate(all="ignore"):  # a stranger's model may overflow
            inside = np.clip(np.nan_to_num(self.points(n, rng)), self._lower, self._upper)
            codes = np.nan_to_num((inside - self._lower) / np.maximum(self._upper - self._lower, 5e-324))
        rows = {name: np.clip(codes[:, j], 0.0, 1.0) for j, name in enumerate(self._names)}
        return rows if self._weight is None else rows | {self._weight: np.ones(n)}

    def given(self, codes: Mapping[str, float]) -> _Points:
        """Refuse: conditional laws are not offered."""
        raise ConfigError(
            "Expected no given values for this release, got some: releases of estimators cannot fix columns. Sample "
            "more rows and keep those you need."
        )


class MixturePoints(_Points):
    """A mixture of Gaussians (`sfumato.estimators.DPGaussianMixture`). Settings: covariance, the name of its form."""

    name = "gaussian_mixture"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__(schema, settings)
        form = FORMS.get(str(settings.get("covariance")))
        if form is None:
            raise ReleaseError(f"Expected covariance to be one of {', '.join(FORMS)} in the release.")
        self.mixture = GaussianMixture.from_arrays(parameters, form)
        require_well_formed(self.mixture.dimension == self.dimension, "means")

    def points(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n draws."""
        return self.mixture.sample(n, rng)[0]


class FactorPoints(_Points):
    """Factor analysis (`sfumato.estimators.DPFactorAnalysis`)."""

    name = "factor_analysis"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__(schema, settings)
        q = self.dimension
        self.model = FactorModel(
            require_array(parameters, "mean", np.float64, (q,)),
            require_array(parameters, "loadings", np.float64, (q, None)),
            require_array(parameters, "variances", np.float64, (q,)),
        )
        self.width = q + self.model.loadings.shape[1]

    def points(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n draws."""
        return self.model.sample(n, rng)


class CentrePoints(_Points):
    """Centres of k-means and their noisy sizes (`sfumato.estimators.DPKMeans`).

    Rows are centres, each as often as its size says: k-means has no law of the records about a centre.
    """

    name = "kmeans_centres"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__(schema, settings)
        self.centres = require_array(parameters, "centres", np.float64, (None, self.dimension))
        self.sizes = require_array(parameters, "sizes", np.float64, (len(self.centres),))
        require_well_formed(len(self.centres) >= 1, "centres")

    def points(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n of the centres; in equal shares where no noisy size is above 0."""
        shares = np.maximum(self.sizes, 0.0)
        largest = float(shares.max())
        shares = np.ones(len(shares)) if largest <= 0 else shares / largest
        return self.centres[rng.choice(len(shares), size=n, p=shares / shares.sum())]
