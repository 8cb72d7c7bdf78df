"""Estimates, regressions and the list of answers as cards: numbers, their intervals as pictures, what they rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from sfumato.cards.html import Html, card, fold, interval, paragraph, sentence, shown, table
from sfumato.inference.times import Value, figure
from sfumato.inference.times import shown as text_of

LEVEL = 0.95
"""Of the intervals on cards."""

_MOST_ROWS = 60
_NUMBERS = ["value", "std_error", "95 % from", "to", ""]
_COEFFICIENTS = ["coefficient", "std_error", "p", "95 % from", "to", ""]


def estimate_card(numbers: Sequence[Value], target: str, rests_on: str) -> str:
    """Return the card of one estimate: its value, its error, and the ends of its interval at `LEVEL`."""
    value, error, low, high = numbers
    return card(
        "Estimate",
        table(_NUMBERS[:4], [_texts(value, error, low, high)], numbers=range(4)),
        paragraph(f"Of the {target}. {sentence(rests_on)}"),
    )


def estimates_card(frame: pd.DataFrame, left_out: Mapping[Any, str], rests_on: str) -> str:
    """Return the card of estimates by group, `to_frame(LEVEL)` of them: all intervals on one scale."""
    least, most = figure(frame["low"].min()), figure(frame["high"].max())
    room = 0.05 * (most - least)
    ends = least - room, most + room
    rows = []
    for key, (value, error, low, high) in _lines(frame, ["value", "std_error", "low", "high"]):
        texts = _texts(value, error, low, high)
        picture = interval(figure(low), figure(value), figure(high), ends, f"from {texts[2]} to {texts[3]}")
        rows.append((*_keys(key), *texts, picture))
    header = [*map(shown, frame.index.names), *_NUMBERS]
    first = len(frame.index.names)
    return card(
        "Estimates", *_cut(header, rows, range(first, first + 4)), *_left_out(left_out), paragraph(sentence(rests_on))
    )


def hypothesis_card(hypothesis: str, numbers: Sequence[float], target: str, rests_on: str) -> str:
    """Return the card of a test: its statistic, degrees of freedom and chance."""
    return card(
        "Test of a hypothesis",
        paragraph(sentence(hypothesis)),
        table(["chi-square", "df", "p"], [tuple(_number(number) for number in numbers)], numbers=range(3)),
        paragraph(f"Of the {target}. {sentence(rests_on)}"),
    )


def regression_card(title: str, frame: pd.DataFrame, rests_on: str) -> str:
    """Return the card of a regression by `to_frame(LEVEL)`: each interval on a scale of its own, with a mark at 0."""
    return card(shown(title, 300), *_terms(frame), paragraph(sentence(rests_on)))


def regressions_card(title: str, frames: Mapping[Any, pd.DataFrame], left_out: Mapping[Any, str], rests_on: str) -> str:
    """Return the card of regressions by group."""
    content: list[Html] = []
    for group, frame in frames.items():
        content += [paragraph(Html("<b>{}</b>").format(shown(group))), *_terms(frame)]
    return card(shown(title, 300), *content, *_left_out(left_out), paragraph(sentence(rests_on)))


def combined_card(m: int, frame: pd.DataFrame) -> str:
    """Return the card of the combined results of an analysis of m replicates."""
    return card(f"Combined results of {m} replicates", *_terms(frame))


def answers_card(answers: pd.DataFrame) -> str:
    """Return the card of the list of what a release can answer."""
    rows = [
        (
            shown(entry["kind"]),
            ", ".join(shown(entry[name], 40) for name in ("first", "second") if entry[name]),
            shown(entry["answered"]),
            *_texts(*(entry[name] for name in ("value", "std_error", "low", "high"))),
        )
        for entry in records_of(answers)
    ]
    reasons = Counter(entry["why"] for entry in records_of(answers) if entry["why"])
    header = ["question", "columns", "answered", "value", "std_error", "from", "to"]
    lines = [(count, sentence(why)) for why, count in reasons.items()]
    yes = int((answers["answered"] == "yes").sum())
    return card(
        f"What the release can answer: {yes} of {len(answers)} questions",
        *_cut(header, rows, range(3, 7)),
        *([fold("Why others are not, and of what some are", table(["questions", "why"], lines))] if lines else []),
        paragraph("A frame: filter it as any other. The error of several numbers is the median.", quiet=True),
    )


def _terms(frame: pd.DataFrame) -> list[Html]:
    rows = []
    for term, (value, error, p, low, high) in _lines(frame, ["coef", "std_error", "p", "low", "high"]):
        reach = max(abs(low), abs(high))
        picture = interval(low, value, high, (-reach, reach), f"from {_number(low)} to {_number(high)}")
        rows.append((*_keys(term), *map(_number, (value, error)), _number(p, 2), _number(low), _number(high), picture))
    return _cut(["term", *_COEFFICIENTS], rows, range(1, 6))


def _cut(header: Sequence[object], rows: Sequence[Sequence[object]], numbers: range) -> list[Html]:
    more = len(rows) - _MOST_ROWS
    rest = [paragraph(f"And {more} more: to_frame() has all.", quiet=True)] if more > 0 else []
    return [table(header, rows[:_MOST_ROWS], numbers=numbers), *rest]


def _left_out(left_out: Mapping[Any, str]) -> list[Html]:
    return [paragraph("Left out: ", ", ".join(shown(group, 40) for group in left_out))] if left_out else []


def _lines(frame: pd.DataFrame, names: Sequence[str]) -> Iterable[tuple[Any, list[Any]]]:
    return zip(frame.index, map(list, frame[list(names)].itertuples(index=False)), strict=True)


def _keys(key: Any) -> list[str]:  # noqa: ANN401 - labels of an index
    return [shown(part) for part in (key if isinstance(key, tuple) else (key,))]


def _texts(value: Value, error: Value, low: Value, high: Value) -> tuple[str, ...]:
    """Return a value, its error and the ends of its interval as they are printed."""
    value, low, high = (text_of(number, 4, error=error) for number in (value, low, high))
    return value, text_of(error, 4), low, high


def _number(value: float, digits: int = 4) -> str:
    return text_of(value, digits)


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame, by the names of its columns."""
    return frame.to_dict(orient="records")  # type: ignore[return-value]
