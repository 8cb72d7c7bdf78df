"""What every method has to do, run over all of them; a new method joins by its entry in METHODS."""

import itertools
import json
from collections.abc import Iterable
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fixtures import tables
from fixtures.methods import DATA_SETS, skip_refused
from fixtures.methods import QUICK as METHODS
from sfumato import EstimateCount, NonPrivate, Schema, load
from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Integer
from sfumato.errors import ConfigError, SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.schema.unit import Unit

# variants of a method have tests of their own, and go through all of these with the slow ones
VARIANTS = [pytest.param(name, marks=pytest.mark.slow if ", " in name else ()) for name in METHODS]
models = pytest.mark.parametrize("method", VARIANTS)
# a release that is a data set of mixtures has no rows in the form of the records: the rest is asked of it
any_method = pytest.mark.parametrize("method", [*VARIANTS, *DATA_SETS])

# what comes back in which type is the sampler's: once for each
SAMPLERS = [name for name in METHODS if ", " not in name]
samplers = pytest.mark.parametrize("method", SAMPLERS)
NETWORKS = ("p3gm", "dpgm", "dp-vae")


def forms(*axes: Iterable, networks: list[tuple]) -> list:
    """Every form of records with every sampler that has no network; of one with a network, the forms that are named.

    Codes become cells of a type by columns alone, whichever sampler they are of: the rest goes with the slow tests.
    """
    slow = {False: (), True: pytest.mark.slow}
    return [
        pytest.param(
            method, *form,
            id="-".join(map(str, (method, *form))), marks=slow[method in NETWORKS and form not in networks],
        )
        for method in SAMPLERS
        for form in itertools.product(*axes)
    ]  # fmt: skip


TARGETS = [None, "income", "grade", "age"]  # none, two classes, nullable, a number


@pytest.fixture(autouse=True)
def what_a_plugin_fits(request):
    """A method of another package may refuse images, tables or targets."""
    asked = request.node.callspec.params
    images = asked.get("kind") == "images" or request.node.get_closest_marker("images")
    target = asked.get("target") if asked.get("target") in tables.RELEASED else None
    skip_refused(asked["method"], tables.image_schema() if images else tables.schema(), target)


def make(method: str, **settings):
    return {**METHODS, **DATA_SETS}[method](**{"epsilon": 1.0, **settings})


def cost_of(release):
    """Return all that a certificate says but what it belongs to, which a saved one does."""
    return {key: value for key, value in release.certificate.content.items() if key != "release"}


def same(one, other) -> bool:
    """Whether two releases are the same to the last bit."""
    arrays = [
        {**r.parameters, **{f"measured {i}": m.value for i, m in enumerate(r.measurements)}} for r in (one, other)
    ]
    return (
        arrays[0].keys() == arrays[1].keys()
        and all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])
        and cost_of(one) == cost_of(other)
        and one.sampler == other.sampler
    )


