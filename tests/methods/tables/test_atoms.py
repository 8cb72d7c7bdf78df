"""Atoms and endings: found where they are and nowhere else, exact without noise, and summing up to their cells."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns.kinds import Continuous, DateTime
from sfumato.inference.linked_rows import questions_of
from sfumato.maths.constants import ATOMS
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import CellCounts
from sfumato.methods.tables.features import Waves
from sfumato.methods.tables.recipe import VALUE_COUNTS
from sfumato.methods.tables.shares import Resolution, column_shares
from sfumato.schema.grid import Grid

RESOLUTION = Resolution(most_runs=24, waves=Waves(3, 0.83), level_groups=4, weights={})
CENTS = Continuous(lower=0, upper=60, resolution=0.01)
N = 10_000


def prices(rng):
    """Six of ten end in .99."""
    value = rng.lognormal(2.2, 0.6, N).clip(0.01, 59)
    return np.where(rng.random(N) < 0.6, np.floor(value) + 0.99, value).round(2)


def wages(rng):
    """One of eight is 7.25."""
    return np.where(rng.random(N) < 0.12, 7.25, 7.25 + rng.lognormal(2, 0.8, N)).clip(0, 60).round(2)


def smooth(rng):
    return rng.normal(30, 8, N).clip(0, 60).round(2)


def law(kind, values, std, seed=0, nullable=0.0, cells=256):
    """The law of single values, cells and all, as one column's counts with noise of so many records say it."""
    statistic = CellCounts(Grid.of(Schema(columns={"x": kind}, rows=N), numeric_cells=cells, narrow=True))
    rng, total = np.random.default_rng(seed), statistic.zero()
    lower, upper = kind.bounds
    codes = (np.asarray(values) - lower) / (upper - lower)
    codes[rng.random(codes.size) < nullable] = np.nan
    statistic.add(total, {"x": codes})
    noisy = Noisy(total * statistic.step + std * rng.standard_normal(total.shape), std)
    grid, [made] = column_shares(noisy, statistic, float(N), RESOLUTION)
    column = grid.columns[0]
    cells = np.diff(column.edges)
    weights = np.ones(column.steps.last + 1) if column.weights is None else column.weights
    sums = np.add.reduceat(weights, column.edges[:-1])
    each = np.repeat(made.shares[: cells.size] / np.where(sums > 0, sums, 1), cells) * weights
    return column, made, np.where(np.repeat(cells, cells) == 1, np.repeat(made.shares[: cells.size], cells), each)


def true_law(kind, values):
    lower, upper = kind.bounds
    steps = kind.steps.at((np.asarray(values) - lower) / (upper - lower))
    return np.bincount(steps, minlength=kind.steps.last + 1) / len(values)


def distance(one, other):
    return np.abs(one - other).sum() / 2


@pytest.mark.parametrize("make", [prices, wages, smooth])
def test_without_noise_it_is_the_law_of_the_records(make):
    values = make(np.random.default_rng(0))
    column, made, each = law(CENTS, values, 0.0)
    assert column.n_cells <= 260 + 2 * ATOMS.most
    assert made.shares.sum() == pytest.approx(1)
    true = true_law(CENTS, values)
    top = np.argsort(-true)[:200]
    np.testing.assert_allclose(each[top], true[top], atol=1e-4)


@pytest.mark.parametrize("std", [5.0, 20.0])
def test_atoms_and_endings_are_found_in_noise(std):
    values = wages(np.random.default_rng(1))
    _, _, each = law(CENTS, values, std)
    assert each[725] == pytest.approx(true_law(CENTS, values)[725], rel=0.15)
    values = prices(np.random.default_rng(1))
    _, _, each = law(CENTS, values, std)
    assert each[99::100].sum() == pytest.approx((np.rint(values * 100) % 100 == 99).mean(), rel=0.1)


@pytest.mark.parametrize("make", [prices, wages])
def test_single_values_are_nearer_than_an_even_cell_has_them(make):
    values = make(np.random.default_rng(2))
    _, _, each = law(CENTS, values, 15.0)
    true, even = true_law(CENTS, values), np.zeros(each.size)
    public = Grid.of(Schema(columns={"x": CENTS}), numeric_cells=256, narrow=True).columns[0]
    for first, end in pairwise(public.edges):
        even[first:end] = true[first:end].mean()
    assert distance(each, true) < 0.75 * distance(even, true)


def test_a_smooth_column_has_hardly_an_atom_or_an_ending():
    atoms = endings = 0
    for seed in range(100):
        values = smooth(np.random.default_rng(seed))
        column, _, _ = law(CENTS, values, 15.0, seed)
        public = Grid.of(Schema(columns={"x": CENTS}), numeric_cells=256, narrow=True).columns[0]
        atoms += not np.array_equal(column.edges, public.edges)
        endings += column.weights is not None
    assert atoms <= 8
    assert endings <= 3


