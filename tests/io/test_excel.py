"""Workbooks: each cell is read by itself, within the columns of the names, as a stream."""

import itertools
import subprocess
import sys
import traceback
import zipfile

import pyarrow as pa
import pytest

from fixtures.cells import read_cells as read
from fixtures.workbooks import MAIN, sheet, workbook
from sfumato.errors import DataError
from sfumato.io.sources import open_source

SECRET = "Xanthippe-4711"


def test_cells_are_text(tmp_path):
    path = workbook(
        tmp_path / "t.xlsx",
        ["age", "town", 2024],
        [31, "Riga", True],
        [31.5, 7, None],
        [],
        [None, "Oslo", False],
        ["x", "", 1e300],
    )
    source = open_source(path, chunk_rows=3)
    assert source.storage == dict.fromkeys(["age", "town", "2024"], pa.string())
    cells = read(source)
    assert cells["age"] == ["31", "31.5", "", "x"]
    assert cells["town"] == ["Riga", "7", "Oslo", ""]
    assert cells["2024"] == ["true", "", "false", str(int(1e300))]
    assert read(source) == cells
    assert read(source, ["town"]) == {"town": cells["town"]}
    assert not source.counts_entries
    assert read(open_source(path, chunk_rows=1)) == cells


def test_what_is_no_workbook(tmp_path):
    (tmp_path / "t.xlsx").write_text(SECRET)
    with pytest.raises(DataError, match="Excel workbook") as failure:
        open_source(tmp_path / "t.xlsx")
    assert SECRET not in "".join(traceback.format_exception(failure.value))
    with pytest.raises(DataError, match="name"):
        open_source(workbook(tmp_path / "u.xlsx", ["a", "a"], [1, 2]))
    with pytest.raises(DataError, match="have columns"):
        open_source(workbook(tmp_path / "v.xlsx"))
    with pytest.raises(DataError, match="name"):
        open_source(workbook(tmp_path / "w.xlsx", ["a", None, "b"], [1, 2, 3]))


ODD = {
    "a shared text that is not there": {"t": "s", "v": 99},
    "no number of a shared text": {"t": "s", "v": "x"},
    "a negative number of one": {"t": "s", "v": -1},
    "a truth value of 7": {"t": "b", "v": 7},
    "an error": {"t": "e", "v": "#N/A"},
    "an unknown error": {"t": "e", "v": "#NEW!"},
    "an unknown type": {"t": "zz", "v": "x"},
    "no number": {"v": "x"},
    "a number too long": {"v": "9" * 500},
    "a number beyond floats": {"v": "1e999"},
    "no date": {"t": "d", "v": "yesterday"},
    "a text too long": {"t": "str", "v": "x" * 40_000},
}


@pytest.mark.parametrize("cell", ODD.values(), ids=ODD)
def test_an_odd_cell_is_missing_by_itself(tmp_path, cell):
    plain = workbook(tmp_path / "a.xlsx", ["a", "b"], [1, "x"], [None, "y"], [3, "z"], texts=["k"])
    odd = workbook(tmp_path / "b.xlsx", ["a", "b"], [1, "x"], [cell, "y"], [3, "z"], texts=["k"])
    assert open_source(odd).storage == open_source(plain).storage
    assert read(open_source(odd)) == read(open_source(plain)) == {"a": ["1", "", "3"], "b": ["x", "y", "z"]}


def test_a_note_beside_a_row_is_not_read(tmp_path):
    rows = [["a", "b"], [1, "x"], [2, "y"]]
    plain = workbook(tmp_path / "a.xlsx", *rows)
    for place, note in itertools.product(("C2", "Z2", "XFD2", "ZZZ2", "7"), ("5", "see file")):
        beside = f'<c r="{place}" t="str"><v>{note}</v></c>'
        row = f'<row r="2"><c r="A2"><v>1</v></c><c r="B2" t="str"><v>x</v></c>{beside}</row>'
        noted = workbook(tmp_path / "b.xlsx", rows[0], row, rows[2])
        assert open_source(noted).storage == open_source(plain).storage
        assert read(open_source(noted)) == read(open_source(plain))
    alone = '<row r="3"><c r="D3" t="str"><v>note</v></c></row>'  # and no record
    assert read(open_source(workbook(tmp_path / "c.xlsx", *rows[:2], alone))) == {"a": ["1"], "b": ["x"]}


