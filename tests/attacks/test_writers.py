"""Programs write a column by all of its cells: two tables that differ by one record are read alike but for that record.

The matrix: what wrote the table × what its column holds × one odd cell × what the column is for, with a schema and
without. Both tables go the whole way that people's do: a frame with an inferred type, then a file. Neither list has an
exception. A proof is in docs/proofs/cells.md.
"""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import warnings
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pytest

import sfumato
from attacks.test_readers import LABELS, N, RefusedByToolError, check_alike, outcome, tried
from fixtures.costly import ATTACKS
from fixtures.workbooks import workbook
from harness.coupling import ROUNDING, check_sensitivities, coupled
from sfumato.columns.canonical import canonical
from sfumato.errors import SfumatoError
from sfumato.fitting.domain_counts import cells_that_parse
from sfumato.io.sources import open_source
from sfumato.records.private import OpenData
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

DAY = pd.Timestamp("2021-01-01")
ZONE = "Europe/Berlin"
WIDE = 110101199003070000


def cells(make):
    """The cells of a column: four values, each of many rows."""
    return [make(i % 4) for i in range(N)]


COLUMNS = {
    "days": cells(lambda i: DAY + pd.Timedelta(days=i)),
    "dates": cells(lambda i: dt.date(2021, 1, 1 + i)),
    "minutes": cells(lambda i: DAY + pd.Timedelta(minutes=i)),
    "seconds": cells(lambda i: DAY + pd.Timedelta(seconds=30 * i)),
    "parts of a second": cells(lambda i: DAY + pd.Timedelta(milliseconds=500 * i)),
    "nanoseconds": cells(lambda i: DAY + pd.Timedelta(i + 1, "ns")),
    "zoned": cells(lambda i: DAY.tz_localize(ZONE) + pd.Timedelta(hours=12 * i)),
    "durations of days": cells(lambda i: pd.Timedelta(days=i)),
    "durations": cells(lambda i: pd.Timedelta(hours=5 * i)),
    "python durations": cells(lambda i: dt.timedelta(hours=9 * i)),
    "intervals": cells(lambda i: pd.Interval(10 * i, 10 * i + 10)),
    "intervals of days": cells(lambda i: pd.Interval(DAY + pd.Timedelta(days=i), DAY + pd.Timedelta(days=i + 1))),
    "times": cells(lambda i: dt.time(8 + i, 15)),
    "whole": cells(lambda i: i),
    "thousands": cells(lambda i: 100_000 * (i + 1)),
    "fractions": cells(lambda i: i / 4 + 0.1),
    "small": cells(lambda i: (i + 1) / 10**6),
    "16 digits": cells(lambda i: 1234567890123400 + i),
    "18 digits": cells(lambda i: WIDE + 7 * i),
    "decimals": cells(lambda i: Decimal(f"{i}.5")),
    "truth": cells(lambda i: bool(i % 2)),
    "codes": cells(lambda i: f"A{i}"),
}
MOMENTS = ("days", "dates", "minutes", "seconds", "parts of a second", "nanoseconds", "zoned")
NUMBERS = ("whole", "thousands", "fractions", "small", "16 digits", "18 digits", "truth")
ODD = {
    "missing": None,
    "text": "x",
    "fraction": 2.5,
    "a finer decimal": Decimal("2.125"),
    "nanoseconds": pd.Timedelta(5, "ns"),
    "beyond 2^53": 2**53 + 1,
    "half past eight": pd.Timestamp("2021-03-01 08:30"),
    "part of a second": pd.Timestamp("2021-03-01 08:30:00.25"),
    "a nanosecond": pd.Timestamp("2021-03-01 00:00:00.000000001"),
    "elsewhere": pd.Timestamp("2021-03-01", tz="UTC"),
    "a date": dt.date(2021, 5, 5),
    "five hours": pd.Timedelta(hours=5, milliseconds=1),
    "an interval": pd.Interval(0.5, 2.5),
}


TYPED = ("polars", "arrow", "DuckDB", "parquet", "feather")
"""What has one type for all cells of a column: of others it makes values of that type, or it refuses them."""


PAIRED = ("parquet of pandas", "feather of pandas")
"""What stores intervals as pairs of their ends, which have no text and are refused, whatever the cells."""


