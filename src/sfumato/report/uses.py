"""Verdicts on a release, use by use, never better than what is kept of its columns; those of images and linked rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from sfumato.cards.html import shown
from sfumato.errors import EstimateError
from sfumato.inference.question_methods import UnitEstimates
from sfumato.inference.times import figure
from sfumato.models.images.sampler import ImagePortrait
from sfumato.release.model import ReleaseValue
from sfumato.release.unit_releases import parts_of_units
from sfumato.report.column_lines import MANY, ColumnLine, column_lines, worst
from sfumato.report.estimates import PairLine, estimates_of
from sfumato.report.page import image_column
from sfumato.schema.set_columns import sets_alone

Word = Literal["good", "with care", "poor", "not measured"]

TABLES, REGRESSIONS = "tables of counts, shares and means", "correlations and regressions"
CLASSIFIER, SOFTWARE = "training a classifier", "testing software"
_FINE_SHARE, _ROUGH_SHARE = 0.01, 0.05  # standard error of a share, or of a mean ÷ the column's deviation
_FINE_CORRELATION, _ROUGH_CORRELATION = 0.02, 0.1
_MOST, _SOME = 0.8, 0.4  # of the questions that have to be answered
_FINE_RATIO = 0.5  # half the interval ÷ value, of what the target goes together with
_ORDER: tuple[Word, ...] = ("poor", "with care", "good")
_FEW_COLUMNS = 0.1  # of all, that may be lost before the whole is poor
_MOST_NAMED = 3
_FAR, _NEAR = 3.0, 0.5  # distance of the two closest mean pictures ÷ what noise adds to it
_SUMS = "class sums"  # as the method names its measurement


@dataclass(frozen=True, slots=True)
class UseVerdict:
    """A use, a word on it, and the figures that the word rests on."""

    use: str
    word: Word
    why: str


DEPLOYMENTS = (
    ("Facebook, URLs shared, 2020", 1.45, "most users"),
    ("Google, mobility in the pandemic, 2020", 2.64, "a day of a user"),
    ("LinkedIn, hiring reports, 2020", 4.8, "an event in a month"),
    ("Israel, live births of 2014, synthetic, 2024", 9.98, "a birth"),
    ("IOM and Microsoft, victims of trafficking, synthetic, 2022", 12.0, "a victim"),
    ("US Census 2020, redistricting, persons", 17.14, "a person"),
)
"""Data sets that were published: what, at which ε, and whom that protects.

