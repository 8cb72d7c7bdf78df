"""Records behind a schema: what is read, what is refused, and whose rows are kept."""

from collections import Counter
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sfumato.columns.kinds import Categorical, Continuous, DateTime, Identifier, Image, Integer
from sfumato.columns.open import Open
from sfumato.columns.sets import ItemSet
from sfumato.errors import DataError, SchemaError
from sfumato.fitting.arguments import RowCount
from sfumato.io.sources import open_source
from sfumato.records.engine import reduce
from sfumato.records.private import OpenData, PrivateData
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit


def people(**columns):
    return pa.table({"who": ["a", "b", "a", "a", None, "b", "c", "a"], "age": [1, 2, 3, 4, 5, 6, 7, 8], **columns})


def schema(max_rows=None):
    unit = None if max_rows is None else Unit(column="who", max_rows=max_rows)
    return Schema(columns={"who": Identifier(), "age": Integer(lower=0, upper=10)}, rows=8, unit=unit)


def ages(data):
    return np.concatenate([np.round(rows["age"] * 10) for rows in data.coded()]).astype(int).tolist()


OWNERS = {1: "a", 2: "b", 3: "a", 4: "a", 6: "b", 7: "c", 8: "a"}  # of ages


def owners(kept, names=None):
    """How many rows each unit keeps."""
    return Counter((names or OWNERS)[age] for age in kept)


@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 100])
@pytest.mark.parametrize("max_rows", [1, 2, 3, 9])
def test_each_unit_keeps_so_many_rows_however_chunked(chunk_rows, max_rows):
    data = PrivateData(open_source(people(), chunk_rows=chunk_rows), schema(max_rows))
    kept = ages(data)
    assert owners(kept) == {"a": min(4, max_rows), "b": min(2, max_rows), "c": 1}
    assert ages(data) == kept, "a second pass keeps the same rows"
    assert kept == ages(PrivateData(open_source(people()), schema(max_rows)))


@pytest.mark.parametrize("max_rows", [1, 2, 3])
def test_no_order_of_the_rows_changes_which_are_kept(max_rows):
    kept = {
        tuple(sorted(ages(PrivateData(open_source(people().take(order), chunk_rows=3), schema(max_rows)))))
        for order in (np.random.default_rng(i).permutation(8) for i in range(20))
    }
    assert len(kept) == 1


def test_one_units_rows_do_not_depend_on_other_units():
    whole = people()
    without_b = whole.filter(pa.array([who != "b" for who in whole["who"].to_pylist()]))
    kept = {age for age in ages(PrivateData(open_source(whole), schema(2))) if OWNERS[age] != "b"}
    assert set(ages(PrivateData(open_source(without_b), schema(2)))) == kept


@pytest.mark.parametrize(
    "units",
    [
        pa.array([1, 2, 1, 1, None, 2, 3, 1]),
        pa.array([1.0, 2.0, 1.0, 1.0, float("nan"), 2.0, 3.0, 1.0]),
        pa.array(["a", "b", "a", "a", "", "b", "c", "a"]).dictionary_encode(),
        pa.array([b"a", b"b", b"a", b"a", b"", b"b", b"c", b"a"]),
        pa.DictionaryArray.from_arrays([0, 1, 2, 0, None, 1, 3, 2], ["a", "b", "a", "c"]),
    ],
    ids=["integer", "float", "dictionary", "bytes", "repeated dictionary entry"],
)
def test_units_of_any_type(units):
    data = PrivateData(open_source(people().set_column(0, "who", units)), schema(2))
    assert owners(ages(data)) == {"a": 2, "b": 2, "c": 1}


def _in_chunks(units, names):
    """People in two chunks, whose dictionaries together have one more name than an index of 8 bits can count."""
    parts = np.array_split(np.arange(units), 2)
    return pa.table(
        {
            "who": pa.chunked_array(
                pa.DictionaryArray.from_arrays(pa.array(range(len(part)), pa.int8()), names(part)) for part in parts
            ),
            "age": pa.chunked_array(pa.array(part % 10) for part in parts),
        }
    )


