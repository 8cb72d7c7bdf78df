"""LatentClasses: counts of pairs, classes fitted to them, and samples."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import optimize

import sfumato
from sfumato.errors import ConfigError, ReleaseError
from sfumato.methods.sets.latent import CountedItems, _Fit, _Weights
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
        assert value[-statistic.bins.size :].tolist()[:3] == [1.0, 1.0, 1.0]

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
        sizes=50 * rng.random(b), noise_std=4.0, weights=np.array([1, 1, 1, 0.5, 0.3]),
    )  # fmt: skip
    fit = _Fit.of(items, pairs, np.array([0, 1, 2.5]), k, 0.7)
    place = rng.standard_normal(k + k * f + k * b)
    weights = _Weights.of(fit.classes(rng.standard_normal(place.size)), pairs.weights)
    slope = fit.error(place, weights)[1]
    expected = optimize.approx_fprime(place, lambda x: fit.error(x, weights)[0], 1e-6)
    np.testing.assert_allclose(slope, expected, atol=1e-5 * np.abs(expected).max())


def test_thinned_readings_are_independent_and_of_their_noise():
    std, share = 3.0, 0.5
    noise = std * np.random.default_rng(1).standard_normal((600, 600))
    upper = np.triu(noise, 1)
    counted = CountedPairs(
        few=np.zeros(2), few_std=1.0, pairs=upper + upper.T, by_size=np.zeros((600, 1)), sizes=np.zeros(1),
        noise_std=std, weights=np.ones(3),
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
