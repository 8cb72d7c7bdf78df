"""Whether a ledger still knows what releases say they charged: put back, forked, two for one charge, uncharged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from sfumato.data_ledger.data_ledger import read_ledger
from sfumato.data_ledger.ledger_state import LedgerState
from sfumato.privacy.accounting import account_of_fits
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.certificate_form import event_to_dict
from sfumato.privacy.plan import Plan
from sfumato.release.model import ReleaseValue, read_release

Standing: TypeAlias = Literal[
    "known", "not charged", "unknown", "other chain", "other events", "other release", "not noted", "fork"
]
MEANINGS: dict[Standing, str] = {
    "known": "the ledger has this charge, with these events, and this is the release that it paid for",
    "not charged": "it states no charge: its fit named no ledger",
    "unknown": "the ledger has no charge of this number: it was put back to an older state, or is another",
    "other chain": "the ledger has another charge of this number: it was put back and went on, or is another",
    "other events": "the ledger was charged other events than the certificate lists",
    "other release": "the charge paid for another release: two were made for one charge, or this one was changed since",
    "not noted": "the ledger has this charge, with these events, and no release of it: its fit did not end there",
    "fork": "another of these releases states another charge of the same number: the ledger was put back between them",
}
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class Claim:
    """The verdict of a ledger on one release.

    Attributes:
        release: its path.
        charge: the number of the charge that it states; None of none.
        standing: a key of `MEANINGS`.
    """

    release: str
    charge: int | None
    standing: Standing

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `ledger verify --json`."""
        return {**asdict(self), "meaning": MEANINGS[self.standing]}


def check_releases(ledger: str | os.PathLike[str], releases: Sequence[str | os.PathLike[str]]) -> tuple[Claim, ...]:
    """Say of each release whether a ledger still knows its charge. Reads no record.

    Args:
        ledger: the account of the data.
        releases: paths of releases, in any order.

    Raises:
        ConfigError: there is no such ledger, or it was changed by hand.
        ReleaseError: a release cannot be read.
    """
    state = read_ledger(ledger)
    certificates = [read_release(path, ReleaseValue).certificate for path in releases]
    standings: list[Standing] = [_standing(certificate, state) for certificate in certificates]
    for i, one in enumerate(certificates):
        if standings[i] == "known":
            continue
        if any(_forked(one, other) for other in certificates):
            standings[i] = "fork"
        elif standings[i] == "not noted" and any(
            one.ledger == other.ledger and one.release != other.release for other in certificates
        ):
            standings[i] = "other release"
    return tuple(
        Claim(os.fspath(path), None if c.ledger is None else c.ledger.charge, standing)
        for path, c, standing in zip(releases, certificates, standings, strict=True)
    )


def _forked(one: Certificate, other: Certificate) -> bool:
    if one.ledger is None or other.ledger is None:
        return False
    return one.ledger.charge == other.ledger.charge and one.ledger.chain != other.ledger.chain


def _standing(certificate: Certificate, state: LedgerState) -> Standing:
    charge = certificate.ledger
    if charge is None:
        return "not charged"
    if charge.charge > len(state.fits):
        return "unknown"
    of_charge = charge.charge - 1
    if state.chain[of_charge] != charge.chain:
        return "other chain"
    if not _charged(certificate, state.fits[of_charge].plan, state):
        return "other events"
    noted = state.fits[of_charge].release
    if noted is None:
        return "not noted"
    return "known" if noted == certificate.release else "other release"


def _charged(certificate: Certificate, plan: Plan, state: LedgerState) -> bool:
    """Whether the certified events were charged; of a search, a plan that costs the same stands for all candidates'."""
    if certificate.search is None or certificate.delta is None:
        own = certificate.events  # of several holders: earlier attempts, each of a charge of its own, and the last
        own = own if certificate.joint is None or certificate.joint.attempts == 1 else own[-len(plan.stages) :]
        return [event_to_dict(s) for s in own] == [event_to_dict(s) for s in plan.stages]
    cost = account_of_fits([plan], certificate.delta, state.neighbours)
    return cost is not None and certificate.epsilon is not None and cost.epsilon >= certificate.epsilon * (1 - _SAME)
