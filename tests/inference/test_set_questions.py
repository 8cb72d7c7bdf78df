"""Questions about sets of items: their law of error, what they rest on, and what was not measured."""

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato
from sfumato import IndependentItems, LatentClasses, NonPrivate
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.item_measurements import MeasuredItems
from sfumato.inference.set_questions import _ends_of_share
from sfumato.privacy.budget import EstimateCount

N, M = 2000, 12
NAMES = [f"i{j}" for j in range(M)]
SHARES = np.array([0.5, 0.35, 0.3, 0.25, 0.2, 0.1, 0.1, 0.08, 0.05, 0.03, 0.002, 0.0])


def held(seed, n=N):
    """Items by themselves, but that the second comes with the first, and is cut off with the third."""
    rng = np.random.default_rng(seed)
    found = rng.random((n, M)) < SHARES
    found[:, 1] = (found[:, 0] & (rng.random(n) < 0.6)) | (rng.random(n) < 0.05)
    return found


def schema(longest=M, n=N, **more):
    return {"rows": n, "columns": {"basket": {"kind": "set", "items": NAMES, "max_length": longest}}, **more}


def fitted(sets, method=LatentClasses, longest=M, epsilon=1.0, seed=0, **options):
    table = pa.table({"basket": [[NAMES[j] for j in np.flatnonzero(row)] for row in sets]})
    few = {"n_classes": 4} if method is LatentClasses else {}
    return method(epsilon=epsilon, delta=1e-6, **few).fit(table, schema=schema(longest), seed=seed, **options)


@pytest.fixture(scope="module")
def pairs():
    return fitted(held(0), n_public=N)


@pytest.fixture(scope="module")
def single():
    return fitted(held(0), IndependentItems, longest=3)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
@pytest.mark.parametrize("longest", [M, 5])
def test_without_noise_the_answers_are_those_of_the_sets(longest):
    """Of sets as they are read: the first items in the cell's order."""
    real = held(1)
    real &= np.cumsum(real, axis=1) <= longest
    release = fitted(real, longest=longest, epsilon=NonPrivate())
    for j in (0, 3, 11):
        assert release.share({"basket": NAMES[j]}, target="table").value == pytest.approx(real[:, j].mean())
        assert release.count({"basket": [NAMES[j]]}).value == pytest.approx(real[:, j].sum())
    both = (real[:, 0] & real[:, 1]).mean()
    assert release.share({"basket": ["i0", "i1"]}, target="table").value == pytest.approx(both)
    assert release.share({"basket": ["i1", "i0", "i1"]}, target="table").interval() == pytest.approx((both, both))
    assert release.set_size("basket", target="table").value == pytest.approx(real.sum(axis=1).mean())


def test_what_a_release_says_is_saved_with_it(pairs, tmp_path):
    pairs.save(tmp_path / "r.sfm")
    loaded = sfumato.load(tmp_path / "r.sfm")
    for asked in ({"basket": "i0"}, {"basket": ["i0", "i1"]}):
        assert loaded.share(asked) == pairs.share(asked)
    assert loaded.set_size("basket") == pairs.set_size("basket")


def coverage(fits, method, n_pairs):
    """Shares of truths within 95 % intervals: items and pairs, of population and table."""
    population = held(10**6, 200_000).astype(float)
    law = population.T @ population / len(population)
    inside = {(kind, target): [] for kind in ("item", "pair") for target in ("population", "table")}
    for seed in range(fits):
        real = held(seed)
        release = fitted(real, method, seed=seed)
        both = real.astype(float).T @ real / N
        asked = [(j,) for j in range(M)] + [(i, j) for i in range(n_pairs) for j in range(i + 1, n_pairs)]
        for codes in asked:
            for target, truth in (("population", law), ("table", both)):
                low, high = release.share({"basket": [NAMES[j] for j in codes]}, target=target).interval()
                kind = "item" if len(codes) == 1 else "pair"
                inside[kind, target].append(low <= truth[codes[0], codes[-1]] <= high)
    return {key: float(np.mean(found)) for key, found in inside.items() if found}


def test_intervals_of_items_cover():
    """60 fits of 12 items: a share of 0.95 has a standard error of about 0.008."""
    found = coverage(60, IndependentItems, 0)
    assert all(0.925 < share < 0.985 for share in found.values()), found


