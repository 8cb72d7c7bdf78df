"""Pads: sums come out as they are, and a piece that came twice, not at all, or from elsewhere is seen."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engines.work import TAG_WORDS, masked, new_key, unmasked

RNG = np.random.default_rng(1)
PARTS = [RNG.integers(-(2**62), 2**62, (3, 5)) for _ in range(4)]


def total_of(key: bytes, numbers: list[int]) -> np.ndarray:
    return sum((masked(PARTS[i], key, i) for i in numbers), np.zeros(15 + TAG_WORDS, np.uint64))


def test_sum_is_that_of_the_parts_modulo_2_64():
    key = new_key()
    found = unmasked(total_of(key, [2, 0, 3, 1]), key, [0, 1, 2, 3])
    assert found is not None
    assert np.array_equal(found.reshape(3, 5), np.sum(PARTS, axis=0, dtype=np.int64))


@pytest.mark.parametrize("numbers", [[0, 1, 2], [0, 1, 2, 3, 3], [0, 1, 2, 2], []])
def test_lost_and_doubled_pieces_are_seen(numbers: list[int]):
    key = new_key()
    assert unmasked(total_of(key, numbers), key, [0, 1, 2, 3]) is None


def test_piece_of_another_pass_is_seen():
    key, other = new_key(), new_key()
    total = total_of(key, [0, 1, 2]) + masked(PARTS[3], other, 3)
    assert unmasked(total, key, [0, 1, 2, 3]) is None


def test_no_two_pads_are_alike_and_none_is_zero():
    key = new_key()
    nothing = np.zeros(1000, np.int64)
    pads = [masked(nothing, k, i) for k in (key, new_key()) for i in (0, 1, 2**40)]
    words = np.concatenate(pads)
    assert len(np.unique(words)) == words.size  # 6,012 words of 64 bits: a repetition has probability 1e-12
    assert np.abs(np.unpackbits(words.view(np.uint8)).mean() - 0.5) < 0.005


def test_pads_of_large_sums_are_one_stream():
    key = new_key()
    long = masked(np.zeros(400_000, np.int64), key, 1)
    short = masked(np.zeros(10, np.int64), key, 1)
    assert np.array_equal(long[:10], short[:10])
    assert len(np.unique(long)) == long.size
