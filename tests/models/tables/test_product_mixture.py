"""Draws of a mixture of products have its law, evenly; its moments are those of its rows, by enumeration."""

import itertools

import numpy as np
import pytest
from scipy import stats

from sfumato.models.tables.product_mixture import ProductMixture

SIZES = (3, 2, 4)


def rng(seed=0):
    return np.random.default_rng(seed)


def mixture(components=3, sizes=SIZES):
    weights = rng(1).dirichlet(np.full(components, 2.0))
    return ProductMixture(weights, tuple(rng(2 + j).dirichlet(np.ones(r), components).T for j, r in enumerate(sizes)))


def enumerated(law):
    """P(codes), shape (*sizes), row by row."""
    found = np.zeros([len(table) for table in law.tables])
    for codes in itertools.product(*map(range, found.shape)):
        found[codes] = sum(
            weight * np.prod([table[code, k] for code, table in zip(codes, law.tables, strict=True)])
            for k, weight in enumerate(law.weights)
        )
    return found


def counted(codes, sizes=SIZES):
    flat = np.ravel_multi_index(tuple(codes.T), sizes)
    return np.bincount(flat, minlength=int(np.prod(sizes))).reshape(sizes)


class TestMoments:
    def test_they_are_those_of_the_law_between_columns(self):
        law = mixture()
        functions = [rng(9 + j).standard_normal((r, 2 + j)) for j, r in enumerate(SIZES)]
        joint, ends = enumerated(law), np.cumsum([0, 2, 3, 4])
        assert joint.sum() == pytest.approx(1.0)
        found = law.moments(functions)
        assert found.shape == (9, 9)
        for i, j in itertools.permutations(range(3), 2):
            pair = joint.sum(axis=3 - i - j)
            expected = functions[i].T @ (pair if i < j else pair.T) @ functions[j]
            np.testing.assert_allclose(found[ends[i] : ends[i + 1], ends[j] : ends[j + 1]], expected, atol=1e-12)

    def test_columns_of_one_component_are_independent(self):
        law = mixture(components=1)
        functions = [np.eye(r) for r in SIZES]
        means = np.concatenate([table[:, 0] for table in law.tables])
        np.testing.assert_allclose(law.moments(functions), np.outer(means, means), atol=1e-12)

    def test_a_column_without_functions_has_no_moments(self):
        functions = [np.eye(3), np.zeros((2, 0)), np.eye(4)]
        found, full = mixture().moments(functions), mixture().moments([np.eye(r) for r in SIZES])
        np.testing.assert_array_equal(found[:3, 3:], full[:3, 5:])


class TestDraws:
    @pytest.mark.parametrize("n", [5_000, 200_000])
    def test_rows_have_the_joint_law(self, n):
        law = mixture()
        expected, counts = enumerated(law).ravel() * n, counted(law.draw(n, rng())).ravel()
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 2).all()
        # rows of a component are shared out, so that they vary less than independent ones
        assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.ppf(0.9999, expected.size - 1)

    def test_few_rows_have_the_joint_law_too(self):
        law, n = mixture(), 12_000
        for size in (2, 5):
            codes = np.concatenate([law.draw(size, rng(seed)) for seed in range(n // size)])
            expected, counts = enumerated(law).ravel() * len(codes), counted(codes).ravel()
            assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.ppf(0.9999, expected.size - 1)

    def test_each_row_has_the_law_alone(self):
        """Of a few rows, the first and the last: systematic draws are not to favour anything."""
        law, n = mixture(), 4_000
        rows = np.array([law.draw(7, rng(seed)) for seed in range(n)])
        expected = enumerated(law).ravel() * n
        for place in (0, 6):
            counts = counted(rows[:, place]).ravel()
            assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.ppf(0.9999, expected.size - 1)

    def test_rows_are_independent_of_each_other_but_for_what_is_shared_out(self):
        law, n = mixture(), 3_000
        rows = np.array([law.draw(400, rng(seed))[:2, 0] for seed in range(n)])
        together = np.zeros((3, 3))
        np.add.at(together, (rows[:, 0], rows[:, 1]), 1)
        alone = enumerated(law).sum(axis=(1, 2))
        expected = np.outer(alone, alone) * n
        assert ((together - expected) ** 2 / expected).sum() < stats.chi2.ppf(0.9999, 8)

    @pytest.mark.parametrize("n", [1, 10, 999, 20_000])
    def test_shares_are_met_up_to_one_row(self, n):
        """Of components, by a column that tells them; and of a column's codes in each."""
        of_code = mixture(components=4, sizes=(5,)).tables[0]
        law = ProductMixture(np.array([0.4, 0.3, 0.2, 0.1]), (np.eye(4), of_code))
        codes = law.draw(n, rng(3))
        counts = np.bincount(codes[:, 0], minlength=4)
        assert (np.abs(counts - n * law.weights) < 1 + 1e-9).all()
        for k, count in enumerate(counts):
            shares = np.bincount(codes[codes[:, 0] == k, 1], minlength=5)
            cumulative = np.cumsum(shares) - count * np.cumsum(of_code[:, k])
            assert (np.abs(cumulative) < 1 + 1e-9).all()
            assert (np.abs(shares - count * of_code[:, k]) < 2).all()

    def test_rows_are_in_no_order(self):
        codes = ProductMixture(np.full(3, 1 / 3), (np.eye(3),)).draw(4_000, rng())[:, 0]
        halves = codes[:2_000], codes[2_000:]
        assert abs(halves[0].mean() - halves[1].mean()) < 5 * codes.std() / np.sqrt(1_000)
        assert abs(np.corrcoef(codes[1:], codes[:-1])[0, 1]) < 5 / np.sqrt(4_000)

    def test_what_has_no_share_is_not_drawn(self):
        weights = np.array([0.0, 0.6, 0.0, 0.4, 0.0])
        table = np.array([[1, 0, 1, 0, 1], [0, 0.5, 0, 0, 0], [0, 0, 0, 0.7, 0], [0, 0.5, 0, 0.3, 0], [0] * 5])
        codes = ProductMixture(weights, (table, table)).draw(50_000, rng())
        assert set(np.unique(codes)) == {1, 2, 3}
        apart = np.isin(codes, [1]).any(axis=1) & np.isin(codes, [2]).any(axis=1)
        assert not apart.any()

    def test_weights_that_rounding_leaves_below_1(self):
        law = ProductMixture(np.full(10, 0.1) * (1 - 1e-9), (np.eye(10),))
        codes = law.draw(100_000, rng())[:, 0]
        assert (np.abs(np.bincount(codes, minlength=10) - 10_000) <= 1).all()
        weights = np.append(np.full(10, 0.1) * (1 - 1e-5), 0.0)  # of the last none is to be drawn for all that
        codes = ProductMixture(weights, (np.eye(11),)).draw(400_000, rng())[:, 0]
        assert set(np.unique(codes)) == set(range(10))

    @pytest.mark.parametrize("n", [0, 1])
    def test_none_and_one(self, n):
        codes = mixture().draw(n, rng())
        assert codes.shape == (n, 3)
        assert codes.dtype == np.int64
        assert ((codes >= 0) & (codes < SIZES)).all()

    def test_no_columns(self):
        assert ProductMixture(np.ones(1), ()).draw(5, rng()).shape == (5, 0)

    def test_the_same_generator_gives_the_same_rows(self):
        law = mixture()
        np.testing.assert_array_equal(law.draw(500, rng(7)), law.draw(500, rng(7)))
        assert (law.draw(500, rng(8)) != law.draw(500, rng(7))).any()