@pytest.mark.slow
def test_intervals_of_pairs_cover():
    """40 fits; pairs of six frequent items, where the allowance makes intervals wider than they need be."""
    found = coverage(40, LatentClasses, 6)
    assert all(share > 0.92 for share in found.values()), found
    assert all(found["item", target] < 0.985 for target in ("population", "table")), found


def test_errors_are_those_of_the_noise(single):
    (measured,) = single.measurements
    table = single.share({"basket": "i0"}, target="table")
    assert table.std_error == pytest.approx(measured.noise_std / N)
    share = table.value
    whole = single.share({"basket": "i0"})
    assert whole.std_error == pytest.approx(np.hypot(measured.noise_std / N, np.sqrt(share * (1 - share) / N)))
    assert set(whole.parts) == {"noise", "sampling"}
    mean = single.set_size("basket", target="table")
    assert mean.std_error == pytest.approx(np.sqrt(M) * measured.noise_std / N)


def test_an_interval_never_is_a_point_where_sampling_leaves_more():
    low, high = _ends_of_share(0.0, 0.0, 1 / N)(2.0)
    assert low == pytest.approx(0.0, abs=1e-12)
    assert high == pytest.approx(4 / (N + 4))


def test_an_answer_says_what_sets_lose_that_are_too_long(single, pairs):
    assert "first 3 items count" in single.share({"basket": "i0"}).rests_on
    assert "declared one, 2000" in single.share({"basket": "i0"}).rests_on
    assert "count: of whole" not in pairs.share({"basket": "i0"}).rests_on


@pytest.mark.parametrize(("method", "fits"), [(IndependentItems, 3), (LatentClasses, 1)])
def test_the_bound_on_what_is_cut_off_holds(method, fits):
    rng = np.random.default_rng(0)
    for seed in range(fits):
        real = held(seed)
        keys = np.where(real, rng.random(real.shape), 2.0)
        cut = real & (np.argsort(np.argsort(keys, axis=1), axis=1) < 3)
        release = fitted(cut, method, longest=3, seed=seed)
        full = MeasuredItems(release).full_share
        assert (cut.sum(axis=1) == 3).mean() <= full
        assert ((real & ~cut).mean(axis=0) <= full).all()


def test_what_was_not_measured_is_refused_with_the_reason(single, pairs):
    with pytest.raises(EstimateError, match="only single items were counted"):
        single.share({"basket": ["i0", "i1"]})
    with pytest.raises(EstimateError, match="pairs of 'i11' were not counted"):
        pairs.share({"basket": ["i0", "i11"]})
    with pytest.raises(EstimateError, match="at most two items"):
        pairs.share({"basket": ["i0", "i1", "i2"]})
    with pytest.raises(EstimateError, match="was declared, 2000, and not measured"):
        pairs.count()
    for ask in (lambda r: r.mean("basket"), lambda r: r.ols("a ~ b"), lambda r: r.replicates(2)):
        with pytest.raises(EstimateError, match="share, count or set_size"):
            ask(pairs)


def test_bad_questions_are_refused(pairs):
    for condition in (
        {},
        {"other": "i0"},
        {"basket": []},
        {"basket": "no"},
        {"basket": True},
        "basket",
        {"basket": None},
    ):
        with pytest.raises(ConfigError, match="Expected"):
            pairs.share(condition)
    with pytest.raises(ConfigError, match="nothing beside"):
        pairs.share({"basket": "i0"}, by="sex")
    with pytest.raises(ConfigError, match="column of sets"):
        pairs.set_size("other")
    with pytest.raises(ConfigError, match="target"):
        pairs.share({"basket": "i0"}, target="rows")


def test_long_sets_that_count_less_are_put_back_and_allowed_for():
    """Sets of eleven watched items, of which three count in full."""
    release = fitted(np.random.default_rng(3).random((N, M)) < 0.9, epsilon=1.0)
    with pytest.raises(EstimateError, match="sets of many items count less"):
        release.share({"basket": ["i0", "i1"]})
    middle = fitted(np.random.default_rng(3).random((N, M)) < 0.4, epsilon=1.0)
    found = middle.share({"basket": ["i0", "i1"]}, target="table")
    assert found.parts["unmeasured"] > 0
    assert "weigh less" in found.rests_on
    assert found.value == pytest.approx(0.16, abs=3 * found.std_error)


