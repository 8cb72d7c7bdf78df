"""ConditionalGaussian: class-conditional marginals and second moments in closed form, then a chain of columns.

Tables:
    counts of cells by class   G(σ₁/√c)   → class shares, marginals, groups of cells, clip norm
    second moments by class    G(σ₂)      → covariance between columns, spectrum shrunk at the noise edge; where columns
                                            are many, also class means of normal scores (`sfumato.learners.scored`)

Images: profiles, class sums, pooled second moment, class second moments (`sfumato.synthesizers.images`).

All are one-shot Gaussian releases; everything else is a function of what they released. Tables are sampled column by
column (`sfumato.models.chain`), calibrated to the released marginals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from sfumato.data.engine import reduce
from sfumato.data.kinds import LevelKind, n_levels
from sfumato.data.schema import Schema
from sfumato.data.set_kind import ItemSet
from sfumato.encoders.grid import Grid
from sfumato.errors import ConfigError, SchemaError, require_integer, require_open_unit, require_positive
from sfumato.learners.marginals import ClassCellCounts, TableLayout, fit_marginals
from sfumato.learners.moments import ClassSecondMoments, column_models, expected_norm, fit_chain
from sfumato.learners.scored import ScoredMarginals, fit_scored_chain
from sfumato.mechanisms.queries import noisy_histogram, noisy_second_moment
from sfumato.models.gaussian import symmetric_noise_edge
from sfumato.models.streams import public_stream
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.release.samplers import TableChain
from sfumato.synthesizers.base import Fit, Fitted, Synthesizer
from sfumato.synthesizers.images import (
    POSES,
    Pose,
    class_share_error,
    has_image,
    image_forecast,
    image_stages,
    run_images,
)
from sfumato.synthesizers.purposes import Fidelity, Purpose, Training
from sfumato.synthesizers.sizes import fits, require_fits

MARGINALS, MOMENTS = "marginals", "second moments by class"
_CALIBRATION_ROWS = 20_000
_CALIBRATION_SEED = 0
_MOST_CLASSES = 1_000
_LARGEST_EDGE = 1 / 3
_FEW_COLUMNS = 6
_LEAST_NORM = 0.05  # a table of constants by its released marginals has vectors of norm 0


@final
@dataclass(frozen=True, kw_only=True)
class ConditionalGaussian(Synthesizer):
    """The house's default method for tables.

    Attributes:
        marginal_share: part of the squared budget for the marginals, in (0, 1); the rest buys second moments.
        level_groups: most levels of a column that keep an indicator of their own; rarer ones share one.
        clip_slack: clip norm of a record's vector ÷ the norm that the released marginals make one expect; looser where
            there are fewer than six columns.
        constant_share: constant beside a record's normal scores ÷ their expected norm; it buys class means. Used
            where columns are many, numeric, and there are classes.
        purpose: `Fidelity()`: samples look and count like the records; `Training()`: samples of images teach a
            classifier best.
        pose: whether images are centred, straightened and scaled before their moments, and samples moved back:
            "affine", "none", or "auto": where most images do not touch their border, as a release says.
        calibration_rows: rows simulated to correct the chain of columns; by default 20,000. Fewer are quicker, and
            samples are less like the records; audits use few.
    """

    method: ClassVar[str] = "gaussian"
    discovers: ClassVar[bool] = True

    marginal_share: float = 0.4
    level_groups: int = 64
    clip_slack: float = 0.95
    constant_share: float = 0.5
    purpose: Purpose = field(default_factory=Fidelity)
    pose: Pose = "auto"
    calibration_rows: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_open_unit(marginal_share=self.marginal_share)
        require_integer(at_least=2, level_groups=self.level_groups)
        require_positive(clip_slack=self.clip_slack)
        require_positive(constant_share=self.constant_share)
        if self.calibration_rows is not None:
            require_integer(at_least=1, calibration_rows=self.calibration_rows)
        if not isinstance(self.purpose, Fidelity | Training):
            raise ConfigError(f"Expected purpose to be Fidelity() or Training(), got purpose={self.purpose!r}.")
        if self.pose not in POSES:
            raise ConfigError(f"Expected pose to be one of {', '.join(map(repr, POSES))}, got pose={self.pose!r}.")

    def stages(self, schema: Schema, *, target: str | None, n_public: int | None) -> list[Stage]:
        """For tables two releases, for images four; see the module's docstring."""
        if has_image(schema):
            return image_stages(schema, self.purpose)
        facts = _Facts.of(schema, target, self.level_groups)
        require_fits(facts.n_classes, facts.n_level_cells + facts.n_number_entries, facts.n_features)
        ratio = float(np.sqrt(2))
        return [
            Stage(
                name=MARGINALS,
                noise_multiplier=multiplier_for_share(self.marginal_share),
                replace_distance=ratio,
                measures="per class, how many rows lie in each cell of each column",
            ),
            Stage(
                name=MOMENTS,
                noise_multiplier=multiplier_for_share(1 - self.marginal_share),
                replace_distance=ratio,
                measures="per class, how the columns go together",
            ),
        ]

    def forecast(self, plan: Plan, schema: Schema, *, target: str | None, n_public: int) -> dict[str, str]:
        """Say what the noise of each stage means at `n_public`, from public facts alone."""
        if has_image(schema):
            return image_forecast(plan, schema, n_public)
        facts = _Facts.of(schema, target)
        share = self.one_way_error(plan, schema, target=target, n_public=n_public)
        slack = self.clip_slack * _few_columns(facts.n_features)
        squared_norm = slack**2 * facts.n_features * facts.unit_rows
        joint = plan[MOMENTS].noise_multiplier * squared_norm * np.sqrt(facts.n_classes / 2) / n_public
        return {
            MARGINALS: f"standard error of a 1-way share ±{share:.2g}",
            MOMENTS: f"standard error of a 2-way share ±{joint:.2g}",
        }

    def one_way_error(self, plan: Plan, schema: Schema, *, target: str | None, n_public: int) -> float:
        """The noise of the marginals' counts, of all classes together; of images, that of a class count."""
        if has_image(schema):
            return class_share_error(plan, schema, n_public)
        facts = _Facts.of(schema, target)
        noise_std = plan[MARGINALS].noise_multiplier * facts.unit_rows
        return float(noise_std * np.sqrt(facts.n_features * facts.n_classes) / n_public)

    def run(self, fit: Fit) -> Fitted:
        """Fit the marginals, the moments and the chain; or the moments of images."""
        schema = fit.data.schema
        if has_image(schema):
            return run_images(fit, self.pose, self.purpose)
        facts = _Facts.of(schema, fit.target, self.level_groups)
        plan = fit.ledger.plan
        cells = numeric_cells(plan[MARGINALS].noise_multiplier, facts, fit.n_public)
        grid = Grid.of(schema, numeric_cells=cells, widening=True)
        target = None if facts.n_classes == 1 else fit.target
        layout = TableLayout(grid, None if target is None else schema.released.index(target))
        counts = noisy_histogram(
            reduce(ClassCellCounts(layout), fit.data), stage=MARGINALS, ledger=fit.ledger, noise=fit.noise
        )
        marginals = fit_marginals(counts, layout.features)
        groups = numeric_groups(plan[MOMENTS].noise_multiplier, facts, fit.n_public)
        scored, constant = None, 0.0
        if groups == 1 and facts.n_classes > 1 and any(column.numeric for column in layout.features):
            scored = ScoredMarginals.of(counts, marginals, layout.features)
            marginals = scored.marginals
        columns = column_models(marginals, layout.features, level_groups=self.level_groups, numeric_groups=groups)
        norm = max(expected_norm(columns), _LEAST_NORM)
        if scored is not None:
            constant = self.constant_share * norm
        slack = self.clip_slack * _few_columns(facts.n_features)
        clip_norm = slack * float(np.hypot(norm, constant))
        statistic = ClassSecondMoments(layout, columns, clip_norm, constant)
        moments = noisy_second_moment(reduce(statistic, fit.data), stage=MOMENTS, ledger=fit.ledger, noise=fit.noise)
        if scored is None:
            model = fit_chain(moments, marginals, columns)
        else:
            model = fit_scored_chain(moments, scored, columns, constant)
        model = model.calibrated(self.calibration_rows or _CALIBRATION_ROWS, public_stream(_CALIBRATION_SEED))
        return Fitted(
            sampler={"name": TableChain.name, "numeric_cells": cells, "widening": True, "target": target},
            parameters=model.to_arrays(),
            measurements=((ClassCellCounts.name, counts), (ClassSecondMoments.name, moments)),
        )


