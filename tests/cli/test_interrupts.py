"""Ctrl-C at named moments: exit code 0 if and only if the whole output is in place; nothing is ever left beside it."""

import errno
import hashlib
import json
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from fixtures import tables
from fixtures.costly import slow_after
from fixtures.processes import serving
from sfumato import create_ledger, load, read_ledger
from sfumato.cli import output
from sfumato.errors import EstimateError
from sfumato.release.files import ARRAYS, MANIFEST

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")

# One process imports the package and does the accounting; every run is a child of its that interrupts itself: where a
# named function begins or ends, or at the n-th line of those that write a release and end the call.
DRIVER = """
import atexit, contextlib, json, os, re, signal, sys, time
from pathlib import Path
from sfumato.cli import app, data_commands, ending, ledger_commands, output, quality_commands, release_commands
import sfumato.report.write, sfumato.io.sinks
from sfumato.desk import drafting
from sfumato.publish import pack as packing
from sfumato.errors import EstimateError
from sfumato.io import atomic
from sfumato.schema import documents
from sfumato.io import atomic as interrupts
from sfumato.privacy.accounting import account_of_fits
from sfumato.privacy.ledger import Ledger
from sfumato.release import blocks, files
from sfumato.release_front import Release, load
from sfumato.fitting import synthesizer as base
from sfumato.data_ledger import data_ledger, ledger_state
from sfumato import MaxEntropy, PrivacyBudget
from fixtures import tables
from fixtures.accounting import remember
import pytest
from fixtures.sampling import little_effort

remember(setattr)
little_effort(pytest.MonkeyPatch())
blocks.SAMPLE_BLOCK = 128
MaxEntropy(epsilon=1).describe_plan(tables.schema())
plan = MaxEntropy(epsilon=1, delta=1e-5).plan(tables.schema())
Ledger(plan, PrivacyBudget(1, 1e-5))
accounts = [None, account_of_fits([plan], 1e-5, plan.neighbours)]
ledger_state.account_of_fits = lambda plans, *_: accounts[len(plans)]

PLACES = {
    "charge": (data_ledger, "charge"), "statistic": (Ledger, "charge"), "end": (data_ledger.Charge, "_end"),
    "save": (Release, "save"), "write": (files, "_write"), "flush": (atomic, "_flush"),
    "publish": (atomic, "_publish"), "rename": (atomic, "_rename"), "remove": (atomic, "_remove"),
    "cost": (output, "print_cost"), "last words": (release_commands, "tell_written"),
    "say": (output.results, "print"),
    "estimates": (sfumato.report.write, "estimates_of"), "page": (packing, "page_content"),
    "survey": (drafting, "draft_schema"), "rows": (blocks.Decoder, "table"),
}
LINES = {m.__file__ for m in (app, ending, release_commands, atomic, interrupts, contextlib)}

pressed = [0.0]

def interrupt():
    pressed[0] = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)

def arm(place, when, about):
    owner, name = PLACES[place]
    function = getattr(owner, name)
    met = []
    def interrupted(*arguments, **options):
        words = map(str, arguments), (f"{name}={value}" for name, value in options.items())
        now = not met and any(re.search(about, " ".join(some)) for some in words)
        if now:
            met.append(True)
        if now and when == "before":
            interrupt()
        result = function(*arguments, **options)
        if now and when == "after":
            interrupt()
        return result
    setattr(owner, name, interrupted)

def arm_line(n, made):
    lines = 0
    def trace(frame, event, _):
        nonlocal lines
        if frame.f_code.co_filename not in LINES:
            return None
        if event == "line":
            lines += 1
            if lines == n:
                interrupt()
        return trace
    def start(*_, **__):
        frame = sys._getframe(1)
        while frame is not None:
            frame.f_trace = trace
            frame = frame.f_back
        sys.settrace(trace)
        return release
    release = load(made)
    MaxEntropy.fit = start
    return lambda: lines

for line in sys.stdin:
    moments, arguments = json.loads(line)
    said, saying = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(saying, 1)
        os.dup2(saying, 2)
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # what it was before may have been a file
        signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts us may ignore it
        count = int
        for place, *moment in moments:
            if place == "line":
                count = arm_line(*moment)
            elif place == "exit":
                atexit.register(interrupt)
            else:
                arm(place, *moment)
        try:
            app.main(arguments)
        except SystemExit as leave:
            sys.settrace(None)
            print("Seconds since:", time.monotonic() - pressed[0])
            print("Lines:", count())
            if moments[0][0] == "exit":
                raise
            sys.stdout.flush()
            os._exit(leave.code)  # the end of an interpreter takes longer than all the rest
    os.close(saying)
    text = os.fdopen(said).read()
    _, status = os.waitpid(child, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), text]), flush=True)
"""
PARTIAL = r"\.partial$"


