"""Tables that try a method: each works, or is refused with a clear error before a record is read."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from fixtures.costly import slow_after
from fixtures.methods import CLOSED_FORM
from fixtures.methods import QUICK as METHODS
from sfumato import NonPrivate
from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Integer
from sfumato.errors import ConfigError, SchemaError, SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.schema.schema import Schema

# what they say of columns and classes to the last share; of the others the suite of all methods asks less
pytestmark = pytest.mark.parametrize("method", CLOSED_FORM)

N = 2_000
X = Continuous(lower=-5, upper=5)
LABELS = Categorical(categories=("p", "q"))


def sampled(method, frame, kinds, target=None, *, epsilon=1.0, n=2_000) -> pd.DataFrame:
    """Fit with seeded noise, and sample."""
    schema = Schema(columns=kinds, rows=len(frame))
    return METHODS[method](epsilon=epsilon).fit(frame, schema=schema, target=target, seed=0).sample(n, seed=0)


def people(seed: int = 0) -> pd.DataFrame:
    """A number, and a label that is its sign."""
    x = np.random.default_rng(seed).normal(0, 1, N)
    return pd.DataFrame({"x": x, "c": np.where(x > 0, "p", "q")})


@pytest.fixture
def charged(monkeypatch) -> list[str]:
    """Names of the stages that were charged."""
    names: list[str] = []
    charge = Ledger.charge

    def recording(self, name, event):
        names.append(name)
        return charge(self, name, event)

    monkeypatch.setattr(Ledger, "charge", recording)
    return names


class TestTargets:
    def test_one_declared_class(self, method):
        frame = people().assign(y="a")
        made = sampled(method, frame, {"x": X, "c": LABELS, "y": Categorical(categories=("a",))}, "y")
        assert set(made["y"]) == {"a"}
        # what it knows of the others is as without a target
        assert made.loc[made["c"] == "p", "x"].mean() - made.loc[made["c"] == "q", "x"].mean() > 1

    @pytest.mark.parametrize("rare", [0, 1])
    def test_a_class_with_one_row_or_none(self, method, rare):
        frame = people().assign(y=["b"] * rare + ["a"] * (N - rare))
        kinds = {"x": X, "c": LABELS, "y": Categorical(categories=("a", "b", "c"))}
        made = sampled(method, frame, kinds, "y")
        assert (made["y"] == "a").mean() > 0.97
        common = made[made["y"] == "a"]
        assert common.loc[common["c"] == "p", "x"].mean() - common.loc[common["c"] == "q", "x"].mean() > 1
        asked = _release(method, frame, kinds, "y").sample(50, given={"y": "b"}, seed=0)
        assert asked["x"].between(-5, 5).all()

    def test_no_target(self, method):
        made = sampled(method, people(), {"x": X, "c": LABELS})
        assert made.loc[made["c"] == "p", "x"].mean() - made.loc[made["c"] == "q", "x"].mean() > 1

    def test_a_number_as_target(self, method):
        """A regressor that learns from samples is nearly as good on real rows as one that learns from real rows."""
        rng = np.random.default_rng(0)
        features = rng.normal(0, 1, (8_000, 3))
        y = features @ [1.0, 0.5, -0.7] + 0.5 * rng.normal(size=8_000)
        frame = pd.DataFrame(features, columns=list("abc")).assign(y=y)
        kinds = {**dict.fromkeys("abc", X), "y": Continuous(lower=-8, upper=8)}
        train, test = frame[:6_000], frame[6_000:]
        made = sampled(method, train, kinds, "y", epsilon=3.0, n=6_000)
        real, ours = (
            LinearRegression().fit(rows[["a", "b", "c"]], rows["y"]).score(test[["a", "b", "c"]], test["y"])
            for rows in (train, made)
        )
        assert ours > real - 0.15


def _release(method, frame, kinds, target):
    schema = Schema(columns=kinds, rows=len(frame))
    return METHODS[method](epsilon=1.0).fit(frame, schema=schema, target=target, seed=0)


class TestShapes:
    @pytest.mark.parametrize("target", [None, "y"])
    def test_more_columns_than_rows(self, method, target):
        rng = np.random.default_rng(0)
        names = [f"v{j}" for j in range(60)]
        frame = pd.DataFrame(rng.normal(0, 1, (20, 60)), columns=names).assign(y=["p", "q"] * 10)
        made = sampled(method, frame, {**dict.fromkeys(names, X), "y": LABELS}, target, n=100)
        assert list(made.columns) == [*names, "y"]
        assert made[names].to_numpy().min() >= -5
        assert made[names].to_numpy().max() <= 5

    @pytest.mark.parametrize(
        ("kind", "dtype", "target"),
        slow_after(
            2,
            [
                (X, float, "y"),
                (Integer(lower=0, upper=9, nullable=True), int, None),
                (X, float, None),
                (Boolean(), bool, "y"),
            ],
        ),
    )
    def test_ten_thousand_columns(self, method, charged, kind, dtype, target):
        """Second moments of 10,000 entries would take days and gigabytes: refused in time, and nothing is spent."""
        names = [f"v{j}" for j in range(10_000)]
        schema = Schema(columns={**dict.fromkeys(names, kind), "y": LABELS}, rows=1_000)
        frame = pd.DataFrame(np.zeros((3, 10_000), dtype=dtype), columns=names).assign(y="p")
        synthesizer = METHODS[method](epsilon=1.0)
        start = time.process_time()
        for attempt in (
            lambda: synthesizer.plan(schema, target=target),
            lambda: synthesizer.fit(frame, schema=schema, target=target),
        ):
            with pytest.raises(SchemaError, match=r"at most \d+ entries.*Leave columns out"):
                attempt()
        assert time.process_time() - start < 60
        assert charged == []

    def test_many_levels_are_not_many_entries(self, method):
        """Rare levels share an indicator, so a column of 20,000 levels is no wider than one of 64."""
        kinds = {f"v{j}": Categorical(categories=tuple(map(str, range(20_000)))) for j in range(3)}
        METHODS[method](epsilon=1.0).plan(Schema(columns=kinds, rows=1_000))


class TestColumns:
    def test_a_constant_by_the_schema_and_one_by_the_data(self, method):
        frame = people().assign(k=3.0, d=7.0)
        kinds = {"x": X, "c": LABELS, "k": Continuous(lower=3, upper=3), "d": Continuous(lower=0, upper=10)}
        for target in (None, "c"):
            made = sampled(method, frame, kinds, target)
            assert set(made["k"]) == {3.0}
            assert made["d"].between(6, 8).mean() > 0.95

    @pytest.mark.parametrize("target", [None, "c"])
    def test_all_missing(self, method, target):
        frame = people().assign(m=np.nan, t=pd.Series([pd.NaT] * N), z=pd.Series([None] * N, dtype=object))
        dates = {"lower": "2020-01-01", "upper": "2020-12-31"}
        for nullable in (True, False):
            kinds = {
                "x": X,
                "c": LABELS,
                "m": Continuous(lower=0, upper=10, nullable=nullable),
                "t": DateTime(**dates, nullable=nullable),
                "z": Categorical(categories=("u", "v"), other="o", nullable=nullable),
            }
            made = sampled(method, frame, kinds, target)
            if nullable:
                assert made[["m", "t", "z"]].isna().mean().min() > 0.9
            else:  # a missing number or date becomes the middle of its bounds, a missing label the other one
                assert made["m"].between(4, 6).mean() > 0.9
                assert made["t"].between("2020-05-01", "2020-08-31").mean() > 0.9
                assert (made["z"] == "o").mean() > 0.9

    def test_missing_goes_with_the_class(self, method):
        rng = np.random.default_rng(0)
        frame = people()
        frame["m"] = np.where(rng.random(N) < np.where(frame["c"] == "p", 0.6, 0.1), np.nan, 5.0)
        made = sampled(method, frame, {"x": X, "c": LABELS, "m": Continuous(lower=0, upper=10, nullable=True)}, "c")
        shares = made["m"].isna().groupby(made["c"]).mean()
        assert shares["p"] == pytest.approx(0.6, abs=0.1)
        assert shares["q"] == pytest.approx(0.1, abs=0.1)

    @pytest.mark.parametrize("target", [None, "c"])
    def test_zero_inflation(self, method, target):
        rng = np.random.default_rng(0)
        frame = people().assign(gain=np.where(rng.random(N) < 0.9, 0, rng.integers(1, 99_999, N)))
        kinds = {"x": X, "c": LABELS, "gain": Integer(lower=0, upper=99_999)}
        made = sampled(method, frame, kinds, target)
        assert (made["gain"] == 0).mean() == pytest.approx((frame["gain"] == 0).mean(), abs=0.05)
        assert made.loc[made["gain"] > 0, "gain"].median() == pytest.approx(50_000, abs=15_000)

    def test_dates(self, method):
        rng = np.random.default_rng(0)
        frame = people()
        days = np.where(frame["c"] == "p", rng.integers(0, 100, N), rng.integers(200, 300, N))
        frame["t"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")
        kinds = {"x": X, "c": LABELS, "t": DateTime(lower="2020-01-01", upper="2020-12-31")}
        made = sampled(method, frame, kinds, "c")
        assert made["t"].between("2020-01-01", "2020-12-31").all()
        assert (made.loc[made["c"] == "p", "t"] < "2020-05-01").mean() > 0.85
        assert (made.loc[made["c"] == "q", "t"] > "2020-06-15").mean() > 0.85


class TestGiven:
    @pytest.mark.parametrize(
        ("given", "named"),
        [({"x": 99}, "x=99"), ({"c": "z"}, "'c'"), ({"nobody": 1}, "'nobody'"), ({"x": None}, "'x'")],
    )
    def test_values_that_no_row_can_have(self, method, given, named):
        release = _release(method, people(), {"x": X, "c": LABELS}, "c")
        with pytest.raises(SfumatoError, match=named):
            release.sample(5, given=given)

    def test_values_of_probability_zero(self, method):
        frame = people().assign(k="u")
        kinds = {"x": X, "c": LABELS, "k": Categorical(categories=("u", "v"))}
        release = METHODS[method](epsilon=NonPrivate()).fit(frame, schema=Schema(columns=kinds, rows=N), target="c")
        with pytest.raises(ConfigError, match="probability 0"):
            release.sample(5, given={"k": "v"})