@any_method
class TestAccount:
    @pytest.mark.slow
    @pytest.mark.parametrize("target", TARGETS)
    def test_it_stays_within_its_budget_and_is_computed_again(self, method, target):
        certificate = make(method).fit(tables.frame(), schema=tables.schema(), target=target).certificate
        assert 0.99 < certificate.epsilon <= 1.0
        assert certificate.delta == 1e-5
        assert certificate.private
        assert certificate.recompute() == pytest.approx(certificate.epsilon, abs=1e-6)

    @pytest.mark.images
    def test_images(self, method):
        release = make(method).fit(tables.images(), schema=tables.image_schema())
        assert 0.99 < release.certificate.epsilon <= 1.0
        assert release.certificate.recompute() == pytest.approx(release.certificate.epsilon, abs=1e-6)

    @pytest.mark.parametrize("buy", [False, True])
    def test_what_is_charged_is_the_plan(self, method, monkeypatch, buy):
        ledgers, shown = [], []
        monkeypatch.setattr(Ledger, "close", _recorded(Ledger.close, ledgers))
        synthesizer = make(method, delta=1e-5)
        if buy and synthesizer.needs_declared_rows:
            pytest.skip("refuses to buy rows: see test_bought_rows")
        rows = EstimateCount() if buy else None
        plan = synthesizer.plan(tables.schema(), target="income", n_public=rows)
        release = synthesizer.fit(
            tables.frame(), schema=tables.schema(), target="income", n_public=rows, progress=shown.append
        )
        (ledger,) = ledgers
        assert ledger.plan == plan
        assert ledger.charged == tuple((stage.name, stage.count) for stage in plan.stages)
        at_once = method in DATA_SETS  # charges all mixtures before the first is drawn
        assert shown == [stage.name for stage in plan.stages for _ in range(1 if at_once else stage.count)]
        assert [event["noise_multiplier"] for event in release.certificate.content["events"]] == [
            stage.noise_multiplier for stage in plan.stages
        ]
        sampled = any(stage.sampling_probability is not None for stage in plan.stages)
        assert release.certificate.content["sampling"].startswith("Poisson" if sampled else "none")

    def test_bought_rows(self, method):
        if make(method).needs_declared_rows:
            with pytest.raises(ConfigError, match="declared number of rows"):
                make(method, delta=1e-6).fit(tables.frame(), schema=tables.schema(), n_public=EstimateCount())
            return
        release = make(method, delta=1e-6).fit(tables.frame(), schema=tables.schema(), n_public=EstimateCount(), seed=0)
        content = release.certificate.content
        assert content["n_public_source"] == "estimated"
        assert content["events"][0]["stage"] == "count"
        assert content["n_public"] == max(1, round(float(release.measurements[0].value)))
        with pytest.raises(ConfigError, match="delta"):
            make(method).fit(tables.frame(), schema=tables.schema(), n_public=EstimateCount())

    def test_a_schema_that_is_a_file(self, method, tmp_path):
        path = tmp_path / "schema.yaml"
        path.write_text(tables.SCHEMA_TEXT, encoding="utf-8")
        assert make(method).fit(tables.frame(), schema=path).certificate.private


def _recorded(function, calls):
    def recording(self, *arguments, **options):
        calls.append(self)
        return function(self, *arguments, **options)

    return recording


@any_method
class TestRandomness:
    @pytest.mark.parametrize("kind", ["table", "images"])
    def test_the_same_seed_gives_the_same_release(self, method, kind):
        data, schema = _data(kind)
        fits = [make(method).fit(data, schema=schema, seed=seed) for seed in (5, 5, 6)]
        assert same(fits[0], fits[1])
        assert not same(fits[0], fits[2])

    def test_no_seed_no_repetition(self, method):
        fits = [make(method).fit(tables.frame(), schema=tables.schema()) for _ in range(2)]
        assert not same(*fits)

    def test_a_seed_is_not_private(self, method):
        certificate = make(method).fit(tables.frame(), schema=tables.schema(), seed=1).certificate
        assert not certificate.private
        assert certificate.epsilon is not None
        assert "NOT PRIVATE" in repr(certificate)

    @pytest.mark.parametrize("seed", [None, 1])
    def test_no_noise_is_not_private(self, method, seed, tmp_path):
        release = make(method, epsilon=NonPrivate()).fit(tables.frame(), schema=tables.schema(), seed=seed)
        assert all(measurement.noise_std == 0 for measurement in release.measurements)
        release.save(tmp_path / "r")
        for certificate in (release.certificate, load(tmp_path / "r").certificate):
            assert not certificate.private
            assert certificate.epsilon is certificate.delta is None
            assert "NOT PRIVATE" in repr(certificate)