@pytest.fixture(scope="module")
def driver():
    with serving(DRIVER, COLUMNS="200") as process:
        yield process


@pytest.fixture(scope="module")
def interrupted(driver):
    """Run a command that is interrupted at these moments; return its exit code and what it said."""

    def run(moments: list[tuple], *arguments: object) -> tuple[int, str]:
        request = [[str(part) if isinstance(part, Path) else part for part in moment] for moment in moments]
        driver.stdin.write(json.dumps([request, [str(a) for a in arguments]]) + "\n")
        driver.stdin.flush()
        code, said = json.loads(driver.stdout.readline())
        assert "Traceback" not in said
        assert "unexpected error" not in said, said
        assert code in {0, 1}, (code, said)
        assert said.count("Error: Interrupted. ") == code, said
        return code, said

    return run


@pytest.fixture
def folder(tmp_path):
    """Data, a schema, and a folder with a ledger."""
    folder = tmp_path / "folder"
    (folder / "books").mkdir(parents=True)
    tables.write_csv(folder / "people.csv")
    (folder / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    create_ledger(folder / "books" / "l", epsilon=5, delta=1e-5)
    return folder


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def fit(folder: Path, out: str) -> list[object]:
    options = ["--epsilon", 1, "--delta", 1e-5, "--out", folder / out]
    return ["fit", folder / "people.csv", "--schema", folder / "schema.yaml", *options]


class TestFit:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("place", "when", "status"),
        [
            ("charge", "before", []),
            ("charge", "after", ["killed"]),
            ("statistic", "before", ["failed"]),
            ("statistic", "after", ["failed"]),
            ("end", "before", ["killed"]),
            ("end", "after", ["finished"]),
            ("save", "before", ["finished"]),
            ("write", "before", ["finished"]),
            ("write", "after", ["finished"]),
            ("publish", "before", ["finished"]),
            ("flush", "after", ["finished"]),
        ],
    )
    def test_before_the_release_is_in_place(self, interrupted, folder, place, when, status):
        """Nothing is written; what was charged stays charged, also where the fit's own note of its end is missing."""
        before = names(folder)
        about = {"publish": "/r.sfm$", "flush": r"/\.r\.sfm.*\.partial$"}.get(place, "")
        code, _ = interrupted([(place, when, about)], *fit(folder, "r.sfm"), "--ledger", folder / "books" / "l")
        assert code == 1
        assert names(folder) == before
        assert [entry.status for entry in read_ledger(folder / "books" / "l").fits] == status

    @pytest.mark.parametrize("out", slow_after(1, ["r", "r.sfm"]))
    @pytest.mark.parametrize(
        ("place", "when", "about"),
        [
            ("rename", "before", "/r(.sfm)?$"),
            ("rename", "after", "/r(.sfm)?$"),
            ("flush", "before", "/folder$"),
            ("flush", "after", "/folder$"),
            ("publish", "after", "/r(.sfm)?$"),
            ("remove", "before", r"/\.r\..*\.partial$"),
            ("save", "after", ""),
            ("cost", "before", ""),
            ("last words", "before", ""),
            ("last words", "after", ""),
        ],
    )
    def test_once_it_is_in_place(self, interrupted, folder, out, place, when, about):
        """The holder is told that the release is whole, and that it was charged."""
        ledger = folder / "books" / "l"
        code, said = interrupted([(place, when, about)], *fit(folder, out), "--ledger", ledger)
        assert code == 0
        assert f"Interrupted after {folder / out} was written: it is complete" in said
        assert f", and the ledger {ledger} is charged for it." in said
        assert f"Wrote {folder / out}." in said
        assert load(folder / out).certificate.private
        assert [entry.status for entry in read_ledger(ledger).fits] == ["finished"]
        assert not re.search(PARTIAL, "\n".join(names(folder)), re.M)

    def test_without_a_ledger(self, interrupted, folder):
        _, said = interrupted([("rename", "after", "")], *fit(folder, "r"))
        assert f"Interrupted after {folder / 'r'} was written: it is complete." in said

    def test_while_the_process_ends(self, interrupted, folder):
        code, said = interrupted([("exit",)], *fit(folder, "r.sfm"))
        assert (code, "Interrupted" in said) == (0, False)
        assert load(folder / "r.sfm").certificate.private

    def test_again_and_again(self, interrupted, folder):
        before = names(folder)
        twice = [("write", "after", ""), ("remove", "before", r"/\.r\..*\.partial$")]
        assert interrupted(twice, *fit(folder, "r"))[0] == 1
        assert names(folder) == before
        often = [(place, when, "") for place in ("rename", "cost", "last words") for when in ("before", "after")]
        assert interrupted(often, *fit(folder, "r"))[0] == 0
        assert load(folder / "r").certificate.private


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("out", slow_after(1, ["r.sfm", "r"]))
def test_at_every_line(interrupted, folder, out, step):
    """From the end of the fit to the end of the program: no line lies between the release and the exit code."""
    path, made = folder / out, folder / "made"
    for name, seed in (("made", ["--seed", 1]), (out, [])):
        assert interrupted([("last words", "after", "")], *fit(folder, name), *seed)[0] == 0
    if out == "r.sfm":  # a new file; the folder takes another's place
        path.unlink()
    path.rename(folder / "kept") if path.exists() else None
    codes, lines, n = [], 0, 0
    while n <= lines:
        shutil.copytree(folder / "kept", path) if out == "r" else None
        before = names(folder)
        code, said = interrupted([("line", n, made)], *fit(folder, out), "--overwrite")
        assert is_private(path) is (False if code == 0 else True if out == "r" else None)
        assert names(folder) == (before | {out} if code == 0 else before)
        codes.append(code)
        lines = int(said.rpartition("Lines: ")[2]) if n == 0 else lines  # nothing happens at line 0
        shutil.rmtree(path, ignore_errors=True) if out == "r" else path.unlink(missing_ok=True)
        n += step
    assert codes[1:] == sorted(codes[1:], reverse=True)
    assert {*codes[1:]} == {0, 1}


