"""A coordinator of several holders who keeps all that it sees, of two attempts: nothing beyond what both were charged.

It passes the messages on, knows all of one holder, who works together with it, and says that a holder dropped out
whose message it has. Each coordinate of a sum is one run: a lone record of norm 1 at one holder, or none.
"""

from dataclasses import replace

import numpy as np
import pytest

from harness.privacy import STAGE, compare_samples, gaussian_delta, ledger_for, make_exact
from sfumato.holders.cards import Agreement, HolderSession, Keys
from sfumato.holders.messages import ShareContext, masked
from sfumato.mechanisms.noise import SeededNoise
from sfumato.mechanisms.noise_shares import noise_part, noise_share

pytestmark = [pytest.mark.audit]

RUNS, MULTIPLIER = 3_000, 1.0
PLAN = Agreement(
    schema={"columns": {"x": ["a", "b"]}}, epsilon=1.0, delta=1e-6, rows=9, holders=3, colluding=1, target=None,
    versions={}, machine="",
)  # fmt: skip
PLACE = ShareContext(session="", number=1, stage=STAGE, statistic="s", before="b")


class Coordinator:
    """Holders of a test, and who passes their messages on; `spy` works together with it, and sends a sum of 0."""

    def __init__(self, holders, seed, spy="h0"):
        self.names, self.spy, self.noise = [f"h{i}" for i in range(holders)], spy, SeededNoise(seed)
        self.keys = {name: Keys.new() for name in self.names}
        self.agreement = replace(PLAN, holders=holders)
        self.session = self.cards()

    def cards(self):
        return HolderSession.of([self.keys[name].card(name, self.agreement) for name in self.names])

    def shares(self, owner, value, less=1.0):
        """What each holder adds, by name; the record is the owner's."""
        part = noise_part(len(self.names), self.agreement.colluding) * less
        return {
            name: noise_share(
                make_exact(np.full(RUNS, value if name == owner else 0)),
                stage=STAGE, ledger=ledger_for(MULTIPLIER), noise=self.noise, part=part,
            )
            for name in self.names
        }  # fmt: skip

    def opened(self, shares):
        """The sum of all messages of the attempt, with the own part of the spy taken off."""
        place, known = replace(PLACE, session=self.session.id), {**shares, self.spy: np.zeros(RUNS, dtype=np.int64)}
        words = [masked(known[name], place, name, self.session, self.keys[name]) for name in self.names]
        assert all(abs(np.unpackbits(w.view(np.uint8)).mean() - 0.5) < 0.01 for w in words)
        return np.sum(words, axis=0, dtype=np.uint64)[:RUNS].view(np.int64).astype(float)

    def begin_again(self, dropped):
        self.agreement = self.agreement.again(self.session.id, [dropped], 6)
        self.names = [name for name in self.names if name != dropped]
        self.keys = {name: self.keys[name].further() for name in self.names}
        self.session = self.cards()


def evidence(holders, value, *, owner, dropped, less=1.0, anew=True):
    """The best weighting of both sums against a record of the owner, one number a run."""
    coordinator = Coordinator(holders, seed=holders + 1000 * value)
    shares = coordinator.shares(owner, value)
    first = coordinator.opened(shares)
    coordinator.begin_again(dropped)
    again = coordinator.shares(owner, value, less) if anew else {name: shares[name] for name in coordinator.names}
    second = coordinator.opened({**again, coordinator.spy: 0})
    if not anew:
        return first - second
    return first if owner == dropped else first + second / less


@pytest.mark.parametrize("holders", [3, 10, 50])
@pytest.mark.parametrize("dropped", ["h1", "h2"])
def test_two_attempts_tell_no_more_than_both_were_charged(holders, dropped):
    samples = [evidence(holders, value, owner="h1", dropped=dropped) for value in (1, 0)]
    compare_samples(*samples, gaussian_delta(MULTIPLIER / np.sqrt(1 if dropped == "h1" else 2)))


def test_with_less_noise_in_the_further_attempt_they_do():
    samples = [evidence(10, value, owner="h1", dropped="h2", less=0.1) for value in (1, 0)]
    with pytest.raises(AssertionError, match="beyond the account"):
        compare_samples(*samples, gaussian_delta(MULTIPLIER / np.sqrt(2)))


def test_the_same_shares_under_new_pads_show_the_share_of_who_dropped_out():
    samples = [evidence(10, value, owner="h1", dropped="h1", anew=False) for value in (1, 0)]
    with pytest.raises(AssertionError, match="beyond the account"):
        compare_samples(*samples, gaussian_delta(MULTIPLIER))
