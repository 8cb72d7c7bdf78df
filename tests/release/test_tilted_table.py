"""Samples of a chain as rows of a table: of the law, of told classes each in their place, and given codes."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from fixtures.softmax import CELLS, ORDER, counted_law, joint_law, law_given, softmax_chain
from sfumato.columns import Categorical, Integer
from sfumato.errors import ConfigError, ReleaseError
from sfumato.maths.constants import SAMPLING
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.release.tilted_table import GivenSoftmax, TableSoftmax, Tilt, TiltedTable, written_tilts
from sfumato.schema.schema import Schema

NAMES = ("shape", "colour", "side")
SCHEMA = Schema(
    columns={
        name: Categorical(categories=tuple(map(str, range(n))), other="0") for name, n in zip(NAMES, CELLS, strict=True)
    },
    rows=100,
)
NO_EDGES = {"edges": np.zeros(0, dtype=np.int64)}
N = 8_192
either = pytest.mark.parametrize("products", [False, True], ids=["features alone", "products"])
any_target = pytest.mark.parametrize("target", NAMES)


def rng(seed=0):
    return np.random.default_rng(seed)


def table(target: str | None = None, chain: Any = None, *, products: bool = False) -> TableSoftmax:
    chain = softmax_chain(products=products) if chain is None else chain
    return TableSoftmax(SCHEMA, {} if target is None else {"target": target}, {**chain.to_arrays(), **NO_EDGES})


def cells_of(rows):
    assert list(rows) == list(NAMES)
    cells = np.stack([rows[name] for name in NAMES], axis=1).astype(np.int64)
    assert ((cells >= 0) & (cells < CELLS)).all()
    return cells


def assert_law(found, expected, n):
    assert (np.abs(found - expected) < 5 * np.sqrt(1.2 * expected / n) + 3 / n).all()
    for axis in range(3):
        shares, wanted = found.sum(axis=axis), expected.sum(axis=axis)
        assert (np.abs(shares - wanted) < 5 * np.sqrt(1.2 * wanted / n) + 3 / n).all()


def told(target, n=2 * N, seed=5):
    """Classes of rows in no order, and some of them often."""
    k = CELLS[NAMES.index(target)]
    return rng(seed).choice(k, n, p=np.arange(1, k + 1) / np.arange(1, k + 1).sum())


class TestRows:
    @either
    @pytest.mark.parametrize("target", [None, "colour"])
    def test_of_no_told_classes_have_the_joint_law(self, target, products):
        rows = table(target, products=products).rows(100_000, rng())
        found, expected = counted_law(cells_of(rows)), joint_law(softmax_chain(products=products))
        assert_law(found, expected, 100_000)

    @either
    @any_target
    def test_of_told_classes_have_the_law_of_each_in_their_order(self, target, products):
        classes, at = told(target), NAMES.index(target)
        cells = cells_of(table(target, products=products).rows(classes.size, rng(1), classes))
        np.testing.assert_array_equal(cells[:, at], classes)
        law = joint_law(softmax_chain(products=products))
        for k in range(CELLS[at]):
            some = cells[classes == k]
            assert_law(counted_law(some), law_given(law, {at: k}), len(some))

    @either
    @any_target
    def test_of_told_classes_and_given_codes_have_the_law_given_both(self, target, products):
        classes, at = told(target), NAMES.index(target)
        law = joint_law(softmax_chain(products=products))
        for name in NAMES:
            if name == target:
                continue
            j = NAMES.index(name)
            given = table(target, products=products).given({name: 2.0})
            cells = cells_of(given.rows(classes.size, rng(2), classes))
            np.testing.assert_array_equal(cells[:, at], classes)
            assert (cells[:, j] == 2).all()
            for k in range(CELLS[at]):
                some = cells[classes == k]
                assert_law(counted_law(some), law_given(law, {at: k, j: 2}), len(some))

    @either
    @pytest.mark.parametrize("codes", [{"side": 3.0}, {"colour": 4.0}, {"shape": 0.0, "colour": 1.0}], ids=str)
    def test_given_codes_have_the_law_given_these(self, codes, products):
        """Classes are drawn as the given codes say, which is not by their shares."""
        law = joint_law(softmax_chain(products=products))
        cells = cells_of(table("shape", products=products).given(codes).rows(N, rng(), None))
        given = {NAMES.index(name): int(code) for name, code in codes.items()}
        assert_law(counted_law(cells), law_given(law, given), N)

    @any_target
    def test_of_told_classes_are_in_no_other_order(self, target):
        """Rows of one class are not sorted by what else they are."""
        classes = np.zeros(8_000, dtype=np.int64)
        cells = cells_of(table(target).rows(8_000, rng(), classes))
        for j in range(3):
            if NAMES[j] != target:
                first, second = cells[:4_000, j], cells[4_000:, j]
                assert abs(first.mean() - second.mean()) < 5 * cells[:, j].std() / np.sqrt(2_000)

    @any_target
    @pytest.mark.parametrize("n", [0, 1, 3, SAMPLING.block_rows + 1])
    def test_any_number_of_told_classes(self, n, target):
        classes = told(target, n)
        cells = cells_of(table(target).rows(n, rng(), classes))
        assert cells.shape == (n, 3)
        np.testing.assert_array_equal(cells[:, NAMES.index(target)], classes)

    @any_target
    def test_the_same_generator_gives_the_same_rows_of_told_classes(self, target):
        classes, sampler = told(target, 500), table(target)
        first, again, other = (cells_of(sampler.rows(500, rng(seed), classes)) for seed in (7, 7, 8))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
        given = sampler.given({})
        first, again = (cells_of(given.rows(500, rng(7), classes)) for _ in range(2))
        np.testing.assert_array_equal(first, again)

    def test_classes_matter(self):
        """The tests of told classes could not fail if columns had nothing to do with each other."""
        law = joint_law(softmax_chain())
        for at in range(3):
            laws = [law_given(law, {at: k}).sum(axis=at) for k in (1, 2)]
            assert np.abs(laws[0] - laws[1]).sum() > 0.3


class TestClasses:
    @any_target
    def test_all_are_possible_and_of_a_given_one_no_other(self, target):
        sampler = table(target)
        assert sampler.class_column == target
        assert sampler.possible.tolist() == [True] * CELLS[NAMES.index(target)]
        given = sampler.given({target: 1.0})
        assert given.possible.tolist() == [k == 1 for k in range(CELLS[NAMES.index(target)])]
        other = next(name for name in NAMES if name != target)
        assert sampler.given({other: 1.0}).possible.all()

    def test_one_without_a_share_is_not_possible(self):
        """Rows of it cannot be drawn: who asks for some is to be told before."""
        chain = softmax_chain()
        chain.columns[1].shares[:] = [0.5, 0.0, 0.25, 0.25, 0.0]
        sampler = table("colour", chain)
        assert sampler.possible.tolist() == [True, False, True, True, False]
        assert sampler.given({"side": 1.0}).possible.tolist() == [True, False, True, True, False]
        cells = cells_of(sampler.rows(5_000, rng()))
        assert not np.isin(cells[:, 1], [1, 4]).any()
        with pytest.raises(ConfigError, match="'colour'"):
            sampler.rows(3, rng(), np.array([0, 1, 2]))
        classes = np.repeat([0, 2, 3], 100)
        np.testing.assert_array_equal(cells_of(sampler.rows(300, rng(), classes))[:, 1], classes)

    def test_without_a_target_there_is_one(self):
        sampler = table()
        assert sampler.class_column is None
        assert sampler.possible.tolist() == [True]
        assert sampler.given({"side": 1.0}).possible.tolist() == [True]

    def test_a_number_has_none(self):
        chain = softmax_chain()
        columns = dict(SCHEMA.columns) | {"side": Integer(lower=0, upper=3)}
        schema = Schema(columns=columns, rows=100)
        parameters = {**chain.to_arrays(), "edges": np.arange(5)}
        sampler = TableSoftmax(schema, {"target": "side"}, parameters)
        assert sampler.class_column is None
        assert sampler.possible.tolist() == [True]
        given = sampler.given({"side": 1 / 3})
        assert isinstance(given, GivenSoftmax)
        rows = given.rows(50, rng())
        assert set(np.round(3 * rows["side"], 9)) == {1.0}

    @pytest.mark.parametrize("target", ["", "form", "0", "columns"])
    def test_another_target_is_refused(self, target):
        with pytest.raises(ReleaseError, match="target"):
            table(target)


class TestGiven:
    def test_codes_that_no_row_has_are_refused_by_name(self):
        chain = softmax_chain()
        chain.columns[1].shares[:] = [0.5, 0.0, 0.25, 0.25, 0.0]
        with pytest.raises(ConfigError, match="'shape', 'colour'") as caught:
            table("shape", chain).given({"shape": 1.0, "colour": 4.0})
        assert "4" not in str(caught.value)

    def test_other_codes_take_their_place(self):
        sampler = table("shape")
        again = sampler.given({"colour": 1.0}).given({"side": 2.0})
        cells = cells_of(again.rows(3_000, rng(), None))
        assert (cells[:, 2] == 2).all()
        assert set(cells[:, 1]) == set(range(5))

    def test_rows_are_as_wide_as_the_sampler_says(self):
        sampler = table("shape", products=True)
        assert sampler.width == 6 + 2 * 3 + 3
        assert sampler.given({"side": 2.0}).width == sampler.width


class TestFollowed:
    @staticmethod
    def plain(products=True):
        return table("shape", softmax_chain(order=(0, 1, 2), products=products))

    @either
    def test_rows_follow_codes_of_the_class_too_by_the_law(self, products):
        sampler, classes = self.plain(products), told("shape", 60_000)
        law = joint_law(softmax_chain(order=(0, 1, 2), products=products))
        codes = {"shape": classes.astype(float)}
        rows = sampler.followed(codes, rng())
        cells = cells_of(rows)
        np.testing.assert_array_equal(cells[:, 0], classes)
        for k in range(3):
            some = cells[classes == k]
            assert_law(counted_law(some), law_given(law, {0: k}), len(some))

    def test_codes_of_two_and_a_rough_one(self):
        sampler, n = self.plain(), 20_000
        law = joint_law(softmax_chain(order=(0, 1, 2), products=True))
        codes = {"shape": np.full(n, 2.0), "colour": np.full(n, 3.0)}
        exact = cells_of(sampler.followed(codes, rng()))
        assert (exact[:, :2] == [2, 3]).all()
        assert_law(counted_law(exact), law_given(law, {0: 2, 1: 3}), n)
        rough = cells_of(sampler.followed({"shape": codes["shape"]}, rng(), {"colour": codes["colour"]}))
        assert set(rough[:, 1]) == {3, 4}  # the cells of its run
        assert (rough[:, 0] == 2).all()

    def test_codes_that_rows_never_have(self):
        sampler, n = self.plain(), 5_000
        rows = sampler.followed({"shape": np.zeros(n)}, rng(), never={"colour": [2.0]})
        assert set(cells_of(rows)[:, 1]) == {0, 1, 3, 4}

    def test_columns_that_are_not_drawn_first_are_refused(self):
        sampler = table("shape")
        assert ORDER.tolist() == [2, 0, 1]
        for n in (1, 2):
            with pytest.raises(ReleaseError, match="first"):
                sampler.require_first(n)
        sampler.require_first(3)
        sampler.require_first(0)
        with pytest.raises(ReleaseError, match="first"):
            sampler.followed({"shape": np.zeros(5)}, rng())
        for n in range(4):
            self.plain().require_first(n)


class TestTilted:
    """The law is the chain's times exp(λ) of a row's cell, up to a factor."""

    MULTIPLIERS = rng(4).uniform(-1, 1, CELLS[:2])

    def tilted(self, products):
        query = MarginalQuery(tables=((Cells("shape", 3), Cells("colour", 5)),))
        documents, arrays = written_tilts([Tilt(query, self.MULTIPLIERS.ravel())])
        parameters = {**softmax_chain(products=products).to_arrays(), **NO_EDGES, **arrays}
        return TiltedTable(SCHEMA, {"target": "side", "tilts": documents}, parameters)

    def law(self, products):
        law = joint_law(softmax_chain(products=products)) * np.exp(self.MULTIPLIERS)[:, :, None]
        return law / law.sum()

    @either
    def test_rows_have_the_tilted_law(self, products):
        found = counted_law(cells_of(self.tilted(products).rows(60_000, rng())))
        assert_law(found, self.law(products), 60_000)
        assert np.abs(self.law(products) - joint_law(softmax_chain(products=products))).sum() > 0.2

    @either
    def test_rows_of_told_classes_have_that_of_each_in_their_order(self, products):
        classes = told("side")
        cells = cells_of(self.tilted(products).rows(classes.size, rng(1), classes))
        np.testing.assert_array_equal(cells[:, 2], classes)
        for k in range(4):
            some = cells[classes == k]
            assert_law(counted_law(some), law_given(self.law(products), {2: k}), len(some))

    @either
    def test_rows_of_given_codes_have_the_law_given_these(self, products):
        cells = cells_of(self.tilted(products).given({"colour": 3.0}).rows(N, rng(2)))
        assert_law(counted_law(cells), law_given(self.law(products), {1: 3}), N)


@pytest.mark.parametrize("part", ["first", "second"])
def test_a_stranger_cannot_have_products_of_what_is_drawn_later(part):
    chain = softmax_chain(products=True)
    column = chain.columns[1]
    wrong = dataclasses.replace(column.products, **{part: column.products.first + 2})
    columns = (chain.columns[0], dataclasses.replace(column, products=wrong), chain.columns[2])
    with pytest.raises(ReleaseError, match="well-formed"):
        table("shape", dataclasses.replace(chain, columns=columns))
