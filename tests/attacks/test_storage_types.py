"""Finding 1 of the review: storage types carried one person's cell. Types of samples follow from the schema.

Each case is a pair of neighbours that differ in one cell, and by it in the storage type of a column. No other record's
codes may differ, and where both are made to release the same, nothing that leaves may: clip norms follow from releases.
"""

import json
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.coupling import attack, check_same, coupled, leaves
from sfumato import EstimateCount, MaxEntropy
from sfumato.columns import Boolean, Categorical, Continuous, DateTime, Integer
from sfumato.columns.open import Open
from sfumato.errors import PrivacyWarning, SfumatoError
from sfumato.fitting.contents import form_of
from sfumato.fitting.domain_counts import KindCounts
from sfumato.io.sources import open_source
from sfumato.records.private import OpenData, PrivateData
from sfumato.release.manifest import ReleaseContent, written
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

N = 400
_RNG = np.random.default_rng(5)
_DAYS = pd.to_datetime("2024-01-01") + pd.to_timedelta(_RNG.integers(0, 300, N), unit="D")
_TIMES = _DAYS + pd.to_timedelta(_RNG.integers(0, 86_400, N), unit="s")
_NUMBERS = _RNG.integers(0, 10, N)
_TRUTHS = _RNG.integers(0, 2, N).astype(bool)
_WORDS = np.array(["red", "blue", "green"])[_RNG.integers(0, 3, N)]


def _with(cells, odd, dtype=None):
    """Return a column of cells whose last is another, as pandas makes it of Python values."""
    return pd.Series([*list(cells)[:-1], odd], dtype=dtype)


def _cents(last):
    return pa.array([*[Decimal(int(v)) / 100 for v in _NUMBERS[:-1]], Decimal(last)])


def _category(last):
    labels = [f"word {i}" for i in range(127)]
    cells = [*(labels[i % 127] for i in range(N - 1)), last]
    return pd.Series(pd.Categorical(cells, categories=[*labels, last] if last not in labels else labels))


# name: the column as it is, and with one other cell; what its kind may be declared as
PANDAS = {
    "int, one missing": (pd.Series(_NUMBERS), _with(map(int, _NUMBERS), None)),
    "int, one missing and nullable": (pd.Series(_NUMBERS, dtype="Int64"), _with(map(int, _NUMBERS), None, "Int64")),
    "int, one fraction": (pd.Series(_NUMBERS), _with(map(float, _NUMBERS), 2.5)),
    "int, one text": (pd.Series(_NUMBERS), _with(map(int, _NUMBERS), "x")),
    "int, one beyond 64 bits": (pd.Series(_NUMBERS), _with(map(int, _NUMBERS), 2**63)),
    "float, one text": (pd.Series(_NUMBERS / 4), _with(_NUMBERS / 4, "x")),
    "bool, one missing": (pd.Series(_TRUTHS), _with(_TRUTHS.tolist(), None)),
    "bool, one text": (pd.Series(_TRUTHS), _with(_TRUTHS.tolist(), "maybe")),
    "str, one int": (pd.Series(_WORDS, dtype="str"), _with(_WORDS, 7, object)),
    "str, one bytes": (pd.Series(_WORDS, dtype="str"), _with(_WORDS, b"\xff", object)),
    "date, one text": (pd.Series(_DAYS), _with(_DAYS, "unknown", object)),
    "time, one text": (pd.Series(_TIMES), _with(_TIMES, "unknown", object)),
    "time, one missing": (pd.Series(_TIMES), _with(_TIMES, None)),
    "category, one new": (_category("word 0"), _category("a new word")),
    "category, one number": (pd.Series(_WORDS, dtype="category"), _with(_WORDS, 7).astype("category")),
    "category of int, one missing": (
        pd.Series(_NUMBERS).astype("category"),
        _with(map(int, _NUMBERS), None).astype("category"),
    ),
}
ARROW = {
    "int, one missing": (pa.array(_NUMBERS), pa.array([*map(float, _NUMBERS[:-1]), None])),
    "small int, one larger": (pa.array(_NUMBERS, pa.int8()), pa.array([*_NUMBERS[:-1].tolist(), 300], pa.int16())),
    "decimal, one salary": (_cents("0.05"), _cents("1234567.00")),
    "null, one number": (pa.nulls(N), pa.array([*[None] * (N - 1), 5], pa.int64())),
    "dictionary, one new": (pa.array(_WORDS).dictionary_encode(), pa.array([*_WORDS[:-1], "new"])),
    "text, one long": (pa.array(_WORDS), pa.array([*_WORDS[:-1], "x"], pa.large_string())),
    "dates, one time": (
        pa.array(_DAYS.date),
        pa.array([*_DAYS.to_pydatetime()[:-1], pd.Timestamp("2024-01-01 10:00")], pa.timestamp("us")),
    ),
}


