"""Random schemas with random rules: every row of every release keeps them, or the schema was refused with a reason."""

import numpy as np
import pandas as pd
import pytest

from fixtures.ruled import random_case
from sfumato import MaxEntropy
from sfumato.errors import ConfigError, SchemaError
from sfumato.evaluate import rule_breaks
from sfumato.lenses.chain import plain_schema
from sfumato.schema.schema import Schema

QUICK, ALL, PART = 8, 2_000, 50


def check(seed: int) -> str:
    """Fit and sample one case; return how it went."""
    document, frame = random_case(seed)
    try:
        schema = Schema.from_dict(document)
    except SchemaError as error:
        assert "rule" in str(error).lower(), error  # noqa: PT017 - told which
        return "refused"
    kinds = {name: entry["kind"] for name, entry in document["columns"].items()}
    free = [name for name, kind in plain_schema(schema).columns.items() if kind.name in ("categorical", "boolean")]
    many = len(plain_schema(schema).columns) > 1  # a target alone is a release without classes, and says so
    target = free[0] if many and free and seed % 2 and plain_schema(schema).columns[free[0]].width > 1 else None
    release = MaxEntropy(epsilon=1.0, delta=1e-5).fit(frame, schema=schema, target=target, seed=seed)
    rows = release.sample(300, seed=1)
    assert rule_breaks(rows, schema=schema).any_rule == 0
    pd.testing.assert_frame_equal(release.sample(100, seed=1), rows.iloc[:100])
    check_given(release, schema, kinds, rows, np.random.default_rng(seed))
    if target is not None:
        check_classes(release, schema, rows, target)
    return "kept"


def check_given(release, schema, kinds, rows, rng):
    """A value that was drawn can be given."""
    name = str(rng.choice(list(rows)))
    value = rows[name].iloc[int(rng.integers(len(rows)))]
    value = None if pd.isna(value) else value
    found = release.sample(50, seed=2, given={name: value})
    assert rule_breaks(found, schema=schema).any_rule == 0, name
    if value is None:
        assert found[name].isna().all()
    elif kinds[name] == "continuous":
        np.testing.assert_allclose(found[name].astype(float), float(value))
    else:
        assert (found[name] == value).all()


def check_classes(release, schema, rows, target):
    """As many rows of each class as were drawn can be asked for."""
    drawn = {str(k).lower(): int(n) for k, n in rows[target].dropna().value_counts().items()}
    found = release.sample(class_counts=dict(drawn), seed=3)
    assert rule_breaks(found, schema=schema).any_rule == 0
    assert {str(k).lower(): int(n) for k, n in found[target].value_counts().items()} == drawn


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(QUICK))
def test_rules_are_kept_or_refused(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("start", range(QUICK, ALL, PART))
def test_many_more(start):
    went = [check(seed) for seed in range(start, min(start + PART, ALL))]
    assert went.count("kept") >= len(went) // 3


def test_the_cases_are_of_both_sorts():
    """The fuzz would prove nothing if all schemas were refused."""

    def refused(seed: int) -> bool:
        try:
            Schema.from_dict(random_case(seed)[0])
        except SchemaError:
            return True
        return False

    share = np.mean([refused(seed) for seed in range(60)])
    assert 0.1 < share < 0.6


def test_given_values_that_break_a_rule_are_refused():
    from fixtures.ruled import hospital, hospital_schema

    schema = hospital_schema()
    release = MaxEntropy(epsilon=1.0).fit(hospital(), schema=schema, seed=0)
    with pytest.raises(ConfigError, match=r"rule 6 \(null_if\)"):
        release.sample(5, given={"sex": "male", "pregnant": "no"})
