"""Estimates: those of the table without noise, within their errors with it, and refused where nothing was measured."""

import dataclasses
import gc
import json
import weakref

import numpy as np
import pandas as pd
import pytest

from fixtures.ruled import hospital, hospital_schema
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns import Boolean, Categorical, Continuous
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.calibration import Calibration
from sfumato.inference.estimator import require_known
from sfumato.inference.noisy_totals import Totals
from sfumato.measurements import MarginalQuery
from sfumato.release_front import load

FAR = 5.0  # standard errors


def asked(release, target):
    """Name, estimate and the table's own number, of every question."""
    return {
        "mean": (release.mean("x", target=target), lambda f: f.x.mean()),
        "mean by": (release.mean("x", by="z", target=target)["b"], lambda f: f.x[f.z == "b"].mean()),
        "share": (release.share({"w": "yes"}, target=target), lambda f: (f.w == "yes").mean()),
        "pair": (
            release.share({"w": "yes", "z": "b"}, target=target), lambda f: ((f.w == "yes") & (f.z == "b")).mean()
        ),
        "share by": (
            release.share({"w": "yes"}, by="z", target=target)["a"], lambda f: (f.w == "yes")[f.z == "a"].mean()
        ),
        "count": (release.count({"z": "a"}, target=target), lambda f: (f.z == "a").sum()),
        "rows": (release.count(target=target), len),
        "cell": (release.crosstab("z", "w", target=target)["b", "no"], lambda f: ((f.z == "b") & (f.w == "no")).sum()),
        "median": (release.quantile("x", target=target), lambda f: f.x.median()),
        "quantile": (release.quantile("y", 0.9, target=target), lambda f: f.y.quantile(0.9)),
        "variance": (release.variance("x", target=target), lambda f: f.x.var()),
        "correlation": (release.correlation("x", "y", target=target), lambda f: f.x.corr(f.y)),
    }  # fmt: skip


def test_without_noise_estimates_are_the_tables_own(exact, table):
    for name, (found, own) in asked(exact, "table").items():
        wanted = float(own(table))
        scale = table.x.std() if name in ("mean", "mean by", "median", "quantile") else max(abs(wanted), 0.2)
        assert found.parts["noise"] == 0, name
        assert abs(found.value - wanted) < 0.02 * scale, name


@pytest.mark.parametrize("target", ["table", "population"])
def test_estimates_are_within_their_errors(release, table, target):
    for name, (found, own) in asked(release, target).items():
        wanted = float(own(table))
        assert found.std_error > 0, name
        assert abs(found.value - wanted) < FAR * found.std_error, name
        low, high = found.interval(0.9)
        assert low < found.value < high or name == "rows", name
        assert found.target == target
        assert np.isclose(sum(part**2 for part in found.parts.values()), found.std_error**2, rtol=1e-6), name
        assert ("sampling" in found.parts) == (target == "population")
        json.dumps(found.to_dict())


def test_the_population_is_less_sure_than_the_table(release):
    for question in (release.mean, release.variance):
        assert question("x").std_error > question("x", target="table").std_error
    assert release.mean("x").parts["sampling"] == pytest.approx(1.05 / np.sqrt(5_000), rel=0.15)


@pytest.mark.slow
def test_noise_in_errors_is_the_spread_of_estimates_under_redrawn_noise(release):
    """The second way: a parametric bootstrap of the mechanisms' noise, the model held."""
    rng = np.random.default_rng(5)

    def redrawn(measurement):
        noise = rng.standard_normal(measurement.value.shape) * measurement.noise_std
        if measurement.symmetric:
            noise = (noise + np.swapaxes(noise, -1, -2)) / 2
        return dataclasses.replace(measurement, value=measurement.value + noise, origin=None)

    def questions(one):
        line = one.ols("y ~ x + C(z)").params
        return [one.mean("x").value, one.share({"w": "yes"}).value, one.correlation("x", "y").value, line["x"]]

    found = [
        questions(dataclasses.replace(release, measurements=tuple(map(redrawn, release.measurements))))
        for _ in range(25)
    ]
    stated = [
        release.mean("x").parts["noise"], release.share({"w": "yes"}).parts["noise"],
        release.correlation("x", "y").parts["noise"], release.ols("y ~ x + C(z)").parts.loc["x", "noise"],
    ]  # fmt: skip
    ratios = np.std(found, axis=0, ddof=1) / stated
    assert (ratios > 0.6).all(), ratios
    assert (ratios < 1.55).all(), ratios


def test_crosstabs_are_tables(release, table):
    found = release.crosstab("z", "w")
    assert found.table().shape == (2, 2)
    assert found.table().to_numpy().sum() == pytest.approx(len(table), rel=0.03)
    shares = release.crosstab("z", "w", normalize=True)
    assert shares.table().to_numpy().sum() == pytest.approx(1, abs=0.01)
    assert set(shares.to_frame().columns) == {"value", "std_error", "low", "high"}
    assert "std_error" in repr(found)
    assert "<table" in found._repr_html_()


