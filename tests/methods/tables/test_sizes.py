"""What a table of many columns takes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy
from sfumato.columns.kinds import Categorical, Continuous, Integer
from sfumato.errors import SchemaError
from sfumato.methods.tables import settings as tables
from sfumato.methods.tables.settings import MOST_ENTRIES, require_fits
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema


def test_the_error_says_what_would_fit():
    most = int(MOST_ENTRIES**0.5)
    require_fits(most, most)
    with pytest.raises(SchemaError, match=f"at most {most} entries"):
        require_fits(most + 1, most)


def test_waves_give_way_where_they_do_not_fit():
    """With rows enough, noise is no reason against features; memory is."""
    for n_columns, n_classes, most in (
        (100, 0, 22),
        (300, 0, 16),
        (400, 0, 8),
        (1_000, 0, 3),
        (4_000, 0, 1),
        (300, 2, 3),
    ):
        facts = tables.TableFacts(n_columns, 0, n_columns, n_classes)
        assert tables.waves_of(0.0, facts).most == most, n_columns


def test_waves_are_fewer_where_noise_is_greater():
    facts = tables.TableFacts(10, 0, 10)
    assert [tables.waves_of(noise, facts).most for noise in (0.0, 0.003, 0.01, 0.03, 0.1)] == [22, 16, 8, 3, 1]


@pytest.mark.parametrize(("rows", "is_whole"), [(500, False), (20_000, True)])
def test_where_noise_is_small_each_value_is_a_cell(rows, is_whole):
    """Then a value that many rows share is seen; where it is great, cells of one value each hold noise."""
    rng = np.random.default_rng(0)
    ages = np.where(rng.random(rows) < 0.4, 40, rng.integers(0, 100, rows))
    frame = pd.DataFrame({"hours": ages, "wide": rng.random(rows)})
    schema = Schema(columns={"hours": Integer(lower=0, upper=99), "wide": Continuous(lower=0, upper=1)}, rows=rows)
    release = MaxEntropy(epsilon=0.5, delta=1e-5, calibration_rows=500).fit(frame, schema=schema, seed=0)
    hours, wide = Grid.stored(release.schema, release.parameters).columns
    assert (hours.n_cells == 100) == is_whole
    assert wide.n_cells < 300
    if is_whole:
        assert (release.sample(20_000, seed=0)["hours"] == 40).mean() == pytest.approx((ages == 40).mean(), abs=0.02)


def test_margins_have_more_of_the_budget_where_noise_hides_what_goes_together():
    facts = tables.TableFacts(20, 100)
    shares = [tables.margins_share(facts, 4.0, rows) for rows in (10**6, 5_000, 1_000, 100)]
    assert shares[0] == 0.3
    assert shares[-1] == 0.5
    assert shares == sorted(shares)


def test_a_target_counts_for_more_columns_where_labels_are_many_or_noise_is_great():
    plain = tables.TableFacts(20, 40, n_classes=2)
    assert tables.target_weight(0.001, plain) == 2
    assert tables.target_weight(0.2, plain) == 20
    assert tables.target_weight(0.001, replace(plain, n_classes=26)) == 10


def test_six_classes_differ_in_how_columns_go_together():
    """All classes have the same marginals, and correlations of 0.8 or -0.8: pooled moments say nothing of it."""
    rng = np.random.default_rng(3)
    n, sign = 12_000, np.where(np.arange(6) % 2, 1.0, -1.0)
    y, x = rng.integers(0, 6, n), rng.normal(size=n)
    z = 0.8 * sign[y] * x + 0.6 * rng.normal(size=n)
    frame = pd.DataFrame({"x": x.clip(-4, 4), "z": z.clip(-4, 4), "y": [f"c{c}" for c in y]})
    number = Continuous(lower=-4, upper=4)
    schema = Schema(columns={"x": number, "z": number, "y": Categorical(categories=tuple(f"c{c}" for c in range(6)))})
    release = MaxEntropy(epsilon=1.0, delta=1e-6).fit(frame, schema=replace(schema, rows=n), target="y", seed=1)
    rows = release.sample(n, seed=2)
    correlations = [group["x"].corr(group["z"]) for _, group in rows.groupby("y", observed=True)]
    assert (correlations * sign > 0.4).all()  # .57 to .77: noise shrinks them


def test_tables_by_areas_have_to_fit():
    columns = {f"v{j}": Continuous(lower=0, upper=1) for j in range(2_000)}
    areas = {"y": Categorical(categories=tuple(map(str, range(1000))))}
    schema = Schema(columns={**columns, **areas}, rows=1_000)
    MaxEntropy(epsilon=1.0).plan(schema, target="y")
    with pytest.raises(SchemaError, match="name coarser areas"):
        MaxEntropy(epsilon=1.0).plan(replace(schema, areas=("y",)))
