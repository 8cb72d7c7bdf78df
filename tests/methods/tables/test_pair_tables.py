"""Whole tables of a few pairs of columns: when they are counted, which, and that they pay."""

import numpy as np
import pandas as pd
import pytest

from sfumato import EstimateCount, MaxEntropy, NonPrivate, Schema
from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import ConfigError
from sfumato.fitting.purposes import Facts
from sfumato.methods.tables import pair_tables
from sfumato.methods.tables.class_means import ClassMeans
from sfumato.methods.tables.cross_moments import CrossMoments
from sfumato.methods.tables.features import RUN, ColumnShares, level_features, number_features
from sfumato.methods.tables.pair_counts import MomentTable, law_of, pair_counts
from sfumato.methods.tables.pair_laws import information, law_weights
from sfumato.methods.tables.pair_tables import NAME, gains_of, pair_stage, with_laws, with_runs
from sfumato.schema.open_schema import OpenSchema

N = 8_000
JOBS, SECTORS, TOWNS = ([f"{kind}{k}" for k in range(n)] for kind, n in (("j", 20), ("s", 7), ("t", 9)))
COLUMNS = {
    "job": Categorical(categories=JOBS),
    "sector": Categorical(categories=SECTORS),
    "town": Categorical(categories=TOWNS),
    "age": Integer(lower=0, upper=100),
    "insured": Categorical(categories=("no", "yes")),
}
SCHEMA = Schema(columns=COLUMNS, rows=N)
LABELS = Schema(columns={name: kind for name, kind in COLUMNS.items() if name != "age"}, rows=N)


def workers(n=N, seed=0) -> pd.DataFrame:
    """The sector follows from the job, but for one in twenty; towns are of neither."""
    rng = np.random.default_rng(seed)
    job = rng.choice(20, n, p=np.arange(1, 21) / 210)
    sector = np.where(rng.random(n) < 0.05, rng.integers(0, 7, n), job % 7)
    town, age = rng.integers(0, 9, n), np.clip(rng.normal(30 + job, 10), 0, 100).round().astype(int)
    insured = np.where(rng.random(n) < 0.2 + 0.03 * job, "yes", "no")
    labels = {"job": np.array(JOBS)[job], "sector": np.array(SECTORS)[sector], "town": np.array(TOWNS)[town]}
    return pd.DataFrame({**labels, "age": age, "insured": insured})


def names_of(schema=SCHEMA, target="insured", rows=N, **settings) -> list[str]:
    method = MaxEntropy(**{"epsilon": 1.0, "delta": 1e-6, **settings})
    return [stage.name for stage in method.plan(schema, target=target, n_public=rows).stages]


@pytest.fixture(scope="module")
def release():
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=4_000)
    return method.fit(workers(), schema=SCHEMA, target="insured", seed=3)


@pytest.fixture(scope="module")
def plain():
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=4_000, pair_share=0)
    return method.fit(workers(), schema=SCHEMA, target="insured", seed=3)


def counted(release) -> list[set[str]]:
    [measurement] = [m for m in release.measurements if m.name == NAME]
    return [{axis.column for axis in axes} for axes in measurement.query.tables]


def distance(rows: pd.DataFrame, *columns: str) -> float:
    shares = [frame.groupby(list(columns)).size() / len(frame) for frame in (rows, workers())]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum()) / 2


def test_they_are_a_third_stage_of_its_part_of_the_budget():
    plan = MaxEntropy(epsilon=1.0, delta=1e-6).plan(SCHEMA, target="insured")
    shares = np.array([stage.noise_multiplier for stage in plan.stages]) ** -2.0
    assert plan[NAME].replace_distance == pytest.approx(2**0.5)
    np.testing.assert_allclose(shares / shares.sum(), [0.85 * 0.4, 0.85 * 0.6, 0.15])


