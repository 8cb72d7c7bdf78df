"""Pieces of cards: HTML, text of strangers made fit to be shown, and small pictures as SVG.

Control characters, and marks that turn the direction of text, are replaced: a name cannot pass for another.

Marks are of one middle blue, whose contrast to white and to black is above 3; lines have the colour of the text.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from markupsafe import Markup

_LONGEST = 80
_LONGEST_SENTENCE = 1_000
Html = Markup
"""Text that is HTML already: made by the functions of this room, and by nothing else."""
INK = "#3f8fd2"
_SHADES = (INK, "#c77f2a", "#3f9a63", "#b86a9c", "#8d7be0", "#8a8a92")
_WIDTH, _HEIGHT, _STRIP = 160.0, 56.0, 14.0
_BEHIND = 0.65  # opacity of bars on which lines have to be seen
_HEADROOM = 1.05


def whole(text: object) -> str:
    """Return text without control characters and marks that turn its direction."""
    return "".join(c if harmless(c) else "�" for c in str(text))


def shown(text: object, longest: int = _LONGEST) -> str:
    """Return text as `whole`, and not too long."""
    plain = whole(text)
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def sentence(text: object) -> str:
    """Return a sentence, as `shown` but longer."""
    return shown(text, _LONGEST_SENTENCE)


def harmless(character: str) -> bool:
    """Whether a character is no control character, and no mark that turns the direction of others."""
    # the joiners are part of how Persian, Hindi and emoji are written, and turn no direction
    return character in "\u200c\u200d" or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn"}


def figure(value: float | None, digits: int = 3) -> str:
    """Return a figure for a person to read."""
    if value is None:
        return "–"
    return f"{float(f'{value:.{digits}g}'):.10g}"  # 23800, and no 2.38e+04


def piece(text: object) -> Html:
    """Return text as HTML: escaped, or as it is where it was made here."""
    return text if isinstance(text, Html) else Html(Html.escape(whole(text)))


def join(pieces: Iterable[object]) -> Html:
    """Return pieces one after the other."""
    return Html("").join(map(piece, pieces))


@cache
def _style() -> Html:
    style = files("sfumato.cards").joinpath("card.css").read_text(encoding="utf-8")
    return Html("<style>{}</style>").format(Html(style))


def card(title: str, *content: object) -> str:
    """Return a card: the HTML that a notebook shows for an object.

    Args:
        title: what it is.
        content: its pieces, in order.

    Example:
        >>> "<b>" in card("Certificate", paragraph("of <b>"))
        False
    """
    form = '{0}<section class="sfumato-card" aria-label="{1}"><p class="sfumato-title">{1}</p>{2}</section>'
    return str(Html(form).format(_style(), piece(title), join(content)))


def paragraph(*text: object, quiet: bool = False) -> Html:
    """Return a paragraph; `quiet` is small print."""
    return (Html('<p class="sfumato-quiet">{}</p>') if quiet else Html("<p>{}</p>")).format(join(text))


def banner(text: object, *, alarm: bool) -> Html:
    """Return a sentence in a frame: an alarm, or that all is well."""
    kind = "alarm" if alarm else "safe"
    return Html('<p class="sfumato-banner sfumato-{}">{}</p>').format(kind, piece(text))


def code(text: object) -> Html:
    """Return a word of code."""
    return Html("<code>{}</code>").format(piece(text))


def listing(text: str) -> Html:
    """Return lines to be copied, such as a file."""
    return Html("<pre>{}</pre>").format(Html("\n").join(map(piece, text.split("\n"))))


def facts(pairs: Iterable[tuple[object, object]]) -> Html:
    """Return names with a fact on each."""
    lines = (Html("<dt>{}</dt><dd>{}</dd>").format(piece(name), piece(fact)) for name, fact in pairs)
    return Html("<dl>{}</dl>").format(join(lines))


def fold(summary: object, *content: object) -> Html:
    """Return content that is folded away under a line."""
    return Html("<details><summary>{}</summary>{}</details>").format(piece(summary), join(content))


def table(header: Sequence[object], rows: Iterable[Sequence[object]], *, numbers: Collection[int] = ()) -> Html:
    """Return a table that scrolls by itself where it is too wide.

    Args:
        header: names of the columns.
        rows: cells of each row, the first of which names it.
        numbers: places of the columns to set to the right.
    """

    def cells(tag: str, row: Sequence[object], scope: str) -> Html:
        tags = []
        for place, cell in enumerate(row):
            name = tag if place else "th"
            mark = Html(' scope="{}"').format(scope) if name == "th" else Html("")
            side = Html(' class="sfumato-number"') if place in numbers else Html("")
            tags.append(Html("<{0}{1}{2}>{3}</{0}>").format(Html(name), mark, side, piece(cell)))
        return Html("<tr>{}</tr>").format(join(tags))

    head = Html("<thead>{}</thead>").format(cells("th", header, "col"))
    body = Html("<tbody>{}</tbody>").format(join(cells("td", row, "row") for row in rows))
    return Html('<div class="sfumato-wide"><table>{}{}</table></div>').format(head, body)


def grid(items: Iterable[object]) -> Html:
    """Return small pictures beside each other, each with its words."""
    return Html('<ul class="sfumato-grid">{}</ul>').format(join(Html("<li>{}</li>").format(piece(i)) for i in items))


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its height, and the ends of its interval, None where there is none."""

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
        >>> "<svg" in bars([Bar(0.4, 0.35, 0.45), Bar(0.6)], "member")
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
