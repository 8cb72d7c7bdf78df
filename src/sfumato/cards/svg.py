"""Small pictures as SVG, in colours that show on light and on dark: bars with intervals, an interval, parts of a whole.

Marks are of one middle blue, whose contrast to white and to black is above 3; lines have the colour of the text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.cards.html import Html, join, piece

INK = "#3f8fd2"
_SHADES = (INK, "#c77f2a", "#3f9a63", "#b86a9c", "#8d7be0", "#8a8a92")
_WIDTH, _HEIGHT, _STRIP = 160.0, 56.0, 14.0
_BEHIND = 0.65  # opacity of bars on which lines have to be seen
_HEADROOM = 1.05


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its label, its height, and the ends of its interval, None where there is none."""

    label: str
    height: float
    low: float | None = None
    high: float | None = None


def _svg(width: float, height: float, label: object, shapes: Sequence[Html]) -> Html:
    return Html(
        '<svg role="img" aria-label="{3}" viewBox="0 0 {0:g} {1:g}" width="{0:g}" height="{1:g}" '
        'preserveAspectRatio="none">{2}</svg>'
    ).format(width, height, join(shapes), piece(label))


def _box(x: float, y: float, width: float, height: float, fill: str = "currentColor", opacity: float = 1.0) -> Html:
    shape = '<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}" fill-opacity="{:g}"/>'
    return Html(shape).format(x, y, max(width, 0.0), max(height, 0.0), fill, opacity)


def bars(columns: Sequence[Bar], label: object) -> Html:
    """Return bars from the ground up, with intervals as lines; `label` says it to those who do not see it.

    Example:
        >>> "<svg" in bars([Bar("yes", 0.4, 0.35, 0.45), Bar("no", 0.6)], "member")
        True
    """
    tallest = max((max(b.height, _HEADROOM * (b.high or 0.0)) for b in columns), default=0.0) or 1.0
    step, scale = _WIDTH / max(1, len(columns)), (_HEIGHT - 1) / tallest
    measured = any(b.high is not None for b in columns)
    shapes = []
    for i, b in enumerate(columns):
        height = b.height * scale
        strength = _BEHIND if measured else 1.0
        shapes.append(_box((i + 0.06) * step, _HEIGHT - 1 - height, 0.88 * step, height, INK, strength))
        if b.low is not None and b.high is not None:
            line, top = (b.high - b.low) * scale + 0.6, _HEIGHT - 1 - b.high * scale
            shapes.append(_box((i + 0.5) * step - 0.6, top, 1.2, line))
    shapes.append(_box(0, _HEIGHT - 1, _WIDTH, 1, opacity=0.6))
    return _svg(_WIDTH, _HEIGHT, label, shapes)


def interval(low: float, value: float, high: float, ends: tuple[float, float], label: object) -> Html:
    """Return a number with its interval on a line between two ends, with a mark at 0 where that is between them."""
    left, right = ends
    if not all(map(math.isfinite, (low, value, high, left, right))) or right <= left:
        return Html("")

    def place(number: float) -> float:
        return _WIDTH * (min(max(number, left), right) - left) / (right - left)

    shapes = [_box(0, _STRIP / 2, _WIDTH, 0.8, opacity=0.5)]
    if left < 0 < right:
        shapes.append(_box(place(0) - 0.5, 0, 1, _STRIP, opacity=0.6))
    shapes.append(_box(place(low), _STRIP / 2 - 2.5, max(place(high) - place(low), 1), 5.5, INK, _BEHIND))
    shapes.append(_box(place(value) - 1, 1, 2, _STRIP - 2))
    return _svg(_WIDTH, _STRIP, label, shapes)


def parts(shares: Sequence[float], label: object) -> Html:
    """Return shares of a whole as one bar of parts."""
    shapes, left = [], 0.0
    for i, share in enumerate(shares):
        shapes.append(_box(left, 0, _WIDTH * share - 0.8, _STRIP, _SHADES[i % len(_SHADES)]))
        left += _WIDTH * share
    return _svg(_WIDTH, _STRIP, label, shapes)
