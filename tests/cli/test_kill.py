"""`kill -9` at any moment: a release or a sample is there whole or not at all, and the next run works."""

import json
import os
import signal
from pathlib import Path

import pandas as pd
import pytest

from fixtures import tables
from fixtures.processes import serving
from sfumato.release_front import load

# One process imports the package and does the accounting; every run is a child of its, killed at the place that the
# request names. Nothing before the fork may start a thread.
DRIVER = """
import json, os, signal, sys
from pathlib import Path
import pyarrow.parquet as pq
import sfumato
from sfumato.cli.app import run
from sfumato.io import atomic
from sfumato.io import folders as folder_sink
from sfumato.io import sinks
from sfumato.privacy.ledger import Ledger

from fixtures import tables
from fixtures.accounting import remember
import pytest
from fixtures.sampling import little_effort
from sfumato import MaxEntropy, PrivacyBudget

remember(setattr)
little_effort(pytest.MonkeyPatch())
synthesizer = MaxEntropy(epsilon=1)
synthesizer.describe_plan(tables.schema())
Ledger(synthesizer.plan(tables.schema()), PrivacyBudget(1, 1e-5))

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def dying(function, call):
    seen = []
    def wrapped(*arguments, **options):
        seen.append(None)
        if len(seen) == call:
            die()
        return function(*arguments, **options)
    return wrapped

def die_at_call(n):
    package = os.path.dirname(sfumato.__file__)
    calls = 0
    def trace(frame, event, _):
        nonlocal calls
        calls += frame.f_code.co_filename.startswith(package)  # one call: lines are not traced
        if calls == n:
            die()
    sys.settrace(trace)

def arm(place, call):
    if place == "any":
        return die_at_call(call)
    owner, name = {
        "charge": (Ledger, "charge"), "close": (Ledger, "close"), "mkdir": (Path, "mkdir"),
        "write": (Path, "write_bytes"), "flush": (atomic, "_flush"), "rename": (Path, "rename"),
        "replace": (Path, "replace"), "remove": (atomic, "_remove"), "csv batch": (sinks, "csv_body"),
        "parquet batch": (pq.ParquetWriter, "write_table"), "picture": (folder_sink, "png_bytes"),
    }[place]
    setattr(owner, name, dying(getattr(owner, name), call))

for line in sys.stdin:
    place, call, arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")
        if place:
            arm(place, call)
        os._exit(run(arguments))
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def driver():
    with serving(DRIVER) as process:
        yield process


@pytest.fixture
def kill(driver, tmp_path):
    """Run a command in a process of its own that dies at a place; return its exit code, -9 if it got there."""
    tables.write_csv(tmp_path / "people.csv")
    (tmp_path / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")

    def killing(*arguments: object, place: str = "", call: int = 1) -> int:
        driver.stdin.write(json.dumps([place, call, [str(argument) for argument in arguments]]) + "\n")
        driver.stdin.flush()
        return int(driver.stdout.readline())

    return killing


def fit(folder: Path, out: str = "r") -> tuple[object, ...]:
    schema = folder / "schema.yaml"
    return ("fit", folder / "people.csv", "--schema", schema, "--epsilon", 1, "--out", folder / out)


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"people.csv", "schema.yaml"}


def is_partial(name: str) -> bool:
    return name.startswith(".") and name.endswith(".partial")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("out", "place", "count"),
    [("r", "charge", 1), ("r", "charge", 2), ("r", "close", 1), ("r", "mkdir", 1), ("r", "write", 1), ("r", "write", 2),
     ("r", "flush", 1), ("r", "flush", 3), ("r", "replace", 1), ("r.sfm", "close", 1), ("r.sfm", "flush", 1),
     ("r.sfm", "replace", 1)],
)  # fmt: skip
def test_before_the_rename_there_is_no_release(kill, call, tmp_path, out, place, count):
    assert kill(*fit(tmp_path, out), place=place, call=count) == -signal.SIGKILL
    assert all(map(is_partial, left(tmp_path)))
    # the leftovers disturb neither a second fit nor what follows
    assert call(*fit(tmp_path, out)).code == 0
    assert load(tmp_path / out).certificate.private
    assert call("sample", tmp_path / out, "-n", 5, "--out", tmp_path / "s.csv").code == 0


def test_after_the_rename_the_release_is_whole(kill, tmp_path):
    assert kill(*fit(tmp_path), place="flush", call=4) == -signal.SIGKILL  # of the folder, once renamed
    assert left(tmp_path) == {"r"}
    assert load(tmp_path / "r").certificate.private


@pytest.mark.parametrize(
    ("place", "count"), [("charge", 1), ("write", 2), ("flush", 3), ("rename", 1), ("rename", 2), ("remove", 1)]
)
def test_an_overwrite_leaves_the_old_or_the_new_or_none(kill, call, tmp_path, place, count):
    assert call(*fit(tmp_path)).code == 0
    before = (tmp_path / "r" / "manifest.json").read_bytes()
    assert kill(*fit(tmp_path), "--overwrite", place=place, call=count) == -signal.SIGKILL
    if "r" in left(tmp_path):
        load(tmp_path / "r")
    if place in {"charge", "write", "flush"} or (place, count) == ("rename", 1):
        assert (tmp_path / "r" / "manifest.json").read_bytes() == before
    assert all(is_partial(name) for name in left(tmp_path) - {"r"})
    assert call(*fit(tmp_path), "--overwrite").code == 0
    assert load(tmp_path / "r").certificate.private


@pytest.mark.slow
def test_at_any_call(kill, call, tmp_path):
    """At the 1st, 3rd, 9th, ... call of a function of the package, until a fit gets through."""
    codes = []
    while not codes or codes[-1] == -signal.SIGKILL:
        out = f"r{len(codes)}"
        codes.append(kill(*fit(tmp_path, out), place="any", call=3 ** len(codes)))
        if out in left(tmp_path):
            load(tmp_path / out)
        else:
            assert codes[-1] == -signal.SIGKILL
    assert codes[-1] == 0
    assert len(codes) > 5
    assert all(is_partial(name) or name.startswith("r") for name in left(tmp_path))
    assert call(*fit(tmp_path)).code == 0


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_a_sample(kill, call, tmp_path, name):
    assert call(*fit(tmp_path)).code == 0
    target = tmp_path / name
    endless = ("sample", tmp_path / "r", "-n", 10**9, "--out", target)
    assert kill(*endless, place=f"{target.suffix[1:]} batch", call=3) == -signal.SIGKILL
    assert kill("sample", tmp_path / "r", "-n", 9, "--out", target, place="replace") == -signal.SIGKILL
    assert not target.exists()
    assert all(is_partial(left_over) for left_over in left(tmp_path) - {"r"})
    assert call("sample", tmp_path / "r", "-n", 9, "--out", target).code == 0
    made = pd.read_csv(target) if name == "s.csv" else pd.read_parquet(target)
    assert len(made) == 9


def test_a_sample_of_pictures(kill, call, tmp_path):
    tables.write_npz(tmp_path / "pictures.npz")
    (tmp_path / "schema.yaml").write_text(tables.IMAGE_SCHEMA_TEXT, encoding="utf-8")
    release, target = tmp_path / "r", tmp_path / "s"
    options = ("--schema", tmp_path / "schema.yaml", "--epsilon", 1, "--out", release)
    assert call("fit", tmp_path / "pictures.npz", *options).code == 0
    assert kill("sample", release, "-n", 10**9, "--out", target, place="picture", call=100) == -signal.SIGKILL
    assert kill("sample", release, "-n", 9, "--out", target, place="write", call=5) == -signal.SIGKILL
    assert kill("sample", release, "-n", 9, "--out", target, place="replace") == -signal.SIGKILL
    assert not target.exists()
    assert all(is_partial(name) for name in left(tmp_path) - {"r", "pictures.npz"})
    assert call("sample", release, "-n", 9, "--out", target).code == 0
    assert len(list(target.rglob("*.png"))) == 9