@pytest.mark.parametrize(
    "without",
    [
        {"pair_share": 0},
        {"epsilon": 90.0, "rows": 100_000},
        {"target": "job", "schema": Schema(columns={n: COLUMNS[n] for n in ("sector", "age", "job")}, rows=N)},
        {"schema": Schema(columns={n: COLUMNS[n] for n in ("town", "age", "insured")}, rows=N)},
        {"schema": Schema(columns={"sector": COLUMNS["sector"], "other": Categorical(categories=TOWNS[:7])}, rows=N)},
        {"rows": EstimateCount()},
        {
            "schema": Schema.from_dict(
                {**SCHEMA.to_dict(), "weight": "w", "columns": {**COLUMNS, "w": Continuous(lower=0, upper=2)}}
            )
        },
    ],
    ids=[
        "none wanted",
        "next to no noise",
        "a class is no column",
        "one column",
        "few cells",
        "rows unknown",
        "weights",
    ],
)
def test_they_are_counted_where_public_facts_say_that_noise_matters(without):
    names = names_of(**{"target": None if "schema" in without else "insured", **without})
    assert NAME in names_of()
    assert NAME not in names


@pytest.mark.parametrize("own", [0.1, 1.0, 90.0])
def test_an_error_is_reached_whether_or_not_its_epsilon_has_the_stage(own):
    """Tables are counted where noise is large: with them the others have less of the budget."""
    facts, with_stage = Facts(LABELS, "insured", N), set()
    for error in (0.02, 0.002, 0.0007, 0.0004, 0.0002, 0.0001):
        epsilon = MaxEntropy(epsilon=own, delta=1e-6).epsilon_for(LABELS, target_error=error, target="insured")
        method = MaxEntropy(epsilon=epsilon, delta=1e-6)
        plan = method.plan(LABELS, target="insured")
        # accounts of tests are coarse: 2 % more noise; the stage's part would be 8 %
        assert 0.85 * error < method.one_way_error(plan, facts) < 1.03 * error or epsilon == 0.01
        with_stage.add(NAME in [stage.name for stage in plan.stages])
    assert len(with_stage) == 2


def test_no_share_below_0_and_none_of_all():
    for share in (-0.1, 1, "much"):
        with pytest.raises(ConfigError, match="pair_share"):
            MaxEntropy(epsilon=1.0, pair_share=share)


def test_facts_alone_decide():
    facts = Facts(SCHEMA, "insured", N)
    assert pair_stage(facts, 0.15, 64, 4.0)
    assert not pair_stage(facts, 0.15, 2, 4.0)  # all levels of a column but one share a cell


def test_the_pair_that_goes_together_is_counted(release):
    assert {"job", "sector"} in counted(release)
    assert len(counted(release)) < 3


def test_the_noise_of_a_count_is_that_of_all_tables(release):
    [measurement] = [m for m in release.measurements if m.name == NAME]
    multiplier = MaxEntropy(epsilon=1.0, delta=1e-6).plan(SCHEMA, target="insured")[NAME].noise_multiplier
    assert measurement.noise_std == pytest.approx(multiplier * len(counted(release)) ** 0.5)
    true = np.concatenate([_table(axes).ravel() for axes in measurement.query.tables])
    spread = (measurement.value - true).std() / measurement.noise_std
    assert 1 - 4 / np.sqrt(2 * true.size) < spread < 1 + 4 / np.sqrt(2 * true.size)


def _table(axes) -> np.ndarray:
    frame = workers()
    codes = [
        axis.grouped(frame[axis.column].map({label: k for k, label in enumerate(COLUMNS[axis.column].categories)}))
        for axis in axes
    ]
    table = np.zeros([axis.size for axis in axes])
    np.add.at(table, tuple(codes), 1.0)
    return table


def test_samples_keep_it(release, plain):
    rows, others = (r.sample(4 * N, seed=0) for r in (release, plain))
    assert distance(rows, "job", "sector") < 0.6 * distance(others, "job", "sector")
    assert distance(rows, "job", "insured") < 0.05
    assert distance(rows, "job") < 0.03


def test_estimates_use_it(release, plain):
    share, other = (r.share({"job": "j19", "sector": "s5"}, target="table") for r in (release, plain))
    frame = workers()
    true = ((frame.job == "j19") & (frame.sector == "s5")).mean()
    assert share.std_error < 0.7 * other.std_error
    assert abs(share.value - true) < 4 * share.std_error
    assert len(release.replicates(2, n=200, seed=0)) == 2


@pytest.mark.parametrize("fit", [{}, {"questions": ["table: town, insured", "ols: age ~ C(sector)"]}])
def test_questions_have_their_part_beside(fit):
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=1_000)
    release = method.fit(workers(2_000), schema=Schema(columns=COLUMNS, rows=2_000), seed=3, **fit)
    assert NAME in [stage.name for stage in release.certificate.stages]
    assert len(release.certificate.stages) == (4 if fit else 3)
    assert len(release.sample(50, seed=0)) == 50


