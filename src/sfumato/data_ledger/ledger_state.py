"""The state of a data set's ledger: its budget, the fits that charged it, their releases, and the chain of hashes."""

from __future__ import annotations

import bisect
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

from sfumato.cards.html import banner, card, figure, paragraph, parts, shown, table
from sfumato.data_ledger.journal import ProcessMark
from sfumato.errors import UnsupportedEventError
from sfumato.privacy.accounting import account_of_fits
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate_form import Bound, event_to_dict
from sfumato.privacy.plan import Neighbours, Plan
from sfumato.privacy.reading import plain
from sfumato.privacy.risk import trade_off_of_fits
from sfumato.privacy.words import attacks

Entry: TypeAlias = Literal["running", "waiting", "finished", "failed"]
Status: TypeAlias = Entry | Literal["killed", "unknown"]
LEDGER_FORMAT = "sfumato ledger 4"
SLACK = 1e-9  # a fit may cost all there is, up to rounding


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


@final
@dataclass(frozen=True, slots=True)
class ChargedFit:
    """A fit that charged a ledger.

    Attributes:
        id: its name in the ledger.
        method: its method.
        unit: whom it protects: "row", or a column.
        plan: what it was charged.
        started: when it was charged, UTC, ISO 8601.
        ended: when it finished or failed; None if it has not, or was killed.
        entry: what the file says of its end: "running" until it ends; "waiting" for messages of other holders.
        process: the process that fits.
        run: the run that may go on: its number, 1 or one more at each resume, and a random mark, which the checkpoint
            of the fit has to carry.
        release: hashes of the release that it paid for; None until that is final, and of what released no model.
        share: session and attempt of a fit of several holders, which are charged once; None of others.
    """

    id: str
    method: str
    unit: str
    plan: Plan
    started: str
    ended: str | None
    entry: Entry
    process: ProcessMark
    run: str
    release: Bound | None = None
    share: str | None = None

    @property
    def runs(self) -> int:
        """How often it was begun or gone on with."""
        return int(self.run.partition(" ")[0])

    @property
    def status(self) -> Status:
        """How it ended; "killed" if its process is gone, "unknown" if that is on another machine."""
        if self.entry != "running":
            return self.entry
        alive = self.process.alive()
        return "unknown" if alive is None else "running" if alive else "killed"

    def charged(self) -> dict[str, Any]:
        """Return the charge, which no end of the fit changes."""
        return {
            "id": self.id, "method": self.method, "unit": self.unit,
            "events": [event_to_dict(stage) for stage in self.plan.stages], "started": self.started,
            "share": self.share,
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return it as the file holds it, but for its place in the chain."""
        return {
            **self.charged(), "ended": self.ended, "entry": self.entry, "process": self.process.to_dict(),
            "run": self.run, "release": _hashes(self.release),
        }  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class LedgerState:
    """A ledger at one moment.

    Attributes:
        budget: what all fits together may cost.
        neighbours: the relation of the budget.
        fits: every fit that charged it, oldest first.
    """

    budget: PrivacyBudget
    neighbours: Neighbours
    fits: tuple[ChargedFit, ...] = ()

    def spent(self, *more: Plan) -> float:
        """Return ε of all fits at the budget's δ, and of further plans; 0 of none.

        Raises:
            UnsupportedEventError: a plan has no account under the ledger's relation.
        """
        plans = [*(fit.plan for fit in self.fits), *more]
        cost = account_of_fits(plans, self.budget.delta, self.neighbours)
        return 0.0 if cost is None else cost.epsilon

    def further(self) -> int | None:
        """Return how many more fits like the last one the budget pays for, 100 at most: one a year of the same people.

        None of no fit, and of one that draws samples of the records, whose account takes long.
        """
        last = self.fits[-1].plan if self.fits else None
        if last is None or any(stage.inclusion is not None or stage.repetitions for stage in last.stages):
            return None
        most = self.budget.epsilon * (1 + SLACK)
        return bisect.bisect_left(range(1, 101), True, key=lambda more: self.spent(*[last] * more) > most)

    def risks(self) -> list[str]:
        """Say what the best attacker finds who sees all that was released; nothing of no fit, or of no account."""
        if not self.fits:
            return []
        try:
            curve = trade_off_of_fits([fit.plan for fit in self.fits], self.neighbours)
        except UnsupportedEventError:
            return []
        return attacks(curve, self.neighbours, of="all these releases")

    @property
    def chain(self) -> tuple[str, ...]:
        """Of each charge the hash of what it says and of all before it, SHA-256 in hexadecimal digits."""
        link = _hash([LEDGER_FORMAT, self.budget.epsilon, self.budget.delta, self.neighbours.value])
        links = []
        for number, fit in enumerate(self.fits, 1):
            link = _hash([link, number, fit.charged()])
            links.append(link)
        return tuple(links)

    def describe(self) -> dict[str, Any]:
        """Return the content of `ledger show --json`."""
        return {
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "neighbours": self.neighbours.value,
            "spent": {"epsilon": _finite(self.spent()), "delta": self.budget.delta},
            "further": self.further(),
            "fits": [
                {
                    "charge": number,
                    "chain": link,
                    "id": fit.id,
                    "method": fit.method,
                    "unit": fit.unit,
                    "status": fit.status,
                    "started": fit.started,
                    "ended": fit.ended,
                    "runs": fit.runs,
                    "release": _hashes(fit.release),
                    "epsilon_alone": _finite(LedgerState(self.budget, self.neighbours).spent(fit.plan)),
                    "events": [event_to_dict(stage) for stage in fit.plan.stages],
                }
                for number, (fit, link) in enumerate(zip(self.fits, self.chain, strict=True), 1)
            ],
        }

    def _repr_html_(self) -> str:

        return ledger_card(self.describe(), self.risks())


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _hashes(release: Bound | None) -> dict[str, str] | None:
    return None if release is None else plain(release)


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None