def odd_cells(name, writer):
    """The odd cells of a column: those that a person could have there, and of one type where a writer has one."""
    typed = any(word in writer for word in TYPED)
    found = ["missing"] if typed else ["missing", "text", "an interval"]
    if name == "dates":
        return [*found, "a date"] + ([] if typed else ["half past eight"])
    if name in MOMENTS:
        return [*found, "half past eight", "part of a second", "a nanosecond"] + ([] if typed else ["elsewhere"])
    if name in NUMBERS:
        return found if typed and name == "truth" else [*found, "fraction", "beyond 2^53"]
    if "durations" in name:  # pandas writes them into SQLite as numbers of a unit that all cells choose: a sharp edge
        return [*found, "five hours"] + ([] if "sqlite" in writer else ["nanoseconds"])
    if name == "decimals":
        return ["missing", "a finer decimal"]
    return found if typed else [*found, "fraction", "five hours"]


def frame(column):
    """A frame as pandas makes one of Python values: the column has the type that all its cells ask for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = len(column)
        other = {"age": [20 + i % 50 for i in range(rows)], "v": [i % 3 for i in range(rows)]}
        return tried(lambda: pd.DataFrame({"x": column, **other}))


def grown(column):
    """A frame to which a row was added: a typed column, and one cell."""
    base = tried(lambda: frame(COLUMNS[column[0]])) if isinstance(column, tuple) else frame(column[:N])
    if len(column) == N:
        return base
    more = pd.DataFrame({"x": pd.Series([column[-1]], dtype=object), "age": [20], "v": [0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tried(lambda: pd.concat([base, more], ignore_index=True))


def written(write):
    """Return the way of a table into a file, by a frame."""

    def make(column, folder, suffix):
        path = folder / f"t.{suffix}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tried(lambda: write(frame(column), path))
        return path

    return make


def to_sqlite(table, path):
    with sqlite3.connect(path) as base:
        table.to_sql("t", base, index=False)
    base.close()


def to_excel(table, path):
    """A workbook with the cells of a frame, as a writer makes it: each cell by its own type."""
    rows = [[_excel(cell) for cell in row] for row in table.astype(object).itertuples(index=False)]
    workbook(path, list(table.columns), *rows)


def _excel(cell):
    if cell is None or cell is pd.NaT or (isinstance(cell, float) and cell != cell):
        return None
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, pd.Timestamp):
        return cell.tz_localize(None).to_pydatetime(warn=False)
    return cell if isinstance(cell, int | float | str | dt.date | dt.datetime | bool) else str(cell)


def r_csv(table, path, *, before_4_3):
    """As R's `write.csv` does: an integer column keeps its digits, a double has 15 of them, moments share a form."""
    columns = [[_r_number(cell, column) for cell in column.tolist()] for _, column in table.items()]
    moments = table["x"].map(lambda cell: isinstance(cell, pd.Timestamp)).to_numpy(dtype=bool)
    if moments.any():
        stamps = [cell for cell, is_moment in zip(table["x"], moments, strict=True) if is_moment]
        shape = "%Y-%m-%d %H:%M:%S" if any(s.second for s in stamps) else "%Y-%m-%d %H:%M"
        shape = "%Y-%m-%d" if all(s == s.normalize() for s in stamps) else shape
        texts = iter([f"{s:{shape}}" if before_4_3 else str(s.to_pydatetime(warn=False)).removesuffix(" 00:00:00")
                      for s in stamps])  # fmt: skip
        columns[0] = [next(texts) if is_moment else columns[0][i] for i, is_moment in enumerate(moments)]
    lines = [",".join(f'"{cell}"' if cell != "NA" else cell for cell in row) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([",".join(f'"{name}"' for name in table.columns), *lines, ""]))


def _r_number(cell, column):
    if cell is None or cell is pd.NaT or (isinstance(cell, float) and cell != cell):
        return "NA"
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, int | float):
        power = f"{cell:.14e}".partition("e")
        shortest = f"{power[0].rstrip('0').rstrip('.')}e{power[2]}"
        digits = f"{cell:.0f}" if float(cell).is_integer() and len(power[0].rstrip("0")) > 15 else f"{cell:.15g}"
        is_double = column.dtype.kind != "i" or abs(cell) >= 2**31
        return shortest if is_double and cell and len(shortest) <= len(digits) else digits
    return str(cell)


def polars_frame(column):
    polars = pytest.importorskip("polars")
    return tried(lambda: polars.DataFrame(frame_columns(column), strict=False))


def frame_columns(column):
    return {"x": column, "age": [20 + i % 50 for i in range(len(column))], "v": [i % 3 for i in range(len(column))]}


def polars_file(write, suffix):
    def make(column, folder):
        path = folder / f"t.{suffix}"
        tried(lambda: write(polars_frame(column), path))
        return path

    return make


