"""Damaged tables through the command line, and odd frames through Python: 150 + 60 cases, 2,500 in the slow tests."""

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fixtures import tables
from fixtures.costly import slow_after
from fuzz.cases import batches
from fuzz.planted import DIGITS, SECRETS, WORD, assert_no_byte, assert_silent, told
from sfumato import MaxEntropy, load
from sfumato.errors import SfumatoError
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData

CASES, BATCH = 100, 25

SCHEMA = """\
rows: 100
columns:
  id: identifier
  a: {kind: categorical, categories: [x, y, z], other: else}
  b: {kind: integer, lower: 0, upper: 50}
  c: {kind: continuous, lower: -1, upper: 1, nullable: true}
  d: {kind: datetime, lower: 2000-01-01, upper: 2001-12-31, resolution: hour}
  e: boolean
"""
HEADER = ["id", "a", "b", "c", "d", "e"]
ODD = [
    "", " ", "NA", "nan", "inf", "-inf", "1e999", "-0", "0x1F", "1_000", "١٢", "1,5", "TRUE", "yes", "2000-02-30",
    "2000-01-01T00:00:00+99:00", "9999999999999999999999", "1e-400", "\x00", "\ufeff", "\u202e", "🜁", "=1+1",
    "'", "a" * 3000,
]  # fmt: skip


def cells(random_: random.Random) -> list[list[str]]:
    """A table as it should be, with a secret in the column that is never read."""
    return [
        [
            f"{WORD}{i}",
            random_.choice("xyz"),
            str(random_.randint(0, 50)),
            random_.choice(["", f"{random_.uniform(-1, 1):.4f}"]),
            f"200{random_.randint(0, 1)}-0{random_.randint(1, 9)}-1{random_.randint(0, 9)} 07:00:00",
            random_.choice(["true", "false"]),
        ]
        for i in range(random_.choice([0, 1, 2, 15, 15, 15]))
    ]


def secret(random_: random.Random) -> str:
    word = random_.choice(SECRETS)
    return random_.choice(
        [word, f" {word} ", f'"{word}"', f'"{word}\n{word}"', f'"{word}', f'{word}"', f"-{word}e5", f"{word},{word}"]
    )


