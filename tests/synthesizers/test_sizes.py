"""What a table of many columns takes."""

import pytest

from sfumato import ConditionalGaussian
from sfumato.data.kinds import Boolean, Categorical, Continuous
from sfumato.data.schema import Schema
from sfumato.errors import SchemaError
from sfumato.synthesizers import gaussian
from sfumato.synthesizers.sizes import MOST_ENTRIES, fits, require_fits


@pytest.mark.parametrize("k", [1, 2, 26, 1_000])
def test_the_error_says_what_would_fit(k):
    most = int((MOST_ENTRIES / k) ** 0.5)
    require_fits(k, most, most)
    with pytest.raises(SchemaError, match=f"at most {most} entries") as caught:
        require_fits(k, most + 1, most + 1)
    assert ("target" in str(caught.value)) == (k > 1)


def test_groups_give_way_to_scores_where_they_do_not_fit():
    """With rows enough, noise is no reason against groups; memory is."""
    for n_features, groups in ((100, 10), (600, 6), (3_000, 1)):
        facts = gaussian._Facts(n_classes=2, n_features=n_features, n_level_cells=0)
        assert gaussian.numeric_groups(1.0, facts, 10**12) == groups
        assert fits(2, groups * n_features)


def test_fewer_classes_make_room():
    columns = {f"v{j}": Continuous(lower=0, upper=1) for j in range(2_000)}
    many = Schema(columns={**columns, "y": Categorical(categories=tuple(map(str, range(100))))}, rows=1_000)
    with pytest.raises(SchemaError, match="100 classes"):
        ConditionalGaussian(epsilon=1.0).plan(many, target="y")
    few = Schema(columns={**columns, "y": Boolean()}, rows=1_000)
    ConditionalGaussian(epsilon=1.0).plan(few, target="y")
