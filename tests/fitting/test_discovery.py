"""From a raw file to a release: what is bought, what is said to be public, and what never comes out."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures import tables
from fixtures.command_line import call
from fixtures.sampling import small_simulations
from sfumato import EstimateCount, MaxEntropy, NonPrivate, Schema, audit
from sfumato.columns.bounded import BEYOND, MISSING, N_CELLS, cell_span, cells_of, year_cells
from sfumato.columns.kinds import Boolean, Categorical, DateTime, Identifier, Integer, Open
from sfumato.errors import ConfigError, EstimateError, SchemaError, SchemaWarning
from sfumato.io.sources import open_source
from sfumato.methods.p3gm.recipe import P3GM
from sfumato.records.private import PrivateData
from sfumato.schema.open_schema import OpenSchema

__all__ = ["call", "small_simulations"]

DELTA = 1e-6


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Twenty thousand people in a CSV and a Parquet file; one lives in a town of their own."""
    folder = tmp_path_factory.mktemp("people")
    table = tables.frame(20_000).drop(columns="id")
    table["debt"] = -table["age"] * 1_000
    table["town"] = np.where(np.arange(20_000) % 3, "Aa", "Bb")
    table.loc[7, ["town", "age"]] = ["Nowhere-on-Earth", 987_654]
    table.to_csv(folder / "people.csv", index=False)
    table.to_parquet(folder / "people.parquet", index=False)
    return folder


def test_a_csv_without_a_schema(people, call, tmp_path):
    arguments = ("fit", people / "people.csv", "--epsilon", 1, "--delta", DELTA, "--target", "income")
    done = call(*arguments, "--kinds", "member=boolean,seen=identifier", "--out", tmp_path / "r.sfm")
    assert done.code == 0
    known = "the names of all columns; the kinds of 'income'; bounds or labels of 'member', as declared."
    assert f"Taken as public: {known}" in done.out
    assert "To be estimated with part of the budget: the number of rows, the kinds of 6 columns" in done.out
    from sfumato import load

    release = load(tmp_path / "r.sfm")
    certificate = release.certificate
    assert certificate.private
    certificate.verify()
    assert certificate.content["extra_delta"] == pytest.approx(DELTA / 10)
    stages = [stage["name"] for stage in certificate.content["stages"]]
    assert stages == ["count", "kinds of columns", "discovery", "marginals", "second moments"]
    assert "'age'" in certificate.content["assumptions"][0]
    columns = release.schema.columns
    assert columns["age"].lower <= 5
    assert 90 <= columns["age"].upper <= 1023  # noise takes in an octave more in one fit of forty: three are 10^-5
    assert columns["debt"].lower <= -90_000
    assert columns["debt"].upper <= 0
    assert set(columns["town"].labels) == {"Aa", "Bb", "other"}
    assert set(columns["grade"].labels) == {"low", "mid", "high", "other"}
    assert columns["grade"].nullable
    assert columns["weight"].nullable
    assert not columns["sex"].nullable
    assert isinstance(columns["seen"], Identifier)
    for path in tmp_path.iterdir():
        assert b"Nowhere" not in path.read_bytes()
        assert b"987654" not in path.read_bytes()
    sample = release.sample(50)
    assert sample.column_names == [name for name in release.schema.released]


@pytest.mark.filterwarnings("ignore:Nearly all values")  # of dates, which are labels here
def test_types_of_parquet_are_not_taken_as_public(people, call, tmp_path):
    arguments = ("fit", people / "people.parquet", "--epsilon", 1, "--delta", DELTA, "--rows", 20_000)
    done = call(*arguments, "--out", tmp_path / "r")
    assert done.code == 0
    assert "storage types" not in done.out
    assert "the number of rows, 20000" in done.out
    assert "the kinds of 9 columns" in done.out


def test_a_schema_may_leave_columns_open(people, call, tmp_path):
    schema = tmp_path / "s.yaml"
    schema.write_text(
        "rows: 20000\nunit: {column: seen, max_rows: 2}\ncolumns:\n  seen: identifier\n"
        "  age: {kind: integer, discover: true}\n  sex: {kind: categorical, categories: [f, m]}\n"
        "  town: {kind: categorical, discover: true}\n"
    )
    plan = call("plan", "--schema", schema, "--epsilon", 1, "--delta", DELTA, "--json").json
    assert [stage["name"] for stage in plan["stages"]] == ["discovery", "marginals", "second moments"]
    assert plan["extra_delta"] == pytest.approx(DELTA / 10)
    out = tmp_path / "r"
    assert (
        call("fit", people / "people.csv", "--schema", schema, "--epsilon", 1, "--delta", DELTA, "--out", out).code == 0
    )
    refused = call(
        "fit", people / "people.csv", "--schema", schema, "--kinds", "age=integer", "--epsilon", 1, "--out", out
    )
    assert refused.code == 2
    checked = call("schema", "check", schema, people / "people.csv", "--json").json
    assert [entry["kind"] for entry in checked["columns"]][1:] == [
        "integer, to discover",
        "categorical",
        "categorical, to discover",
    ]