def is_private(path: Path) -> bool | None:
    """Read a release, whole, and quicker than `load`; None if there is none."""
    if not path.exists():
        return None
    read = zipfile.ZipFile(path).read if path.is_file() else lambda name: (path / name).read_bytes()
    manifest = json.loads(read(MANIFEST))
    assert hashlib.sha256(read(ARRAYS)).hexdigest() == manifest["arrays"]["sha256"]
    return manifest["certificate"]["private"]


COMMANDS = {
    "sample csv": ("sample", "r", "-n", 300, "--out", "OUT.csv"),
    "sample parquet": ("sample", "r", "-n", 300, "--out", "OUT.parquet"),
    "sample images": ("sample", "pictures", "-n", 9, "--out", "OUT"),
    "sample npz": ("sample", "pictures", "-n", 300, "--out", "OUT.npz"),
    "report": ("report", "r", "--out", "OUT.html"),
    "pack": ("publish", "pack", "r", "--out", "OUT"),
    "schema draft": ("schema", "draft", "people.csv", "--out", "OUT.yaml"),
    "schema import": ("schema", "import", "domain.json", "--format", "domain", "--out", "OUT.yaml"),
    "ledger create": ("ledger", "create", "OUT.ledger", "--epsilon", 1, "--delta", 1e-6),
    "tune": (
        "model", "tune", "people.csv", "--schema", "schema.yaml", "--epsilon", 1, "--delta", 1e-5, "--repetitions", 1.5,
        "--grid", "purpose=fidelity,training", "--target", "income", "--seed", 1, "--out", "OUT.sfm",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, interrupted):
    """Releases of a table and of pictures, made once."""
    folder = tmp_path_factory.mktemp("inputs")
    tables.write_csv(folder / "people.csv")
    tables.write_npz(folder / "pictures.npz")
    (folder / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    (folder / "pictures.yaml").write_text(tables.IMAGE_SCHEMA_TEXT, encoding="utf-8")
    (folder / "domain.json").write_text('{"a": 3, "b": 2}', encoding="utf-8")
    late = [("last words", "after", "")]
    assert interrupted(late, *fit(folder, "r"))[0] == 0
    options = ["--schema", folder / "pictures.yaml", "--epsilon", 1, "--out", folder / "pictures"]
    assert interrupted(late, "fit", folder / "pictures.npz", *options)[0] == 0
    return folder


def arguments_of(command: str, inputs: Path, folder: Path) -> tuple[object, ...]:
    """A command whose output goes to a folder, and whose inputs are there."""
    first, *parts = COMMANDS[command]
    place = {part: folder / part for part in parts if str(part).startswith("OUT")}
    place |= {path.name: path for path in inputs.iterdir()}
    return first, *(place.get(part, part) for part in parts)


@pytest.mark.parametrize(
    ("command", "moment"),
    [
        ("sample csv", ("rows", "after", "start=128")),
        ("report", ("estimates", "after", "")),
        ("pack", ("page", "before", "")),
        ("schema draft", ("survey", "before", "")),
    ],
)
def test_in_the_midst_of_the_work(interrupted, inputs, tmp_path, command, moment):
    """Whether the partial output is begun or not, it is gone within two seconds."""
    code, said = interrupted([moment], *arguments_of(command, inputs, tmp_path))
    assert code == 1
    assert not names(tmp_path)
    assert float(said.rpartition("Seconds since: ")[2].split()[0]) < 2


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_output(interrupted, inputs, tmp_path, command):
    (name,) = (part for part in COMMANDS[command] if str(part).startswith("OUT"))
    arguments = arguments_of(command, inputs, tmp_path)
    locks = {f"{name}.lock"}
    for moment in (("publish", "before", ""), ("flush", "after", PARTIAL)):
        assert interrupted([moment], *arguments)[0] == 1
        assert names(tmp_path) <= locks
    whole = f"{re.escape(str(tmp_path / name))}$"  # not a file inside of a folder
    for moment in (("rename", "before", whole), ("rename", "after", whole), ("say", "before", "Wrote")):
        code, said = interrupted([moment], *arguments)
        assert code == 0
        assert f"Interrupted after {tmp_path / name} was written: it is complete." in said
        assert "Wrote" in said
        assert {part for part in names(tmp_path) if "/" not in part} - locks == {name}
        shutil.rmtree(tmp_path / name) if (tmp_path / name).is_dir() else (tmp_path / name).unlink()


class TestNobodyListens:
    """What cannot be said any more does not undo what was written."""

    def test_a_disk_that_is_full(self, folder, call, monkeypatch):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, "private text")

        monkeypatch.setattr(output.results, "print", full)
        result = call(*fit(folder, "r"))
        assert result.code == 0
        assert (
            f"{folder / 'r'} was written and is complete. Showing the result failed: Cannot write to standard"
            in result.err
        )
        assert "private text" not in result.err
        assert load(folder / "r").certificate.private

    def test_an_error_after_the_output(self, folder, call, monkeypatch):
        """It is no success, although the output is whole."""

        def broken(*_, **__):
            if (folder / "r.sfm").exists():
                raise EstimateError("No answer.")

        monkeypatch.setattr(output.results, "print", broken)
        result = call(*fit(folder, "r.sfm"))
        assert result.code == 1
        assert "Error: " in result.err
        assert "was written and is complete" in " ".join(result.err.split())
        assert load(folder / "r.sfm").certificate.private

    def test_a_closed_pipe(self, folder, call, monkeypatch):
        def closed(*_, **__):
            if (folder / "r.sfm").exists():
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

        monkeypatch.setattr(output.results, "print", closed)
        monkeypatch.setattr(output.notes, "print", closed)
        assert call(*fit(folder, "r.sfm")).code == 0
        assert load(folder / "r.sfm").certificate.private
