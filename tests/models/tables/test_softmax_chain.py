"""The chain draws the law that its softmaxes say, evenly, and refuses arrays that are not a chain's."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from fixtures.softmax import CELLS, ORDER, counted_law, joint_law, softmax_chain
from sfumato.errors import ReleaseError
from sfumato.maths.constants import SAMPLING
from sfumato.models.tables.softmax_chain import Interactions, SoftmaxChain, SoftmaxColumn

either = pytest.mark.parametrize("products", [False, True], ids=["features alone", "products"])


def rng(seed=0):
    return np.random.default_rng(seed)


def column_of(values, tilts=None):
    """A column of a run for each cell, all alike, whose features lead, and no products."""
    r, q = values.shape
    tilts, even = np.zeros(r) if tilts is None else tilts, np.full(r, 1 / r)
    return SoftmaxColumn(even, np.arange(r), values, values, tilts, even, Interactions.none(q))


class TestDraws:
    @either
    def test_rows_have_the_joint_law(self, products):
        chain, n = softmax_chain(products=products), 400_000
        expected, found = joint_law(chain), counted_law(chain.draw(n, rng()))
        assert expected.sum() == pytest.approx(1.0)
        # systematic rows vary less than independent ones
        assert (np.abs(found - expected) < 5 * np.sqrt(expected / n) + 2 / n).all()

    def test_products_matter(self):
        """The tests of the law could not fail if products said nothing that features do not."""
        chain = softmax_chain(products=True)
        j = int(ORDER[2])
        columns = list(chain.columns)
        columns[j] = dataclasses.replace(columns[j], products=Interactions.none(columns[j].values.shape[1]))
        without = dataclasses.replace(chain, columns=tuple(columns))
        assert np.abs(joint_law(chain) - joint_law(without)).sum() > 0.2

    @pytest.mark.slow
    @either
    def test_each_row_has_the_law_alone(self, products):
        """The first row of many short samples: systematic draws are not to favour anything."""
        chain, n = softmax_chain(products=products), 4_000
        rows = np.array([chain.draw(3, rng(seed)) for seed in range(n)])
        expected = joint_law(chain)
        for place in (0, 2):
            found = counted_law(rows[:, place])
            for axis in range(3):
                shares, wanted = found.sum(axis=axis), expected.sum(axis=axis)
                assert (np.abs(shares - wanted) < 4.8 * np.sqrt(wanted / n)).all()

    def test_shares_of_what_is_drawn_first_are_met_to_a_few_rows(self):
        chain, first = softmax_chain(), int(ORDER[0])
        shares = joint_law(chain).sum(axis=tuple(axis for axis in range(3) if axis != first))
        for n in (100, SAMPLING.block_rows, 3 * SAMPLING.block_rows + 17):
            counts = np.bincount(chain.draw(n, rng())[:, first], minlength=shares.size)
            assert np.abs(counts - n * shares).max() <= 3 * (1 + n // SAMPLING.block_rows)

    @pytest.mark.parametrize("n", [1, 3, 80])
    def test_few_rows_have_the_joint_law(self, n):
        """The shares that rows are raked to are those of many: of one row, raking would undo its dependence."""
        column = column_of(np.array([[-1.0], [1.0]]))
        weights = np.array([[0.0, 0.0], [np.log(9) / 2, 0.0]])  # the second column is the first nine times in ten
        chain, total = SoftmaxChain((column, column), np.arange(2), weights), 6_000
        cells = np.concatenate([chain.draw(n, rng(seed)) for seed in range(total // n)])
        same = (cells[:, 0] == cells[:, 1]).mean()
        assert same == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / total))

    @pytest.mark.parametrize("n", [2, 80])
    def test_few_rows_have_the_joint_law_of_products(self, n):
        """The third column is the product of two that have nothing to do with each other, nine times in ten."""
        column = column_of(np.array([[-1.0], [1.0]]))
        third = dataclasses.replace(
            column, products=Interactions(np.array([0]), np.array([1]), np.full((1, 1), np.log(3)))
        )
        chain, total = SoftmaxChain((column, column, third), np.arange(3), np.zeros((3, 3))), 6_000
        signs = 2 * np.concatenate([chain.draw(n, rng(seed)) for seed in range(total // n)]) - 1
        assert (signs.prod(axis=1) == 1).mean() == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / total))
        assert np.abs(np.corrcoef(signs.T)[np.triu_indices(3, 1)]).max() < 5 / np.sqrt(total)

    def test_a_cell_is_drawn_within_its_run_by_its_share(self):
        column = SoftmaxColumn(
            np.array([0.1, 0.0, 0.3, 0.6, 0.0]),
            np.array([1, 0, 0, 1, 1]),
            np.zeros((2, 0)),
            np.zeros((2, 0)),
            np.zeros(2),
            np.full(2, 0.5),
            Interactions.none(0),
        )
        cells = column.cells(np.repeat([0, 1], 10_000), rng())
        assert (cells[:10_000] == 2).all()
        counts = np.bincount(cells[10_000:], minlength=5)
        np.testing.assert_allclose(counts / 10_000, [1 / 7, 0, 0, 6 / 7, 0], atol=1e-3)

    @either
    def test_the_same_generator_gives_the_same_rows(self, products):
        chain = softmax_chain(products=products)
        np.testing.assert_array_equal(chain.draw(500, rng(7)), chain.draw(500, rng(7)))
        assert (chain.draw(500, rng(8)) != chain.draw(500, rng(7))).any()

    @either
    @pytest.mark.parametrize("n", [0, 1])
    def test_none_and_one(self, n, products):
        assert softmax_chain(products=products).draw(n, rng()).shape == (n, 3)

    def test_columns_of_one_cell_and_no_columns(self):
        lone = column_of(np.zeros((1, 0)))
        cells = SoftmaxChain((lone, lone), np.arange(2), np.zeros((0, 0))).draw(1000, rng())
        assert cells.shape == (1000, 2)
        assert not cells.any()
        arrays = {"order": np.zeros(0, dtype=np.int64), "weights": np.zeros((0, 0))}
        assert SoftmaxChain.from_arrays(arrays, ()).draw(9, rng()).shape == (9, 0)

    @pytest.mark.parametrize("n", [SAMPLING.block_rows - 1, SAMPLING.block_rows, SAMPLING.block_rows + 1])
    @either
    def test_pairs_and_triples_have_the_law_up_to_a_border(self, n, products):
        chain = softmax_chain(products=products)
        law, found = joint_law(chain), counted_law(chain.draw(n, rng(5)))
        for axis in (0, 1, 2, ()):
            expected, counts = law.sum(axis=axis) * n, found.sum(axis=axis) * n
            assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.ppf(0.9999, expected.size - 1)

    def test_a_column_of_many_runs_that_decides_the_next(self):
        k, n = 200, 2_000
        many, few = column_of(np.eye(k)), column_of(np.eye(3))
        weights = np.zeros((k + 3, k + 3))
        weights[k:, :k] = np.where(np.arange(k) % 3 == np.arange(3)[:, None], 0.0, -1e4)
        cells = SoftmaxChain((many, few), np.arange(2), weights).draw(n, rng())
        assert np.bincount(cells[:, 0], minlength=k).min() > 5
        np.testing.assert_array_equal(cells[:, 1], cells[:, 0] % 3)

    def test_features_that_no_weight_is_at_are_left_out_and_nothing_else(self):
        for products in (False, True):
            chain, full = softmax_chain(products=products), softmax_chain(products=products)
            last, first = chain.blocks()[ORDER[2]], chain.blocks()[ORDER[0]]
            chain.weights[last, first], full.weights[last, first] = 0.0, 1e-30
            assert chain.steps[2].places is not None
            assert full.steps[2].places is None
            assert chain.steps[2].weights.all()
            assert (chain.draw(5_000, rng()) == full.draw(5_000, rng())).mean() > 0.999

    def test_a_run_of_probability_0_is_not_drawn(self):
        column = column_of(np.zeros((3, 0)), np.array([-1e6, 0.0, -1e6]))
        assert (SoftmaxChain((column,), np.arange(1), np.zeros((0, 0))).draw(5000, rng()) == 1).all()

    def test_of_products_that_a_stranger_repeats_there_is_little_memory(self):
        """A file of some hundred KiB is not to take gigabytes; as often as it is said, a product counts."""
        times, n = 10_000, 4_096
        column = column_of(np.array([[-1.0], [1.0]]))
        own = Interactions(np.zeros(times, int), np.ones(times, int), np.full((1, times), np.log(3) / times))
        chain = SoftmaxChain(
            (column, column, dataclasses.replace(column, products=own)), np.arange(3), np.zeros((3, 3))
        )
        tracemalloc.start()
        signs = 2 * chain.draw(n, rng()) - 1
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 40e6
        assert (signs.prod(axis=1) == 1).mean() == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / n))


@either
def test_rows_follow_known_cells_by_the_law_given_these(products):
    chain = softmax_chain(order=(0, 1, 2), products=products)
    law = joint_law(chain)
    for cell in range(law.shape[0]):
        known = np.full((40_000, 1), cell)
        cells = chain.followed(known, np.random.default_rng(cell))
        assert (cells[:, 0] == cell).all()
        found = counted_law(cells)[cell]
        np.testing.assert_allclose(found, law[cell] / law[cell].sum(), atol=0.01)
    for cell in range(law.shape[1]):
        known = np.tile([1, cell], (40_000, 1))
        cells = chain.followed(known, np.random.default_rng(cell))
        assert (cells[:, :2] == known).all()
        np.testing.assert_allclose(counted_law(cells)[1, cell], law[1, cell] / law[1, cell].sum(), atol=0.01)
    assert chain.followed(np.zeros((0, 2), dtype=np.int64), np.random.default_rng(0)).shape == (0, 3)


def test_rough_cells_are_drawn_anew_within_their_runs():
    chain = softmax_chain(order=(0, 1, 2), products=True)
    column, law = chain.columns[1], joint_law(chain)[2]
    for cell in range(column.shares.size):
        known = np.tile([2, cell], (20_000, 1))
        exact, rough = (chain.followed(known, np.random.default_rng(1), rough=rough) for rough in (0, 1))
        assert (exact[:, :2] == known).all()
        assert (rough[:, 0] == 2).all()
        run = column.runs == column.runs[cell]
        shares = np.bincount(rough[:, 1], minlength=run.size) / len(rough)
        np.testing.assert_allclose(shares, np.where(run, column.shares, 0) / column.shares[run].sum(), atol=0.01)
        for rows in (exact, rough):
            after = np.bincount(rows[:, 2], minlength=CELLS[2]) / len(rows)
            np.testing.assert_allclose(after, law[cell] / law[cell].sum(), atol=0.015)


def test_cells_that_rows_never_have_are_left_out_of_the_law():
    chain = softmax_chain(order=(0, 1, 2), products=True)
    law, alone, shared = joint_law(chain), 2, 0  # cells of a run of their own, and of another's too
    never = {1: np.array([shared, alone])}
    cells = chain.followed(np.zeros((40_000, 1), dtype=np.int64), rng(), never=never)
    of_column = law[0].sum(axis=1)
    of_column[alone] = 0
    expected = law[0] / law[0].sum(axis=1, keepdims=True) * (of_column / of_column.sum())[:, None]
    shares = np.zeros(law.shape[1:])
    np.add.at(shares, (cells[:, 1], cells[:, 2]), 1 / len(cells))
    assert (cells[:, 1] != alone).all()
    np.testing.assert_allclose(shares, expected, atol=0.01)


def test_rows_whose_law_leaves_no_other_cell_have_one_that_they_never_should():
    chain = softmax_chain(order=(0, 1, 2), products=True)
    every = np.arange(CELLS[1])
    known = np.zeros((5_000, 1), dtype=np.int64)
    as_ever, left = (chain.followed(known, rng(), never=never) for never in (None, {1: every}))
    assert (as_ever == left).all()


@pytest.fixture(scope="module")
def arrays():
    return softmax_chain(products=True).to_arrays()


@either
def test_arrays_round_trip(products):
    arrays = softmax_chain(products=products).to_arrays()
    model = SoftmaxChain.from_arrays(arrays, CELLS)
    assert {name: array.tolist() for name, array in model.to_arrays().items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float64), np.dtype(np.int64)}
    np.testing.assert_array_equal(model.draw(500, rng()), softmax_chain(products=products).draw(500, rng()))
    written = {name for name in arrays if "products" in name}
    assert written == ({f"{PRODUCTS}.first", f"{PRODUCTS}.second", f"{PRODUCTS}.weights"} if products else set())


PRODUCTS = f"column.{ORDER[2]}.products"
REQUIRED = ["order", "weights"] + [
    f"column.{j}.{part}" for j in range(3) for part in ("shares", "runs", "values", "leads", "tilts", "table")
]
REQUIRED += [f"{PRODUCTS}.{part}" for part in ("first", "second", "weights")]


def test_a_chain_of_no_other_arrays(arrays):
    assert set(arrays) == set(REQUIRED)


@pytest.mark.parametrize("name", [name for name in REQUIRED if name != f"column.{ORDER[2]}.leads"])
def test_a_missing_array_is_refused(arrays, name):
    with pytest.raises(ReleaseError, match="well-formed"):
        SoftmaxChain.from_arrays({k: v for k, v in arrays.items() if k != name}, CELLS)


def refused(arrays, name, array):
    with pytest.raises(ReleaseError, match="well-formed"):
        SoftmaxChain.from_arrays({**arrays, name: array}, CELLS)


@pytest.mark.parametrize("name", REQUIRED)
def test_another_shape_or_type_is_refused(arrays, name):
    array = arrays[name]
    refused(arrays, name, array[None])
    refused(arrays, name, array[..., :-1])
    refused(arrays, name, array[:0])
    refused(arrays, name, array.reshape(-1)[0])
    refused(arrays, name, np.concatenate([array, array[:1]]))
    for dtype in (np.float32, np.int32, np.uint64, np.complex128, np.dtype(">f8")):
        refused(arrays, name, array.astype(dtype))
    if array.dtype == np.float64:
        refused(arrays, name, array.astype(np.int64))
        for bad in (np.nan, np.inf, -np.inf):
            worse = array.copy()
            worse.flat[-1] = bad
            refused(arrays, name, worse)


def test_values_that_no_chain_has_are_refused(arrays):
    for shares in ([0.5, 0.6, 0, 0, 0], [1.5, -0.5, 0, 0, 0], [0.0] * 5, [0.99, 0, 0, 0, 0], [1e308, 1e308, 0, 0, 0]):
        refused(arrays, "column.1.shares", np.array(shares))
    for table in ([0.5, 0.6, 0], [1.5, -0.5, 0], [0.0] * 3, [0.99, 0, 0], [-0.25, 1.25, 0], [1e308, 1e308, 0]):
        refused(arrays, "column.1.table", np.array(table))
    refused(arrays, "column.1.table", arrays["column.1.table"] * 1.01)
    for runs in ([-1, 0, 0, 1, 2], [0, 0, 1, 2, 3], [0, 0, 0, 1, 1], [0, 0, 2, 2, 2], [9] * 5, [1, 1, 2, 3, 3]):
        refused(arrays, "column.1.runs", np.array(runs))
    for order in ([0, 0, 1], [1, 2, 3], [-1, 0, 1], [2**62, 0, 1]):
        refused(arrays, "order", np.array(order))
    weights = arrays["weights"]
    refused(arrays, "weights", weights[:, :-1].copy())
    refused(arrays, "weights", weights[:-1, :-1].copy())
    refused(arrays, "weights", np.zeros((len(weights) + 1,) * 2))
    refused(arrays, "weights", weights[None].repeat(2, axis=0))
    refused(arrays, "column.1.values", np.zeros((4, 2)))
    refused(arrays, "column.1.values", np.zeros((3, 1)))


class TestProductsOfAStranger:
    """Places are of features that are drawn before; all else would read what is not there."""

    @pytest.mark.parametrize("part", ["first", "second"])
    @pytest.mark.parametrize("at", [0, 2, -1])
    @pytest.mark.parametrize("place", [-1, -6, 6, 7, 100, 2**31, 2**32, 2**62, -(2**63)])
    def test_places_out_of_range_are_refused(self, arrays, part, at, place):
        places = arrays[f"{PRODUCTS}.{part}"].copy()
        places[at] = place
        refused(arrays, f"{PRODUCTS}.{part}", places)

    @pytest.mark.parametrize("part", ["first", "second"])
    def test_places_of_the_column_itself_are_refused(self, arrays, part):
        block = softmax_chain().blocks()[ORDER[2]]
        for place in range(block.start, block.stop):
            places = arrays[f"{PRODUCTS}.{part}"].copy()
            places[1] = place
            refused(arrays, f"{PRODUCTS}.{part}", places)

    @pytest.mark.parametrize("part", ["first", "second"])
    @pytest.mark.parametrize("j", ORDER[:2].tolist())
    def test_places_of_columns_that_are_drawn_later_are_refused(self, arrays, j, part):
        blocks, turn = softmax_chain().blocks(), ORDER.tolist().index(j)
        before = [place for i in ORDER[:turn] for place in range(blocks[i].start, blocks[i].stop)]
        others = {name: array for name, array in arrays.items() if not name.startswith(PRODUCTS)}
        for place in range(6):
            fine = 0 if not before else before[0]
            own = {"first": np.array([fine]), "second": np.array([fine]), "weights": np.ones((2, 1))}
            own[part] = np.array([place])
            wrong = {**others, **{f"column.{j}.products.{name}": array for name, array in own.items()}}
            if place in before:
                cells = SoftmaxChain.from_arrays(wrong, CELLS).draw(100, rng())
                assert ((cells >= 0) & (cells < CELLS)).all()
            else:
                with pytest.raises(ReleaseError, match="well-formed"):
                    SoftmaxChain.from_arrays(wrong, CELLS)

    def test_another_order_makes_them_later(self, arrays):
        refused(arrays, "order", np.array([0, 1, 2]))
        refused(arrays, "order", np.array([1, 0, 2]))
        refused(arrays, "order", np.array([2, 1, 0]))
        SoftmaxChain.from_arrays({**arrays, "order": np.array([0, 2, 1])}, CELLS)

    def test_weights_of_another_shape_are_refused(self, arrays):
        weights = arrays[f"{PRODUCTS}.weights"]
        assert weights.shape == (2, 4)
        for wrong in (weights.T.copy(), weights[:1], weights.ravel(), np.zeros((3, 4)), np.zeros((2, 0))):
            refused(arrays, f"{PRODUCTS}.weights", wrong)

    def test_any_two_of_the_arrays_are_refused_and_any_one(self, arrays):
        parts = [name for name in arrays if name.startswith(PRODUCTS)]
        others = {name: array for name, array in arrays.items() if name not in parts}
        for name in parts:
            with pytest.raises(ReleaseError, match="well-formed"):
                SoftmaxChain.from_arrays({**others, name: arrays[name]}, CELLS)

    def test_of_none_they_are_as_not_there(self, arrays):
        own = {"first": np.zeros(0, np.int64), "second": np.zeros(0, np.int64), "weights": np.zeros((2, 0))}
        empty = SoftmaxChain.from_arrays({**arrays, **{f"{PRODUCTS}.{k}": a for k, a in own.items()}}, CELLS)
        others = {name: array for name, array in arrays.items() if not name.startswith(PRODUCTS)}
        without = SoftmaxChain.from_arrays(others, CELLS)
        np.testing.assert_array_equal(empty.draw(300, rng()), without.draw(300, rng()))
        assert set(empty.to_arrays()) == set(others)


@pytest.mark.parametrize("cells", [(3, 5), (3, 5, 4, 2), (3, 5, 5), (4, 5, 3), ()])
def test_arrays_of_another_schema_are_refused(arrays, cells):
    with pytest.raises(ReleaseError, match="well-formed"):
        SoftmaxChain.from_arrays(arrays, cells)


@pytest.mark.parametrize("seed", range(20))
def test_absurd_weights_tilts_and_values_still_give_cells(arrays, seed):
    wild = {name: array.copy() for name, array in arrays.items()}
    sizes = 10.0 ** rng(seed).choice([-300, -20, 0, 20, 300], 4)
    wild["weights"] *= sizes[0] * rng(seed).choice([-1, 1], wild["weights"].shape)
    wild[f"{PRODUCTS}.weights"] *= sizes[3] * rng(seed).choice([-1, 1], (2, 4))
    for j in range(3):
        wild[f"column.{j}.values"] *= sizes[1]
        wild[f"column.{j}.tilts"] *= rng(seed).choice([0, 1e-320, 1, 1e300], 3) * sizes[2] ** 0.02
    cells = SoftmaxChain.from_arrays(wild, CELLS).draw(1000, rng())
    assert ((cells >= 0) & (cells < CELLS)).all()


@either
def test_weights_at_later_columns_are_as_none(products):
    """A stranger's weights above the order: features that are not drawn yet are 0."""
    chain = softmax_chain(products=products)
    arrays = chain.to_arrays()
    full = arrays["weights"].copy()
    later = full == 0
    assert later.sum() > full.size / 2
    full[later] = 5.0
    model = SoftmaxChain.from_arrays({**arrays, "weights": full}, CELLS)
    np.testing.assert_array_equal(model.draw(300, rng()), chain.draw(300, rng()))
    assert model.order.tolist() == ORDER.tolist()