def test_without_noise_the_facts_are_found():
    frame = pd.DataFrame(
        {"x": [3, 5, 9, 200] * 500, "c": ["u", "v", "u", None] * 500, "f": [0.5, -0.25, 8.0, 1.0] * 500}
    )
    source = open_source(frame)
    release = MaxEntropy(epsilon=NonPrivate()).fit(source, schema=OpenSchema.of(source, rows=2_000))
    columns = release.schema.columns
    assert (columns["x"].lower, columns["x"].upper) == (3, 223)
    assert (columns["f"].lower, columns["f"].upper) == (-0.3125, 10.0)
    assert columns["c"] == Categorical(categories=("u", "v", "other"), other="other", nullable=True)


def test_truth_values_are_found_however_they_are_stored_and_dates_are_dates():
    days = pd.to_datetime(["2024-01-01", "2024-02-01"] * 1_000)
    frame = pd.DataFrame(
        {"a": [True, False] * 1_000, "b": ["True", "False"] * 1_000, "c": ["TRUE", "NO"] * 1_000, "d": days}
    )
    frame["e"] = ["TRUE", "FALSE"] * 1_000
    release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=OpenSchema.of(frame, rows=2_000))
    columns = release.schema.columns
    assert (columns["a"], columns["b"], columns["e"]) == (Boolean(nullable=True),) * 3, "what is neither is missing"
    assert set(columns["c"].categories) == {"true", "NO", "other"}
    assert columns["d"] == DateTime(lower="2024-01-01", upper="2024-12-31")
    rows = release.sample(50)
    assert set(rows["a"]) == set(rows["e"]) == {True, False}


@pytest.mark.slow
@pytest.mark.audit
def test_first_and_last_year_of_dates_are_bought():
    days = np.datetime64("2019-03-04") + np.arange(3_000) % 900
    text = pd.Series(days).dt.strftime("%d.%m.%y")
    text[5], text[6] = None, "soon"
    frame = pd.DataFrame({"day": days, "text": text, "sex": ["f", "m"] * 1_500})
    kinds = {"day": Open(kind="datetime"), "text": Open(kind="datetime", format="%d.%m.%y")}
    schema = Schema(columns={**kinds, "sex": Categorical(categories=["f", "m"])}, rows=3_000)
    release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=schema)
    assert release.schema.columns["day"] == DateTime(lower="2019-01-01", upper="2021-12-31")
    found = release.schema.columns["text"]
    assert (found.lower, found.upper, found.format, found.nullable) == ("2019-01-01", "2021-12-31", "%d.%m.%y", True)
    rows = release.sample(100, seed=1)
    assert rows["text"].dropna().str.fullmatch(r"\d\d\.\d\d\.(19|20|21)").all()
    release = MaxEntropy(epsilon=1.0, delta=DELTA).fit(frame, schema=schema, seed=1)
    noisy = release.schema.columns["day"]
    assert "2015" < noisy.lower <= "2019-01-01"
    assert "2021-12-31" <= noisy.upper < "2026"


def test_no_date_shows_the_years_that_one_record_has():
    """One record far away does not stand out; a column of nothing is left out."""
    days = np.datetime64("2019-03-04") + np.arange(3_000) % 90
    days[7] = np.datetime64("1850-01-01")
    frame = pd.DataFrame({"day": days, "none": pd.array([pd.NaT] * 3_000, dtype="datetime64[ns]")})
    schema = Schema(
        columns={"day": Open(kind="datetime"), "none": Open(kind="datetime", format="%d.%m.%y")}, rows=3_000
    )
    with pytest.warns(SchemaWarning, match="No value of 'none' stood out from the noise: left out of the release"):
        release = MaxEntropy(epsilon=1.0, delta=DELTA).fit(frame, schema=schema, seed=1)
    assert release.schema.columns["day"].lower > "2010"
    assert release.schema.released == ("day",)