def arrow_table(column):
    return tried(lambda: pa.table(frame_columns(column)))


def arrow_csv(column, folder):
    tried(lambda: pa.csv.write_csv(arrow_table(column), folder / "t.csv"))
    return folder / "t.csv"


def duckdb_of(column, folder, *, to_csv):
    duckdb = pytest.importorskip("duckdb")
    table = frame(column)
    path = folder / ("t.csv" if to_csv else "t.duckdb")
    with duckdb.connect(":memory:" if to_csv else str(path)) as base:
        tried(lambda: base.register("given", table))
        tried(lambda: base.execute(f"COPY given TO '{path}' (HEADER)" if to_csv else "CREATE TABLE t AS FROM given"))
    return path if to_csv else f"duckdb:///{path}?table=t"


WRITERS = {
    "csv of pandas": lambda c, d: written(lambda f, p: f.to_csv(p, index=False))(c, d, "csv"),
    "csv of a grown frame": lambda c, d: grown(c).to_csv(d / "t.csv", index=False) or d / "t.csv",
    "json of pandas": lambda c, d: written(lambda f, p: f.to_json(p, orient="records", lines=True))(c, d, "jsonl"),
    "json of pandas in iso": lambda c, d: written(
        lambda f, p: f.to_json(p, orient="records", lines=True, date_format="iso")
    )(c, d, "jsonl"),
    "sqlite of pandas": lambda c, d: f"sqlite:///{written(to_sqlite)(c, d, 'db')}?table=t",
    "excel": lambda c, d: written(to_excel)(c, d, "xlsx"),
    "parquet of pandas": lambda c, d: written(lambda f, p: f.to_parquet(p))(c, d, "parquet"),
    "feather of pandas": lambda c, d: written(lambda f, p: feather.write_feather(f, str(p)))(c, d, "feather"),
    "pandas": lambda c, d: frame(c),
    "pandas grown": lambda c, d: grown(c),
    "pandas categories": lambda c, d: tried(lambda: frame(c).astype({"x": "category"})),
    "pandas of csv": lambda c, d: tried(lambda: pd.read_csv(WRITERS["csv of pandas"](c, d))),
    "csv of pandas of csv": lambda c, d: (
        tried(lambda: pd.read_csv(WRITERS["csv of pandas"](c, d)).to_csv(d / "u.csv", index=False)) or d / "u.csv"
    ),
    "csv of R before 4.3": lambda c, d: written(lambda f, p: r_csv(f, p, before_4_3=True))(c, d, "csv"),
    "csv of R since 4.3": lambda c, d: written(lambda f, p: r_csv(f, p, before_4_3=False))(c, d, "csv"),
    "polars": lambda c, d: polars_frame(c),
    "csv of polars": polars_file(lambda f, p: f.write_csv(p), "csv"),
    "json of polars": polars_file(lambda f, p: f.write_ndjson(p), "jsonl"),
    "parquet of polars": polars_file(lambda f, p: f.write_parquet(p), "parquet"),
    "arrow": lambda c, d: arrow_table(c),
    "csv of arrow": arrow_csv,
    "csv of DuckDB": lambda c, d: duckdb_of(c, d, to_csv=True),
    "DuckDB": lambda c, d: duckdb_of(c, d, to_csv=False),
    "json module": lambda c, d: (
        (d / "t.jsonl").write_text(
            "".join(tried(lambda r=r: json.dumps(r, default=str)) + "\n" for r in frame(c).to_dict("records"))
        )
        and d / "t.jsonl"
    ),
}


def labels_of(data):
    """The texts of a table's column, as whoever writes a schema copies them out of the file."""
    found: set[str] = set()
    for chunk in open_source(data).chunks(["x"]):
        column = chunk.columns["x"]
        found |= {str(cell) for cell in column.to_pylist() if cell not in (None, "")}
    return sorted(found)


AGE = {"kind": "integer", "lower": 0, "upper": 120, "nullable": True}
V = {"kind": "integer", "lower": 0, "upper": 2, "nullable": True}


MOMENT = {"kind": "datetime", "lower": "2020-01-01", "upper": "2022-12-31", "resolution": "second", "nullable": True}
NUMBER = {"kind": "continuous", "lower": 0, "upper": 10**6, "nullable": True}


