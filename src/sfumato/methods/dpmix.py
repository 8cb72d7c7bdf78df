"""DPMix: the release is a data set of noisy mixtures of records, with soft labels, to train models on.

    T mixtures   P(ℓ/n, G(z)) × T   (`sfumato.mechanisms.mixing`)

Everything else is public: clip norms, ℓ, T, and the split of the noise between features and labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, final

import numpy as np

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.models.mixed import MixtureSet, SplitEncoder, mixture_columns
from sfumato.plugins import (
    Facts,
    Fit,
    FittedModel,
    FixedDegreeMixing,
    MixableRecords,
    Mixing,
    MixtureSettings,
    Noisy,
    NonPrivate,
    Plan,
    PoissonMixing,
    Preset,
    PrivacyBudget,
    Stage,
    SubsetMixing,
    Synthesizer,
    default_delta,
    label_share,
    noisy_mixtures,
    one_shot,
    product_error,
    sampled,
)

MIXTURES = "mixtures"
_MOST_AUTO_DEGREE = 1024
_LABEL_NORM = 1.0  # of a one-hot code
_PUBLISHED_DEGREE, _PUBLISHED_NORM = 64, 28.0  # ℓ of its best at ε = 10, and the longest image of 28 × 28 pixels
_DIFFERS = (
    "as the paper for images of 28 x 28, but epsilon is by exact account, as the paper's theorem has an error in its "
    "exponent; features and labels have shares of the noise, where the paper prints neither's; neighbours differ by a "
    "replaced record."
)


@final
@dataclass(frozen=True, slots=True)
class AutoDegree:
    """In place of a mixture degree ℓ: a public formula picks it, from ε, δ, the numbers of rows, mixtures and columns.

    Small ℓ needs much noise; in mixtures of many records, which look alike, little is left to learn from. Of the powers
    of two up to 1024 and half the rows, the ℓ is taken that minimises

        √ℓ·(1 + a/(1−f))·(1 + b/f),   a = d_X z²/ℓ,   b = d_Y z²/ℓ

    where z is the noise multiplier that ε and δ ask for at ℓ, d_X and d_Y are the numbers of features and labels, and f
    is the labels' share of the budget. The two factors are how much noise adds to the variance of estimated products of
    features and labels; √ℓ stands for what a nonlinear model loses. Of 60,000 images of 784 pixels: 16 at ε = 1, 32 at
    3, 64 at 10.
    """


@final
@dataclass(frozen=True, kw_only=True)
class DPMix(Synthesizer):
    """Noisy mixtures of records and their soft labels.

    The release is the data set: `sample` gives it back, whole or in part, and no more than it has.

    Attributes:
        mixture_degree: ℓ, the mean number of records in a mixture, or `AutoDegree()`.
        n_mixtures: T; by default the public number of rows.
        mixing: `PoissonMixing()`; `SubsetMixing()`, whose guarantee is under replace-one only; `FixedDegreeMixing()`.
        clip_norm: C_X, of a record's features, each in [0, 1]; by default √d/3 for images of d values, and for tables
            what no row exceeds.
        denoise: standard deviation in pixels of a Gaussian filter on the images of samples; 0 for none.
    """

    method: ClassVar[str] = "dpmix"
    needs_declared_rows: ClassVar[bool] = True
    makes_model: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset({"unit"})  # of its rows none can be made to keep rules

    mixture_degree: int | AutoDegree = field(default_factory=AutoDegree)
    n_mixtures: int | None = None
    mixing: Mixing = field(default_factory=PoissonMixing)
    clip_norm: float | None = None
    denoise: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.mixture_degree, AutoDegree):
            require_integer(at_least=1, mixture_degree=self.mixture_degree)
        if self.n_mixtures is not None:
            require_integer(at_least=1, n_mixtures=self.n_mixtures)
        if self.clip_norm is not None:
            require_positive(clip_norm=self.clip_norm)
        if self.denoise != 0:
            require_positive(denoise=self.denoise)
        if not isinstance(self.mixing, PoissonMixing | SubsetMixing | FixedDegreeMixing):
            raise ConfigError(f"Expected mixing to be PoissonMixing() or another mixing, got mixing={self.mixing!r}.")

    @classmethod
    def presets(cls) -> Mapping[str, Preset]:
        """Return the paper's mixtures of subsets, as they are and with its blur (ISIT 2019)."""
        settings = {
            "mixing": SubsetMixing(), "mixture_degree": _PUBLISHED_DEGREE, "n_mixtures": None,
            "clip_norm": _PUBLISHED_NORM,
        }  # fmt: skip
        return {
            "published": Preset({**settings, "denoise": 0.0}, _DIFFERS),
            "published-denoised": Preset({**settings, "denoise": 1.0}, f"With its blur of one pixel; {_DIFFERS}"),
        }

    def stages(self, facts: Facts) -> list[Stage]:
        """One stage of T mixtures."""
        unit = facts.schema.unit
        if unit is not None and unit.max_rows > 1:
            raise ConfigError(
                f"Expected a unit of one row for dpmix, got unit {unit.column!r} of up to "
                f"{unit.max_rows} rows. Declare max_rows: 1, or use another method."
            )
        degree = self._degree(_Shape.of(facts, self.clip_norm), facts.rows)
        return [self._stage(degree, facts.rows)]

    def sampling(self, plan: Plan) -> str:
        """Say who joins a mixture."""
        return {
            PoissonMixing: "Poisson: every unit joins every mixture independently, with the stage's probability",
            SubsetMixing: "subsets: every mixture is of a fixed number of units, without replacement",
            FixedDegreeMixing: "none: every unit joins a fixed number of mixtures",
        }[type(self.mixing)]

    def _stage(self, degree: int, n_public: int) -> Stage:
        mixtures = self.n_mixtures or n_public
        return self.mixing.stage(
            MIXTURES, degree=degree, n_mixtures=mixtures, n_public=n_public, measures="mixtures of random records"
        )

    def _degree(self, shape: _Shape, n_public: int) -> int:
        """Return ℓ; `AutoDegree` takes the power of two of the least forecast error."""
        if not isinstance(self.mixture_degree, AutoDegree):
            return self.mixture_degree
        delta = default_delta(n_public) if self.delta is None else self.delta
        if isinstance(self.epsilon, NonPrivate):
            return 1
        budget, errors = PrivacyBudget(self.epsilon, delta), {}
        degree = 1
        while degree <= min(_MOST_AUTO_DEGREE, max(n_public // 2, 1)):
            stage = self._stage(degree, n_public)
            rough = replace(stage, noise_multiplier=_rough_multiplier(stage, budget))
            errors[degree] = math.sqrt(degree) * product_error(
                multiplier=self._settings(degree, n_public, 0.0).multiplier(rough),
                degree=degree,
                n_features=shape.n_features,
                n_labels=shape.n_labels,
            )
            degree *= 2
        return min(errors, key=errors.__getitem__)

    def _settings(self, degree: int, n_public: int, share: float) -> MixtureSettings:
        return MixtureSettings(
            mixing=self.mixing,
            degree=degree,
            n_mixtures=self.n_mixtures or n_public,
            n_public=n_public,
            label_share=share,
        )

    def settings(self, stage: Stage, facts: Facts) -> MixtureSettings:
        """Return the public settings of a planned stage's mixtures."""
        shape = _Shape.of(facts, self.clip_norm)
        degree = self._degree(shape, facts.rows)
        if stage.inclusion is not None:
            degree = round(stage.inclusion * facts.rows)
        plain = self._settings(degree, facts.rows, 0.0)
        z = plain.multiplier(stage)
        share = label_share(multiplier=z, degree=degree, n_features=shape.n_features, n_labels=shape.n_labels)
        return replace(plain, label_share=share)

    def forecast(self, plan: Plan, facts: Facts) -> dict[str, str]:
        """Say ℓ, and the noise of a mixture's entries."""
        shape, settings = _Shape.of(facts, self.clip_norm), self.settings(plan[MIXTURES], facts)
        x, y = settings.noise_stds(plan[MIXTURES], shape.feature_norm, _LABEL_NORM)
        labels = f", ±{y:.2g} on a label" if shape.n_labels else ""
        return {MIXTURES: f"{settings.degree} records in each on average, noise ±{x:.2g} on a feature{labels}"}

    def run(self, fit: Fit) -> FittedModel:
        """Read the records once, and mix them."""
        shape, settings = _Shape.of(fit.facts, self.clip_norm), self.settings(fit.plan[MIXTURES], fit.facts)
        records = shape.read(fit)
        if isinstance(self.mixing, SubsetMixing) and not fit.data.counts_entries:
            records = records.settled(fit.n_public)
        features = np.empty((settings.n_mixtures, shape.n_features), dtype=np.float32)
        labels = np.empty((settings.n_mixtures, shape.n_labels), dtype=np.float32)
        start = 0
        for block in noisy_mixtures(records, settings, stage=MIXTURES, ledger=fit.ledger, noise=fit.noise):
            stop = start + len(block.features)
            features[start:stop], labels[start:stop] = block.features, block.labels
            start = stop
        stds = (0.0, 0.0)
        if not fit.noise.silent:
            stds = settings.noise_stds(fit.plan[MIXTURES], shape.feature_norm, _LABEL_NORM)
        measured = [("mixed features", Noisy(features, stds[0]))]
        if shape.n_labels:
            measured.append(("mixed labels", Noisy(labels, stds[1])))
        return FittedModel(
            sampler={"name": MixtureSet.name, "target": fit.target, "denoise": self.denoise},
            parameters={"features": features, "labels": labels},
            measurements=tuple(measured),
        )


def _rough_multiplier(stage: Stage, budget: PrivacyBudget) -> float:
    """Return about the stage's noise multiplier at a budget, by the central limit theorem: to compare degrees by.

    It is 5 to 40 % below the exact one, by about as much at neighbouring degrees; what a fit charges is exact.
    """
    if stage.inclusion is None:
        return one_shot(1.0, budget)
    z = sampled(1.0, budget, probability=stage.inclusion, count=stage.count)
    return z if stage.subset is None else z * stage.replace_distance


@dataclass(frozen=True, slots=True)
class _Shape:
    """How records become features and labels: public facts."""

    encoder: SplitEncoder
    n_features: int
    n_labels: int
    feature_norm: float

    @classmethod
    def of(cls, facts: Facts, clip_norm: float | None) -> _Shape:
        """Read it off a schema; of images, the label column is the target."""
        encoder = SplitEncoder.of(facts.schema, facts.target)
        n_features, n_labels = encoder.sizes
        if encoder.table is None:
            bound = math.sqrt(n_features) / 3
        else:
            mixture_columns(facts.schema)
            if not n_features:
                raise ConfigError("Expected columns besides the target for dpmix, got none. Name no target.")
            bound = math.sqrt(sum(b.norm_bound**2 for b in encoder.table.blocks if b.name != facts.target))
        return cls(encoder, n_features, n_labels, clip_norm or bound or 1.0)

    def read(self, fit: Fit) -> MixableRecords:
        """Read all records into memory, clipped: a chunk at a time is wider than it has to be."""
        with np.errstate(all="ignore"):  # a warning of numpy's would say something of a record
            return MixableRecords.of_chunks(
                map(self.encoder.encode, fit.data.coded()),
                n_features=self.n_features,
                n_labels=self.n_labels,
                feature_norm=self.feature_norm,
                label_norm=_LABEL_NORM,
            )
