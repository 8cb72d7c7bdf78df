"""A method for plain tables with a second stage of your own: what is left to write is the stage. See docs/plugins.md.

The first release, settings, the chain of columns and its sampler are those of the default method.

>>> from sfumato.two_stages import FirstRelease, SecondRelease, SecondStage, TwoStageTables, counted_moments
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from sfumato.errors import require_integer, require_open_unit
from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.maths.constants import SIZES
from sfumato.methods.tables.estimated_model import counted_moments
from sfumato.methods.tables.recipe import measure_table, one_way_error, table_stages
from sfumato.methods.tables.second_stage import FirstRelease, SecondRelease, SecondStage
from sfumato.methods.tables.settings import Names
from sfumato.privacy.plan import Plan, Stage
from sfumato.schema.grid import table_kinds

__all__ = ["FirstRelease", "SecondRelease", "SecondStage", "TwoStageTables", "counted_moments"]


@dataclass(frozen=True, kw_only=True)
class TwoStageTables(Synthesizer):
    """Counts of every column's cells, then a second stage, then a chain of columns.

    Attributes:
        marginal_share: part of the squared budget for the counts, in (0, 1).
        level_groups: most levels of a column that keep an indicator of their own; rarer ones share one.
        calibration_rows: rows simulated to fit the chain of columns.
    """

    marginal_share: float = 0.4
    level_groups: int = SIZES.level_groups
    calibration_rows: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_open_unit(marginal_share=self.marginal_share)
        require_integer(at_least=2, level_groups=self.level_groups)

    @abstractmethod
    def second_stage(self, facts: Facts) -> SecondStage:
        """The second stage for a table; refuses what it cannot measure, before anything is charged."""

    def stages(self, facts: Facts) -> list[Stage]:
        """The counts, and the second stage; images are refused."""
        table_kinds(facts.schema)
        second, share, groups = self.second_stage(facts), self.marginal_share, self.level_groups
        return table_stages(facts, marginal_share=share, level_groups=groups, stage=second)

    def one_way_error(self, plan: Plan, facts: Facts) -> float:
        """The noise of a label's share, of all classes together."""
        return one_way_error(plan, facts, Names())

    def run(self, fit: Fit) -> FittedModel:
        """Measure twice, and fit the chain."""
        second, groups, simulated = self.second_stage(fit.facts), self.level_groups, self.calibration_rows
        return measure_table(fit, level_groups=groups, clip_slack=1.0, simulated=simulated, second=second)
