"""A chain given cells: the closed-form probabilities are those of what the chain draws."""

import numpy as np
import pytest

from fixtures.old_tables import second_moments, uncalibrated_column
from sfumato.models.tables.gaussian_chain import ChainModel, ConditionalChain, given_first

CELLS = (3, 5, 4)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module", params=[(False, False, False), (True, False, True)], ids=["levels", "scores"])
def model(request):
    """Two classes, three columns, moments between all of them; calibrated."""
    columns = tuple(
        uncalibrated_column(rng(j).dirichlet(np.full(c, 4.0), 2), np.zeros(c, int) if s else np.arange(c), scored=s)
        for j, (c, s) in enumerate(zip(CELLS, request.param, strict=True))
    )
    d = sum(column.width for column in columns)
    factors = []
    for k in range(2):
        own = np.zeros((d, d))
        start = 0
        for column in columns:
            block = slice(start, start + column.width)
            own[block, block] = second_moments(column)[k]
            start += column.width
        values, vectors = np.linalg.eigh(own)
        root = vectors * np.sqrt(np.maximum(values, 1e-6)) @ vectors.T
        mixed = np.eye(d) + 0.12 * (lambda a: a + a.T)(rng(5 + k).normal(size=(d, d))) / np.sqrt(d)
        factors.append(np.linalg.cholesky(root @ mixed @ root + 1e-6 * np.eye(d)))
    return ChainModel(np.array([0.3, 0.7]), columns, np.stack(factors)).calibrated(20_000, rng(1))


@pytest.mark.parametrize("given", [(0,), (2,), (1, 2), (0, 2), (0, 1, 2)], ids=str)
def test_probabilities_are_those_of_the_draws(model, given):
    moved, order = given_first(model, given)
    n = 200_000
    classes, cells = moved.sample(n, rng())
    for k in (0, 1):
        members = cells[classes == k][:, : len(given)]
        for cell in (np.zeros(len(given), int), np.full(len(given), 2)):
            conditional = ConditionalChain.of(moved, order, dict(zip(given, cell.tolist(), strict=True)))
            expected = conditional.probabilities[k]
            share = (members == cell).all(axis=1).mean()
            # 4.5 standard errors: 40 comparisons fail by chance once in 3,000 runs
            assert abs(share - expected) < 4.5 * np.sqrt(max(expected, 1e-4) / len(members))


def test_the_moments_do_not_depend_on_the_order(model):
    moved, order = given_first(model, (2,))
    assert order == (2, 0, 1)
    blocks = model.blocks()
    entries = np.concatenate([np.arange(blocks[j].start, blocks[j].stop) for j in order])
    for old, new in zip(model.factors, moved.factors, strict=True):
        np.testing.assert_allclose(new @ new.T, (old @ old.T)[np.ix_(entries, entries)], atol=1e-12)
        assert (np.diagonal(new) > 0).all()
        assert not np.triu(new, 1).any()


def test_probabilities_of_all_cells_sum_to_one(model):
    moved, order = given_first(model, (2,))
    total = sum(ConditionalChain.of(moved, order, {2: c}).probabilities for c in range(CELLS[2]))
    np.testing.assert_allclose(total, 1.0, atol=1e-9)


def test_first_columns_need_no_new_order(model):
    assert given_first(model, (0,))[0] is model
    assert given_first(model, ())[0] is model


@pytest.mark.parametrize("seed", range(10))
def test_absurd_factors_still_give_cells(model, seed):
    sizes = 10.0 ** rng(seed).choice([-300, -20, 0, 20, 300], 2)
    factors = np.tril(model.factors * sizes[0], -1) + np.eye(model.factors.shape[1]) * sizes[1]
    moved, order = given_first(ChainModel(model.class_shares, model.columns, factors), (2,))
    conditional = ConditionalChain.of(moved, order, {2: 1})
    shares = conditional.posterior(model.class_shares)
    if shares is not None:
        cells = conditional.sample(500, rng(), shares)[1]
        assert ((cells >= 0) & (cells < CELLS)).all()
        assert (cells[:, 2] == 1).all()