def test_intervals_stay_where_their_targets_are(release):
    rare = release.share({"z": "b", "w": "yes"})
    low, high = rare.interval(0.999999)
    assert 0 <= low < high <= 1
    low, high = release.correlation("x", "y").interval(0.999999)
    assert -1 < low < high < 1
    with pytest.raises(ConfigError, match="level"):
        rare.interval(1.0)


def test_a_saved_release_says_the_same(release, tmp_path):
    release.save(tmp_path / "r.sfm")
    found = load(tmp_path / "r.sfm")
    assert found.mean("x") == release.mean("x")
    assert found.ols("y ~ x").params.equals(release.ols("y ~ x").params)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda r: r.mean("nothing"), "nothing"),
        (lambda r: r.mean("z"), "column of numbers"),
        (lambda r: r.mean("x", by="y"), "column of labels"),
        (lambda r: r.mean("x", target="all"), "target"),
        (lambda r: r.share({}), "labels by column"),
        (lambda r: r.share({"z": "c"}), "'a', 'b'"),
        (lambda r: r.quantile("x", 1.0), "q"),
        (lambda r: r.crosstab("z", "z"), "twice"),
    ],
)
def test_wrong_questions_are_refused(release, ask, said):
    with pytest.raises(ConfigError, match=said):
        ask(release)


def test_what_was_not_measured_is_refused(release):
    # three columns, none of them the class: only what pairs and the model say of it
    with pytest.raises(EstimateError, match="two columns go together"):
        release.ols("y ~ x * C(w)")
    with pytest.raises(EstimateError, match="two columns go together"):
        release.ols("y ~ x * u")


def test_groups_that_noise_hides_are_left_out():
    frame = pd.DataFrame({"x": np.arange(200) % 10.0, "z": ["a"] * 197 + ["b"] * 3})
    columns = {"x": Continuous(lower=0, upper=9), "z": Categorical(categories=("a", "b"))}
    few = MaxEntropy(epsilon=0.5).fit(frame, schema=Schema(columns=columns, rows=200), seed=0)
    found = few.mean("x", by="z")
    assert list(found) == ["a"]
    assert list(found.left_out) == ["b"]
    assert "Left out: b" in repr(found)


def test_releases_without_measurements_are_refused(release):
    with pytest.raises(EstimateError, match="how many rows lie in the cells of columns"):
        dataclasses.replace(release, measurements=()).mean("x")


def test_columns_that_nothing_was_measured_of_are_refused_by_name(release):
    """The same measurements without those of u and y: the release answers of x, and says why not of the others."""
    kept = tuple(only(m, {"x", "z"}) for m in release.measurements if isinstance(m.query, MarginalQuery))
    fewer = dataclasses.replace(release, measurements=kept)
    assert abs(fewer.mean("x").value - release.mean("x").value) < 2 * release.mean("x").std_error
    with pytest.raises(EstimateError, match="'y': none of its measurements is of its cells"):
        fewer.mean("y")
    with pytest.raises(EstimateError, match="how all of its columns go together"):
        fewer.replicates(2)


def only(measurement, columns):
    """The tables of a measurement that are of some columns alone."""
    query, tables = measurement.query, measurement.query.split(measurement.value)
    kept = [j for j, axes in enumerate(query.tables) if {axis.column for axis in axes} <= columns]
    value = np.concatenate([tables[j] for j in kept], axis=-1)
    query = dataclasses.replace(query, tables=tuple(query.tables[j] for j in kept))
    return dataclasses.replace(measurement, value=value, query=query, origin=None)


@pytest.mark.slow
@pytest.mark.audit
def test_columns_that_rules_compute():
    """Means and shares of what follows from measured columns are sums of theirs; all else is refused by name."""
    rows = hospital(3_000)
    release = MaxEntropy(epsilon=3.0, delta=1e-5).fit(rows, schema=hospital_schema(rows=3_000), target="back", seed=0)
    assert abs(release.share({"sex": "male"}).value - 0.5) < 0.1
    assert release.mean("age").value > 30
    for name in ("total", "stay", "discharged"):
        low, high = release.mean(name, target="table").interval(0.999)
        assert low <= rows[name].mean() <= high, name
        with pytest.raises(EstimateError, match=f"'{name}', which follows from others by a rule"):
            release.variance(name)
    label = rows["group"].iloc[0]
    low, high = release.share({"group": label}, target="table").interval(0.999)
    assert low <= (rows["group"] == label).mean() <= high
    assert set(release.mean("total", by="group")), "each part goes with a group by a pair"


