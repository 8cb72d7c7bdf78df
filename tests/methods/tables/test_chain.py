"""From two releases to a chain: tables of labels whose law is known come back, with and without a target."""

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns.kinds import Categorical, Continuous
from sfumato.maths.constants import CHAIN
from sfumato.methods.tables.chain import (
    Effort,
    Tie,
    Turns,
    _least_ridge,
    fit_table_chain,
    lawful_moments,
    order_of_ties,
)
from sfumato.methods.tables.evidence import Evidence
from sfumato.methods.tables.features import ColumnShares, Waves, hermite_coefficients, level_features, number_features

N, MADE = 20_000, 100_000


def rng(seed=0):
    return np.random.default_rng(seed)


def labels(law: np.ndarray) -> tuple[pd.DataFrame, Schema]:
    """Rows whose shares of cells are a law, up to one row a cell."""
    counts = np.floor(law.ravel() * N).astype(int)
    counts[np.argmax(counts)] += N - counts.sum()
    cells = np.array(np.unravel_index(np.repeat(np.arange(law.size), counts), law.shape))
    names = [f"c{j}" for j in range(law.ndim)]
    frame = pd.DataFrame({name: [f"v{c}" for c in column] for name, column in zip(names, cells, strict=True)})
    kinds = {n: Categorical(categories=tuple(f"v{c}" for c in range(k))) for n, k in zip(names, law.shape, strict=True)}
    return frame, Schema(columns=kinds, rows=N)


def made(frame, schema, target=None, *, epsilon=None, n=MADE):
    method = MaxEntropy(epsilon=epsilon or NonPrivate(), calibration_rows=4_000)
    return method.fit(frame, schema=schema, target=target, seed=0).sample(n, seed=0)


def joint(seed, *shape, strength=1.5):
    law = np.exp(strength * rng(seed).standard_normal(shape))
    return law / law.sum()


def pair_distance(frame, rows, first, second):
    shares = [pd.crosstab(f[first], f[second], normalize=True).stack() for f in (frame, rows)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


@pytest.mark.parametrize("target", [None, "c0"])
@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (7, 5)], ids=str)
def test_tables_of_two_columns_come_back(shape, target):
    frame, schema = labels(joint(1, *shape))
    assert pair_distance(frame, made(frame, schema, target), "c0", "c1") < 0.01


@pytest.mark.parametrize("target", [None, "c0", "c2"])
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 4, 5)], ids=str)
def test_pairs_of_three_columns_come_back(shape, target):
    frame, schema = labels(joint(2, *shape, strength=1.0))
    rows = made(frame, schema, target)
    for first, second in (("c0", "c1"), ("c0", "c2"), ("c1", "c2")):
        assert pair_distance(frame, rows, first, second) < 0.01, (first, second)


def test_a_rule_is_kept():
    """A copy, and a cell that rules another out."""
    law = np.zeros((3, 3, 2))
    for a in range(3):
        law[a, a] = [0.2, 0.3] if a else [0.0, 0.1]
    frame, schema = labels(law / law.sum())
    rows = made(frame, schema)
    assert (rows["c0"] != rows["c1"]).mean() < 0.01
    assert ((rows["c0"] == "v0") & (rows["c2"] == "v0")).mean() < 0.005


def test_a_joint_law_of_three_needs_no_more_than_its_pairs():
    """Without a third-order term, the whole law comes back, not its pairs alone."""
    pairs = [rng(j).standard_normal(s) for j, s in enumerate([(3, 3, 1), (3, 1, 3), (1, 3, 3)])]
    law = np.exp(sum(0.8 * p for p in pairs))
    law /= law.sum()
    frame, schema = labels(law)
    rows = made(frame, schema)
    shares = rows.value_counts(normalize=True)
    distance = sum(abs(shares.get(tuple(f"v{c}" for c in cell), 0) - p) for cell, p in np.ndenumerate(law)) / 2
    assert distance < 0.02


def crossed(share=0.5) -> tuple[pd.DataFrame, Schema]:
    """Two numbers whose correlation has the sign of the class, and none over all rows."""
    member = rng(3).random(N) < share
    x = rng(1).standard_normal(N)
    y = np.where(member, 0.8, -0.8) * x + 0.6 * rng(2).standard_normal(N)
    frame = pd.DataFrame({"x": x.clip(-5, 5), "y": y.clip(-5, 5), "member": np.where(member, "yes", "no")})
    number = Continuous(lower=-5, upper=5)
    return frame, Schema(columns={"x": number, "y": number, "member": Categorical(categories=("no", "yes"))}, rows=N)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "least"), [(None, 0.75), (3.0, 0.65)])
def test_what_two_columns_have_to_do_in_a_class_is_kept(epsilon, least):
    frame, schema = crossed()
    rows = made(frame, schema, "member", epsilon=epsilon, n=20_000)
    of_class = rows.groupby("member")[["x", "y"]].corr()["y"].xs("x", level=1)
    assert of_class["yes"] > least
    assert of_class["no"] < -least
    assert abs(rows["x"].corr(rows["y"])) < 0.08


