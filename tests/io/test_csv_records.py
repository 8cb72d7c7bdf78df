"""Records of a CSV file with another number of cells than the header, headers without a name, and suffixes of text."""

import gzip

import pyarrow as pa
import pytest

from sfumato.errors import ConfigError
from sfumato.io import csv as csv_source
from sfumato.io.csv_form import CsvForm, CsvOutput
from sfumato.io.csv_record_ends import read_long
from sfumato.io.sinks import write_table
from sfumato.io.sources import open_source


def _open(tmp_path, text, name="people.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_source(path, **options)


def _read(source, columns=None):
    found = {name: [] for name in columns or source.names}
    for chunk in source.chunks(columns):
        for name, column in chunk.columns.items():
            found[name] += column.to_pylist()
    return found


def test_a_delimiter_at_the_end_of_every_line_ends_no_record(tmp_path):
    source = _open(tmp_path, "a;b\n" + "".join(f"{i};{i % 3};\n" for i in range(1000)))
    assert _read(source)["a"] == [str(i) for i in range(1000)]
    assert list(source.notes("skipped")) == []
    assert list(source.notes("shortened")) == [f"record {i}: 3 cells" for i in range(1, 1001)]


def test_a_record_is_read_by_itself_wherever_it_lies(tmp_path):
    """Long, short and right records, quotes and line ends in cells: the order of the file stays."""
    text = 'a,b\n1,x\n2,y,\n\n3,"l1\nl2",,\n4\n5,z,note\n6,"q"",",\n7,w\n8,v, \n'
    source = _open(tmp_path, text, chunk_rows=2)
    assert _read(source) == {"a": ["1", "2", "3", "6", "7", "8"], "b": ["x", "y", "l1\nl2", 'q",', "w", "v"]}
    assert _read(source, ["b"])["b"][2] == "l1\nl2"
    assert list(source.notes("skipped")) == ["record 4: 1 cells", "record 5: 3 cells"]


@pytest.mark.parametrize("block", [64, 200, 4 << 20])
def test_the_order_is_the_files_over_many_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(csv_source, "_BLOCK_BYTES", block)
    ends = ["", ",", ",,", ",x", "", ","]
    records = [(i, ends[(i * i + i // 7) % 6]) for i in range(500)]
    source = _open(tmp_path, "a,b\n" + "".join(f"{i},{i}{end}\n" for i, end in records))
    assert _read(source)["a"] == [str(i) for i, end in records if end != ",x"]
    assert len(list(source.notes("skipped"))) == sum(end == ",x" for _, end in records)


def test_one_record_changes_no_other(tmp_path):
    lines = [f"{i},{i}," for i in range(50)]
    whole = _read(_open(tmp_path, "\n".join(["a,b", *lines])))["a"]
    for odd in ("7,7,x", "7", "7,7", '7,"7', "7,7,,,,"):
        changed = _read(_open(tmp_path, "\n".join(["a,b", *lines, odd])))["a"]
        assert changed[:50] == whole


def test_a_cell_too_long_for_a_look_at_its_record_leaves_it_out():
    assert read_long("x" * 200_000 + ",b,", ",", 2) is None
    assert read_long("", ",", 2) is None


def test_columns_without_a_name_are_named_by_their_place(tmp_path):
    source = _open(tmp_path, ",age,\n0,34,\n1,51,\n")
    assert source.names == ("column_1", "age", "column_3")
    assert _read(source)["column_1"] == ["0", "1"]


@pytest.mark.parametrize("preface", ["sep=;\n", "sep=;\r\n", '"sep=;"\n', "\ufeffsep=;\n"])
def test_a_line_that_says_the_delimiter_is_no_header(tmp_path, preface):
    source = _open(tmp_path, f"{preface}a,b;c\n1;2\n")
    assert source.names == ("a,b", "c")
    assert _read(source) == {"a,b": ["1"], "c": ["2"]}


@pytest.mark.parametrize("name", ["people.tsv", "people.TAB", "people.txt", "people.tsv.gz"])
def test_text_with_tabs_is_read(tmp_path, name):
    text = b"a,b,c\td\n1\t2\n"
    source = _open(tmp_path, gzip.compress(text) if name.endswith("gz") else text, name)
    assert source.container == "csv"
    if name == "people.txt":  # whose header tells: more commas than tabs
        assert source.names == ("a", "b", "c\td")
    else:
        assert _read(source) == {"a,b,c": ["1"], "d": ["2"]}
        assert source.found_form() == CsvForm()


def test_a_tab_in_a_csv_is_found_and_a_declared_delimiter_beats_the_suffix(tmp_path):
    assert _open(tmp_path, "a\tb\n1\t2\n").found_form() == CsvForm(delimiter="\t")
    source = _open(tmp_path, "a;b\n1;2\n", "people.tsv", csv=CsvForm(delimiter=";"))
    assert source.found_form() == CsvForm(delimiter=";")
    assert _read(source)["b"] == ["2"]


def test_samples_are_written_with_tabs(tmp_path):
    table = pa.table({"a": [1], "b": ["=x,\ty"]})
    write_table([table], tmp_path / "s.tsv", spreadsheet=True, csv=CsvOutput(form=CsvForm(delimiter=";")))
    assert (tmp_path / "s.tsv").read_bytes() == b'a\tb\n1\t"\'=x,\ty"\n'
    assert _read(open_source(tmp_path / "s.tsv"))["b"] == ["'=x,\ty"]
    with pytest.raises(ConfigError, match="safe for spreadsheets"):
        write_table([table], tmp_path / "s.parquet", spreadsheet=True)
