"""Tables of many numeric columns: the statistic with a constant, and what is made of it, under noise and without."""

import numpy as np
import pytest

from harness.cases import TABLE, chain_columns, table_layout, table_rows
from harness.privacy import FakeRecords, StatisticCase, check_locality, check_norm_property, join, search_neighbours
from sfumato.data.engine import reduce
from sfumato.data.kinds import Boolean, Continuous
from sfumato.data.schema import Schema
from sfumato.encoders.grid import Grid
from sfumato.learners.marginals import ClassCellCounts, TableLayout, fit_marginals
from sfumato.learners.moments import ClassSecondMoments, column_models, expected_norm
from sfumato.learners.scored import ScoredMarginals, fit_scored_chain
from sfumato.mechanisms.queries import Noisy

CONSTANT = 0.5
N_COLUMNS = 30


def every_record():
    """One record per joint cell of the harness's table, in each class: the statistic sees no more than cells."""
    layout, rng = table_layout(), np.random.default_rng(0)
    numbers = [column.n_cells for column in layout.grid.columns]
    cells = np.stack([axis.ravel() for axis in np.meshgrid(*map(np.arange, numbers), indexing="ij")], axis=1)
    rows = layout.grid.rows(cells, rng)
    return [{name: codes[i : i + 1] for name, codes in rows.items()} for i in range(len(cells))]


class TestTheStatistic:
    """Its bounds, with a constant beside the record, searched over every pair of records there can be."""

    @pytest.mark.parametrize("clip_norm", [0.4, 1.0, 3.0])
    def test_no_pair_of_records_is_farther_apart_than_the_bound(self, clip_norm):
        statistic = ClassSecondMoments(table_layout(), chain_columns(scored=True), clip_norm, CONSTANT)
        # without clipping no record has to reach the bound
        attained = 0.95 if clip_norm <= 1 else 0.0
        case = StatisticCase("constant", statistic, every_record(), attained)
        check_norm_property(case)
        search_neighbours(case)
        check_locality(case, np.random.default_rng(0))

    def test_the_constant_is_clipped_with_the_record(self):
        layout, columns, clip_norm = table_layout(), chain_columns(scored=True), 1.0
        statistic = ClassSecondMoments(layout, columns, clip_norm, CONSTANT)
        norms = []
        for row in table_rows(50):
            k = int(row["member"][0])
            cells = [column.cells(row[column.name]) for column in layout.features]
            vector = statistic.vectors(k, cells)[0]
            norms.append(np.linalg.norm(vector))
            assert vector[-1] == CONSTANT
            added = reduce(statistic, FakeRecords([row])).open_in_mechanism()[k, -1]
            expected = CONSTANT * min(1.0, clip_norm / norms[-1]) ** 2 * vector
            np.testing.assert_allclose(added, expected, atol=1e-5 * max(1.0, clip_norm))
        assert max(norms) > clip_norm

    def test_products_with_the_constant_are_counts_and_sums(self):
        layout, columns = table_layout(), chain_columns(scored=True)
        rows = join(table_rows(50))
        statistic = ClassSecondMoments(layout, columns, 8.0, CONSTANT)
        total = reduce(statistic, FakeRecords([rows])).open_in_mechanism()
        np.testing.assert_allclose(total[:, -1, -1], CONSTANT**2 * np.bincount(rows["member"]), rtol=5e-6)
        for k in (0, 1):
            members = rows["member"] == k
            cells = [column.cells(rows[column.name][members]) for column in layout.features]
            sums = statistic.vectors(k, cells)[:, :-1].sum(axis=0)
            np.testing.assert_allclose(total[k, -1, :-1], CONSTANT * sums, rtol=5e-6, atol=5e-4)


def normal_table(sizes: tuple[int, int], shift: float = 1.0, stretch: float = 0.5, seed: int = 0):
    """Coded rows of correlated normal columns; class 1 is shifted and stretched in the first half of them."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    classes = np.repeat([0, 1], sizes)
    numbers = 0.6 * rng.standard_normal((n, 1)) + 0.8 * rng.standard_normal((n, N_COLUMNS))
    half = N_COLUMNS // 2
    numbers[classes == 1, :half] = shift + stretch * numbers[classes == 1, :half]
    codes = np.clip((numbers + 5) / 10, 0, 1)
    columns = {f"x{j}": Continuous(lower=-5, upper=5) for j in range(N_COLUMNS)}
    schema = Schema(columns={**columns, "y": Boolean()}, rows=max(n, 1))
    rows = {f"x{j}": codes[:, j] for j in range(N_COLUMNS)} | {"y": classes.astype(np.int32)}
    return TableLayout(Grid.of(schema, numeric_cells=32), N_COLUMNS), rows


def noisy_of(statistic, rows, noise_std: float, rng: np.random.Generator) -> Noisy:
    exact = reduce(statistic, FakeRecords([rows])).open_in_mechanism()
    noise = rng.standard_normal(exact.shape)
    if exact.ndim == 3:
        noise = (noise + np.swapaxes(noise, 1, 2)) / 2
    return Noisy(exact + noise_std * noise, noise_std, exact.ndim == 3)


def fitted(layout, rows, *, count_noise: float, moment_noise: float, seed: int = 1):
    """The chain of a table, and the located marginals that it started from; noise in units of a count."""
    rng = np.random.default_rng(seed)
    counts = noisy_of(ClassCellCounts(layout), rows, count_noise, rng)
    marginals = fit_marginals(counts, layout.features)
    scored = ScoredMarginals.of(counts, marginals, layout.features)
    columns = column_models(scored.marginals, layout.features, level_groups=8, numeric_groups=1)
    norm = expected_norm(columns)
    statistic = ClassSecondMoments(layout, columns, 1.5 * norm, 0.5 * norm)
    moments = noisy_of(statistic, rows, moment_noise * statistic.norm_bound, rng)
    return fit_scored_chain(moments, scored, columns, 0.5 * norm), scored


def check_is_a_model(chain) -> None:
    assert chain.class_shares.sum() == pytest.approx(1)
    assert np.isfinite(chain.factors).all()
    for column in chain.columns:
        assert (column.probabilities >= 0).all()
        np.testing.assert_allclose(column.probabilities.sum(axis=1), 1)
    classes, cells = chain.calibrated(500, np.random.default_rng(2)).sample(200, np.random.default_rng(3))
    assert set(classes.tolist()) <= {0, 1}
    assert ((cells >= 0) & (cells < [column.probabilities.shape[1] for column in chain.columns])).all()


def class_means(chain, layout) -> np.ndarray:
    """Mean value of every column in each class, in the columns' own units, shape (2, columns)."""
    middles = [column.codes(np.arange(column.n_cells), np.random.default_rng(0)) for column in layout.features]
    return np.stack([column.probabilities @ (10 * m - 5) for column, m in zip(chain.columns, middles, strict=True)], 1)