@any_method
class TestOneRecord:
    """Nothing but noisy values may depend on the records."""

    @pytest.mark.parametrize("kind", ["table", "images"])
    @pytest.mark.parametrize("change", ["one more", "ten times", "none"])
    def test_only_noisy_values_depend_on_it(self, method, kind, change):
        data, schema = _data(kind)
        other = {"one more": _longer, "ten times": _tenfold, "none": _empty}[change](data)
        one, two = (make(method).fit(d, schema=schema, seed=3) for d in (data, other))
        assert one.certificate.content == two.certificate.content
        assert one.sampler == two.sampler
        assert one.form == two.form
        assert one.schema == two.schema
        assert one.parameters.keys() == two.parameters.keys()
        assert [m.name for m in one.measurements] == [m.name for m in two.measurements]
        if not one.measurements:  # of a descent alone, the weights are all there is
            assert not same(one, two)
            return
        first, second = one.measurements[0], two.measurements[0]
        assert first.noise_std == second.noise_std
        assert first.value.shape == second.value.shape
        # with the same seed the first noise is the same: what is left is the difference of the exact statistics
        assert not np.array_equal(first.value, second.value)

    def test_the_manifest_differs_in_nothing_else(self, method, tmp_path):
        table = tables.frame()
        documents = []
        for i, data in enumerate((table, _longer(table))):
            make(method).fit(data, schema=tables.schema(), seed=3).save(tmp_path / str(i))
            document = json.loads((tmp_path / str(i) / "manifest.json").read_text())
            document.pop("arrays")
            document["certificate"].pop("release")  # their hashes
            for measurement in document["measurements"]:
                # these follow released clip norms
                for key in ("noise_std", "norm_bound", "grid", "off_diagonal_grid"):
                    measurement.pop(key, None)
                measurement.get("query", {}).pop("clip_norm", None)
            documents.append(document)
        assert documents[0] == documents[1]

    def test_a_unit_counts_up_to_its_rows(self, method):
        schema = tables.schema()
        schema = Schema(columns=schema.columns, rows=schema.rows, unit=Unit(column="id", max_rows=3))
        table = tables.frame()
        table["id"] = np.arange(len(table)) // 3
        if make(method).needs_declared_rows:  # methods that sample rows
            with pytest.raises(ConfigError, match="max_rows: 1"):
                make(method).fit(table, schema=schema, seed=2)
            return
        # of a unit with too many rows, no order of the table decides which count; of equal rows, none more than allowed
        more = pd.concat([table, *[table[table["id"] == 7].assign(age=age) for age in (1, 99)]], ignore_index=True)
        equal = pd.concat([table, table[table["id"] == 8].iloc[[0] * 9]], ignore_index=True)
        copies = pd.concat([table[table["id"] != 8], equal[equal["id"] == 8]], ignore_index=True)
        assert same(*(make(method).fit(data, schema=schema, seed=2) for data in (more, more[::-1])))
        assert same(*(make(method).fit(data, schema=schema, seed=2) for data in (equal, copies)))
        fits = [make(method).fit(table, schema=schema, seed=2)]
        assert fits[0].certificate.content["unit"] == {"name": "id", "max_rows": 3}
        rows = make(method).fit(table, schema=tables.schema(), seed=2)
        assert fits[0].measurements[0].noise_std == pytest.approx(3 * rows.measurements[0].noise_std)
        assert "id" not in fits[0].sample(3).columns

    def test_a_record_without_a_unit_is_left_out(self, method):
        schema = tables.schema()
        schema = Schema(columns=schema.columns, rows=schema.rows, unit=Unit(column="id", max_rows=1))
        table = tables.frame().astype({"id": "Int64"})
        more = pd.concat([table, table.head(3).assign(id=pd.array([pd.NA] * 3, dtype="Int64"))], ignore_index=True)
        assert same(*(make(method).fit(data, schema=schema, seed=2) for data in (table, more)))


def _data(kind: str):
    if kind == "images":
        return tables.images(), tables.image_schema()
    return tables.frame(), tables.schema()


def _longer(data):
    if isinstance(data, tuple):
        return tuple(np.concatenate([part, part[:1]]) for part in data)
    return pd.concat([data, data.head(1)], ignore_index=True)


def _tenfold(data):
    if isinstance(data, tuple):
        return tuple(np.concatenate([part] * 10) for part in data)
    return pd.concat([data] * 10, ignore_index=True)


def _empty(data):
    return tuple(part[:0] for part in data) if isinstance(data, tuple) else data.head(0)


