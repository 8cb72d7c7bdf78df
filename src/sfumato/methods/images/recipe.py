"""The images of MaxEntropy: four releases, and for training a classifier's noisy gradients.

    profiles                3 %    → sorted intensities by area, mean pose, whether images touch the border; C
    class sums             15 %    → class counts and means; C'
    pooled second moment   27 %    → leading axes, variances of the rest; C''
    class second moments   55 %    → covariances along the axes and of pose, exposure, area

    classifier, 10 times   a quarter of all, for training only → which samples to keep (`teacher.py`)

The class is the label column, whatever the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sfumato.errors import ConfigError
from sfumato.maths.gaussian import symmetric_noise_edge
from sfumato.maths.streams import public_stream
from sfumato.methods.images.model import (
    MOST_AXES,
    ClassMeans,
    Intensities,
    Spread,
    class_factors,
    sampler_arrays,
    sums_clip_norm,
)
from sfumato.methods.images.statistics import ClassMoments, ClassSums, PooledMoment, Profiles
from sfumato.methods.images.teacher import CLIP_NORM, STEPS, Standardised, TeacherGradient, train, warm_start
from sfumato.models.images.coefficients import ImageEncoder, ImageLayout
from sfumato.models.images.gradients import gradient_features
from sfumato.models.images.sampler import ImagePortrait
from sfumato.plugins import (
    Facts,
    Fit,
    FittedModel,
    Noisy,
    Plan,
    Pose,
    Purpose,
    Stage,
    Synthesizer,
    Training,
    multiplier_for_share,
    product_bits,
    together,
)

PROFILES, SUMS, POOLED, MOMENTS = "profiles", "class sums", "pooled second moment", "second moments by class"
TEACHER = "classifier's gradients"
_SHARES = {PROFILES: 0.03, SUMS: 0.15, POOLED: 0.27, MOMENTS: 0.55}
_MEASURES = {
    PROFILES: "how much of an image is lit, how brightly, and its mean pose",
    SUMS: "per class, how many images, and their mean",
    POOLED: "how coefficients of images go together in all classes",
    MOMENTS: "per class, how the leading axes, pose, exposure and area go together",
}
_SQRT2 = float(np.sqrt(2))
_LIT = 0.2  # of the values of an image, for forecasts: no norm is known before the profiles are
_EXPLAINED = 0.6
_WARM_BLOCKS, _WARM_BLOCK, _WARM_SEED = 5, 4096, 0  # synthetic images that the classifier starts from
_COUNT_ERROR = float(np.sqrt(101))  # norm of a record's class sums ÷ the constant that counts it


@final
@dataclass(frozen=True, kw_only=True)
class ImageEntropy(Synthesizer):
    """`MaxEntropy` of images, which gets its settings from there.

    Attributes:
        purpose: what samples are for.
        pose: whether images are posed before their moments.
    """

    method: ClassVar[str] = "max-entropy"

    purpose: Purpose
    pose: Pose

    def stages(self, facts: Facts) -> list[Stage]:
        """The four stages, and for training the classifier's.

        Raises:
            ConfigError: the schema is not of one image column and at most one label column, or has no labels to train
                on.
        """
        layout, left = ImageLayout.of(facts.schema), 1.0
        teacher = []
        if isinstance(self.purpose, Training):
            if layout.label is None:
                raise ConfigError(
                    "Expected a label column beside the images for purpose Training(). Declare it, or leave "
                    "the purpose out."
                )
            left = 1 - self.purpose.teacher_share
            teacher = [
                Stage(
                    name=TEACHER,
                    noise_multiplier=multiplier_for_share(self.purpose.teacher_share / STEPS),
                    count=STEPS,
                    measures="how a classifier of images should change",
                )
            ]
        moments = [
            Stage(
                name=name,
                noise_multiplier=multiplier_for_share(share * left),
                replace_distance=2.0 if name == SUMS else _SQRT2,
                measures=_MEASURES[name],
            )
            for name, share in _SHARES.items()
        ]
        return moments + teacher

    def one_way_error(self, plan: Plan, facts: Facts) -> float:
        """The forecast standard error of a class share."""
        return plan[SUMS].noise_multiplier * _COUNT_ERROR * facts.unit_rows / facts.rows

    def forecast(self, plan: Plan, facts: Facts) -> dict[str, str]:
        """What the noise means for classes of equal size, images a fifth lit, and means that explain 60 % of them."""
        layout = ImageLayout.of(facts.schema)
        error = self.one_way_error(plan, facts)
        n_public = facts.rows / facts.unit_rows  # noise grows with the rows of a unit
        area = _LIT * layout.dimension
        each = n_public / layout.n_classes
        residual = (1 - _EXPLAINED) * area
        low = ImageEncoder(layout).n_low
        pixel = plan[SUMS].noise_multiplier * np.sqrt(area) / each
        pooled = symmetric_noise_edge(plan[POOLED].noise_multiplier * residual, low) / n_public
        moments = symmetric_noise_edge(plan[MOMENTS].noise_multiplier * residual, MOST_AXES) / each
        known = {
            PROFILES: f"standard error of a share of areas ±{plan[PROFILES].noise_multiplier * 10 / n_public:.2g}",
            SUMS: f"standard error of a class share ±{error:.2g}, of a pixel of a mean image ±{pixel:.2g}",
            POOLED: f"an axis is seen if its variance exceeds {pooled:.2g}",
            MOMENTS: f"a class's own variance is seen if it exceeds {moments:.2g}",
        }
        if plan.stages[-1].name == TEACHER:
            step = plan[TEACHER].noise_multiplier * CLIP_NORM / n_public
            known[TEACHER] = f"standard error of an entry of a mean gradient ±{step:.2g}"
        return known

    def run(self, fit: Fit) -> FittedModel:
        """Fit the images."""
        layout = ImageLayout.of(fit.data.schema)
        profiles = Profiles(layout)
        first = fit.measure(PROFILES, profiles)
        intensities = Intensities.of(profiles, first)
        # pictures that mostly touch the border were framed by whoever made them
        posed = self.pose == "affine" or (self.pose != "none" and intensities.bordered < 0.5)
        encoder = ImageEncoder(layout, intensities.pose if posed and layout.can_be_posed else None)
        sums = ClassSums(encoder, sums_clip_norm(intensities, encoder))
        second = fit.measure(SUMS, sums)
        known = ClassMeans.of(sums, second, intensities.area)
        pooled = PooledMoment(encoder, known.means, known.clip_norm, bits=product_bits(fit.n_public))
        third = fit.measure(POOLED, pooled)
        spread = Spread.of(pooled, third, float(known.counts.sum()))
        moments = ClassMoments(encoder, known.means, spread.axes, spread.clip_norm, bits=product_bits(fit.n_public))
        fourth = fit.measure(MOMENTS, moments)
        fitted = FittedModel(
            sampler={"name": ImagePortrait.name, "image": layout.image, "label": layout.label},
            parameters=sampler_arrays(intensities, known, spread, class_factors(fourth, known.counts), encoder),
            measurements=((PROFILES, first), (SUMS, second), (POOLED, third), (MOMENTS, fourth)),
        )
        purpose = self.purpose
        return _for_training(fit, fitted, encoder, purpose) if isinstance(purpose, Training) else fitted


def _for_training(fit: Fit, fitted: FittedModel, encoder: ImageEncoder, purpose: Training) -> FittedModel:
    """Train the classifier that samples have to agree with, and vary samples."""
    layout = encoder.layout
    sampler = ImagePortrait(fit.data.schema, fitted.sampler, fitted.parameters)
    stream = public_stream(_WARM_SEED)
    samples = [sampler.rows(_WARM_BLOCK, stream) for _ in range(_WARM_BLOCKS)]
    features = np.concatenate([gradient_features(layout.pictures(rows[layout.image]), encoder) for rows in samples])
    standardised = Standardised.of(encoder, features)
    classes = np.concatenate([layout.classes(rows) for rows in samples])
    released: list[Noisy] = []

    def gradient(weights: np.ndarray) -> np.ndarray:
        statistic = TeacherGradient(standardised, weights, bits=product_bits(fit.n_public))
        released.append(fit.measure(TEACHER, statistic))
        return released[-1].value

    start = warm_start(standardised.vectors(features), classes, layout.n_classes)
    coefficients, offsets = standardised.linear(train(start, gradient, fit.n_public))
    varied = {"spread": purpose.spread, "elastic": purpose.elastic, "jitter": purpose.jitter}
    return FittedModel(
        sampler={**fitted.sampler, **varied},
        parameters={**fitted.parameters, "teacher_coefficients": coefficients, "teacher_offsets": offsets},
        measurements=(*fitted.measurements, (TEACHER, together(released))),
    )
