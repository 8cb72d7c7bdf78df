"""Questions to a release of sets alone: shares and numbers of sets, their mean size; and all answers in a list.

Each is a noisy total that was measured, so that its error is known: no model stands between, but for what long sets
lack in weighted counts of pairs.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import NoReturn, cast

import numpy as np
import pandas as pd

from sfumato.columns.facts import shown
from sfumato.errors import ConfigError, EstimateError, require_choice
from sfumato.inference.answers import AnswerLine, Lister
from sfumato.inference.calibrated_rows import By
from sfumato.inference.calibration import Target
from sfumato.inference.estimate import Ends, Estimate
from sfumato.inference.intervals import size_of, within_bounds
from sfumato.inference.item_measurements import ItemTotal, MeasuredItems
from sfumato.inference.question_table import BY_KIND, questions_about
from sfumato.release.model import ReleaseValue

LEAST_KNOWN = 1 / 3
"""Part of a pair's count that has to be measured."""
_MOST_TOGETHER = 2
_CAUSES = {"noise": "privacy noise", "sampling": "sampling", "unmeasured": "an allowance for what nobody measured"}
ASKED_PAIRS = 500
"""Pairs of items, of those that were counted, by which the list says how sure their shares are."""
_KINDS = frozenset({"set", "sets alone"})
_NO_THREE = "No three items were counted together."
_NO_PAIRS = "Only single items were counted: fit with latent-classes, which counts pairs of frequent ones."
_RARE = "Pairs of rarer items were not counted: noise would hide them."
_UNSAID = "Sets of many items count less, and of some pairs too little was measured."
_NO_RECORDS = "Single sets, the largest one and the order of sets were not measured."


