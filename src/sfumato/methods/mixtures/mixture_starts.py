"""Where the EM of a mixture starts: never at records.

Pure functions of public facts, released values and public randomness.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sfumato.errors import require_integer
from sfumato.models.mixtures.covariances import CovarianceForm
from sfumato.models.mixtures.mixture import GaussianMixture


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentStart:
    """A start that is bought: the first of the J releases is spent on one Gaussian for all records.

    The means are then drawn from that Gaussian, noise and all, and every component gets its covariance.

    Attributes:
        n_components: k ≥ 1.
        form: of the covariances.
        dimension: q, public.
        rng: public randomness.
    """

    n_components: int
    form: CovarianceForm
    dimension: int
    rng: np.random.Generator = field(compare=False, repr=False)

    def single(self) -> GaussianMixture:
        """Return one component, under which every record has responsibility 1."""
        covariances = unit_covariances(self.form, 1, self.dimension) / self.dimension
        return GaussianMixture(np.ones(1), np.zeros((1, self.dimension)), covariances, self.form)

    def spread(self, whole: GaussianMixture) -> GaussianMixture:
        """Return k components about a released Gaussian. Free."""
        k, q = self.n_components, self.dimension
        draws = self.rng.standard_normal((k, q))
        draws -= draws.mean(axis=0)
        factor = np.linalg.cholesky(whole.dense_covariances()[0])
        means = whole.means[0] + draws @ factor.T
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1.0)
        covariances = np.array(np.broadcast_to(whole.covariances, self.form.shape(k, q)))
        return GaussianMixture(np.full(k, 1 / k), means, covariances, self.form)


def unit_covariances(form: CovarianceForm, k: int, q: int) -> np.ndarray:
    """Return k unit covariances in this form: eigenvalues of 0, clamped to 1."""
    return form.project(np.zeros(form.shape(k, q)), np.ones(k), 1.0)


def random_start(
    n_components: int, spread: np.ndarray, *, form: CovarianceForm, rng: np.random.Generator
) -> GaussianMixture:
    """Return a start that uses no record: means from N(0, diag spread²), covariances of that size in all directions.

    Args:
        n_components: k ≥ 1.
        spread: standard deviations per axis, public or released, shape (q,).
        form: of the covariances.
        rng: public randomness.
    """
    k, q = require_integer(at_least=1, n_components=n_components), len(spread)
    means = rng.standard_normal((k, q)) * spread
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1.0)
    covariances = unit_covariances(form, k, q) * float(np.mean(spread**2))
    return GaussianMixture(np.full(k, 1 / k), means, covariances, form)
