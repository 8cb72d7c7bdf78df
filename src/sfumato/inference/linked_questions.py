"""Questions about all rows of a release of linked rows.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.calibration import FITTED, STRONG, Calibration
from sfumato.inference.estimator import Estimator
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.linked_rows import LinkedMeasurements, StepPart
from sfumato.inference.questions import Questions
from sfumato.inference.set_sizes import require_few_items
from sfumato.inference.totals import Totals
from sfumato.release.model import ReleaseValue
from sfumato.schema.set_columns import SetColumn

# Standard deviations by which means under a walk of several steps may be off: as under a model of pairs where ties are
# strong; where measurements miss them by more than is usual (decision 64), twice as much, and by far more, no answer.
_FURTHER = 2 * STRONG
_USUAL_SURPRISE, _LARGEST_SURPRISE = 0.5, 0.8


class LinkedQuestions(Questions):
    """Answers about all rows of units, from one release."""

    measured: LinkedMeasurements
    measurements = LinkedMeasurements

    def estimator(
        self, columns: tuple[str, ...], target: str, fitted: float = FITTED, *, free: bool = False
    ) -> Estimator:
        """Return rows calibrated to what was measured of some columns: as `Questions.estimator`.

        Raises:
            EstimateError: also of several columns together, where steps of long units do not count whole.
        """
        if not free and len(set(columns)) > 1:
            self._require_pairs(columns)
        return replace(super().estimator(columns, target, fitted, free=free), row_note=self._row_note)

    @cached_property
    def _row_note(self) -> str:
        """A sentence on the rows of long units, which do not count."""
        measured = self.measured
        most, count = measured.linked.max_rows, measured.linked.count
        if not count:
            return "Of a unit one row counts. "
        sizes = measured.unit_part.counts(count)
        if sizes is None:
            return f"Of a unit at most {most} rows count. "
        share = float(np.clip(sizes.cells[-1] / measured.unit_part.size, 0.0, 1.0))
        many = f"about {100 * share:.2g} % of the units have so many, and may have had more"
        return f"Of a unit at most {most} rows count: {many}. "

    def estimator_of_sums(self, columns: tuple[str, ...], target: str, what: str, *, named: bool = False) -> Estimator:
        """Return `estimator` of a product of columns, of which some may follow from measured ones by rules."""
        for name in columns:
            self.require_column(name, following=True)
        sums = [self.rules.terms(name) for name in dict.fromkeys(columns)]
        if len(sums) > 1 or any(len(term) > 1 for terms in sums for term in terms):
            self._require_pairs(columns)
        return super().estimator_of_sums(columns, target, what, named=named)

    def require_column(self, name: str, *, following: bool = False) -> None:
        """Refuse what is no column of rows: as `Rows.require_column`.

        Raises:
            ConfigError: also of the number of rows, which units have.
        """
        if name and name == self.measured.linked.count:
            raise ConfigError(
                f"Expected a column of rows, got {name!r}, which units have. Ask release.units (--units) about it."
            )
        super().require_column(name, following=following)

    def _rows_of_sizes(self, column: SetColumn, target: str) -> Estimator:
        """Return rows calibrated to what was measured of units and of steps."""
        require_few_items(column)
        return self.estimator(column.items, target, free=True)

    def _require_pairs(self, columns: Sequence[str]) -> None:
        """Refuse a question about several columns of all rows, where these were not measured together of long units."""
        part = self.measured.step_part
        if self.measured.pairs or part is None:
            return
        names = " and ".join(map(repr, dict.fromkeys(columns)))
        raise EstimateError(
            f"Expected a question about one column of all rows, got {names} together: how these go together was "
            f"measured of rows that share the bound of {part.whole} of a unit's {self.measured.linked.max_rows - 1} "
            "steps, and not how that differs between units of few and of many rows. Ask release.units (--units) about "
            "first rows, or fit with a larger epsilon or a smaller max_rows."
        )

    def _calibration(self, columns: Sequence[str], fitted: float) -> Calibration:
        measured = self.measured
        tables, units, steps = measured.linked, measured.unit_part, measured.step_part
        counted = [tables.count] if tables.count else []
        # products by class are shrunk by the model as far as they are noise: no sign of a model that is off
        of_units = cell_functions(units, [*columns, *counted])
        parts = [measured_functions(units, of_units, by_class=len(set(columns)) > 1)]
        if steps is not None:
            before = [tables.before[name] for name in columns if name == tables.order]
            wanted = cell_functions(steps, [name for name in (*columns, *before, *counted) if name in steps.columns])
            wanted[tables.count] = [_unweighing(steps, tables.count), *wanted[tables.count]]
            of_steps = measured_functions(steps, wanted)
            summed = replace(of_steps, functions=steps.sums.of(of_steps.functions))
            parts.append(summed.with_rows())
        totals = Totals.joined(parts)
        calibration = self._calibrated(totals, max(fitted, STRONG))
        if calibration.surprise > _LARGEST_SURPRISE:
            names = ", ".join(map(repr, dict.fromkeys(columns)))
            raise EstimateError(
                f"Expected a release whose model of all rows of a unit agrees with its measurements, got one that is "
                f"further off in {names} than their noise explains. Ask release.units (--units) about first rows, or "
                "fit with a larger epsilon or more units."
            )
        if calibration.surprise > _USUAL_SURPRISE:
            calibration = self._calibrated(totals, max(fitted, _FURTHER))
        return calibration

    def _calibrated(self, totals: Totals, fitted: float) -> Calibration:
        return self.measured.calibration(totals, fitted, self.measured.sums)


def _unweighing(steps: StepPart, count: str) -> np.ndarray:
    """Return 1/w of the steps in each cell of their units' number of rows, shape (cells,)."""
    cells = steps.cells(count)
    sizes = np.bincount(cells, minlength=steps.column(count).n_cells)
    return np.bincount(cells, 1 / steps.row_counts, sizes.size) / np.maximum(sizes, 1)


def questions_of(release: ReleaseValue) -> Questions:
    """The questions to a release, made once and kept in it: hundreds of megabytes that end with it."""
    if release.schema.tree is not None:
        names = ", ".join(map(repr, release.schema.tree.names))
        raise ConfigError(
            f"Expected a question to one table of the database: release.table(NAME) (--table), one of {names}."
        )
    if "_questions" not in release.__dict__:
        release.__dict__["_questions"] = (LinkedQuestions if release.schema.linked else Questions)(release)
    return release.__dict__["_questions"]