@pytest.mark.parametrize("kind", [{"kind": "datetime", "format": "%d.%m"}, {"kind": "integer", "format": "%Y-%m-%d"}])
def test_a_format_that_does_not_fit_is_refused(kind):
    with pytest.raises(SchemaError, match="format"):
        Open(**kind)
    with pytest.raises(SchemaError, match=r"Column 'day'.*format"):
        Schema.from_dict({"columns": {"day": {**kind, "discover": True}}})


def test_years_beyond_the_grid_have_a_cell_of_their_own():
    cells = year_cells(np.array([1.0, 1708.0, 2000.0, 2292.0, 9999.0, np.nan]))
    assert cells.tolist() == [BEYOND, 0, (N_CELLS - 1) // 2, N_CELLS - 1, BEYOND, MISSING]


def test_the_grid_does_not_depend_on_data_and_holds_every_number():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.standard_cauchy(5_000) * 10.0 ** rng.integers(-5, 12, 5_000), np.arange(-300, 300.0)])
    values = values[np.abs(values) < 2.0**53]
    cells = cells_of(values)
    for value, cell in zip(values, cells, strict=True):
        low, high = cell_span(int(cell))
        assert low <= value <= high
        assert (value < high) if value > 0 else (value > low or value == 0)
    assert cells_of(np.array([np.nan, np.inf, -np.inf])).tolist() == [MISSING] * 3
    assert cells_of(np.array([0.0, -0.0]))[0] == cells_of(np.array([-0.0]))[0]
    assert cells_of(np.array([1e308, -1e308, 2.0**53, -(2.0**53)])).tolist() == [BEYOND] * 4
    ends = cells_of(np.array([2.0**53 - 1, 1 - 2.0**53, 5e-324, -5e-324]))
    assert (ends[0], ends[1]) == (N_CELLS - 1, 0)
    assert (ends[2] + ends[3]) // 2 == (N_CELLS - 1) // 2


@pytest.mark.parametrize(
    "entry",
    ["{kind: integer, discover: false}", "{kind: image, discover: true}", "{kind: integer, lower: 0, discover: true}",
     "{discover: true}"],
)  # fmt: skip
def test_an_open_column_says_its_kind_and_nothing_else(tmp_path, entry):
    path = tmp_path / "s.yaml"
    path.write_text(f"rows: 10\ncolumns:\n  a: {entry}\n")
    with pytest.raises(SchemaError, match="discover"):
        OpenSchema.load(path)


def test_bad_calls_end_before_anything_is_charged():
    frame = pd.DataFrame({"x": [1, 2], "c": ["u", "v"]})
    source = open_source(frame)
    opened = OpenSchema.of(source, rows=2_000)
    with pytest.raises(ConfigError, match="without open columns"):
        P3GM(epsilon=1).fit(source, schema=opened)
    with pytest.raises(ConfigError, match="delta"):
        MaxEntropy(epsilon=1).fit(source, schema=opened, n_public=EstimateCount())
    assert OpenSchema.of(frame, rows=2_000) == opened
    with pytest.raises(ConfigError, match="type int"):
        OpenSchema.of(3)
    with pytest.raises(SchemaError, match="no column 'y'"):
        OpenSchema.of(source, {"y": "integer"})
    with pytest.raises(SchemaError, match="kind to be one of"):
        OpenSchema.of(source, {"x": "image"})
    whole = Schema(columns={"x": Integer(lower=0, upper=9)}, rows=10)
    assert MaxEntropy(epsilon=1).plan(whole) == MaxEntropy(epsilon=1).plan(OpenSchema(whole))


