"""A thousand random strings of 64 bits in the records: not one is in any byte that a fit leaves behind.

Each is planted as text, as an integer and as a float, and looked for as text of one and of two bytes a letter and as
eight bytes in either order: in the release, the checkpoint, the ledger, files on the way, logs, output and errors.
"""

import logging
import re
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="networks need the extra nets")

from fixtures.methods import DATA_SETS, QUICK
from fuzz.planted import told
from sfumato import MaxEntropy, create_ledger, load
from sfumato.cli.app import run
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKernelKMeans, DPKMeans
from sfumato.io.sources import open_source
from sfumato.methods.tables.cell_counts import CellCounts
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

pytestmark = pytest.mark.usefixtures("coarse_accounts")

N = 1_000
WORDS = np.frombuffer(np.random.default_rng(20260101).bytes(8 * N), dtype="<u8")
TEXTS = [f"{word:016x}" for word in WORDS]
WHOLE = WORDS.view("<i8")
FLOATS = ((WORDS >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view("<f8")  # in [1, 2), 52 random bits
NUMBERS = (WORDS >> np.uint64(11)).astype(np.int64)  # 53 random bits: as long as numbers are taken exactly

SCHEMA = Schema.from_dict(
    {
        "rows": N,
        "columns": {
            "id": {"kind": "identifier"},
            "word": {"kind": "categorical", "categories": ["a", "b"], "other": "else"},
            "number": {"kind": "integer", "lower": 0, "upper": 2**53 - 1},
            "whole": {"kind": "integer", "lower": -1000, "upper": 1000},
            "share": {"kind": "continuous", "lower": 1, "upper": 2},
            "label": {"kind": "boolean"},
        },
    }
)


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {"id": TEXTS, "word": TEXTS, "number": NUMBERS, "whole": WHOLE, "share": FLOATS, "label": WORDS % 2 == 1}
    )


def _needles() -> dict[int, list[bytes]]:
    """All forms of all strings, by the number that their first eight bytes are."""
    forms: list[bytes] = []
    for text, whole, number, share in zip(TEXTS, WHOLE, NUMBERS, FLOATS, strict=True):
        for shown in (text, str(whole), str(number), repr(float(share))[:15]):
            forms += [shown.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")]
        for value in (whole, number, share):
            forms += [value.tobytes(), value.tobytes()[::-1]]
        forms.append(bytes.fromhex(text))
    found: dict[int, list[bytes]] = {}
    for form in forms:
        found.setdefault(int.from_bytes(form[:8], "little"), []).append(form)
    return found


NEEDLES = _needles()
STARTS = np.sort(np.array(list(NEEDLES), dtype=np.uint64))


def shown_in(content: bytes) -> bytes | None:
    """The first planted string in some bytes, if there is one."""
    for offset in range(8):
        cut = content[offset:]
        windows = np.frombuffer(cut[: len(cut) // 8 * 8], dtype="<u8")
        place = np.searchsorted(STARTS, windows).clip(max=len(STARTS) - 1)
        for i in np.flatnonzero(STARTS[place] == windows):
            for form in NEEDLES[int(windows[i])]:
                if cut[8 * i : 8 * i + len(form)] == form:
                    return form
    return None


def assert_silent(text: str, where: str) -> None:
    for code in ("utf-8", "utf-16-le"):
        assert shown_in(text.encode(code, "replace")) is None, f"{where} shows a planted string"


def assert_no_file(folder: Path, where: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            assert shown_in(path.read_bytes()) is None, f"{where}: {path.name} holds a planted string"


@pytest.fixture
def watched(tmp_path, monkeypatch, capfd, caplog):
    """A folder for all files; whatever was said and written is searched, also while a fit runs."""
    caplog.set_level(logging.DEBUG)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    monkeypatch.chdir(home)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield home
    out, err = capfd.readouterr()
    for text in (out, err, caplog.text, *(str(w.message) for w in said)):
        assert_silent(text, "what was said")
    assert_no_file(home, "at the end")


def test_the_search_finds_every_form(tmp_path):
    for form in [form for forms in list(NEEDLES.values())[::97] for form in forms]:
        assert shown_in(b"x" * 13 + form + b"yz") == form
    assert shown_in(np.random.default_rng(0).bytes(10**6)) is None
    for table in (frame().to_csv().encode(), frame()["share"].to_numpy().tobytes()):
        assert shown_in(table) is not None
    frame().to_parquet(tmp_path / "p", compression="none")
    assert shown_in((tmp_path / "p").read_bytes()) is not None


def _marked(methods):
    marks = (pytest.mark.audit, pytest.mark.slow)
    return [name if name == "max-entropy" else pytest.param(name, marks=marks) for name in methods]


@pytest.mark.parametrize("target", [None, "label"])
@pytest.mark.parametrize("method", _marked({**QUICK, **DATA_SETS}))
def test_methods(watched, method, target):
    create_ledger(watched / "people.ledger", epsilon=9, delta=1e-4)
    make = {**QUICK, **DATA_SETS}[method](epsilon=2.0)
    calls = []

    def progress(stage):
        calls.append(stage)
        if len(calls) % 8 == 1:
            assert_no_file(watched, f"during {stage}")

    options = {"checkpoint": watched / "fit.checkpoint"} if make.resumable else {}
    release = make.fit(
        frame(), schema=SCHEMA, target=target, progress=progress, ledger=watched / "people.ledger", **options
    )
    assert calls
    assert (watched / "fit.checkpoint").exists() == make.resumable
    release.save(watched / "r")
    release.save(watched / "r.sfm")
    assert_silent(repr(release) + repr(make) + repr(release.certificate.to_dict()), "a repr")
    loaded = load(watched / "r")
    if method not in DATA_SETS:
        loaded.sample(200).to_csv(watched / "s.csv")


def test_discovery(watched):
    opened = OpenSchema.of(open_source(frame()), {"word": "categorical", "share": "continuous"}, rows=N)
    release = MaxEntropy(epsilon=8.0).fit(frame(), schema=opened)
    release.save(watched / "r")
    release.sample(200).to_csv(watched / "s.csv")
    assert_silent(repr(opened) + repr(release), "a repr")


def test_the_command_line(watched, tmp_path):
    people = tmp_path / "people.csv"  # outside: the records themselves are not searched
    frame().to_csv(people, index=False)
    for command in (
        ("ledger", "create", "l", "--epsilon", 20, "--delta", 1e-4),
        ("fit", people, "--epsilon", 8, "--delta", 1e-6, "--rows", "estimate", "--out", "r", "--ledger", "l"),
        ("certificate", "r"),
        ("sample", "r", "-n", 50, "--out", "s.csv"),
        ("ledger", "show", "l"),
    ):
        assert run([str(part) for part in command]) == 0, command


@pytest.mark.parametrize("error", [RuntimeError, ValueError, MemoryError, OSError, KeyboardInterrupt])
def test_an_error_in_the_middle(watched, monkeypatch, error, capfd, tmp_path):
    """Whatever a library says of a record stays unsaid on the command line, and no file stays."""

    def failing(self, total, rows):
        raise error(f"cannot add {rows['number'][0]!r} of {TEXTS[0]}")

    monkeypatch.setattr(CellCounts, "add", failing)
    people, schema = tmp_path / "people.csv", tmp_path / "schema.yaml"
    frame().to_csv(people, index=False)
    SCHEMA.save(schema)
    assert run(["fit", str(people), "--schema", str(schema), "--epsilon", "1", "--out", "r.sfm"]) == 1
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    assert len(re.findall("Error: ", err)) == 1
    assert_silent(out + err, "an error")
    assert not list(watched.iterdir())


PUBLIC = {"epsilon": 2.0, "n_public": N, "bounds": (1.0, 2.0)}


@pytest.mark.parametrize(
    "make",
    [partial(DPGaussianMixture, 2), partial(DPFactorAnalysis, 1), partial(DPKMeans, 2), partial(DPKernelKMeans, 2)],
    ids=["mixture", "factors", "k-means", "kernel k-means"],
)
def test_estimators(watched, make):
    points = FLOATS.reshape(-1, 4)
    fitted = make(**{**PUBLIC, "n_public": len(points)}).fit(points)
    (watched / "parameters").write_bytes(
        b"".join(v.tobytes() for v in vars(fitted).values() if isinstance(v, np.ndarray))
    )
    assert_silent(repr(fitted) + repr(fitted.certificate_), "a repr")
    if not isinstance(fitted, DPKernelKMeans):
        fitted.release().save(watched / "r")


def test_records_that_cannot_be_fitted(watched):
    """Errors about records, with all they hang on to."""
    wrong = Schema.from_dict(
        {
            "rows": N,
            "columns": {
                "word": {"kind": "datetime", "lower": "2020-01-01", "upper": "2021-01-01"},
                "gone": {"kind": "boolean"},
            },
        }
    )
    table = frame().assign(word=[[text] for text in TEXTS])
    for schema in (wrong, SCHEMA):
        try:
            MaxEntropy(epsilon=1.0).fit(table, schema=schema)
        except Exception as error:  # noqa: BLE001 - whatever it is
            assert_silent(told(error), "an error")
            assert_silent(told(sys.exception()), "its context")