def answers_of(release):
    """One of each kind of answer."""
    return {
        "estimate": release.mean("x"),
        "estimates": release.mean("x", by="z"),
        "crosstab": release.crosstab("z", "w"),
        "regression": release.ols("y ~ x"),
        "logistic": release.logit("w ~ x"),
        "regressions": release.ols("y ~ x", by="z"),
    }


def test_answers_show_themselves_and_say_what_they_rest_on(release):
    for kind, found in answers_of(release).items():
        assert "<table" in found._repr_html_(), kind
        assert "Measured: noisy counts" in found._repr_html_(), kind
        for text in (repr(found), str(found), found.summary(level=0.9)):
            assert "Measured: noisy counts" in text, kind
    assert "90 %" in release.mean("x").summary(level=0.9)
    assert "privacy noise" in repr(release.mean("x"))


def test_intervals_by_the_name_of_statsmodels(release):
    for kind, found in answers_of(release).items():
        wide, narrow = found.conf_int(level=0.99), found.conf_int(level=0.5)
        if kind == "estimate":
            assert wide == found.interval(0.99)
            assert wide[0] < narrow[0] < narrow[1] < wide[1]
            continue
        assert list(wide.columns) == ["low", "high"], kind
        assert (wide["low"] <= narrow["low"]).all(), kind
        assert (wide["high"] > narrow["high"]).all(), kind
    groups = release.ols("y ~ x", by="z")
    assert groups.conf_int().loc[("a", "x"), "low"] == groups["a"].conf_int().loc["x", "low"]
    assert groups.to_frame().index.names == ["group", "term"]


def test_html_of_answers_is_escaped():
    from sfumato.inference.estimate import Estimate, Estimates

    hostile = "<script>alert(1)</script>"
    one = Estimate(1.0, 0.1, "table", f"Measured: {hostile}. Its variance is x.")
    for found in (one, Estimates({hostile: one}, (hostile,), {hostile: "why"})):
        assert "<script" not in found._repr_html_()


def test_few_calibrations_are_held(release):
    questions = release._questions
    names = ("x", "u", "y", "z", "w")
    for i, first in enumerate(names):
        for second in names[:i]:
            questions.estimator((first, second), "table")
    assert len(questions._calibrations) <= 8


def test_what_is_said_less_of_is_less_sure():
    """Below 85 % the rest may be off by .15 of its deviation in place of .03; below 60 % there is no answer."""
    rng = np.random.default_rng(0)
    functions = rng.normal(size=(4_000, 2))
    n = 10_000
    measured = Totals(functions[:, :1], np.zeros(1), np.ones(1))

    def found(part):
        asked = functions @ [[part**0.5], [(1 - part) ** 0.5]]
        return Calibration(measured, n, 0.0).variances(asked)

    for part, off in ((0.9, 0.03), (0.75, 0.15)):
        one = found(part)
        assert one.known[0] == pytest.approx(part, abs=0.03)
        assert one.unmeasured[0, 0] == pytest.approx((1 + off**2 * n) * n * (1 - part), rel=0.1)
        require_known(one.known, ("x",), "a mean")
    with pytest.raises(EstimateError, match="a mean"):
        require_known(found(0.3).known, ("x",), "a mean")


def test_truth_values_are_labels():
    frame = pd.DataFrame({"smoker": np.arange(400) % 4 == 0, "x": 0.5})
    columns = {"smoker": Boolean(), "x": Continuous(lower=0, upper=1)}
    release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=Schema(columns=columns, rows=400))
    for asked in (True, np.True_, "true"):
        assert release.share({"smoker": asked}).value == pytest.approx(0.25, abs=0.01)


@pytest.mark.filterwarnings("error")
def test_a_variance_that_noise_hides_has_an_interval_from_0():
    frame = pd.DataFrame({"x": np.full(300, 0.5)})
    schema = Schema(columns={"x": Continuous(lower=0, upper=1)}, rows=300)
    for seed in range(4):
        found = MaxEntropy(epsilon=0.1, delta=1e-6).fit(frame, schema=schema, seed=seed).variance("x")
        low, high = found.interval()
        assert (found.low, found.high) == (low, high)
        assert 0 <= low <= high < np.inf


def test_a_release_that_was_asked_is_freed_with_its_last_name(table):
    """What questions hold is hundreds of megabytes: too much to wait for the collector of cycles."""
    columns = {"x": Continuous(lower=-5, upper=6), "z": Categorical(categories=("a", "b"))}
    fitted = MaxEntropy(epsilon=1.0).fit(table, schema=Schema(columns=columns, rows=len(table)), seed=0)
    fitted.mean("x")
    seen = weakref.ref(fitted._questions.measured)
    gc.disable()
    try:
        del fitted
        assert seen() is None
    finally:
        gc.enable()