@models
class TestHardData:
    @pytest.mark.parametrize("target", TARGETS)
    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_hardly_any_records(self, method, n, target):
        release = make(method).fit(tables.frame().head(n), schema=tables.schema(), target=target)
        _check_domain(release.sample(50))

    @pytest.mark.parametrize("epsilon", [0.01, 1.0, NonPrivate()])
    def test_constant_columns(self, method, epsilon):
        table = pd.concat([tables.frame().tail(1)] * 100, ignore_index=True)
        for target in (None, "income"):
            _check_domain(make(method, epsilon=epsilon).fit(table, schema=tables.schema(), target=target).sample(50))

    def test_nothing_but_missing(self, method):
        table = tables.frame()
        for name in tables.RELEASED:
            table[name] = pd.Series([None] * len(table), dtype=object)
        made = make(method).fit(table, schema=tables.schema(), target="grade").sample(50)
        assert list(made.columns) == list(tables.RELEASED)

    @pytest.mark.filterwarnings("ignore:Storage types are published:sfumato.errors.PrivacyWarning")
    def test_infinities_and_numbers_far_outside(self, method):
        table = tables.frame().astype({"age": float})
        table.loc[:3, "age"] = [np.inf, -np.inf, 1e300, np.nan]
        table.loc[:2, "weight"] = [np.inf, -1e300, np.nan]
        made = make(method).fit(table, schema=tables.schema()).sample(100)
        assert made["age"].between(0, 100).all()

    @pytest.mark.images
    @pytest.mark.parametrize("cells", [np.nan, np.inf, -np.inf])
    def test_pixels_that_are_no_numbers(self, method, cells):
        pixels, labels = tables.images(60)
        pixels = pixels.astype(np.float32)
        pixels[::2] = cells
        schema = tables.read_schema(tables.IMAGE_SCHEMA_TEXT.replace("uint8", "float32"))
        made = make(method).fit((pixels, labels), schema=schema).sample(20)
        assert made["x"].dtype == np.float32
        assert np.isfinite(made["x"]).all()

    @pytest.mark.images
    def test_labels_outside_the_schema(self, method):
        pixels, labels = tables.images(60)
        made = make(method).fit((pixels, labels + 7), schema=tables.image_schema()).sample(20)
        assert set(made["y"]) <= {0, 1, 2}


def _check_domain(made: pd.DataFrame) -> None:
    assert tuple(made.columns) == tables.RELEASED
    assert set(made["sex"]) <= {"f", "m"}
    assert set(made["grade"].dropna()) <= {"low", "mid", "high"}
    assert made["age"].between(0, 100).all()
    assert made["weight"].dropna().between(0, 120).all()
    tenths = made["weight"].dropna() * 10
    assert np.allclose(tenths, np.rint(tenths))
    assert made["seen"].between("2010-01-01", "2020-12-31").all()
    assert set(made["income"]) <= {"<=50K", ">50K"}


@samplers
class TestSampling:
    @pytest.mark.parametrize("target", TARGETS)
    def test_shape_and_domain(self, method, target):
        release = make(method).fit(tables.frame(), schema=tables.schema(), target=target)
        for n in (0, 1, 300):
            made = release.sample(n)
            assert len(made) == n
            _check_domain(made)
        assert len(release.sample()) == tables.ROWS

    @pytest.mark.slow
    def test_every_level_of_a_nullable_target(self, method):
        if method == "p3gm, mixture":
            pytest.skip("takes the largest level, which a rare one is not")
        made = make(method, epsilon=5.0).fit(tables.frame(2000), schema=tables.schema(), target="grade").sample(3000)
        assert made["grade"].isna().mean() == pytest.approx(0.1, abs=0.05)
        assert set(made["grade"].dropna()) == {"low", "mid", "high"}

    @pytest.mark.parametrize("kind", ["table", "images"])
    def test_saved_and_loaded(self, method, tmp_path, kind):
        data, schema = _data(kind)
        release = make(method).fit(data, schema=schema)
        for name in ("r", "r.sfm"):
            release.save(tmp_path / name)
            again = load(tmp_path / name)
            assert same(release, again)
            one, two = (r.sample(40, seed=1) for r in (release, again))
            if kind == "table":
                pd.testing.assert_frame_equal(one, two)
            else:
                assert all(np.array_equal(one[key], two[key]) for key in one)

    def test_the_seed_of_a_sample(self, method):
        release = make(method).fit(tables.frame(), schema=tables.schema())
        pd.testing.assert_frame_equal(release.sample(50, seed=1), release.sample(50, seed=1))
        pd.testing.assert_frame_equal(release.sample(50, seed=1).head(20), release.sample(20, seed=1))
        assert not release.sample(50, seed=1).equals(release.sample(50, seed=2))
        assert not release.sample(50).equals(release.sample(50))


