"""The chain draws what its moments say, and refuses arrays that are not a chain's."""

import numpy as np
import pytest

from fixtures.old_tables import second_moments, uncalibrated_column
from sfumato.errors import ReleaseError
from sfumato.maths.gaussian import nearest_positive
from sfumato.models.tables.gaussian_chain import ChainModel

CELLS = (3, 5, 4)
GROUPS = (np.arange(3), np.array([0, 0, 1, 2, 2]), np.arange(4))


def rng(seed=0):
    return np.random.default_rng(seed)


def joint(strength, seed=0):
    """A distribution over the cells of three columns: independent, plus dependence."""
    each = [rng(seed + j).dirichlet(np.full(c, 5.0)) for j, c in enumerate(CELLS)]
    product = np.einsum("a,b,c->abc", *each)
    table = product * np.exp(strength * rng(seed + 9).normal(size=CELLS))
    return table / table.sum()


def marginal(table, j):
    return table.sum(axis=tuple(axis for axis in range(3) if axis != j))


def vectors(columns, k):
    """The vector of every combination of cells, and its place in a flattened joint table."""
    grids = np.meshgrid(*map(np.arange, CELLS), indexing="ij")
    blocks = [c.class_blocks(k).of(g.ravel()) for c, g in zip(columns, grids, strict=True)]
    return np.concatenate(blocks, axis=1)


def chain(tables, shares, *, scored=(False, False, False), groups=GROUPS, floor=1e-8):
    """The chain whose moments are those of the tables, one per class."""
    columns = tuple(
        uncalibrated_column(
            np.stack([marginal(table, j) for table in tables]),
            np.zeros(CELLS[j], dtype=int) if scored[j] else groups[j],
            scored=scored[j],
        )
        for j in range(3)
    )
    moments = []
    for k, table in enumerate(tables):
        x = vectors(columns, k)
        moments.append(nearest_positive(x.T @ (x * table.ravel()[:, None]), floor))
    factors = np.linalg.cholesky(np.stack(moments))
    return ChainModel(np.array(shares), columns, factors)


def worst_z(observed, expected, n):
    """Largest distance between shares in standard errors."""
    return float(np.max(np.abs(observed - expected) / np.sqrt(np.maximum(expected, 1 / n) / n)))


def shares_of(cells, j):
    return np.bincount(cells[:, j], minlength=CELLS[j]) / len(cells)


def test_weak_dependence_comes_back_without_clipping():
    tables, n = [joint(0.15), joint(0.2, seed=5)], 400_000
    model = chain(tables, [0.3, 0.7])
    classes, cells = model.sample(n, rng())
    assert worst_z(np.bincount(classes) / n, np.array([0.3, 0.7]), n) < 5
    for k, table in enumerate(tables):
        members = cells[classes == k]
        for j in range(3):
            assert worst_z(shares_of(members, j), marginal(table, j), len(members)) < 5
        x = np.concatenate([c.class_blocks(k).of(members[:, j]) for j, c in enumerate(model.columns)], axis=1)
        sigma = model.factors[k] @ model.factors[k].T
        error = np.sqrt((x**2).T @ (x**2)) / len(members)
        assert (np.abs(x.T @ x / len(members) - sigma) < 5.5 * error + 1e-6).all()


def test_scores_come_back():
    table, n = joint(0.3), 400_000
    model = chain([table], [1.0], scored=(True, False, True)).calibrated(50_000, rng(1))
    cells = model.sample(n, rng())[1]
    x = np.concatenate([c.class_blocks(0).of(cells[:, j]) for j, c in enumerate(model.columns)], axis=1)
    sigma = model.factors[0] @ model.factors[0].T
    # a score is drawn in cells: its covariances shrink a little
    across = np.s_[0, 1:]
    assert np.abs((x.T @ x / n - sigma)[across]).max() < 0.03
    for j in range(3):
        assert np.abs(shares_of(cells, j) - marginal(table, j)).max() < 0.01