def _readers(tmp_path):
    """Return every way to read a pair of columns."""

    def parquet(name, table):
        path = tmp_path / name
        path.mkdir()
        pq.write_table(table, path / "people.parquet")
        return path / "people.parquet"

    for case, pair in PANDAS.items():
        frames = [pd.DataFrame({"sex": _WORDS, "v": column}) for column in pair]
        yield f"pandas: {case}", frames
        tables = []
        for frame in frames:
            try:
                tables.append(pa.Table.from_pandas(frame, preserve_index=False))
            except (pa.ArrowException, TypeError, OverflowError):  # no Arrow table is made of such objects
                break
        if len(tables) == 2:
            yield f"pyarrow of pandas: {case}", tables
            yield f"parquet of pandas: {case}", [parquet(f"{case} {i}", table) for i, table in enumerate(tables)]
    for case, pair in ARROW.items():
        tables = [pa.table({"sex": _WORDS, "v": column}) for column in pair]
        yield f"pyarrow: {case}", tables
        yield f"parquet: {case}", [parquet(f"arrow {case} {i}", table) for i, table in enumerate(tables)]
        yield f"polars: {case}", [pl.DataFrame(pl.from_arrow(table)) for table in tables]
        yield f"pandas of arrow types: {case}", [table.to_pandas(types_mapper=pd.ArrowDtype) for table in tables]


KINDS = {
    "integer": Integer(lower=0, upper=9, nullable=True),
    "integer with a stand-in": Integer(lower=0, upper=9),
    "wide integer": Integer(lower=0, upper=10**6),
    "continuous": Continuous(lower=0, upper=9, resolution=0.01),
    "codes": Categorical(categories=tuple(range(10)), nullable=True),
    "words": Categorical(categories=("red", "blue", "green", "true", "false"), other="other"),
    "boolean": Boolean(nullable=True),
    "spelt boolean": Boolean(text=("False", "True")),
    "days": DateTime(lower="2024-01-01", upper="2024-12-31", nullable=True),
    "times": DateTime(lower="2024-01-01", upper="2024-12-31", resolution="second", format="%d.%m.%Y %H:%M:%S"),
    "day labels": Categorical(categories=tuple(str(day) for day in sorted({*_DAYS.date})), other="other"),
}


def _written(release):
    """All that leaves a release: its arrays, and its manifest to the last digit."""
    content = ReleaseContent(
        release.schema, release.certificate, release.sampler, release.parameters, release.measurements, release.form
    )
    return leaves(release) | {"manifest": json.dumps(written(content)[0], sort_keys=True)}


def _codes(data, schema):
    return np.concatenate([rows["v"] for rows in PrivateData(open_source(data), schema).coded()])


def _refused(data, schema):
    try:
        PrivateData(open_source(data), schema)
    except SfumatoError as error:
        return str(error).split("got ")[0]
    return ""