@pytest.mark.parametrize(
    "names",
    [
        lambda part: pa.array([f"unit {i}" for i in part]),
        lambda part: pa.array([None if i == 127 else f"unit {i}" for i in part], pa.string()),
    ],
    ids=["names", "a null among the names"],
)
@pytest.mark.parametrize("units", [127, 128, 250])
def test_one_more_name_than_an_index_can_count_stops_no_fit(tmp_path, units, names):
    table = _in_chunks(units, names)
    expected = [i % 10 for i in range(units) if names([i]).null_count == 0]
    forms = [table]
    if len(expected) == units:  # Parquet holds no null among the names
        pq.write_table(table, tmp_path / "people.parquet", row_group_size=64)
        forms.append(tmp_path / "people.parquet")
    for data in forms:
        assert ages(PrivateData(open_source(data), schema(1))) == expected
        source = open_source(data)
        opened = OpenData(source, OpenSchema.of(source))
        cells = np.concatenate([rows["who"] for rows in opened.coded()])
        assert cells.tolist() == names(range(units)).to_pylist()
    items = Schema(columns={"who": Identifier(), "age": ItemSet(n_items=10, max_length=2, id="who")}, rows=units)
    sets = [rows["age"] for rows in PrivateData(open_source(table), items).coded()]
    assert [code for part in sets for code in part.codes.tolist()] == expected


