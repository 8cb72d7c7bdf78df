"""Scores of a regression: their norm in whole numbers, a record by itself, forms of files, strangers' parts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cases import table_rows
from harness.privacy import join
from harness.question_cases import REGRESSIONS, TABLE, aimed_scores
from sfumato.errors import ReleaseError
from sfumato.measurements.cells import BaseCells
from sfumato.measurements.query_form import QueryArrays, read_query, write_query
from sfumato.measurements.score_query import LARGEST_NUMBER, MOST_TOGETHER, ONE, mean_of
from sfumato.privacy.reading import Place

POOL = join(table_rows(80))


NAMED = [(question,) for question in REGRESSIONS] + [tuple(REGRESSIONS)]
"""Regressions that are measured alone, and together."""


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("questions", NAMED)
def test_no_score_is_longer_than_one_exactly(questions, scale):
    scores = aimed_scores(*questions, scale=scale).scores(BaseCells(POOL))
    assert (scores == np.trunc(scores)).all()
    longest = 0
    for line in scores:
        square = sum(int(z) ** 2 for z in line)
        assert square <= ONE**2
        longest = max(longest, square)
    assert scale < 1e6 or longest > 0.99 * ONE**2


@pytest.mark.parametrize("questions", NAMED)
def test_extreme_numbers_of_a_turn_stay_within_the_norm(questions):
    query = aimed_scores(*questions)
    k = query.shape[0]
    equations = [replace(e, coefficients=np.full(e.coefficients.size, LARGEST_NUMBER)) for e in query.equations]
    wild = replace(query, turn=np.full((k, k), LARGEST_NUMBER), equations=tuple(equations))
    scores = wild.scores(BaseCells(POOL))
    assert np.isfinite(scores).all()
    assert all(sum(int(z) ** 2 for z in line) <= ONE**2 for line in scores)


@pytest.mark.parametrize("questions", NAMED)
def test_a_record_is_scored_by_itself(questions):
    query, n = aimed_scores(*questions), len(POOL["age"])
    together = query.scores(BaseCells(POOL))
    alone = [query.scores(BaseCells({name: c[i : i + 1] for name, c in POOL.items()})) for i in range(n)]
    np.testing.assert_array_equal(together, np.concatenate(alone))


def test_a_missing_cell_adds_nothing_to_its_own_regression():
    first, second, missing = "ols: paid ~ age", "logit: member ~ paid + C(city)", np.isnan(POOL["age"])
    assert missing.any()
    scores = aimed_scores(first).scores(BaseCells(POOL))
    assert not scores[missing].any()
    assert scores[~missing].any(axis=1).mean() > 0.9
    together = aimed_scores(first, second)
    turn = together.turn.copy()
    turn[:, :2] = 0  # of the second regression alone
    scores, alone = (query.scores(BaseCells(POOL)) for query in (together, replace(together, turn=turn)))
    np.testing.assert_array_equal(scores[missing], alone[missing])
    assert scores[missing].any(axis=1).mean() > 0.9
    assert (scores[~missing] != alone[~missing]).any(axis=1).mean() > 0.9


def test_scores_are_those_of_the_regression():
    """T·x·(y − xᵀb), with both sides in proportion to the values at the middles of cells."""
    query = aimed_scores("ols: paid ~ age", scale=1e-3)
    [equation] = query.equations
    left, (constant, age) = equation.sides(BaseCells(POOL))
    there = ~np.isnan(POOL["age"])
    assert (constant[there] == 1).all()
    for side, name in ((left, "paid"), (age, "age")):
        lower, upper = TABLE.columns[name].bounds
        values = lower + POOL[name][there] * (upper - lower)
        np.testing.assert_allclose(side[there], values / values.max(), atol=0.1)
    X = np.stack([constant, age], axis=1)
    expected = (X @ (query.turn.T / ONE)) * (left - X @ (equation.coefficients / ONE))[:, None]
    np.testing.assert_allclose(query.scores(BaseCells(POOL)) / ONE, expected, atol=2.0**-19)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_means_are_looked_up_for_any_predictor(x):
    for link in ("logit", "log"):
        [mean] = mean_of(link, np.array([x]))
        assert 0 <= mean <= (1 if link == "logit" else np.e + 1e-6)


@pytest.mark.parametrize("questions", NAMED)
def test_a_file_says_the_same(questions):
    query, arrays = aimed_scores(*questions), {}
    document = write_query(query, arrays)
    back = read_query(document, Place("test"), QueryArrays(arrays))
    assert [e.formula for e in back.equations] == [e.formula for e in query.equations]
    np.testing.assert_array_equal(back.scores(BaseCells(POOL)), query.scores(BaseCells(POOL)))
    assert query.fault(TABLE.columns, "") is None


def test_a_strangers_parts_that_do_not_fit():
    query = aimed_scores("ols: paid ~ age", "poisson: age ~ paid")
    first, second = query.equations
    (k,) = query.shape
    wrong = {
        "products": second.products + 5,
        "coefficients": np.full(second.coefficients.size, LARGEST_NUMBER + 1),
        "functions": tuple(f * 3 for f in second.functions),
        "link": "probit",
        "axes": second.axes[:1],
    }
    for name, value in wrong.items():
        assert replace(query, equations=(first, replace(second, **{name: value}))).fault(TABLE.columns, ""), name
    for name, value in {"turn": np.zeros((k, k + 1), dtype=np.int64), "weight": "w", "equations": (first,)}.items():
        assert replace(query, **{name: value}).fault(TABLE.columns, ""), name
    many = (first,) * (MOST_TOGETHER // 2 + 1)
    turn = np.zeros((2 * len(many),) * 2, dtype=np.int64)
    assert replace(query, equations=many, turn=turn).fault(TABLE.columns, "")
    assert replace(query, equations=many[1:], turn=turn[2:, 2:]).fault(TABLE.columns, "") is None
    arrays: dict[str, np.ndarray] = {}
    document = write_query(query, arrays)
    del arrays[document["scores"]["turn"]]
    with pytest.raises(ReleaseError, match="names an array that is not there"):
        read_query(document, Place("test"), QueryArrays(arrays))
