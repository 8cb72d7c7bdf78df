"""Several tables in one folder: written side by side, whole or not at all."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import ConfigError, OutputError
from sfumato.io.table_folders import write_tables

BATCHES = [
    {"persons": pa.table({"id": [1, 2]}), "visits": pa.table({"id": [1, 1], "note": ["=1+1", "b,c"]})},
    {
        "persons": pa.table({"id": [3]}),
        "visits": pa.table({"id": pa.array([], pa.int64()), "note": pa.array([], "string")}),
    },
]


def test_batches_go_on_in_both_files(tmp_path):
    write_tables(iter(BATCHES), tmp_path / "out")
    assert (tmp_path / "out" / "persons.csv").read_text() == "id\n1\n2\n3\n"
    assert (tmp_path / "out" / "visits.csv").read_text() == 'id,note\n1,=1+1\n1,"b,c"\n'
    write_tables(iter(BATCHES), tmp_path / "parts", form="parquet")
    assert pq.read_table(tmp_path / "parts" / "persons.parquet")["id"].to_pylist() == [1, 2, 3]
    assert pq.read_table(tmp_path / "parts" / "visits.parquet").num_rows == 2


def test_formulas_are_made_harmless_if_asked(tmp_path):
    write_tables(iter(BATCHES), tmp_path / "out", spreadsheet=True)
    assert "'=1+1" in (tmp_path / "out" / "visits.csv").read_text()
    with pytest.raises(ConfigError, match="CSV to make safe"):
        write_tables(iter(BATCHES), tmp_path / "parts", form="parquet", spreadsheet=True)


def test_what_fails_leaves_nothing_and_what_was_there(tmp_path):
    write_tables(iter(BATCHES[:1]), tmp_path / "out")
    before = (tmp_path / "out" / "persons.csv").read_bytes()

    def ends():
        yield BATCHES[1]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_tables(ends(), tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "persons.csv").read_bytes() == before
    with pytest.raises(OutputError, match="exists"):
        write_tables(iter(BATCHES), tmp_path / "out")
    for form in ("csv", "parquet"):
        with pytest.raises(ConfigError, match="at least one batch"):
            write_tables(iter([]), tmp_path / "none", form=form)
    with pytest.raises(ConfigError, match="a folder without a suffix"):
        write_tables(iter(BATCHES), tmp_path / "both.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
