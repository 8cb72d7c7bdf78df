"""Runs are drawn by their probabilities, evenly, and never one of probability 0."""

import numpy as np
import pytest
from scipy import stats

from fixtures.softmax import softmax
from sfumato.maths.constants import SAMPLING
from sfumato.models.tables.softmax_draws import Chances, chosen, likeness, systematic


def rng(seed=0):
    return np.random.default_rng(seed)


def probabilities(predictor, values, tilts):
    """P(run) of each row, shape (r, n)."""
    chances = Chances.of(predictor, values, tilts)
    return np.concatenate([block / sums for block, sums in zip(chances.blocks, chances.sums, strict=True)], axis=1)


def parts(n, r, q=3, size=1.0):
    return (
        size * rng(1).standard_normal((q, n)).astype(np.float32), rng(2).standard_normal((r, q)),
        rng(3).standard_normal(r),
    )  # fmt: skip


class TestSystematic:
    """Numbers that share out the unit interval, each of them uniform."""

    GROUPS = np.array([2, 0, 0, 2, 2, 1, 0, 2])
    KEYS = np.array([0.3, 0.1, 0.1, -2.0, 5.0, 0.0, 9.0, 0.3])

    @pytest.mark.parametrize("keys", [None, KEYS], ids=["no keys", "keys"])
    def test_each_number_is_uniform(self, keys):
        numbers = np.array([systematic(self.GROUPS, rng(seed), keys) for seed in range(4_000)])
        assert numbers.min() >= 0
        assert numbers.max() < 1
        for column in numbers.T:
            # 16 tests: one in 6,000 fails where all is well
            assert stats.kstest(column, "uniform").pvalue > 1e-5

    def test_groups_are_independent(self):
        numbers = np.array([systematic(self.GROUPS, rng(seed), self.KEYS) for seed in range(4_000)])
        apart = self.GROUPS[:, None] != self.GROUPS
        assert np.abs(np.corrcoef(numbers.T))[apart].max() < 5 / np.sqrt(4_000)

    @pytest.mark.parametrize("n", [10, 100, 4_096])
    def test_a_group_shares_out_the_interval(self, n):
        for seed in range(5):
            numbers = np.sort(systematic(np.zeros(n, dtype=int), rng(seed)))
            # the three gaps of a golden sequence are within a factor of 2.7 of 1/n
            gaps = np.diff(numbers, append=numbers[0] + 1)
            assert 0.35 / n < gaps.min() <= gaps.max() < 2.7 / n
            assert np.abs(numbers - (np.arange(n) + 0.5) / n).max() < 3 / n

    def test_neighbours_by_their_key_share_it_out_too(self):
        n = 4_096
        keys = rng(1).standard_normal(n)
        numbers = systematic(np.arange(n) % 2, rng(), keys)
        for group in (0, 1):
            members = np.flatnonzero(np.arange(n) % 2 == group)
            for some in np.array_split(members[np.argsort(keys[members])], 32):
                assert np.abs(np.sort(numbers[some]) - (np.arange(64) + 0.5) / 64).max() < 3 / 64

    @pytest.mark.parametrize("keys", ["apart", "float32", "few", "one"])
    @pytest.mark.parametrize("n_groups", [1, 3, 70_000])
    def test_the_order_is_by_group_then_key_then_chance(self, keys, n_groups):
        n = 16_384
        groups, drawn = rng(1).integers(0, n_groups, n), rng(2).standard_normal(n)
        key = {"apart": drawn, "float32": drawn.astype(np.float32), "few": drawn.round(), "one": 0 * drawn}[keys]
        twin = rng(3)
        order = np.lexsort((twin.random(n), key, groups))
        starts = twin.random(int(groups.max()) + 1)
        expected = (starts[groups[order]] + (np.sqrt(5) - 1) / 2 * np.arange(n)) % 1.0
        np.testing.assert_array_equal(systematic(groups, rng(3), key)[order], expected)

    def test_none_and_one(self):
        assert systematic(np.zeros(0, dtype=int), rng()).shape == (0,)
        assert systematic(np.array([7]), rng()).shape == (1,)


class TestProbabilities:
    @pytest.mark.parametrize("size", [0.0, 1.0, 100.0])
    @pytest.mark.parametrize("n", [1, 2_047, 2_048, 2_049, 5_000])
    def test_they_are_a_softmax(self, n, size):
        for predictor, values, tilts in (parts(n, 6, size=size), parts(n, 1, size=size), parts(n, 300, size=size)):
            found, expected = probabilities(predictor, values, tilts), softmax(predictor, values, tilts)
            np.testing.assert_allclose(found, expected, rtol=1e-5 * max(size, 1), atol=1e-30)
            chances = Chances.of(predictor, values, tilts)
            for run in (0, len(tilts) - 1):
                np.testing.assert_array_equal(chances.of_run(run), found[run])

    def test_of_no_rows_there_are_none(self):
        chances = Chances.of(*parts(0, 6))
        assert chances.blocks == chances.sums == ()
        assert chances.drawn(np.zeros(0)).shape == (0,)

    def test_factors_are_in_the_sums(self):
        predictor, values, tilts = parts(2_500, 4)
        chances, factors = Chances.of(predictor, values, tilts), np.array([0.1, 2.0, 1.0, 5.0])
        found = np.concatenate(list(chances.sums_with(factors))) / np.concatenate(chances.sums)
        np.testing.assert_allclose(found, factors @ softmax(predictor, values, tilts), rtol=1e-5)

    def test_runs_are_left_out_but_where_there_is_no_other(self):
        predictor, values, tilts = parts(2_500, 4)
        values[:2], tilts[:2] = 0, -1e6
        predictor[:, 7], values[3, 0] = [1e6, 0, 0], 1.0
        values[2] = 0
        expected = softmax(predictor, values, tilts)
        expected[3] = 0
        alone = expected.sum(axis=0) == 0
        assert alone[7]
        expected[3, alone] = 1.0
        chances = Chances.of(predictor, values, tilts).without(np.array([3]))
        found = np.concatenate([block / sums for block, sums in zip(chances.blocks, chances.sums, strict=True)], axis=1)
        np.testing.assert_allclose(found, expected / expected.sum(axis=0), rtol=1e-5, atol=1e-30)

    @pytest.mark.parametrize("large", [0, 1_000, 4_000])
    def test_one_large_logit_changes_no_other_row(self, large):
        predictor, values, tilts = parts(4_100, 5)
        predictor[:, large] *= 1e4
        found = probabilities(predictor, values, tilts)
        np.testing.assert_allclose(found, softmax(predictor, values, tilts), rtol=1e-5, atol=1e-30)


