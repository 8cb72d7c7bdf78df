"""What a release is good for, use by use, never better than what became of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.cards.text import shown
from sfumato.inference.column_lines import MANY, ColumnLine, column_lines, worst
from sfumato.models.mixed import MixtureSet
from sfumato.release.model import ReleaseValue
from sfumato.report.estimates import estimates_of
from sfumato.report.other_verdicts import image_verdicts, linked_verdicts
from sfumato.report.samples import image_column
from sfumato.report.verdicts import CLASSIFIER, REGRESSIONS, SOFTWARE, Verdict, Word, verdicts
from sfumato.schema.set_columns import sets_alone

_ORDER: tuple[Word, ...] = ("poor", "with care", "good")
_FEW_COLUMNS = 0.1  # of all, that may be lost before the whole is poor
_MOST_NAMED = 3


def uses_of(release: ReleaseValue, estimates: Mapping[str, Any] | None = None) -> list[Verdict]:
    """Return a verdict for each use of a release; none of releases of mixtures or of sets alone. Free.

    Args:
        release: what is judged.
        estimates: what `estimates_of` says of a table, where it is there already.
    """
    target = release.sampler.get("target")
    return limited(_measured(release, estimates), column_lines(release), target)


def _measured(release: ReleaseValue, estimates: Mapping[str, Any] | None) -> list[Verdict]:
    """Return the verdicts that noise alone makes."""
    schema = release.schema
    if release.sampler["name"] == MixtureSet.name or sets_alone(schema):
        return []
    if schema.linked:
        return linked_verdicts(release)
    if image_column(release) is not None:
        return image_verdicts(release)
    content = estimates_of(release) if estimates is None else estimates
    if "found" not in content:
        return []
    return verdicts(content["found"], content["pair_lines"], release.sampler.get("target"), rules=bool(schema.rules))


def limited(by_noise: Sequence[Verdict], lines: Sequence[ColumnLine], target: str | None = None) -> list[Verdict]:
    """Return verdicts that are no better than the columns they rest on, with what is lost as their first reason.

    Tables are poor where more than a tenth of the columns are lost for the most part, and otherwise to be used with
    care where one is, or some of it. Software finds rows that keep the schema, but not the labels: with care. A
    classifier is poor without the labels of its target.

    Args:
        by_noise: verdicts that noise alone makes.
        lines: what is kept of each column.
        target: of the fit, if it had one.
    """
    return [_limited(verdict, lines, target) for verdict in by_noise]


def _limited(verdict: Verdict, lines: Sequence[ColumnLine], target: str | None) -> Verdict:
    lost = [line for line in worst(lines) if verdict.use != REGRESSIONS or line.is_number]
    if not lost or verdict.word == "not measured":
        return verdict
    most = [line for line in lost if line.lost >= MANY]
    limit: Word = "poor" if len(most) > _FEW_COLUMNS * len(lines) else "with care"
    if verdict.use == SOFTWARE:
        limit = "with care"
    if verdict.use == CLASSIFIER:
        limit = "poor" if any(line.name == target for line in most) else "with care"
    named = "; ".join(f"{shown(line.name, 40)}: {line.loss}" for line in lost[:_MOST_NAMED])
    more = f"; and {len(lost) - _MOST_NAMED} more columns" if len(lost) > _MOST_NAMED else ""
    word = min(verdict.word, limit, key=_ORDER.index)
    return replace(verdict, word=word, why=f"{named}{more}. {verdict.why}")
