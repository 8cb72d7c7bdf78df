"""DPGM on sets, images and tables: forms, plans, settings, and going on after a stop."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

pytest.importorskip("torch", reason="networks need the extra nets")

import sfumato
from fixtures import tables
from fixtures.costly import slow_after
from fixtures.methods import MIXED
from fixtures.sampling import few_simulations
from sfumato.errors import ConfigError, ReleaseError
from sfumato.io.sources import open_source
from sfumato.maths.shrinkage import denoised
from sfumato.methods.dpgm.profiles import Profiles
from sfumato.methods.dpgm.settings import RBM, VAE, MixtureShares
from sfumato.methods.nets.clip_norms import AdaptiveClip
from sfumato.privacy.budget import NonPrivate
from sfumato.privacy.ledger import Ledger
from sfumato.records.private import PrivateData
from sfumato.release.samplers import build_sampler
from sfumato.schema.schema import Schema

__all__ = ["few_simulations"]

RNG = np.random.default_rng(0)
N, M = 3000, 8
# two kinds of baskets: 0–3 go together, and 4–6; 7 is never there
SHARES = np.array([[0.8, 0.8, 0.7, 0.5, 0.05, 0.05, 0.05, 0.0], [0.05, 0.05, 0.05, 0.05, 0.9, 0.8, 0.7, 0.0]])
KINDS = np.arange(N) % 2
SETS = [np.flatnonzero(row).tolist()[:6] for row in RNG.random((N, M)) < SHARES[KINDS]]
KIND = {"kind": "set", "n_items": M, "max_length": 6}
CELLS = Schema.from_dict({"rows": N, "columns": {"items": KIND}})
LONG = Schema.from_dict({"rows": N, "columns": {"who": "identifier", "items": {**KIND, "id": "who"}}})
FLAT = np.concatenate([np.array(items, int) for items in SETS])
FORMS = {
    "pyarrow": (pa.table({"items": SETS}), CELLS),
    "polars": (pl.DataFrame({"items": SETS}), CELLS),
    "arrays": (
        {"indptr": np.cumsum([0, *map(len, SETS)]), "indices": FLAT.astype(np.int32), "n_items": np.array(M)},
        CELLS,
    ),
    "long pandas": (
        pd.DataFrame({"who": np.repeat(np.arange(N), [len(items) for items in SETS]), "items": FLAT}),
        LONG,
    ),
}
COMPONENTS = {
    "vae": VAE(hidden=(16,), latent_dim=2),
    "two layers": VAE(hidden=(12, 8)),
    "rbm": RBM(hidden=8, burn_in=20),
}


def method(**settings):
    return sfumato.DPGM(**{"epsilon": 2.0, **MIXED, "component": COMPONENTS["vae"], **settings})


def matrix(sample, schema) -> np.ndarray:
    chunks = [rows["items"] for rows in PrivateData(open_source(sample), schema).coded()]
    result = np.zeros((sum(map(len, chunks)), M))
    start = 0
    for sets in chunks:
        result[start + sets.owners, sets.codes] = 1
        start += len(sets)
    return result


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The storage types:sfumato.errors.PrivacyWarning")
@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("form", FORMS)
def test_sets_come_back_in_the_form_that_came_in(form, component, tmp_path):
    data, schema = FORMS[form]
    method(component=COMPONENTS[component]).fit(data, schema=schema, seed=0, as_source=True).save(tmp_path / "r.sfm")
    release = sfumato.load(tmp_path / "r.sfm")
    sample = release.sample(N, seed=1)
    assert type(sample) is type(data)
    expected = open_source(data).storage
    assert {c: str(t) for c, t in open_source(sample).storage.items()} == {c: str(t) for c, t in expected.items()}
    found = matrix(sample, schema)
    assert found.sum(axis=1).max() <= 6
    np.testing.assert_allclose(found.sum(axis=0) / N, matrix(data, schema).sum(axis=0) / N, atol=0.07)


@pytest.mark.slow
@pytest.mark.parametrize("component", ["vae", "rbm"])
def test_what_goes_together_is_kept(component):
    """Clusters alone tell the two kinds apart; items of different kinds are seldom together."""
    data, schema = FORMS["pyarrow"]
    made = method(epsilon=4.0, component=COMPONENTS[component], n_features=50, iterations=5).fit(
        data, schema=schema, seed=0
    )
    real, sample = (np.corrcoef(matrix(d, schema)[:, :7].T) for d in (data, made.sample(N, seed=1)))
    assert np.abs(sample - real).mean() < 0.1


@pytest.mark.parametrize("component", ["vae", "rbm"])
@pytest.mark.parametrize("n_clusters", slow_after(1, [3, 1]))
@pytest.mark.parametrize("clip_norm", [0.5, AdaptiveClip(memory=0.5)], ids=["fixed", "adaptive"])
def test_what_is_charged_is_the_plan(component, n_clusters, clip_norm, monkeypatch):
    ledgers = []
    close = Ledger.close
    monkeypatch.setattr(Ledger, "close", lambda self: (ledgers.append(self), close(self))[1])
    made = method(component=COMPONENTS[component], n_clusters=n_clusters, clip_norm=clip_norm)
    data, schema = FORMS["pyarrow"]
    release = made.fit(data, schema=schema)
    (ledger,) = ledgers
    names = ["lengths", "clusters", "profiles", "networks"] if n_clusters > 1 else ["profiles", "networks"]
    assert [stage.name for stage in ledger.plan.stages] == names
    assert ledger.charged == tuple((stage.name, stage.count) for stage in made.plan(schema).stages)
    assert release.certificate.private
    assert 1.98 < release.certificate.epsilon <= 2.0
    assert release.certificate.recompute() == pytest.approx(release.certificate.epsilon, abs=1e-6)


def test_the_width_that_is_given_is_not_bought():
    assert [stage.name for stage in method(distance=4.0).plan(CELLS).stages] == ["clusters", "profiles", "networks"]


@pytest.mark.parametrize("component", ["vae", "rbm"])
def test_seeds_and_samples_repeat(component):
    data, schema = FORMS["pyarrow"]
    one, two = (method(component=COMPONENTS[component]).fit(data, schema=schema, seed=4) for _ in range(2))
    assert all(np.array_equal(one.parameters[name], two.parameters[name]) for name in one.parameters)
    assert one.sample(300, seed=2).to_pydict() == two.sample(300, seed=2).to_pydict()
    assert one.sample(300, seed=2).slice(0, 20).to_pydict() == one.sample(20, seed=2).to_pydict()
    assert one.sample(300, seed=2).to_pydict() != one.sample(300, seed=3).to_pydict()


class Stop(BaseException):
    """Comes from nowhere, as a kill does."""


@pytest.mark.parametrize("component", ["vae", "rbm"])
@pytest.mark.parametrize("stop_after", slow_after(1, [3, 1, 70]))
def test_a_stopped_fit_goes_on_and_is_charged_once(component, stop_after, tmp_path):
    data, schema = FORMS["pyarrow"]
    made = method(component=COMPONENTS[component], epochs=8, batch_size=200, clip_norm=AdaptiveClip())
    done = []

    def progress(stage):
        done.append(stage)
        if len(done) > stop_after:
            raise Stop

    with pytest.raises(Stop):
        made.fit(data, schema=schema, checkpoint=tmp_path / "c", progress=progress)
    release = made.fit(data, schema=schema, checkpoint=tmp_path / "c")
    assert 1.98 < release.certificate.epsilon <= 2.0
    assert len(release.sample(10)) == 10
    with pytest.raises(ConfigError, match="another"):
        method(component=COMPONENTS[component], epochs=4).fit(data, schema=schema, checkpoint=tmp_path / "c")


@pytest.mark.slow
def test_public_records_may_start_the_clusters():
    data, schema = FORMS["pyarrow"]
    centres = (SHARES > 0.4).astype(float)
    release = method(centres=centres, epsilon=4.0).fit(data, schema=schema, seed=0)
    np.testing.assert_allclose(release.parameters["component_shares"], 0.5, atol=0.15)
    with pytest.raises(ConfigError, match="centres of shape"):
        method(centres=centres[:, :3]).plan(CELLS)


def test_binary_images_are_drawn_where_asked():
    pixels, labels = tables.images()
    data = {"x": (pixels > 90).astype(np.uint8) * 255, "y": labels}
    grey, binary = (method(binary=b).fit(data, schema=tables.image_schema(), seed=0).sample(50) for b in (False, True))
    assert set(np.unique(binary["x"])) <= {0, 255}
    assert len(np.unique(grey["x"])) > 2


def purity(release) -> float:
    """Share of samples whose label is that of most samples of their component."""
    labels = []
    for c in range(release.parameters["component_shares"].size):
        alone = {**release.parameters, "component_shares": np.eye(release.parameters["component_shares"].size)[c]}
        rows = build_sampler(release.schema, release.sampler, alone).rows(200, np.random.default_rng(0))
        labels.append(np.bincount(rows["y"], minlength=4).max() / 200)
    return float(release.parameters["component_shares"] @ labels)


@pytest.mark.parametrize("table", [False, True])
def test_clusters_keep_classes_apart(table):
    # the label is one entry of many, and what else is there says nothing of it
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 800)
    x = rng.integers(0, 256, (800, 4, 4)).astype(np.uint8)
    columns = {"y": {"kind": "categorical", "categories": [0, 1, 2, 3]}}
    if table:
        columns |= {f"x{j}": {"kind": "continuous", "lower": 0, "upper": 255} for j in range(16)}
        data = pd.DataFrame({"y": labels} | {f"x{j}": x.reshape(800, 16)[:, j].astype(float) for j in range(16)})
    else:
        columns |= {"x": {"kind": "image", "shape": [4, 4], "dtype": "uint8"}}
        data = {"x": x, "y": labels}
    schema = Schema.from_dict({"rows": 800, "columns": columns})
    found = {}
    for apart in (0.0, 1.0):
        settings = {"epsilon": NonPrivate(), "n_clusters": 4, "class_distance": apart, "binary": True}
        release = method(**settings).fit(data, schema=schema, target="y" if table else None, seed=0)
        found[apart] = purity(release)
    assert found[1.0] > 0.9
    assert found[0.0] < 0.6


class TestProfiles:
    def test_rare_items_share_what_there_is_of_them(self):
        sums = np.array([[50.0, 2.0, 4.0, -3.0]])
        found = Profiles.of(np.array([100.0]), sums, sums[0], noise_stds=(1.0, 4.0, 4.0))
        assert found.means[0, 0] == pytest.approx(0.5, abs=0.01)
        assert np.ptp(found.means[0, 1:]) < 0.01
        np.testing.assert_allclose(found.shares, [1.0])

    def test_denoising_brings_small_sums_nearer(self):
        rng = np.random.default_rng(3)
        exact = np.concatenate([np.zeros(400), rng.exponential(20, 400), np.full(5, 5000.0)])
        noisy = exact + 20 * rng.standard_normal(exact.size)
        better = denoised(noisy, 20.0)
        assert ((better - exact) ** 2).mean() < 0.4 * ((noisy - exact) ** 2).mean()
        np.testing.assert_array_equal(better[-5:], noisy[-5:])
        assert (better >= 0).all()
        np.testing.assert_array_equal(denoised(noisy, 0.0), noisy)

    def test_without_noise_they_are_the_means(self):
        rng = np.random.default_rng(1)
        sizes, means = np.array([100.0, 300.0]), rng.uniform(0.1, 0.9, (2, 5))
        sums = sizes[:, None] * means
        found = Profiles.of(sizes, sums, sums.sum(axis=0), noise_stds=(0.0, 0.0, 0.0))
        np.testing.assert_allclose(found.means, means)
        np.testing.assert_allclose(found.shares, [0.25, 0.75])

    def test_sums_over_all_records_are_kept(self):
        """Clusters whose sums are noise are like all records, and what is known of all records stays."""
        rng = np.random.default_rng(2)
        sizes, whole = np.full(20, 500.0), rng.uniform(50, 2500, 30)
        sums = np.outer(np.full(20, 1 / 20), whole) + 60 * rng.standard_normal((20, 30))
        found = Profiles.of(sizes, sums, whole + 10 * rng.standard_normal(30), noise_stds=(5.0, 60.0, 10.0))
        np.testing.assert_allclose(found.shares @ found.means * 10_000, whole, atol=60)
        assert np.abs(found.means - whole / 10_000).mean() < 0.6 * np.abs(sums / 500 - whole / 10_000).mean()

    def test_only_noise_still_gives_probabilities(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            counts, sums, whole = (1e3 * rng.standard_normal(shape) for shape in (5, (5, 9), 9))
            found = Profiles.of(counts, sums, whole, noise_stds=(1e3, 1e3, 1e3))
            assert ((found.means > 0) & (found.means < 1)).all()
            assert found.shares.sum() == pytest.approx(1)
            assert (found.shares > 0).all()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"n_clusters": 0}, "n_clusters"), ({"component": "vae"}, "component"), ({"clip_norm": -1.0}, "clip_norm"),
     ({"epochs": 0}, "epochs"), ({"n_features": 1}, "n_features"), ({"n_features": 21}, "n_features"),
     ({"distance": 0.0}, "distance"), ({"record_norm": 0.0}, "record_norm"), ({"shares": 0.5}, "shares"),
     ({"centres": np.zeros(3)}, "centres"), ({"class_distance": -1.0}, "class_distance"),
     ({"class_distance": float("nan")}, "class_distance")],
)  # fmt: skip
def test_bad_settings_are_named(wrong, named):
    with pytest.raises(ConfigError, match=named):
        method(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [lambda: VAE(hidden=()), lambda: VAE(hidden=(0,)), lambda: VAE(latent_dim=0), lambda: RBM(hidden=0),
     lambda: RBM(burn_in=0), lambda: MixtureShares(profiles=0.9), lambda: MixtureShares(clusters=0.0)],
)  # fmt: skip
def test_bad_parts_are_refused(wrong):
    with pytest.raises(ConfigError):
        wrong()


def test_what_does_not_fit_is_refused_before_anything_is_charged(monkeypatch):
    monkeypatch.setattr(Ledger, "charge", None)
    data, schema = FORMS["pyarrow"]
    with pytest.raises(ConfigError, match="no target"):
        method().fit(data, schema=schema, target="items")
    wide = Schema.from_dict({"rows": 10, "columns": {"items": {"kind": "set", "n_items": 30_000, "max_length": 3}}})
    with pytest.raises(ConfigError, match="20000 items"):
        method().plan(wide)


@pytest.mark.parametrize("component", ["vae", "rbm"])
def test_arrays_of_a_stranger(component):
    data, schema = FORMS["pyarrow"]
    release = method(component=COMPONENTS[component], epsilon=NonPrivate()).fit(data, schema=schema, seed=0)
    from sfumato.release.samplers import build_sampler

    for name, array in release.parameters.items():
        others = {k: v for k, v in release.parameters.items() if k != name}
        for wrong in (array[..., None], array[:0], np.full_like(array, np.nan), array.astype(np.float16)):
            with pytest.raises(ReleaseError):
                build_sampler(schema, release.sampler, {**others, name: wrong})
        with pytest.raises(ReleaseError):
            build_sampler(schema, release.sampler, others)
        huge = (
            build_sampler(schema, release.sampler, {**others, name: array * (1 if "shares" in name else 1e30)})
            if (name != "chains" and array.dtype == np.float64)
            else None
        )
        if huge is not None:
            assert len(huge.rows(5, np.random.default_rng(0))["items"]) == 5
    for wrong in ({"component": "gan"}, {"layers": 0, "steps": 0}, {"layers": True, "steps": "x"}, {"binary": 1}):
        with pytest.raises(ReleaseError):
            build_sampler(schema, {**release.sampler, **wrong}, release.parameters)
