"""Sums over 2^31 records (2^28 weighted ones) fit into 64 bits: as many copies of one record as there are of all."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from harness.cases import STATISTICS
from sfumato.estimators.records import MOST_WEIGHED_ROWS, Weighed
from sfumato.mechanisms.contributions import LINEAR_BITS, product_bits
from sfumato.methods.mixtures.kmeans import ClusterSums
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


def with_bits_for(statistic, n: int, weight_bits: int = 0):
    """Return the statistic as a method makes it for n records."""
    if isinstance(statistic, Weighed):
        return dataclasses.replace(statistic, statistic=with_bits_for(statistic.statistic, n, statistic.bits))
    bits = getattr(statistic, "bits", None)
    if bits is None:
        return statistic
    products = product_bits(n, weight_bits)
    if weight_bits and isinstance(statistic, ClusterSums):
        products = min(LINEAR_BITS, 2 * products)
    return dataclasses.replace(statistic, bits=MomentBits.of(n) if isinstance(bits, MomentBits) else products)


@pytest.mark.parametrize("name", sorted(CASES))
def test_as_many_copies_of_a_record_fit(name: str) -> None:
    case = CASES[name]
    n = MOST_WEIGHED_ROWS if isinstance(case.statistic, Weighed) else N
    statistic = with_bits_for(case.statistic, n)
    for record in case.pool[:: max(1, len(case.pool) // 12)]:
        once, some = (partial_sum(statistic, Copies(record, n)) for n in (1, AT_ONCE))
        assert np.array_equal(some, once * AT_ONCE), "copies add the same, however many come at once"
        many = once * np.int64(n)  # modulo 2^64, as sums of pieces are
        exact, one = (finish(statistic, sums, Copies(record, 1)).whole_in_mechanism() for sums in (many, once))
        assert all(int(a) == int(b) * n for a, b in zip(exact.reshape(-1), one.reshape(-1), strict=True))