class TestOpenColumns:
    """An open column is a kind of column: fits buy it, and everything else refuses it."""

    OPENED = Schema(columns={"x": Open(kind="integer"), "c": Categorical(categories=("u", "v"))}, rows=2_000)
    FRAME = pd.DataFrame({"x": [1, 2], "c": ["u", "v"]})

    def test_a_schema_holds_and_names_them(self, tmp_path):
        assert self.OPENED.open == {"x": "integer"}
        assert self.OPENED.released == ("x", "c")
        assert self.OPENED.to_dict()["columns"]["x"] == {"kind": "integer", "discover": True}
        self.OPENED.save(tmp_path / "s.yaml")
        assert OpenSchema.load(tmp_path / "s.yaml") == self.OPENED
        with pytest.raises(SchemaError, match="declares every column, got `discover` for 'x'"):
            Schema.load(tmp_path / "s.yaml")
        with pytest.raises(SchemaError, match="kind to be one of integer"):
            Open(kind="image")  # type: ignore[arg-type]

    def test_all_else_refuses_them(self):
        for refused in (
            lambda: sfumato.tune(self.FRAME, schema=self.OPENED, method=[MaxEntropy(epsilon=1)]),
            lambda: MaxEntropy(epsilon=1).epsilon_for(self.OPENED, target_error=0.1),
            lambda: audit.audit(MaxEntropy(epsilon=1), schema=self.OPENED),
            lambda: list(PrivateData(open_source(self.FRAME), self.OPENED).coded()),
        ):
            with pytest.raises(SchemaError, match="declare"):
                refused()

    def test_discovery_leaves_none_open(self):
        release = MaxEntropy(epsilon=NonPrivate()).fit(self.FRAME, schema=self.OPENED, seed=0)
        assert release.schema.open == {}
        assert isinstance(release.schema.columns["x"], Integer)
        assert Schema.from_dict(release.schema.to_dict()) == release.schema

    def test_a_plan_reckons_with_the_least_that_can_be_found(self):
        wide = Schema(columns={f"x{i}": Open() for i in range(20_000)}, rows=2_000)
        with pytest.raises(SchemaError, match="Expected at most"):
            MaxEntropy(epsilon=1).plan(wide)

    def test_the_column_of_the_unit_is_not_bought(self):
        columns = {"who": {"kind": "integer", "discover": True}, "x": {"kind": "integer", "discover": True}}
        unit = {"column": "who", "max_rows": 2}
        opened = OpenSchema.from_dict({"columns": columns, "unit": unit})
        assert opened.open == {"x": "integer"}
        assert opened.columns["who"] == Identifier()
        with pytest.raises(SchemaError, match="unit's column declared, got 'who' open"):
            Schema(columns={"who": Open(), "x": Open()}, unit=opened.unit)

    def test_columns_can_be_opened_in_a_schema(self):
        whole = Schema(columns={"x": Integer(lower=0, upper=1), "c": Categorical(categories=("u", "v"))}, rows=2_000)
        assert OpenSchema(whole, {"x": "integer"}) == self.OPENED


@pytest.mark.filterwarnings("ignore:Of '(cost|age)' no more than one")
def test_what_nobody_measured_is_left_out():
    """No bounds are made up for numbers and dates of which nothing stood out; of the last nothing is answered."""
    frame = pd.DataFrame({"age": np.arange(20, 60), "day": pd.Timestamp("2001-03-04"), "cost": np.arange(40) / 8})
    kinds = {"age": "integer", "day": "datetime", "cost": "continuous"}
    schema = OpenSchema.of(frame, kinds, rows=40)
    with pytest.warns(SchemaWarning, match="No value of 'age', 'day' stood out from the noise: left out"):
        release = MaxEntropy(epsilon=0.1, delta=DELTA).fit(frame, schema=schema, seed=1)
    assert release.schema.released == ("cost",)
    assert (release.schema.columns["cost"].lower, release.schema.columns["cost"].upper) == (0.0, 1.0)
    with pytest.raises(EstimateError):
        release.mean("cost")
    with pytest.warns(SchemaWarning, match="No value of 'day', 'cost' stood out"):
        release = MaxEntropy(epsilon=0.1, delta=DELTA).fit(frame, schema=schema, target="age", seed=1)
    assert release.schema.released == ("age",)


@pytest.mark.parametrize("others", [np.geomspace(5.0, 5_000.0, 500), np.zeros(500)])
def test_a_column_that_is_nearly_always_0_is_not_the_constant_0(others):
    """Where the other values lie is hidden: costs of which nine in ten are 0 are left out, not released as 0."""
    cost = np.concatenate([np.zeros(4_500), others.round(2)])
    sexes = {f"sex {i}": list("fm") * 2_500 for i in range(7)}  # beside which the noise is larger
    schema = OpenSchema.of(frame := pd.DataFrame({"cost": cost, **sexes}), rows=5_000)
    with pytest.warns(SchemaWarning, match="Of 'cost' no more than one value stood out .* left out of the release"):
        release = MaxEntropy(epsilon=1.0, delta=DELTA).fit(frame, schema=schema, seed=1)
    assert "cost" not in release.schema.released


def test_the_last_column_is_kept_and_said_to_be_constant():
    frame = pd.DataFrame({"rain": np.where(np.arange(600) % 3, 0.0, np.geomspace(0.001, 300_000.0, 600).round(3))})
    schema = OpenSchema.of(frame, {"rain": "continuous"}, rows=600)
    with pytest.warns(SchemaWarning, match="Of 'rain' no more than one value stood out from the noise: what samples"):
        rain = MaxEntropy(epsilon=1.0, delta=DELTA).fit(frame, schema=schema, seed=1).schema.columns["rain"]
    assert (rain.lower, rain.upper) == pytest.approx((0.0, 0.0), abs=2**-19)


