"""Values within cells that were counted as one: what answers allow for, and how often they cover heaps."""

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, Schema
from sfumato.columns import Categorical, Integer
from sfumato.inference.calibration import Calibration, Places
from sfumato.inference.noisy_totals import Totals

RNG = np.random.default_rng(0)


def test_it_is_the_error_of_a_total_where_each_cell_has_one_value():
    cells, n_rows = np.repeat([0, 1, 2], 2_000), 6_000
    values = (cells + RNG.random(n_rows)) * np.array([1.0, 3.0, 0.5])[cells]
    places, weights = Places(cells, values), np.full(n_rows, 0.1)
    unsure = places.unsure(weights) @ values[:, None]
    heaps = np.stack([RNG.choice(values[cells == cell], 20_000) for cell in range(3)])
    errors = (200 * heaps).sum(axis=0)
    assert np.sqrt((unsure**2).sum()) == pytest.approx(errors.std(), rel=0.02)


def test_a_function_of_something_else_is_as_sure_as_before():
    cells, values = np.repeat(np.arange(300), 20), RNG.random(6_000)
    other = RNG.normal(size=6_000)
    unsure = Places(cells, values).unsure(np.ones(6_000)) @ other[:, None]
    assert np.sqrt((unsure**2).sum()) < 0.25 * np.sqrt(6_000), "of drawing the rows"


def test_a_cell_of_one_value_adds_nothing_and_no_function_is_no_error():
    cells = np.repeat(np.arange(30), 20)
    places = Places(cells, cells.astype(float))
    unsure = places.unsure(np.ones(600))
    assert not (unsure @ cells[:, None].astype(float)).any()
    assert (unsure @ np.zeros((600, 0))).shape == (1, 0), "a run of thirty small cells"


def heaps(rng, n=600):
    """Numbers that stand at a few values, one of them the upper bound, and labels that go with them."""
    x = rng.choice([0, 0, 0, 1, 2, 5, 10, 100], n)
    return pd.DataFrame({"x": x, "high": np.where(x > 5, "yes", "no")})


def test_heaps_in_wide_cells_are_covered():
    """The highest value lies at the end of a cell of 16: no quantile was covered, and two variances of three."""
    columns = {"x": Integer(lower=0, upper=100), "high": Categorical(categories=("no", "yes"))}
    covered = {"mean": [], "variance": [], "quantile": []}
    for seed in range(12):
        rows = heaps(np.random.default_rng([7, seed]))
        release = MaxEntropy(epsilon=1.0, delta=1e-5).fit(rows, schema=Schema(columns=columns, rows=600), seed=seed)
        truths = {
            "mean": (release.mean("x", target="table"), rows["x"].mean()),
            "variance": (release.variance("x", target="table"), rows["x"].var(ddof=0)),
            "quantile": (release.quantile("x", 0.95, target="table"), 100),
        }
        for name, (answer, truth) in truths.items():
            low, high = answer.interval()
            covered[name].append(low <= truth <= high)
    assert {name: sum(hits) for name, hits in covered.items() if sum(hits) < 10} == {}


def test_what_was_measured_itself_is_no_matter_of_places():
    """A named regression's scores are sums over finer cells than a column's counts: their total was measured."""
    n_rows = 4_000
    cells, within = np.repeat(np.arange(4), n_rows // 4), RNG.random(n_rows)
    values = cells + within
    places = [Places(cells, values)]
    indicators = (cells[:, None] == np.arange(4)).astype(float)
    totals = Totals(indicators, indicators.sum(axis=0), np.full(4, 9.0))
    whole = Totals.joined([totals, Totals(values[:, None], np.array([values.sum()]), np.full(1, 9.0))])
    counted, measured = (
        Calibration(known, n_rows, 0.0, places=places).each(values[:, None]).unmeasured for known in (totals, whole)
    )
    assert np.sqrt(counted) > 100
    assert np.sqrt(measured) < 10
