"""Acceptance criteria: what a release has to be good for, said before any record is read; `tune` judges by them.

    accept:
      - {marginal_error: 0.01}                      # total variation, worst column
      - {marginal_error: 0.005, columns: [age, sex]}
      - {pair_error: 0.03}                          # worst pair of columns
      - {auroc: 0.8, target: income, positive: ">50K"}
      - {rules_broken: 0}
      - {finding: "ols: cost ~ C(arm)", term: "C(arm)[T.new]", sign: positive, significance: 0.05}

A criterion is public. What the records say of it costs budget: docs/proofs/acceptance.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

from sfumato.columns.facts import plain_value, shown
from sfumato.columns.kind import settle
from sfumato.errors import SchemaError

CriterionKind: TypeAlias = Literal["marginal_error", "pair_error", "auroc", "rules_broken", "finding"]
KINDS: Mapping[str, tuple[str, ...]] = {
    "marginal_error": ("columns",),
    "pair_error": ("columns",),
    "auroc": ("target", "positive"),
    "rules_broken": (),
    "finding": ("term", "sign", "significance"),
}
"""Kinds of criteria, and the keys that each may have beside."""

AT_MOST, AT_LEAST = "<=", ">="
POSITIVE, NEGATIVE = "positive", "negative"
OF_RELEASE: tuple[CriterionKind, ...] = ("rules_broken", "finding")
"""Criteria that are functions of a release: no record is asked."""
_MOST_CRITERIA = 20
_EITHER = 0.5  # chance of a sign that nothing speaks for
_EXAMPLE = "such as {marginal_error: 0.01}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One thing that a release has to satisfy.

    Attributes:
        kind: `marginal_error` or `pair_error`: the largest total variation between records and release, of one column
            or of two; `auroc`: of a classifier taught by the release, on the records; `rules_broken`; `finding`: the
            sign that the release's own answer to a regression has.
        threshold: the largest error, in (0, 1); the least AUROC, in (0, 1); 0 rules; of a finding how sure the sign is
            at least, from 0.5: 1 − significance/2.
        columns: of errors: the columns that count; none named means all.
        target: of an AUROC: the column to predict.
        positive: of an AUROC: the class to tell from all others; by default the last of two.
        finding: the regression, such as "ols: cost ~ C(arm)".
        term: the coefficient of it, as a release names it.
        sign: that it has to have, "positive" or "negative".

    Raises:
        SchemaError: a part is missing, or outside its domain.

    Example:
        >>> Criterion(kind="marginal_error", threshold=0.01).words
        'marginal_error <= 0.01'
    """

    kind: CriterionKind
    threshold: float
    columns: tuple[str, ...] = ()
    target: str | None = None
    positive: str | None = None
    finding: str | None = None
    term: str | None = None
    sign: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SchemaError(f"Expected a criterion of {', '.join(KINDS)}, got {shown(self.kind)}.")
        settle(self, threshold=_threshold(self.kind, self.threshold), columns=_names(self.columns))
        fewest = 2 if self.kind == "pair_error" else 1
        if self.columns and len(self.columns) < fewest:
            raise SchemaError(f"Expected columns of {self.kind} to name {fewest} columns at least, got fewer.")
        parts = {"columns": self.columns, "target": self.target, "positive": self.positive, **self._sign_of}
        for key, value in parts.items():
            if value and key not in KINDS[self.kind]:
                raise SchemaError(f"Expected no {key} beside {self.kind}, got some. Leave it out.")
        for key in ("target", "positive", *self._sign_of):
            if parts[key] is not None and not isinstance(parts[key], str):
                raise SchemaError(f"Expected {key} of {self.kind} to be text, got {shown(parts[key])}.")
        if self.kind == "auroc" and self.target is None:
            raise SchemaError("Expected target beside auroc, got none. Name the column to predict.")
        if self.kind == "finding":
            self._require_finding()
        elif self.finding is not None:
            raise SchemaError(f"Expected no finding beside {self.kind}, got one. Make it a criterion of its own.")

    def _require_finding(self) -> None:
        """Refuse a finding of which a part is missing."""
        if not isinstance(self.finding, str) or "~" not in self.finding:
            raise SchemaError(f'Expected finding to be a regression such as "ols: y ~ x", got {shown(self.finding)}.')
        if not self.term:
            raise SchemaError("Expected term beside finding, got none. Name a coefficient of the regression.")
        if self.sign not in (POSITIVE, NEGATIVE):
            raise SchemaError(f"Expected sign of finding to be {POSITIVE} or {NEGATIVE}, got {shown(self.sign)}.")

    @property
    def _sign_of(self) -> dict[str, str | None]:
        return {"term": self.term, "sign": self.sign}

    @property
    def relation(self) -> str:
        """How a value compares with the threshold where it passes: "<=" or ">="."""
        return AT_LEAST if self.kind in ("auroc", "finding") else AT_MOST

    def passed_by(self, value: float) -> bool:
        """Whether a value passes."""
        return value >= self.threshold if self.relation == AT_LEAST else value <= self.threshold

    @property
    def words(self) -> str:
        """The criterion in one line."""
        of = f" of {', '.join(self.columns)}" if self.columns else ""
        of += f" for {self.target}" if self.target else ""
        of += f" = {self.positive}" if self.positive else ""
        of += f" {self.finding}, {self.term} {self.sign}" if self.finding else ""
        return f"{self.kind}{of} {self.relation} {self.threshold:g}"

    def to_dict(self) -> dict[str, Any]:
        """Return the criterion as a schema file holds it."""
        if self.kind == "finding":
            sure = {} if self.threshold == _EITHER else {"significance": float(f"{2 * (1 - self.threshold):.12g}")}
            return {"finding": self.finding, **self._sign_of, **sure}
        rest = {"columns": list(self.columns) or None, "target": self.target, "positive": self.positive}
        return {self.kind: self.threshold, **{key: value for key, value in rest.items() if value is not None}}