class TestHardening1StorageTypes:
    @pytest.mark.parametrize("kind", KINDS)
    def test_no_other_cells_code_depends_on_the_type_of_the_column(self, kind, tmp_path):
        schema = Schema(columns={"sex": KINDS["words"], "v": KINDS[kind]}, rows=N)
        compared = 0
        for case, (before, after) in _readers(tmp_path):
            if _refused(before, schema) or _refused(after, schema):
                continue
            compared += 1
            here, there = _codes(before, schema)[:-1], _codes(after, schema)[:-1]
            np.testing.assert_array_equal(here, there, err_msg=case)
        assert compared > 15

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_form_of_samples_does_not(self, kind, tmp_path):
        schema = Schema(columns={"sex": KINDS["words"], "v": KINDS[kind]}, rows=N)
        for case, pair in _readers(tmp_path):
            forms = [form_of(open_source(data), schema) for data in pair]
            assert forms[0] == forms[1], case

    @pytest.mark.slow
    @pytest.mark.audit
    @pytest.mark.parametrize("kind", ["integer", "codes", "boolean", "times"])
    def test_what_leaves_a_fit_does_not(self, kind, monkeypatch, tmp_path):
        schema = Schema(columns={"sex": KINDS["words"], "v": KINDS[kind]}, rows=N)
        compared = 0

        def fit(data):
            release = MaxEntropy(epsilon=1).fit(data, schema=schema, seed=3)
            return _written(release) | {"types": open_source(release.sample(3, seed=0)).storage}

        for case, pair in _readers(tmp_path):
            if any(_refused(data, schema) for data in pair):
                continue
            print(case)  # is shown where it fails
            attack(monkeypatch, fit, *pair, replaced=True)
            compared += 1
        assert compared > 10

    @pytest.mark.slow
    @pytest.mark.audit
    @pytest.mark.filterwarnings("ignore:Nearly all values")
    @pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
    def test_nor_a_fit_whose_columns_are_estimated(self, monkeypatch, tmp_path):
        def fit(data):
            method = MaxEntropy(epsilon=20, delta=1e-6)
            return _written(method.fit(data, schema=OpenSchema.of(data), n_public=EstimateCount(), seed=3))

        for case, pair in _readers(tmp_path):
            print(case)
            attack(monkeypatch, fit, *pair, replaced=True)

    def test_no_neighbour_decides_whether_a_fit_is_refused(self, tmp_path):
        of_family = {
            "int": ("integer", "continuous", "codes", "boolean"), "float": ("integer", "continuous"),
            "decimal": ("integer", "continuous"), "bool": ("integer", "words", "boolean", "spelt boolean"),
            "str": ("words", "boolean"), "category": ("words",), "dictionary": ("words",), "text": ("words",),
            "null": ("integer", "codes"), "date": ("days", "times", "day labels"), "time": ("days", "times"),
        }  # fmt: skip
        tried = 0
        for case, pair in _readers(tmp_path):
            family = next(word for word in of_family if word in case.split(": ")[1].split(",")[0])
            for kind in of_family[family]:
                schema = Schema(columns={"sex": KINDS["words"], "v": KINDS[kind]}, rows=N)
                assert [_refused(data, schema) for data in pair] == ["", ""], (case, kind)
                tried += 1
        assert tried > 100

    def test_asked_for_they_are_published_loudly(self, monkeypatch):
        schema = Schema(columns={"v": Integer(lower=0, upper=9, nullable=True)}, rows=N)
        before, after = (pd.DataFrame({"v": column}) for column in PANDAS["int, one missing"])

        def loud(frame):
            with pytest.warns(PrivacyWarning, match="storage types of the pandas data frame are published"):
                release = MaxEntropy(epsilon=1).fit(frame, schema=schema, seed=3, as_source=True)
            assert any("NOT covered by the guarantee" in line for line in release.certificate.assumptions)
            return _written(release)

        one, other, _ = coupled(monkeypatch, loud, before, after, more=0)
        assert one.pop("form") != other.pop("form")
        assert one.pop("manifest") != other.pop("manifest")
        check_same(one, other)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            quiet = MaxEntropy(epsilon=1).fit(after, schema=schema, seed=3)
        assert not any("storage types" in line for line in quiet.certificate.assumptions)


