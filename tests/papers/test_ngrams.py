"""n-grams of papers/ngrams: sensitivity and its search, noise, account, and the truth where there is no noise."""

import importlib.util
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

PATH = Path(__file__).parents[2] / "papers" / "ngrams" / "ngrams.py"
SPEC = importlib.util.spec_from_file_location("ngrams", PATH)
assert SPEC is not None
assert SPEC.loader is not None
NGRAMS = importlib.util.module_from_spec(SPEC)
sys.modules["ngrams"] = NGRAMS
SPEC.loader.exec_module(NGRAMS)

M, LONGEST = 3, 4


def _sequences(people: list[tuple[int, ...]]) -> object:
    persons = np.repeat(np.arange(len(people)), [len(rows) for rows in people])
    symbols = np.array([symbol for rows in people for symbol in rows], dtype=int)
    return NGRAMS.Sequences.of(persons, symbols, M, LONGEST)


def _tree(levels: int) -> list[list[tuple[int, ...]]]:
    """All grams below which a level may stand: more than any fit has."""
    symbols = [*range(M), M]
    return [list(itertools.product(symbols, repeat=length)) for length in range(levels)]


PEOPLE = [(0,), (0, 1), (2, 2, 2), (1, 0, 1, 0), (0, 0, 0, 0, 0, 0, 0), (2, 1, 0, 2, 1)]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_no_person_moves_a_level_by_more_than_is_charged_and_some_by_as_much(level):
    contexts = _tree(4)[level - 1]
    others = NGRAMS.level_counts(_sequences(PEOPLE), contexts)
    moved = []
    for size in range(1, LONGEST + 3):
        for rows in itertools.product(range(M), repeat=size):
            for people in ([*PEOPLE, rows], [rows, *PEOPLE]):
                moved.append(np.abs(NGRAMS.level_counts(_sequences(people), contexts) - others).sum())
    assert max(moved) == NGRAMS.sensitivity(LONGEST, level)


def test_rows_beyond_the_most_move_nothing():
    one, more = _sequences([(1,) * LONGEST]), _sequences([(1,) * LONGEST + (0, 2, 1)])
    np.testing.assert_array_equal(one.symbols, more.symbols)


def test_counts_are_those_of_a_plain_loop():
    sequences = _sequences(PEOPLE)
    contexts = _tree(3)[2]
    expected = np.zeros((len(contexts), M + 2), dtype=int)
    for rows in PEOPLE:
        text = [M, *rows[:LONGEST]] + [M + 1] * (len(rows) < LONGEST)
        for place in range(len(text) - 2):
            gram = tuple(text[place : place + 2])
            if gram in contexts:
                expected[contexts.index(gram), text[place + 2]] += 1
    np.testing.assert_array_equal(NGRAMS.level_counts(sequences, contexts), expected)


def test_the_noise_is_two_sided_geometric_and_no_other():
    scale = 2.5
    noise = NGRAMS.geometric_noise((40_000,), scale, np.random.default_rng(0))

    def fits(assumed: float) -> float:
        reach = np.arange(-8, 9)
        tail = np.exp(-np.abs(reach) / assumed) * np.tanh(1 / (2 * assumed))
        seen = np.array([(noise == z).sum() for z in reach])
        return float(stats.chisquare([*seen, noise.size - seen.sum()], noise.size * np.r_[tail, 1 - tail.sum()]).pvalue)

    assert fits(scale) > 1e-3
    assert fits(scale * 2 / 3) < 1e-9
    assert fits(scale * 3 / 2) < 1e-9


def test_the_noise_of_a_level_hides_a_person(monkeypatch):
    scales = []
    real = NGRAMS.geometric_noise
    monkeypatch.setattr(NGRAMS, "geometric_noise", lambda *a: scales.append(a[1]) or real(*a))
    fitted = NGRAMS.NGrams.fit(_sequences(PEOPLE * 200), 2.0, 3, 1_200, np.random.default_rng(0))
    assert scales == [3 * LONGEST / 2.0, 3 * LONGEST / 2.0, 3 * (LONGEST - 1) / 2.0]
    # the ratio of two neighbours' probabilities at ℓ1 distance d is at most exp(d/scale): ε_i
    moved = [LONGEST, LONGEST, LONGEST - 1]
    np.testing.assert_allclose([d / scale for d, scale in zip(moved, scales, strict=True)], fitted.epsilons)


def test_the_account_is_the_sum_of_the_levels():
    assert NGRAMS.spent([0.3, 0.3, 0.4], 0.0) == pytest.approx(1.0, abs=1e-4)
    assert 0.99 < NGRAMS.spent([0.3, 0.3, 0.4], 1e-6) <= 1.0001


def _chain(n: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    turn = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.3, 0.6, 0.1]])
    people = []
    for size in rng.integers(1, LONGEST + 2, n):
        rows = [int(rng.choice(M, p=[0.6, 0.3, 0.1]))]
        while len(rows) < size:
            rows.append(int(rng.choice(M, p=turn[rows[-1]])))
        people.append(tuple(rows))
    return people


def _shares(persons: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    follows = persons[1:] == persons[:-1]
    return np.histogram2d(symbols[:-1][follows], symbols[1:][follows], bins=M, range=[[0, M]] * 2)[0] / follows.sum()


@pytest.mark.parametrize(("epsilon", "most"), [(np.inf, 0.03), (10.0, 0.05)])
def test_transitions_come_back(epsilon, most):
    people = _chain(4_000, np.random.default_rng(0))
    fitted = NGRAMS.NGrams.fit(_sequences(people), epsilon, 2, 4_000, np.random.default_rng(1))
    persons, symbols = fitted.sample(4_000, np.random.default_rng(2))
    real = np.repeat(np.arange(len(people)), [min(len(rows), LONGEST) for rows in people])
    truth = _shares(real, np.array([x for rows in people for x in rows[:LONGEST]]))
    assert np.abs(truth - _shares(persons, symbols)).sum() / 2 < most
    assert np.bincount(persons).min() >= 1
    assert np.bincount(persons).max() <= LONGEST
    asked = np.random.default_rng(3).integers(1, LONGEST + 1, 500)
    persons, symbols = fitted.sample(500, np.random.default_rng(2), asked)
    np.testing.assert_array_equal(np.bincount(persons), asked)
    assert set(np.unique(symbols)) <= set(range(M))


def test_little_budget_leaves_sequences():
    fitted = NGRAMS.NGrams.fit(_sequences(PEOPLE), 0.01, 3, 6, np.random.default_rng(0))
    persons, symbols = fitted.sample(100, np.random.default_rng(0))
    assert np.unique(persons).size == 100
    assert ((symbols >= 0) & (symbols < M)).all()


def test_the_simplex_is_met_at_its_nearest_point():
    found = NGRAMS.simplex(np.array([0.7, 0.5, -0.3]))
    np.testing.assert_allclose(found, [0.6, 0.4, 0.0])
