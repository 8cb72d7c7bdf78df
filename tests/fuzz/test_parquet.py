"""Damaged and odd Parquet files through the command line, full of secrets: 100 cases, 2,500 in the slow tests."""

import datetime as dt
import io
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.cases import batches
from fuzz.planted import DIGITS, WORD, assert_no_byte, assert_silent
from fuzz.test_tables import SCHEMA
from sfumato import load

CASES, BATCH = 100, 100
N = 12

MAKERS = [
    lambda r: pa.array([r.choice(["x", "y", "z", WORD, None]) for _ in range(N)]),
    lambda r: pa.array([r.choice(["x", WORD, None]) for _ in range(N)]).dictionary_encode(),
    lambda r: pa.array([r.choice([WORD.encode(), b"\xff" + WORD.encode(), None]) for _ in range(N)]),
    lambda r: pa.array([r.choice([1, 7, int(DIGITS), None]) for _ in range(N)], r.choice([pa.int64(), pa.uint32()])),
    lambda r: pa.array([r.choice([0.5, float(DIGITS), float("nan"), float("inf"), None]) for _ in range(N)]),
    lambda r: pa.array([r.choice([Decimal(DIGITS), Decimal("1.5"), None]) for _ in range(N)]),
    lambda r: pa.array([dt.datetime(r.choice([1, 2000, 2001, 9999]), 1, 1) for _ in range(N)], pa.timestamp("us")),
    lambda r: pa.array([dt.datetime(2000, 1, 1)] * N, pa.timestamp("ms", r.choice(["UTC", "Europe/Riga"]))),
    lambda r: pa.array([r.choice([dt.date(2000, 5, 5), None]) for _ in range(N)]),
    lambda r: pa.array([r.choice([True, False, None]) for _ in range(N)]),
    lambda r: pa.array([r.choice([[WORD], [], None]) for _ in range(N)]),
    lambda r: pa.array([r.choice([{"k": WORD}, None]) for _ in range(N)]),
    lambda r: pa.nulls(N),
    lambda r: pa.array([dt.time(1)] * N),
    lambda r: pa.array([dt.timedelta(3)] * N),
]
SOUND = {
    "id": lambda r: pa.array([f"{WORD}{i}" for i in range(N)]),
    "a": lambda r: pa.array([r.choice("xyz") for _ in range(N)]),
    "b": lambda r: pa.array([r.randint(0, 50) for _ in range(N)]),
    "c": lambda r: pa.array([r.choice([None, r.uniform(-1, 1)]) for _ in range(N)]),
    "d": lambda r: pa.array([dt.datetime(2000, r.randint(1, 12), 5) for _ in range(N)], pa.timestamp("s")),
    "e": lambda r: pa.array([r.random() < 0.5 for _ in range(N)]),
}


def damaged(random_: random.Random) -> bytes:
    """A Parquet file with columns of odd types and contents, and now and then with wrong bytes."""
    columns = {
        name: (make if random_.random() < 0.75 else random_.choice(MAKERS))(random_) for name, make in SOUND.items()
    }
    names = [random_.choice(["b", "", "B", "other", WORD[:0]]) if random_.random() < 0.02 else name for name in columns]
    table = pa.table(list(columns.values()), names=names)
    if random_.random() < 0.1:
        table = table.slice(0, 0)
    if random_.random() < 0.3:
        table = table.replace_schema_metadata({b"pandas": WORD.encode(), b"note": WORD.encode()})
    sink = io.BytesIO()
    options = {
        "compression": random_.choice(["none", "snappy", "zstd"]),
        "use_dictionary": random_.random() < 0.5,
        "row_group_size": random_.choice([1, 5, N]),
        "data_page_version": random_.choice(["1.0", "2.0"]),
    }
    pq.write_table(table, sink, **options)
    raw = bytearray(sink.getvalue())
    if random_.random() < 0.4:
        for _ in range(random_.choice([1, 1, 3, 20])):
            raw[random_.randrange(len(raw))] = random_.randrange(256)
    if random_.random() < 0.05:
        del raw[random_.randrange(len(raw)) :]
    if random_.random() < 0.03:
        raw = bytearray(random_.choice([b"", b"PAR1", b"PAR1PAR1", WORD.encode(), b"PAR1" + WORD.encode() + b"PAR1"]))
    return bytes(raw)


@pytest.mark.filterwarnings("ignore:Storage types are published:sfumato.errors.PrivacyWarning")
@pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")  # of 100 rows nothing stands out from noise
@pytest.mark.parametrize("batch", batches(CASES, BATCH))
@pytest.mark.slow
def test_damaged_parquet(speak, tmp_path, batch):
    schema, data, release, made = (tmp_path / name for name in ("s.yaml", "d.parquet", "r", "o.parquet"))
    schema.write_text(SCHEMA, encoding="utf-8")
    fitted = 0
    for case in range(batch * BATCH, (batch + 1) * BATCH):
        random_ = random.Random(case)
        data.write_bytes(damaged(random_))
        target = random_.choice([(), ("--target", "a"), ("--target", "e")])
        if speak(case, "fit", data, "--schema", schema, "--epsilon", 1, "--out", release, "--overwrite", *target) == 0:
            fitted += 1
            assert_no_byte(release, f"case {case}")
            assert_silent(repr(load(release)), f"case {case}, repr")
            assert speak(case, "sample", release, "-n", 10, "--out", made, "--overwrite") == 0
            assert_no_byte(made, f"case {case}")
        speak(case, "schema", "check", schema, data)
        if case % 5 == 0:
            # without a schema, all is bought; names and types of columns are public
            bought = ("--epsilon", 1, "--delta", 1e-6, "--rows", 100, "--out", release, "--overwrite")
            if speak(case, "fit", data, *bought) == 0:
                assert_no_byte(release, f"case {case}, without a schema")
            speak(case, "schema", "validate", data, "--schema", schema, private=False)
            speak(case, "schema", "draft", data, "--out", tmp_path / "draft.yaml", "--overwrite", private=False)
    assert fitted > BATCH / 10