def read_criteria(entries: object) -> tuple[Criterion, ...]:
    """Return the criteria that a list states, as plain values or as themselves.

    Raises:
        SchemaError: names every fault.
    """
    faults: list[str] = []
    criteria = criteria_of(entries, faults)
    if faults:
        raise SchemaError(" ".join(faults))
    return criteria


def criteria_of(entries: object, faults: list[str]) -> tuple[Criterion, ...]:
    """Return the criteria that a list states; `faults` gets a sentence for every fault."""
    if isinstance(entries, str | Mapping) or not isinstance(entries, Sequence):
        faults.append(f"Expected accept to be a list of criteria, {_EXAMPLE}, got {shown(entries)}.")
        return ()
    if len(entries) > _MOST_CRITERIA:
        faults.append(f"Expected at most {_MOST_CRITERIA} criteria in accept, got more.")
        return ()
    criteria = []
    for number, entry in enumerate(entries, 1):
        try:
            criteria.append(entry if isinstance(entry, Criterion) else _criterion(entry))
        except SchemaError as error:
            faults.append(f"Criterion {number} of accept: {error}")
    return tuple(criteria)


def _criterion(entry: object) -> Criterion:
    if not isinstance(entry, Mapping):
        raise SchemaError(f"expected a mapping {_EXAMPLE}, got {shown(entry)}.")
    kinds = [key for key in entry if key in KINDS]
    if len(kinds) != 1:
        raise SchemaError(f"expected one of {', '.join(KINDS)} as a key, got {len(kinds)} of them.")
    (kind,) = kinds
    unknown = next((key for key in entry if key not in (kind, *KINDS[kind])), None)
    if unknown is not None:
        beside = " or ".join(KINDS[kind]) or "nothing"
        raise SchemaError(f"expected {beside} beside {kind}, got {shown(unknown)}.")
    columns = entry.get("columns", ())
    if isinstance(columns, str) or not isinstance(columns, Sequence) or ("columns" in entry and not columns):
        raise SchemaError(f"expected columns of {kind} to be a list of names, got {shown(columns)}.")
    if kind == "finding":
        sure = _EITHER
        if "significance" in entry:
            sure = 1 - _threshold("significance", entry["significance"]) / 2
        finding, term, sign = (entry.get(key) for key in ("finding", "term", "sign"))
        return Criterion(kind="finding", threshold=sure, finding=finding, term=term, sign=sign)
    return Criterion(
        kind=kind,  # type: ignore[arg-type]
        threshold=entry[kind],
        columns=tuple(columns),
        target=entry.get("target"),
        positive=entry.get("positive"),
    )


def _threshold(kind: str, threshold: object) -> float:
    value = plain_value(threshold)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SchemaError(f"Expected {kind} to be a number, got {shown(threshold)}.")
    if kind == "rules_broken":
        if value != 0:
            raise SchemaError("Expected rules_broken to be 0: a rule is kept, or it is none.")
    elif not 0 < value < 1:
        raise SchemaError(f"Expected {kind} between 0 and 1, got {shown(threshold)}.")
    return float(value)


def _names(columns: object) -> tuple[str, ...]:
    if not isinstance(columns, tuple) or not all(isinstance(name, str) for name in columns):
        raise SchemaError("Expected columns to be a tuple of names.")
    if len(set(columns)) < len(columns):
        raise SchemaError("Expected each of columns once, got one twice.")
    return columns
