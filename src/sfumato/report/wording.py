"""What a certificate says, in words that need no course in privacy."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_RELATIONS = {"add_remove": "added or removed", "replace_one": "replaced by another"}
_LONGEST = 80
_LONGEST_SENTENCE = 1_000
_LARGEST_EXPONENT = 50.0  # beyond it nothing is promised, and the factor has no name


def who(certificate: Mapping[str, Any]) -> str:
    """Say who is protected: the unit, and how much of it."""
    name, rows = shown(certificate["unit"]["name"]), certificate["unit"]["max_rows"]
    if name == "row" and rows == 1:
        return (
            "Each single row of the table. Somebody who has several rows is protected for each, not for all together."
        )
    if rows == 1:
        return f"Each {name}: all that was used of it is one record."
    return f"Each {name}, with all of its rows that were used (at most {rows})."


def relation(certificate: Mapping[str, Any]) -> str:
    """Say which two tables the guarantee compares."""
    name = shown(certificate["unit"]["name"])
    unit = "row" if name == "row" else f"{name} with all its rows"
    how = _RELATIONS[certificate["neighbours"]]
    return f"It compares the table that was used with the same table in which one {unit} is {how}."


def meaning(certificate: Mapping[str, Any]) -> list[str]:
    """Say what the guarantee means, a paragraph each; nothing is promised without noise or with a seed."""
    epsilon, delta = certificate["epsilon"], certificate["delta"]
    if epsilon is None:
        return ["This release was made without noise. It guarantees nothing."]
    if not certificate["private"]:
        return [
            "The noise of this release came from a seed, so whoever knows the seed can take it off. It guarantees "
            "nothing; the figures say what the same release with secret noise would cost."
        ]
    if epsilon > _LARGEST_EXPONENT:
        return [f"Epsilon is {figure(epsilon)}: so large that the guarantee means nothing in practice."]
    factor = math.exp(epsilon)
    return [
        "Whatever anybody does with this release, the outcome would have been nearly as likely without you: no outcome "
        f"becomes more than {figure(factor)} times as likely, or as unlikely, because your data were used. This may "
        f"fail with a probability of the order of {figure(delta)}, which is delta.",
        f"Someone who gave it an even chance that your data were used, and who knows everything else, can be brought "
        f"by this release to {_percent(factor / (1 + factor))} at the most, or down to {_percent(1 / (1 + factor))}, "
        "but for delta. Whoever knows less learns less.",
        "It holds against any attack, known or not, and whatever else becomes known later. It does not hide what is "
        "true of people in general, and it does not protect against what follows from facts that are public anyway.",
    ]


def cost(certificate: Mapping[str, Any]) -> str:
    """Say ε and δ in one line, or that there is no guarantee."""
    if certificate["epsilon"] is None:
        return "No guarantee: there is no noise"
    return f"epsilon = {figure(certificate['epsilon'])}, delta = {figure(certificate['delta'])}"


def event(entry: Mapping[str, Any]) -> str:
    """Say how one stage was protected."""
    times = ("* " if "repetitions" in entry else "") + ("" if entry["count"] == 1 else f"{entry['count']} times ")
    if entry["type"] == "subset_gaussian":
        return f"{times}Gaussian noise on {entry['subset_size']} of {entry['source_size']} records"
    if entry["sampling_probability"] is None:
        return f"{times}Gaussian noise, all records"
    rate = figure(entry["sampling_probability"])
    return f"{times}Gaussian noise on a random sample, each record with probability {rate}"


def search(certificate: Mapping[str, Any]) -> str | None:
    """Say what a search repeated, or None if there was none."""
    law = next((entry["repetitions"] for entry in certificate["events"] if "repetitions" in entry), None)
    if law is None:
        return None
    return (
        f"Stages marked * were repeated: {figure(law['mean'])} times on average, of which only the best left. What "
        "they cost alone is for all repetitions, shares are of one."
    )


def shown(text: object, longest: int = _LONGEST) -> str:
    """Return text for a page: without control characters and marks that turn its direction, and not too long."""
    plain = "".join(c if _harmless(c) else "�" for c in str(text))
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def sentence(text: object) -> str:
    """Return a sentence for a page, as `shown` but longer."""
    return shown(text, _LONGEST_SENTENCE)


def marked(text: object) -> str:
    """Return a sentence as HTML: escaped, and what stands between backticks as code."""
    from markupsafe import Markup, escape  # jinja2's own, which only pages need

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(sentence(text)))))


def _harmless(character: str) -> bool:
    # the joiners are part of how Persian, Hindi and emoji are written, and turn no direction
    return character in "\u200c\u200d" or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn"}


def figure(value: float | None, digits: int = 3) -> str:
    """Return a figure for a person to read."""
    if value is None:
        return "–"
    return f"{value:.{digits}g}" if abs(value) < 1e5 else f"{value:.2e}"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %" if share > 0.99 else f"{100 * share:.2g} %"
