"""Pieces of a card. Every argument is text of anybody, and is escaped here; what is `Html` was made here.

Control characters, and marks that turn the direction of text, are replaced: a name cannot pass for another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib.resources import files

from markupsafe import Markup

from sfumato.cards.text import whole

Html = Markup
"""Text that is HTML already: made by the functions of this room, and by nothing else."""


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


def table(
    header: Sequence[object], rows: Iterable[Sequence[object]], *, caption: object = None, numbers: Collection[int] = ()
) -> Html:
    """Return a table that scrolls by itself where it is too wide.

    Args:
        header: names of the columns.
        rows: cells of each row, the first of which names it.
        caption: what it shows.
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

    top = Html("") if caption is None else Html("<caption>{}</caption>").format(piece(caption))
    head = Html("<thead>{}</thead>").format(cells("th", header, "col"))
    body = Html("<tbody>{}</tbody>").format(join(cells("td", row, "row") for row in rows))
    return Html('<div class="sfumato-wide"><table>{}{}{}</table></div>').format(top, head, body)


def grid(items: Iterable[object]) -> Html:
    """Return small pictures beside each other, each with its words."""
    return Html('<ul class="sfumato-grid">{}</ul>').format(join(Html("<li>{}</li>").format(piece(i)) for i in items))
