"""Calls to a cluster: whatever it raises becomes one sentence, for its own words may hold what a worker printed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeVar

import numpy as np

from sfumato.engines.passes import Pass
from sfumato.errors import ConfigError, EngineError, SfumatoError
from sfumato.io.chunks import Source
from sfumato.records.engine import SplitRecords, Statistic

T = TypeVar("T")


def called(call: Callable[[], T], message: str) -> T:
    """Return the result of a call.

    Raises:
        EngineError: with the message, if the cluster fails; nothing of the failure is carried along.
    """
    failure = EngineError(message)
    try:
        return call()
    except SfumatoError:
        raise
    except Exception:  # noqa: BLE001
        pass
    raise failure


class Cluster(ABC):
    """Workers of a cluster, which read files that they all see, or hold the parts of a data frame of their own."""

    frames: ClassVar[type[Source]]
    silent: ClassVar[str]  # what is said where nothing answers

    def check(self, source: Source) -> None:
        """Refuse data that the workers cannot read, and a cluster that does not run.

        Raises:
            ConfigError: says what they can read.
            EngineError: nothing answers.
        """
        if not self._reads(source):
            raise ConfigError(
                f"Expected data that the workers can read themselves, got {source.label}. Pass a path or URL of "
                "Parquet, CSV, JSON lines or Arrow files that all of them see, or a data frame of the cluster; or take "
                "processes of this machine: workers=... (--workers)."
            )
        called(self._ping, self.silent)

    def summed(self, statistic: Statistic, records: SplitRecords, width: int | None) -> np.ndarray | None:
        """Return the sum over the records, whole numbers modulo 2^64; None if they are summed by the caller."""
        summing = Pass.of(statistic, records, width) if self._reads(records.source) else None
        if summing is None:
            return None
        answers, n = self._answers(summing, records)
        for packed in answers:
            summing.take(packed)
        return summing.total(range(n))

    def _reads(self, source: Source) -> bool:
        return source.in_files or isinstance(source, self.frames)

    @abstractmethod
    def _ping(self) -> object:
        """Do something on the cluster."""

    @abstractmethod
    def _answers(self, summing: Pass, records: SplitRecords) -> tuple[Iterable[bytes], int]:
        """Return the answers to a pass, and how many there are to be."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
