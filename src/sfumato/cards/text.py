"""Text that a stranger may have written, made fit to be shown; and figures for a person to read."""

from __future__ import annotations

import unicodedata

_LONGEST = 80
_LONGEST_SENTENCE = 1_000


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
    return f"{value:.{digits}g}" if abs(value) < 1e5 else f"{value:.2e}"