def test_without_noise_a_table_is_kept():
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=4_000)
    release = method.fit(workers(), schema=SCHEMA, target="insured", seed=3)
    assert NAME in [m.name for m in release.measurements]
    assert distance(release.sample(4 * N, seed=0), "job", "sector") < 0.03


def test_a_law_without_noise_is_the_table():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 50, (6, 4)).astype(float)
    law = table / table.sum()
    pair = MomentTable((0, 1), np.outer(law.sum(axis=1), law.sum(axis=0)) * table.sum(), np.ones((6, 4)))
    again, variances = law_of(pair, table, 0.0, law.sum(axis=1), law.sum(axis=0))
    np.testing.assert_allclose(again, law, atol=1e-5)
    assert not variances.any()


def test_a_law_is_that_of_moments_where_the_table_is_noise():
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(5))
    pair = MomentTable((0, 1), 1_000 * np.outer(first, second), 0.3 * np.sqrt(1_000 * np.outer(first, second)))
    table = pair.counts + 60 * rng.standard_normal((8, 5))
    law, _ = law_of(pair, table, 60.0, first, second)
    assert np.abs(law - np.outer(first, second)).sum() < 0.1
    assert law.min() >= 0
    np.testing.assert_allclose(law.sum(axis=1), first, atol=1e-6)


def test_gains_fall_with_the_number_of_tables():
    pair = MomentTable((0, 1), np.full((10, 10), 100.0), np.full((10, 10), 40.0))
    gains = gains_of(pair, 10.0, 12)
    assert (np.diff(gains) < 0).all()
    assert gains[0] == pytest.approx(100 * (2 / np.pi) ** 0.5 * (40 - 40 * 10 / 1_700**0.5))
    np.testing.assert_array_equal(gains_of(MomentTable((0, 1), pair.counts, 0 * pair.stds), 0.0, 2), 0.0)


def test_a_cell_that_moments_leave_empty_can_be_counted():
    first = second = np.full(5, 0.2)
    pair = MomentTable((0, 1), 1_000 * np.eye(5) / 5, 40.0 * np.eye(5))
    table = 1_000 * np.roll(np.eye(5), 1, axis=0) / 5
    law, _ = law_of(pair, table + np.random.default_rng(0).standard_normal((5, 5)), 1.0, first, second)
    assert np.abs(law - table / 1_000).sum() < 0.1
    assert law.sum() == pytest.approx(1)
    np.testing.assert_allclose(law.sum(axis=0), second, atol=1e-9)


def test_laws_say_their_moments_alone_and_keep_what_classes_deviate_by():
    columns = [_label(3), _label(2), _label(2)]
    d = sum(column.features.size for column in columns)
    zero, by_class = np.zeros((d, d)), np.full((2, d, d), 0.25)
    moments = CrossMoments(
        np.zeros(d),
        zero,
        zero + 1,
        zero,
        zero + 1,
        None,
        by_class,
        by_class,
        zero,
        np.zeros(d),  # type: ignore[arg-type]
    )
    law = np.array([[0.3, 0.05], [0.1, 0.2], [0.05, 0.3]])
    known = columns[0].features.values.T @ law @ columns[1].features.values
    laws = {(0, 1): (law, 0 * law)}
    wanted = with_laws(moments, columns, laws, 0.01, 100.0, centred=True)
    np.testing.assert_allclose(wanted.means[:2, 2:3], known)
    np.testing.assert_allclose(wanted.means, wanted.means.T)
    np.testing.assert_allclose(wanted.by_class - wanted.means, by_class)
    assert (wanted.means[:, 3] == 0).all()
    assert wanted.variances[0, 2] < 0.01 < wanted.variances[0, 3]
    np.testing.assert_array_equal(with_laws(moments, columns, laws, 0.01, 100.0, centred=False).by_class, by_class)