class TestDrawn:
    @pytest.mark.parametrize("size", [1.0, 60.0])
    @pytest.mark.parametrize("r", [1, 2, 7, 255, 256, 300])
    def test_they_are_the_inverse_of_the_cumulated_chances(self, r, size):
        n = 5_000
        predictor, values, tilts = parts(n, r, size=size)
        numbers = rng(4).random(n)
        cumulative = np.cumsum(softmax(predictor, values, tilts), axis=0)
        expected = np.minimum((cumulative <= numbers).sum(axis=0), r - 1)
        found = Chances.of(predictor, values, tilts).drawn(numbers)
        # where a number is not within rounding of a bound
        clear = np.abs(cumulative - numbers).min(axis=0) > 1e-4
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(found[clear], expected[clear])

    def test_factors_multiply_chances(self):
        n, factors = 5_000, np.array([0.1, 2.0, 1.0, 5.0])
        predictor, values, tilts = parts(n, 4)
        numbers = rng(4).random(n)
        found = Chances.of(predictor, values, tilts).drawn(numbers, factors)
        expected = Chances.of(predictor, values, tilts + np.log(factors)).drawn(numbers)
        assert (found == expected).mean() > 0.999

    @pytest.mark.parametrize("number", [0.0, 1e-30, 0.5, 1 - 1e-9, np.nextafter(1.0, 0.0)])
    @pytest.mark.parametrize("size", [1.0, 60.0])
    def test_a_run_of_probability_0_is_never_drawn(self, number, size):
        n = 3_000
        predictor, values, tilts = parts(n, 9, size=size)
        tilts[[0, 1, 4, 8]] = -1e6
        runs = Chances.of(predictor, values, tilts).drawn(np.full(n, number))
        assert not np.isin(runs, [0, 1, 4, 8]).any()

    def test_one_run_that_has_all(self):
        tilts = np.full(5, -1e6)
        tilts[2] = 0.0
        numbers = np.append(rng().random(100), np.nextafter(1.0, 0.0))
        assert (Chances.of(np.zeros((0, 101), np.float32), np.zeros((5, 0)), tilts).drawn(numbers) == 2).all()

    @pytest.mark.parametrize("n", [200, SAMPLING.block_rows])
    def test_raking_brings_rows_to_shares(self, n):
        """As the same steps over normalised chances in 64 bits do."""
        predictor, values, tilts = parts(n, 6)
        shares = rng(5).dirichlet(np.full(6, 3.0))
        expected = softmax(predictor, values, tilts)
        before = np.abs(expected.mean(axis=1) - shares).sum()
        for _ in range(3):
            ratio = np.clip(shares / expected.mean(axis=1), 0.25, 4) ** (n / (n + 12))
            expected *= ratio[:, None]
            expected /= expected.sum(axis=0)
        chances = Chances.of(predictor, values, tilts)
        found = chances.raking(shares)[:, None] * softmax(predictor, values, tilts)
        found /= found.sum(axis=0)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        assert np.abs(found.mean(axis=1) - shares).sum() < 0.1 * before


class TestChosen:
    def test_runs_are_shared_out_as_the_chances_say(self):
        """Rows of like predictors: each block has the shares that its softmax says, to a few rows."""
        one, values, tilts = parts(1, 6, q=2)
        shares = softmax(one, values, tilts)[:, 0]
        for n in (1_000, SAMPLING.block_rows):
            runs = chosen(np.repeat(one, n, axis=1), values, tilts, rng())
            assert np.abs(np.bincount(runs, minlength=6) - shares * n).max() < 6

    def test_each_row_has_its_own_law(self):
        predictor, values, tilts = parts(40, 4)
        expected, n = softmax(predictor, values, tilts), 3_000
        runs = np.array([chosen(predictor, values, tilts, rng(seed)) for seed in range(n)])
        counts = np.stack([(runs == run).sum(axis=0) for run in range(4)])
        assert (np.abs(counts / n - expected) < 5 * np.sqrt(expected * (1 - expected) / n) + 1 / n).all()

    @pytest.mark.parametrize("n", [0, 1])
    def test_none_and_one(self, n):
        predictor, values, tilts = parts(n, 4)
        for shares in (None, np.full(4, 0.25)):
            assert chosen(predictor, values, tilts, rng(), shares).shape == (n,)

    def test_neighbours_are_alike_in_what_varies_most(self):
        predictor = np.array([[0.0, 1.0, 2.0], [5.0, -5.0, 0.0], [np.inf, 0.0, 1.0]], dtype=np.float32)
        np.testing.assert_array_equal(likeness(predictor), predictor[1])
        assert likeness(np.zeros((0, 3), np.float32)) is None
