"""A certificate belongs to its release: what is pasted, changed or off the grid is refused, also with hashes anew."""

import copy
import hashlib
import json

import numpy as np
import pytest
import safetensors.numpy

from fixtures.methods import QUICK
from fixtures.releases import SMALL, small_frame
from sfumato import MaxEntropy
from sfumato.errors import ReleaseError
from sfumato.privacy import words
from sfumato.release.manifest import content_hash
from sfumato.release_front import load


@pytest.fixture
def saved(small, tmp_path):
    """A release on disk, and what its manifest says."""
    small.save(tmp_path / "r")
    return tmp_path / "r", json.loads((tmp_path / "r" / "manifest.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def cheaper(remembered_accounts):
    """The same release, of a hundredth of the ε."""
    return MaxEntropy(epsilon=0.01).fit(small_frame(), schema=SMALL, target="label", seed=1)


def rewrite(path, manifest, *, arrays=None, forged=False):
    """Write a manifest, and arrays; a forger makes all hashes anew."""
    if arrays is not None:
        packed = safetensors.numpy.save(arrays)
        (path / "arrays.safetensors").write_bytes(packed)
        manifest["arrays"]["sha256"] = hashlib.sha256(packed).hexdigest()
    if forged:
        hashes = {"arrays": manifest["arrays"]["sha256"], "content": content_hash(manifest)}
        manifest["certificate"]["release"] = hashes
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def arrays_of(path):
    return safetensors.numpy.load((path / "arrays.safetensors").read_bytes())


def test_the_same_release_has_the_same_hashes_however_often_it_is_saved(saved, tmp_path):
    path, manifest = saved
    again = tmp_path / "again"
    load(path).save(again)
    hashes = manifest["certificate"]["release"]
    assert json.loads((again / "manifest.json").read_text("utf-8"))["certificate"]["release"] == hashes
    assert hashes["arrays"] == hashlib.sha256((path / "arrays.safetensors").read_bytes()).hexdigest()
    assert load(path).certificate.release.content == hashes["content"]


def test_hardening_2_a_pasted_certificate_is_refused(saved, cheaper, tmp_path):
    path, manifest = saved
    cheaper.save(tmp_path / "cheap")
    manifest["certificate"] = json.loads((tmp_path / "cheap" / "manifest.json").read_text("utf-8"))["certificate"]
    rewrite(path, manifest)
    with pytest.raises(ReleaseError, match=r"certificate does not belong|was written for other arrays"):
        load(path)


@pytest.mark.parametrize("forged", [False, True])
def test_a_certificate_of_other_noise_is_refused_with_hashes_made_anew(saved, cheaper, forged):
    path, manifest = saved
    manifest["certificate"] = {**cheaper.certificate.to_dict(), "release": manifest["certificate"]["release"]}
    rewrite(path, manifest, forged=forged)
    with pytest.raises(ReleaseError, match=r"other noise than its stage|was written for another schema"):
        load(path)


@pytest.mark.parametrize("change", ["noise_std", "norm_bound"])
def test_noise_that_is_not_the_stages_is_refused(saved, change):
    path, manifest = saved
    manifest["measurements"][0][change] = 1e-9
    rewrite(path, manifest, forged=True)
    with pytest.raises(ReleaseError, match="Measurement 1 states other noise"):
        load(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [(("certificate", "n_public"), 201), (("schema", "rows"), 999), (("sampler", "target"), [0]),
     (("measurements", 0, "name"), "x"), (("certificate", "assumptions"), []), (("certificate", "private"), True)],
)  # fmt: skip
def test_what_was_changed_since_is_refused(saved, place, value):
    path, manifest = saved
    before, inner = copy.deepcopy(manifest), manifest
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    rewrite(path, manifest)
    with pytest.raises(ReleaseError):
        load(path)
    rewrite(path, before)
    load(path)


def test_a_certificate_of_another_unit_than_the_schemas_is_refused(saved):
    path, manifest = saved
    manifest["certificate"]["unit"] = {"name": "hospital", "max_rows": 100}
    rewrite(path, manifest, forged=True)
    with pytest.raises(ReleaseError, match="of the unit that the schema names"):
        load(path)


def test_arrays_of_another_release_are_refused(saved):
    path, manifest = saved
    arrays = arrays_of(path)
    name = next(name for name, a in arrays.items() if name.startswith("parameters.") and a.dtype.kind == "f")
    arrays[name] = np.nextafter(arrays[name], np.inf)  # a factor would leave an array of zeros as it is
    rewrite(path, manifest, arrays=arrays)
    with pytest.raises(ReleaseError, match="written for other arrays"):
        load(path)


@pytest.mark.parametrize("where", ["counts", "diagonal", "off the diagonal"])
def test_hardening_2_naive_noise_is_off_the_grid(saved, where):
    """Values as a sum of floats has them: their last bits are anything."""
    path, manifest = saved
    arrays = arrays_of(path)
    symmetric = where != "counts"
    index = next(i for i, m in enumerate(manifest["measurements"]) if m["symmetric"] == symmetric)
    array = arrays[manifest["measurements"][index]["array"]]
    changed = np.random.default_rng(0).standard_normal(array.shape) * manifest["measurements"][index]["noise_std"]
    if symmetric:
        diagonal = np.eye(array.shape[-1], dtype=bool)
        changed = np.where(diagonal if where == "diagonal" else ~diagonal, changed, 0.0)
    arrays[manifest["measurements"][index]["array"]] = array + changed
    rewrite(path, manifest, arrays=arrays, forged=True)
    with pytest.raises(ReleaseError, match=f"Measurement {index + 1} has values off the grid"):
        load(path)


def test_a_measurement_taken_out_is_missed(saved):
    path, manifest = saved
    stage = manifest["measurements"][0]["stage"]
    manifest["measurements"] = [m for m in manifest["measurements"] if m["stage"] != stage]
    rewrite(path, manifest, forged=True)
    with pytest.raises(ReleaseError, match="not listed under 'not_kept'"):
        load(path)
    manifest["not_kept"] = [stage]
    rewrite(path, manifest, forged=True)
    assert load(path).checked.not_kept == (stage,)


@pytest.mark.parametrize(
    ("key", "value"),
    [("stage", "x"), ("stage", None), ("norm_bound", None), ("grid", None), ("grid", 0), ("grid", "parameters.x"),
     ("grid", -1.0), ("norm_bound", 0), ("norm_bound", float(2**1000)), ("off_diagonal_grid", 1.0), ("grid", 1e-320)],
)  # fmt: skip
def test_a_malformed_origin_is_refused_or_says_less(saved, key, value):
    path, manifest = saved
    entry = manifest["measurements"][0]
    if value is None:
        del entry[key]
    else:
        entry[key] = value
    rewrite(path, manifest, forged=True)
    if (key, value) == ("grid", None):
        assert load(path).checked.on_grid == len(manifest["measurements"]) - 1
    else:
        with pytest.raises(ReleaseError):
            load(path)


def test_a_certificate_that_names_no_release_is_refused(saved, small):
    path, manifest = saved
    del manifest["certificate"]["release"]
    rewrite(path, manifest)
    with pytest.raises(ReleaseError, match="a certificate that names its release"):
        load(path)
    assert "in memory" in words.checked(small.checked)[0]


@pytest.mark.parametrize("version", [1, 2, 4])
def test_another_format_is_refused(saved, version):
    path, manifest = saved
    rewrite(path, {**manifest, "format_version": version})
    with pytest.raises(ReleaseError, match=f"format_version 3, got {version}: made by another version of Sfumato. Fit"):
        load(path)


def test_every_measurement_of_a_table_is_tied(saved):
    release = load(saved[0])
    found = release.checked
    assert (found.loaded, found.measurements, found.with_stage, found.on_grid, found.not_kept) == (True, 3, 3, 3, ())
    for m in release.measurements:
        multiplier = release.certificate.plan[m.origin.stage].noise_multiplier
        assert m.noise_std / m.origin.norm_bound == pytest.approx(multiplier, rel=1e-12)
        assert np.max(m.origin.grid) <= m.noise_std * 2**-24
    assert any("the noise level that is stated" in line for line in words.checked(found))


@pytest.mark.parametrize("name", sorted(QUICK))
def test_what_every_method_releases_loads_again(name, tmp_path, remembered_accounts):
    release = QUICK[name](epsilon=1.0).fit(small_frame(), schema=SMALL, target="label", seed=1)
    release.save(tmp_path / "r")
    found = load(tmp_path / "r").checked
    assert found.loaded
    assert found.with_stage + len(found.not_kept) >= len([s for s in release.certificate.events if s.inclusion is None])


def test_images_and_estimators_load_again(pictures, points, tmp_path):
    for i, release in enumerate((pictures, points)):
        release.save(tmp_path / str(i))
        found = load(tmp_path / str(i)).checked
        assert found.with_stage == found.measurements > 0
        assert found.on_grid == found.measurements
        assert not found.not_kept