def test_features_of_runs_tell_all_of_them_apart_and_are_unknown_beside_others():
    columns = [_label(4), _number(12)]
    sizes = [column.features.size for column in columns]
    d, known = sum(sizes), np.full((2, sum(sizes)), 0.5)
    square = np.full((d, d), 0.25)
    classes = ClassMeans(known, known)
    moments = CrossMoments(
        np.zeros(d), square, square, square, square, classes, square[None], square[None], square, np.zeros(d)
    )
    finer, wide = with_runs(columns, moments, {1})
    values, shares = finer[1].features.values, finer[1].pooled()
    assert finer[0] is columns[0]
    assert values.shape == (12, 11)  # but for the constant, a basis
    np.testing.assert_allclose(values.T @ (values * shares[:, None]), np.eye(11), atol=1e-9)
    np.testing.assert_array_equal(values[:, : sizes[1]], columns[1].features.values)
    assert (finer[1].features.kinds[sizes[1] :] == RUN).all()
    assert not finer[1].features.weights[sizes[1] :].any()
    np.testing.assert_array_equal(wide.means[:d, :d], square)
    assert np.isinf(wide.variances[d:]).all()
    assert not wide.means[:, d:].any()
    assert wide.groups.shape == wide.means.shape == wide.by_class.shape[1:] == (14, 14)


def test_weights_of_a_law_are_that_law():
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.ones(20)).reshape(5, 4)
    features = [level_features(law.sum(axis=axis)).values for axis in (1, 0)]
    weights, tilts = law_weights(law, *features)
    logits = np.log(law.sum(axis=0)) + tilts + features[0] @ weights.T @ features[1].T
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances, law / law.sum(axis=1, keepdims=True), rtol=1e-9)
    assert information(law) > 0
    assert information(np.outer(law.sum(axis=1), law.sum(axis=0))) == pytest.approx(0, abs=1e-12)


SHOPS = {
    "shop": Categorical(categories=[f"s{k}" for k in range(30)]),
    "km": Continuous(lower=0, upper=100),
    "pay": Categorical(categories=("cash", "card")),
}


def customers(seed, n=16_000) -> tuple[pd.DataFrame, pd.Series]:
    """Thirty shops and their distances, which no polynomials of eight orders tell apart; where each shop is."""
    rng = np.random.default_rng(seed)
    places, shop = rng.permutation(np.linspace(3, 97, 30)), rng.integers(0, 30, n)
    frame = pd.DataFrame({"shop": [f"s{k}" for k in shop], "km": (places[shop] + rng.normal(0, 0.5, n)).round(1)})
    frame["pay"] = np.array(["cash", "card"])[rng.integers(0, 2, n)]
    return frame, pd.Series(places, index=[f"s{k}" for k in range(30)])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_number_that_a_label_says_is_where_the_label_says(seed):
    (frame, places), far = customers(seed), {}
    for share in (0.15, 0):
        method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=4_000, pair_share=share)
        rows = method.fit(frame, schema=Schema(columns=SHOPS, rows=len(frame)), seed=seed).sample(len(frame), seed=0)
        far[share] = float(((rows.km - rows.shop.map(places).astype(float)).abs() > 4).mean())
    assert far[0.15] < 0.06
    assert far[0.15] < 0.5 * far[0]


def test_estimates_do_not_take_a_run_for_where_a_label_lies():
    """One price a product: of a run's rows a product has those at one place, and a table of runs cannot say which."""
    rng, n, products, misses = np.random.default_rng(4), 20_000, [f"p{k}" for k in range(45)], []
    price = rng.lognormal(3, 1.2, 45).clip(1, 500)
    columns = {"product": Categorical(categories=products), "paid": Continuous(lower=0, upper=500), "pay": SHOPS["pay"]}
    for seed in range(4):
        product = rng.choice(45, n, p=rng.dirichlet(np.full(45, 2.0)))
        pay = np.array(["cash", "card"])[rng.integers(0, 2, n)]
        frame = pd.DataFrame({"product": np.array(products)[product], "paid": price[product], "pay": pay})
        method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=4_000)
        release = method.fit(frame, schema=Schema(columns=columns, rows=n), seed=seed)
        assert {"product", "paid"} in counted(release)
        means = release.mean("paid", by="product", target="table").to_frame()
        misses += list((means.value - frame.groupby("product").paid.mean()[means.index]) / means.std_error)
    assert len(misses) > 40
    assert np.mean(np.abs(misses) < 1.96) > 0.9
    assert np.sqrt(np.mean(np.square(misses))) < 1.5  # 3.4 with runs