def test_an_unforeseen_error_says_nothing_of_a_record(monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("Smith")

    monkeypatch.setattr("sfumato.columns.kind.total", failing)
    monkeypatch.setattr("sfumato.records.private.total", failing)
    source = open_source(people())
    for data in (PrivateData(source, schema()), OpenData(source, OpenSchema.of(source))):
        with pytest.raises(DataError, match="report their types") as caught:
            list(data.coded())
        assert caught.value.__context__ is None


def test_a_unit_column_of_lists_is_refused():
    lists = people().set_column(0, "who", pa.array([["a"]] * 8))
    with pytest.raises(SchemaError, match="unit column"):
        PrivateData(open_source(lists), schema(2))


@pytest.mark.parametrize("ends", [pa.int16(), pa.int32(), pa.int64()])
def test_a_unit_column_stored_as_runs_is_read_as_its_values(ends):
    names = people()["who"].combine_chunks()
    runs = people().set_column(0, "who", pc.run_end_encode(names, ends))
    for max_rows in (1, 2):
        found = [list(PrivateData(open_source(table), schema(max_rows)).coded()) for table in (people(), runs)]
        plain, stored = (np.concatenate([rows["age"] for rows in chunks]).tolist() for chunks in found)
        assert len(plain) == {1: 3, 2: 5}[max_rows]
        assert stored == plain


@pytest.mark.parametrize("last", [7, 2**63, 2**64 - 1])
def test_no_name_of_a_unit_decides_whether_the_others_are_read(last):
    names = pa.array([5, 6, 5, 5, None, 6, 9, last], pa.uint64())
    data = PrivateData(open_source(people().set_column(0, "who", names)), schema(3))
    ages = 10 * np.concatenate([rows["age"] for rows in data.coded()])
    np.testing.assert_allclose(ages, [1, 2, 3, 4, 6, 7, *([8] if last < 2**53 else [])])


def test_a_unit_of_m_rows_counts_m_times():
    exact = reduce(RowCount(), PrivateData(open_source(people()), schema(3)))
    assert exact.norm_bound == 3


def test_repr_shows_the_schema_only():
    data = PrivateData(open_source(people()), schema())
    assert repr(data) == "PrivateData(age)"


def test_missing_columns_are_all_named():
    wrong = Schema(columns={"height": Integer(lower=0, upper=3), "weight": Integer(lower=0, upper=3)}, rows=1)
    with pytest.raises(SchemaError, match=r"'height', 'weight'.*another table"):
        PrivateData(open_source(people()), wrong)


@pytest.mark.parametrize("kind", [Categorical(categories=("1", "2"), other="else"), Integer(lower=0, upper=10**6)])
def test_narrow_storage_is_read_whatever_samples_will_be(kind):
    narrow = pa.table({"who": ["a"], "age": pa.array([1], pa.int8())})
    assert PrivateData(open_source(narrow), Schema(columns={"who": Identifier(), "age": kind}, rows=1)).coded()


def test_a_type_none_of_whose_cells_can_be_of_the_kind_is_refused_before_reading():
    wrong = Schema(columns={"age": DateTime(lower="2024-01-01", upper="2024-12-31")}, rows=1)
    with pytest.raises(SchemaError, match="age"):
        PrivateData(open_source(people()), wrong)


def test_images_need_the_declared_shape():
    stack = np.zeros((3, 4, 4), dtype=np.uint8)
    fitting = Schema(columns={"x": Image(shape=(4, 4))}, rows=3)
    assert next(PrivateData(open_source(stack), fitting).coded())["x"].shape == (3, 4, 4)
    with pytest.raises(SchemaError, match="shape"):
        PrivateData(open_source(stack), Schema(columns={"x": Image(shape=(5, 4))}, rows=3))
    with pytest.raises(SchemaError, match="images"):
        PrivateData(open_source(pd.DataFrame({"x": [1]})), fitting)
    shares = open_source(np.zeros((3, 4, 4), dtype=np.float32))
    with pytest.raises(SchemaError, match=r"Declare `dtype: float32` and the bounds"):
        PrivateData(shares, fitting)
    PrivateData(shares, Schema(columns={"x": Image(shape=(4, 4), dtype="float64", upper=1)}, rows=3))


def test_units_that_python_cannot_read_are_left_out_or_kept_and_never_raise():
    raw = pa.array([b"Jos\xe9", b"b", b"Jos\xe9", None, b"NA", b"b", b"", b"c"])
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    kept = ages(PrivateData(open_source(people().set_column(0, "who", text)), schema(1)))
    assert owners(kept, {1: "José", 2: "b", 3: "José", 5: "NA", 6: "b", 8: "c"}) == dict.fromkeys(
        ("José", "b", "NA", "c"), 1
    )
    far = pa.array([2**62, 1, 2**62, 1, None, 3, 4, 5]).cast(pa.timestamp("s"))
    kept = ages(PrivateData(open_source(people().set_column(0, "who", far)), schema(1)))
    assert owners(kept, {1: 0, 2: 1, 3: 0, 4: 1, 6: 2, 7: 3, 8: 4}) == dict.fromkeys(range(5), 1)


def test_equal_units_of_different_bits_are_one():
    zeros = pa.array([0.0, -0.0, 0.0, -0.0, 1.0, 1.0, 2.0, 0.0])
    kept = ages(PrivateData(open_source(people().set_column(0, "who", zeros)), schema(1)))
    assert owners(kept, {1: 0, 2: 0, 3: 0, 4: 0, 5: 1, 6: 1, 7: 2, 8: 0}) == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize("odd", [5, 1.5, None, b"\xff", float("nan"), object()])
def test_one_odd_cell_of_a_pandas_object_column_does_not_change_the_others(odd):
    kinds = {"who": Identifier(), "city": Categorical(categories=("a", "b"), other="o")}
    cells = [bytearray(b"a"), memoryview(b"b"), "a", b"b"]

    def codes(values):
        frame = pd.DataFrame({"who": "x", "city": pd.Series(values, dtype=object)})
        data = PrivateData(open_source(frame), Schema(columns=kinds, rows=1))
        return np.concatenate([rows["city"] for rows in data.coded()])[:4].tolist()

    assert codes(cells) == codes([*cells, odd]) == [0, 1, 0, 1]


def test_half_a_surrogate_pair_in_a_label_changes_no_other():
    kinds = {"x": Image(shape=(4, 4)), "y": Categorical(categories=("a", "b\0c"), other="o")}

    def codes(labels):
        data = PrivateData(
            open_source((np.zeros((len(labels), 4, 4), dtype=np.uint8), np.array(labels))), Schema(columns=kinds)
        )
        return np.concatenate([rows["y"] for rows in data.coded()]).tolist()

    assert codes(["a", "b\0c", "\ud800"]) == [*codes(["a", "b\0c"]), 2] == [0, 1, 2]


def test_label_arrays_do_not_tell_their_longest_label():
    source = open_source((np.zeros((2, 4, 4), dtype=np.uint8), np.array(["a", "a very long label"])))
    assert not source.dtypes
    assert "17" not in repr(source)


def test_images_in_an_arrow_table_are_read():
    stack = np.arange(32, dtype=np.uint8).reshape(2, 4, 4)
    table = pa.table({"x": pa.FixedShapeTensorArray.from_numpy_ndarray(stack)})
    data = PrivateData(open_source(table), Schema(columns={"x": Image(shape=(4, 4))}, rows=2))
    np.testing.assert_array_equal(next(data.coded())["x"], stack)


@pytest.mark.parametrize("dtype", [">i4", ">f8", "longdouble", "<u2"])
def test_numbers_of_any_byte_order_and_width(dtype):
    frame = pd.DataFrame({"age": np.array([1, 2, 3], dtype=dtype), "who": ["a", "b", "c"]})
    wide = Schema(columns={"who": Identifier(), "age": Continuous(lower=0, upper=10)}, rows=3)
    assert ages(PrivateData(open_source(frame), wide)) == [1, 2, 3]


class TestNullImages:
    """A missing image, or value, is the lower bound: one record must not decide whether a fit succeeds."""

    @staticmethod
    def table(images, dtype="uint8", permutation=None):
        kind = pa.fixed_shape_tensor(pa.from_numpy_dtype(dtype), (2, 3), permutation=permutation)
        storage = pa.array(images, pa.list_(kind.value_type, 6))
        return pa.table({"x": pa.ExtensionArray.from_storage(kind, storage)})

    @pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float32", "float64"])
    @pytest.mark.parametrize("place", [0, 2, 4])
    @pytest.mark.parametrize("chunk_rows", [1, 2, 100])
    def test_they_are_at_the_lower_bound(self, dtype, place, chunk_rows, tmp_path):
        images = [[6 * i + j for j in range(6)] for i in range(5)]
        expected = np.array(images, dtype=dtype).reshape(5, 2, 3)
        images[place] = None
        images[(place + 1) % 5] = [None, *images[(place + 1) % 5][1:]]
        expected[place] = 3
        expected[(place + 1) % 5, 0, 0] = 3
        schema = Schema(columns={"x": Image(shape=(2, 3), dtype=dtype, lower=3, upper=40)}, rows=5)
        table = self.table(images, dtype)
        path = tmp_path / "images.parquet"
        pq.write_table(table, path)
        for data in (table, path):
            records = PrivateData(open_source(data, chunk_rows=chunk_rows), schema)
            got = np.concatenate([rows["x"] for rows in records.coded()])
            np.testing.assert_array_equal(got, expected)

    def test_slices_and_permuted_axes(self):
        images = [[6 * i + j for j in range(6)] for i in range(5)]
        images[3] = None
        column = self.table(images, permutation=[1, 0]).column("x").combine_chunks()
        got = Image(shape=(2, 2), lower=0).code(column.slice(2))
        assert got.shape == column.slice(2).slice(0, 1).to_numpy_ndarray().repeat(3, 0).shape
        np.testing.assert_array_equal(got[0], column.slice(2, 1).to_numpy_ndarray()[0])
        assert not got[1].any()


ODD = {
    "lists": pa.array([[1], None]), "maps": pa.array([{"a": 1}] * 2), "lengths": pa.array([timedelta(1)] * 2),
    "numbers": pa.array([1, 20210716]), "truth": pa.array([True, None]), "days": pa.array([date(2021, 7, 16)] * 2),
    "texts": pa.array(["a", "16.07.2021"]), "nothing": pa.nulls(2),
}  # fmt: skip
FOUND = [Open(kind=kind) for kind in ("integer", "continuous", "datetime", "categorical")]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("kind", [*FOUND, Open(kind="datetime", format="%d.%m.%Y")])
def test_no_type_refuses_a_kind_that_was_found(name, kind):
    """The kind follows from noisy counts that were charged, and one cell may decide the type."""
    opened = OpenData(open_source(pa.table({"x": ODD[name]})), Schema(columns={"x": Open()}, rows=2))
    [rows] = list(opened.read_as({"x": kind}).coded())
    assert len(rows["x"]) == 2
    assert (rows["x"].dtype.kind == "f") == (kind.kind != "categorical")


BESIDE = {
    "texts": (pa.array(["3", "<5", None, "NA", " <5 ", "4.5", ""]), [None, "<5", None, None, "<5", None, ""]),
    "dictionary": (pa.array(["3", "<5", None, "<5"]).dictionary_encode(), [None, "<5", None, "<5"]),
    "views": (pa.array(["3", "<5", None], pa.string_view()), [None, "<5", None]),
    "bytes": (pa.array([b"3", b"<5", b"\xe9", None]), [None, "<5", "é", None]),
    "numbers": (pa.array([3, None, 5]), [None, None, None]),
    "fractions": (pa.array([3.5, None, np.nan, np.inf]), [None, None, None, None]),
    "truth": (pa.array([True, None]), [None, None]),
    "days": (pa.array([date(2021, 7, 16), None]), ["2021-07-16", None]),
    "lists": (pa.array([[1], None]), [None, None]),
}


@pytest.mark.parametrize("name", BESIDE)
def test_words_beside_numbers_come_with_them_each_cell_by_itself(name):
    cells, words = BESIDE[name]
    schema = Schema(columns={"x": Open()}, rows=2, missing=("", "NA"))

    def read(some):
        opened = OpenData(open_source(pa.table({"x": some})), schema)
        [rows] = list(opened.read_as({"x": Open(kind="continuous")}, {"x": "y"}).coded())
        return rows

    rows = read(cells)
    expected = [None if word == "" else word for word in words]
    assert [None if word is None else word.strip() or None for word in rows["y"]] == expected
    assert all(word is None for word in rows["y"][~np.isnan(rows["x"])])
    for i in range(len(cells)):
        alone = read(cells.slice(i, 1))
        np.testing.assert_array_equal(alone["x"], rows["x"][i : i + 1])
        assert alone["y"].tolist() == rows["y"][i : i + 1].tolist()
