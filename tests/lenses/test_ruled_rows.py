"""Samples keep the rules: by any method for tables, given values, class counts, several workers, after saving."""

import numpy as np
import pandas as pd
import pytest

from fixtures.costly import slow_after
from fixtures.methods import QUICK, skip_refused
from fixtures.ruled import RULES, hospital, hospital_schema
from sfumato import DPMix, MaxEntropy, load
from sfumato.errors import ConfigError, SchemaError
from sfumato.evaluate import rule_breaks
from sfumato.lenses.chain import plain_schema

SCHEMA = hospital_schema()
FRAME = hospital()


@pytest.fixture(scope="module")
def release():
    return MaxEntropy(epsilon=1.0).fit(FRAME, schema=SCHEMA, target="back", seed=6)


def kept(rows) -> bool:
    return rule_breaks(rows, schema=SCHEMA).any_rule == 0


def test_rows(release):
    rows = release.sample(20_000, seed=0)
    assert kept(rows)
    assert list(rows) == list(FRAME)
    assert rows.dtypes.astype(str).to_dict() == release.sample(3, seed=5).dtypes.astype(str).to_dict()


@pytest.mark.slow
def test_without_rules_they_are_broken():
    """The test above would prove nothing otherwise."""
    plain = MaxEntropy(epsilon=1.0).fit(FRAME, schema=hospital_schema([]), target="back", seed=0)
    assert rule_breaks(plain.sample(2_000, seed=0), schema=SCHEMA).any_share > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_marginals_hold(seed):
    """Shares of the free columns, by samples and by the records, differ by noise and no more: of 600 rows there is much
    at ε = 1, and a group that follows from another column has that one's.
    """
    release = MaxEntropy(epsilon=8.0).fit(FRAME, schema=SCHEMA, target="back", seed=seed)
    rows = release.sample(20_000, seed=0)
    for name in ("sex", "ward", "back", "group"):
        real, made = (frame[name].value_counts(normalize=True) for frame in (FRAME, rows))
        assert (real - made).abs().max() < 0.06, name
    assert abs(rows["stay"].median() - FRAME["stay"].median()) <= 1
    assert abs((rows["pregnant"] == "yes").mean() - (FRAME["pregnant"] == "yes").mean()) < 0.05


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize(
    "given",
    [
        {"sex": "male"}, {"pregnant": "yes"}, {"pregnant": None}, {"group": "child"}, {"stay": 3}, {"age": 17},
        {"total": 100.0}, {"discharged": "2024-03-01"}, {"ward": "none"}, {"bed": "none"}, {"bed": "day"},
        {"admitted": "2024-12-31", "discharged": "2025-01-02"}, {"intensive": 4}, {"stay": 0, "intensive": 0},
    ],
    ids=str,
)  # fmt: skip
def test_given(release, given):
    rows = release.sample(200, seed=1, given=given)
    assert kept(rows)
    for name, value in given.items():
        column = rows[name]
        if value is None:
            assert column.isna().all()
        else:
            assert (column == (np.datetime64(value) if name in ("admitted", "discharged") else value)).all()


@pytest.mark.parametrize(
    "given",
    [
        {"sex": "male", "pregnant": "no"}, {"age": 10, "group": "senior"}, {"stay": 2, "intensive": 3},
        {"admitted": "2024-03-02", "discharged": "2024-03-01"}, {"group": "child", "pregnant": "yes"},
        {"ward": "east", "bed": "none"},
    ],
    ids=str,
)  # fmt: skip
def test_given_values_that_break_a_rule(release, given):
    with pytest.raises(ConfigError, match="rule"):
        release.sample(5, given=given)


@pytest.mark.slow
@pytest.mark.audit
def test_a_given_stay_is_drawn_and_not_searched_for(release):
    """The distance that is modelled is the one that is given: the days of admission are as they were."""
    rows = release.sample(4_000, seed=0, given={"stay": 12})
    assert rows["admitted"].nunique() > 250


def test_class_counts(release):
    rows = release.sample(class_counts={"yes": 30, "no": 70}, seed=0)
    assert kept(rows)
    assert rows["back"].value_counts().to_dict() == {"no": 70, "yes": 30}