@pytest.mark.parametrize("scored", [(False, False, False), (True, False, True)])
def test_calibration_keeps_the_marginals_of_strong_dependence(scored):
    tables = [joint(2.0), joint(1.5, seed=3)]
    model = chain(tables, [0.5, 0.5], scored=scored, floor=1e-4).calibrated(20_000, rng(2))
    classes, cells = model.sample(200_000, rng())
    for k, table in enumerate(tables):
        for j in range(3):
            error = np.abs(shares_of(cells[classes == k], j) - marginal(table, j)).max()
            assert error < 0.012


def test_calibration_helps():
    # every two columns want to be equal, and the third against both: moments of no distribution
    columns = (uncalibrated_column(np.array([[0.8, 0.1, 0.1]]), np.arange(3), scored=False),) * 3
    own = second_moments(columns[0])[0]
    pull = np.array([[0, 0.9, 0.9], [0.9, 0, -0.9], [0.9, -0.9, 0]])
    moment = np.kron(np.eye(3) + pull, own)
    factors = np.linalg.cholesky(nearest_positive(moment, 1e-4))[None]
    plain = ChainModel(np.ones(1), columns, factors)

    def error(model):
        cells = model.sample(100_000, rng())[1]
        shares = [np.bincount(cells[:, j], minlength=3) / len(cells) for j in range(3)]
        return float(np.abs(np.array(shares) - [0.8, 0.1, 0.1]).max())

    assert error(plain) > 0.03
    assert error(plain.calibrated(20_000, rng(2))) < 0.01


def test_moments_of_a_column_follow_from_its_probabilities():
    table = joint(0.5)
    model = chain([table], [1.0], scored=(True, False, False))
    x = vectors(model.columns, 0)
    expected = x.T @ (x * table.ravel()[:, None])
    for column, block in zip(model.columns, model.blocks(), strict=True):
        np.testing.assert_allclose(second_moments(column)[0], expected[block, block], atol=1e-12)


def test_cells_without_probability_are_not_drawn():
    table = joint(0.3)
    table[1] = 0
    table[:, 4] = 0
    table /= table.sum()
    for scored in [(False,) * 3, (True,) * 3]:
        model = chain([table], [1.0], scored=scored, floor=1e-4).calibrated(5000, rng(1))
        cells = model.sample(50_000, rng())[1]
        assert not (cells[:, 0] == 1).any()
        assert not (cells[:, 1] == 4).any()


def test_columns_with_one_cell_and_classes_that_are_never_drawn():
    columns = (
        uncalibrated_column(np.ones((2, 1)), np.zeros(1, dtype=int), scored=False),
        uncalibrated_column(np.ones((2, 1)), np.zeros(1, dtype=int), scored=True),
        uncalibrated_column(np.full((2, 2), 0.5), np.arange(2), scored=False),
    )
    factors = np.tile(np.eye(3) * 0.01, (2, 1, 1))
    model = ChainModel(np.array([0.0, 1.0]), columns, factors).calibrated(1000, rng())
    classes, cells = model.sample(1000, rng())
    assert (classes == 1).all()
    assert (cells[:, :2] == 0).all()
    assert set(cells[:, 2]) == {0, 1}


def test_a_chain_without_columns_draws_classes():
    model = ChainModel.from_arrays({"class_shares": np.array([0.5, 0.5]), "factors": np.zeros((2, 0, 0))}, ())
    classes, cells = model.calibrated(100, rng()).sample(1000, rng())
    assert set(classes) == {0, 1}
    assert cells.shape == (1000, 0)


def test_the_same_generator_gives_the_same_records():
    model = chain([joint(0.5)], [1.0], scored=(True, False, False)).calibrated(2000, rng(3))
    for first, second in zip(model.sample(500, rng(7)), model.sample(500, rng(7)), strict=True):
        np.testing.assert_array_equal(first, second)
    other = model.sample(500, rng(8))[1]
    assert (other != model.sample(500, rng(7))[1]).any()
    again = chain([joint(0.5)], [1.0], scored=(True, False, False)).calibrated(2000, rng(3))
    for name, array in model.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], array)