def damaged(random_: random.Random) -> tuple[bytes, bool]:
    """A CSV file with a few things wrong, and whether its header line is whole."""
    rows = cells(random_)
    header = list(HEADER)
    for _ in range(random_.randint(0, 5)):
        _damage_cells(random_, rows)
    if random_.random() < 0.1:
        place = random_.randrange(len(header))
        header[place] = random_.choice(["", "b", '"b', 'b"', "B", f"{header[place]}x", "other", "\x00"])
    whole = header == HEADER
    delimiter = random_.choice([",", ",", ",", ";", "\t", "|"])
    newline = random_.choice(["\n", "\n", "\r\n", "\r"])
    lines = [delimiter.join(row) for row in rows]
    if random_.random() < 0.95:
        lines = [delimiter.join(header), *lines]
    else:
        whole = False
    text = newline.join(lines) + newline * random_.randint(0, 2)
    raw = text.encode(random_.choice(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-7"]))
    bitten = _bitten(random_, raw)
    return bitten, whole and bitten[:60] == raw[:60]


def _damage_cells(random_: random.Random, rows: list[list[str]]) -> None:
    """Do one thing to one row."""
    if rows and (row := random_.choice(rows)):
        match random_.randint(0, 6):
            case 0 | 1 | 2:
                row[random_.randrange(len(row))] = secret(random_)
            case 3:
                row[random_.randrange(len(row))] = random_.choice(ODD)
            case 4:
                row.insert(random_.randrange(len(row) + 1), secret(random_))
            case 5:
                row.pop()
            case 6:
                rows.insert(random_.randrange(len(rows)), random_.choice([[], [WORD], row * 3]))


def _bitten(random_: random.Random, raw: bytes) -> bytes:
    """Put odd bytes in a few places, with a secret only behind the header; now and then cut the end off."""
    for _ in range(random_.choice([0, 0, 0, 1, 4])):
        place = random_.randrange(len(raw) + 1)
        junk = random_.choice([b"\xff", b"\xc3", b"\x00", b'"', b"\xed\xa0\x80", random_.randbytes(5)])
        if place > 60:
            junk = random_.choice([junk, b"\xff" + WORD.encode() + b"\xfe"])
        raw = raw[:place] + junk + raw[place:]
    return raw[: random_.randrange(len(raw) + 1)] if random_.random() < 0.05 else raw


@pytest.mark.slow
@pytest.mark.parametrize("batch", batches(CASES, BATCH))
def test_damaged_csv(speak, tmp_path, batch):
    schema, data, release, made = (tmp_path / name for name in ("s.yaml", "d.csv", "r", "o.csv"))
    schema.write_text(SCHEMA, encoding="utf-8")
    fitted = 0
    for case in range(batch * BATCH, (batch + 1) * BATCH):
        random_ = random.Random(case)
        raw, whole = damaged(random_)
        data.write_bytes(raw)
        options = [*random_.choice([(), ("--target", "a"), ("--target", "e"), ("--target", "b")]), "--overwrite"]
        if random_.random() < 0.5:
            options += ["--seed", case]
        # each file has its name, lest the release of an earlier case be looked at
        fit = ("fit", data, "--schema", schema, "--epsilon", 1, "--out", release, *options)
        if speak(case, *fit) == 0:
            fitted += 1
            assert_no_byte(release, f"case {case}")
            assert_silent(repr(load(release)), f"case {case}, repr")
            assert speak(case, "sample", release, "-n", 10, "--out", made, "--overwrite") == 0
            assert_no_byte(made, f"case {case}")
            if case % 5 == 0:
                speak(case, "certificate", release)
                speak(case, "evaluate", "table", data, made, "--schema", schema)
        speak(case, "schema", "check", schema, data)
        if whole:
            _check_reprs(data, case)
        if case % 3 == 0:
            speak(case, "schema", "validate", data, "--schema", schema, private=False)
            speak(case, "schema", "draft", data, "--out", tmp_path / "draft.yaml", "--overwrite", private=False)
    assert fitted > BATCH / 3  # most damage is to cells: it must not stop a fit


def _check_reprs(data: Path, case: int) -> None:
    try:
        source = open_source(data)
        assert_silent(repr(source), f"case {case}, repr of the source")
        for chunk in source.chunks():
            assert_silent(repr(chunk), f"case {case}, repr of a chunk")
        assert_silent(repr(PrivateData(source, tables.read_schema(SCHEMA))), f"case {case}, repr of the records")
    except SfumatoError as error:
        assert_silent(told(error), f"case {case}, error")


class Rude:
    """An object whose every word is the secret."""

    def __str__(self) -> str:
        return WORD

    def __repr__(self) -> str:
        return WORD


class Raising:
    """An object that raises the secret whatever it is asked."""

    def __str__(self) -> str:
        raise RuntimeError(WORD)

    __repr__ = __float__ = __int__ = __bool__ = __str__


ODD_CELLS = [
    WORD, f" {WORD}\n", int(DIGITS), float(DIGITS), -int(DIGITS) ** 3, WORD.encode(), b"\xff" + WORD.encode(),
    None, np.nan, np.inf, pd.NA,
    pd.NaT, True, 3, 0.5, "x", "17", "2000-05-05", dt.date(2000, 5, 5), dt.datetime(1, 1, 1), dt.timedelta(3),
    dt.time(1), Decimal(DIGITS),
    Decimal("NaN"), [WORD], {WORD: DIGITS}, (WORD,), {WORD}, Rude(), Raising(), 1j, np.float32(0.5),
    np.datetime64("NaT"), "\ud800", range(3),
    Rude, pd.Timestamp("2000-05-05", tz="UTC"), np.array([1, 2]), "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("case", slow_after(15, range(40)))
def test_pandas_objects(tmp_path, caplog, case):
    random_ = random.Random(case)
    n = random_.randint(1, 12)
    columns = {}
    for name in HEADER:
        values = pd.Series([random_.choice(ODD_CELLS) for _ in range(n)], dtype=object)
        if random_.random() < 0.2:
            values = pd.Series([str(random_.choice(["x", "7", WORD, DIGITS])) for _ in range(n)]).astype(
                random_.choice(["category", "string", "object"])
            )
        columns[name] = values
    _fit_silently(pd.DataFrame(columns), tmp_path, caplog, case)


@pytest.mark.parametrize("case", range(20))
def test_polars_and_arrow_columns(tmp_path, caplog, case):
    random_ = random.Random(case)
    makers = [
        lambda: pa.array([WORD, None, DIGITS]),
        lambda: pa.array([WORD.encode(), b"\xff\xfe", None]),
        lambda: pa.array([int(DIGITS), 1, None]),
        lambda: pa.array([float(DIGITS), float("nan"), None]),
        lambda: pa.array([Decimal(DIGITS), Decimal(1), None]),
        lambda: pa.array([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), None], pa.timestamp("us")),
        lambda: pa.array([True, False, None]),
        lambda: pa.array([WORD, "x", None]).dictionary_encode(),
        lambda: pa.array([[WORD], [], None]),
        lambda: pa.array([{"k": WORD}, {"k": "x"}, None]),
        lambda: pa.nulls(3),
        lambda: pa.array([dt.timedelta(3), None, dt.timedelta(0)]),
    ]
    table = pa.table({name: random_.choice(makers)() for name in HEADER})
    _fit_silently(table, tmp_path, caplog, case)
    try:
        frame = pl.from_arrow(table)
    except Exception:  # noqa: BLE001 - polars does not have every type
        return
    _fit_silently(frame, tmp_path, caplog, case)
    _fit_silently(frame.with_columns(pl.Series("a", [Rude(), None, Rude()], dtype=pl.Object)), tmp_path, caplog, case)


def _fit_silently(data: object, tmp_path: Path, caplog, case: int) -> None:
    where = f"case {case}"
    assert_silent(repr(open_source(data)) if not _has_objects(data) else "", where)
    try:
        release = MaxEntropy(epsilon=1.0).fit(data, schema=tables.read_schema(SCHEMA), target="a")
    except SfumatoError as error:
        assert_silent(told(error), where)
    else:
        release.save(tmp_path / "r", overwrite=True)
        assert_no_byte(tmp_path / "r", where)
        assert_silent(repr(release), where)
        assert_silent(str(release.sample(20)), where)
    assert_silent(caplog.text, where)


def _has_objects(data: object) -> bool:
    return isinstance(data, pl.DataFrame) and pl.Object in data.dtypes
