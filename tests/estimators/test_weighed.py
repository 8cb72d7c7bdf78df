"""Sums of records that count by weights: each adds its part exactly, and no sum leaves weights out."""

import numpy as np
import pytest

from harness.cases import STATISTICS
from harness.privacy import FakeRecords, contribution, join
from sfumato.errors import ConfigError
from sfumato.estimators.records import WEIGHT, Weighed
from sfumato.plugins import InParts, reduce

WEIGHED = [name for name, case in STATISTICS.items() if isinstance(case.statistic, Weighed)]


@pytest.mark.parametrize("name", WEIGHED)
def test_a_weighed_record_adds_its_part_exactly(name):
    """To the last bit: k times its whole numbers, whatever bits k has, and whoever else is there."""
    statistic, pool = STATISTICS[name].statistic, STATISTICS[name].pool[:40]
    for record in pool:
        own = statistic.statistic.zero()
        statistic.statistic.add(own, record)
        for part in (0.0, 2.0**-12, 0.3, 0.5, 4095 / 4096, 1.0):
            found = statistic.zero()
            statistic.add(found, {**record, WEIGHT: np.array([part])})
            np.testing.assert_array_equal(found, np.rint(part * 4096) * own)
    total = sum(contribution(statistic, record) for record in pool)
    np.testing.assert_allclose(
        reduce(statistic, FakeRecords([join(pool)])).open_in_mechanism().ravel(), total, atol=1e-9
    )


def test_weighed_sums_of_a_piece_may_pass_what_floats_hold():
    statistic, n = Weighed(STATISTICS["pooled squares"].statistic), 1 << 12
    rows = {"z": np.tile([1.0, 0.0, 0.0], (n, 1)), WEIGHT: np.ones(n)}
    whole = reduce(statistic, FakeRecords([rows])).whole_in_mechanism()
    one = contribution(statistic, {"z": np.array([[1.0, 0.0, 0.0]]), WEIGHT: np.ones(1)})[0]
    assert int(whole[0, 0]) == round(one / statistic.step) * n > 2**53


class WeighingRecords(FakeRecords):
    """Records that count by weights."""

    def weighed(self, statistic):
        return Weighed(statistic)


def test_no_reduce_of_records_with_weights_leaves_these_out():
    case = STATISTICS["weighed feature sums"]
    chunks = [join(case.pool[i : i + 20]) for i in range(0, len(case.pool), 20)]
    expected = reduce(case.statistic, FakeRecords(chunks))
    records = WeighingRecords(chunks)
    for found in (reduce(case.statistic.statistic, records), reduce(case.statistic.statistic, InParts(records, 4))):
        np.testing.assert_array_equal(found.open_in_mechanism(), expected.open_in_mechanism())
        assert (found.norm_bound, found.replace_distance) == (expected.norm_bound, expected.replace_distance)
    plain = reduce(case.statistic.statistic, InParts(FakeRecords(chunks), 4)).open_in_mechanism()
    assert not np.array_equal(plain, expected.open_in_mechanism())


def test_a_sum_of_floats_has_no_weighted_form():
    with pytest.raises(ConfigError, match="whole numbers beside weights"):
        Weighed(STATISTICS["norms and clipped sum, 0.5"].statistic)
