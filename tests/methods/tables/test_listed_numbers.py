"""Numbers of which all values are known: exact in samples, numbers in answers, the whole way."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato import MaxEntropy, Schema
from sfumato.columns.bounded import ListedSteps
from sfumato.columns.kinds import Categorical, Continuous
from sfumato.columns.open import Open
from sfumato.errors import ConfigError, ReleaseError, SchemaError
from sfumato.measurements.query_form import QueryArrays, read_query, write_query
from sfumato.privacy.reading import Place

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


def discovered(values, epsilon=5.0, seed=0):
    frame = pd.DataFrame({"x": values, "sex": np.random.default_rng(1).choice(["f", "m"], len(values))})
    columns = {"x": Open(kind="continuous"), "sex": COLUMNS["sex"]}
    schema = Schema(columns=columns, rows=len(frame))
    return MaxEntropy(epsilon=epsilon, delta=1e-6).fit(frame, schema=schema, seed=seed)


def test_a_tail_that_counts_show_is_no_list():
    rng = np.random.default_rng(0)
    values = rng.choice([0, 0.123456789], 20_000)
    tail = rng.random(20_000) < 0.04
    release = discovered(np.where(tail, rng.lognormal(9, 1, 20_000), values))
    assert release.schema.columns["x"].values is None
    assert release.share({"x": (100, None)}).value == pytest.approx(0.04, abs=0.01)


@pytest.mark.parametrize("far", [9.96921e36, 1e308, -1e308])
def test_numbers_beyond_the_grid_are_no_values(far):
    values = np.random.default_rng(0).choice([1 / 7, 1 / 3, 2 / 3], 40_000)
    values[:320] = far
    kind = discovered(values).schema.columns["x"]
    assert isinstance(kind, Continuous)
    assert kind.values == (1 / 7, 1 / 3, 2 / 3)


@pytest.mark.parametrize("values", [(0.1, 2 / 3, 1 - 1 / 3 + 1e-15, 2.1), (0, 1e-12, 1e5), (-1e308, 1e308)])
def test_values_too_near_or_too_far_are_refused(values):
    with pytest.raises(SchemaError):
        Continuous(lower=values[0], upper=values[-1], values=values)


def test_values_near_each_other_are_read_as_themselves():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = np.unique(rng.integers(1, 30, 20) / rng.integers(1, 30, 20))
        kind = Continuous(lower=values[0], upper=values[-1], values=values.tolist())
        np.testing.assert_array_equal(kind.snapped(values), values)
        codes = (values - values[0]) / (values[-1] - values[0])
        np.testing.assert_array_equal(kind.decoded(codes)[0], values)


def test_a_span_may_end_between_values(release):
    assert release.share({"share": (0.2, 20)}).value == release.share({"share": 1 / 3}).value


def test_places_of_a_document_are_those_of_its_cells(release):
    arrays: dict[str, np.ndarray] = {}
    query = next(m.query for m in release.measurements if m.query is not None)
    form = write_query(query, arrays)
    place = next(axis for table in form["tables"] for axis in table if axis["column"] == "share")["places"]
    for wrong in (arrays[place][:-1], np.zeros(5_000, dtype=np.int64), None):
        other = {name: array for name, array in arrays.items() if name != place}
        with pytest.raises(ReleaseError):
            read_query(form, Place("query"), QueryArrays(other if wrong is None else {**other, place: wrong}))
