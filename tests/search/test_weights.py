"""A search by weights: its score is that of the population, whatever single rows say."""

import numpy as np
import pandas as pd
import pytest

from fixtures.costly import slow_after
from harness.privacy import FakeRecords
from sfumato import MaxEntropy, Schema, load, tune
from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import ConfigError
from sfumato.lenses.chain import plain_schema
from sfumato.records.engine import reduce
from sfumato.search.pair_scores import pair_counts, pair_layout

COLUMNS = {
    "x": Continuous(lower=-4, upper=4),
    "g": Categorical(categories=("a", "b")),
    "h": Categorical(categories=("c", "d")),
    "w": Integer(lower=0, upper=4),
}
SCHEMA = Schema(columns=COLUMNS, weight="w", rows=3_000)
RULED = Schema(columns=COLUMNS, weight="w", rows=3_000, rules=({"never": {"g": "a", "h": "d"}},))


def survey(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.choice(["a", "b"], n, p=[0.8, 0.2])
    x = np.clip(rng.normal(size=n) + (g == "b"), -4, 4)
    return pd.DataFrame(
        {"x": x, "g": g, "h": np.where(g == "a", "c", rng.choice(["c", "d"], n)), "w": np.where(g == "a", 1, 4)}
    )


def test_a_weight_is_so_many_rows_of_the_score():
    rng = np.random.default_rng(0)
    rows = {
        "x": rng.random(60),
        "g": rng.integers(0, 2, 60),
        "h": rng.integers(0, 2, 60),
        "w": rng.integers(0, 5, 60) / 4,
    }
    layout = pair_layout(plain_schema(SCHEMA), None, "w")
    assert [column.name for column in layout.columns] == ["x", "g", "h"]
    often = {name: np.repeat(column, np.rint(4 * rows["w"]).astype(int)) for name, column in rows.items()}
    weighted = reduce(pair_counts(SCHEMA, layout), FakeRecords([rows])).open_in_mechanism()
    counted = np.zeros(layout.starts[-1])
    layout.count(counted, often)
    np.testing.assert_allclose(4 * weighted, counted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("schema", slow_after(1, [SCHEMA, RULED]), ids=["plain", "rules"])
def test_the_best_fit_is_near_the_population(schema, tmp_path):
    candidates = [MaxEntropy(epsilon=20.0, delta=1e-6, calibration_rows=n) for n in (500, 1_000)]
    release = tune(survey(), method=candidates, schema=schema, mean_repetitions=2, seed=0)
    sample = release.sample(6_000, seed=0)
    assert abs((sample["g"] == "b").mean() - 0.5) < 0.04
    assert abs((sample["h"] == "d").mean() - 0.25) < 0.04
    assert release.certificate.weight is not None
    release.save(tmp_path / "r.sfm")
    assert load(tmp_path / "r.sfm").certificate.search is not None


def test_criteria_are_refused():
    with pytest.raises(ConfigError, match="without weight for criteria of acceptance"):
        tune(
            survey(50), method=[MaxEntropy(epsilon=1.0)], schema=SCHEMA, mean_repetitions=1,
            accept=[{"marginal_error": 0.2}],
        )  # fmt: skip
