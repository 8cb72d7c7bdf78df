"""From cells to records: two tables that differ by one record are read alike but for that record, by every reader.

The matrix: every kind of input × what an odd cell may be × what its column is for. Both tables are made as people make
them, by the tools that write such files and frames, which infer types from all cells. Either both are refused, with the
same words, or the records of the one are those of the other and at most one more. A proof is in docs/proofs/cells.md.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import sqlite3
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato
from fixtures.costly import ATTACKS, slow_after
from fixtures.workbooks import workbook
from harness.coupling import ROUNDING, check_sensitivities, coupled
from sfumato.columns.sets import CodedSets
from sfumato.desk.validation import validate
from sfumato.errors import SfumatoError
from sfumato.records.linked import LinkedData
from sfumato.records.private import PrivateData
from sfumato.records.table_sources import open_records
from sfumato.schema.schema import Schema

N = 240  # more than readers look at to infer a type
WIDE = 110101199003070000
LABELS = {"kind": "categorical", "categories": ["1", "2", "3"], "other": "rest", "nullable": True}
SEX = {"kind": "categorical", "categories": ["f", "m"]}
AGE = {"kind": "integer", "lower": 0, "upper": 120, "nullable": True}


class RefusedByToolError(Exception):
    """The tool that makes such a file or frame refuses such a table itself."""


def table(role: str) -> list[dict]:
    """Rows of whole numbers, as a data holder would have them."""
    rows = []
    for i in range(N):
        row = {"age": 20 + i % 50, "sex": "fm"[i % 2]}
        row |= {"code": 1 + i % 3} if role == "label" else {}
        row |= {"id": 1000 + i // 2} if role in ("unit", "order") else {}
        row |= {"id": WIDE + i // 2} if role == "wide unit" else {}
        row |= {"w": 1 + i % 4} if role == "weight" else {}
        row |= {"day": i % 7} if role == "order" else {}
        rows.append(row)
    return rows


SCHEMAS = {
    "value": {"columns": {"age": AGE}},
    "label": {"columns": {"age": AGE, "code": LABELS}},
    "unit": {"unit": {"column": "id", "max_rows": 1}, "columns": {"age": AGE, "id": {"kind": "identifier"}}},
    "weight": {
        "weight": {"column": "w", "upper": 4},
        "columns": {"age": AGE, "w": {"kind": "continuous", "lower": 0, "upper": 4}},
    },
    "order": {
        "unit": {"column": "id", "max_rows": 3, "order": "day"},
        "columns": {"age": AGE, "id": {"kind": "identifier"}, "day": {**AGE, "upper": 6}},
    },
}
SCHEMAS["wide unit"] = SCHEMAS["unit"]
ODD_COLUMN = {
    "value": "age",
    "label": "code",
    "unit": "id",
    "wide unit": "id",
    "weight": "w",
    "order": "day",
}
ODD = {
    "missing": None,
    "text": "x",
    "fraction": 2.5,
    "beyond 2^53": 2**53 + 1,
    "beyond 2^63": 2**64 + 1,
    "list": [1, 2],
}


def odd_row(role: str, cell: object) -> dict:
    row = {**table(role)[0], "sex": "f"}
    if "id" in row:
        row["id"] = 7
    return {**row, ODD_COLUMN[role]: cell}


def as_csv(rows, path):
    names = list(rows[0])
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([["" if row[n] is None else row[n] for n in names] + row.get("more", []) for row in rows])
    return path


def tried(make):
    """What a tool makes; `RefusedByToolError` where it refuses."""
    try:
        return make()
    except SfumatoError:
        raise
    except Exception as error:
        raise RefusedByToolError from error


def columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def arrow(rows):
    return tried(lambda: pa.table(columns(rows)))


def halves(rows):
    return rows[: N // 2], rows[N // 2 :]


def in_parts(rows, path, write, suffix):
    path.mkdir()
    for i, part in enumerate(halves(rows)):
        tried(lambda i=i, part=part: write(part, path / f"{i}.{suffix}"))
    return path


def pandas_parquet(rows, path):
    pd.DataFrame(columns(rows)).to_parquet(path)
    return path


def sqlite_table(rows, path):
    with sqlite3.connect(path) as base:
        names = list(rows[0])
        base.execute(f"create table t ({', '.join(names)})")
        mark = ", ".join("?" * len(names))
        base.executemany(f"insert into t values ({mark})", [[row[n] for n in names] for row in rows])
    base.close()
    return f"sqlite:///{path}?table=t"


def polars():
    return pytest.importorskip("polars")


def excel(rows, path):
    cells = [[str(cell) if isinstance(cell, list) else cell for cell in row.values()] for row in rows]
    return workbook(path, list(rows[0]), *cells)


def json_lines(rows, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def duckdb_table(rows, path):
    duckdb = pytest.importorskip("duckdb")
    names = list(rows[0])
    with duckdb.connect(str(path)) as base:
        types = {name: "VARCHAR" if name == "sex" else "BIGINT" for name in names}
        base.execute(f"create table t ({', '.join(f'{name} {kind}' for name, kind in types.items())})")
        cells = [["null" if cell is None else repr(cell) for cell in row.values()] for row in rows]
        base.execute("insert into t values " + ", ".join(f"({','.join(row)})" for row in cells))
    return f"duckdb:///{path}?table=t"


def batches(tables):
    return lambda: iter(tables)


def dask_frame(rows):
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pd.DataFrame(columns(rows)), npartitions=3)


INPUTS = {
    "csv": lambda rows, d: as_csv(rows, d / "t.csv"),
    "csv of pandas": lambda rows, d: pd.DataFrame(columns(rows)).to_csv(d / "t.csv", index=False) or d / "t.csv",
    "csv in parts": lambda rows, d: str(in_parts(rows, d / "p", as_csv, "csv") / "*.csv"),
    "json lines": lambda rows, d: json_lines(rows, d / "t.jsonl"),
    "json lines of pandas": lambda rows, d: (
        tried(lambda: pd.DataFrame(columns(rows)).to_json(d / "t.jsonl", orient="records", lines=True)) or d / "t.jsonl"
    ),
    "excel": lambda rows, d: tried(lambda: excel(rows, d / "t.xlsx")),
    "pandas": lambda rows, d: tried(lambda: pd.DataFrame(columns(rows))),
    "pandas of csv": lambda rows, d: tried(lambda: pd.read_csv(as_csv(rows, d / "t.csv"))),
    "pandas of text": lambda rows, d: tried(lambda: pd.read_csv(as_csv(rows, d / "t.csv"), dtype=str)),
    "pandas categories": lambda rows, d: tried(lambda: pd.DataFrame(columns(rows)).astype("category")),
    "pandas nullable": lambda rows, d: tried(
        lambda: pd.read_csv(as_csv(rows, d / "t.csv"), dtype={name: "Int64" for name in rows[0] if name != "sex"})
    ),
    "pandas in batches": lambda rows, d: batches(
        [tried(lambda p=p: pa.Table.from_pandas(pd.DataFrame(columns(p)))) for p in halves(rows)]
    ),
    "arrow in batches": lambda rows, d: batches([arrow(part) for part in halves(rows)]),
    "parquet of pandas": lambda rows, d: tried(lambda: pandas_parquet(rows, d / "t.parquet")),
    "parquet in parts": lambda rows, d: str(in_parts(rows, d / "p", pandas_parquet, "parquet") / "*.parquet"),
    "feather of pandas": lambda rows, d: tried(
        lambda: feather.write_feather(pd.DataFrame(columns(rows)), str(d / "t.feather")) or d / "t.feather"
    ),
    "arrow": lambda rows, d: arrow(rows),
    "arrow of pandas": lambda rows, d: tried(lambda: pa.Table.from_pandas(pd.DataFrame(columns(rows)))),
    "arrow stream": lambda rows, d: arrow(rows).to_reader(max_chunksize=50),
    "parquet": lambda rows, d: pq.write_table(arrow(rows), d / "t.parquet") or d / "t.parquet",
    "dataset of parquet": lambda rows, d: pads.dataset(in_parts(rows, d / "p", pandas_parquet, "parquet")),
    "dataset of csv": lambda rows, d: tried(lambda: pads.dataset(in_parts(rows, d / "p", as_csv, "csv"), format="csv")),
    "polars": lambda rows, d: tried(lambda: polars().DataFrame(columns(rows), strict=False)),
    "polars scan_parquet": lambda rows, d: polars().scan_parquet(
        tried(lambda: polars().DataFrame(columns(rows), strict=False).write_parquet(d / "t.parquet") or d / "t.parquet")
    ),
    "sqlite": lambda rows, d: tried(lambda: sqlite_table(rows, d / "t.db")),
    "duckdb": lambda rows, d: tried(lambda: duckdb_table(rows, d / "t.duckdb")),
    "dask": lambda rows, d: tried(lambda: dask_frame(rows)),
}


def rows_of(records) -> Counter:
    """The coded records, each as a tuple."""
    found: Counter = Counter()
    for rows in records.coded():
        cells = [_words(rows[name]) for name in sorted(rows)]
        found.update(zip(*cells, strict=True))
    return found


def _words(column):
    if isinstance(column, CodedSets):
        return [tuple(column.codes[a:b]) for a, b in zip(column.offsets, column.offsets[1:], strict=False)]
    if column.ndim > 1:
        return [tuple(map(repr, row)) for row in column.tolist()]
    return [repr(value) for value in np.asarray(column).tolist()]


def outcome(data, document):
    """The records of each kind that a method reads, or the words of a refusal."""
    if "order" in document.get("unit", {}):
        document = {**document, "unit": {**document["unit"], "units": N}}
    schema = Schema.from_dict(
        document
        if "tables" in document
        else {**document, **({} if "order" in document.get("unit", {}) else {"rows": N})}
    )
    try:
        source = open_records(data, schema)
        if schema.unit is not None and schema.unit.linked:
            linked = LinkedData(source, schema)
            return [rows_of(linked)]
        return [rows_of(PrivateData(source, schema))]
    except SfumatoError as error:
        return str(error)


def check_alike(one, other):
    """Both are refused alike, or differ by one record."""
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    for before, after in zip(one, other, strict=True):
        assert not before - after, "a record is read otherwise beside the odd one"
        assert sum((after - before).values()) <= 1


@pytest.mark.parametrize("role", ODD_COLUMN)
@pytest.mark.parametrize("kind", INPUTS)
def test_no_cell_changes_how_another_is_read(tmp_path, kind, role):
    document = SCHEMAS[role]
    (tmp_path / "base").mkdir()
    try:
        base = outcome(INPUTS[kind](table(role), tmp_path / "base"), document)
    except RefusedByToolError:
        pytest.skip("the tool that makes such inputs refuses the table itself")
    compared = 0
    for name, cell in ODD.items():
        place = tmp_path / name
        place.mkdir()
        try:
            other = INPUTS[kind]([*table(role), odd_row(role, cell)], place)
        except RefusedByToolError:
            continue
        check_alike(base, outcome(other, document))
        compared += 1
    assert compared


def test_the_matrix_is_as_large_as_the_proof_says():
    assert (len(INPUTS), len(ODD), len(ODD_COLUMN)) == (27, 6, 6)


# Lines of a CSV file that are no record of it, or an odd one.
LINES = {
    "a cell too many": b"30,f,9,9,9\n",
    "a cell too few": b"30\n",
    "an empty line": b"\n",
    "no UTF-8": b"30,\xff\xfe,1\n",
    "a NUL": b"30,f\x00,1\n",
    "a quote": b'30,f"x,1\n',
    "an open quote": b'30,"f,1\n',
    "a cell of 5 MB": b"30," + b"f" * 5_000_000 + b",1\n",
    "a cell of 40 MB": b"30," + b"f" * 40_000_000 + b",1\n",
}


def csv_input(kind, path):
    if kind == "dataset":
        return tried(
            lambda: pads.dataset(
                str(path),
                format="csv",
                schema=pa.schema([("age", pa.int64()), ("sex", pa.string()), ("code", pa.int64())]),
            )
        )
    return str(path)


@pytest.mark.parametrize("kind", ["path", "dataset"])
@pytest.mark.parametrize("name", LINES)
def test_a_line_that_is_no_record_changes_no_other(tmp_path, name, kind):
    document = {"columns": {"age": AGE, "code": LABELS}}
    text = as_csv([{**row, "code": 1 + i % 3} for i, row in enumerate(table("value"))], tmp_path / "a.csv").read_bytes()
    lines = text.splitlines(keepends=True)
    (tmp_path / "b.csv").write_bytes(b"".join([*lines[:9], LINES[name], *lines[9:]]))
    base, other = (outcome(csv_input(kind, tmp_path / file), document) for file in ("a.csv", "b.csv"))
    assert not isinstance(base, str)
    check_alike(base, other)


LONG_RECORDS = {
    "a long cell behind two lines": b'"3\n0",' + b"x" * 5_000_000 + b"\n",
    "a long cell in quotes behind two lines": b'"3\n0","' + b"x" * 5_000_000 + b'"\n',
    "many cells behind two lines": b'"3\n0",f' + b"," * 4_500_000 + b"\n",
    "4 MiB in two lines": b'"3\n0",' + b"x" * ((4 << 20) - 7) + b"\n",
    "4 MiB and a byte in two lines": b'"3\n0",' + b"x" * ((4 << 20) - 6) + b"\n",
}


@pytest.mark.parametrize("name", slow_after(2, LONG_RECORDS, ATTACKS))
def test_no_long_record_stops_the_parser_wherever_it_begins(tmp_path, name):
    document = {"columns": {"age": AGE, "sex": SEX}}
    before = b"age,sex\n" + b"31,f\n" * ((4 << 20) // 5 - 1)  # the record begins at the end of a block
    after = b"30,m\n" * 100
    (tmp_path / "a.csv").write_bytes(before + after)
    (tmp_path / "b.csv").write_bytes(before + LONG_RECORDS[name] + after)
    base, other = (outcome(str(tmp_path / file), document) for file in ("a.csv", "b.csv"))
    assert not isinstance(base, str)
    check_alike(base, other)


# What one missing cell makes of whole numbers in text that pandas writes: `7.0`.
WRITTEN_WHOLE = {
    "dates of digits": {
        "columns": {"day": {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31", "format": "%Y%m%d"}}
    },
    "items": {"columns": {"day": {"kind": "set", "n_items": 10, "max_length": 2, "separator": ";"}}},
    "a token": {
        "missing": ["", "-99"],
        "columns": {"day": {"kind": "integer", "lower": -100, "upper": 9, "nullable": True}},
    },
    "a token among labels": {"missing": ["", "-99"], "columns": {"day": {**LABELS, "categories": ["2"]}}},
}
DAYS = {"dates of digits": 20200101}


@pytest.mark.parametrize("kind", ["csv of pandas", "json lines of pandas", "pandas", "parquet of pandas"])
@pytest.mark.parametrize("name", WRITTEN_WHOLE)
@pytest.mark.parametrize("cell", [None, 2.5])
def test_a_point_behind_whole_numbers_changes_no_cell(tmp_path, name, kind, cell):
    rows = [{"day": DAYS.get(name, 2) + i % 7 if i % 5 else DAYS.get(name, -99)} for i in range(N)]
    outcomes = []
    for i, more in enumerate(([], [{"day": cell}])):
        (tmp_path / str(i)).mkdir()
        outcomes.append(outcome(INPUTS[kind](rows + more, tmp_path / str(i)), WRITTEN_WHOLE[name]))
    assert not isinstance(outcomes[0], str)
    check_alike(*outcomes)


# A batch or a file of one record has the types of its cells.
ALONE = {
    "text": "x", "a list": [1, 2], "a mapping": {"a": 1}, "no list": [], "bytes": b"\xff", "true": True, "a float": 1.5,
    "a date": dt.date(2020, 1, 1), "a time": dt.time(1, 2), "a duration": dt.timedelta(1),
}  # fmt: skip


@pytest.mark.parametrize("cell", ALONE)
@pytest.mark.parametrize("kind", ["batches", "dataset", "files"])
@pytest.mark.parametrize("role", ["value", "unit", "order", "weight"])
def test_no_record_alone_in_its_batch_changes_how_others_are_read(tmp_path, role, kind, cell):
    def data(parts, place):
        tables = [pa.table(columns(part)) for part in parts]
        if kind == "batches":
            return batches(tables)
        place.mkdir()
        for i, part in enumerate(tables):
            pq.write_table(part, place / f"{i}.parquet")
        return pads.dataset(place) if kind == "dataset" else str(place / "*.parquet")

    parts = halves(table(role))
    base = outcome(data(parts, tmp_path / "a"), SCHEMAS[role])
    odd = {**odd_row(role, 0), ODD_COLUMN[role]: ALONE[cell]}
    assert not isinstance(base, str)
    check_alike(base, outcome(data([*parts, [odd]], tmp_path / "b"), SCHEMAS[role]))


SETS = {"columns": {"s": {"kind": "set", "n_items": 5, "max_length": 4}}}
ODD_SETS = {
    "missing": None,
    "text": "x",
    "number": 7,
    "nested": [[1]],
    "texts": ["x", "1"],
    "fractions": [2.5, 1.0],
    "beyond": [2**63],
}


@pytest.mark.parametrize(
    "kind", ["json lines", "pandas", "pandas in batches", "arrow in batches", "parquet in parts", "arrow", "polars"]
)
@pytest.mark.parametrize("name", ODD_SETS)
def test_no_set_changes_how_another_is_read(tmp_path, kind, name):
    if (kind, name) == ("polars", "text"):
        pytest.skip("polars makes text of all lists before they are handed over")
    rows = [{"s": [i % 5, (i + 1) % 5]} for i in range(N)]
    outcomes = []
    for i, more in enumerate(([], [{"s": ODD_SETS[name]}])):
        (tmp_path / str(i)).mkdir()
        try:
            outcomes.append(outcome(INPUTS[kind](rows + more, tmp_path / str(i)), SETS))
        except RefusedByToolError:
            pytest.skip("the tool that makes such inputs refuses the table itself")
    check_alike(*outcomes)


@pytest.mark.parametrize("kind", ["arrow", "parquet", "arrow in batches", "parquet in parts"])
def test_the_first_set_of_a_column_decides_nothing(tmp_path, kind):
    rows = [{"s": None}] * N
    outcomes = []
    for i, more in enumerate(([], [{"s": [1, 2]}])):
        (tmp_path / str(i)).mkdir()
        outcomes.append(outcome(INPUTS[kind](rows + more, tmp_path / str(i)), SETS))
    assert not isinstance(outcomes[0], str)
    check_alike(*outcomes)


TABLES = {
    "tables": {
        "persons": {"key": "id", "rows": N, "columns": ["sex"]},
        "visits": {"of": "persons", "max_rows": 3, "order": "day"},
    },
    "columns": {
        "id": {"kind": "identifier"},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "day": {**AGE, "upper": 6},
    },
}


@pytest.mark.parametrize("first", [1000, WIDE], ids=["ids", "wide ids"])
@pytest.mark.parametrize("side", ["persons", "visits"])
@pytest.mark.parametrize("kind", [kind for kind in INPUTS if kind not in ("dask", "arrow stream")])
def test_no_key_changes_how_another_is_read(tmp_path, kind, side, first):
    persons = [{"id": first + i, "sex": "fm"[i % 2]} for i in range(N)]
    visits = [{"id": first + i // 2, "day": i % 7} for i in range(N)]
    compared, base = 0, None
    for name, cell in {"none": 0, **ODD}.items():
        more = {"persons": [], "visits": []}
        if name != "none":
            more[side] = [{**(persons if side == "persons" else visits)[0], "id": cell}]
        data = {}
        try:
            for table_name, rows in (("persons", persons), ("visits", visits)):
                place = tmp_path / name / table_name
                place.mkdir(parents=True)
                data[table_name] = INPUTS[kind](rows + more[table_name], place)
        except RefusedByToolError:
            continue
        found = outcome(data, TABLES)
        base = found if base is None else base
        check_alike(base, found)
        compared += 1
    assert compared


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("kind", ["csv", "pandas of text", "json lines"])
def test_long_numbers_name_someone_by_the_holders_word_alone(tmp_path, kind, exact):
    rows = [{**row, "id": str(row["id"])} for row in table("wide unit")]
    document = {**SCHEMAS["unit"], "columns": {"id": {"kind": "identifier", "exact": exact}, "age": AGE}}
    (found,) = outcome(INPUTS[kind](rows, tmp_path), document)
    assert found.total() == (N // 2 if exact else 0)


def test_labels_that_programs_write_for_each_other_need_the_holders_word():
    labels = {"kind": "categorical", "categories": ["250.0", "250.00"]}
    with pytest.raises(SfumatoError, match="exact: true"):
        Schema.from_dict({"columns": {"code": labels}})
    schema = Schema.from_dict({"columns": {"code": {**labels, "exact": True}}})
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.columns["code"].find(pa.array(["250.00", "250.0", "250"]), ()).tolist() == [1, 0, -1]


def test_what_is_left_out_is_said(tmp_path):
    schema = Schema.from_dict({**SCHEMAS["unit"], "rows": N})
    source = open_records(pd.DataFrame(columns(table("wide unit"))), schema)
    (nobody,) = [finding for finding in validate(source, schema) if finding.problem == "nobody"]
    assert nobody.count == N
    assert "`exact: true`" in nobody.becomes


# Whole fits of neighbours: what reading once did to the sensitivity. One row without an id made floats of all ids.
FITS = {
    "unit": {
        "unit": {"column": "id", "max_rows": 1},
        "columns": {"id": {"kind": "identifier"}, "age": AGE, "sex": SEX},
    },
    "linked": {
        "unit": {"column": "id", "max_rows": 2, "order": "age", "units": 200},
        "columns": {"id": {"kind": "identifier"}, "age": AGE, "sex": SEX},
    },
    "label": {
        "columns": {
            "id": {
                "kind": "categorical",
                "categories": [str(WIDE + i) for i in range(200)],
                "other": "x",
                "exact": True,
            },
            "sex": SEX,
        }
    },
}


@pytest.mark.parametrize("first", [WIDE, 2**53], ids=["18 digits", "2^53"])
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("container", ["frame", "file"])
def test_one_row_without_an_id_stays_within_the_charged_sensitivity(monkeypatch, tmp_path, name, first, container):
    frame = pd.DataFrame(
        {"id": [first + i // 2 for i in range(400)], "age": np.arange(400) % 90, "sex": ["m", "f"] * 200}
    )
    more = pd.concat([frame, pd.DataFrame({"id": [None], "age": [5], "sex": ["m"]})], ignore_index=True)
    assert str(more["id"].dtype) in ("object", "float64")
    more["id"] = more["id"].astype("float64")
    document = FITS[name]
    schema = document if name == "linked" else {**document, "rows": 400}

    def kept(data, place):
        if container == "file":
            data.to_parquet(tmp_path / place)
        return data if container == "frame" else tmp_path / place

    def fit(data):
        return sfumato.fit(data, schema, epsilon=1.0, delta=1e-6, seed=1)

    _, _, tape = coupled(monkeypatch, fit, kept(frame, "a.parquet"), kept(more, "b.parquet"), more=1)
    assert check_sensitivities(tape, replaced=False) <= 1 + ROUNDING


@pytest.mark.parametrize("role", ["value", "label", "unit", "date"])
def test_a_token_for_no_value_is_none_however_its_column_is_stored(tmp_path, role):
    """One text makes objects of a column of numbers: what is declared to stand for no value has to hold in both."""
    days = pd.to_datetime(["2020-01-31", "9999-12-31"] * (N // 2)).astype("datetime64[us]")
    frame = pd.DataFrame({"age": [20 + i % 50 for i in range(N)], "code": [1, -99] * (N // 2), "day": days})
    frame["id"] = [7, -99] * (N // 2)
    frame.loc[::7, "age"] = -99
    column = {"value": "age", "label": "code", "unit": "id", "date": "day"}[role]
    document = {
        "missing": ["", "-99", "9999-12-31"],
        "columns": {
            "age": AGE, "code": LABELS, "id": {"kind": "identifier"},
            "day": {"kind": "datetime", "lower": "2000-01-01", "upper": "2030-12-31", "nullable": True},
        },
    }  # fmt: skip
    document |= {"unit": {"column": "id", "max_rows": 3}} if role == "unit" else {}
    more = pd.concat([frame, frame[:1].astype(object).assign(**{column: "x"})], ignore_index=True)
    assert more[column].dtype == object
    base = outcome(frame, document)
    check_alike(base, outcome(more, document))
    with_none = frame.assign(**{column: frame[column].where(~frame[column].isin([-99, pd.Timestamp("9999-12-31")]))})
    assert outcome(with_none, document) == base


@pytest.mark.parametrize("cell", [[1], {"x": 1}, "x", None, 2.5])
def test_the_first_batch_of_a_function_decides_nothing(cell):
    document = {"columns": {"age": AGE, "s": SETS["columns"]["s"]}}
    rows = [{"age": 20 + i % 50, "s": [i % 5]} for i in range(N)]
    first = pa.table({"age": [cell], "s": pa.array([None])})
    base = outcome(lambda: iter([pa.table(columns(rows))]), document)
    assert not isinstance(base, str)
    check_alike(base, outcome(lambda: iter([first, pa.table(columns(rows))]), document))


def test_units_in_batches_of_other_types_are_read_as_their_table_declares():
    """One text makes texts of a batch of numbers: 1.234 in the other batch is no 1234."""
    document = {
        "tables": {
            "persons": {"key": "id", "rows": N, "columns": ["v"]},
            "visits": {"of": "persons", "max_rows": 2, "order": "day"},
        },
        "columns": {
            "id": {"kind": "identifier"},
            "v": {"kind": "continuous", "lower": 0, "upper": 2000, "written": {"thousands": ".", "decimal": ","}},
            "day": {**AGE, "upper": 6},
        },
    }  # fmt: skip
    persons = [{"id": i, "v": 1.234 + i / 8} for i in range(N)]
    odd = [{"id": N, "v": "x"}]
    visits = pa.table(columns([{"id": i, "day": i % 7} for i in range(N)]))
    base = outcome({"persons": batches([arrow(persons)]), "visits": visits}, document)
    check_alike(base, outcome({"persons": batches([arrow(persons), arrow(odd)]), "visits": visits}, document))
