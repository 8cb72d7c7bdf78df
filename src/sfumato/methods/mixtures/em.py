"""Mixtures of Gaussians by noisy expectation-maximisation: one joint Gaussian release per iteration.

    moments          G(σ), J times    `EmMoments`: masses, sums and second moments of all components
    pooled moment    G(σ'), once      `PooledSquares`: tied covariances only, before the others

Everything after a release is free: the M-step, averages over iterations, what becomes of small components. Proof:
docs/proofs/em.md.
"""

from __future__ import annotations

import numpy as np

from sfumato.errors import ConfigError, require_integer
from sfumato.methods.mixtures.em_moments import EmMoments, PooledSquares, Vectors, default_weights, em_replace_distance
from sfumato.methods.mixtures.steps import MixtureMoments, MomentStart, MStep
from sfumato.models.mixtures.covariances import CovarianceForm
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.plugins import (
    PRODUCT_BITS,
    SAFETY,
    Account,
    Ledger,
    NoiseSource,
    Noisy,
    Records,
    Stage,
    multiplier_for_share,
)

_SQRT2 = float(np.sqrt(2))


def pooled_stage_name(stage: str) -> str:
    """Return the name of the stage that measures the pooled second moment of tied covariances."""
    return f"{stage}, pooled second moment"


def em_stage(
    name: str, *, form: CovarianceForm, n_components: int, dimension: int, iterations: int, noise_multiplier: float
) -> Stage:
    """Return the stage of the J joint releases.

    Args:
        name: of the stage.
        form: of the covariances.
        n_components: k.
        dimension: q.
        iterations: J.
        noise_multiplier: of one release, of all blocks together.
    """
    weights = default_weights(form, dimension)
    norm = float(np.linalg.norm(weights))
    distance = em_replace_distance(weights, n_components=n_components, form=form)
    return Stage(
        name=name,
        noise_multiplier=noise_multiplier,
        replace_distance=min(2.0, max(distance / norm, 1.0)),
        count=require_integer(at_least=1, iterations=iterations),
        measures=f"masses, sums and second moments of {n_components} components",
    )


def em_stages(
    name: str, *, form: CovarianceForm, n_components: int, dimension: int, iterations: int
) -> tuple[Stage, ...]:
    """Return all stages of a fit, which together take the squared budget.

    Tied covariances measure their pooled second moment first. Splitting the squared budget as f' + J·f = 1 with
    f' ∝ √c' and f ∝ √(c/J), c' and c the noisy coordinates of either release, minimises their summed squared errors.
    """
    pooled: tuple[Stage, ...] = ()
    share = 1.0
    if not form.per_component:
        ours = np.sqrt(dimension * (dimension + 1) / 2)
        theirs = np.sqrt(iterations * n_components * (dimension + 1))
        pooled = (
            Stage(
                name=pooled_stage_name(name),
                noise_multiplier=multiplier_for_share(float(ours / (ours + theirs))),
                replace_distance=_SQRT2,
                measures="the second moment of all records",
            ),
        )
        share = float(theirs / (ours + theirs))
    moments = em_stage(
        name, form=form, n_components=n_components, dimension=dimension, iterations=iterations,
        noise_multiplier=multiplier_for_share(share / iterations),
    )  # fmt: skip
    return (*pooled, moments)


def fit_mixture(
    records: Records,
    vectors: Vectors,
    *,
    start: GaussianMixture | MomentStart,
    stage: str,
    ledger: Ledger,
    noise: NoiseSource,
    step: MStep = MStep(),  # noqa: B008 - immutable
    average_last: int | None = None,
    bits: int = PRODUCT_BITS,
) -> tuple[GaussianMixture, list[Noisy]]:
    """Fit a mixture of Gaussians by J noisy EM iterations, J the count of the stage.

    Privacy: J `Gaussian(σ)` events of the stage, each of norm bound 1 in the weighted coordinates, and replace
        distance `em_replace_distance`; with tied covariances one more, of the stage `pooled_stage_name(stage)`, before.
        All are charged whatever is released. Proof: docs/proofs/em.md.

    Args:
        records: what `reduce` reads.
        vectors: records → vectors, shape (n, q), total; clipped to the unit ball again.
        start: a mixture from public facts or earlier releases, or one to measure with the first release.
        stage: name of the stage (`em_stage`).
        ledger: charged before noise is drawn.
        noise: the source of randomness.
        step: the M-step's settings.
        average_last: how many of the last releases are averaged as they come; by default three in ten. Without noise
            there is none to average out, and every iteration stands alone.
        bits: of contributions, `product_bits` of the public number of rows.

    Returns:
        The mixture, and all releases in order. Those of the moments are vectors in weighted coordinates.

    Raises:
        ConfigError: a measured start leaves no release; before anything is charged.
        LedgerError: the plan has another stage next.
    Reference: Park, Foulds, Chaudhuri and Welling 2017 (DP-EM) release means and covariances of each component apart,
        and divide by exact masses; here sums are released, jointly, and divided by their noisy masses.
    """
    count = ledger.plan[stage].count
    is_measured = isinstance(start, MomentStart)
    if is_measured and count < 2:
        raise ConfigError("Expected at least 2 iterations with a measured start, got 1: the first is the start.")
    form, q = start.form, start.dimension
    weights = default_weights(form, q)
    tail = 1 if noise.silent else max(1, 3 * count // 10 if average_last is None else average_last)
    released: list[Noisy] = []
    pooled: Noisy | None = None
    account = Account(ledger, noise)
    if not form.per_component:
        pooled = account.measure(pooled_stage_name(stage), PooledSquares(vectors, q, bits=bits), records)
        released.append(pooled)

    def release(mixture: GaussianMixture) -> MixtureMoments:
        statistic = EmMoments(vectors, mixture, weights, bits=bits)
        noisy = account.measure(stage, statistic, records)
        released.append(noisy)
        return _with_pooled(statistic.moments(noisy), pooled)

    if isinstance(start, MomentStart):
        single = start.single()
        mixture = start.spread(step(release(single), single))
    else:
        mixture = start
    iterations = count - is_measured
    average: MixtureMoments | None = None
    for iteration in range(iterations):
        moments = release(mixture)
        averaged = iteration - max(iterations - tail, 0)
        average = moments if average is None or averaged <= 0 else average.blend(moments, 1 / (averaged + 1))
        mixture = step(average, mixture)
    return mixture, released


def _with_pooled(moments: MixtureMoments, pooled: Noisy | None) -> MixtureMoments:
    if pooled is None:
        return moments
    masses_std, sums_std, _ = moments.noise_stds
    scale = SAFETY**2
    return MixtureMoments(
        moments.masses, moments.sums, pooled.value / scale, (masses_std, sums_std, pooled.noise_std / scale)
    )
