"""Rows given cells: these hold exactly, and the law of the others is the conditional one, by enumeration."""

import dataclasses
import functools
import tracemalloc

import numpy as np
import pytest

from fixtures.softmax import CELLS, ORDER, counted_law, joint_law, law_given, softmax_chain
from sfumato.models.tables.softmax_chain import Interactions, SoftmaxChain, SoftmaxColumn
from sfumato.models.tables.softmax_given import SoftmaxGiven, _alike, _repeated

N = 8_192
FIRST, MIDDLE, LAST = ORDER.tolist()
either = pytest.mark.parametrize("products", [False, True], ids=["features alone", "products"])


def rng(seed=0):
    return np.random.default_rng(seed)


@functools.cache
def joint(products, strength=0.8):
    return joint_law(softmax_chain(products=products, strength=strength))


def assert_law(found, expected, n=N):
    # of rows that are resampled from 16 candidates each: a little more than of independent ones
    error = 5 * np.sqrt(1.2 * expected / n) + 3 / n
    assert (np.abs(found - expected) < error).all(), np.abs(found - expected).max()
    for axis in range(3):
        away = tuple(a for a in range(3) if a != axis)
        shares, wanted = found.sum(axis=away), expected.sum(axis=away)
        assert (np.abs(shares - wanted) < 4 * np.sqrt(wanted * (1 - wanted).clip(0) / n) + 3 / n).all()


GIVEN = {
    "nothing": {},
    "the first of the order": {FIRST: 2},
    "the middle": {MIDDLE: 1},
    "the last": {LAST: 3},
    "another of the last": {LAST: 2},
    "two, the first and the middle": {FIRST: 1, MIDDLE: 0},
    "two, the first and the last": {FIRST: 0, LAST: 0},
    "two, the last ones": {MIDDLE: 2, LAST: 4},
    "all": {0: 1, 1: 1, 2: 1},
}


@either
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("cells", GIVEN.values(), ids=GIVEN)
def test_rows_have_the_conditional_law(cells, seed, products):
    found = SoftmaxGiven(softmax_chain(products=products), cells).draw(N, rng(seed))
    for j, cell in cells.items():
        assert (found[:, j] == cell).all()
    assert_law(counted_law(found), law_given(joint(products), cells))


@either
@pytest.mark.parametrize("strength", [2.0, 3.0])
def test_rows_of_strong_weights_have_the_law(strength, products):
    """Candidates lean far, are drawn in several rounds, and their weights make up for it."""
    chain, n = softmax_chain(products=products, strength=strength), 60_000
    for cell in (1, 4):
        found = counted_law(SoftmaxGiven(chain, {LAST: cell}).draw(n, rng(1)))
        expected = law_given(joint(products, strength), {LAST: cell})
        assert (np.abs(found - expected) < 6 * np.sqrt(1.5 * expected / n) + 3 / n).all()


def sum_of_products(strength, pairs):
    """Coins that have nothing to do with each other, and one that goes with the sum of their products in pairs."""
    law, values = np.array([0.1, 0.9]), np.array([[-1.0], [1.0]])
    coin = SoftmaxColumn(np.full(2, 0.5), np.arange(2), values, values, np.log(law), law, Interactions.none(1))
    places = np.arange(2 * pairs).reshape(2, pairs)
    last = dataclasses.replace(
        coin, tilts=np.zeros(2), products=Interactions(places[0], places[1], np.full((1, pairs), strength))
    )
    d = 2 * pairs + 1
    return SoftmaxChain((coin,) * (d - 1) + (last,), np.arange(d), np.zeros((d, d)))


def alike(given, lean):
    """How alike the weights of candidates are that lean so."""
    return _alike(given._candidates(8_000, rng(), lean).log_weights)


@either
def test_candidates_that_lean_are_more_alike(products):
    """Of 20 chains; none is to be less so but by chance: where no way to lean helps, candidates do not."""
    parts = []
    for seed in range(4):
        chain = softmax_chain(products=products, strength=0.4 if products else 0.8, seed=seed)
        chain.columns[LAST].products.weights[:] *= 0.5
        for cell in range(CELLS[LAST]):
            given = SoftmaxGiven(chain, {LAST: cell})
            parts.append([1 - alike(given, lean) for lean in (None, given._lean)])
    plain, leaning = np.array(parts).T
    assert (leaning < plain + 0.02).all()
    assert np.median(leaning / plain) < 0.8


def test_candidates_lean_by_products_alone():
    """One of a product leans as far as the mean of the other says."""
    chain = sum_of_products(-0.3, 8)
    given = SoftmaxGiven(chain, {16: 1})
    assert given._lean is not None
    assert 1 - alike(given, given._lean) < 0.5 * (1 - alike(given, None))
    for logs in given._lean[:-1]:
        assert logs[0] > logs[1] + 0.05  # rarer products of 1 make the given coin likelier


def test_where_leaning_makes_weights_less_alike_candidates_do_not():
    chain = softmax_chain(products=True, strength=2.0)
    given = SoftmaxGiven(chain, {LAST: 4})
    far = given._factors(given._candidates(2_048, rng(), None))
    assert alike(given, far) < alike(given, None)
    assert alike(given, given._lean) > alike(given, None) - 0.02


