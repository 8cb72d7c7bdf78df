"""P3GM: principal axes, a mixture of Gaussians on them, then a decoder trained by private gradient descent.

    marginals        G(σ)                → ranks of numbers; tables only
    centre           G(σ)                → m̃
    second moment    G(σ)                → axes V, latents z = clip(Vᵀ(x − m̃), C)/C
    mixture          G(σ), T_e times     → p(z), by expectation maximisation
    decoder          P(q, G(σ)), T times → weights of decoder and variance network

Takagi, Takahashi, Cao and Yoshikawa 2021, arXiv:2006.12101; all stages are in one account. Deviations: numbers are
ranks under noisy marginals instead of scaled by the data's own bounds, and levels are one-hot; the centre has noise
instead of being exact; the mixture's statistics are one Gaussian release per iteration; labels are entries of a
record's vector; latents are drawn from the released mixture.

With the prior `StandardNormal()` it is DP-VAE, the baseline of the same paper, and without noise the VAE:

    marginals        G(σ)                → ranks of numbers; tables only
    autoencoder      P(q, G(σ)), T times → weights of encoder and decoder
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, final

import numpy as np

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.maths.gaussian import symmetric_noise_edge
from sfumato.methods.mixtures.em import em_stage
from sfumato.methods.nets.axes import CentredSecondMoment, LatentAxes, VectorSum, spread_about
from sfumato.methods.nets.batches import require_single_records
from sfumato.methods.nets.decoding import (
    MARGINALS,
    Mapped,
    flat_dimension,
    is_table,
    map_records,
    marginal_stages,
    nominal_budget,
    require_device,
    require_networks,
    sampler_of,
    schedule,
)
from sfumato.methods.p3gm.settings import (
    IMAGES,
    ByClass,
    Mixture,
    Multipliers,
    PrincipalAxes,
    Prior,
    Random,
    Shares,
    StandardNormal,
    Start,
    fit_class_prior,
    fit_mixture_prior,
    presets,
    published,
    released,
    written,
)
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.mixtures.covariances import FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.models.nets.decoder import Layers
from sfumato.models.nets.flat import Vectors
from sfumato.plugins import (
    Facts,
    Fit,
    FittedModel,
    LevelKind,
    Noisy,
    Plan,
    Preset,
    Rows,
    Schema,
    Stage,
    Synthesizer,
    account,
    arrays_of,
    noisy_of,
    product_bits,
)

CENTRE, MOMENT, MIXTURE, DECODER = "centre", "second moment", "mixture", "decoder"
AUTOENCODER = "autoencoder"
_SQRT2 = float(np.sqrt(2))


@final
@dataclass(frozen=True, kw_only=True)
class P3GM(Synthesizer):
    """A decoder over principal axes. Needs the extra `nets`.

    Attributes:
        latent_dim: number of axes q.
        prior: law of the latents; with `StandardNormal()` it is DP-VAE, and what is said of axes below does not apply.
        epochs: passes over the public number of records, in expectation.
        batch_size: expected members of a batch.
        hidden: units of a hidden layer.
        learning_rate: of Adam.
        clip_norm: bound on one record's gradient.
        record_norm: bound on a record's vector; by default the norm that released marginals make one expect of a row,
            and a third of the largest norm of an image.
        noise: shares of the budget, or noise multipliers.
        start: where the decoder starts.
        variance: whether the encoder has a variance network; without one it is P3GM(AE), and axes that are noise are
            left out. By default images have one and tables have not.
        heads: what the decoder's outputs mean: "squared" or "native".
        draw: whether one-hot entries are drawn from native heads, or the largest is taken.
        device: where the network is trained: "cpu" or "cuda".
    """

    method: ClassVar[str] = "p3gm"
    resumable: ClassVar[bool] = True
    needs_declared_rows: ClassVar[bool] = True

    latent_dim: int = 30
    prior: Prior = field(default_factory=ByClass)
    epochs: float = 4.0
    batch_size: int = 300
    hidden: int = 1000
    learning_rate: float = 1e-3
    clip_norm: float = 1.0
    record_norm: float | None = None
    noise: Shares | Multipliers = field(default_factory=Shares)
    start: Start = field(default_factory=PrincipalAxes)
    variance: bool | None = None
    heads: str = "native"
    draw: bool = True
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("latent_dim", "batch_size", "hidden"):
            require_integer(at_least=1, **{name: getattr(self, name)})
        for name in ("epochs", "learning_rate", "clip_norm"):
            require_positive(**{name: getattr(self, name)})
        if self.record_norm is not None:
            require_positive(record_norm=self.record_norm)
        if self.heads not in ("squared", "native"):
            raise ConfigError(f"Expected heads to be 'squared' or 'native', got heads={self.heads!r}.")
        require_device(self.device)
        if not isinstance(self.prior, Mixture | ByClass | StandardNormal):
            raise ConfigError(
                f"Expected prior to be Mixture(...), ByClass() or StandardNormal(), got prior={self.prior!r}."
            )
        if isinstance(self.prior, StandardNormal) and (self.record_norm is not None or self.variance is False):
            raise ConfigError(
                "Expected no record_norm and a variance network with prior=StandardNormal(), which has no axes. Leave "
                "record_norm and variance out."
            )
        if not isinstance(self.start, Random | PrincipalAxes):
            raise ConfigError(f"Expected start to be Random() or PrincipalAxes(), got start={self.start!r}.")
        if not isinstance(self.noise, Shares | Multipliers):
            raise ConfigError(f"Expected noise to be Shares(...) or Multipliers(...), got noise={self.noise!r}.")

    @classmethod
    def as_written(cls, data: str, *, n_public: int | None = None, delta: float = 1e-5) -> P3GM:
        """Return the paper's written settings for one of its data sets, at their true ε.

        Three diagonal components on ten axes; the decoder starts at random.

        Args:
            data: "credit", "adult", "isolet", "esr", "mnist" or "fashion_mnist".
            n_public: rows; by default the paper's.
            delta: δ at which ε is computed.

        Raises:
            ConfigError: no such data set.
        """
        return cls._published(data, written(data), n_public, delta)

    @classmethod
    def as_released(cls, data: str, *, n_public: int | None = None, delta: float = 1e-5) -> P3GM:
        """Return the settings of the authors' code for one of its data sets, at their true ε.

        One diagonal component on thirty axes; the decoder starts at the inverse projection. Arguments as `as_written`.
        """
        return cls._published(data, released(data), n_public, delta)

    @classmethod
    def presets(cls) -> Mapping[str, Preset]:
        """Return the paper's written settings and those of its authors' code, for its data sets."""
        return presets()

    @classmethod
    def _published(cls, data: str, settings: Mapping[str, Any], n_public: int | None, delta: float) -> P3GM:
        run, noise = published(data), settings["noise"]
        rows = run.rows if n_public is None else n_public
        probability, n_steps = schedule(rows, run.batch_size, run.epochs)
        plan = Plan(
            [
                *([] if data in IMAGES else [Stage(name=MARGINALS, noise_multiplier=noise.marginals)]),
                Stage(name=CENTRE, noise_multiplier=noise.centre),
                Stage(name=MOMENT, noise_multiplier=noise.moment),
                Stage(name=MIXTURE, noise_multiplier=noise.mixture, count=20),
                Stage(name=DECODER, noise_multiplier=noise.decoder, sampling_probability=probability, count=n_steps),
            ]
        )
        return cls(epsilon=account(plan, delta).epsilon, delta=delta, **settings)

    def stages(self, facts: Facts) -> list[Stage]:
        """The stages of the module's docstring."""
        require_networks(self.device)
        require_single_records(facts.unit_rows)
        probability, n_steps = schedule(facts.rows, self.batch_size, self.epochs)
        noise = self.noise.multipliers(
            nominal_budget(self.epsilon, self.delta, facts.rows),
            probability=probability,
            n_steps=n_steps,
            iterations=self.prior.iterations,
            tables=is_table(facts.schema),
        )
        descent = Stage(
            name=DECODER,
            noise_multiplier=noise.decoder,
            sampling_probability=probability,
            count=n_steps,
            measures="how the decoder and the encoder's variance should change",
        )
        marginals = marginal_stages(facts.schema, noise.marginals)
        if isinstance(self.prior, StandardNormal):
            return [*marginals, replace(descent, name=AUTOENCODER, measures="how the autoencoder should change")]
        return [
            *marginals,
            Stage(name=CENTRE, noise_multiplier=noise.centre, replace_distance=_SQRT2, measures="the mean record"),
            Stage(
                name=MOMENT,
                noise_multiplier=noise.moment,
                replace_distance=_SQRT2,
                measures="how entries of a record go together",
            ),
            em_stage(
                MIXTURE,
                form=self.prior.form,
                n_components=self._n_components(facts),
                dimension=min(self.latent_dim, flat_dimension(facts.schema)),
                iterations=self.prior.iterations,
                noise_multiplier=noise.mixture,
            ),
            descent,
        ]

    def _varies(self, schema: Schema) -> bool:
        return bool(schema.images) if self.variance is None else self.variance

    def _n_components(self, facts: Facts) -> int:
        if isinstance(self.prior, Mixture):
            return self.prior.n_components
        column = _class_column(facts)
        return 1 if column is None else facts.schema.of_kind(LevelKind)[column].width

    def run(self, fit: Fit) -> FittedModel:
        """Fit axes, mixture and decoder, or encoder and decoder; of a table, marginals first."""
        mapped = map_records(fit)
        if isinstance(self.prior, StandardNormal):
            q = self.latent_dim
            standard = GaussianMixture(np.ones(1), np.zeros((1, q)), np.eye(q)[None], self.prior.form)
            decoder = self._decoder(fit, AUTOENCODER, mapped.vectors)
            return self._fitted(fit, mapped, standard, decoder)
        axes, measured = self._axes(fit, mapped.vectors)
        prior, iterations = self._mixture(fit, mapped.vectors, axes)
        decoder = self._decoder(fit, DECODER, mapped.vectors, axes, prior)
        return self._fitted(fit, mapped, prior, decoder, *measured, (MIXTURE, iterations))

    def _fitted(
        self, fit: Fit, mapped: Mapped, prior: GaussianMixture, decoder: Layers, *measured: tuple[str, Noisy]
    ) -> FittedModel:
        """The sampler of a prior and a decoder, with all that was measured."""
        column = _class_column(fit.facts) if isinstance(self.prior, ByClass) else None
        settings, arrays = sampler_of(mapped, prior, decoder, heads=self.heads, draw=self.draw, class_column=column)
        return FittedModel(settings, arrays, (*mapped.measured, *measured))

    def _axes(self, fit: Fit, vectors: Vectors) -> tuple[LatentAxes, list[tuple[str, Noisy]]]:
        norm = vectors.typical_norm if self.record_norm is None else self.record_norm

        total = fit.measure(CENTRE, VectorSum(vectors, norm))
        centre = np.clip(total.value / fit.n_public, 0.0, 1.0)
        if self.record_norm is None:
            norm = spread_about(vectors, centre)
        second = fit.measure(MOMENT, CentredSecondMoment(vectors, centre, norm, bits=product_bits(fit.n_public)))
        # a divergence from a prior that is a point along an axis would hide the rest
        edge = 0.0 if self._varies(fit.data.schema) else symmetric_noise_edge(second.noise_std, vectors.dimension)
        axes = LatentAxes.of(
            centre, second.value, min(self.latent_dim, vectors.dimension), fit.n_public, noise_edge=edge
        )
        return axes, [(CENTRE, total), (MOMENT, second)]

    def _mixture(self, fit: Fit, vectors: Vectors, axes: LatentAxes) -> tuple[GaussianMixture, Noisy]:
        """Return the mixture of latents scaled to order 1, and what its iterations released."""

        def make() -> dict[str, np.ndarray]:
            reader, k, q = partial(axes.read, vectors), self._n_components(fit.facts), axes.latent_dim
            if isinstance(self.prior, Mixture):
                form = self.prior.form
                mixture, noisy = fit_mixture_prior(fit, MIXTURE, reader, n_components=k, form=form, dimension=q)
            else:
                classes = partial(_classes, _class_column(fit.facts))
                mixture, noisy = fit_class_prior(fit, MIXTURE, reader, classes, n_classes=k, dimension=q)
            return {**mixture.to_arrays(), **arrays_of(noisy)}

        arrays = fit.account.once(MIXTURE, make)
        prior = GaussianMixture.from_arrays(arrays, self.prior.form)
        scaled = GaussianMixture(
            prior.weights, prior.means * axes.scale, prior.dense_covariances() * axes.scale**2, FullCovariance()
        )
        return scaled, noisy_of(arrays, MIXTURE)

    def _decoder(
        self,
        fit: Fit,
        stage: str,
        vectors: Vectors,
        axes: LatentAxes | None = None,
        prior: GaussianMixture | None = None,
    ) -> Layers:
        """Train the decoder, without axes the encoder with it, and return it."""
        from sfumato.methods.nets.autoencoder import Autoencoder, Heads, Output, level_slices
        from sfumato.methods.nets.gradients import LossGradients
        from sfumato.methods.nets.sgd import Descent, train

        q = self.latent_dim if axes is None else axes.latent_dim
        network = Autoencoder(
            vectors.dimension,
            q,
            self.hidden,
            axes=axes,
            prior=prior,
            variance=axes is None or self._varies(fit.data.schema),
            output=Output(Heads(self.heads), level_slices(vectors.parts)),
        )
        if axes is not None and prior is not None and isinstance(self.start, PrincipalAxes):
            network.start_from(axes, prior)
        settings = Descent(clip_norm=self.clip_norm, learning_rate=self.learning_rate, device=self.device)
        train(fit, stage, LossGradients(network, network.losses, q), fit.data, vectors, settings)
        return network.layers()


def _class_column(facts: Facts) -> str | None:
    """Return the column whose levels are classes: the label of images; the target of a table, if it has levels."""
    if facts.schema.images:
        return ImageLayout.of(facts.schema).label
    return facts.target if facts.target in facts.schema.of_kind(LevelKind) else None


def _classes(column: str | None, rows: Rows) -> np.ndarray:
    """The class of each row: the level of a column; without one, all are of one class."""
    if column is None:
        return np.zeros(len(next(iter(rows.values()))), dtype=np.intp)
    return rows[column].astype(np.intp)
