"""The account of one fit: what it may release, the noise it draws for that, and what it has released so far.

    measure(stage, statistic, records) = reduce → charge → draw → keep

Whatever leaves a fit leaves through here, or through a mechanism that has charged `ledger` itself: descents, mixtures
and words. A released value that a journal keeps is read back, entered in the account once, and never drawn again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, final

import numpy as np

from sfumato.data_ledger.journal import Arrays, Journal, Progress
from sfumato.errors import ConfigError, LedgerError, RoundPendingError
from sfumato.measurements.queries import MarginalQuery
from sfumato.measurements.query_form import query_words
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.noise_shares import noise_share, sum_of_shares
from sfumato.mechanisms.queries import Noisy, noisy_second_moment, noisy_sum, origin_of
from sfumato.mechanisms.statistics import OuterProducts
from sfumato.privacy.certificate_form import JointFit
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.origin import Origin, simplest
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.engine import Records, Statistic, reduce, sum_of_none

_QUERY = "query"
_ORIGIN = ("norm_bound", "grid", "off_diagonal_grid")


class Exchange(Protocol):
    """How several holders add the shares of a noisy sum up.

    Attributes:
        part: of the noise's variance that each of them draws.
        noise_factor: by which the noise of all is larger than that of those who need not work together.
        stated: for the certificate.
        earlier: the events of attempts before this one, which the account of the release has too.
    """

    part: float
    noise_factor: float
    stated: JointFit
    earlier: tuple[Stage, ...]

    def begin(self) -> None:
        """Refuse to draw a share where one of this round has been handed out; `ConfigError`."""
        ...

    def masked(self, share: np.ndarray, statistic: Statistic, stage: str, event: int | None) -> np.ndarray:
        """Return a share under one-time pads that go out in the sum over all holders, uint64."""
        ...

    def pending(self, words: np.ndarray, statistic: Statistic, stage: str, event: int | None) -> RoundPendingError:
        """Hand the own masked share out; return the error that ends the round."""
        ...

    def total(self, words: np.ndarray, statistic: Statistic, stage: str, event: int | None) -> np.ndarray:
        """Return the sum of all holders' shares, int64; the own one is handed out again.

        Raises:
            RoundPendingError: a holder's is not there yet.
            ConfigError, DataError: one is not what it has to be.
        """
        ...

    def agree(self, value: np.ndarray) -> None:
        """Note what was released, on which all holders have to agree."""
        ...


@final
class Account:
    """Measures statistics of the records, at the price of the plan's stages.

    Args:
        ledger: holds the fit to its plan.
        noise: the source of randomness.
        journal: keeps what was released; by default nothing is kept.
        exchange: with other holders, of whose records a sum is too. It needs a journal with a file.
    """

    def __init__(
        self, ledger: Ledger, noise: NoiseSource, journal: Journal | None = None, exchange: Exchange | None = None
    ) -> None:
        self.ledger, self.noise, self.exchange = ledger, noise, exchange
        self.journal = Journal(None, {}) if journal is None else journal
        self._measured: Counter[str] = Counter()
        self._replayed = 0  # events that were entered in the account without a draw

    @property
    def plan(self) -> Plan:
        """The plan that the fit is held to."""
        return self.ledger.plan

    def measure(self, stage: str, statistic: Statistic, records: Records) -> Noisy:
        """Release a statistic of the records with Gaussian noise: symmetric noise for sums of outer products.

        Privacy: one `Gaussian(σ)` event of the stage: `noisy_sum` or `noisy_second_moment`, with the bounds that the
            statistic states.

        Args:
            stage: name of the stage to charge; of one with several events, the next.
            statistic: what to sum over the records.
            records: coded records.

        Returns:
            The noisy statistic: as kept by an interrupted fit, or drawn now.

        Raises:
            LedgerError: the plan has another stage next, a smaller replace distance, or samples of the records.
                Nothing was released.
            ConfigError: an interrupted fit counted other cells.
        """
        planned = self.plan[stage]
        if planned.inclusion is not None:
            raise LedgerError(
                f"Expected a stage of all records to measure, got {stage!r}, planned for samples of them."
            )
        query = getattr(statistic, "query", None)
        if query is not None and query.shape != statistic.zero().shape:
            raise ConfigError(
                f"Expected a query of the shape of the sum {statistic.name!r}, {statistic.zero().shape}, got one of "
                f"shape {query.shape}."
            )
        self._measured[stage] += 1
        event = None if planned.count == 1 else self._measured[stage]
        release = noisy_second_moment if isinstance(statistic, OuterProducts) else noisy_sum

        # which cells are counted may follow from released values, by arithmetic that differs between machines
        words = {_QUERY: query_words(query)} if isinstance(query, MarginalQuery) else {}

        def draw() -> Arrays:
            if self.exchange is not None:
                return words | arrays_of(self._exchanged(self.exchange, stage, event, statistic, records))
            exact = reduce(statistic, records)
            noisy = release(exact, stage=stage, ledger=self.ledger, noise=self.noise)
            origin = origin_of(exact, stage, noisy.noise_std, symmetric=noisy.symmetric)
            return words | arrays_of(replace(noisy, origin=origin))

        entry = self._journal_entry(stage, event, 1, draw)
        if words and not np.array_equal(entry[_QUERY], words[_QUERY]):
            raise ConfigError(
                f"Expected stage {stage!r} to count the cells that it counted when the checkpoint was written, got "
                "others. Go on with the machine and the versions that began the fit."
            )
        noisy = noisy_of(entry, stage)
        if self.exchange is not None:
            self.exchange.agree(noisy.value)
        return replace(noisy, query=query)

    def _exchanged(
        self, exchange: Exchange, stage: str, event: int | None, statistic: Statistic, records: Records
    ) -> Noisy:
        """Return the sum of all holders' shares of a statistic; the own one is drawn once, and kept under its pads."""
        symmetric, place = isinstance(statistic, OuterProducts), f"share of {stage}"
        entry = self.journal.read(place, event)
        if entry is None:
            exchange.begin()
            share = noise_share(
                reduce(statistic, records),
                stage=stage, ledger=self.ledger, noise=self.noise, part=exchange.part, symmetric=symmetric,
            )  # fmt: skip
            entry = {"words": exchange.masked(share, statistic, stage, event)}
            self.journal.write(place, event, entry)
            raise exchange.pending(entry["words"], statistic, stage, event)
        total = exchange.total(entry["words"], statistic, stage, event)
        return sum_of_shares(
            sum_of_none(statistic, records),
            total, stage=stage, ledger=self.ledger, noise_factor=exchange.noise_factor, symmetric=symmetric,
        )  # fmt: skip

    def once(self, stage: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the values that all events of a stage released: kept ones, or made now by a function that charges."""
        self._refuse_exchange(stage)
        return self._journal_entry(stage, None, self.plan[stage].count, make)

    def descent(self, stage: str) -> Progress:
        """Return the progress of a descent that is one stage.

        Raises:
            LedgerError: steps are kept, but not all that was released before them.
        """
        self._refuse_exchange(stage)
        if self.journal.progress(stage)[0]:
            self._refuse_new_draws(stage)
        return self.journal.descent(stage)

    def _refuse_exchange(self, stage: str) -> None:
        if self.exchange is not None:
            raise LedgerError(f"Expected stage {stage!r} of several holders to be a sum over records, got none.")

    def _journal_entry(self, stage: str, event: int | None, count: int, make: Callable[[], Arrays]) -> Arrays:
        arrays = self.journal.read(stage, event)
        if arrays is None:
            new = make()
            self.journal.write(stage, event, new)
            return new
        self._refuse_new_draws(stage)
        self.ledger.replay(stage, count)
        self._replayed += count
        return arrays

    def _refuse_new_draws(self, stage: str) -> None:
        """Refuse what is kept where something before it was drawn anew: that would be its second release."""
        if sum(count for _, count in self.ledger.charged) > self._replayed:
            raise LedgerError(
                f"Expected all that was released before stage {stage!r} in the checkpoint, too. A method that keeps "
                "checkpoints (`resumable = True`) measures through `fit.measure` alone."
            )


def arrays_of(noisy: Noisy) -> Arrays:
    """Return a released statistic as a journal holds it."""
    arrays = {
        "value": noisy.value,
        "noise_std": np.array([noisy.noise_std]),
        "symmetric": np.array([noisy.symmetric], dtype=np.int64),
    }
    if noisy.origin is not None:
        entries = {name: getattr(noisy.origin, name) for name in _ORIGIN}
        arrays |= {name: np.asarray(part) for name, part in entries.items() if part is not None}
    return arrays


def noisy_of(arrays: Mapping[str, np.ndarray], stage: str) -> Noisy:
    """Return a released statistic of a stage that a journal holds."""
    origin = None
    if "norm_bound" in arrays:
        grids = [simplest(arrays[name]) if name in arrays else None for name in _ORIGIN[1:]]
        origin = Origin(stage, float(arrays["norm_bound"]), *grids)
    return Noisy(arrays["value"], float(arrays["noise_std"][0]), bool(arrays["symmetric"][0]), origin)
