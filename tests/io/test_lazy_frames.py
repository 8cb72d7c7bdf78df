"""Plans of polars: no cell stops them, and those that one could are refused by their form."""

import datetime as dt

import pytest

from fixtures.cells import read_cells as read
from sfumato.errors import DataError
from sfumato.io.sources import open_source

pl = pytest.importorskip("polars")


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": ["1", "x", "3"], "d": ["2020-01-31", "2020-13-31", ""]}).write_parquet(path)
    return path


def test_a_cell_that_does_not_cast_is_missing_alone(texts):
    plan = pl.scan_parquet(texts).with_columns(
        pl.col("a").cast(pl.Int32), pl.col("d").str.to_date("%Y-%m-%d"), whole=pl.col("a").str.to_integer()
    )
    day = dt.date(2020, 1, 31)
    assert read(open_source(plan)) == {"a": [1, None, 3], "d": [day, None, None], "whole": [1, None, 3]}


def test_a_plan_that_only_scans_csv_is_read_by_its_path(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "1;x\n" * 200 + "007;y\n2.5;z\nfoo;\n1;2;3\n")
    source = open_source(pl.scan_csv(path, separator=";"))
    assert source.container == "polars"
    assert read(source)["a"][-4:] == ["1", "007", "2.5", "foo"]


@pytest.mark.parametrize("form", ["filtered csv", "json", "several", "in memory", "skipped lines"])
def test_what_cannot_be_helped_is_refused_by_its_form(tmp_path, texts, form):
    csv = tmp_path / "t.csv"
    csv.write_text("a,b\n1,2\n")
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "u.parquet")
    plan = {
        "filtered csv": lambda: pl.scan_csv(csv).filter(pl.col("a") > 0),
        "skipped lines": lambda: pl.scan_csv(csv, skip_rows=1),
        "json": lambda: pl.scan_ndjson(tmp_path / "t.jsonl"),
        "several": lambda: pl.scan_parquet([texts, texts]),
        "in memory": lambda: pl.DataFrame({"a": ["1"]}).lazy().with_columns(pl.col("a").cast(pl.Int64)),
    }[form]
    with pytest.raises(DataError, match=r"lazy frame.*(Pass|pass|Cast)"):
        open_source(plan())


def test_frames_in_memory_without_strict_casts_are_read():
    plan = pl.DataFrame({"a": ["1", "x"]}).lazy().with_columns(pl.col("a").cast(pl.Int64, strict=False))
    assert read(open_source(plan)) == {"a": [1, None]}
