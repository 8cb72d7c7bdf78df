"""Samples of the estimators' models as coded rows of numbers: Gaussian mixtures, factor analysis, k-means centres."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.columns.kinds import Continuous
from sfumato.errors import ConfigError, ReleaseError
from sfumato.maths.arrays import require_array, require_well_formed
from sfumato.models.mixtures.covariances import FORMS
from sfumato.models.mixtures.factors import FactorModel
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.schema.schema import Schema


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
