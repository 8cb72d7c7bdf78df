"""What a table of many columns takes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy
from sfumato.columns.kinds import Boolean, Categorical, Continuous
from sfumato.errors import SchemaError
from sfumato.methods.tables import settings as tables
from sfumato.methods.tables.settings import MOST_ENTRIES, require_fits
from sfumato.schema.schema import Schema


def test_the_error_says_what_would_fit():
    most = int(MOST_ENTRIES**0.5)
    require_fits(1, most, most, most)
    with pytest.raises(SchemaError, match=f"at most {most} entries"):
        require_fits(1, most + 1, most, most)


@pytest.mark.parametrize("k", [2, 26, 1_000])
def test_tables_by_class_have_to_fit(k):
    most = MOST_ENTRIES // k
    require_fits(k, 100, most, 10)
    with pytest.raises(SchemaError, match=f"at most {most} cells .* target of fewer classes"):
        require_fits(k, 100, most + 1, 10)


def test_polynomials_give_way_to_scores_where_they_do_not_fit():
    """With rows enough, noise is no reason against features; memory is."""
    for n_features, orders in ((100, 6), (300, 6), (600, 3), (4_000, 1)):
        facts = tables.TableFacts(n_classes=2, n_features=n_features, n_level_cells=0, n_number_entries=n_features)
        wanted = tables.Resolution(48, 6, 64, {})
        assert tables._fitting(wanted, facts, by_class=0.2).orders == orders


def test_classes_share_their_moments_where_those_of_each_do_not_fit():
    facts = tables.TableFacts(n_classes=6, n_features=2_500, n_level_cells=0, n_number_entries=2_500)
    assert tables._by_class(facts, entry=0.0) == 0
    few = tables.TableFacts(n_classes=2, n_features=2_500, n_level_cells=0, n_number_entries=2_500)
    assert tables._by_class(few, entry=0.0) > 0


def test_many_classes_share_their_moments_where_noise_is_as_large_as_one():
    for n_classes, quiet, loud in ((6, 0.2, 0.21), (7, 0.0042, 0.0044), (32, 0.0009, 0.001)):
        assert tables.classes_apart(n_classes, quiet)
        assert not tables.classes_apart(n_classes, loud)
    assert not tables.classes_apart(33, 0.0)
    assert not tables.classes_apart(1, 0.0)


def test_eight_classes_differ_in_how_columns_go_together():
    """All classes have the same marginals, and correlations of 0.8 or -0.8: pooled moments say nothing of it."""
    rng = np.random.default_rng(3)
    n, sign = 12_000, np.where(np.arange(8) % 2, 1.0, -1.0)
    y, x = rng.integers(0, 8, n), rng.normal(size=n)
    z = 0.8 * sign[y] * x + 0.6 * rng.normal(size=n)
    frame = pd.DataFrame({"x": x.clip(-4, 4), "z": z.clip(-4, 4), "y": [f"c{c}" for c in y]})
    number = Continuous(lower=-4, upper=4)
    schema = Schema(columns={"x": number, "z": number, "y": Categorical(categories=tuple(f"c{c}" for c in range(8)))})
    release = MaxEntropy(epsilon=1.0, delta=1e-6).fit(frame, schema=replace(schema, rows=n), target="y", seed=1)
    rows = release.sample(n, seed=2)
    correlations = [group["x"].corr(group["z"]) for _, group in rows.groupby("y", observed=True)]
    assert (correlations * sign > 0.4).all()  # .57 to .77: noise shrinks them


def test_every_level_is_counted_by_class():
    """Levels that share a feature have counts of their own."""
    columns = {"zip": Categorical(categories=tuple(map(str, range(40_000))))}
    target = {"y": Categorical(categories=tuple(map(str, range(1_000))))}
    schema = Schema(columns={**columns, **target}, rows=10**6)
    with pytest.raises(SchemaError, match="got 40000"):
        MaxEntropy(epsilon=1.0, level_groups=64).plan(schema, target="y")


def test_fewer_classes_make_room():
    columns = {f"v{j}": Continuous(lower=0, upper=1) for j in range(2_000)}
    many = Schema(columns={**columns, "y": Categorical(categories=tuple(map(str, range(1000))))}, rows=1_000)
    with pytest.raises(SchemaError, match="1000 classes"):
        MaxEntropy(epsilon=1.0).plan(many, target="y")
    few = Schema(columns={**columns, "y": Boolean()}, rows=1_000)
    MaxEntropy(epsilon=1.0).plan(few, target="y")