def test_words_that_do_not_stand_out_are_never_a_published_one():
    """Eight of a hundred have rare diagnoses: beside a hundred others none of them stands out, nor does their sum."""
    names = ["asthma", "burn", "cough", *(f"rare {word}" for word in ("gout", "hernia", "lupus", "sepsis"))]
    share = np.array([0.5, 0.3, 0.18, 0.005, 0.005, 0.005, 0.005])
    diagnoses = np.repeat(names, (share * 2_000).round().astype(int))
    frame = pd.DataFrame({"diagnosis": diagnoses, **{f"sex {i}": list("fm") * 1_000 for i in range(3)}})
    release = MaxEntropy(epsilon=1.0, delta=DELTA).fit(frame, schema=OpenSchema.of(frame, rows=2_000), seed=2)
    found = release.schema.columns["diagnosis"]
    assert found.labels[-1] == found.other == "other"
    assert found.labels[0] == "asthma"
    assert found.code(pd.Series(names[3:]).to_numpy(), missing=())[0] == len(found.labels) - 1
    assert abs(release.share({"diagnosis": "asthma"}, target="table").value - 0.5) < 0.06


def test_labels_of_which_none_stood_out_are_other_and_said():
    frame = pd.DataFrame({"place": [f"place {i % 80}" for i in range(600)], "sex": list("fm") * 300})
    schema = OpenSchema.of(frame, {"place": "categorical", "sex": "categorical"}, rows=600)
    with pytest.warns(SchemaWarning, match="Of 'place' no more than one value stood out from the noise"):
        release = MaxEntropy(epsilon=1.0, delta=DELTA).fit(frame, schema=schema, target="place", seed=1)
    assert release.schema.columns["place"].labels == ("other",)


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_that_is_rarely_another_stays_one(value):
    frame = pd.DataFrame({"seen": [value] * 3_990 + [not value] * 10, "sex": list("fm") * 2_000})
    release = MaxEntropy(epsilon=1.0, delta=1e-6).fit(frame, schema=OpenSchema.of(frame, rows=4_000), seed=1)
    assert release.schema.columns["seen"] == Boolean(nullable=True)
    assert set(release.sample(50, seed=0)["seen"].dropna()) <= {True, False}
    share = release.share({"seen": value}, target="table")
    assert abs(share.value - 0.9975) < 0.02


def _people(n: int = 6_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": [f"{a:05d}-X" for a in rng.permutation(n)],
            "charge": rng.gamma(2, 30, n).round(2),
            "half": rng.choice([0.5, 1.5, 2.0], n),
            "share": rng.random(n),
            "code": rng.choice(["788", "250", "401", "V57", "E909"], n, p=[0.4, 0.3, 0.2, 0.05, 0.05]),
            "asked": np.where(rng.random(n) < 0.05, "?", rng.integers(18, 90, n).astype(str)),
        }
    )


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_cents_stay_cents_and_codes_are_labels(tmp_path):
    """A CSV without a schema: resolutions are bought, codes are no numbers, and what is nearly all rare is left out."""
    _people().to_csv(tmp_path / "people.csv", index=False)
    schema = OpenSchema.of(tmp_path / "people.csv", rows=6_000)
    with pytest.warns(SchemaWarning, match="Nearly all values of 'id' are too rare"):
        release = MaxEntropy(epsilon=4.0, delta=1e-5).fit(tmp_path / "people.csv", schema=schema, seed=0)
    found = release.schema.columns
    assert found["id"].name == "identifier"
    assert (found["charge"].resolution, found["half"].resolution, found["share"].resolution) == (0.01, 0.1, None)
    assert {"V57", "E909", "788"} <= set(found["code"].labels)
    assert found["asked"].name == "integer"  # a mark for missing is no code
    rows = release.sample(300, seed=0).to_pandas()
    assert "id" not in rows
    cents = rows["charge"].astype(float) * 100
    np.testing.assert_allclose(cents, cents.round(), atol=1e-6)


@pytest.mark.filterwarnings("ignore:Of 'id' no more than one")
def test_the_target_is_kept_whatever_its_labels():
    frame = _people(3_000)[["id", "half"]]
    schema = OpenSchema.of(frame, {"id": "categorical"}, rows=3_000)
    found = MaxEntropy(epsilon=4.0, delta=1e-5).fit(frame, schema=schema, seed=0).schema
    assert found.columns["id"].name == "categorical"  # declared
