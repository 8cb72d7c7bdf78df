"""The outcome of an audit as a card: what was certified, what attacks found, and what that means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.cards.html import banner, card, paragraph, table
from sfumato.cards.svg import interval
from sfumato.cards.text import figure


def audit_card(outcome: Mapping[str, Any]) -> str:
    """Return the card of what `audit` returns."""
    certified, delta = outcome["epsilon_certified"], figure(outcome["delta"])
    lower = [outcome["epsilon_lower"], outcome["epsilon_lower_gaussian"]]
    named = ["found by attack, at least", "the same, by the trade-off of its events", "certified, at most"]
    most = 1.05 * max(certified, *lower)
    rows = [
        (name, figure(value, 4), interval(0.0, value, value, (0.0, most), f"{value:.4g}"))
        for name, value in zip(named, [*lower, certified], strict=True)
    ]
    verdict = (
        "No attack broke the certificate. That refutes nothing, and proves nothing: the proofs do."
        if outcome["holds"]
        else "The attack got more out of the method than its certificate allows. Do not use it; report it."
    )
    return card(
        "Audit: attacks on the method beside what it certifies",
        banner(verdict, alarm=not outcome["holds"]),
        table(["", f"epsilon at delta = {delta}", ""], rows, numbers=(1,)),
        paragraph(
            f"{outcome['fits']} shadow fits; the lower bounds hold together with confidence {outcome['confidence']:g}. "
            "No record of anybody was read.",
            quiet=True,
        ),
    )