def schemas(name, data):
    """What the column may be for; a schema is the same for both tables, as it is public."""
    unit = {"unit": {"column": "x", "max_rows": 2}, "columns": {"x": {"kind": "identifier"}, "age": AGE, "v": V}}
    found = {"unit": unit}
    found |= {"moment": {"columns": {"x": MOMENT, "v": V}}} if name in MOMENTS else {}
    found |= {"number": {"columns": {"x": NUMBER, "v": V}}} if name in NUMBERS else {}
    try:
        texts = labels_of(data)
        label = {"kind": "categorical", "categories": texts, "other": "rest", "nullable": True}
        document = {"columns": {"x": label, "v": V}}
        Schema.from_dict({**document, "rows": N})
        found["label"] = document
    except SfumatoError:  # labels of 18 digits are not told apart
        pass
    return found


def opened(data, kind):
    """What is counted of each record of a column of which nothing, or its kind alone, is declared."""
    try:
        schema = OpenSchema.of(data, None if kind is None else {"x": kind}, rows=N)
        records = list(OpenData(open_source(data), schema).coded())
    except SfumatoError as error:
        return str(error)
    if "x" not in schema.open:
        return "x is left out"
    column = np.concatenate([rows["x"] for rows in records])
    if kind is not None:
        return [Counter(map(repr, column.tolist()))]
    words = canonical(pa.array(column, pa.string())).to_pylist()
    return [Counter(zip(cells_that_parse(column).tolist(), words, strict=True))]


OPENED = {name: (None, *(["datetime"] if name in MOMENTS else []), *(["integer"] if name in NUMBERS else []))
          for name in COLUMNS}  # fmt: skip


def check_pairs(writer, name, folder):
    base_folder = folder / "base"
    base_folder.mkdir()
    column = COLUMNS[name]
    try:
        base = WRITERS[writer](column, base_folder)
    except RefusedByToolError:
        pytest.skip("the program refuses such a column")
    documents = schemas(name, base)
    before = {role: outcome(base, document) for role, document in documents.items()}
    before_open = {kind: opened(base, kind) for kind in OPENED[name]}
    refused = all(isinstance(found, str) for found in before.values())
    assert refused == (writer in PAIRED and "intervals" in name)
    pairs = 0
    for i, cell in enumerate(odd_cells(name, writer)):
        place = folder / str(i)
        place.mkdir()
        try:
            other = WRITERS[writer]([*column, ODD[cell]], place)
        except RefusedByToolError:
            continue
        for role, document in documents.items():
            check_alike(before[role], outcome(other, document)), (role, cell)
            pairs += 1
        for kind, found in before_open.items():
            check_alike(found, opened(other, kind))
            pairs += 1
    return pairs


def pairs():
    """Every writer with every kind of column: by default those that people use most, and a seventh of the others."""
    for i, writer in enumerate(WRITERS):
        for j, name in enumerate(COLUMNS):
            usual = writer in ("csv of pandas", "pandas grown") or (i + j) % 7 == 0
            yield pytest.param(writer, name, id=f"{writer}-{name}", marks=() if usual else ATTACKS)


@pytest.mark.parametrize(("writer", "name"), list(pairs()))
def test_no_cell_changes_what_a_program_writes_of_another(tmp_path, writer, name):
    check_pairs(writer, name, tmp_path)


def test_the_matrix_is_as_large_as_the_proof_says():
    assert (len(WRITERS), len(COLUMNS), len(ODD)) == (24, 22, 13)


@pytest.mark.parametrize("kind", [LABELS, MOMENT, NUMBER])
@pytest.mark.parametrize("cell", ["x", 1.5, True, pd.Timestamp("2021-01-01"), dt.date(2021, 1, 1), dt.time(1), b"x"])
def test_the_only_value_of_a_column_refuses_no_frame(kind, cell):
    """A column of nothing has the type that pandas gives it; its only value gives it another."""
    document = {"columns": {"x": kind, "v": V}}
    base = outcome(pd.DataFrame({"x": np.full(N, np.nan), "v": [0] * N}), document)
    assert not isinstance(base, str)
    check_alike(base, outcome(pd.DataFrame({"x": [None] * N + [cell], "v": [0] * (N + 1)}), document))


@pytest.mark.parametrize("cell", [None, "x", 2.5])
def test_wide_numbers_of_a_frame_are_the_floats_that_one_cell_makes_of_them(tmp_path, cell):
    kind = {"kind": "integer", "lower": WIDE, "upper": WIDE + 100, "nullable": True}
    document = {"columns": {"x": kind, "v": V}}
    column = [WIDE + i % 90 for i in range(N)]
    base = outcome(frame(column), document)
    check_alike(base, outcome(frame([*column, cell]), document))
    check_alike(base, outcome(grown([*column, cell]), document))
    if cell != "x":  # which no file of numbers holds
        frame(column).to_parquet(tmp_path / "a.parquet")
        frame([*column, cell]).to_parquet(tmp_path / "b.parquet")
        check_alike(*(outcome(tmp_path / name, document) for name in ("a.parquet", "b.parquet")))


