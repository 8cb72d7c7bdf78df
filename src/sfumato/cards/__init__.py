"""What objects look like in a notebook: pieces of HTML that every card is made of, whoever wrote the names in them.

A card is markup and style alone: no script, no resource from elsewhere, and colours that take the notebook's own for
text, so that it reads on light and on dark. What a card says stands beside the class that it shows.
"""

from sfumato.cards.html import Html, banner, card, code, facts, fold, listing, paragraph, table
from sfumato.cards.pictures import Bar, bars, interval, parts

__all__ = [
    "Bar",
    "Html",
    "banner",
    "bars",
    "card",
    "code",
    "facts",
    "fold",
    "interval",
    "listing",
    "paragraph",
    "parts",
    "table",
]
