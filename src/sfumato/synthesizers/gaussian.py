"""ConditionalGaussian: class-conditional marginals and second moments in closed form, then a chain of columns.

    counts of cells by class   G(σ₁/√c)   → class shares, marginals, groups of cells, clip norm
    second moments by class    G(σ₂)      → covariance between columns, spectrum shrunk at the noise edge

Both are one-shot Gaussian releases; everything else is a function of what they released. Sampling draws column by
column (`sfumato.models.chain`), calibrated to the released marginals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sfumato.data.engine import reduce
from sfumato.data.kinds import Boolean, Categorical, Ordinal
from sfumato.data.schema import Schema
from sfumato.encoders.grid import Grid
from sfumato.errors import SchemaError
from sfumato.learners.moments import (
    ClassCellCounts,
    ClassSecondMoments,
    TableLayout,
    column_models,
    expected_norm,
    fit_chain,
    fit_marginals,
)
from sfumato.mechanisms.queries import noisy_histogram, noisy_second_moment
from sfumato.privacy.plan import Stage, multiplier_for_share
from sfumato.synthesizers.base import Fit, Fitted, Synthesizer

MARGINALS, MOMENTS = "marginals", "second moments"
_CALIBRATION_ROWS = 20_000
_CALIBRATION_SEED = 0


@final
@dataclass(frozen=True, kw_only=True)
class ConditionalGaussian(Synthesizer):
    """The house's default method for tables.

    Attributes:
        marginal_share: part of the squared budget for the marginals, in (0, 1); the rest buys second moments.
        level_groups: most levels of a column that keep an indicator of their own; rarer ones share one.
        clip_slack: clip norm of a record's vector ÷ the norm that the released marginals make one expect.
    """

    method: ClassVar[str] = "gaussian"

    marginal_share: float = 0.4
    level_groups: int = 64
    clip_slack: float = 1.1
    numeric_groups: int | None = None
    numeric_cells: int | None = None

    def stages(self, schema: Schema, *, target: str | None, n_public: int | None) -> list[Stage]:
        """Two releases: counts of cells by class, then second moments by class."""
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
                measures="per class, how the columns' cells go together",
            ),
        ]

    def run(self, fit: Fit) -> Fitted:
        cells = self.numeric_cells or 128
        grid = Grid.of(fit.data.schema, numeric_cells=cells)
        names = [column.name for column in grid.columns]
        layout = TableLayout(grid, None if fit.target is None else names.index(fit.target))
        counts = noisy_histogram(
            reduce(ClassCellCounts(layout), fit.data), stage=MARGINALS, ledger=fit.ledger, noise=fit.noise
        )
        marginals = fit_marginals(counts, layout.features)
        columns = column_models(
            marginals, layout.features, level_groups=self.level_groups, numeric_groups=self.numeric_groups or 10
        )
        statistic = ClassSecondMoments(layout, columns, self.clip_slack * expected_norm(columns))
        moments = noisy_second_moment(
            reduce(statistic, fit.data), stage=MOMENTS, ledger=fit.ledger, noise=fit.noise
        )
        rng = np.random.Generator(np.random.PCG64(_CALIBRATION_SEED))  # noqa: TID251 - public randomness
        model = fit_chain(moments, marginals, columns).calibrated(_CALIBRATION_ROWS, rng)
        return Fitted(
            sampler={"name": "table_chain", "numeric_cells": cells, "target": fit.target},
            parameters=model.to_arrays(),
            measurements=((ClassCellCounts.name, counts), (ClassSecondMoments.name, moments)),
        )
