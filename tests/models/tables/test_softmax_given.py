"""Rows given cells: these hold exactly, and the law of the others is the conditional one, by enumeration."""

import functools

import numpy as np
import pytest

from fixtures.softmax import CELLS, ORDER, counted_law, joint_law, softmax_chain
from sfumato.models.tables.softmax_given import Lean, SoftmaxGiven, _alike, _repeated

N = 8_192
FIRST, MIDDLE, LAST = ORDER.tolist()


def rng(seed=0):
    return np.random.default_rng(seed)


@functools.cache
def joint(apart):
    return joint_law(softmax_chain(apart=apart))


def conditional(chain, cells, class_shares):
    """P(class, cells | some cells), from the joint law."""
    law = joint(len(chain.weights) > 1) * (class_shares / chain.class_shares)[:, None, None, None]
    for j, cell in cells.items():
        keep = np.arange(CELLS[j]) == cell
        law = law * keep.reshape([-1 if axis == j + 1 else 1 for axis in range(4)])
    return law / law.sum()


def assert_law(found, expected, n=N):
    # of rows that are resampled from 16 candidates each: a little more than of independent ones
    error = 5 * np.sqrt(1.2 * expected / n) + 3 / n
    assert (np.abs(found - expected) < error).all(), np.abs(found - expected).max()
    for axis in range(4):
        away = tuple(a for a in range(4) if a != axis)
        shares, wanted = found.sum(axis=away), expected.sum(axis=away)
        assert (np.abs(shares - wanted) < 4 * np.sqrt(wanted * (1 - wanted).clip(0) / n) + 3 / n).all()


GIVEN = {
    "nothing": {},
    "the first of the order": {FIRST: 2},
    "the middle": {MIDDLE: 1},
    "the last": {LAST: 3},
    "two, the first and the last": {FIRST: 0, LAST: 0},
    "two, the last ones": {MIDDLE: 2, LAST: 4},
    "all": {0: 1, 1: 1, 2: 1},
}


@pytest.mark.parametrize("apart", [True, False], ids=["weights by class", "one for all"])
@pytest.mark.parametrize("cells", GIVEN.values(), ids=GIVEN)
class TestLaw:
    def test_of_all(self, cells, apart):
        chain = softmax_chain(apart=apart)
        classes, found = SoftmaxGiven(chain, cells, chain.class_shares).sample(N, rng())
        for j, cell in cells.items():
            assert (found[:, j] == cell).all()
        assert_law(counted_law(classes, found), conditional(chain, cells, chain.class_shares))

    def test_of_a_given_class(self, cells, apart):
        chain, shares = softmax_chain(apart=apart), np.array([1.0, 0.0])
        classes, found = SoftmaxGiven(chain, cells, shares).sample(N, rng(1))
        assert not classes.any()
        assert_law(counted_law(classes, found), conditional(chain, cells, shares))

    def test_of_rows_whose_classes_are_told(self, cells, apart):
        """As many of each class as asked for, each with its own law, in their order."""
        chain, classes = softmax_chain(apart=apart), (rng(5).random(N) < 0.2).astype(int)
        told, found = SoftmaxGiven(chain, cells, chain.class_shares).sample(N, rng(2), classes)
        np.testing.assert_array_equal(told, classes)
        for j, cell in cells.items():
            assert (found[:, j] == cell).all()
        # as if the shares of the classes were those, whatever the given cells say of classes
        expected = np.stack([conditional(chain, cells, np.eye(2)[k])[k] for k in (0, 1)])
        shares = np.bincount(classes) / N
        assert_law(counted_law(classes, found), expected * shares[:, None, None, None])


@pytest.mark.parametrize("told", [False, True], ids=["classes drawn", "classes told"])
def test_rows_of_strong_weights_have_the_law(told):
    """Candidates lean far, are drawn in several rounds, and their weights make up for it."""
    chain, cells, n = softmax_chain(strength=2.0), {LAST: 4}, 60_000
    classes = (rng(5).random(n) < 0.001).astype(int) if told else None
    law = joint_law(chain)
    law = law * (np.arange(CELLS[LAST]) == 4).reshape([-1 if axis == LAST + 1 else 1 for axis in range(4)])
    classes, found = SoftmaxGiven(chain, cells, chain.class_shares).sample(n, rng(1), classes)
    found = counted_law(classes, found)
    expected = law / law.sum()
    if told:
        expected = law / law.sum(axis=(1, 2, 3), keepdims=True) * found.sum(axis=(1, 2, 3), keepdims=True)
    assert (np.abs(found - expected) < 6 * np.sqrt(1.5 * expected / n) + 3 / n).all()