def test_a_cell_at_the_far_end_costs_nothing(tmp_path):
    far = '<row r="1048576"><c r="XFD1048576" t="str"><v>x</v></c></row>'
    last = '<row r="1048576"><c r="A1048576"><v>2</v></c></row>'
    beyond = '<row r="1048577"><c r="A1048577"><v>3</v></c></row>'
    path = workbook(tmp_path / "t.xlsx", ["a"], [1], far, last, beyond)
    assert path.stat().st_size < 5_000
    assert read(open_source(path)) == {"a": ["1", "2"]}


def test_names_may_begin_anywhere(tmp_path):
    head = '<row r="3"><c r="C3" t="str"><v>a</v></c><c r="D3" t="str"><v>b</v></c></row>'
    row = '<row r="5"><c r="A5"><v>9</v></c><c r="C5"><v>1</v></c><c r="D5"><v>2</v></c></row>'
    assert read(open_source(workbook(tmp_path / "t.xlsx", head, row))) == {"a": ["1"], "b": ["2"]}


def test_texts_that_cells_share(tmp_path):
    rich = "<si><r><t>Os</t></r><r><t>lo</t></r><rPh><t>no</t></rPh></si>"
    texts = ["Riga", rich, "a_x000D_b", "x" * 40_000, "&lt;5"]
    rows = [[{"t": "s", "v": i}] for i in (0, 1, 2, 3, 4, 0)]
    path = workbook(tmp_path / "t.xlsx", ["a"], *rows, texts=texts)
    assert read(open_source(path)) == {"a": ["Riga", "Oslo", "a\rb", "<5", "Riga"]}


def test_many_shared_texts_lie_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.io.workbook._IN_MEMORY", 100)
    monkeypatch.setattr("sfumato.io.workbook._CACHE_SIZE", 2)
    texts = [f"Māra {i}" for i in range(5_000)]
    path = workbook(tmp_path / "t.xlsx", ["a"], *([{"t": "s", "v": i}] for i in range(4_999, -1, -1)), texts=texts)
    assert read(open_source(path)) == {"a": texts[::-1]}


@pytest.mark.parametrize(
    ("number", "style", "text"),
    [
        (43831, 1, "2020-01-01"),
        (43831.5, 1, "2020-01-01 12:00:00"),
        (43831.25, 2, "2020-01-01 06:00:00"),
        (1, 1, "1900-01-01"),
        (59, 1, "1900-02-28"),
        (61, 1, "1900-03-01"),
        (2958465, 1, "9999-12-31"),
        (2958466, 1, "2958466"),
        (-3, 1, "-3"),
        (0.5, 2, "12:00:00"),
        (1.25, 3, "30:00:00"),
        (43831, 4, "43831"),
        (0.25, 5, "0.25"),
        (43831, 99, "43831"),
        ("123456789012345678", 0, "123456789012345678"),
        ("0.30000000000000004", 0, "0.30000000000000004"),
        ("1E3", 0, "1000"),
        ("007", 0, "7"),
    ],
)
def test_numbers_and_dates(tmp_path, number, style, text):
    formats = ["yyyy\\-mm\\-dd", "[$-409]d/m/yy h:mm AM/PM;@", "[h]:mm", "&quot;May &quot;0", "0.00%"]
    path = workbook(tmp_path / "t.xlsx", ["a"], [{"s": style, "v": number}], formats=formats)
    assert read(open_source(path)) == {"a": [text]}


def test_days_since_1904(tmp_path):
    path = workbook(tmp_path / "t.xlsx", ["a"], [{"s": 1, "v": 42369}], formats=["yyyy"], date1904=1)
    assert read(open_source(path)) == {"a": ["2020-01-01"]}


def test_another_reader_sees_the_same(tmp_path):
    calamine = pytest.importorskip("python_calamine")
    rows = [[i, i / 7, f"name {i}", i % 2 == 0, {"s": 1, "v": 40_000 + i / 3}] for i in range(200)]
    path = workbook(tmp_path / "t.xlsx", list("abcde"), *rows, formats=["yyyy-mm-dd hh:mm"])
    other = calamine.CalamineWorkbook.from_path(path).get_sheet_by_index(0).to_python()[1:]
    cells = read(open_source(path))
    assert list(map(float, cells["b"])) == [row[1] for row in other]
    assert cells["c"] == [row[2] for row in other]
    assert cells["d"] == [str(row[3]).lower() for row in other]
    assert cells["e"] == [str(row[4]) for row in other]