class SetQuestions:
    """Answers from one release of sets alone."""

    def __init__(self, release: ReleaseValue) -> None:
        self.measured = MeasuredItems(release)

    def share(self, condition: Mapping[str, object], by: By, target: str) -> Estimate:
        """Share of the sets that hold an item, or both of two."""
        return self.share_of(self._codes(condition), self._target(by, target))

    def share_of(self, codes: tuple[int, ...], target: Target) -> Estimate:
        """Share of the sets that hold all of these items, by code."""
        total, n = self._total(codes), self.measured.n_public
        share = min(max(total.value / n, 0.0), 1.0)
        count = share**2 * (self.measured.count_variance or 0.0)
        noise, unmeasured = (total.noise + count) / n**2, total.unmeasured / n**2
        per_set = self.measured.sets_of_unit / n
        parts = _parts(noise, unmeasured, per_set * share * (1 - share), target)
        says = f"{self._measured_text(codes, target)} {self._of_sets} {_causes(parts)}{self._truncation(share)}"
        error, ends = size_of(parts), _ends_of_share(share, noise + unmeasured, per_set * (target == "population"))
        rows = share * (1 - share) / error**2 if error > 0 else np.nan
        return Estimate(share, error, target, says, parts, ends, rows)

    def count(self, condition: Mapping[str, object] | None, target: str) -> Estimate:
        """Number of sets that hold an item, or both of two; of all sets where it was measured."""
        of, n = self._target(None, target), self.measured.n_public
        if condition is None or (isinstance(condition, Mapping) and not condition):
            variance = self.measured.count_variance
            if variance is None:
                raise EstimateError(
                    f"Expected items to count sets by, got none: the number of sets was declared, {n}, and not "
                    "measured."
                )
            parts = {"noise": float(variance) ** 0.5}
            says = f"Measured: a noisy count. {_causes(parts)}"
            return within_bounds(Estimate(n, parts["noise"], of, says, parts), 0, np.inf)
        codes = self._codes(condition)
        total = self._total(codes)
        share = min(max(total.value / n, 0.0), 1.0)
        sampling = self.measured.sets_of_unit * n * share * (1 - share)
        parts = _parts(total.noise, total.unmeasured, sampling, of)
        says = f"{self._measured_text(codes, of)} {_causes(parts)}{self._truncation(share)}"
        return within_bounds(Estimate(total.value, size_of(parts), of, says, parts), 0.0, np.inf)

    def set_size(self, name: str, by: str | None, target: str) -> Estimate:
        """Mean number of items of a set."""
        of = self._target(by, target)
        measured, n = self.measured, self.measured.n_public
        if not isinstance(name, str) or name != measured.column.name:
            raise ConfigError(f"Expected the column of sets, {measured.column.name!r}, got {shown(name)}.")
        mean, noise = measured.mean_size
        variance, of_model = measured.size_variance
        noise += mean**2 * (measured.count_variance or 0.0) / n**2
        parts = _parts(noise, 0.0, variance * measured.sets_of_unit / n, of)
        most = "" if of_model or of == "table" else " Its sampling error is the largest that such sets can have."
        full = ""
        if self._may_be_longer:
            full = (
                f" Of a set the first {measured.kind.longest} items count: up to {100 * measured.full_share:.2g} % of "
                "the sets have so many, and may have had more."
            )
        rests = f"{self._unit(of)}Measured: noisy counts of the items of {name}. {self._of_sets}"
        says = f"{rests} {_causes(parts)}{most}{full}"
        return within_bounds(Estimate(mean, size_of(parts), of, says, parts), 0.0, float(measured.kind.longest))

    def _target(self, by: By, target: str) -> Target:
        """Return a target; refuse another one, and columns to group sets by."""
        require_choice(("population", "table"), target=target)
        if by is not None:
            raise ConfigError(
                f"Expected no column to group sets by, got by={shown(by)}: the release has sets and nothing beside "
                "them."
            )
        return cast("Target", target)

    def _codes(self, condition: object) -> tuple[int, ...]:
        """The codes of a condition's items; one that names another column, no item, or none of the kind, is refused."""
        column = self.measured.column
        if not isinstance(condition, Mapping) or list(condition) != [column.name]:
            raise ConfigError(f"Expected an item of the sets or two, such as {{{column.name!r}: 'milk'}}.")
        value = condition[column.name]
        items = list(value) if isinstance(value, list | tuple) else [value]
        codes = tuple(dict.fromkeys(column.code_of(item) for item in items))
        if not codes:
            raise ConfigError(f"Expected an item of {column.name!r} or two, got none.")
        return codes

    def _total(self, codes: tuple[int, ...]) -> ItemTotal:
        """The number of sets that hold these items; refused where too little of it was measured."""
        if len(codes) == 1:
            return self.measured.item(codes[0])
        names = self._names(codes)
        if len(codes) > _MOST_TOGETHER:
            self._refuse(f"{names} together: at most two items were counted together. Ask of fewer")
        if self.measured.pairs is None:
            self._refuse(
                f"{names} together: only single items were counted. Fit with latent-classes, which counts pairs"
            )
        rare = [code for code in codes if not self.measured.watched(code)]
        if rare:
            self._refuse(
                f"{names} together: pairs of {self._names(rare)} were not counted, as noise would hide the pairs of an "
                "item so rare. Ask of it by itself, or fit with a larger epsilon"
            )
        total = self.measured.pair(*codes)
        if total.known < LEAST_KNOWN:
            self._refuse(
                f"{names} together: sets of many items count less, and {total.known:.0%} of the sets that hold both "
                "were measured. Fit with a smaller max_length or a larger epsilon"
            )
        return total

    def _refuse(self, what: str) -> NoReturn:
        raise EstimateError(f"Expected a question that the release's measurements answer, got {what}.")

    def _names(self, codes: tuple[int, ...] | list[int]) -> str:
        labels = self.measured.kind.labels
        return " and ".join(repr(str(code) if labels is None else labels[code]) for code in codes)

    @property
    def _of_sets(self) -> str:
        n = self.measured.n_public
        if self.measured.count_variance is None:
            return f"The number of sets is the declared one, {n}."
        return "The number of sets was measured."

    def _unit(self, target: str) -> str:
        most = self.measured.sets_of_unit
        if most == 1 or target == "table":
            return ""
        return f"Up to {most} sets of a unit may go together: sampling errors are those of independent sets × √{most}. "

    def _measured_text(self, codes: tuple[int, ...], target: str) -> str:
        whole = len(codes) == 1 or self.measured.pair(*codes).known == 1.0
        counts = "a noisy count" if whole else "a noisy count, in which sets of many items weigh less,"
        return f"{self._unit(target)}Measured: {counts} of {self._names(codes)} in {self.measured.column.name}."

    @property
    def _may_be_longer(self) -> bool:
        return self.measured.kind.max_length < self.measured.kind.size

    def _truncation(self, share: float) -> str:
        """The sentence on what sets lose that are longer than what counts; "" where none can be."""
        if not self._may_be_longer:
            return ""
        more = min(self.measured.full_share, 1 - share)
        return (
            f" Of a set the first {self.measured.kind.longest} items count: of whole sets the share may be larger, by "
            f"at most {100 * more:.2g} percentage points."
        )


