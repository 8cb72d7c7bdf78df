"""Ends of columns by noisy counts, and what lies beyond them: laws that nobody tuned to."""

import numpy as np
import pytest

from fixtures.costly import slow_after
from sfumato.columns.bounded import N_CELLS, SIDE, cell_span, cells_of, open_edges
from sfumato.maths.outer_mass import Axis, NoisyColumn, ends, span

STD = 32.0  # of five columns at ε = 1, δ = 1e-6, a tenth of the budget


def column(values, std=STD, seed=0, *, whole=False, columns=5):
    counts = np.bincount(cells_of(np.asarray(values, dtype=float)), minlength=N_CELLS)[:N_CELLS].astype(float)
    noisy = counts + np.random.default_rng(seed).normal(0, std, N_CELLS)
    return NoisyColumn(noisy, std, Axis.of(*open_edges("continuous"), whole=whole), columns, len(values))


def spent(rng, n):
    return np.where(rng.random(n) < 0.7, 0.0, 400 * rng.pareto(2.5, n))


LAWS = {
    "uniform": lambda rng, n: rng.uniform(18, 95, n),
    "spent": spent,
    "Weibull": lambda rng, n: 30 * rng.weibull(0.8, n),
    "log-normal": lambda rng, n: -np.exp(rng.normal(2, 1, n)),
    "Student": lambda rng, n: 5 + 3 * rng.standard_t(4, n),
    "triangular": lambda rng, n: rng.triangular(-3, 1, 4, n),
    "counts": lambda rng, n: rng.negative_binomial(1, 0.2, n),
    "two groups": lambda rng, n: np.where(rng.random(n) < 0.9, rng.normal(5, 1, n), rng.normal(60, 5, n)),
}


@pytest.mark.parametrize("n", slow_after(1, [5_000, 50_000]))
@pytest.mark.parametrize("law", LAWS)
def test_the_mean_is_covered(law, n):
    """The mean as read within the bounds, and what lies beyond them, by errors like those of a mean."""
    covered, near = 0, 0
    for seed in range(20):
        values = LAWS[law](np.random.default_rng([seed, n]), n)
        noisy = column(values, seed=seed, whole=law == "counts")
        below, above = ends(noisy)
        first, last = span(noisy)
        low, high = cell_span(first)[0], cell_span(last)[1]
        total = above.beyond(last, lambda x: x), below.beyond(N_CELLS - 1 - first, lambda x: x)
        missed = values.mean() - np.clip(values, low, high).mean()
        guess = (total[0].value - total[1].value) / n
        error = np.hypot(total[0].std_error, total[1].std_error) / n
        covered += abs(missed - guess) <= 2 * error + 0.5 * values.std() / n**0.5
        near += abs(missed) <= 0.25 * values.std()
    assert covered >= 17
    assert near >= 19


@pytest.mark.parametrize("power", slow_after(1, [2.2, 2.5, 3.0]))
def test_a_tail_goes_on_where_noise_begins_to_hide_it(power):
    """A bound stands where counts happened to be low: that is no reason to believe that nothing lies beyond."""
    n, covered = 100_000, 0
    for seed in range(100):
        values = np.random.default_rng([seed, 9]).pareto(power, n) * 400
        noisy = column(values, seed=seed)
        _, last = span(noisy)
        beyond = ends(noisy)[1].beyond(last, lambda x: x)
        lost = np.maximum(values - cell_span(last)[1], 0).sum()
        covered += abs(lost - beyond.value) <= 2 * beyond.std_error
    assert covered >= 90


def test_noise_is_not_taken_for_values():
    noise = [column([], seed=seed) for seed in range(60)]
    assert sum(span(one) is not None for one in noise) <= 2
    assert span(column([], std=0.0)) is None


def test_without_noise_the_ends_are_those_of_the_values():
    assert [cell_span(cell) for cell in span(column([3.0, 200.0, -5.0], std=0.0))] == [(-6.0, -5.0), (192.0, 224.0)]
    below, above = ends(column([3.0, 200.0], std=0.0))
    assert above.beyond(SIDE, lambda x: x).value == below.beyond(SIDE, lambda x: x).value == 0


def test_with_less_noise_the_ends_move_out():
    values = spent(np.random.default_rng(1), 20_000)
    lasts = [np.median([span(column(values, std, seed))[1] for seed in range(9)]) for std in (200.0, 30.0, 3.0)]
    assert lasts == sorted(lasts)
    assert lasts[0] < lasts[-1]
    assert values.max() / cell_span(int(lasts[-1]))[1] < 8


def test_an_end_that_is_sharp_is_kept():
    """A bound that is too wide costs noise: of uniform numbers one in ten columns may have it."""
    values = np.random.default_rng(2).uniform(18, 95, 20_000)
    wide = sum(cell_span(span(column(values, seed=seed))[1])[1] > 96 for seed in range(40))
    assert wide <= 6


def test_numbers_that_no_cell_shows_alone_are_seen_together():
    values = np.random.default_rng(3).uniform(20, 60, 1_250)
    first, last = span(column(values, 60.0, 3, columns=8))
    assert 0 <= cell_span(first)[0] <= 30
    assert 45 <= cell_span(last)[1] <= 1024


def test_rows_beyond_are_counted():
    values = spent(np.random.default_rng(4), 50_000)
    cell = int(cells_of(np.array([1500.0]))[0])
    truth = (values > cell_span(cell)[1]).sum()
    guesses = [ends(column(values, seed=seed))[1].rows(cell) for seed in range(20)]
    assert sum(abs(g.value - truth) <= 2 * g.std_error + STD for g in guesses) >= 17


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_end_of_one_sign_takes_in_no_noise_of_the_other(sign):
    """Of ages times a thousand, of which one in a hundred is 0, three in ten ends at this noise had the other sign."""
    values = sign * 1_000 * np.random.default_rng(0).integers(0, 100, 20_000)
    crossed = 0
    for seed in range(100):
        noisy = column(values, 60.0, seed, whole=True)
        first, last = span(noisy)
        crossed += cell_span(last)[1] > 1 if sign < 0 else cell_span(first)[0] < -1
    assert crossed <= 2


def test_counts_that_no_noise_has_say_something_finite():
    """A stranger's release may hold any numbers."""
    noisy = column(np.full(5_000, 40.0))
    noisy.counts[cells_of(np.array([100.0]))[0] :] = -1e9
    above = ends(noisy)[1]
    beyond = above.beyond(above.last, lambda values: values)
    assert np.isfinite([beyond.value, beyond.deviation, beyond.std_error]).all()
