"""A ledger of a data set as a card: what is spent of its budget, and on which fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sfumato.cards.html import banner, card, paragraph, table
from sfumato.cards.svg import parts
from sfumato.cards.text import figure, shown


def ledger_card(content: Mapping[str, Any], risks: Iterable[str]) -> str:
    """Return the card of a ledger: what `ledger --json` says of it, and what the best attacker finds."""
    budget, spent = content["budget"]["epsilon"], content["spent"]["epsilon"]
    header = ["charge", "started", "method", "unit", "epsilon alone", "status"]
    rows = [
        (f["charge"], *(shown(f[name]) for name in header[1:4]), figure(f["epsilon_alone"], 4), f["status"])
        for f in content["fits"]
    ]
    relation = content["neighbours"].replace("_", "/").replace("replace/one", "replace-one")
    summary = f"Spent: epsilon = {figure(spent, 4)} of {budget:g}, at delta = {figure(content['budget']['delta'])}."
    fits = "1 fit" if len(rows) == 1 else f"{len(rows)} fits"
    used = 1.0 if spent is None else min(spent / budget, 1.0)
    return card(
        "Ledger: what all fits of these data cost together",
        banner(f"{summary} Under {relation}, by {fits}.", alarm=spent is None or spent > budget),
        *map(paragraph, risks),
        parts([used], f"{used:.0%} of the budget is spent"),
        *([table(header, rows, numbers=(4,))] if rows else [paragraph("No fit has charged it yet.")]),
        paragraph("Epsilons do not simply add up: the account is of all events together.", quiet=True),
    )
