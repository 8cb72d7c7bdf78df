"""What is computed of numbers that no integer, or no number at all, holds."""

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy
from sfumato.evaluate import rule_breaks
from sfumato.rules.cells import fitted
from sfumato.schema.schema import Schema

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def integers(upper: int, *names: str) -> dict:
    return {name: {"kind": "integer", "lower": 0, "upper": upper} for name in names}


def test_products_beyond_64_bits_are_the_upper_bound_and_never_a_negative_number():
    columns = {**integers(10**9, "a", "b", "c", "d"), **integers(10**12, "total")}
    document = {"rows": 200, "columns": columns, "rules": [{"product": {"total": ["a", "b", "c", "d"]}}]}
    schema = Schema.from_dict(document)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 10**9, 200) for name in columns})
    rows = MaxEntropy(epsilon=1.0, delta=1e-5).fit(frame, schema=schema, seed=0).sample(200, seed=0)
    assert rule_breaks(rows, schema=schema).any_rule == 0
    assert fitted(schema.columns["total"], np.array([1e36, -1e36, np.inf, 2.6])).tolist() == [10**12, 0, 10**12, 3]


@pytest.mark.parametrize("operation", ["sum", "product"])
@pytest.mark.parametrize("within", [None, "5%"])
def test_infinity_is_no_result(operation, within):
    column = {"kind": "continuous", "lower": 0, "upper": 10}
    rule = {operation: {"t": ["a", "b"]}} | ({} if within is None else {"within": within})
    schema = Schema.from_dict({"columns": {"t": column, "a": column, "b": column}, "rules": [rule]})
    frame = pd.DataFrame({"t": [3.0, 4.0], "a": [1.7e308, 2.0], "b": [1.7e308, 2.0]})
    assert rule_breaks(frame, schema=schema).any_rule == 1


def test_sums_of_real_rows_do_not_wrap_around():
    columns = integers(100, "t", "a", "b")
    schema = Schema.from_dict({"columns": columns, "rules": [{"sum": {"t": ["a", "b"]}}]})
    frame = pd.DataFrame({"t": [-2, 7], "a": [2**63 - 1, 3], "b": [2**63 - 1, 4]})
    assert rule_breaks(frame, schema=schema).any_rule == 1


def test_late_dates_to_the_microsecond_stay_whole():
    day = {"kind": "datetime", "lower": "9000-01-01", "upper": "9000-01-02", "resolution": "microsecond"}
    kind = Schema.from_dict({"columns": {"a": day}}).columns["a"]
    late = np.array([kind.bounds[0] + 1, kind.bounds[1] - 1])
    np.testing.assert_array_equal(fitted(kind, late), late)
