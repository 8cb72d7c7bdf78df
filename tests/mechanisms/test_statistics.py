"""Statistics that a plugin takes as they are: what they count, and what they refuse to count."""

import dataclasses

import numpy as np
import pytest

from sfumato.columns.sets import ItemSet
from sfumato.errors import ConfigError
from sfumato.measurements import CellEntries, Cells, MarginalQuery, MomentQuery
from sfumato.measurements.queries import UnitNorm
from sfumato.methods.items import ItemCounts
from sfumato.models.sets import SetEncoder
from sfumato.plugins import QueryCounts

SEX = Cells("sex", 2)
ITEMS = SetEncoder("basket", ItemSet(items=("a", "b"), max_length=2))


@pytest.mark.parametrize(
    "statistic", [QueryCounts(MarginalQuery(((SEX,),))), ItemCounts(ITEMS)], ids=["query", "items"]
)
def test_a_record_adds_ones(statistic):
    """The step multiplies what is added, and no bound: a field that anybody may set would understate the noise."""
    assert statistic.step == 1.0
    assert "step" not in {field.name for field in dataclasses.fields(statistic)}
    with pytest.raises(TypeError, match="step"):
        dataclasses.replace(statistic, step=2.0)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (MarginalQuery(((SEX,),), weight="w"), "every record counts once, got one with weight='w'"),
        (MarginalQuery(((SEX,),), norm=UnitNorm(9, (1,), 0)), "every record counts once, got one with norm=UnitNorm"),
        (MomentQuery((CellEntries(SEX, np.ones((2, 1), dtype=np.int64)),), 1.0), "query to be a MarginalQuery"),
    ],
)
def test_a_query_that_records_do_not_count_once_in_is_refused(query, problem):
    with pytest.raises(ConfigError, match=problem):
        QueryCounts(query)
