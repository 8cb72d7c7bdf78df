"""DPMix: a release that is a data set, in the form of the records, with soft labels."""

import functools
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures import tables
from sfumato import EstimateCount, NonPrivate, Schema, load
from sfumato.columns.kinds import Boolean, Categorical
from sfumato.errors import ConfigError, UnsupportedEventError
from sfumato.fitting.purposes import Facts
from sfumato.mechanisms import mixing as mechanism
from sfumato.mechanisms.mixing import FixedDegreeMixing, PoissonMixing, SubsetMixing, product_error
from sfumato.methods import dpmix as recipe
from sfumato.methods.dpmix import AutoDegree, DPMix
from sfumato.privacy.plan import Neighbours
from sfumato.schema.unit import Unit

MIXINGS = [PoissonMixing(), SubsetMixing(), FixedDegreeMixing()]
ENTRIES = [
    "sex=f", "sex=m", "grade=low", "grade=mid", "grade=high", "grade missing", "member=false", "member=true", "age",
    "weight", "weight missing", "seen", "income=<=50K", "income=>50K",
]  # fmt: skip


def make(**settings):
    return DPMix(**{"epsilon": 1.0, "mixture_degree": 4, **settings})


@functools.cache
def small(**settings):
    return make(**settings).fit(tables.frame(), schema=tables.schema(), target="income", seed=1)


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize("mixing", MIXINGS, ids=lambda m: type(m).__name__)
def test_it_stays_within_its_budget_and_is_computed_again(mixing):
    for data, schema in ((tables.frame(), tables.schema()), (tables.images(), tables.image_schema())):
        certificate = make(mixing=mixing).fit(data, schema=schema).certificate
        assert 0.99 < certificate.epsilon <= 1.0
        assert certificate.private
        assert certificate.recompute() == pytest.approx(certificate.epsilon, abs=1e-6)
        certificate.verify()
        replaced = isinstance(mixing, SubsetMixing)
        assert certificate.neighbours is (Neighbours.REPLACE_ONE if replaced else Neighbours.ADD_REMOVE)
        if replaced:
            with pytest.raises(UnsupportedEventError):
                certificate.recompute(Neighbours.ADD_REMOVE)


def test_the_plan_reads_no_record_and_says_what_it_means():
    plan = make(n_mixtures=100).describe_plan(tables.schema(), target="income")
    (event,) = plan["events"]
    assert (event["count"], event["sampling_probability"]) == (100, 4 / 240)
    assert "4 records in each" in plan["stages"][0]["forecast"]
    assert "Poisson" in plan["sampling"]


def test_the_noise_of_both_blocks_is_that_of_the_event():
    release = small()
    event = release.certificate.content["events"][0]
    x, y = (m.noise_std for m in release.measurements)
    assert 4 / np.sqrt(6 / x**2 + 1 / y**2) == pytest.approx(event["noise_multiplier"])


def test_the_same_seed_gives_the_same_release():
    one, two, other = (
        make().fit(tables.images(), schema=tables.image_schema(), seed=seed).parameters for seed in (5, 5, 6)
    )
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert not np.array_equal(one["features"], other["features"])


def test_a_table_of_mixtures():
    release = small()
    made = release.sample()
    assert isinstance(made, pd.DataFrame)
    assert list(made.columns) == ENTRIES
    assert made.shape == (240, len(ENTRIES))
    assert sorted(made["age"]) == sorted(release.parameters["features"][:, 8])
    assert sorted(made["income=>50K"]) == sorted(release.parameters["labels"][:, 1])


def test_mixtures_without_noise_are_means_of_records():
    frame = tables.frame(2000)
    schema = Schema(columns=tables.schema().columns, rows=2000)
    made = make(epsilon=NonPrivate(), mixture_degree=50).fit(frame, schema=schema, target="income", seed=1).sample()
    for name, mean in (("age", frame["age"].mean() / 100), ("income=>50K", (frame["income"] == ">50K").mean())):
        assert made[name].mean() == pytest.approx(mean, abs=0.02)
    np.testing.assert_allclose(made["sex=f"] + made["sex=m"], made["income=<=50K"] + made["income=>50K"], atol=1e-5)
    # slope of a soft label on features: income follows from age
    assert np.corrcoef(made["age"] - made["sex=f"], made["income=>50K"] - made["sex=f"])[0, 1] > 0.5