def test_cells_keep_their_rows_and_missing_its_own():
    kind = Continuous(lower=0, upper=60, resolution=0.01, nullable=True)
    column, made, each = law(kind, wages(np.random.default_rng(3)), 0.0, nullable=0.3)
    assert made.shares[-1] == pytest.approx(0.3, abs=0.02)
    assert made.shares[:-1].sum() == pytest.approx(each.sum())
    assert (np.diff(made.counted) >= 0).all()
    assert made.counted.size == made.drawn.size == column.n_cells


@pytest.mark.parametrize("epsilon", [1.0, NonPrivate()])
def test_samples_have_the_values_that_many_rows_share(epsilon):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"wage": wages(rng), "price": prices(rng), "hours": rng.choice([40, 38, 20, 33], N)})
    cents = {"kind": "continuous", "lower": 0, "upper": 60, "resolution": 0.01}
    columns = {"wage": cents, "price": cents, "hours": {"kind": "integer", "lower": 0, "upper": 99}}
    release = MaxEntropy(epsilon=epsilon, delta=1e-5).fit(frame, schema={"columns": columns, "rows": N}, seed=0)
    rows = release.sample(20_000, seed=0)
    assert (rows["wage"] == 7.25).mean() == pytest.approx((frame["wage"] == 7.25).mean(), rel=0.15)
    ends = [(np.rint(table["price"] * 100) % 100 == 99).mean() for table in (rows, frame)]
    assert ends[0] == pytest.approx(ends[1], rel=0.1)
    assert rows["hours"].isin([20, 33, 38, 40]).mean() > 0.9


@pytest.mark.parametrize("questions", [(), ("ols: wage ~ hours",), ({"table": ["wage", "sex"]},)], ids=str)
def test_replicates_have_them_too_and_counts_of_cells_are_known(questions):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"wage": wages(rng), "hours": rng.choice([40, 38, 20, 33], N), "sex": rng.choice(["f", "m"], N)}
    )
    columns = {
        "wage": {"kind": "continuous", "lower": 0, "upper": 60, "resolution": 0.01},
        "hours": {"kind": "integer", "lower": 0, "upper": 99}, "sex": {"kind": "categorical", "categories": ["f", "m"]},
    }  # fmt: skip
    schema = {"columns": columns, "rows": N, **({"questions": list(questions)} if questions else {})}
    release = MaxEntropy(epsilon=3.0, delta=1e-5).fit(frame, schema=schema, seed=0)
    replicate = release.replicates(2, seed=0)[0]
    assert (replicate["wage"] == 7.25).mean() == pytest.approx((frame["wage"] == 7.25).mean(), rel=0.2)
    measured = questions_of(release).measured
    assert all(measured.counts(name) is not None for name in measured.names)


def test_counts_of_atoms_are_kept_and_answer_for_them():
    """Their noise has the law that is said, an answer rests on it, and a quantile that ends at one is that value."""
    frame = pd.DataFrame({"wage": wages(np.random.default_rng(4)), "sex": np.arange(N) % 2 == 0})
    columns = {"wage": {"kind": "continuous", "lower": 0, "upper": 60, "resolution": 0.01, "nullable": True}}
    schema = {"columns": {**columns, "sex": {"kind": "boolean"}}, "rows": N}
    real, deviations = int((frame["wage"] == 7.25).sum()), []
    for seed in range(12):
        release = MaxEntropy(epsilon=1.0, delta=1e-5).fit(frame, schema=schema, seed=seed)
        kept = next(m for m in release.measurements if m.name == VALUE_COUNTS)
        (axis,) = kept.query.tables[0]
        place = axis.groups[np.flatnonzero(axis.edges == 725)[0]]
        deviations.append((kept.value[place] - real) / kept.noise_std)
        answer = release.count({"wage": 7.25})
        assert answer.std_error < 1.5 * kept.noise_std
        assert abs(answer.value - real) < 4.5 * answer.std_error
        assert release.quantile("wage", 0.06).interval() == (7.25, 7.25)
        group = release.count({"wage": 7.25, "sex": True})
        assert abs(group.value - real / 2) < 4.5 * group.std_error
    assert 0.5 < np.std(deviations) < 1.7
    assert abs(np.mean(deviations)) < 1.2


def test_much_noise_warns_of_nothing():
    kind = DateTime(lower="2024-02-02", upper="2024-03-20")
    values = np.datetime64("2024-02-02") + np.random.default_rng(0).integers(0, 40, N)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for std in (0.0, 1e3, 1e6):
            _, made, _ = law(kind, values.astype("M8[D]").astype(int), std, cells=8)
            assert made.shares.sum() == pytest.approx(1)
