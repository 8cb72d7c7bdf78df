"""Numbers of which all values are known: exact in samples, numbers in answers, the whole way."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato import MaxEntropy, Schema
from sfumato.columns.bounded import ListedSteps
from sfumato.columns.kinds import Categorical, Continuous
from sfumato.columns.open import Open
from sfumato.errors import ConfigError

VALUES = (-2.5, 0.1, 1 / 3, 40.0)
KIND = Continuous(lower=-2.5, upper=40, values=VALUES)
COLUMNS = {"share": KIND, "sex": Categorical(categories=("f", "m"))}


def people(n=4_000):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"share": rng.choice(VALUES, n, p=[0.1, 0.4, 0.3, 0.2]), "sex": rng.choice(["f", "m"], n)})


@pytest.fixture(scope="module")
def release():
    return MaxEntropy(epsilon=4, delta=1e-6).fit(people(), schema=Schema(columns=COLUMNS, rows=4_000), seed=0)


def test_a_number_is_read_as_the_nearest_value():
    assert KIND.snapped(np.array([-9, -1.21, -1.19, 0.2, 0.3, 20.1, 99, np.nan]))[:-1].tolist() == [
        -2.5, -2.5, 0.1, 0.1, 1 / 3, 1 / 3, 40, np.nan
    ][:-1]  # fmt: skip
    assert Continuous(lower=2, upper=2, values=[2]).snapped(np.array([7.0])).tolist() == [2]


def test_steps_are_the_values_however_far_apart():
    steps = KIND.steps
    assert isinstance(steps, ListedSteps)
    codes = steps.codes(np.arange(4))
    np.testing.assert_array_equal(steps.at(codes), np.arange(4))
    np.testing.assert_array_equal(KIND.decoded(codes)[0], VALUES)
    assert steps.codes(np.array([2.5]))[0] == pytest.approx((codes[2] + codes[3]) / 2)


def test_samples_and_answers_have_these_values(release, tmp_path):
    frame = people()
    release.save(tmp_path / "r")
    again = sfumato.load(tmp_path / "r")
    for one in (release, again):
        rows = one.sample(4_000, seed=0)
        assert set(rows["share"]) == set(VALUES)
        mean = one.mean("share")
        assert abs(mean.value - frame["share"].mean()) < 4 * mean.std_error < 2
        assert one.quantile("share", 0.45).value == 0.1
    assert again.schema == release.schema
    rows = release.sample(50, given={"share": 1 / 3})
    assert set(rows["share"]) == {1 / 3}
    with pytest.raises(ConfigError, match="one of its values"):
        release.sample(50, given={"share": 0.3})


@pytest.mark.parametrize("kind", ["continuous", "unknown"])
def test_discovery_finds_them_where_they_are_all(kind):
    frame = people(20_000)
    frame["ratio"] = np.random.default_rng(1).gamma(3, 0.2, len(frame))
    open_columns = {"share": Open(kind=kind), "ratio": Open(kind=kind), "sex": COLUMNS["sex"]}
    release = MaxEntropy(epsilon=2, delta=1e-6).fit(frame, schema=Schema(columns=open_columns, rows=20_000), seed=0)
    assert release.schema.columns["share"] == KIND
    assert release.schema.columns["ratio"].values is None
    assert set(release.sample(2_000, seed=0)["share"]) <= set(VALUES)
