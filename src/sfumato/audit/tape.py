"""The releases of a shadow fit, draw by draw: a source of randomness that sees what its noise is added to.

Every mechanism adds to the noise it was given, in place, so noise that notices `+=` notices the exact statistic and
what is released of it; the code under audit runs as it is. One source records a fit with noise of its own. The other
plays the fit again: it answers each sum with what was released then, so that everything that follows from releases is
what it was, to the bit, and it puts the canary into every sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import sparse

from sfumato.errors import ConfigError
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.noise import NoiseSource, Step

_NORMALS_SEED = 0


@final
class Enough(BaseException):
    """Ends a shadow fit when its last statistic has left: what follows is a function of that. No error, so no one's."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoiseDraw:
    """One draw of noise, and what became of it.

    Attributes:
        stage: the stage that was charged last.
        first: the number of its first event in that stage.
        count: how many events, one per row; the whole draw is of one event if it is 1.
        exact: what the noise was added to, in steps.
        released: the sum, in steps.
        unit: a step in standard deviations of the noise that was asked for; broadcasts to the others.
    """

    stage: str
    first: int
    count: int
    exact: np.ndarray
    released: np.ndarray
    unit: Step


class _Meeting(np.ndarray):
    """Noise that reports what it is added to, and becomes what is to be released."""

    met: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def __iadd__(self, exact: Any) -> np.ndarray:  # noqa: ANN401 - the result is a plain array
        """Report the exact statistic, and return what is released of it."""
        noise = self.view(np.ndarray)
        return noise + exact if self.met is None else self.met(noise, exact)


@final
class Tape:
    """A source of randomness that records; it plays again what it is given.

    Args:
        noise: where noise and samples come from; None to play `given` again, with every record in every sample.
        given: what the draws became in an earlier fit.
        most: after so many draws the fit is ended with `Enough`; None lets it run to its end.

    Attributes:
        draws: what has left so far.
        charges: each charge so far: its stage, and the number of its first event in that stage.
    """

    private = False
    silent = False

    def __init__(
        self, noise: NoiseSource | None, given: list[NoiseDraw] | None = None, most: int | None = None
    ) -> None:
        self._noise, self._given, self._most = noise, given, most
        self.draws: list[NoiseDraw] = []
        self._stage, self._first, self._next, self._end, self._rows = "", 0, 0, 0, 0
        self.charges: list[tuple[str, int]] = []

    def charged(self, stage: str, events: int) -> None:
        """Note a charge of a stage, and how many of its events have been charged with it."""
        self._first = self._next = self._end if stage == self._stage else 0
        self._stage, self._end, self._rows = stage, events, 0
        self.charges.append((stage, self._first))

    def gaussian(self, shape: int | tuple[int, ...], noise_std: float) -> np.ndarray:
        """Return noise that notices what it is added to."""
        noise = np.zeros(shape) if self._noise is None else self._noise.gaussian(shape, noise_std)
        return self._meeting(noise, 1 / noise_std)

    def rounded_gaussian(self, shape: int | tuple[int, ...], noise_std: float, step: Step) -> np.ndarray:
        """Return rounded noise that notices what it is added to."""
        if self._noise is None:
            noise = np.zeros(shape, dtype=np.int64)
        else:
            noise = self._noise.rounded_gaussian(shape, noise_std, step)
        return self._meeting(noise, np.asarray(step) / noise_std)

    def normals(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Return public numbers, others at every step: see `Attacker`."""
        return public_stream(_NORMALS_SEED, len(self.charges)).standard_normal(shape)

    def bernoulli(self, n: int, probability: float) -> np.ndarray:
        """Return a sample, or everybody."""
        return np.ones(n, dtype=bool) if self._noise is None else self._noise.bernoulli(n, probability)

    def poisson_samples(self, n: int, probability: float, size: int) -> sparse.csr_array:
        """Return samples, or everybody in each; the rows of the next draws are events of their own."""
        self._first, self._rows = self._next, size
        self._next += size
        if self._noise is None:
            return sparse.csr_array(np.ones((size, n)))
        return self._noise.poisson_samples(n, probability, size)

    def subsets(self, n: int, members: int, size: int) -> sparse.csr_array:
        """Refuse: who is in a subset depends on who is in the others."""
        raise ConfigError(
            "Expected a method that reads all records or Poisson samples of them to audit, got one of subsets or fixed "
            "degrees. Audit another method."
        )

    def _meeting(self, noise: np.ndarray, unit: Step) -> np.ndarray:
        meeting = noise.view(_Meeting)
        meeting.met = lambda numbers, exact: self._met(numbers, exact, unit)
        return meeting

    def _met(self, numbers: np.ndarray, exact: np.ndarray, unit: Step) -> np.ndarray:
        exact = np.array(exact)  # a copy: the sum may be changed in place
        released = numbers + exact if self._given is None else self._given[len(self.draws)].released
        if released.shape != numbers.shape:
            raise ConfigError("Expected draws of the same shapes when a fit is played again, got others.")
        self.draws.append(NoiseDraw(self._stage, self._first, max(self._rows, 1), exact, released, unit))
        if len(self.draws) == self._most:
            raise Enough
        return released.copy()


SUSPICIONS = ((1.0, False), (0.5, False), (0.25, False), (1.0, True))
"""Suspicions: a method may draw noise of f times what was asked for, or put all records into all samples."""


def log_ratios(
    released: list[NoiseDraw], present: list[NoiseDraw], absent: list[NoiseDraw] | None, rates: dict[str, float]
) -> np.ndarray:
    """Return log-likelihood ratios of what was released, with the canary over without it.

        Σ_t s_t/f²  over events of all records,    Σ_t log(1 − q + q e^{s_t/f²})  over Poisson samples,
        s_t = ⟨c_t/σ, (x_t − b_t − c_t/2)/σ⟩

    x_t is what was released, b_t the exact statistic without the canary, c_t what the canary adds if it is in the
    sample: functions of earlier releases, as a replay finds them. σ is what the mechanism asked for. With samples there
    is one ratio for each of `SUSPICIONS`: with f, or with 1 in place of q. Without, one is a function of any other.

    Args:
        released: of the fit that is judged.
        present: of a replay with the canary, in every sample.
        absent: of a replay without it; None if the table is empty but for the canary.
        rates: q of each stage that samples.
    """
    events: dict[str, dict[int, np.ndarray]] = {}
    for i, (left, here) in enumerate(zip(released, present, strict=True)):
        base = np.zeros_like(here.exact) if absent is None else absent[i].exact
        shift = (here.exact - base) * here.unit
        terms = shift * ((left.released - base) * here.unit - shift / 2)
        by_event = events.setdefault(left.stage, {})
        by_event[left.first] = by_event.get(left.first, 0.0) + terms.reshape(left.count, -1).sum(axis=1)
    suspicions = SUSPICIONS if rates else SUSPICIONS[:1]
    total = np.zeros(len(suspicions))
    for stage, by_event in events.items():
        each = np.concatenate(list(by_event.values()))
        for i, (factor, always) in enumerate(suspicions):
            q = 1.0 if always else rates.get(stage, 1.0)
            terms = each / factor**2
            total[i] += np.sum(terms if q == 1 else np.logaddexp(math.log1p(-q), math.log(q) + terms))
    return total
