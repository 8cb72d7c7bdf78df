"""Signs that a record is more than a row: numbers that repeat as those of baskets do, items joined in one text.

For the holder's own screen: they make a line of a draft, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.desk.survey import ColumnSurvey

_SEPARATORS = ("; ", ";", " | ", "|", ", ", ",")
_FEWEST_IDS = 150  # fewer numbers may be ages, or places in a list
_EVEN = 10  # times the average of the most rows of an id
_RARE = 10  # rows of one id, for most ids
_MOST_LENGTH = 60  # of an item: what is longer is a sentence
_SHARE = 0.3  # of texts that hold a separator


def numbers_of_sets(survey: ColumnSurvey) -> bool:
    """Whether whole numbers repeat, few times each, and leave few gaps: as those of baskets in a long table do."""
    if survey.counts is None or not survey.is_number or not survey.is_whole:
        return False
    lowest, highest, counts = survey.lowest, survey.highest, survey.counts.counts.values()
    if lowest is None or highest is None or survey.counts.n_distinct < _FEWEST_IDS:
        return False
    few = sum(count < _RARE for count in counts) > len(counts) / 2
    few &= max(counts) * len(counts) <= _EVEN * sum(counts)  # a limit at which many are cut off names nobody
    return few and sum(counts) >= 1.5 * len(counts) and highest - lowest < 2 * survey.counts.n_distinct


def joined_items(texts: Sequence[str]) -> tuple[str, int] | None:
    """Return the separator of items in texts, and how many different items there are; None if texts are single labels.

    Args:
        texts: the different values of a column.

    Example:
        >>> joined_items(["E11", "E11;I10", "I10;J45", "E11;J45", "J45", "E11;I10;J45"])
        (';', 3)
    """
    for separator in _SEPARATORS:
        if sum(separator in text for text in texts) < _SHARE * max(len(texts), 1):
            continue
        pieces = {piece.strip() for text in texts for piece in text.split(separator)}
        # the same items come together in many ways, and differ less than texts do
        if max(map(len, pieces)) <= _MOST_LENGTH and 2 * len(pieces - {""}) <= len(texts):
            return separator, len(pieces - {""})
    return None


def set_hint(survey: ColumnSurvey) -> str:
    """Return a line on items that are joined in one text; empty without any."""
    if survey.is_number or survey.date is not None or survey.distinct is None:
        return ""
    items = joined_items(sorted(survey.distinct))
    if items is None:
        return ""
    separator, n_items = items
    entry = f"{{kind: set, separator: {separator!r}, items: […], max_length: …}}"
    return f". Its cells look like {n_items:,} items joined by {separator!r}: {entry} makes sets of them"
