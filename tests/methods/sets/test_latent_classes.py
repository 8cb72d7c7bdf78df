"""LatentClasses: counts of pairs, classes fitted to them, and samples."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from scipy import optimize, special

import sfumato
from sfumato.errors import ConfigError, ReleaseError
from sfumato.methods.sets.latent import CountedItems, _Fit, _Weights, prefixes, slopes, suffixes, without_each
from sfumato.methods.sets.pairs import CountedPairs, ItemPairCounts, size_bins, squared_length
from sfumato.models.item_classes import ItemClasses
from sfumato.models.sets import SetEncoder
from sfumato.schema.schema import Schema

N, M = 8000, 12
SCHEMA = Schema.from_dict({"rows": N, "columns": {"items": {"kind": "set", "n_items": M, "max_length": 8}}})


def baskets(n=N, seed=0):
    """Empty sets, single items and two kinds of baskets: items 0 to 3 go together, and so do 4 to 6."""
    rng = np.random.default_rng(seed)
    shares = np.full((2, M), 0.02)
    shares[0, :4], shares[1, 4:7] = 0.7, 0.6
    kind = rng.choice(4, size=n, p=[0.2, 0.3, 0.3, 0.2])
    sets = [np.flatnonzero(rng.random(M) < shares[k % 2]).tolist() for k in kind]
    return [[] if k == 0 else [int(rng.integers(M))] if k == 1 else found for k, found in zip(kind, sets, strict=True)]


def pair_shares(sets):
    x = np.zeros((len(sets), M))
    for i, items in enumerate(sets):
        x[i, items] = 1
    return (x.T @ x) / len(sets), np.bincount(x.sum(axis=1).astype(int), minlength=M)[:8] / len(sets)


@pytest.fixture(scope="module")
def real():
    return baskets()


def sampled(real, epsilon, n=40_000):
    release = sfumato.LatentClasses(epsilon=epsilon, n_classes=8).fit(pa.table({"items": real}), schema=SCHEMA, seed=0)
    return release, release.sample(n, seed=1)["items"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 0.03), (8.0, 0.015), (sfumato.NonPrivate(), 0.015)])
@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_pairs_and_sizes_are_those_of_the_sets(real, epsilon, most):
    pairs, sizes = pair_shares(real)
    _, made = sampled(real, epsilon)
    found, found_sizes = pair_shares(made)
    assert np.abs(found - pairs).max() < most
    assert np.abs(found_sizes - sizes).max() < 2 * most
    assert np.abs(found_sizes - sizes)[:2].max() < most  # counted one by one
    # as if items were independent, they are further off than that
    shares = np.diagonal(pairs)
    assert np.abs(np.outer(shares, shares) - pairs)[np.triu_indices(M, 1)].max() > 2 * most
    assert max(map(len, made)) <= 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_sizes_of_sets_of_frequent_items(seed):
    """Counts of pairs alone do not tell them: few sets of many items have the pairs of many sets of a few."""
    rng = np.random.default_rng(5)
    n, m, longest = 5000, 30, 10
    kind = rng.integers(3, size=n)[:, None]
    x = rng.random((n, m)) < np.where(np.arange(m) // 10 == kind, 0.4, 0.03)
    sets = [rng.permutation(np.flatnonzero(row))[:longest].tolist() for row in x]
    schema = Schema.from_dict({"rows": n, "columns": {"items": {"kind": "set", "n_items": m, "max_length": longest}}})
    release = sfumato.LatentClasses(epsilon=1.0).fit(pa.table({"items": sets}), schema=schema, seed=seed)
    made = release.sample(20_000, seed=0)["items"].to_pylist()
    real_law, made_law = (
        np.bincount([len(s) for s in found], minlength=longest + 1) / len(found) for found in (sets, made)
    )
    assert np.abs(real_law - made_law).sum() / 2 < 0.05


def test_it_is_saved_and_loaded(real, tmp_path):
    release, made = sampled(real, 1.0, 500)
    release.save(tmp_path / "r.sfm")
    assert sfumato.load(tmp_path / "r.sfm").sample(500, seed=1)["items"].to_pylist() == made
    assert release.certificate.epsilon == pytest.approx(1.0, rel=1e-3)


class TestCounts:
    ENCODER = SetEncoder.of(SCHEMA)

    def test_exact_counts(self):
        statistic = ItemPairCounts(self.ENCODER, np.array([0, 1, 2]), 3)
        rows = next(iter(sfumato_rows([[], [5], [0, 1], [0, 1, 2, 7, 8], [2, 9]])))
        total = statistic.zero()
        statistic.add(total, rows)
        value = total * statistic.step
        few, pairs = value[: 1 + M], value[1 + M : 4 + M]
        assert few[0] == few[6] == statistic.few_weight
        assert few.sum() == 2 * statistic.few_weight
        assert pairs.tolist() == [2.0, 1.0, 1.0]
        sizes = value[4 + M + 3 * statistic.bins.size :].reshape(statistic.bins.size, 4)
        expected = np.zeros_like(sizes)
        expected[0, 2] = expected[2, 3] = expected[1, 1] = 1.0  # others by watched ones
        assert sizes.tolist() == expected.tolist()

    @pytest.mark.parametrize("in_full", [1, 2, 3, 5, 8])
    def test_no_set_adds_more_than_the_bound(self, in_full):
        statistic = ItemPairCounts(self.ENCODER, np.arange(M), in_full)
        for held in range(9):
            total = statistic.zero()
            statistic.add(total, next(iter(sfumato_rows([list(range(held))]))))
            assert (total.astype(int) ** 2).sum() <= 64**2 * squared_length(in_full)
            full = held > 1 and held <= in_full
            assert not full or total.max() == 64

    def test_bins_are_whole_and_rising(self):
        for longest in (0, 1, 2, 5, 6, 40, 500):
            bins = size_bins(longest)
            assert bins[0] == 0
            assert (np.diff(bins) > 0).all()
            assert bins[-1] <= longest


def sfumato_rows(sets):
    from sfumato.io.sources import open_source
    from sfumato.records.private import PrivateData

    table = pa.table({"items": pa.array(sets, pa.list_(pa.int64()))})
    return PrivateData(open_source(table), SCHEMA).coded()


def test_slopes_are_those_of_the_error():
    rng = np.random.default_rng(0)
    f, b, k = 6, 3, 4
    upper = np.triu(50 * rng.random((f, f)), 1)
    items = CountedItems(1000.0, 300 * rng.random(f) + 1, 5.0, 1.2, 0.1)
    pairs = CountedPairs(
        few=50 * rng.random(12), few_std=2.0, pairs=upper + upper.T, by_size=50 * rng.random((f, b)),
        sizes=50 * rng.random((b, 5)), held_bins=np.arange(5), noise_std=4.0, weights=np.array([1, 1, 1, 0.5, 0.3]),
    )  # fmt: skip
    fit = _Fit.of(items, pairs, np.array([0, 1, 2.5]), k, 0.7)
    place = rng.standard_normal(k + k * f + k * b)
    weights = _Weights.of(fit.classes(rng.standard_normal(place.size)), pairs.weights)
    slope = fit.error(place, weights)[1]
    expected = optimize.approx_fprime(place, lambda x: fit.error(x, weights)[0], 1e-6)
    np.testing.assert_allclose(slope, expected, atol=1e-5 * np.abs(expected).max())


def test_sums_of_items_are_those_of_all_outcomes():
    rng = np.random.default_rng(0)
    k, f, most = 3, 5, 3
    p, v = rng.random((k, f)), rng.random(most + 1)

    def expected(shares, left_out=None):
        total = 0.0
        for there in itertools.product((0, 1), repeat=f):
            chance = np.prod(
                [a if t else 1 - a for i, (a, t) in enumerate(zip(shares, there, strict=True)) if i != left_out]
            )
            if left_out is None or there[left_out] == 0:
                total += chance * v[min(sum(there), most)]
        return total

    before, after = prefixes(p, most), suffixes(p, np.tile(v, (k, 1)))
    np.testing.assert_allclose(before[-1] @ v, [expected(row) for row in p], rtol=1e-12)
    np.testing.assert_allclose(after[0, :, 0], [expected(row) for row in p], rtol=1e-12)
    left = [[expected(row, i) for i in range(f)] for row in p]
    np.testing.assert_allclose(without_each(before, p, v), left, rtol=1e-12)
    sure = [
        [
            expected(np.where(np.arange(f) == i, 1.0, row)) - expected(np.where(np.arange(f) == i, 0.0, row))
            for i in range(f)
        ]
        for row in p
    ]
    np.testing.assert_allclose(slopes(before, after), sure, atol=1e-12)


@pytest.mark.parametrize("others", [True, False])
def test_exact_counts_of_classes_are_explained(others):
    """Counts that classes would have on average, weights below 1 included, are those that the same classes explain."""
    rng = np.random.default_rng(3)
    n, k, f = 200_000, 2, 8
    shares, p, q = np.array([0.6, 0.4]), 0.6 * rng.random((k, f)), np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    if not others:
        q = np.array([[1.0], [1.0]])
    kind = rng.choice(k, size=n, p=shares)
    x = rng.random((n, f)) < p[kind]
    rest = (rng.random(n)[:, None] > q.cumsum(axis=1)[kind]).sum(axis=1)
    longer = x.sum(axis=1) + rest > 1
    x, rest = x[longer], rest[longer]
    u = np.array([1, 1, 1, 0.8, 0.6, 0.5, 0.4, 0.3, 0.25])
    weights = u[x.sum(axis=1)]
    member = rest[:, None] == np.arange(q.shape[1])
    counts = (x.T * weights) @ x.astype(float)
    np.fill_diagonal(counts, 0.0)
    sizes = np.zeros((q.shape[1], f + 1))
    np.add.at(sizes, (rest, x.sum(axis=1)), weights)
    items = CountedItems(n, x.sum(axis=0).astype(float), 1.0, rest.sum() / n, 1 / n)
    pairs = CountedPairs(
        few=np.zeros(2), few_std=1.0, pairs=counts, by_size=(x.T * weights) @ member.astype(float), sizes=sizes,
        held_bins=np.arange(f + 1), noise_std=0.0, weights=u,
    )  # fmt: skip
    fit = _Fit.of(items, pairs, np.arange(q.shape[1]), k, 0.1)
    place = np.concatenate([np.log(shares), special.logit(p).ravel(), np.log(q).ravel()])
    chance = (
        f * f / 2 + f * q.shape[1] + sizes.size + f
    ) * 0.5  # a half each, if counts vary by one standard deviation
    variance = counts.mean()
    assert fit.misfit(place) / variance < 3 * chance
    worse = place.copy()
    worse[k : k + k * f] += 0.3
    assert fit.misfit(worse) / variance > 30 * chance


def test_thinned_readings_are_independent_and_of_their_noise():
    std, share = 3.0, 0.5
    noise = std * np.random.default_rng(1).standard_normal((600, 600))
    upper = np.triu(noise, 1)
    counted = CountedPairs(
        few=np.zeros(2), few_std=1.0, pairs=upper + upper.T, by_size=np.zeros((600, 1)),
        sizes=np.zeros((1, 1)), held_bins=np.zeros(1, dtype=int), noise_std=std, weights=np.ones(3),
    )  # fmt: skip
    one, two = counted.thinned(np.random.default_rng(2), share)
    places = np.triu_indices(600, 1)
    a, b = one.pairs[places], two.pairs[places]
    assert a.std() == pytest.approx(one.noise_std, rel=0.02)
    assert b.std() == pytest.approx(two.noise_std, rel=0.02)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.01


PARAMETERS = {
    "few_shares": np.append([0.1, 0.1], np.zeros(M - 1)),
    "class_shares": np.array([1.0]),
    "watched": np.array([0, 1]),
    "item_shares": np.array([[0.5, 0.01]]),
    "rest_weights": np.append([0.0, 0.0], np.ones(M - 2)),
    "size_starts": np.array([0, 1, 2, 4]),
    "size_shares": np.array([[0.5, 0.25, 0.25]]),
}


def test_longer_sets_hold_two_items_as_often_as_they_are_to():
    sampler = ItemClasses(SCHEMA, {}, PARAMETERS)
    n = 60_000
    sets = sampler.rows(n, np.random.default_rng(0))["items"]
    both = 0.5 * 0.5 * 0.01  # no other item
    one = 0.25 * (1 - 0.5 * 0.99)  # one other item, and a watched one
    total = 0.2 + both + one + 0.25
    lengths = sets.lengths
    assert (lengths == 0).mean() == pytest.approx(0.1 / total, abs=0.01)
    assert (lengths == 1).mean() == pytest.approx(0.1 / total, abs=0.01)
    assert (lengths == 2).mean() > 0.1
    assert sampler.rows(0, np.random.default_rng(0))["items"].lengths.size == 0


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_stranger_writes_wrong_arrays(name):
    good = PARAMETERS[name]
    for wrong in (None, good.astype(np.float32), good[..., :-1], -1 - good):
        arrays = {key: value for key, value in PARAMETERS.items() if key != name}
        if wrong is not None:
            arrays[name] = wrong
        with pytest.raises(ReleaseError):
            ItemClasses(SCHEMA, {}, arrays)


def test_what_it_does_not_take_is_refused():
    method = sfumato.LatentClasses(epsilon=1.0)
    with pytest.raises(ConfigError, match="one column of kind set"):
        method.plan(Schema.from_dict({"rows": 10, "columns": {"a": "boolean"}}))
    with pytest.raises(ConfigError, match="no target"):
        method.plan(SCHEMA, target="items")
    for wrong in ({"n_classes": 0}, {"most_items": 0}, {"pairs": 1.0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            sfumato.LatentClasses(epsilon=1.0, **wrong)
