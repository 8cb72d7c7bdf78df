"""Counts of values nobody listed beforehand: published with noise where they are large, never where they are rare.

Proof: docs/proofs/discovery.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from sfumato.errors import ConfigError
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy, charge_event, grid_step, on_grid
from sfumato.privacy.ledger import Ledger
from sfumato.records.engine import Sealed

_LATER = 1 << 16  # numbers that wait to be counted
_UPWARD = 1 + 2.0**-48  # what rounding may take from the sum, and the noise may be above its scale, is less


class NumberCounts:
    """How many records hold each number, in 16 bytes a number that differs."""

    __slots__ = ("_counts", "_later", "_numbers")

    def __init__(self) -> None:
        self._numbers, self._counts = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._later: list[np.ndarray] = []

    def update(self, numbers: np.ndarray) -> None:
        """Count some more, shape (n,), none of them NaN."""
        self._later.append(numbers + 0.0)  # of -0.0 and 0.0 one number
        if sum(map(len, self._later)) > max(self._numbers.size, _LATER):
            self._add()

    def _add(self) -> None:
        later, counts = np.unique(np.concatenate([np.zeros(0), *self._later]), return_counts=True)
        self._numbers, places = np.unique(np.concatenate([self._numbers, later]), return_inverse=True)
        self._counts = np.bincount(places, np.concatenate([self._counts, counts])).astype(np.int64)
        self._later.clear()

    def __iter__(self) -> Iterator[str]:
        self._add()
        return map(repr, self._numbers.tolist())

    def values(self) -> np.ndarray:
        """The counts, in the order of the numbers, shape (numbers,)."""
        self._add()
        return self._counts


@dataclass(slots=True, repr=False)
class Tally:
    """Counts of some records: of cells that are listed beforehand, and of words that are not.

    Attributes:
        listed: counts of the listed cells of all columns, side by side.
        words: per column with words, how many records hold each.
        unit_rows: most rows of a unit, public.
        numbers: the same per column of numbers that are counted one by one.
    """

    listed: np.ndarray
    words: dict[str, Counter[str]]
    unit_rows: int = 1
    numbers: dict[str, NumberCounts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoisyTally:
    """A released tally.

    Attributes:
        listed: noisy counts of all listed cells.
        words: per column, the words, and numbers, whose noisy count reached the threshold, with that count.
        threshold: what a word's noisy count had to reach.
    """

    listed: Noisy
    words: Mapping[str, Mapping[str, float]]
    threshold: float


def threshold_of(extra_delta: float, *, noise_std: float, columns: int, unit_rows: int) -> float:
    """Return the least noisy count at which a word may be published.

        τ = m + s·Φ⁻¹(1 − p/(c m)) + g/2

    One unit has at most m rows, so brings at most m words of its own to each of c columns, each of count at most m; of
    a column of numbers that are counted one by one, beside which words are, too: a row has one or the other.
    A noisy count is rounded to the grid g, so it reaches τ only if the noise before rounding reaches τ − m − g/2: the
    probability that any of them does is at most c·m·Φ(−(τ − m − g/2)/s) = p.

    Args:
        extra_delta: p, in (0, 1).
        noise_std: s, standard deviation of the noise of a count; its grid g is at most 2^-24 of it.
        columns: c, columns with words; at least 1.
        unit_rows: m, most rows of a unit.
    """
    _, grid = grid_step(1.0, noise_std)
    quantile = -float(ndtri(extra_delta / (columns * unit_rows)))
    return unit_rows + (noise_std * quantile + float(grid) / 2) * _UPWARD


def noisy_words(exact: Sealed[Tally], *, stage: str, ledger: Ledger, noise: NoiseSource) -> NoisyTally:
    """Release a tally: every listed cell with noise, and the words whose noisy count reaches a threshold.

    Statistic: counts; one record adds a single 1 to each of c columns, to a listed cell or to a word, or to both.

    Privacy: one `Gaussian(σ)` event of the stage, and its `extra_delta` p as an additive part of δ. ℓ2 sensitivity √c
        under add/remove and √(2c) under replace-one, a column of both twice among c, times the rows of a unit; words
        that only the unit at hand has are shown with probability at most p. Proof: docs/proofs/discovery.md.

    Args:
        exact: the tally, opaque.
        stage: name of the stage to charge; it has an `extra_delta`.
        ledger: charged before the noise is drawn.
        noise: the source of randomness.

    Raises:
        ConfigError: there are columns with words, and the stage has no additive part of δ. Nothing was charged.
        LedgerError: the plan has another stage next. Nothing was released.
    Reference: Korolova, Kenthapadi, Mishra and Ntoulas 2009 (thresholded counts); Gaussian form as in Google's
        differential-privacy library, "Delta for thresholding" (2020).
    """
    tally = exact.whole_in_mechanism()
    lists = [*tally.words.items(), *tally.numbers.items()]
    unlisted = dict(lists)  # of a column of both, a record has a new word or a new number
    extra_delta = ledger.plan[stage].extra_delta
    if unlisted and extra_delta <= 0:
        raise ConfigError(f"Expected an additive part of delta for stage {stage!r}, got none.")
    event = charge_event(exact, stage, ledger, extra_delta=extra_delta)
    noise_std = 0.0 if noise.silent else event.noise_std
    listed = Noisy(on_grid(tally.listed.astype(np.int64), 1.0, noise_std, noise), noise_std)
    threshold = 0.0
    shown: dict[str, dict[str, float]] = {}
    if unlisted:
        threshold = threshold_of(
            event.extra_delta, noise_std=event.noise_std, columns=len(unlisted), unit_rows=tally.unit_rows
        )
    for name, counts in lists:
        values = on_grid(np.array(list(counts.values()), dtype=np.int64), 1.0, noise_std, noise)
        large = [(w, float(v)) for w, v in zip(counts, values, strict=True) if v >= threshold]
        shown[name] = shown.get(name, {}) | dict(sorted(large))  # in an order that is not that of the records
    return NoisyTally(listed, shown, threshold)
