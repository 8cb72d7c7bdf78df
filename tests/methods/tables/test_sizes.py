"""What a table of many columns takes."""

import pytest

from sfumato import MaxEntropy
from sfumato.columns.kinds import Boolean, Categorical, Continuous
from sfumato.errors import SchemaError
from sfumato.methods.tables import recipe as tables
from sfumato.methods.tables.recipe import MOST_ENTRIES, require_fits
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
