"""The order of parts' rows: shares are met, and the first rows do not depend on how many follow."""

import numpy as np
import pytest

from sfumato.release.blocks import part_sequence


@pytest.mark.parametrize("rows", [(1, 1), (250, 350), (1, 1_000_000), (7, 11, 13, 2, 900)])
def test_shares_are_met_at_every_row(rows):
    order = np.concatenate(list(part_sequence(rows, 3_000, block=64)))
    assert order.size == 3_000
    shares = np.array(rows) / sum(rows)
    counts = np.cumsum(order[:, None] == np.arange(len(rows)), axis=0)
    assert np.abs(counts - np.arange(1, 3_001)[:, None] * shares).max() <= len(rows) / 2 + 1


def test_the_order_depends_neither_on_n_nor_on_blocks():
    rows = (7, 11, 13, 2, 900)
    order = np.concatenate(list(part_sequence(rows, 3_000, block=64)))
    assert np.array_equal(order[:1_000], np.concatenate(list(part_sequence(rows, 1_000))))