@dataclass(frozen=True, slots=True)
class _Facts:
    """Public sizes that settings follow from."""

    n_classes: int
    n_features: int
    n_level_cells: int
    unit_rows: int = 1
    n_number_entries: int = 0  # at least: of scores, and of what tells missing numbers

    @classmethod
    def of(cls, schema: Schema, target: str | None, level_groups: int | None = None) -> _Facts:
        """Read them off a schema; levels beyond `level_groups` share a cell.

        Raises:
            SchemaError: the target has no classes, or too many, or a column holds sets.
        """
        released = schema.released
        sets = [name for name in released if isinstance(schema.columns[name], ItemSet)]
        if sets:
            raise SchemaError(
                f"Expected columns of labels, numbers or dates for the method gaussian, got sets of items in column "
                f"{sets[0]!r}. Use the method independent-items for a column of sets alone, or declare it as "
                "identifier to leave it out."
            )
        n_classes = 1
        # a table of the target alone has nothing to condition on
        if target is not None and len(released) > 1:
            kind = schema.columns[target]
            if not isinstance(kind, LevelKind):
                target = None
            else:
                n_classes = n_levels(kind)
        if n_classes > _MOST_CLASSES:
            raise SchemaError(
                f"Expected a target of at most {_MOST_CLASSES} classes, got {target!r} with {n_classes}. "
                "Name another target, or none."
            )
        features = [schema.columns[name] for name in released if name != target or n_classes == 1]
        levels = [n_levels(kind) for kind in features if isinstance(kind, LevelKind)]
        cells = sum(levels if level_groups is None else (min(n, level_groups) for n in levels))
        entries = sum(1 + 2 * getattr(kind, "nullable", False) for kind in features if not isinstance(kind, LevelKind))
        return cls(n_classes, len(features), cells, 1 if schema.unit is None else schema.unit.max_rows, entries)


