"""Sums over 2^31 records fit into 64 bits, by repetition: as many copies of one record as there are of all."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from harness.cases import STATISTICS
from sfumato.mechanisms.contributions import product_bits
from sfumato.methods.tables.feature_moments import MomentBits
from sfumato.records.engine import finish, partial_sum

N = 2**31
AT_ONCE = 512
CASES = {name: case for name, case in STATISTICS.items() if getattr(case.statistic, "step", None) is not None}


class Copies:
    """One record, so many times."""

    max_rows_per_unit = 1

    def __init__(self, record, n: int) -> None:
        self._rows = {name: column[np.zeros(n, dtype=np.intp)] for name, column in record.items()}

    def coded(self):
        yield self._rows


def with_bits_for(statistic, n: int):
    """Return the statistic as a method makes it for n records."""
    bits = getattr(statistic, "bits", None)
    if bits is None:
        return statistic
    return dataclasses.replace(statistic, bits=MomentBits.of(n) if isinstance(bits, MomentBits) else product_bits(n))


@pytest.mark.parametrize("name", sorted(CASES))
def test_as_many_copies_of_a_record_fit(name: str) -> None:
    case = CASES[name]
    statistic = with_bits_for(case.statistic, N)
    for record in case.pool[:: max(1, len(case.pool) // 12)]:
        once, some = (partial_sum(statistic, Copies(record, n)) for n in (1, AT_ONCE))
        assert np.array_equal(some, once * AT_ONCE), "copies add the same, however many come at once"
        many = once * np.int64(N)  # modulo 2^64, as sums of pieces are
        exact, one = (finish(statistic, sums, Copies(record, 1)).whole_in_mechanism() for sums in (many, once))
        assert all(int(a) == int(b) * N for a, b in zip(exact.reshape(-1), one.reshape(-1), strict=True))