@pytest.mark.parametrize("cell", [None, "x"])
def test_floats_of_32_bits_are_the_labels_that_they_mean(cell):
    column = pd.Series([0.1, 0.25, 0.7, 1.0] * (N // 4), dtype="float32")
    base = pd.DataFrame({"x": column, "v": 0})
    more = pd.DataFrame({"x": pd.Series([cell], dtype=object), "v": 0})
    document = {"columns": {"x": {**LABELS, "categories": ["0.1", "0.25", "0.7", "1"]}, "v": V}}
    before = outcome(base, document)
    assert len(before[0]) == 4
    check_alike(before, outcome(pd.concat([base, more], ignore_index=True), document))


def test_a_fit_without_a_schema_publishes_no_form_that_one_moment_asked_for(tmp_path):
    days = pd.date_range("2020-01-01", periods=300).repeat(4)
    base = pd.DataFrame({"day": days, "v": np.arange(1200) % 3})
    more = pd.concat([base, pd.DataFrame({"day": [pd.Timestamp("2020-05-05 08:30")], "v": [0]})], ignore_index=True)
    schemas = []
    for i, table in enumerate((base, more)):
        table.to_csv(tmp_path / f"{i}.csv", index=False)
        for data in (table, tmp_path / f"{i}.csv"):
            release = sfumato.fit(data, OpenSchema.of(data, rows=1200), epsilon=1.0, delta=1e-6, seed=3)
            schemas.append(release.schema.columns["day"])
    assert schemas[0].format is None
    assert schemas == [schemas[0]] * 4


KEYED = {
    "tables": {
        "visits": {"key": "admitted", "rows": N, "columns": ["v"]},
        "values": {"of": "visits", "max_rows": 3, "order": "age"},
    },
    "columns": {"admitted": {"kind": "identifier"}, "v": V, "age": AGE},
}


@pytest.mark.parametrize("side", ["visits", "values"])
@pytest.mark.parametrize("odd", ["half past eight", "text", "missing", "a nanosecond"])
@pytest.mark.parametrize("suffix", ["csv", "frame"])
def test_a_key_of_time_names_its_rows_whatever_another_one_is(tmp_path, suffix, odd, side):
    """pandas writes the keys of one table without their midnights, and those of the other with them."""
    days = [DAY + pd.Timedelta(days=i) for i in range(N)]
    found = []
    for i, more in enumerate(([], [ODD[odd]])):
        data = {}
        for table, keys in {"visits": days, "values": days * 2}.items():
            grown_keys = [*keys, *more] if table == side else keys
            rows = frame(grown_keys).rename(columns={"x": "admitted"})
            rows = rows[["admitted", "v"] if table == "visits" else ["admitted", "age"]]
            path = tmp_path / f"{i}-{table}.{suffix}"
            if suffix == "csv":
                rows.to_csv(path, index=False)
            data[table] = rows if suffix == "frame" else path
        found.append(outcome(data, KEYED))
    assert not isinstance(found[0], str)
    check_alike(*found)


@pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
@pytest.mark.parametrize("name", ["days", "durations of days", "intervals"])
@pytest.mark.parametrize("container", ["csv", "frame"])
def test_fits_of_neighbours_stay_within_the_charged_sensitivity(monkeypatch, tmp_path, name, container):
    odd = {"days": "half past eight", "durations of days": "five hours", "intervals": "an interval"}[name]
    tables = [frame(column) for column in (COLUMNS[name], [*COLUMNS[name], ODD[odd]])]
    label = {"kind": "categorical", "categories": [str(cell) for cell in COLUMNS[name][:4]], "other": "rest"}
    schema = {"columns": {"x": label, "v": V}, "rows": N}

    def kept(i):
        if container == "frame":
            return tables[i]
        tables[i].to_csv(tmp_path / f"{i}.csv", index=False)
        return tmp_path / f"{i}.csv"

    for document in (schema, None):

        def fit(data, document=document):
            described = OpenSchema.of(data, rows=N) if document is None else document
            return sfumato.fit(data, described, epsilon=1.0, delta=1e-6, seed=1)

        _, _, tape = coupled(monkeypatch, fit, kept(0), kept(1), more=1)
        assert check_sensitivities(tape, replaced=False) <= 1 + ROUNDING