@pytest.mark.images
@samplers
class TestImages:
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
    @pytest.mark.parametrize("labels", [False, True])
    def test_arrays_come_back(self, method, dtype, labels):
        pixels, classes = tables.images()
        text = tables.IMAGE_SCHEMA_TEXT.replace("uint8", dtype)
        text = text if labels else text.partition("  y:")[0]
        data = {"x_train": pixels.astype(dtype)} | ({"y_train": classes} if labels else {})
        made = make(method).fit(data, schema=tables.read_schema(text)).sample(30)
        assert set(made) == set(data)
        assert made["x_train"].shape == (30, 4, 4)
        assert made["x_train"].dtype == np.dtype(dtype)
        assert made["x_train"].min() >= 0
        assert made["x_train"].max() <= 255
        if labels:
            assert made["y_train"].dtype == classes.dtype
            assert set(made["y_train"]) <= {0, 1, 2}

    @pytest.mark.parametrize("labels", [["a", "b", "c"], [True, False]])
    def test_other_labels(self, method, labels):
        pixels, classes = tables.images()
        y = np.array(labels)[classes % len(labels)]
        kind = "boolean" if y.dtype == bool else "{kind: categorical, categories: [a, b, c]}"
        text = tables.IMAGE_SCHEMA_TEXT.partition("  y:")[0] + f"  y: {kind}\n"
        made = make(method).fit((pixels, y), schema=tables.read_schema(text)).sample(30)
        assert made["y"].dtype == y.dtype
        assert set(made["y"].tolist()) <= set(labels)

    def test_colours(self, method):
        pixels = np.random.default_rng(0).integers(0, 256, (40, 3, 2, 3)).astype(np.uint8)
        schema = tables.read_schema("rows: 40\ncolumns: {x: {kind: image, shape: [3, 2, 3]}}\n")
        assert make(method).fit(pixels, schema=schema).sample(5)["x"].shape == (5, 3, 2, 3)


KINDS = {
    "c": Categorical(categories=("p", "q"), nullable=True),
    "i": Integer(lower=0, upper=9, nullable=True),
    "f": Continuous(lower=0, upper=1),
    "b": Boolean(),
    "d": DateTime(lower="2020-01-01", upper="2020-12-31", resolution="hour"),
}
CELLS = pd.DataFrame(
    {
        "c": ["p", "q", None] * 20,
        "i": pd.array([1, 2, None] * 20, dtype="Int64"),
        "f": [0.25, 0.5, 1.0] * 20,
        "b": [True, False, True] * 20,
        "d": pd.to_datetime(["2020-02-01 10:00", "2020-03-01 00:00", "2020-07-01 23:00"] * 20),
    }
)
PANDAS = [
    {},
    {"c": "category", "i": "Int8", "f": "float32", "b": "boolean", "d": "datetime64[s]"},
    {"c": "string", "i": "UInt16", "f": "Float64", "b": "boolean", "d": "datetime64[ns, Europe/Paris]"},
    {"c": "object", "i": "float64", "f": "Float32", "b": "object", "d": "datetime64[us, UTC+01:30]"},
    {"c": "str", "i": "Int32", "f": "float64", "b": "int8", "d": "string"},
    {"c": "string[pyarrow]", "i": "int64[pyarrow]", "f": "double[pyarrow]", "b": "bool[pyarrow]",
     "d": "timestamp[ms][pyarrow]"},
]  # fmt: skip
POLARS = [
    {},
    {"c": pl.Categorical, "i": pl.Int8, "f": pl.Float32, "d": pl.Datetime("ms", "Europe/Paris")},
    {"c": pl.Enum(["p", "q"]), "i": pl.UInt64, "b": pl.UInt8, "d": pl.Date},
    {"c": pl.String, "i": pl.Float64, "d": pl.Datetime("ns")},
]
ARROW = [
    {},
    {"c": pa.dictionary(pa.int8(), pa.string()), "i": pa.int8(), "f": pa.float32(), "d": pa.timestamp("s", "+02:00")},
    {"c": pa.large_string(), "i": pa.decimal128(10, 2), "f": pa.decimal128(12, 4), "d": pa.date32()},
    {"c": pa.binary(), "i": pa.uint64(), "f": pa.float16(), "d": pa.date64()},
    {"c": pa.string_view(), "i": pa.string(), "f": pa.string(), "b": pa.string(), "d": pa.timestamp("ns", "UTC")},
    {"c": pa.binary_view(), "i": pa.decimal32(5, 0), "b": pa.int64(), "f": pa.dictionary(pa.int32(), pa.float64())},
]