def test_labels_whose_pairs_depend_on_the_class_are_kept():
    """The third column is the parity of the others: no two of them have anything to do with each other."""
    law = np.full((2, 2, 2), 0.01)
    for a in range(2):
        for b in range(2):
            law[a, b, (a + b) % 2] = 0.24
    frame, schema = labels(law)
    rows = made(frame, schema, "c2")
    parity = (rows["c0"] == rows["c1"]) == (rows["c2"] == "v0")
    assert parity.mean() == pytest.approx(0.96, abs=0.01)


class TestTurns:
    strength = np.zeros((4, 4))
    for i, j, own in ((1, 2, 0.9), (2, 3, 0.8), (3, 0, 0.7)):
        strength[i, j] = strength[j, i] = own

    def test_columns_that_say_most_come_first(self):
        assert Turns().order(self.strength).tolist() == [2, 3, 1, 0]

    def test_the_first_columns_come_before_all_others_each_number_in_turn(self):
        assert Turns(drawn_first=(2,)).order(self.strength).tolist() == [1, 0, 2, 3]
        assert Turns(drawn_first=(1, 2)).order(self.strength).tolist() == [0, 1, 2, 3]

    def test_the_target_comes_last_of_its_turn(self):
        assert Turns(target=2).order(self.strength).tolist() == [3, 1, 0, 2]
        assert Turns(drawn_first=(2,), target=1).order(self.strength).tolist() == [0, 1, 2, 3]

    def test_columns_without_features_have_a_place(self):
        assert sorted(Turns().order(np.zeros((4, 4)))) == [0, 1, 2, 3]

    def test_no_column_is_drawn_given_a_sum_or_a_mute_one(self):
        assert Turns(ties=(Tie(0, 1, 2),), mute={3}).silent == {2, 3}


class TestOrderOfTies:
    def test_terms_come_before_their_sum(self):
        order = [4, 2, 3, 0, 1]
        assert order_of_ties(order, [Tie(0, 1, 2)]).tolist() == [4, 0, 1, 2, 3]
        assert order_of_ties(order, []).tolist() == [4, 2, 3, 0, 1]

    def test_a_sum_may_be_a_term(self):
        order = order_of_ties([4, 3, 2, 1, 0], [Tie(0, 1, 2), Tie(2, 3, 4)])
        assert order.tolist() == [0, 1, 2, 3, 4]


def test_no_column_is_drawn_by_a_sum():
    """A date and the one before it are near-copies: all others are drawn by the first, and by the distance."""
    day = {"kind": "datetime", "lower": "2020-01-01", "upper": "2022-12-31"}
    schema = Schema.from_dict(
        {"rows": 4_000, "columns": {"a": day, "b": day, "x": {"kind": "integer", "lower": 0, "upper": 50}}}
    )
    first, stay = rng().integers(0, 1_000, 4_000), rng(1).poisson(5, 4_000)
    start = pd.Timestamp("2020-01-01")
    frame = pd.DataFrame({
        "a": start + pd.to_timedelta(first, "D"), "b": start + pd.to_timedelta(first + stay, "D"), "x": 2 * stay,
    })  # fmt: skip
    release = MaxEntropy(epsilon=3.0, delta=1e-5, calibration_rows=5_000).fit(frame, schema=schema, seed=0)
    names = [*schema.released, "b: time since a"]
    order = [names[j] for j in release.parameters["order"]]
    assert order.index("a") < order.index("b: time since a") < order.index("b")
    sizes = [release.parameters[f"column.{j}.values"].shape[1] for j in range(len(names))]
    ends = np.cumsum([0, *sizes])
    weights = release.parameters["weights"]
    assert not weights[:, ends[1] : ends[2]].any()
    assert weights[ends[2] : ends[3], ends[3] : ends[4]].any()


def test_what_is_known_of_a_column_fits_together():
    shares = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    drawn = np.array([0, 0, 1, 2, 3])
    features = number_features(np.bincount(drawn, shares), True, Waves(3, 0.8))
    column = ColumnShares(shares, np.arange(5), drawn, features, 0.0, 3)
    np.testing.assert_allclose(column.pooled(), [0.3, 0.3, 0.2, 0.2])
    np.testing.assert_allclose(column.law(), [0.3, 0.3, 0.2, 0.2])
    np.testing.assert_allclose(column.vectors(), (features.values * np.sqrt(features.weights))[drawn])
    assert column.waves
    assert hermite_coefficients(column.pooled(), features.values, True).shape[0] == features.size
    assert not ColumnShares(shares, drawn, np.arange(5), level_features(shares), 0.0, 0).waves
    means = column.means_in(np.array([0, 0, 0, 1, 2]), 4)
    np.testing.assert_allclose(means[0], shares[:3] @ features.values[drawn[:3]] / 0.6)
    np.testing.assert_allclose(means[1:3], features.values[[2, 3]])
    np.testing.assert_array_equal(means[3], np.zeros(features.size))