def test_rows_of_a_unit_widen_sampling():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": rng.integers(0, N // 2, N), "basket": [[NAMES[j]] for j in rng.integers(0, M, N)]})
    own = schema(2, unit={"column": "who", "max_rows": 4})
    own["columns"]["who"] = {"kind": "identifier"}
    release = IndependentItems(epsilon=1.0).fit(frame, schema=own, seed=0)
    found = release.share({"basket": "i0"})
    assert found.parts["sampling"] == pytest.approx(np.sqrt(4 * found.value * (1 - found.value) / N))
    assert "√4" in found.rests_on


def test_a_bought_number_of_sets_adds_its_noise():
    table = pa.table({"basket": [[NAMES[j] for j in np.flatnonzero(row)] for row in held(0)]})
    own = schema()
    del own["rows"]
    release = IndependentItems(epsilon=1.0, delta=1e-6).fit(table, schema=own, n_public=EstimateCount(), seed=0)
    (count,) = [m for m in release.measurements if m.name == "number of rows"]
    assert release.count().std_error == pytest.approx(count.noise_std)
    share, n = release.share({"basket": "i0"}, target="table"), release.certificate.n_public
    own_noise = next(m for m in release.measurements if m.name == "counts of items").noise_std
    assert share.std_error == pytest.approx(np.hypot(own_noise, share.value * count.noise_std) / n)


def test_the_list_says_what_is_answered(pairs, single):
    found = pairs.answers(target="table").set_index("kind")
    assert found.loc["set size", "answered"] == "yes"
    assert found.loc["items", "numbers"] == M
    assert found.loc["items", "std_error"] == pytest.approx(pairs.share({"basket": "i0"}, target="table").std_error)
    assert found.loc["pairs of items", "answered"] == "some"
    assert single.answers().set_index("kind").loc["pairs of items", "answered"] == "no"


def test_a_release_without_counts_of_items_is_refused(single):
    bare = dataclasses.replace(
        single, measurements=tuple(dataclasses.replace(m, query=None) for m in single.measurements)
    )
    with pytest.raises(EstimateError, match="how many sets hold each item"):
        bare.share({"basket": "i0"})


@pytest.fixture(scope="module")
def beside():
    rng = np.random.default_rng(0)
    sex = rng.random(4000) < 0.5
    items = rng.random((4000, 4)) < np.where(sex[:, None], [0.6, 0.3, 0.2, 0.1], [0.3, 0.3, 0.4, 0.1])
    return sex, items


@pytest.fixture(scope="module")
def release_beside(beside):
    sex, items = beside
    frame = pd.DataFrame(
        {"sex": np.where(sex, "f", "m"), "d": [[f"i{j}" for j in np.flatnonzero(row)] for row in items]}
    )
    columns = {
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "d": {"kind": "set", "items": [f"i{j}" for j in range(4)], "max_length": 4},
    }
    return sfumato.MaxEntropy(epsilon=2.0).fit(frame, schema={"rows": 4000, "columns": columns}, seed=1)


class TestBesideColumns:
    """Sets beside other columns: a truth value for each item was measured."""

    def test_mean_sizes_are_those_of_the_rows(self, release_beside, beside):
        sex, items = beside
        size = items.sum(axis=1)
        found = release_beside.set_size("d", target="table")
        assert found.value == pytest.approx(size.mean(), abs=4 * found.std_error)
        assert found.std_error < 0.1
        by = release_beside.set_size("d", by="sex", target="table")
        for label, rows in (("f", sex), ("m", ~sex)):
            assert by[label].value == pytest.approx(size[rows].mean(), abs=4 * by[label].std_error)

    def test_shares_of_items_two_items_and_by_labels(self, release_beside, beside):
        sex, items = beside
        one = release_beside.share({"d": "i0"}, by="sex", target="table")
        for label, rows in (("f", sex), ("m", ~sex)):
            assert one[label].value == pytest.approx(items[rows, 0].mean(), abs=4 * one[label].std_error)
        both = release_beside.share({"d": ["i0", "i2"]}, target="table")
        assert both.value == pytest.approx((items[:, 0] & items[:, 2]).mean(), abs=4 * both.std_error)
        with pytest.raises(EstimateError, match="together"):
            release_beside.share({"d": ["i0", "i2"]}, by="sex")

    def test_it_is_listed(self, release_beside):
        found = release_beside.answers(most_pairs=0).set_index("kind")
        assert found.loc["set size", "first"] == "d"
        with pytest.raises(ConfigError, match="Expected a column of sets"):
            release_beside.set_size("sex")