@pytest.mark.parametrize("labels", [False, True])
def test_images_come_back_in_their_shape_with_soft_labels(labels):
    pixels, classes = tables.images()
    text = tables.IMAGE_SCHEMA_TEXT if labels else tables.IMAGE_SCHEMA_TEXT.partition("  y:")[0]
    data = {"x_train": pixels} | ({"y_train": classes} if labels else {})
    schema = tables.read_schema(text)
    made = make(epsilon=NonPrivate(), mixture_degree=1, clip_norm=4.0).fit(data, schema=schema, seed=2).sample(200)
    assert made["x_train"].shape == (200, 4, 4)
    if labels:
        assert made["y_train"].shape == (200, 3)
        one = np.isclose(made["y_train"].sum(axis=1), 1, atol=1e-5)
        assert one.sum() > 40
        # a mixture of one record is that record, margin apart
        shown = np.rint(made["x_train"][one] * 255).astype(int)
        known = {picture.tobytes(): label for picture, label in zip(pixels.astype(int), classes, strict=True)}
        found = [known[picture.tobytes()] for picture in shown if picture.tobytes() in known]
        assert len(found) == one.sum()
        assert found == made["y_train"][one].argmax(axis=1).tolist()


def test_colours():
    pixels = np.random.default_rng(0).integers(0, 256, (40, 3, 2, 3)).astype(np.uint8)
    schema = tables.read_schema("rows: 40\ncolumns: {x: {kind: image, shape: [3, 2, 3]}}\n")
    release = make(epsilon=NonPrivate(), clip_norm=9.0, mixture_degree=40).fit(pixels, schema=schema, seed=0)
    # every record joins every mixture: the sum over all, in the right places
    np.testing.assert_allclose(release.sample(2)["x"][0], pixels.mean(axis=0) / 255, atol=1e-4)


def test_more_than_there_are_is_refused():
    release = small()
    with pytest.raises(ConfigError, match=r"at most 240, got n=241.*not a model"):
        release.sample(241)
    with pytest.raises(ConfigError, match="given"):
        release.sample(5, given={"sex": "f"})
    with pytest.raises(ConfigError, match="class_counts"):
        release.sample(class_counts={"<=50K": 5})
    for n in (0, 1, 240):
        assert len(release.sample(n)) == n


def test_parts_of_it():
    release = small()
    one = release.sample(50, seed=1)
    pd.testing.assert_frame_equal(one, release.sample(50, seed=1))
    pd.testing.assert_frame_equal(one.head(20), release.sample(20, seed=1))
    assert not one.equals(release.sample(50, seed=2))
    assert len(release.sample(seed=3).drop_duplicates()) == 240


def test_saved_and_loaded_and_stored_once(tmp_path):
    release = make().fit(tables.images(), schema=tables.image_schema())
    for name in ("r", "r.sfm"):
        release.save(tmp_path / name)
        again = load(tmp_path / name)
        assert all(np.array_equal(release.parameters[key], again.parameters[key]) for key in release.parameters)
        one, two = (r.sample(40, seed=1) for r in (release, again))
        assert all(np.array_equal(one[key], two[key]) for key in one)
        assert [m.name for m in again.measurements] == ["mixed features", "mixed labels"]
        assert np.array_equal(again.measurements[0].value, release.measurements[0].value)
    numbers = sum(value.nbytes for value in release.parameters.values())
    assert (tmp_path / "r" / "arrays.safetensors").stat().st_size < numbers + 1000


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_written_to_a_file(tmp_path, suffix):
    path = tmp_path / f"mixtures{suffix}"
    small().write_sample(path, 100, seed=0)
    back = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert list(back.columns) == ENTRIES
    np.testing.assert_allclose(back["age"], small().sample(100, seed=0)["age"], rtol=1e-6)


