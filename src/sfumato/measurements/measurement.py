"""A measurement: a query, its noisy value, the noise, and the stage that paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.measurements.queries import MomentQuery, Query, query_fault
from sfumato.privacy.origin import Origin

LARGEST = 1e100
"""Of noise and values: their squares, and sums of these, are numbers."""


def are_too_large(values: np.ndarray) -> bool:
    """Whether one of some numbers is above `LARGEST` or below its negative, infinite or missing."""
    if values.dtype.kind != "f":
        return False
    most = values.dtype.type(min(LARGEST, float(np.finfo(values.dtype).max)))
    return not bool((np.abs(values) <= most).all())


@dataclass(frozen=True, slots=True)
class Measurement:
    """One noisy statistic.

    Attributes:
        name: what was measured.
        value: noisy value.
        noise_std: standard deviation of the Gaussian noise of each entry, in the value's units.
        symmetric: the last two axes are a symmetric matrix; off its diagonal the noise is noise_std/√2.
        origin: the stage of the certificate that paid for it, with its public bound and grid; None of what is no direct
            output of one event of all records.
        query: the sum over records that it is a noisy value of; None of what is no function of columns' cells.
    """

    name: str
    value: np.ndarray
    noise_std: float
    symmetric: bool = False
    origin: Origin | None = None
    query: Query | None = None

    def fault(self, kinds: Mapping[str, object], weight: str = "") -> str | None:
        """The fault of its query for its value, for columns of these kinds or their weight; None without."""
        if self.query is None:
            return None
        if fault := query_fault(self.query, kinds, weight):
            return fault
        if self.value.shape != self.query.shape:
            return f"has a value of shape {self.value.shape} where its query has {self.query.shape}"
        if isinstance(self.query, MomentQuery) != self.symmetric:
            return "is symmetric where its query is not, or its query is where it is not"
        return None