def test_what_leans_by_products_alone_has_the_law():
    chain, n = sum_of_products(-0.8, 3), 60_000
    sizes = (2,) * 7
    expected = law_given(joint_law(chain), {6: 1})
    found = counted_law(SoftmaxGiven(chain, {6: 1}).draw(n, rng(2)), sizes)
    assert (np.abs(found - expected) < 5 * np.sqrt(1.2 * expected / n) + 3 / n).all()
    middle = law_given(joint_law(chain), {6: 0, 1: 1, 5: 0})
    found = counted_law(SoftmaxGiven(chain, {6: 0, 1: 1, 5: 0}).draw(n, rng(3)), sizes)
    assert (np.abs(found - middle) < 5 * np.sqrt(1.2 * middle / n) + 3 / n).all()


def test_repeated_rows_are_told():
    assert _repeated(np.zeros(8), 4) == 0
    assert _repeated(np.array([0.0, -1e9]), 4) == pytest.approx(0.75)
    assert _repeated(np.array([0.0, 0.0, -1e9]), 2) == 0
    assert _repeated(np.array([0.0, 0.0, -1e9]), 4) == pytest.approx(0.5)
    assert _repeated(np.log([3.0, 1.0, 1.0, 1.0]), 4) == pytest.approx(0.25)


@either
def test_given_cells_matter(products):
    """The tests of the law could not fail if columns had nothing to do with each other."""
    laws = [law_given(joint(products), {LAST: cell}).sum(axis=LAST) for cell in (0, 3)]
    assert np.abs(laws[0] - laws[1]).sum() > 0.4


def test_products_matter():
    laws = [law_given(joint(products), {LAST: 3}).sum(axis=LAST) for products in (False, True)]
    assert np.abs(laws[0] - laws[1]).sum() > 0.2


@either
def test_rows_are_in_no_order(products):
    cells = SoftmaxGiven(softmax_chain(products=products), {LAST: 3}).draw(4_000, rng())
    for rows in cells[:, [FIRST, MIDDLE]].T:
        halves = rows[:2000], rows[2000:]
        assert abs(halves[0].mean() - halves[1].mean()) < 5 * rows.std() / np.sqrt(1000)


@either
@pytest.mark.parametrize("n", [0, 1, 3, 4097])
def test_any_number_of_rows(n, products):
    found = SoftmaxGiven(softmax_chain(products=products), {1: 2}).draw(n, rng())
    assert found.shape == (n, 3)
    assert (found[:, 1] == 2).all()


@pytest.mark.slow
@either
def test_one_row_has_the_law_too(products):
    expected = law_given(joint(products), {LAST: 3}).sum(axis=(1, 2))
    given = SoftmaxGiven(softmax_chain(products=products), {LAST: 3})
    first = np.array([given.draw(1, rng(seed))[0, 0] for seed in range(120)])
    found = np.bincount(first, minlength=CELLS[0]) / 120
    assert (np.abs(found - expected) < 4.5 * np.sqrt(expected / 120)).all()


@either
def test_the_same_generator_gives_the_same_rows(products):
    given = SoftmaxGiven(softmax_chain(products=products), {LAST: 3})
    np.testing.assert_array_equal(given.draw(300, rng(7)), given.draw(300, rng(7)))
    assert (given.draw(300, rng(8)) != given.draw(300, rng(7))).any()


def test_cells_without_a_share_are_not_possible():
    chain = softmax_chain()
    chain.columns[1].shares[4] = 0.0
    assert not SoftmaxGiven(chain, {1: 4}).possible
    assert not SoftmaxGiven(chain, {0: 1, 1: 4}).possible
    assert SoftmaxGiven(chain, {1: 3}).possible
    assert SoftmaxGiven(chain, {}).possible


@either
@pytest.mark.parametrize("strength", [1e3, 1e30, 1e300])
def test_absurd_weights_still_give_cells(strength, products):
    chain = softmax_chain(products=products, strength=strength)
    for cells in ({FIRST: 1}, {LAST: 2}, {MIDDLE: 0, LAST: 4}):
        found = SoftmaxGiven(chain, cells).draw(500, rng())
        assert ((found >= 0) & (found < CELLS)).all()
        for j, cell in cells.items():
            assert (found[:, j] == cell).all()


def test_of_products_that_a_stranger_repeats_there_is_little_memory():
    times, chain = 20_000, softmax_chain(products=True)
    blocks, last = chain.blocks(), chain.columns[LAST]  # what leads is where features are
    places = np.full(times, blocks[FIRST].start), np.full(times, blocks[MIDDLE].start)
    columns = list(chain.columns)
    columns[LAST] = dataclasses.replace(last, products=Interactions(*places, np.full((2, times), 1 / times)))
    given = SoftmaxGiven(dataclasses.replace(chain, columns=tuple(columns)), {LAST: 1})
    tracemalloc.start()
    given.draw(10, rng())
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100e6