From the registry of OpenDP and the papers that docs/choosing_epsilon.md names."""


def verdicts(answers: pd.DataFrame, pairs: Sequence[PairLine], target: str | None, *, rules: bool) -> list[UseVerdict]:
    """Return a verdict for each use.

    Args:
        answers: the answers of the release, as `Release.answers` lists them.
        pairs: of columns that go together, with intervals.
        target: of the fit, if it had one.
        rules: whether the schema has some.
    """
    facts = "types, bounds, labels" + (" and rules" if rules else "")
    return [
        tables_of(answers),
        regressions_of(answers),
        _classifier(pairs, target),
        UseVerdict(SOFTWARE, "good", f"Every row keeps the schema: {facts}."),
    ]


def _word(part: float, error: float, fine: float, rough: float) -> Word:
    if part >= _MOST and error <= fine:
        return "good"
    return "with care" if part >= _SOME and error <= rough else "poor"


def _of(answers: pd.DataFrame, *kinds: str) -> tuple[pd.DataFrame, float]:
    """Return the answers of some kinds, and the part of the questions that have one."""
    rows = answers[answers["kind"].isin(kinds)]
    known = rows[rows["answered"].isin(["yes", "some"])]
    return known, len(known) / max(len(rows), 1)


def tables_of(answers: pd.DataFrame, use: str = TABLES) -> UseVerdict:
    """Return the verdict on shares, counts and means, from the answers of a release."""
    shares, part = _of(answers, "share", "crosstab", "mean")
    errors = shares.loc[shares["kind"] != "mean", "std_error"].astype(float).tolist()
    variance = answers[(answers["kind"] == "variance") & (answers["answered"] == "yes")].set_index("first")["value"]
    for _, row in shares[shares["kind"] == "mean"].iterrows():
        spread = float(variance.get(row["first"], 0.0))
        if spread > 0:
            errors.append(figure(row["std_error"]) / spread**0.5)
    if not errors:
        return UseVerdict(use, "poor", "No share and no mean stands out of the noise.")
    error = float(np.median(errors))
    why = f"The median standard error of a share, or of a mean in deviations of its column, is {error:.2g}"
    return UseVerdict(use, _word(part, error, _FINE_SHARE, _ROUGH_SHARE), f"{why}; {_percent(part)} are answered.")


def regressions_of(answers: pd.DataFrame) -> UseVerdict:
    """Return the verdict on correlations, from the answers of a release."""
    correlations, part = _of(answers, "correlation")
    if not (answers["kind"] == "correlation").any():
        return UseVerdict(REGRESSIONS, "not measured", "There are no two columns of numbers.")
    if correlations.empty:
        return UseVerdict(REGRESSIONS, "poor", "The measurements answer for no correlation.")
    error = float(correlations["std_error"].astype(float).median())
    word = _word(part, error, _FINE_CORRELATION, _ROUGH_CORRELATION)
    why = f"The median standard error of a correlation is {error:.2g}; {_percent(part)} are answered"
    return UseVerdict(
        REGRESSIONS, word, f"{why}. Three columns together were not measured, but for the target of the fit."
    )


def _classifier(pairs: Sequence[PairLine], target: str | None) -> UseVerdict:
    if target is None:
        why = "The fit had no target. Name the column to predict, and fit again."
        return UseVerdict(CLASSIFIER, "not measured", why)
    mine = [pair for pair in pairs if target in pair.names and abs(pair.value) > 0]
    clear = [pair for pair in mine if (pair.high - pair.low) / 2 <= _FINE_RATIO * abs(pair.value)]
    word: Word = "good" if len(clear) >= 3 else "with care" if clear else "poor"
    number = f"{len(clear)} of the other columns" if clear else "No other column"
    verb = "are" if len(clear) > 1 else "is"
    why = f"{number} {verb} associated with {target} clearly beyond the noise."
    return UseVerdict(CLASSIFIER, word, why)


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def among_others(epsilon: float | None) -> list[tuple[str, float, str, bool]]:
    """Return published ε and this one, smallest first: what, ε, whom it protects, whether it is this one."""
    if epsilon is None:
        return []
    rows: list[tuple[str, float, str, bool]] = [(*published, False) for published in DEPLOYMENTS]
    return sorted([*rows, ("this release", epsilon, "", True)], key=lambda row: (row[1], not row[3]))


def uses_of(release: ReleaseValue, estimates: Mapping[str, Any] | None = None) -> list[UseVerdict]:
    """Return a verdict for each use of a release; none of releases of mixtures or of sets alone. Free.

    Args:
        release: what is judged.
        estimates: what `estimates_of` returns of a table, where it is known already.
    """
    return limit_verdicts(_by_noise(release, estimates), column_lines(release), release.target)


def _by_noise(release: ReleaseValue, estimates: Mapping[str, Any] | None) -> list[UseVerdict]:
    """Return the verdicts that noise alone makes."""
    schema = release.schema
    if release.is_data_set or sets_alone(schema):
        return []
    if schema.linked:
        return linked_verdicts(release)
    if image_column(release) is not None:
        return image_verdicts(release)
    content = estimates_of(release) if estimates is None else estimates
    if "answers" not in content:
        return []
    return verdicts(content["answers"], content["pair_lines"], release.target, rules=bool(schema.rules))


def limit_verdicts(
    by_noise: Sequence[UseVerdict], lines: Sequence[ColumnLine], target: str | None = None
) -> list[UseVerdict]:
    """Return verdicts that are no better than the columns they rest on, with what is lost as their first reason.

    Tables are poor where more than a tenth of the columns are lost for the most part, and otherwise to be used with
    care where one is, or some of it. Software finds rows that keep the schema, but not the labels: with care. A
    classifier is poor without the labels of its target.

    Args:
        by_noise: verdicts that noise alone makes.
        lines: what is kept of each column.
        target: of the fit, if it had one.
    """
    return [_limit(verdict, lines, target) for verdict in by_noise]


def _limit(verdict: UseVerdict, lines: Sequence[ColumnLine], target: str | None) -> UseVerdict:
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


def image_verdicts(release: ReleaseValue) -> list[UseVerdict]:
    """Return a verdict for each use of a release of images by the default method; none for other methods."""
    if release.sampler["name"] != ImagePortrait.name:
        return []
    software = UseVerdict(SOFTWARE, "good", "Every picture keeps the schema: shape, type, range, labels.")
    nobody = "Each is drawn: it shows nobody, and small details, text among them, are invented."
    return [_image_classifier(release), UseVerdict("a single picture", "poor", nobody), software]


def _image_classifier(release: ReleaseValue) -> UseVerdict:
    if release.sampler.get("label") is None:
        return UseVerdict(CLASSIFIER, "not measured", "There is no column of labels beside the images.")
    apart = closest_classes(release)
    if apart is None:
        return UseVerdict(CLASSIFIER, "not measured", "The release does not hold its measurements.")
    word: Word = "good" if apart >= _FAR else "with care" if apart >= _NEAR else "poor"
    why = f"The mean pictures of the two most alike classes are {apart:.2g} times as far apart as noise puts them."
    return UseVerdict(CLASSIFIER, word, why)


def closest_classes(release: ReleaseValue) -> float | None:
    """Return how far the two closest mean pictures are apart ÷ the root mean square that noise adds to a distance.

    The squared distance of noisy means is that of the exact ones plus a known expectation, which is taken off, and so
    are two standard deviations of it: what noise alone may look like counts as nothing.
    """
    sums = next((m for m in release.measurements if m.name == _SUMS), None)
    if sums is None or len(sums.value) < 2:
        return None
    total = float(sums.value[:, -1].sum())
    per_record = total / release.certificate.n_public  # the constant that counts a record
    counts = np.maximum(sums.value[:, -1] / per_record, 1.0)
    means = sums.value[:, :-1] / counts[:, None]
    noise = means.shape[1] * (sums.noise_std / counts) ** 2
    first, second = np.triu_indices(len(means), 1)
    added = noise[first] + noise[second]
    squared = ((means[first] - means[second]) ** 2).sum(axis=1) - added * (1 + 2 * np.sqrt(2 / means.shape[1]))
    return float(np.sqrt(np.maximum(squared, 0.0) / added).min())


def linked_verdicts(release: ReleaseValue) -> list[UseVerdict]:
    """Return a verdict for each use of a release of linked rows, from the answers about its units."""
    software = UseVerdict(SOFTWARE, "good", "Every row keeps the schema, and units have their rows in order.")
    why = "It is in the samples, without intervals: compare it on records of your own."
    later = UseVerdict("how rows follow each other", "not measured", why)
    parts: list[pd.DataFrame] = []
    for part in parts_of_units(release).values():
        with suppress(EstimateError):
            parts.append(UnitEstimates(part).answers(most_pairs=20))
    if not parts:
        return [later, software]
    answers = pd.concat(parts).drop_duplicates(["kind", "first", "second"])  # what tables share, once
    return [
        tables_of(answers, "tables of units: counts, constants, first rows"),
        regressions_of(answers),
        later,
        software,
    ]