class TestWhatIsMadeOfIt:
    def test_without_noise_classes_are_where_they_are(self):
        layout, rows = normal_table((6_000, 3_000))
        chain, _ = fitted(layout, rows, count_noise=0.0, moment_noise=0.0)
        means = class_means(chain, layout)
        half = N_COLUMNS // 2
        # where classes differ, scores over both are no longer normal in either: the model bends there
        np.testing.assert_allclose(means[0, :half], 0, atol=0.3)
        np.testing.assert_allclose(means[1, :half], 1, atol=0.3)
        np.testing.assert_allclose(means[:, half:], 0, atol=0.12)
        check_is_a_model(chain)

    def test_the_constant_corrects_what_counts_could_not_see(self):
        layout, rows = normal_table((6_000, 3_000))
        clean, _ = fitted(layout, rows, count_noise=0.0, moment_noise=0.0)
        truth = class_means(clean, layout)
        errors = []
        for seed in range(3):
            chain, scored = fitted(layout, rows, count_noise=300.0, moment_noise=0.3, seed=seed)
            found = (chain_means_of(scored, layout), class_means(chain, layout))
            errors.append([np.sqrt(((means - truth)[1] ** 2).mean()) for means in found])
        before, after = np.mean(errors, axis=0)
        assert after < 0.6 * before

    @pytest.mark.parametrize("sizes", [(3_000, 1), (3_000, 0), (1, 1), (0, 0)])
    @pytest.mark.parametrize("noise", [0.0, 4.0])
    def test_tiny_classes(self, sizes, noise):
        layout, rows = normal_table(sizes)
        chain, _ = fitted(layout, rows, count_noise=noise * np.sqrt(N_COLUMNS), moment_noise=noise)
        check_is_a_model(chain)

    def test_a_class_without_records_is_drawn_near_the_pool(self):
        """Its noise says nothing, so its tables must not wander off by more than that noise could hide."""
        layout, rows = normal_table((6_000, 0))
        shifts = []
        for seed in range(5):
            chain, _ = fitted(layout, rows, count_noise=30.0, moment_noise=4.0, seed=seed)
            shifts.append(class_means(chain, layout)[0])
        np.testing.assert_allclose(np.mean(shifts, axis=0), 0, atol=0.1)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
    def test_noise_alone_makes_a_model(self, seed, scale):
        layout, rows = normal_table((0, 0))
        chain, _ = fitted(layout, rows, count_noise=scale, moment_noise=scale, seed=seed)
        check_is_a_model(chain)

    @pytest.mark.parametrize("seed", range(4))
    def test_noise_alone_in_the_moments_leaves_columns_independent(self, seed):
        """Once a class of few records got strong correlations here: from means and eigenvalues that were noise."""
        layout, rows = normal_table((0, 0))
        chain, _ = fitted(layout, rows, count_noise=100.0, moment_noise=100.0, seed=seed)
        for factor in chain.factors:
            moment = factor @ factor.T
            scale = np.sqrt(np.diag(moment))
            off = moment / np.outer(scale, scale) - np.eye(len(scale))
            assert np.sqrt((off**2).mean()) < 0.05


def chain_means_of(scored, layout) -> np.ndarray:
    """As `class_means`, of the tables before the moments were seen."""
    middles = [column.codes(np.arange(column.n_cells), np.random.default_rng(0)) for column in layout.features]
    return np.stack([t @ (10 * m - 5) for t, m in zip(scored.marginals.tables, middles, strict=True)], axis=1)


def test_the_harness_has_the_statistic():
    """The privacy harness runs its own checks on the vector with a constant."""
    from harness.cases import STATISTICS

    statistic = STATISTICS["second moments, constant"].statistic
    assert isinstance(statistic, ClassSecondMoments)
    assert statistic.constant > 0
    assert any(column.scored for column in statistic.columns)
    assert set(TABLE.released) == {"age", "city", "paid", "member"}