EURO = {"decimal": ",", "thousands": ".", "suffix": " EUR"}
DAYS = [pd.Timestamp("2024-01-02"), pd.Timestamp("1900-01-01"), pd.Timestamp("2024-05-06 07:08:09")]
AMONG_TEXTS = {
    "a code for no value, in dollars": ({"written": {"currency": "$"}}, ["-9"], [-9, 3, -9]),
    "a code for no value, minus behind": ({"written": {"negative": "trailing"}}, ["-9"], [-9, 3, -9]),
    "a code for no value, with a point": ({}, ["-9.0"], [-9, 3, -9]),
    "thousands where 1 stands for no value": ({"written": EURO}, ["1"], [1000, 1, 2]),
    "a thousand that stands for no value": ({"written": EURO}, ["1.000"], [1000, 1, 2]),
    "small numbers below 0": ({"written": {"negative": "parentheses"}}, None, [-1e-5, -1.5e-7, 2.0]),
    "percent of nothing": ({"written": {"percent": True}}, None, [float("inf"), float("-inf"), 2.0]),
    "infinity stands for no value": ({}, ["inf"], [float("inf"), 1.0]),
    "groups of three, and three decimals": ({"written": EURO}, None, [1.234, -1234.5, 0.5]),
    "truth stands for no value": ({}, ["true"], [True, False, True]),
    "dates in a format": ({"format": "%d.%m.%Y"}, ["1900-01-01"], DAYS),
    "dates in digits": ({"format": "%Y%m%d"}, ["20240102", "20240506"], DAYS),
    "dates, a basic token": ({}, ["19000101"], DAYS),
    "dates, day before month": ({"format": "%Y-%d-%m"}, ["1900-01-01"], DAYS),
}  # fmt: skip


@pytest.mark.parametrize("odd", ["a word", "1.000,5", 1j, Decimal("1.5")])
@pytest.mark.parametrize("case", AMONG_TEXTS)
def test_one_cell_of_another_type_moves_no_other_record(case, odd):
    facts, missing, cells = AMONG_TEXTS[case]
    numbers = {"kind": "continuous", "lower": -2000.0, "upper": 2000.0}
    dates = {"kind": "datetime", "lower": "1890-01-01", "upper": "2030-01-01"}
    column = {**(dates if cells is DAYS else numbers), **facts, "nullable": True}
    known = Schema.from_dict({"columns": {"v": column}, **({} if missing is None else {"missing": missing})})
    codes = [
        np.concatenate([chunk["v"] for chunk in PrivateData(open_source(frame).under(known.columns), known).coded()])
        for frame in (pd.DataFrame({"v": cells}), pd.DataFrame({"v": [*cells, odd]}))
    ]
    np.testing.assert_array_equal(codes[1][:-1], codes[0])
    assert not np.isnan(codes[0]).all()
    assert np.isnan(codes[0]).any() == (missing is not None)


@pytest.mark.parametrize("kind", ["unknown", "continuous"])
@pytest.mark.parametrize("odd", ["a word", Decimal("1.5")])
def test_one_cell_of_another_type_moves_no_other_record_of_an_open_column(kind, odd):
    column = Open(kind=kind, written=EURO)
    known = Schema(columns={"v": column, "w": Boolean()})
    cells, counts = [1.234, -1234.5, 0.5], KindCounts(("v",), written={"v": column.written})
    totals = []
    for values in (cells, [*cells, odd]):
        source = open_source(pd.DataFrame({"v": values, "w": True})).under(known.columns)
        rows = next(iter(OpenData(source, known).coded()))
        totals.append(counts.zero())
        counts.add(totals[-1], {name: column[:3] for name, column in rows.items()})
    np.testing.assert_array_equal(*totals)