def test_characters_that_xml_does_not_have(tmp_path):
    texts = ["a\x01b", "a&#1;b", "a&#xFFFF;b", "a\uffffb", "a&#xD800;b", "a&#10;b"]
    path = workbook(tmp_path / "t.xlsx", ["a"], *([text] for text in texts))
    assert read(open_source(path)) == {"a": [*["ab"] * 5, "a\nb"]}
    long = sheet(["a"], *([f"{'x' * n}&#1;\uffff"] for n in range(300)))
    long = long.replace("</sheetData>", " " * 70_000 + "</sheetData>")
    for shift in range(20):  # a block may end within what is taken out
        padded = long.replace("<sheetData>", f"<sheetData>{' ' * (65_536 - 2_000 - shift)}")
        path = workbook(tmp_path / "u.xlsx", sheet=padded)
        assert read(open_source(path)) == {"a": ["x" * n for n in range(1, 300)]}


def test_prefixes_and_places_may_be_left_out(tmp_path):
    text = (
        f'<x:worksheet xmlns:x="{MAIN}"><x:sheetData><x:row><x:c t="str"><x:v>a</x:v></x:c><x:c t="str"><x:v>b</x:v>'
        "</x:c></x:row><x:row><x:c><x:f>1+1</x:f>\n<x:v> 2 </x:v></x:c><x:c><x:v>3</x:v></x:c></x:row></x:sheetData>"
        "<x:row><x:c><x:v>9</x:v></x:c></x:row></x:worksheet>"
    )
    assert read(open_source(workbook(tmp_path / "t.xlsx", sheet=text))) == {"a": ["2"], "b": ["3"]}


@pytest.mark.parametrize("part", ["sheet", "strings", "book"])
def test_document_types_are_refused(tmp_path, part):
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><x>&b;</x>'
    with pytest.raises(DataError):
        read(open_source(workbook(tmp_path / "t.xlsx", ["a"], [1], **{part: bomb})))


BOMBS = """
import resource, sys
from sfumato.io.sources import open_source
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        print(sum(chunk.n_rows for chunk in open_source(path).chunks()))
    except Exception as error:
        print(type(error).__name__)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def _packed(path, part, start, middle, times, end):
    """Write a workbook of which one part is a bomb: `middle` as often as it is said."""
    plain = workbook(path.with_suffix(".plain"), ["a"], [1], [{"t": "s", "v": 0}], texts=["k"])
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in old.namelist():
            if not name.endswith(part):
                archive.writestr(name, old.read(name))
            else:
                with archive.open(name, "w", force_zip64=True) as member:
                    member.write(start.encode())
                    block = middle.encode() * max(1, (1 << 20) // len(middle))
                    for _ in range(times):
                        member.write(block)
                    member.write(end.encode())
    return path


@pytest.mark.slow
@pytest.mark.audit
def test_small_workbooks_that_are_large_inside(tmp_path):
    row = '<row><c t="str"><v>a</v></c></row>'
    head, foot = f'<worksheet xmlns="{MAIN}"><sheetData>{row}', "</sheetData></worksheet>"
    cell = '<row><c t="str"><v>'
    shared = f'<sst xmlns="{MAIN}">'
    bombs = [
        _packed(tmp_path / "text.xlsx", "sheet1.xml", head + cell, "x", 96, f"</v></c></row>{row}{foot}"),
        _packed(tmp_path / "cells.xlsx", "sheet1.xml", f"{head}<row>", "<c/>", 4, f"</row>{row}{foot}"),
        _packed(tmp_path / "tag.xlsx", "sheet1.xml", f'{head}<row><c t="', "x", 96, f'"/></row>{foot}'),
        _packed(tmp_path / "shared.xlsx", "sharedStrings.xml", shared, "<si/>", 4, "</sst>"),
        _packed(tmp_path / "long.xlsx", "sharedStrings.xml", f"{shared}<si><t>", "x", 96, "</t></si></sst>"),
        _packed(tmp_path / "styles.xlsx", "styles.xml", "<s><cellXfs>", '<xf numFmtId="14"/>', 4, "</cellXfs></s>"),
    ]
    assert all(bomb.stat().st_size < 500_000 for bomb in bombs)
    call = [sys.executable, "-c", BOMBS, *map(str, bombs)]
    done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=300)
    *records, peak = done.stdout.split()
    assert records == ["1", "1", "DataError", "1", "1", "2"]
    assert int(peak) < 60
