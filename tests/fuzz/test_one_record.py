"""One odd record among sound ones, in files of text and workbooks: 60 cases of each form, 2,500 in the slow tests.

Whatever it is, the file is read, under the same names and types, and the other records stay what they are.
"""

import random
import re
from xml.sax.saxutils import escape

import pytest

from fixtures.cells import read_cells
from fixtures.workbooks import workbook
from fuzz.cases import batches
from sfumato.columns.kinds import Categorical
from sfumato.columns.sets import ItemSet
from sfumato.io.sources import open_source

CASES, BATCH = 60, 20
NAMES = ["a", "b", "c"]
VALUES = [
    "",
    "1",
    "-3.5",
    "1e999",
    "9" * 400,
    "nan",
    "x",
    "née",
    "\x00",
    "\x0b",
    "\ufffe",
    "\U0001f701",
    "<5",
    "&",
    "]]>",
    "7.0",
]


def junk(rng: random.Random) -> bytes:
    """Bytes of one line."""
    pieces = [
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b'\\"',
        b"null",
        b"NaN",
        b"\xff",
        b"\xed\xa0\x80",
        b"\x00",
        b"1e9",
        b" ",
    ]
    line = b"".join(rng.choice([*pieces, rng.randbytes(3)]) for _ in range(rng.randint(0, 30)))
    return re.sub(rb"[\r\n]", b"", line)


def json_line(rng: random.Random) -> bytes:
    value = rng.choice(
        ["[" * rng.choice([3, 99, 150, 5_000]), '"x"', "1e999", "NaN", "-Infinity", "{}", "[[]]", '"\\ud800"']
    )
    key = rng.choice(["a", "b", "new", "", "\\u0000"])
    text = rng.choice([f'{{"{key}": {value}}}', f'{{"{key}": {value}, "{key}": 1}}', value, f'[{{"a": {value}}}]'])
    return rng.choice([text.encode(), junk(rng), b'{"a": "' + junk(rng) + b'"}'])


def sheet_row(rng: random.Random, number: int) -> str:
    """A row of a sheet as XML, well formed."""
    cells = []
    for _ in range(rng.randint(0, 5)):
        place = rng.choice(["A", "B", "C", "D", "XFD", "AAAA", "", "é"]) + rng.choice([str(number), "9", ""])
        kind = rng.choice(["", ' t="s"', ' t="b"', ' t="e"', ' t="d"', ' t="str"', ' t="inlineStr"', ' t="zz"'])
        style = rng.choice(["", ' s="1"', ' s="-1"', ' s="x"'])
        text = escape(rng.choice([*VALUES, str(rng.randint(-5, 50)), "#N/A", "2020-01-01", "25:00"]))
        inner = rng.choice(
            [f"<v>{text}</v>", f"<is><t>{text}</t></is>", "", f"<f>{text}</f>", f"<v/><v>{text}</v>", text]
        )
        cells.append(f'<c{rng.choice(["", f""" r="{place}" """])}{kind}{style}>{inner}</c>')
    label = rng.choice([f' r="{number}"', "", ' r="x"', ' r="0"', ' r="99999999999"'])
    return f"<row{label}>{''.join(cells)}</row>"


def sound(i: int) -> list[str]:
    return [str(i), f"name {i}", f"{i}.5"]


def write(path, before: int, odd: bytes | str | None, after: int):
    """Write sound records with an odd one between them."""
    numbers = range(before + after)
    if path.suffix == ".xlsx":
        rows = [NAMES, *map(sound, numbers)]
        if odd is not None:
            rows.insert(before + 1, odd)
        # every row says its own cells' places: where it stands among the others is not its content
        return workbook(path, *rows, texts=["s0", "s1"], formats=["yyyy"])
    if path.suffix == ".jsonl":
        lines = [f'{{"a": "{a}", "b": "{b}", "c": {c}}}'.encode() for a, b, c in map(sound, numbers)]
    elif path.suffix == ".dat":
        lines = [" ".join(sound(i)).encode() for i in numbers]
    else:
        lines = [",".join(sound(i)).encode() for i in numbers]
    if odd is not None:
        lines.insert(before, odd)
    path.write_bytes(
        b"\n".join([*([b",".join(map(str.encode, NAMES))] if path.suffix == ".csv" else []), *lines]) + b"\n"
    )
    return path


def read(path) -> tuple[dict, list[tuple]]:
    kinds = {name: Categorical(categories=("x",)) for name in NAMES}
    source = open_source(path, chunk_rows=7)
    if path.suffix == ".jsonl":
        source = source.under(kinds)
    if path.suffix == ".dat":
        source = source.under({"items": ItemSet(items=("x",), max_length=3)})
    cells = read_cells(source)
    assert len(list(source.notes("skipped"))) <= 1
    return dict(source.storage), list(zip(*cells.values(), strict=True))


ODD = {
    "csv": lambda rng: junk(rng).replace(b'"', b""),  # a quote that is never closed swallows others: see sharp edges
    "jsonl": json_line,
    "dat": junk,
    "xlsx": lambda rng: sheet_row(rng, rng.randint(1, 30)),
}


@pytest.mark.parametrize("form", ODD)
@pytest.mark.parametrize("batch", batches(CASES, BATCH))
def test_an_odd_record_changes_no_other(tmp_path, form, batch):
    for case in range(batch * BATCH, (batch + 1) * BATCH):
        rng = random.Random(f"{form} {case}")
        before, after = rng.randint(1, 10), rng.randint(0, 10)
        types, others = read(write(tmp_path / f"t.{form}", before, None, after))
        odd_types, records = read(write(tmp_path / f"u.{form}", before, ODD[form](rng), after))
        assert odd_types == types, case
        assert len(records) - len(others) in (0, 1), case
        assert records[:before] == others[:before], case
        assert records[len(records) - after :] == others[before:], case