def _ends_of_share(share: float, fixed: float, per_set: float) -> Ends:
    """Intervals of a share within [0, 1]: by the score (Wilson 1927), with the variance of noise beside sampling's."""

    def ends(z: float) -> tuple[float, float]:
        c = z**2 * per_set
        middle = (share + c / 2) / (1 + c)
        half = np.sqrt((z**2 * fixed + c * share * (1 - share) + c**2 / 4 + c * z**2 * fixed) / (1 + c) ** 2)
        return max(float(middle - half), 0.0), min(float(middle + half), 1.0)

    return ends


def _parts(noise: float, unmeasured: float, sampling: float, target: Target) -> dict[str, float]:
    """Standard errors by cause, of variances; only those that there are."""
    causes = {"noise": noise, "sampling": sampling, "unmeasured": unmeasured}
    if target == "table":
        causes.pop("sampling")
    if not unmeasured:
        causes.pop("unmeasured")
    return {cause: float(np.sqrt(part)) for cause, part in causes.items()}


def _causes(parts: Mapping[str, float]) -> str:
    whole = max(sum(size**2 for size in parts.values()), 1e-300)
    causes = ", ".join(f"{100 * size**2 / whole:.0f} % {_CAUSES[cause]}" for cause, size in parts.items())
    return f"Its variance is {causes}."


def set_answers(
    questions: SetQuestions, *, target: str = "population", level: float = 0.95, simultaneous: bool = False
) -> pd.DataFrame:
    """Return a row for each question, with the fields of `AnswerLine` as columns; see `Release.answers`."""
    lister = SetLister(questions, target, level, simultaneous=simultaneous)
    lines = [lister.line(BY_KIND["rows"])]
    lines += [lister.line(question, questions.measured.column.name) for question in questions_about(_KINDS)]
    return lister.table(lines, _NO_THREE, _NO_RECORDS)


class SetLister(Lister[SetQuestions]):
    """Lines about sets alone."""

    def _items(self, kind: str, name: str) -> AnswerLine:
        codes = range(self.questions.measured.kind.size)
        error = self._error([(code,) for code in islice(codes, ASKED_PAIRS)])
        return AnswerLine(kind, name, numbers=len(codes), std_error=error)

    def _item_pairs(self, kind: str, name: str) -> AnswerLine:
        query, m = self.questions.measured.pair_query, self.questions.measured.kind.size
        whole = m * (m - 1) // 2
        if query is None or query.watched.size < 2:
            return AnswerLine(kind, name, "", "no", whole, why=_NO_PAIRS if query is None else _RARE)
        pairs = list(islice(combinations(query.watched.tolist(), 2), ASKED_PAIRS))
        sure = [pair for pair in pairs if self.questions.measured.pair(*pair).known >= LEAST_KNOWN]
        if not sure:
            return AnswerLine(kind, name, "", "no", whole, why=_UNSAID)
        every = query.watched.size == m
        why = "" if every and len(sure) == len(pairs) else _RARE if not every else _UNSAID
        return AnswerLine(kind, name, "", "some" if why else "yes", whole, std_error=self._error(sure), why=why)

    def _error(self, questions: Sequence[tuple[int, ...]]) -> float:
        """The median standard error of shares of sets that hold these items."""
        errors = (self.questions.share_of(codes, self.target).std_error for codes in questions)
        return float(np.median(np.array(list(errors), dtype=np.float64)))
