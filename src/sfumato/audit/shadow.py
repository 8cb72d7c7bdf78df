"""Shadow fits: a method run on planted records with or without one more, and what the strongest attacker makes of it.

The attacker knows the method, its settings, the planted record, and every noisy statistic that left the fit. What the
record adds to a stage may depend on what earlier stages released, so the stages are played again with their own
results: the noise of the earlier ones is chosen so that they release the same, and that of the others is zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
from scipy import sparse

from sfumato.data.engine import Rows
from sfumato.data.kinds import Image, LevelKind, n_levels
from sfumato.data.private import PrivateData
from sfumato.data.schema import Schema
from sfumato.errors import ConfigError
from sfumato.mechanisms.noise import NoiseSource, Step
from sfumato.mechanisms.queries import Noisy
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.synthesizers.base import Fit, Synthesizer
from sfumato.synthesizers.journal import Journal

_MOST_ROWS = 1_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """Coded records as a fit reads them. No record of anybody."""

    schema: Schema
    rows: Rows
    max_rows_per_unit: int = 1

    def coded(self) -> Iterator[Rows]:
        """Yield the rows as one chunk."""
        yield self.rows


@final
class ForcedNoise:
    """Gives back the numbers it was given, then zeros: for replays alone. Nothing of it is ever released."""

    private = False
    silent = False

    def __init__(self, numbers: np.ndarray) -> None:
        self._numbers, self._used = numbers, 0

    def gaussian(self, shape: int | tuple[int, ...], noise_std: float) -> np.ndarray:
        """Return the next numbers, whatever the standard deviation."""
        found = np.zeros(shape)
        flat = found.reshape(-1)
        given = self._numbers[self._used : self._used + flat.size]
        flat[: given.size] = given
        self._used += flat.size
        return found

    def rounded_gaussian(self, shape: int | tuple[int, ...], noise_std: float, step: Step) -> np.ndarray:
        """Return the next numbers, in steps."""
        return np.rint(self.gaussian(shape, noise_std) / step).astype(np.int64)

    def normals(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Refuse: a randomised contribution cannot be replayed."""
        raise _sampled()

    def bernoulli(self, n: int, probability: float) -> np.ndarray:
        """Refuse, as `normals`."""
        raise _sampled()

    def poisson_samples(self, n: int, probability: float, size: int) -> sparse.csr_array:
        """Refuse, as `normals`."""
        raise _sampled()

    def subsets(self, n: int, members: int, size: int) -> sparse.csr_array:
        """Refuse, as `normals`."""
        raise _sampled()


def _sampled() -> ConfigError:
    return ConfigError("Expected a method that reads every record in every stage, got one that samples records.")


@final
@dataclass(frozen=True, slots=True)
class Shadow:
    """A method under a plan, on planted records of a schema.

    Attributes:
        synthesizer: the method.
        plan: its calibrated plan.
        schema: the columns.
        target: as of a fit.
        n_public: as of a fit.
    """

    synthesizer: Synthesizer
    plan: Plan
    schema: Schema
    target: str | None
    n_public: int

    def measure(self, rows: Rows, noise: NoiseSource) -> list[Noisy]:
        """Run the method, and return the noisy statistics that left it."""
        records = cast("PrivateData", Planted(self.schema, rows))
        ledger = Ledger(self.plan, None)  # the plan was calibrated to the budget once
        fitted = self.synthesizer.run(Fit(records, ledger, noise, self.n_public, self.target, Journal(None, {})))
        ledger.close()
        return [noisy for _, noisy in fitted.measurements]

    def first(self, rows: Rows) -> np.ndarray:
        """The first stage's exact statistic of planted records."""
        return self.measure(rows, ForcedNoise(np.zeros(0)))[0].value


@final
@dataclass(frozen=True, slots=True, eq=False)
class Attacker:
    """Tells two neighbouring tables of planted records apart by what a fit released.

    Attributes:
        shadow: the method.
        present: the table with the canary.
        absent: the same without it.
        first: the first stage's exact statistics of the two.
    """

    shadow: Shadow
    present: Rows
    absent: Rows
    first: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, shadow: Shadow, canary: Rows, other: Rows) -> Attacker:
        """The attacker of a canary among as many rows like `other` as are public, at most 1,000."""
        n = min(shadow.n_public, _MOST_ROWS)
        absent = {name: np.repeat(column, n, axis=0) for name, column in other.items()}
        present = {name: np.concatenate([absent[name], column]) for name, column in canary.items()}
        return cls(shadow, present, absent, (shadow.first(present), shadow.first(absent)))

    def score(self, released: Sequence[Noisy]) -> float:
        """The log-likelihood ratio of what was released, with the canary over without it."""
        total = 0.0
        forced = [np.zeros(0), np.zeros(0)]
        for stage, noisy in enumerate(released):
            exact = list(self.first) if stage == 0 else self._replayed(forced, stage)
            if exact[0].shape == exact[1].shape == noisy.value.shape:
                difference = exact[0] - exact[1]
                middle = (exact[0] + exact[1]) / 2
                total += float(np.sum(difference * (noisy.value - middle))) / noisy.noise_std**2
            else:  # what comes later cannot be played again
                break
            forced = [np.concatenate([f, _drawn(noisy, e)]) for f, e in zip(forced, exact, strict=True)]
        return total

    def _replayed(self, forced: Sequence[np.ndarray], stage: int) -> list[np.ndarray]:
        tables = (self.present, self.absent)
        return [
            self.shadow.measure(rows, ForcedNoise(numbers))[stage].value
            for rows, numbers in zip(tables, forced, strict=True)
        ]


def _drawn(noisy: Noisy, exact: np.ndarray) -> np.ndarray:
    """Return the noise in the order of its draws: of a symmetric matrix the diagonal, then what is right of it."""
    found = noisy.value - exact
    if not noisy.symmetric:
        return found.ravel()
    upper = np.triu(np.ones(found.shape[-2:], dtype=bool), 1)
    matrices = found.reshape(-1, *found.shape[-2:])
    return np.concatenate([part for matrix in matrices for part in (np.diagonal(matrix), matrix[upper])])


def corners(schema: Schema) -> list[Rows]:
    """Records at two opposite corners of the domain: every column at its first value, or at its last."""
    picks = [[0.0] * len(schema.released), [1.0] * len(schema.released)]
    return [
        {name: _cell(schema.columns[name], side) for name, side in zip(schema.released, corner, strict=True)}
        for corner in picks
    ]


def _cell(kind: Any, corner: float) -> np.ndarray:  # noqa: ANN401 - any kind
    if isinstance(kind, LevelKind):
        return np.array([round(corner * (n_levels(kind) - 1))], dtype=np.int32)
    if isinstance(kind, Image):
        return np.full((1, *kind.shape), kind.lower + corner * (kind.upper - kind.lower), dtype=kind.dtype)
    if hasattr(kind, "resolution") or hasattr(kind, "lower"):
        return np.array([float(corner)])
    raise ConfigError("Expected columns of labels, numbers, dates or images to audit, got sets of items.")