def test_candidates_that_lean_are_more_alike():
    chain = softmax_chain(strength=2.0)
    given = SoftmaxGiven(chain, {LAST: 4}, chain.class_shares)
    plain = Lean(np.ones(2), None)
    alike = [
        _alike(given._candidates(given._classes(8_000, rng(), lean), rng(), lean).log_weights)
        for lean in (plain, given._lean)
    ]
    assert 1 - alike[1] < 0.8 * (1 - alike[0])


def test_repeated_rows_are_told():
    zeros = np.zeros(4, dtype=int)
    assert _repeated(np.zeros(8), np.zeros(8, dtype=int), zeros) == 0
    assert _repeated(np.array([0.0, -1e9]), np.zeros(2, dtype=int), zeros) == pytest.approx(0.75)
    drawn, groups = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    assert _repeated(np.array([0.0, 0.0, 0.0, -1e9]), drawn, groups) == pytest.approx(0.25)


def test_given_cells_matter():
    """The tests of the law could not fail if columns had nothing to do with each other."""
    chain = softmax_chain()
    laws = [conditional(chain, {LAST: cell}, chain.class_shares).sum(axis=(2, 3)) for cell in (0, 3)]
    assert np.abs(laws[0] - laws[1]).sum() > 0.4


def test_rows_are_in_no_order():
    chain = softmax_chain()
    classes, cells = SoftmaxGiven(chain, {LAST: 3}, chain.class_shares).sample(4_000, rng())
    for rows in (classes, *cells[:, [FIRST, MIDDLE]].T):
        halves = rows[:2000], rows[2000:]
        assert abs(halves[0].mean() - halves[1].mean()) < 5 * rows.std() / np.sqrt(1000)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3, 4097])
def test_any_number_of_rows(n, classes):
    chain = softmax_chain()
    told = np.ones(n, dtype=int) if classes else None
    found = SoftmaxGiven(chain, {1: 2}, chain.class_shares).sample(n, rng(), told)
    assert found[0].shape == (n,)
    assert found[1].shape == (n, 3)
    assert (found[1][:, 1] == 2).all()


@pytest.mark.slow
def test_one_row_has_the_law_too():
    chain = softmax_chain()
    expected = conditional(chain, {LAST: 3}, chain.class_shares).sum(axis=(0, 2, 3))
    given = SoftmaxGiven(chain, {LAST: 3}, chain.class_shares)
    first = np.array([given.sample(1, rng(seed))[1][0, 0] for seed in range(120)])
    found = np.bincount(first, minlength=CELLS[0]) / 120
    assert (np.abs(found - expected) < 4.5 * np.sqrt(expected / 120)).all()


def test_the_same_generator_gives_the_same_rows():
    chain = softmax_chain()
    given = SoftmaxGiven(chain, {LAST: 3}, chain.class_shares)
    for first, second in zip(given.sample(300, rng(7)), given.sample(300, rng(7)), strict=True):
        np.testing.assert_array_equal(first, second)
    assert (given.sample(300, rng(8))[1] != given.sample(300, rng(7))[1]).any()


def test_cells_without_a_share_are_not_possible():
    chain = softmax_chain()
    chain.columns[1].shares[4] = 0.0
    assert not SoftmaxGiven(chain, {1: 4}, chain.class_shares).possible
    assert not SoftmaxGiven(chain, {0: 1, 1: 4}, chain.class_shares).possible
    assert SoftmaxGiven(chain, {1: 3}, chain.class_shares).possible
    assert SoftmaxGiven(chain, {}, chain.class_shares).possible


@pytest.mark.parametrize("strength", [1e3, 1e30, 1e300])
def test_absurd_weights_still_give_cells(strength):
    chain = softmax_chain(strength=strength)
    for cells in ({FIRST: 1}, {LAST: 2}, {MIDDLE: 0, LAST: 4}):
        found = SoftmaxGiven(chain, cells, chain.class_shares).sample(500, rng())[1]
        assert ((found >= 0) & (found < CELLS)).all()
        for j, cell in cells.items():
            assert (found[:, j] == cell).all()