ODD_TYPES = [
    pa.null(), pa.duration("s"), pa.time64("us"), pa.list_(pa.int64()), pa.struct([("a", pa.int64())]),
    pa.run_end_encoded(pa.int32(), pa.int64()), pa.decimal64(10, 1), pa.dictionary(pa.int8(), pa.int64()),
    pa.month_day_nano_interval(), pa.binary(2), pa.uuid(), pa.bool8(), pa.json_(),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:The storage types:sfumato.errors.PrivacyWarning")
class TestFrames:
    """The same container comes back, and if they are asked for the same types."""

    schema = Schema(columns=KINDS, rows=60)

    @pytest.mark.parametrize(
        ("method", "form", "target"), forms(range(len(PANDAS)), [None, "c"], networks=[(1, "c"), (5, None)])
    )
    def test_pandas(self, method, form, target, tmp_path):
        dtypes = PANDAS[form]
        frame = CELLS.astype({k: v for k, v in dtypes.items() if "," not in v})
        for name, dtype in dtypes.items():
            if "," in dtype:
                frame[name] = frame[name].dt.tz_localize(dtype.split(", ")[1][:-1]).astype(dtype)
        frame = frame[list(reversed(frame.columns))]  # the schema's order is the order that comes back
        release = make(method).fit(frame, schema=self.schema, target=target, as_source=True)
        release.save(tmp_path / "r")
        for made in (release.sample(30), load(tmp_path / "r").sample(30)):
            assert isinstance(made, pd.DataFrame)
            assert list(made.columns) == list(KINDS)
            for name in KINDS:
                if dtypes.get(name) == "category":
                    assert isinstance(made[name].dtype, pd.CategoricalDtype)
                else:
                    assert made[name].dtype == frame[name].dtype, name

    @pytest.mark.parametrize(("method", "form", "target"), forms(range(len(POLARS)), [None, "c"], networks=[(1, "c")]))
    def test_polars(self, method, form, target, tmp_path):
        dtypes = POLARS[form]
        frame = pl.from_pandas(CELLS).with_columns(pl.col("d").cast(pl.Datetime("us")))
        for name, dtype in dtypes.items():
            zone = getattr(dtype, "time_zone", None)
            column = pl.col(name).dt.replace_time_zone(zone) if zone else pl.col(name)
            frame = frame.with_columns(column.cast(dtype))
        release = make(method).fit(frame, schema=self.schema, target=target, as_source=True)
        release.save(tmp_path / "r")
        for made in (release.sample(30), load(tmp_path / "r").sample(30)):
            assert isinstance(made, pl.DataFrame)
            assert made.schema == frame.schema

    @pytest.mark.parametrize(("method", "form", "target"), forms(range(len(ARROW)), [None, "c"], networks=[(1, "c")]))
    def test_arrow(self, method, form, target, tmp_path):
        types = ARROW[form]
        table = pa.Table.from_pandas(
            CELLS.astype({"d": "datetime64[us]"}), preserve_index=False
        ).replace_schema_metadata()
        for name, kind in types.items():
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, _cast(table.column(name), kind))
        release = make(method).fit(table, schema=self.schema, target=target, as_source=True)
        release.save(tmp_path / "r")
        for made in (release.sample(30), load(tmp_path / "r").sample(30)):
            assert isinstance(made, pa.Table)
            assert made.schema.names == table.schema.names
            assert made.schema.types == table.schema.types

    @pytest.mark.parametrize(
        ("method", "kind", "declared"), forms(ODD_TYPES, KINDS, networks=[(ODD_TYPES[6], "f"), (ODD_TYPES[1], "i")])
    )
    def test_any_type_comes_back_or_is_refused_uncharged(self, method, kind, declared, tmp_path, monkeypatch):
        charged: list[str] = []
        monkeypatch.setattr(Ledger, "charge", _recorded(Ledger.charge, charged))
        table = pa.table({"v": _nulls(kind)})
        schema = Schema(columns={"v": KINDS[declared]}, rows=60)
        said = ""
        try:
            release = make(method).fit(table, schema=schema, as_source=True)
        except SfumatoError as error:
            said = str(error)
        if said:
            assert "'v'" in said
            assert not charged
            return
        release.save(tmp_path / "r")
        assert load(tmp_path / "r").sample(5).schema.types == [kind]


def _nulls(kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.RunEndEncodedType):
        return pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.nulls(1, pa.int64()))
    return pa.nulls(2, kind)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    values = column.combine_chunks()
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp(kind.unit)).view(kind)
    if pa.types.is_date(kind):
        return values.cast(pa.date32()).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if v is None else Decimal(repr(v)) for v in values.to_pylist()], kind)
    if pa.types.is_float16(kind):
        return pa.array(np.asarray(values.to_pylist(), np.float16))
    if pa.types.is_dictionary(kind):
        return values.cast(kind.value_type).dictionary_encode().cast(kind)
    return values.cast(kind)