def test_classes_that_rules_speak_of_are_those_asked_for():
    """The class is in a rule: what follows is mended, and never the class."""
    schema = hospital_schema([{"if": {"ward": ["east", "west"]}, "then": {"back": "yes"}}, *RULES])
    release = MaxEntropy(epsilon=1.0).fit(FRAME, schema=schema, target="back", seed=0)
    rows = release.sample(class_counts={"yes": 300, "no": 700}, seed=0)
    assert rule_breaks(rows, schema=schema).any_rule == 0
    assert rows["back"].value_counts().to_dict() == {"no": 700, "yes": 300}
    assert set(rows["ward"][rows["back"] == "no"]) == {"none"}


@pytest.mark.slow
def test_the_first_rows_do_not_depend_on_their_number(release):
    pd.testing.assert_frame_equal(release.sample(20_000, seed=3).iloc[:500], release.sample(500, seed=3))


@pytest.mark.slow
@pytest.mark.audit
def test_workers_and_files(release, tmp_path):
    tables = [list(release.batches(40_000, seed=2, workers=workers)) for workers in (1, 2)]
    assert all(one.equals(other) for one, other in zip(*tables, strict=True))
    release.save(tmp_path / "release")
    again = load(tmp_path / "release")
    assert again.schema.rules == SCHEMA.rules
    pd.testing.assert_frame_equal(again.sample(100, seed=0), release.sample(100, seed=0))


@pytest.mark.parametrize("method", slow_after(2, (name for name in QUICK if name != "max-entropy")))
def test_every_method_for_tables(method):
    skip_refused(method, SCHEMA, None)
    assert kept(QUICK[method](epsilon=2.0).fit(FRAME, schema=SCHEMA, seed=0).sample(500, seed=0))


def test_impossible_classes():
    """A class that rules forbid has no rows, and none can be asked for."""
    rules = [{"if": {"sex": "male"}, "then": {"back": "no"}}, {"never": {"back": "yes", "sex": "female"}}]
    release = MaxEntropy(epsilon=1.0).fit(FRAME, schema=hospital_schema(rules), target="back", seed=0)
    assert set(release.sample(500, seed=0)["back"]) == {"no"}
    with pytest.raises(ConfigError, match="yes"):
        release.sample(class_counts={"yes": 3})


def test_refusals_before_the_fit():
    for target in ("total", "group", "discharged"):
        with pytest.raises(SchemaError, match=f"or puts behind another, got target='{target}'"):
            MaxEntropy(epsilon=1.0).plan(SCHEMA, target=target)
    with pytest.raises(ConfigError, match="without rules for the method dpmix"):
        DPMix(epsilon=1.0, mixture_degree=4).plan(SCHEMA)


def test_records_that_break_rules_do_not_stop_a_fit():
    """Every record is mapped to what is free, whatever it holds."""
    rng = np.random.default_rng(0)
    frame = FRAME.apply(lambda column: column.sample(frac=1, random_state=int(rng.integers(2**31))).to_numpy())
    assert rule_breaks(frame, schema=SCHEMA).any_share > 0.9
    assert kept(MaxEntropy(epsilon=1.0).fit(frame, schema=SCHEMA, seed=0).sample(1_000, seed=0))


def test_what_follows_costs_nothing():
    """Fewer columns are measured: the plan is that of the table without the columns that follow."""
    from sfumato.schema.schema import Schema

    names = set(plain_schema(SCHEMA).columns)
    assert len(names) == len(SCHEMA.columns) - 3
    small = Schema(columns=plain_schema(SCHEMA).columns, rows=SCHEMA.rows)
    method = MaxEntropy(epsilon=1.0)
    assert method.plan(SCHEMA, target="back").stages == method.plan(small, target="back").stages
    assert len(RULES) == len(SCHEMA.rules)


def test_a_missing_cell_can_be_given_though_the_model_has_none():
    """A rule lets every cell be missing; noise took the last missing cell from the model."""
    columns = {
        "left": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
        "why": {"kind": "categorical", "categories": ["out"]},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
    }
    schema = {"rows": 200, "columns": columns, "rules": [{"null_if": {"left": {"why": ["out"]}}}]}
    frame = pd.DataFrame({"left": np.arange(200) % 10, "why": "out", "sex": ["f", "m"] * 100})
    release = MaxEntropy(epsilon=1.0).fit(frame, schema=schema, seed=0)
    assert release.sample(50, seed=0)["left"].isna().all()
    rows = release.sample(50, seed=0, given={"left": None, "sex": "f"})
    assert rows["left"].isna().all()
    assert set(rows["sex"]) == {"f"}
