"""The chain draws the law that its softmaxes say, evenly, and refuses arrays that are not a chain's."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from fixtures.softmax import CELLS, ORDER, counted_law, joint_law, softmax_chain
from sfumato.errors import ReleaseError
from sfumato.maths.constants import SAMPLING
from sfumato.models.tables.softmax_chain import SoftmaxChain, SoftmaxColumn


def rng(seed=0):
    return np.random.default_rng(seed)


class TestDraws:
    @pytest.mark.parametrize("apart", [True, False])
    def test_rows_have_the_joint_law(self, apart):
        chain, n = softmax_chain(apart=apart), 400_000
        expected, found = joint_law(chain), counted_law(*chain.sample(n, rng()))
        assert expected.sum() == pytest.approx(1.0)
        # systematic rows vary less than independent ones
        assert (np.abs(found - expected) < 5 * np.sqrt(expected / n) + 2 / n).all()

    @pytest.mark.slow
    def test_each_row_has_the_law_alone(self):
        """The first row of many short samples: systematic draws are not to favour anything."""
        chain, n = softmax_chain(), 4_000
        rows = [chain.sample(3, rng(seed)) for seed in range(n)]
        for place in (0, 2):
            found = counted_law(np.array([c[place] for c, _ in rows]), np.array([x[place] for _, x in rows]))
            expected = joint_law(chain)
            for j in range(3):
                away = tuple(axis for axis in range(4) if axis not in (0, j + 1))
                shares, wanted = found.sum(axis=away), expected.sum(axis=away)
                assert (np.abs(shares - wanted) < 4.8 * np.sqrt(wanted / n)).all()

    def test_class_shares_are_met_to_a_few_rows(self):
        chain = softmax_chain()
        for n in (100, SAMPLING.block_rows, 3 * SAMPLING.block_rows + 17):
            shares = np.bincount(chain.draw_classes(n, rng()), minlength=2)
            assert np.abs(shares - n * chain.class_shares).max() <= 3 * (1 + n // SAMPLING.block_rows)

    def test_given_classes_are_kept(self):
        chain, classes = softmax_chain(), rng(3).integers(0, 2, 1000)
        np.testing.assert_array_equal(chain.sample(1000, rng(), classes)[0], classes)
        expected = joint_law(chain)[1]
        cells = chain.draw(np.ones(100_000, dtype=int), rng())
        found = counted_law(np.ones(100_000, dtype=int), cells)[1]
        assert np.abs(found - expected / expected.sum()).max() < 0.008

    @pytest.mark.parametrize("n", [1, 3, 80])
    def test_few_rows_of_a_class_have_the_joint_law(self, n):
        """The shares that rows are raked to are those of many: of one row, raking would undo its dependence."""
        column = SoftmaxColumn(
            np.full(2, 0.5), np.arange(2), np.array([[-1.0], [1.0]]), np.zeros((1, 2)), np.full((1, 2), 0.5)
        )
        weights = np.array([[[0.0, 0.0], [np.log(9) / 2, 0.0]]])  # the second column is the first nine times in ten
        chain, total = SoftmaxChain(np.ones(1), (column, column), np.arange(2), weights), 6_000
        cells = np.concatenate([chain.draw(np.zeros(n, dtype=int), rng(seed)) for seed in range(total // n)])
        same = (cells[:, 0] == cells[:, 1]).mean()
        assert same == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / total))

    def test_a_cell_is_drawn_within_its_run_by_its_share(self):
        column = SoftmaxColumn(
            np.array([0.1, 0.0, 0.3, 0.6, 0.0]),
            np.array([1, 0, 0, 1, 1]),
            np.zeros((2, 0)),
            np.zeros((1, 2)),
            np.full((1, 2), 0.5),
        )
        cells = column.cells(np.repeat([0, 1], 10_000), rng())
        assert (cells[:10_000] == 2).all()
        counts = np.bincount(cells[10_000:], minlength=5)
        np.testing.assert_allclose(counts / 10_000, [1 / 7, 0, 0, 6 / 7, 0], atol=1e-3)

    def test_the_same_generator_gives_the_same_rows(self):
        chain = softmax_chain()
        for first, second in zip(chain.sample(500, rng(7)), chain.sample(500, rng(7)), strict=True):
            np.testing.assert_array_equal(first, second)
        assert (chain.sample(500, rng(8))[1] != chain.sample(500, rng(7))[1]).any()

    @pytest.mark.parametrize("n", [0, 1])
    def test_none_and_one(self, n):
        classes, cells = softmax_chain().sample(n, rng())
        assert classes.shape == (n,)
        assert cells.shape == (n, 3)

    def test_columns_of_one_cell_and_no_columns(self):
        lone = SoftmaxColumn(np.ones(1), np.zeros(1, dtype=int), np.zeros((1, 0)), np.zeros((2, 1)), np.ones((2, 1)))
        chain = SoftmaxChain(np.array([0.5, 0.5]), (lone, lone), np.arange(2), np.zeros((1, 0, 0)))
        classes, cells = chain.sample(1000, rng())
        assert set(classes) == {0, 1}
        assert not cells.any()
        arrays = {"class_shares": np.ones(1), "order": np.zeros(0, dtype=np.int64), "weights": np.zeros((1, 0, 0))}
        assert SoftmaxChain.from_arrays(arrays, ()).sample(9, rng())[1].shape == (9, 0)

    @pytest.mark.parametrize("n", [SAMPLING.block_rows - 1, SAMPLING.block_rows, SAMPLING.block_rows + 1])
    @pytest.mark.parametrize("apart", [True, False])
    def test_pairs_have_the_law_of_each_class_up_to_a_border(self, n, apart):
        chain = softmax_chain(apart=apart)
        law, found = joint_law(chain), counted_law(*chain.sample(n, rng(5)))
        for axis in range(1, 4):
            expected, counts = law.sum(axis=axis) * n, found.sum(axis=axis) * n
            assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.ppf(0.9999, expected.size - 1)

    def test_many_classes(self):
        k, n = 200, 2_000
        tilts = np.where(np.arange(k)[:, None] % 3 == np.arange(3), 0.0, -1e4)
        column = SoftmaxColumn(np.full(3, 1 / 3), np.arange(3), np.zeros((3, 0)), tilts, np.exp(tilts))
        chain = SoftmaxChain(np.full(k, 1 / k), (column,), np.arange(1), np.zeros((k, 0, 0)))
        classes, cells = chain.sample(n, rng())
        assert np.bincount(classes, minlength=k).min() > 5
        np.testing.assert_array_equal(cells[:, 0], classes % 3)

    def test_features_that_no_weight_is_at_are_left_out_and_nothing_else(self):
        chain, full = softmax_chain(), softmax_chain()
        last, first = chain.blocks()[ORDER[2]], chain.blocks()[ORDER[0]]
        chain.weights[:, last, first], full.weights[:, last, first] = 0.0, 1e-30
        assert chain.steps[2].places is not None
        assert full.steps[2].places is None
        assert chain.steps[2].weights.all()
        assert (chain.sample(5_000, rng())[1] == full.sample(5_000, rng())[1]).mean() > 0.999

    def test_a_class_without_a_share_is_not_drawn(self):
        chain = dataclasses.replace(softmax_chain(), class_shares=np.array([0.0, 1.0]))
        assert (chain.draw_classes(5000, rng()) == 1).all()


def test_rows_follow_known_cells_by_the_law_given_these():
    chain = dataclasses.replace(softmax_chain(), order=np.array([0, 1, 2]))
    law = joint_law(chain)[0]
    for cell in range(law.shape[0]):
        known = np.full((40_000, 1), cell)
        cells = chain.followed(known, np.random.default_rng(cell))
        assert (cells[:, 0] == cell).all()
        found = np.zeros(law.shape[1:])
        np.add.at(found, (cells[:, 1], cells[:, 2]), 1 / len(cells))
        np.testing.assert_allclose(found, law[cell] / law[cell].sum(), atol=0.01)
    assert chain.followed(np.zeros((0, 2), dtype=np.int64), np.random.default_rng(0)).shape == (0, 3)


def test_rough_cells_are_drawn_anew_within_their_runs():
    chain = dataclasses.replace(softmax_chain(), order=np.array([0, 1, 2]))
    column = chain.columns[0]
    for cell in range(column.shares.size):
        known = np.full((20_000, 1), cell)
        exact = chain.followed(known, np.random.default_rng(1))
        rough = chain.followed(known, np.random.default_rng(1), rough=1)
        assert (exact[:, 0] == cell).all()
        run = column.runs == column.runs[cell]
        shares = np.bincount(rough[:, 0], minlength=run.size) / len(rough)
        np.testing.assert_allclose(shares, np.where(run, column.shares, 0) / column.shares[run].sum(), atol=0.01)


def test_cells_that_rows_never_have_are_left_out_of_the_law():
    chain = dataclasses.replace(softmax_chain(), order=np.array([0, 1, 2]))
    law, alone, shared = joint_law(chain)[0], 2, 0  # cells of a run of their own, and of another's too
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
    chain = dataclasses.replace(softmax_chain(), order=np.array([0, 1, 2]))
    every = np.arange(CELLS[1])
    known = np.zeros((5_000, 1), dtype=np.int64)
    as_ever, left = (chain.followed(known, rng(), never=never) for never in (None, {1: every}))
    assert (as_ever == left).all()


@pytest.fixture(scope="module")
def arrays():
    return softmax_chain().to_arrays()


def test_arrays_round_trip(arrays):
    model = SoftmaxChain.from_arrays(arrays, CELLS)
    assert {name: array.tolist() for name, array in model.to_arrays().items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float64), np.dtype(np.int64)}
    for first, second in zip(model.sample(500, rng()), softmax_chain().sample(500, rng()), strict=True):
        np.testing.assert_array_equal(first, second)


REQUIRED = ["class_shares", "order", "weights"] + [
    f"column.{j}.{part}" for j in range(3) for part in ("shares", "runs", "values", "tilts", "tables")
]


@pytest.mark.parametrize("name", REQUIRED)
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
    refused(arrays, "class_shares", np.array([-0.25, 1.25]))
    refused(arrays, "class_shares", arrays["class_shares"] * 1.01)
    refused(arrays, "class_shares", np.array([1e308, 1e308]))
    refused(arrays, "class_shares", np.ones(1))
    for shares in ([0.5, 0.6, 0, 0, 0], [1.5, -0.5, 0, 0, 0], [0.0] * 5, [0.99, 0, 0, 0, 0]):
        refused(arrays, "column.1.shares", np.array(shares))
    for runs in ([-1, 0, 0, 1, 2], [0, 0, 1, 2, 3], [0, 0, 0, 1, 1], [0, 0, 2, 2, 2], [9] * 5, [1, 1, 2, 3, 3]):
        refused(arrays, "column.1.runs", np.array(runs))
    for order in ([0, 0, 1], [1, 2, 3], [-1, 0, 1], [2**62, 0, 1]):
        refused(arrays, "order", np.array(order))
    weights = arrays["weights"]
    refused(arrays, "weights", weights[:, :, :-1].copy())
    refused(arrays, "weights", np.zeros((3, *weights.shape[1:])))
    refused(arrays, "weights", np.zeros((0, *weights.shape[1:])))
    refused(arrays, "column.1.values", np.zeros((4, 2)))
    refused(arrays, "column.1.values", np.zeros((3, 1)))
    SoftmaxChain.from_arrays({**arrays, "weights": weights[:1].copy()}, CELLS)


@pytest.mark.parametrize("cells", [(3, 5), (3, 5, 4, 2), (3, 5, 5), (4, 5, 3), ()])
def test_arrays_of_another_schema_are_refused(arrays, cells):
    with pytest.raises(ReleaseError, match="well-formed"):
        SoftmaxChain.from_arrays(arrays, cells)


@pytest.mark.parametrize("seed", range(20))
def test_absurd_weights_tilts_and_values_still_give_cells(arrays, seed):
    wild = {name: array.copy() for name, array in arrays.items()}
    sizes = 10.0 ** rng(seed).choice([-300, -20, 0, 20, 300], 3)
    wild["weights"] *= sizes[0] * rng(seed).choice([-1, 1], wild["weights"].shape)
    for j in range(3):
        wild[f"column.{j}.values"] *= sizes[1]
        wild[f"column.{j}.tilts"] *= rng(seed).choice([0, 1e-320, 1, 1e300], (2, 1)) * sizes[2] ** 0.02
    model = SoftmaxChain.from_arrays(wild, CELLS)
    classes, cells = model.sample(1000, rng())
    assert ((cells >= 0) & (cells < CELLS)).all()
    assert set(classes) <= {0, 1}


def test_weights_at_later_columns_are_as_none(arrays):
    """A stranger's weights above the order: features that are not drawn yet are 0."""
    full = arrays["weights"].copy()
    later = ~full.any(axis=0)
    assert later.sum() > full.shape[1] ** 2 / 2
    full[:, later] = 5.0
    model = SoftmaxChain.from_arrays({**arrays, "weights": full}, CELLS)
    np.testing.assert_array_equal(model.sample(300, rng())[1], softmax_chain().sample(300, rng())[1])
    assert model.order.tolist() == ORDER.tolist()