def test_images_written_to_a_file(tmp_path):
    release = make().fit(tables.images(), schema=tables.image_schema())
    release.write_sample(tmp_path / "m.npz", 100, seed=0)
    with np.load(tmp_path / "m.npz") as back:
        assert back["x"].shape == (100, 4, 4)
        assert back["y"].shape == (100, 3)


def test_denoising_is_free_and_smooths():
    plain, smooth = (
        make(denoise=denoise).fit(tables.images(), schema=tables.image_schema(), seed=4) for denoise in (0, 1.0)
    )
    assert np.array_equal(plain.parameters["features"], smooth.parameters["features"])
    assert plain.certificate.content == smooth.certificate.content
    assert smooth.sample(seed=0)["x"].std() < 0.5 * plain.sample(seed=0)["x"].std()


def test_arrow_comes_back_as_arrow():
    table = pa.Table.from_pandas(tables.frame(), preserve_index=False)
    made = make().fit(table, schema=tables.schema()).sample(7)
    assert isinstance(made, pa.Table)
    assert made.column_names == ENTRIES


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_nothing_but_the_mixtures_depends_on_the_records(n):
    one, two = (make().fit(tables.frame(m), schema=tables.schema(), seed=3) for m in (240, n))
    assert one.certificate.content == two.certificate.content
    assert one.sampler == two.sampler
    assert [m.noise_std for m in one.measurements] == [m.noise_std for m in two.measurements]
    assert one.parameters["features"].shape == two.parameters["features"].shape


def test_hostile_cells():
    table = tables.frame().astype({"weight": float})
    table.loc[:2, "weight"] = [np.inf, -1e300, np.nan]
    assert np.isfinite(make().fit(table, schema=tables.schema()).sample()).all().all()
    pixels, labels = tables.images(60)
    pixels = pixels.astype(np.float32)
    pixels[::2] = np.nan
    schema = tables.read_schema(tables.IMAGE_SCHEMA_TEXT.replace("uint8", "float32"))
    assert np.isfinite(make().fit((pixels, labels + 7), schema=schema).sample()["x"]).all()


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(ConfigError, match="estimated"):
        make(delta=1e-5).fit(tables.frame(), schema=tables.schema(), n_public=EstimateCount())
    schema = tables.schema()
    with pytest.raises(ConfigError, match="unit of one row"):
        make().plan(Schema(columns=schema.columns, rows=240, unit=Unit(column="id", max_rows=2)))
    with pytest.raises(ConfigError, match="besides the target"):
        make().plan(Schema(columns={"a": Boolean()}, rows=240), target="a")
    clash = {"a": Categorical(categories=("b=c",)), "a=b": Categorical(categories=("c",))}
    with pytest.raises(ConfigError, match="differ"):
        make().plan(Schema(columns=clash, rows=240))
    with pytest.raises(ConfigError, match="at most the public number"):
        make(mixture_degree=241).plan(schema)
    with pytest.raises(ConfigError, match="as many units as declared"):
        make(mixing=SubsetMixing()).fit(tables.frame(239), schema=schema)


UNREADABLE = {
    "ragged": "1,2,3,4,5,6,7,8,9,10,11",
    "too short": "1",
    "empty": "",
    "an open quote": '"x',
    "two lines": "a\nb",
}


