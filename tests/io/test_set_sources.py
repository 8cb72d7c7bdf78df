"""Sets from list columns, long tables, FIMI files and CSR arrays: one and the same sets."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.columns.sets import CodedSets, ItemSet
from sfumato.desk.drafting import draft_schema
from sfumato.desk.validation import validate
from sfumato.errors import ConfigError, DataError, SchemaError, SfumatoError
from sfumato.io.sinks import write_table
from sfumato.io.sources import open_source
from sfumato.records import long_tables as long_source
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema

SETS = [[3, 1], [], [0], [4, 2, 0, 1], [2], [7, 1]]
CODED = [[1, 3], [], [0], [0, 2, 4], [2], [1]]
KIND = {"kind": "set", "n_items": 5, "max_length": 3}
CELLS = Schema.from_dict({"columns": {"items": KIND}})
LONG = Schema.from_dict({"columns": {"who": "identifier", "items": {**KIND, "id": "who"}}})
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def csr(sets: list[list[int]]) -> dict[str, np.ndarray]:
    return {
        "indptr": np.cumsum([0, *map(len, sets)]),
        "indices": np.array([item for items in sets for item in items], dtype=np.int32),
        "n_items": np.array(5),
    }


def long_rows() -> pd.DataFrame:
    """The same sets, one item per row: scattered, but for the order within a set."""
    rows = [(i, rank, item) for i, items in enumerate(SETS) for rank, item in enumerate(items)]
    rows.sort(key=lambda row: (row[1], -row[0]))
    return pd.DataFrame({"items": [item for *_, item in rows], "who": [100 + i for i, *_ in rows]})


def listed(sets: CodedSets) -> list[list[int]]:
    return [part.tolist() for part in np.split(sets.codes, sets.offsets[1:-1])] if len(sets) else []


def read(data: object, schema: Schema, chunk_rows: int = 4) -> list[list[int]]:
    records = PrivateData(open_source(data, chunk_rows=chunk_rows), schema)
    return [items for rows in records.coded() for items in listed(rows["items"])]


def write(path: Path) -> Path:
    """Write SETS in the form that the name of a file says."""
    if path.name.startswith("long"):
        frame = long_rows()
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    elif path.suffix == ".npz":
        np.savez_compressed(path, **csr(SETS))
    elif path.suffix == ".dat":
        path.write_text("".join(" ".join(map(str, items)) + "\n" for items in SETS))
    else:
        pq.write_table(pa.table({"items": SETS}), path)
    return path


@pytest.mark.parametrize("name", ["a.npz", "a.dat", "a.parquet", "long.csv", "long.parquet"])
def test_every_file_holds_the_same_sets(tmp_path, name):
    is_long = name.startswith("long")
    expected = [items for items in CODED if items] if is_long else CODED
    path = write(tmp_path / name)
    for chunk_rows in (1, 2, 4, 100):
        found = read(path, LONG if is_long else CELLS, chunk_rows)
        assert sorted(found) == sorted(expected)
        assert is_long or found == expected


def test_frames_and_arrays_hold_the_same_sets():
    typed = pd.Series(SETS, dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    for data in (pa.table({"items": SETS}), pl.DataFrame({"items": SETS}), pd.DataFrame({"items": typed}), csr(SETS)):
        assert read(data, CELLS) == CODED
    for data in (long_rows(), pl.from_pandas(long_rows()), pa.Table.from_pandas(long_rows())):
        assert sorted(read(data, LONG)) == sorted(items for items in CODED if items)


@pytest.mark.parametrize("name", ["long.csv", "long.parquet"])
def test_a_long_file_read_in_parts_holds_the_same_sets(tmp_path, name, monkeypatch):
    path = write(tmp_path / name)
    monkeypatch.setattr(long_source, "_PART_BYTES", 20)
    assert sorted(read(path, LONG)) == sorted(items for items in CODED if items)


def test_ids_are_names_or_numbers_and_rows_without_one_are_left_out():
    items = [0, 1, 2, 3, 4]
    for ids in (
        ["a", " a", "b", None, ""],
        [b"a", b"a ", b"b", None, b""],
        [0.0, -0.0, 1.5, float("nan"), None],
        pa.array(["a", "a", "b", None, ""]).dictionary_encode(),
    ):
        table = pa.table({"who": ids, "items": items})
        assert sorted(read(table, LONG)) == [[0, 1], [2]]


def test_sets_do_not_depend_on_where_their_rows_lie():
    table = pa.Table.from_pandas(long_rows())
    rng = np.random.default_rng(0)
    for _ in range(5):
        # shuffle whole ids against each other, not the rows of one id
        order = np.argsort(rng.permutation(len(SETS))[np.asarray(table["who"]) - 100], kind="stable")
        assert sorted(read(table.take(pa.array(order)), LONG, 2)) == sorted(items for items in CODED if items)


@pytest.mark.parametrize("name", ["out.npz", "out.dat", "out.parquet"])
def test_sets_that_are_written_come_back(tmp_path, name):
    batches = [pa.table({"items": pa.array(part, pa.list_(pa.int64()))}) for part in (SETS[:2], SETS[2:], [])]
    write_table(iter(batches), tmp_path / name)
    assert read(tmp_path / name, CELLS) == CODED


def test_an_npz_file_says_the_declared_number_of_items(tmp_path):
    write_table([pa.table({"items": SETS})], tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        assert set(arrays) == {"indptr", "indices", "n_items"}
        assert arrays["n_items"] == 8


@pytest.mark.parametrize(
    ("table", "name", "message"),
    [
        (pa.table({"items": [["a b"]]}), "out.dat", "white space"),
        (pa.table({"items": [[""]]}), "out.dat", "white space"),
        (pa.table({"items": [["a"]], "y": [1]}), "out.dat", "one column of sets"),
        (pa.table({"items": [["a"]]}), "out.npz", "whole numbers"),
        (pa.table({"items": [["a"]]}), "out.csv", "dat for sets"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tmp_path, table, name, message):
    with pytest.raises(ConfigError, match=message):
        write_table([table], tmp_path / name)
    assert not list(tmp_path.iterdir())


@given(content=st.binary(max_size=200), chunk_rows=st.integers(1, 5))
@SETTINGS
def test_any_bytes_are_a_fimi_file(tmp_path, content, chunk_rows):
    path = tmp_path / "any.dat"
    path.write_bytes(content)
    found = read(path, CELLS, chunk_rows)
    assert all(items == sorted(set(items)) and len(items) <= 3 and set(items) <= set(range(5)) for items in found)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"1 3\n\n0\n", [[1, 3], [], [0]]),
        (b"1\t3 \r\n 0", [[1, 3], [0]]),
        (b"\xef\xbb\xbf1\n", [[1]]),
        ("1 3\n0\n".encode("utf-16"), [[1, 3], [0]]),
        (b"x 1 \xff -1 99 1\n", [[1]]),
        (b"\n", [[]]),
        (b"", []),
    ],
)
def test_lines_of_a_fimi_file(tmp_path, content, expected):
    (tmp_path / "a.dat").write_bytes(content)
    assert read(tmp_path / "a.dat", CELLS) == expected


def test_overlong_lines_of_a_fimi_file(tmp_path, monkeypatch):
    path = tmp_path / "a.dat"
    path.write_text("1 3\n" + "0 " * 500 + "4\n2\n\n" + "1 " * 200)
    assert read(path, CELLS) == [[1, 3], [0, 4], [2], [], [1]]
    assert not list(open_source(path).notes("skipped"))
    monkeypatch.setattr("sfumato.io.stored.LONGEST_LINE", 400)
    assert read(path, CELLS) == [[1, 3], [2], [], [1]]
    assert list(open_source(path).notes("skipped")) == ["line 2"]
    monkeypatch.setattr("sfumato.io.baskets._PART_BYTES", 1)
    assert read(path, CELLS) == [[1, 3], [2], [], [1]]


SECRET = 987654321


@given(
    pointers=st.lists(st.integers(-3, 12) | st.just(SECRET), max_size=8),
    items=st.lists(st.integers(-3, 9) | st.just(SECRET), max_size=12),
    compressed=st.booleans(),
)
@SETTINGS
def test_any_csr_arrays_are_read_or_refused_without_a_cell(tmp_path, pointers, items, compressed):
    arrays = {"indptr": np.array(pointers, np.int64), "indices": np.array(items, np.int64), "n_items": np.array(5)}
    path = tmp_path / "any.npz"
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    results, messages = [], []
    for data in (path, arrays):
        try:
            results.append(read(data, CELLS, 3))
        except DataError as error:
            results.append("refused")
            messages.append(str(error) + str(error.__context__))
    assert results[0] == results[1]
    assert not re.search(r"\d", "".join(messages).replace("begin with 0", ""))


@given(cut=st.integers(0, 300), at=st.integers(0, 300), byte=st.integers(0, 255))
@SETTINGS
def test_damaged_npz_files_raise_one_clear_error(tmp_path, cut, at, byte):
    path = write(tmp_path / "a.npz")
    content = bytearray(path.read_bytes())
    content[at] = byte
    path.write_bytes(content[: len(content) - cut] or b"x")
    contexts = []
    try:
        read(path, CELLS)
    except SfumatoError as error:
        contexts.append(error.__context__)
    assert contexts in ([], [None])


ROWS = st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4) | st.sampled_from("01234")), max_size=12)


@given(rows=ROWS, parts=st.integers(1, 200))
@SETTINGS
def test_any_text_is_a_long_table(tmp_path, monkeypatch, rows, parts):
    path = tmp_path / "long.csv"
    path.write_bytes(b"who,items\n" + "".join(f"{who},{item}\n" for who, item in rows).encode("utf-8", "replace"))
    monkeypatch.setattr(long_source, "_PART_BYTES", parts)
    found = read(path, LONG)
    assert all(items == sorted(set(items)) and len(items) <= 3 and set(items) <= set(range(5)) for items in found)


@pytest.mark.parametrize(
    ("data", "schema", "message"),
    [
        (pa.table({"items": ["1 2"]}), CELLS, "declare `id:`"),
        (pa.table({"items": [["x"]], "who": [1]}), LONG, "leave out `id`"),
        (pa.table({"items": [1], "who": [[1]]}), LONG, "names or numbers"),
        (pa.table({"items": [1]}), LONG, "no column 'who'"),
        (pa.table({"things": [[1]]}), CELLS, "no column 'items'"),
    ],
)
def test_a_schema_that_does_not_describe_the_sets(data, schema, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        PrivateData(open_source(data), schema)


def test_items_with_spaces_do_not_fit_a_fimi_file(tmp_path):
    schema = Schema(columns={"items": ItemSet(items=("a", "b c"), max_length=1)})
    with pytest.raises(SchemaError, match="without white space"):
        PrivateData(open_source(write(tmp_path / "a.dat")), schema)


@pytest.mark.parametrize(
    "arrays",
    [
        {"indptr": np.array([0.0, 1.0]), "indices": np.array([1])},
        {"indptr": np.array([[0, 1]]), "indices": np.array([1])},
        {"indptr": np.array([], int), "indices": np.array([1])},
        {"indptr": [0, 1], "indices": np.array([1])},
        {"indptr": np.array([0, 1]), "indices": np.array(["a"])},
    ],
)
def test_arrays_that_are_no_sets_are_refused(arrays):
    with pytest.raises(DataError, match=r"Convert it|CSR form"):
        open_source({**arrays, "n_items": np.array(3)})


def test_a_draft_describes_sets(tmp_path):
    for name in ("a.npz", "a.dat", "a.parquet"):
        draft = draft_schema(open_source(write(tmp_path / name)))
        assert draft.schema.columns == {"items": ItemSet(n_items=8, max_length=4)}
        assert draft.schema.rows == len(SETS)
        (tmp_path / "draft.yaml").write_text(draft.to_yaml())
        assert Schema.load(tmp_path / "draft.yaml") == draft.schema
    for values, kind in (
        ([["b", "a"], ["c"]], ItemSet(items=("a", "b", "c"), max_length=2)),
        ([[7000, 2], None], ItemSet(items=("2", "7000"), max_length=2)),
    ):
        assert draft_schema(open_source(pa.table({"x": values}))).schema.columns == {"x": kind}


def test_validate_tells_what_a_fit_would_change(tmp_path):
    table = pa.table({"items": [[0, 1, 2, 3], [9, 9], None, [4, 4]]})
    found = {f.problem: (f.count, f.becomes) for f in validate(open_source(table), CELLS)}
    assert found == {
        "missing": (1, "the empty set"),
        "unknown": (2, "left out"),
        "clamped": (1, "the first 3 items"),
    }
    problems = {f.problem for f in validate(open_source(write(tmp_path / "long.csv")), LONG)}
    assert problems == {"clamped", "unknown"}


def test_units_of_several_sets_are_limited():
    schema = Schema.from_dict(
        {"columns": {"who": "identifier", "items": KIND}, "unit": {"column": "who", "max_rows": 1}}
    )
    table = pa.table({"who": [1, 2, 1, 3], "items": [[0], [1], [2], [3]]})
    assert read(table, schema) in ([[0], [1], [3]], [[1], [2], [3]])  # in the order of the table


def test_sets_beside_other_columns():
    schema = Schema.from_dict({"columns": {"age": {"kind": "integer", "lower": 0, "upper": 10}, "items": KIND}})
    (rows,) = PrivateData(open_source(pa.table({"age": [0, 10], "items": [[1], []]})), schema).coded()
    assert rows["age"].tolist() == [0.0, 1.0]
    assert {name: column.tolist() for name, column in rows.items() if name != "age"} == {
        f"items: {item}": [int(item == 1), 0] for item in range(5)
    }


def test_python_lists_and_sets_in_a_pandas_column_of_objects():
    schema = Schema.from_dict({"columns": {"items": {"kind": "set", "items": ["a", "b", "1"], "max_length": 2}}})
    cells = [
        ["a", 1],
        ("b",),
        {"b", "a", "1"},
        np.array(["b", "z"]),
        [],
        None,
        "a",
        3.5,
        [["a"]],
        [None, float("nan"), "a"],
    ]
    rows = read(pd.DataFrame({"items": pd.Series(cells, dtype=object)}), schema)
    # a set has no order of its own: its items are taken as sorted
    assert rows == [[0, 2], [1], [0, 2], [1], [], [], [], [], [], [0]]
