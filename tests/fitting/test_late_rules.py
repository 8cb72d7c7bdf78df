"""Rules of columns whose bounds a fit estimates: read once these are there, and kept by samples."""

import warnings

import numpy as np
import pandas as pd
import pytest

from sfumato.columns import Continuous, Identifier, Integer
from sfumato.errors import SchemaError, SchemaWarning
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.ruled import closed

OPEN = {
    "columns": {
        "a": {"kind": "datetime", "discover": True},
        "b": {"kind": "datetime", "discover": True},
        "days": {"kind": "integer", "discover": True},
    },
    "rules": [{"order": ["a", "b"]}, {"difference": {"days": ["b", "a"]}}],
    "rows": 2000,
}


def test_samples_keep_them():
    rng = np.random.default_rng(0)
    a = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, 2_000), "D")
    days = rng.poisson(5, 2_000)
    frame = pd.DataFrame({"a": a, "b": a + pd.to_timedelta(days, "D"), "days": days})
    release = MaxEntropy(epsilon=1.0, delta=1e-6).fit(frame, schema=OpenSchema.from_dict(OPEN))
    assert list(release.schema.rules) == OPEN["rules"]
    rows = release.sample(2_000, seed=0)
    assert ((rows["b"] - rows["a"]).dt.days == rows["days"]).all()
    assert (rows["b"] >= rows["a"]).all()


def test_a_column_that_was_left_out_takes_its_rules_along():
    schema = OpenSchema.from_dict({"columns": {x: {"kind": "integer", "discover": True} for x in "ab"},
                                   "rules": [{"order": ["a", "b"]}]})  # fmt: skip
    with pytest.warns(SchemaWarning, match="order: "):
        assert not closed(schema, {"a": Integer(lower=0, upper=3), "b": Identifier()}).rules
    with pytest.warns(SchemaWarning, match="no room"):
        assert not closed(schema, {"a": Integer(lower=5, upper=9), "b": Integer(lower=0, upper=3)}).rules
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert closed(schema, {"a": Integer(lower=0, upper=9), "b": Continuous(lower=0, upper=3)}).rules


@pytest.mark.parametrize(
    "rule", [{"order": ["a", "days"]}, {"range": {"days": [0, 5]}}, {"sum": {"a": ["b", "days"]}}, {"order": ["a"]}]
)
def test_what_can_be_known_before_is_refused_before(rule):
    with pytest.raises(SchemaError, match="rule 1"):
        OpenSchema.from_dict({**OPEN, "rules": [rule]})


def test_a_target_that_a_rule_will_compute():
    schema, frame = OpenSchema.from_dict(OPEN), pd.DataFrame(columns=["a", "b", "days"])
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    with pytest.raises(SchemaError, match="no rule or total computes"):
        method.fit(frame, schema=schema, target="days")