def _few_columns(n_features: int) -> float:
    """Return how much looser to clip: the fewer columns, the more norms spread and the less noise matters."""
    return float(np.sqrt(max(1.0, _FEW_COLUMNS / n_features)))


def numeric_cells(noise_multiplier: float, facts: _Facts, n_public: int) -> int:
    """Return how many cells a numeric column is cut into: as many as an average cell's count is 4 times its noise.

    Between 8 and 128. Uses public facts only, or a bought number of rows.
    """
    noise_std = noise_multiplier * np.sqrt(facts.n_features) * facts.unit_rows
    return int(np.clip(n_public / (facts.n_classes * 4 * noise_std), 8, 128))


def numeric_groups(noise_multiplier: float, facts: _Facts, n_public: int) -> int:
    """Return how many groups of cells stand for a numeric column in the moments; 1 means a normal score.

    The most groups, up to 10, for which the noise of a class's moments stays below a third of a column's own
    variance in spectral norm; a score needs one entry where g groups need g.
    """
    for groups in (10, 8, 6, 4):
        dimension = facts.n_level_cells + groups * facts.n_features
        noise_std = noise_multiplier * facts.n_features * facts.unit_rows * facts.n_classes / n_public
        if symmetric_noise_edge(noise_std, dimension) <= _LARGEST_EDGE and fits(facts.n_classes, dimension):
            return groups
    return 1
