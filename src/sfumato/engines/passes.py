"""The driver's side of a pass: answers are taken in any order, and make a sum only if every piece came once.

Whatever is wrong ends the fit before the mechanism of the pass charges its stage.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import final

import numpy as np

from sfumato.engines.pads import new_key, unmasked
from sfumato.engines.work import Answer, Outcome, shared_part
from sfumato.errors import DataError, EngineError
from sfumato.records.engine import SplitRecords, Statistic

_REASONS: dict[Outcome, str] = {
    Outcome.NO_MEMORY: "a worker had too little memory. Take fewer workers, or smaller pieces",
    Outcome.OTHER_VERSION: "a worker has another version of Sfumato. Install the driver's everywhere",
    Outcome.FAILED: (
        "a worker failed; it does not say more, because that may hold a record. Fit a few rows of your own making "
        "without workers, to see the cause"
    ),
}


@final
class Pass:
    """One pass of a statistic over the records, in pieces.

    Args:
        statistic: what is summed.
        width: as of `InParts`.
        label: what messages call the records.
    """

    def __init__(self, statistic: Statistic, width: int | None, label: str) -> None:
        self._key = new_key()
        self._shape = getattr(statistic, "compact", statistic).zero().shape
        self._label = label
        self._total: np.ndarray | None = None
        self._pieces: list[int] = []
        self._machine: bytes | None = None
        self.shared = shared_part(self._key, statistic, width)

    @classmethod
    def of(cls, statistic: Statistic, records: SplitRecords, width: int | None) -> Pass | None:
        """Begin a pass; None if its statistic cannot be sent, such as one of another package that holds a function."""
        try:
            return cls(statistic, width, records.source.label)
        except (pickle.PicklingError, AttributeError, TypeError):
            return None

    def take(self, packed: bytes) -> None:
        """Add a worker's answer.

        Raises:
            DataError: the worker could not read its piece.
            EngineError: it failed otherwise, or is of another kind than the workers before it.
        """
        answer = Answer.of(packed)
        if answer.outcome == Outcome.UNREADABLE:
            raise DataError(
                f"Cannot read {self._label} on a worker: it is damaged, it changed while it was read, or the worker "
                "cannot reach it."
            )
        if answer.outcome != Outcome.DONE:
            raise EngineError(f"Cannot sum over {self._label}: {_REASONS[answer.outcome]}.")
        if self._machine not in (None, answer.machine):
            raise EngineError(
                "Expected workers of one kind, got different processors or versions of Python, numpy, scipy or its "
                "linear algebra: which worker reads a record would change what it adds. Take workers of one kind."
            )
        self._machine = answer.machine
        self._pieces.append(answer.piece)
        if self._total is None:
            self._total = np.zeros(answer.words.size, dtype=np.uint64)
        if self._total.size != answer.words.size:
            raise self._torn()
        self._total += answer.words

    def total(self, expected: Iterable[int]) -> np.ndarray:
        """Return the sum, if the pieces that came are the expected ones, each once.

        Args:
            expected: numbers of the pieces that were handed out.

        Raises:
            EngineError: they are not, or one is of another pass.
        """
        expected = sorted(expected)
        if not expected:
            return np.zeros(self._shape, dtype=np.int64)
        whole = None
        if self._total is not None and sorted(self._pieces) == expected:
            whole = unmasked(self._total, self._key, expected)
        if whole is None or whole.size != np.prod(self._shape, dtype=np.int64):
            raise self._torn()
        return whole.reshape(self._shape)

    def _torn(self) -> EngineError:
        return EngineError(
            f"Expected every piece of {self._label} once, got one lost, doubled, or of another pass. Nothing was drawn "
            "from this pass. Fit again."
        )