def _number(runs: int) -> ColumnShares:
    shares, cells = np.arange(1.0, runs + 1) / np.arange(1.0, runs + 1).sum(), np.arange(runs)
    return ColumnShares(shares, cells, cells, number_features(shares, False, 6), np.zeros((1, runs)), 1.0, runs)


def _label(levels: int) -> ColumnShares:
    shares, cells = np.full(levels, 1 / levels), np.arange(levels)
    return ColumnShares(shares, cells, cells, level_features(shares), np.zeros((1, levels)), 1.0, 0)


@pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
@pytest.mark.parametrize("kind", ["unknown", "categorical"])
@pytest.mark.parametrize("other", ["number", "name", "label", "nothing"])
def test_what_discovery_makes_of_a_column_leaves_a_pair_to_count(kind, other):
    """One label column is declared: what the other one is is not known when stages are planned."""
    n = 2_000
    cells = {
        "number": np.arange(n) % 77 + 0.5,
        "name": np.char.add("person ", np.arange(n).astype(str)),
        "label": np.array(["u", "v"])[np.arange(n) % 2],
        "nothing": np.full(n, None),
    }[other]
    levels = [f"l{k}" for k in range(60)]
    columns = {"a": {"kind": "categorical", "categories": levels}, "b": {"kind": kind, "discover": True}}
    frame = pd.DataFrame({"a": np.array(levels)[np.arange(n) % 60], "b": cells})
    for more in ({}, {"c": {"kind": "categorical", "categories": levels}}):
        opened = OpenSchema.from_dict({"rows": n, "columns": {**columns, **more}})
        method = MaxEntropy(epsilon=4.0, delta=1e-6, calibration_rows=500)
        release = method.fit(frame.assign(c=frame.a)[["a", "b", *more]], schema=opened, seed=0)
        assert (NAME in [stage.name for stage in release.certificate.stages]) == bool(more)


@pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
@pytest.mark.parametrize("kind", ["integer", "continuous"])
@pytest.mark.parametrize("values", [np.arange(2_000) % 9, np.arange(2_000) % 9 * 10**17 + 2**60, np.full(2_000, 1e300)])
def test_a_number_that_discovery_leaves_out_leaves_a_column_to_count(kind, values):
    """It is a number when stages are planned; the one of labels is then counted alone."""
    levels = [f"l{k}" for k in range(60)]
    columns = {"a": {"kind": "categorical", "categories": levels}, "b": {"kind": kind, "discover": True}}
    frame = pd.DataFrame({"a": np.array(levels)[np.arange(2_000) % 60], "b": values})
    schema = OpenSchema.from_dict({"rows": 2_000, "columns": columns})
    release = MaxEntropy(epsilon=4.0, delta=1e-6, calibration_rows=500).fit(frame, schema=schema, seed=0)
    assert counted(release)[0] in ({"a"}, {"a", "b"})
    assert len(release.sample(20, seed=0)) == 20
    assert release.share({"a": "l3"}, target="table").std_error > 0


def test_a_question_about_a_pair_is_no_second_one():
    """It is counted for both reasons, and replicates take it once."""
    questions = ["table: job, sector"]
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=1_000)
    release = method.fit(workers(), schema=SCHEMA, target="insured", questions=questions, seed=3)
    assert {"job", "sector"} in counted(release)
    assert len(release.replicates(2, n=100, seed=0)) == 2


def test_an_interrupted_fit_goes_on_with_the_tables_it_counted(tmp_path, monkeypatch):
    path, method = tmp_path / "fit.ckpt", MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=500)

    def broken(*arguments, **settings):
        raise KeyboardInterrupt

    def fit():
        return method.fit(workers(), schema=SCHEMA, target="insured", seed=3, checkpoint=path)

    with monkeypatch.context() as patched:
        patched.setattr(pair_tables, "with_laws", broken)
        with pytest.raises(KeyboardInterrupt):
            fit()
    with monkeypatch.context() as patched:
        patched.setattr(pair_tables, "chosen_pairs", lambda *given: [pair_counts(0, 2, *given[:3])])
        with pytest.raises(ConfigError, match="count the cells that it counted"):
            fit()
    assert {"job", "sector"} in counted(fit())
