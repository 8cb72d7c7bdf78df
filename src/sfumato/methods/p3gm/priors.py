"""Laws of latents that a decoder draws from: a mixture by noisy EM, or one Gaussian per class, measured at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sfumato.maths.streams import public_stream
from sfumato.methods.mixtures.em import fit_mixture
from sfumato.methods.mixtures.em_moments import EmMoments, Vectors, default_weights, in_unit_ball
from sfumato.methods.mixtures.steps import MomentStart, MStep, random_start, unit_mixture
from sfumato.models.mixtures.covariances import CovarianceForm
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.plugins import Account, Fit, Noisy, Rows, product_bits, together

_START_SEED = 0
Classes = Callable[[Rows], np.ndarray]


@dataclass(frozen=True)
class ClassLatents(EmMoments):
    """Moments of latents by class: `EmMoments` with a record's own class in place of responsibilities.

    One-hot shares lie in the simplex, so norm and distance are those of `EmMoments`. Value: the same.

    Attributes:
        classes: records → classes 0 … k − 1, shape (n,); total.
    """

    classes: Classes = field(kw_only=True)
    name: str = "latents by class"

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, a few at a time."""
        vectors, classes = self.vectors(rows), self.classes(rows)
        for part in self.mixture.blocks(len(vectors)):
            shares = np.eye(self.mixture.n_components)[classes[part]]
            self.add_shared(total, in_unit_ball(vectors[part]), shares)


def fit_class_prior(
    fit: Fit, stage: str, vectors: Vectors, classes: Classes, *, n_classes: int, dimension: int
) -> tuple[GaussianMixture, Noisy]:
    """Return one Gaussian per class, from one joint release of counts, sums and second moments.

    Privacy: one `Gaussian(σ)` event of the stage, as one iteration of `fit_mixture`. Proof: docs/proofs/em.md.
    """
    start = unit_mixture(n_classes, dimension)
    weights = default_weights(start.form, dimension)
    statistic = ClassLatents(vectors, start, weights, bits=product_bits(fit.n_public), classes=classes)
    noisy = Account(fit.ledger, fit.noise).measure(stage, statistic, fit.data)
    return MStep(split_dead=False)(statistic.moments(noisy), start), noisy


def fit_mixture_prior(
    fit: Fit, stage: str, vectors: Vectors, *, n_components: int, form: CovarianceForm, dimension: int
) -> tuple[GaussianMixture, Noisy]:
    """Return a mixture by noisy EM, and its releases end to end; a measured start comes first.

    Privacy: as `fit_mixture`.
    """
    rng = public_stream(_START_SEED, 2)
    if n_components > 1 and fit.plan[stage].count > 1:
        start: GaussianMixture | MomentStart = MomentStart(
            n_components=n_components, form=form, dimension=dimension, rng=rng
        )
    else:
        start = random_start(n_components, np.full(dimension, dimension**-0.5), form=form, rng=rng)
    bits = product_bits(fit.n_public)
    mixture, released = fit_mixture(
        fit.data, vectors, start=start, stage=stage, ledger=fit.ledger, noise=fit.noise, bits=bits
    )
    return mixture, together(released, np.concatenate)
