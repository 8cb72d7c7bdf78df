"""Areas: every column is counted by them, whatever the target; totals agree at each level."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.errors import ConfigError, SchemaError

N, COUNTIES, REGIONS = 20_000, 12, 3
MAP = {f"c{i}": f"r{i % REGIONS}" for i in range(COUNTIES)}
SCHEMA = {
    "rows": N,
    "areas": ["region", "county"],
    "columns": {
        "county": {"kind": "categorical", "categories": list(MAP)},
        "region": {"kind": "categorical", "categories": [f"r{i}" for i in range(REGIONS)]},
        "age": {"kind": "integer", "lower": 0, "upper": 100},
        "owner": "boolean",
        "income": {"kind": "continuous", "lower": 0, "upper": 20_000},
    },
    "rules": [{"derived": "region", "from": "county", "map": MAP}],
}


def people(seed: int) -> pd.DataFrame:
    """Counties whose ages have two humps at places of their own, which six polynomials alone say little of."""
    rng = np.random.default_rng(seed)
    county = rng.integers(0, COUNTIES, N)
    centre = np.where(rng.random(N) < 0.5, 15 + 2 * county, 85 - 2 * county)
    owner = rng.random(N) < 0.1 + 0.06 * county
    names = np.array(list(MAP))[county]
    return pd.DataFrame(
        {
            "county": names,
            "region": pd.Series(names).map(MAP),
            "age": np.clip(centre + 4 * rng.normal(size=N), 0, 100).round().astype(int),
            "owner": owner,
            "income": np.clip(1_000 * rng.lognormal(0, 0.5, N) * (1 + owner), 0, 20_000),
        }
    )


@pytest.fixture(scope="module")
def frame():
    return people(0)


@pytest.fixture(scope="module")
def release(frame):
    return sfumato.fit(frame, schema=SCHEMA, epsilon=1.0, delta=1e-6, target="income", seed=1)


def distance(real: pd.DataFrame, drawn: pd.DataFrame) -> float:
    """Mean total variation of ages, in twenty bins, over counties."""
    bins = np.arange(0, 101, 5)
    of = [table.groupby("county").age.apply(lambda a: np.histogram(a, bins)[0] / len(a)) for table in (real, drawn)]
    return float(np.mean([np.abs(a - b).sum() / 2 for a, b in zip(*of, strict=True)]))


def test_columns_are_as_near_to_those_of_each_area_as_another_sample_is(frame, release):
    near, sampled = distance(frame, release.sample(N, seed=1)), distance(frame, people(1))
    assert near < 1.25 * sampled, (near, sampled)


def test_questions_about_areas_rest_on_counts_of_them(frame, release):
    """What is asked by area has hardly more noise than what is asked of all."""
    without = {**SCHEMA, "areas": []}
    alone = sfumato.fit(frame, schema=without, epsilon=1.0, delta=1e-6, target="income", seed=1)
    noise = [r.share({"owner": True, "county": "c3"}).parts["noise"] for r in (release, alone)]
    assert noise[0] < noise[1]


def test_totals_agree_at_each_level(release):
    drawn = release.sample(5_000, seed=2)
    assert (drawn["region"] == drawn["county"].map(MAP)).all()
    for region in ("r0", "r2"):
        parts = [release.count({"county": county}).value for county in MAP if MAP[county] == region]
        assert release.count({"region": region}).value == pytest.approx(sum(parts), rel=1e-6)


def test_a_call_names_them_as_a_schema_does(frame, release):
    without = {**SCHEMA, "areas": []}
    named = sfumato.fit(
        frame, schema=without, epsilon=1.0, delta=1e-6, target="income", areas=["region", "county"], seed=1
    )
    assert named.schema == release.schema
    pd.testing.assert_frame_equal(named.sample(50, seed=3), release.sample(50, seed=3))


def test_rows_are_drawn_for_areas_in_the_numbers_asked(release):
    drawn = release.sample(class_counts={"c1": 5, "c7": 2}, seed=1)
    assert drawn["county"].value_counts().to_dict() == {"c1": 5, "c7": 2}


def test_areas_are_no_target_to_predict(release):
    assert release.target is None


@pytest.mark.parametrize("method", ["p3gm", "dpgm", "dpmix"])
def test_other_methods_refuse_them(frame, method):
    schema = {**SCHEMA, "rules": [], "areas": ["county"]}
    with pytest.raises(ConfigError, match="Expected a schema without areas"):
        sfumato.fit(frame, schema=schema, epsilon=1.0, method=method)


def test_too_many_areas_are_refused():
    columns = {**SCHEMA["columns"], "place": {"kind": "categorical", "categories": [str(i) for i in range(1_001)]}}
    schema = sfumato.Schema.from_dict({"rows": N, "areas": ["place"], "columns": columns})
    with pytest.raises(SchemaError, match="at most 1000 classes of a target or areas, got 'place'"):
        sfumato.MaxEntropy(epsilon=1.0).plan(schema)
