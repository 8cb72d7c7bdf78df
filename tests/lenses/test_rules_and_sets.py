"""Rules beside sets: rows keep the rules, sets keep their law, and records of every kind stay neighbours."""

import numpy as np
import pandas as pd
import pytest

from fixtures.set_tables import held, people, set_schema
from sfumato import MaxEntropy, Schema, load, tune
from sfumato.errors import ConfigError, SchemaError
from sfumato.evaluate import evaluate
from sfumato.lenses.chain import PlainRows, plain_schema
from sfumato.release.samplers import build_sampler

ROWS = 4_000
METHOD = MaxEntropy(epsilon=50.0, delta=1e-6, calibration_rows=4_000)
RULES = [
    {"derived": "old", "from": "age", "map": {"0-60": "no", "61-": "yes"}},
    {"never": {"old": "no", "home": "care"}},
    {"if": {"sex": "m"}, "then": {"parity": "none"}},
]


def schema(rows=ROWS, **changes):
    document = set_schema(rows, max_length=3).to_dict()
    more = {"old": ["no", "yes"], "home": ["own", "care"], "parity": ["none", "some"]}
    kinds = {name: {"kind": "categorical", "categories": labels} for name, labels in more.items()}
    return Schema.from_dict({**document, "columns": {**document["columns"], **kinds}, "rules": RULES, **changes})


def residents(n=ROWS, seed=0):
    frame, rng = people(n, seed), np.random.default_rng(seed + 1)
    old = frame["age"] > 60
    frame["old"] = np.where(old, "yes", "no")
    frame["home"] = np.where(old & (rng.random(n) < 0.4), "care", "own")
    frame["parity"] = np.where((frame["sex"] == "f") & (rng.random(n) < 0.5), "some", "none")
    frame["diagnoses"] = [cell[:3] for cell in frame["diagnoses"]]
    return frame


def keeps(frame):
    old = frame["age"] > 60
    return bool(
        ((frame["old"] == "yes") == old).all()
        and not ((frame["home"] == "care") & ~old).any()
        and not ((frame["sex"] == "m") & (frame["parity"] == "some")).any()
    )


@pytest.fixture(scope="module")
def release():
    return METHOD.fit(residents(), schema=schema(), target="home", seed=0)


def test_rows_keep_the_rules_and_sets_their_law(release, tmp_path):
    sample = release.sample(8_000, seed=1)
    assert keeps(sample)
    assert list(sample.columns) == list(residents(10).columns)
    assert sample["diagnoses"].map(len).max() <= 3
    real, made = residents(20_000, seed=9), sample
    for of in ("old", "sex"):
        for label in real[of].unique():
            shares = [held(frame[frame[of] == label]).mean() for frame in (real, made)]
            assert np.abs(shares[0] - shares[1]).max() < 0.06, (of, label)
    release.save(tmp_path / "r.sfm")
    pd.testing.assert_frame_equal(load(tmp_path / "r.sfm").sample(50, seed=2), release.sample(50, seed=2))


def test_given_items_and_values_together(release):
    found = release.sample(300, seed=3, given={"diagnoses": {"I10": True, "J45": False}, "old": "no"})
    assert keeps(found)
    assert (found["old"] == "no").all()
    assert held(found)["I10"].all()
    assert not held(found)["J45"].any()
    counted = release.sample(class_counts={"care": 20, "own": 5}, seed=0)
    assert keeps(counted)
    assert counted["home"].value_counts().to_dict() == {"care": 20, "own": 5}
    with pytest.raises(ConfigError, match="keep the rules"):
        release.sample(5, given={"diagnoses": {"I10": True}, "old": "no", "home": "care"})


def test_estimates_scores_and_tune(release):
    real = residents()
    truth = held(real)["I10"] & (real["old"] == "yes")
    answer = release.share({"diagnoses: I10": True, "old": "yes"})
    assert abs(answer.value - truth.mean()) < 0.02
    scores = evaluate(residents(), release.sample(ROWS, seed=4), schema=schema(), train_rows=200)
    assert scores["fidelity"]["rules"]["broken"]["synthetic"] == 0
    assert scores["fidelity"]["tvd_2way"] < 0.05
    best = tune(residents(400), method=[METHOD], schema=schema(400), mean_repetitions=1, seed=0)
    assert keeps(best.sample(200, seed=0))


def test_samples_are_coded_as_records_are(release):
    sampler = build_sampler(plain_schema(schema()), release.sampler, release.parameters)
    rows = PlainRows(schema(), sampler).rows(100, np.random.default_rng(0))
    assert set(rows) == set(plain_schema(schema()).released)
    assert "old" not in rows
    assert set(np.unique(rows["diagnoses: I10"])) <= {0, 1}


def test_a_rule_names_no_item():
    with pytest.raises(SchemaError, match="diagnoses: I10"):
        schema(rules=[{"never": {"sex": "f", "diagnoses: I10": True}}])
    with pytest.raises(SchemaError, match="diagnoses"):
        schema(rules=[{"never": {"sex": "f", "diagnoses": "I10"}}])