@pytest.mark.parametrize("target", [None, "y"])
@pytest.mark.slow
def test_where_many_columns_lie_is_seen_twice(target):
    """At 60 columns and 2,000 rows shares are mostly noise: the second release tells where each column lies."""
    d, n = 60, 2_000
    y = rng(1).random(n) < 0.3
    places, shifts = rng(2).uniform(-1.5, 1.5, d), 0.4 * rng(3).standard_normal(d)
    x = places + np.outer(y, shifts) + rng(4).standard_normal((n, d))
    frame = pd.DataFrame(np.clip(x, -6, 6), columns=[f"x{j}" for j in range(d)])
    schema = Schema(columns={name: Continuous(lower=-6, upper=6) for name in frame}, rows=n)
    if target:
        frame["y"] = np.where(y, "yes", "no")
        schema = Schema(columns={**schema.columns, "y": Categorical(categories=("no", "yes"))}, rows=n)
    method = MaxEntropy(epsilon=1.0, calibration_rows=2_000)
    rows = method.fit(frame, schema=schema, target=target, seed=0).sample(n, seed=0)
    errors = rows.drop(columns="y", errors="ignore").mean() - frame.drop(columns="y", errors="ignore").mean()
    assert np.sqrt((errors**2).mean()) < 0.12


def evidence_of_noise(std: np.ndarray, seed: int, planted: float = 0.0) -> Evidence:
    """Moments of three columns that have nothing to do with each other, with noise of these deviations."""
    features = [number_features(np.full(24, 1 / 24), False, Waves(3, 0.8)) for _ in range(3)]
    cells = np.arange(24)
    columns = [ColumnShares(np.full(24, 1 / 24), cells, cells, own, 0.001, 24) for own in features]
    noise = np.triu(std * rng(seed).standard_normal(std.shape), 1)
    noise[0, 3] = planted or noise[0, 3]
    return Evidence(noise + noise.T, std**2, columns)


def test_noise_alone_is_no_moment_that_a_mixture_misses():
    """Of a feature of next to no weight noise is a hundred times what any moment can be."""
    std = np.full((9, 9), 0.01)
    std[2], std[:, 2] = 100.0, 100.0
    effort = Effort.of(0.01, 1_000)
    for seed in range(20):
        found = lawful_moments(evidence_of_noise(std, seed), effort)
        assert np.abs(found - np.eye(9)).max() < 0.1
    assert np.abs(lawful_moments(evidence_of_noise(std, 0, planted=7.0), effort)).max() <= 1


def test_of_many_features_those_that_others_tell_are_not_heard():
    """Twelve near-copies of a number, and one that goes with them: six are heard, and all moments are there."""
    features = number_features(np.full(24, 1 / 24), False, Waves(3, 0.8))
    cells, p = np.arange(24), 13
    columns = [ColumnShares(np.full(24, 1 / 24), cells, cells, features, 0.001, 24) for _ in range(p)]
    loadings = np.append(np.linspace(0.98, 0.995, p - 1), 0.8)
    moments = np.kron(np.outer(loadings, loadings), np.diag([1.0, 0.0, 0.0]))
    np.fill_diagonal(moments, 1.0)
    found = Evidence(moments, np.full(moments.shape, 1e-5), columns)
    chains = []
    for most in (CHAIN.first_heard, 6):
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(vars(CHAIN), "first_heard", most)
            chains.append(fit_table_chain(found, moments, Effort.of(0.01, 4_000), rng(1)))
    heard = [np.count_nonzero(chain.weights) for chain in chains]
    assert heard[1] < heard[0]
    cells = chains[1].draw(40_000, rng(2))
    drawn = np.concatenate([features.values[cells[:, j]] for j in range(p)], axis=1)
    assert np.abs(drawn.T @ drawn / len(drawn) - moments)[0::3, 0::3].max() < 0.05


def test_columns_are_fitted_to_rows_that_are_given():
    """Where what is known has another law than the releases say, the others keep their own."""
    features, cells = number_features(np.full(24, 1 / 24), False, Waves(1, 0.8)), np.arange(24)
    columns = [ColumnShares(np.full(24, 1 / 24), cells, cells, features, 0.001, 24) for _ in range(2)]
    moments = np.array([[1.0, 0.8], [0.8, 1.0]])
    found, turns = Evidence(moments, np.full((2, 2), 1e-5), columns), Turns(drawn_first=(1,))
    high = np.repeat(np.arange(12, 24), 500)
    for given, least, most in (({}, 15.0, 20.0), ({0: high}, 11.2, 11.8)):
        chain = fit_table_chain(found, moments, Effort.of(0.01, 6_000), rng(1), turns, given)
        drawn = chain.followed(high[:, None], rng(2))[:, 1]
        assert least < drawn.mean() < most


def test_free_weights_of_a_target_are_few_beside_rows():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 30)) * np.geomspace(1e-3, 3, 30)
    squares, spread = rows.T @ rows / 400, np.linalg.eigvalsh(rows.T @ rows / 400)
    assert _least_ridge(squares, 30) == _least_ridge(squares, 45.5) == 0.0
    assert _least_ridge(np.zeros((9, 9)), 4) == 0.0
    for most in (29.5, 12, 3, 0.5):
        ridge = _least_ridge(squares, most)
        assert (spread / (spread + ridge)).sum() == pytest.approx(most)