@pytest.fixture(scope="module")
def arrays():
    model = chain([joint(0.5), joint(0.4, seed=2)], [0.25, 0.75], scored=(True, False, False))
    return model.calibrated(2000, rng(3)).to_arrays()


def test_arrays_round_trip(arrays):
    model = ChainModel.from_arrays(arrays, CELLS)
    assert {name: array.tolist() for name, array in model.to_arrays().items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float64), np.dtype(np.int64)}
    model.sample(10, rng())


REQUIRED = ["class_shares", "factors"] + [
    f"column.{j}.{part}" for j in range(3) for part in ("probabilities", "groups", "tilts")
]


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_array_is_refused(arrays, name):
    with pytest.raises(ReleaseError, match="well-formed"):
        ChainModel.from_arrays({k: v for k, v in arrays.items() if k != name}, CELLS)


def refused(arrays, name, array):
    with pytest.raises(ReleaseError, match="well-formed"):
        ChainModel.from_arrays({**arrays, name: array}, CELLS)


@pytest.mark.parametrize("name", [*REQUIRED, "column.0.quantiles"])
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


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def test_values_that_no_chain_has_are_refused(arrays):
    shares, factors = arrays["class_shares"], arrays["factors"]
    refused(arrays, "class_shares", np.array([-0.25, 1.25]))
    refused(arrays, "class_shares", shares * 1.01)
    refused(arrays, "class_shares", np.array([1e308, 1e308]))
    probabilities = arrays["column.1.probabilities"]
    refused(arrays, "column.1.probabilities", probabilities * 0.99)
    swapped = changed(probabilities, (0, 0), -0.1)
    swapped[0, 1] += probabilities[0, 0] + 0.1
    refused(arrays, "column.1.probabilities", swapped)
    for groups in ([-1, 0, 0, 1, 2], [0, 0, 1, 2, 3], [0, 0, 0, 1, 1], [0, 0, 2, 2, 2], [9] * 5):
        refused(arrays, "column.1.groups", np.array(groups))
    refused(arrays, "column.1.tilts", changed(arrays["column.1.tilts"], (0, 0), -1e-9))
    refused(arrays, "column.0.quantiles", arrays["column.0.quantiles"][:, ::-1].copy())
    refused(arrays, "factors", changed(factors, (0, 0, 1), 1e-9))
    refused(arrays, "factors", changed(factors, (1, 2, 2), 0.0))
    refused(arrays, "factors", changed(factors, (1, 2, 2), -factors[1, 2, 2]))
    # a score where the factors have no room for it, and none where they have
    refused(arrays, "column.1.quantiles", arrays["column.0.quantiles"])
    rest = {name: a for name, a in arrays.items() if name != "column.0.quantiles"}
    with pytest.raises(ReleaseError, match="factors"):
        ChainModel.from_arrays(rest, CELLS)


@pytest.mark.parametrize("seed", range(20))
def test_absurd_factors_tilts_and_quantiles_still_give_cells(arrays, seed):
    wild = {name: array.copy() for name, array in arrays.items()}
    sizes = 10.0 ** rng(seed).choice([-300, -20, 0, 20, 300], 3)
    signs = rng(seed).choice([-1, 1], wild["factors"].shape)
    wild["factors"] = np.tril(wild["factors"] * sizes[0] * signs, -1)
    wild["factors"] += np.eye(wild["factors"].shape[1]) * sizes[1]
    wild["column.0.quantiles"] *= sizes[2]
    for j in range(3):
        wild[f"column.{j}.tilts"] *= rng(seed).choice([0, 1e-320, 1, 1e308], (2, 1))
    cells = ChainModel.from_arrays(wild, CELLS).sample(1000, rng())[1]
    assert ((cells >= 0) & (cells < CELLS)).all()


def test_many_classes_and_levels_are_set_up_quickly():
    k, g, n_columns = 300, 60, 4
    column = uncalibrated_column(np.full((k, g), 1 / g), np.arange(g), scored=False)
    factors = np.tile(np.eye(n_columns * g) / 8, (k, 1, 1))
    model = ChainModel(np.full(k, 1 / k), (column,) * n_columns, factors)
    assert model.sample(2000, rng())[1].max() < g
