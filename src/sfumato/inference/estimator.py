"""Estimators of totals, ratios and mean sizes of sets on calibrated rows: value, errors, and what they rest on.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.columns.facts import shown
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.calibration import Calibration, Target
from sfumato.inference.estimate import Ends, Estimate
from sfumato.inference.intervals import size_of
from sfumato.inference.joint_errors import JointErrors
from sfumato.inference.noisy_totals import LEAST_SEEN
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.inference.times import figure
from sfumato.maths.outer_mass import Beyond
from sfumato.schema.set_columns import SetColumn

LEAST_KNOWN = 0.6
"""Part of a question that measurements have to say; below `WELL_KNOWN` its standard error is wider."""
_BEYOND = "what may lie beyond estimated bounds"
EndsOf = Callable[[Mapping[str, float]], Ends]
"""From standard errors by cause to the ends of intervals."""
MOST_BY = 24
"""Items that are solved for together, with the labels of a column or in linked rows."""


@dataclass(frozen=True, slots=True)
class Estimator:
    """Calibrated rows of some columns, and the words for estimates on them."""

    calibration: Calibration
    columns: tuple[str, ...]
    target: Target
    weight: str | None = None
    products: bool = True
    row_note: str = ""

    def named(self) -> Estimator:
        """Return it for a question that was named before the fit, which its answers say."""
        return replace(self, row_note=f"{self.row_note}Named before the fit: its own sums were measured. ")

    @property
    def preface(self) -> str:
        """The first sentences of an answer: on weights, and on several rows of a unit."""
        weighted = self.row_note + ("" if self.weight is None else f"Rows weighted by {self.weight!r}. ")
        most = self.calibration.rows_of_unit
        if most == 1 or self.target == "table":
            return weighted
        return (
            f"{weighted}Up to {most} rows of a unit may go together: sampling errors are those of independent rows "
            f"times √{most}. "
        )

    def estimate(
        self, value: float, influence: np.ndarray, what: str, ends: EndsOf | None = None, over: str = "",
        functions: np.ndarray | None = None, beyond: Beyond | None = None, unsaid: float = 0.0,
    ) -> Estimate:  # fmt: skip
        """Return an estimate from its influence values, whose total has its error, shape (N,).

        Args:
            value: the number.
            influence: of each row, shape (N,).
            what: is asked, for messages.
            ends: of its intervals, from its standard errors by cause; by default of the normal law.
            over: a sentence on the rows that it is taken over.
            functions: that the measurements have to say, shape (N, k); by default the influence values.
            beyond: by how much estimated bounds make it too small.
            unsaid: standard error of what cells do not tell apart, beside what else was not measured.

        Raises:
            EstimateError: the measurements say too little of it.
        """
        variances = self.calibration.variances(influence[:, None])
        known = variances.known if functions is None else self.calibration.each(functions).known
        require_known(known, self.columns, what)
        parts = variances.by_cause(self.target)
        sizes = {cause: float(np.sqrt(max(part[0, 0], 0.0))) for cause, part in parts.items()}
        sizes["unmeasured"] = float(np.hypot(sizes["unmeasured"], unsaid))
        if beyond is not None:
            value, sizes["beyond"] = value + beyond.value, beyond.std_error
        rests = self.preface + over + rests_on(self, sizes)
        std_error = size_of(sizes)
        calibration, rows = self.calibration, np.nan
        if std_error > 0 and calibration.size > 0:  # the variance of a row's part by the weighted rows
            rows = calibration.size**2 * calibration.variance_of_row(influence) / std_error**2
        return Estimate(float(value), std_error, self.target, rests, sizes, ends and ends(sizes), rows, influence)

    def joint(self, estimates: Sequence[Estimate]) -> JointErrors:
        """Return the errors of estimates of this estimator together; one without influence stands by itself."""
        rows = len(self.calibration.weights)
        influence = [np.zeros(rows) if e.influence is None else e.influence for e in estimates]
        covariances = self.calibration.variances(np.column_stack(influence)).by_cause(self.target)
        causes = dict.fromkeys(cause for estimate in estimates for cause in estimate.parts)
        sizes = {cause: np.array([figure(e.parts.get(cause, 0.0)) for e in estimates]) for cause in causes}
        return JointErrors.scaled(covariances, sizes)

    def ratio(
        self, part: np.ndarray, whole: np.ndarray, what: str, ends: EndsOf | None = None, over: str = "",
        beyond: Beyond | None = None, unsaid: float = 0.0,
    ) -> Estimate:  # fmt: skip
        """Return the estimate of one total ÷ another, of functions of the rows, shape (N,); `unsaid` is of the first.

        Raises:
            EstimateError: the second is not above its noise, or the measurements say too little.
        """
        rows = self.positive(whole, what)
        value = float(self.calibration.total(part[:, None])[0]) / rows
        return self.estimate(
            value, (part - value * whole) / rows, what, ends, over, beyond=beyond, unsaid=unsaid / rows
        )

    def positive(self, whole: np.ndarray, what: str) -> float:
        """Return a number of records that is well above its noise; one that is not is refused (`EstimateError`)."""
        rows = float(self.calibration.total(whole[:, None])[0])
        error = float(np.sqrt(self.calibration.variances(whole[:, None]).of("table")[0, 0]))
        if not rows > LEAST_SEEN * error:
            raise EstimateError(
                f"Expected enough rows for {what}, got a release whose noise hides how many there are. Ask of a larger "
                "group, or fit with a larger epsilon."
            )
        return rows


def require_known(known: np.ndarray, columns: tuple[str, ...], what: str) -> None:
    """Refuse a question (`EstimateError`) of which the measurements of these columns say less than 60 %."""
    if known.min(initial=1.0) < LEAST_KNOWN:
        raise EstimateError(
            f"Expected a question that the release's measurements answer, got {what}. It measured each column, and how "
            "two columns go together (three, if they are two numbers and a target of few labels), but of "
            f"{', '.join(map(repr, columns))} not enough for this. Ask of fewer columns, name the question "
            "before the fit, or use replicates."
        )


def rests_on(estimator: Estimator, sizes: Mapping[str, float]) -> str:
    """Return the sentence on what an estimate rests on."""
    whole = max(sum(size**2 for size in sizes.values()), 1e-300)
    allowed = "an allowance for what noise hides or nobody measured"
    causes = {"noise": "privacy noise", "sampling": "sampling", "unmeasured": allowed, "beyond": _BEYOND}
    causes_text = ", ".join(f"{100 * size**2 / whole:.0f} % {causes[name]}" for name, size in sizes.items())
    measured = "noisy counts and products" if estimator.products and len(estimator.columns) > 1 else "noisy counts"
    return f"Measured: {measured} of {', '.join(estimator.columns)}. Its variance is {causes_text}."


def set_column(measured: TableMeasurements, name: object) -> SetColumn:
    """Return a column of sets beside others; another column is refused (`ConfigError`)."""
    sets = measured.release.schema.set_columns
    if not isinstance(name, str) or name not in sets:
        items = [column for column in measured.columns if column.startswith(f"{name}: ")]
        if items:  # of units
            raise ConfigError(
                f"Expected a column of sets, got {shown(name)}, of whose items each is a column of first rows here: "
                f"ask share({{{items[0]!r}: True}}) and the like."
            )
        known = ", ".join(map(repr, sets)) or "none"
        raise ConfigError(f"Expected a column of sets, got {shown(name)}. Columns of sets: {known}.")
    return sets[name]


def require_few_items(column: SetColumn) -> None:
    """Refuse more items than are solved for together (`EstimateError`)."""
    if len(column.items) > MOST_BY:
        raise EstimateError(
            f"Expected at most {MOST_BY} items for the size of sets by labels, or of linked rows, got "
            f"{len(column.items)} of {column.name!r}: more are not solved for together. Ask of single items."
        )