class TestSubsetsOfText:
    """Under replace-one the number of records is public: whether one can be read must not move it."""

    def rows_of(self, monkeypatch, path, rows=240):
        seen = []
        kept = mechanism.noisy_mixtures

        def watched(records, *arguments, **options):
            seen.append(records.open_in_mechanism())
            return kept(records, *arguments, **options)

        monkeypatch.setattr(recipe, "noisy_mixtures", watched)
        make(mixing=SubsetMixing()).fit(path, schema=tables.schema(), n_public=rows)
        return seen[0]

    @pytest.mark.parametrize("name", UNREADABLE)
    def test_hardening_3_an_unreadable_record_is_a_default_record(self, name, tmp_path, monkeypatch):
        tables.write_csv(tmp_path / "p.csv")
        lines = (tmp_path / "p.csv").read_text(encoding="utf-8").rstrip("\n").split("\n")
        whole = self.rows_of(monkeypatch, tmp_path / "p.csv")
        lines[-1] = UNREADABLE[name]
        (tmp_path / "p.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = self.rows_of(monkeypatch, tmp_path / "p.csv")
        assert found.shape == whole.shape
        assert (found[:-1] == whole[:-1]).all()
        assert not found[-1].any()
        assert whole[-1].any()

    def test_so_is_one_in_the_middle(self, tmp_path, monkeypatch):
        tables.write_csv(tmp_path / "p.csv")
        lines = (tmp_path / "p.csv").read_text(encoding="utf-8").rstrip("\n").split("\n")
        whole = self.rows_of(monkeypatch, tmp_path / "p.csv")
        lines[7] = "1,2,3"
        (tmp_path / "p.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = self.rows_of(monkeypatch, tmp_path / "p.csv")
        expected = np.concatenate([np.delete(whole, 6, axis=0), np.zeros((1, whole.shape[1]))])
        assert (found == expected).all()

    def test_what_is_beyond_the_declared_number_is_left_out(self, tmp_path, monkeypatch):
        tables.write_csv(tmp_path / "p.csv")
        assert len(self.rows_of(monkeypatch, tmp_path / "p.csv", rows=230)) == 230

    def test_a_frame_of_another_number_is_refused(self):
        with pytest.raises(ConfigError, match="as many units as declared"):
            make(mixing=SubsetMixing()).fit(tables.frame(239), schema=tables.schema())


@pytest.mark.parametrize(
    "bad", [{"mixture_degree": 0}, {"n_mixtures": 0}, {"clip_norm": -1}, {"denoise": -1}, {"mixing": "poisson"}]
)
def test_impossible_settings(bad):
    with pytest.raises(ConfigError):
        make(**bad)


DIGITS = """\
rows: 60000
columns:
  x: {kind: image, shape: [28, 28]}
  y: {kind: categorical, categories: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
"""


def test_auto_degree_is_a_public_formula_that_follows_the_budget():
    schema = tables.read_schema(DIGITS)
    degrees = [chosen_degree(epsilon, schema) for epsilon in (0.3, 1.0, 3.0, 10.0, 30.0)]
    assert degrees == sorted(degrees)
    assert degrees[1] == 16
    assert degrees[3] == 64  # also the best of the source's table at epsilon = 10


def chosen_degree(epsilon, schema, **settings):
    start = time.process_time()
    synthesizer = DPMix(epsilon=epsilon, delta=1 / 60_001, mixture_degree=AutoDegree(), **settings)
    stage = synthesizer.stages(Facts(schema, None, schema.rows))[0]
    assert time.process_time() - start < 0.5
    if stage.inclusion is None:
        return None
    return round(stage.inclusion * schema.rows)


@pytest.mark.slow
@pytest.mark.parametrize("mixing", [PoissonMixing(), SubsetMixing()], ids=lambda m: type(m).__name__)
def test_the_rough_noise_of_auto_degree_chooses_as_the_exact_noise_would(mixing):
    """Its degree is at most a twentieth worse than the best, by exact accounts."""
    schema = tables.read_schema(DIGITS.replace("60000", "500"))
    for epsilon in (2.0, 8.0):
        errors = {}
        for degree in (1, 2, 4, 8, 16, 32, 64, 128):
            plan = DPMix(epsilon=epsilon, delta=1e-4, mixture_degree=degree, mixing=mixing).plan(schema)
            z = plan["mixtures"].noise_multiplier
            errors[degree] = np.sqrt(degree) * product_error(multiplier=z, degree=degree, n_features=784, n_labels=10)
        chosen = chosen_degree(epsilon, schema, mixing=mixing)
        assert errors[chosen] <= 1.05 * min(errors.values())
