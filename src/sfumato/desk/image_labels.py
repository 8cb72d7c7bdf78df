"""What a draft says of columns beside images: whole numbers are labels there, and one column of them is modelled."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.columns.kinds import Categorical, ColumnKind, Image, Integer, LevelKind
from sfumato.desk.survey import ColumnSurvey

_TIMES = 5  # labels occur so often on average; numbers that differ from image to image name them
_MOST_LABELS = 1_000

Guesses = Mapping[str, tuple[ColumnKind, str]]


def beside_images(
    surveys: Mapping[str, ColumnSurvey], guesses: Guesses, *, left_out: int
) -> dict[str, tuple[ColumnKind, str]]:
    """Return guesses with labels in place of whole numbers, and lines on what a fit cannot take.

    Args:
        surveys: by column.
        guesses: by column, a kind and a line on why; one at least is of images.
        left_out: how many records are not read, for the holder's own screen.
    """
    proposals = {name: _labelled(surveys[name], kind, note) for name, (kind, note) in guesses.items()}
    labels = [name for name, (kind, _) in proposals.items() if isinstance(kind, LevelKind)]
    for name, (kind, note) in proposals.items():
        if isinstance(kind, Image) and left_out:
            proposals[name] = kind, f"{note}; {left_out:,} not read, of another size or no images: see sfumato validate"
        if name in labels[1:]:
            proposals[name] = kind, f"{note}. Beside images one column of labels is modelled: write kind: identifier"
    return proposals


def _labelled(survey: ColumnSurvey, kind: ColumnKind, note: str) -> tuple[ColumnKind, str]:
    distinct = survey.distinct
    if not isinstance(kind, Integer) or distinct is None or len(distinct) > _MOST_LABELS:
        return kind, note
    if survey.n_values < _TIMES * len(distinct):
        return kind, note
    labels = tuple(sorted(distinct, key=float))
    return Categorical(categories=labels, nullable=kind.nullable), "labels of the images: replace by the public list"
