"""Files of strangers: whatever they are, a sentence comes soon and in little memory."""

import io
import json
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest

from sfumato.errors import SchemaError
from sfumato.io.untrusted import UnreadableFileError, UntrustedZip, read_bounded
from sfumato.schema.schema import Schema

SECONDS, BYTES = 2, 300 << 20
CALL = """
import json, os, resource, sys, time
import sfumato, sfumato.cli.configuration, sfumato.holders.cards, sfumato.release.signature, sfumato.standards.ddi
from sfumato.errors import SfumatoError
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (int(open("/proc/self/statm").read().split()[0]) * 4096 + {most},) * 2)
found = []
for call in json.loads(sys.argv[1]):
    start, problem = time.process_time(), ""
    try:
        eval(call)
    except SfumatoError as error:
        problem = str(error)
    found.append([call, problem, time.process_time() - start])
print(json.dumps(found))
"""
SCHEMAS = {
    "categories": "columns: {a: {kind: categorical, categories: {file: PLACE, column: code}}}\nrows: 9",
    "items": "columns: {a: {kind: set, items: {file: PLACE, column: code}, max_length: 2}}\nrows: 9",
    "map": "columns: {a: [x, y], b: [u, v]}\nrows: 9\nrules: [{derived: b, from: a, map: PLACE}]",
}
READERS = {
    "schema": "sfumato.Schema.load({path!r})",
    "open schema": "sfumato.OpenSchema.load({path!r})",
    "configuration": "sfumato.cli.configuration._read(Path({path!r}))",
    "ledger": "sfumato.read_ledger({path!r})",
    "card": "sfumato.holders.cards.Card.read(Path({path!r}))",
    "keys": "sfumato.holders.cards.Keys.read(Path({path!r}))",
    "signature": "sfumato.release.signature.read_signature(Path({path!r}))",
    "release": "sfumato.load({path!r})",
    "combined": "sfumato.CombinedRelease.load({path!r})",
    "parts": "sfumato.combine_releases([{path!r}] * 2, disjoint=True)",
    "DDI": "sfumato.standards.ddi.read_xml({path!r})",
    "checkpoint": "sfumato.data_ledger.journal.Journal({path!r}, {{}})",
}


def outcomes(*calls: str) -> list[str]:
    """The sentences that calls end with, in a process of little memory."""
    program = [sys.executable, "-c", CALL.format(most=BYTES), json.dumps(calls)]
    run = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    for call, problem, seconds in json.loads(run.stdout):
        assert seconds < SECONDS, call
        assert 0 < len(problem) < 1000, call
    return [problem for _, problem, _ in json.loads(run.stdout)]


def loading(path: Path) -> str:
    return READERS["schema"].format(path=str(path))


@pytest.fixture(params=["device", "pipe", "folder", "large", "link"])
def place(request, tmp_path):
    """A path that is no document."""
    path = tmp_path / "codes.csv"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "large":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    else:
        path.symlink_to("/dev/zero")
    return path


def test_what_is_no_file_is_told_soon(place):
    """Wherever it stands, and as the list of a schema."""
    for kind, text in SCHEMAS.items():
        (place.parent / kind).write_text(text.replace("PLACE", place.name))
    outcomes(
        *(reader.format(path=str(place)) for reader in READERS.values()),
        *(loading(place.parent / kind) for kind in SCHEMAS),
    )


def test_what_becomes_a_pipe_meanwhile_is_not_waited_for(tmp_path, monkeypatch):
    regular, pipe = tmp_path / "regular", tmp_path / "pipe"
    regular.write_bytes(b"x")
    os.mkfifo(pipe)
    real = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **how: real(regular if path == pipe else path, **how))
    with pytest.raises(UnreadableFileError, match="no regular file"):
        read_bounded(pipe, 10)


def test_a_file_that_grows_is_read_up_to_its_limit(tmp_path, monkeypatch):
    small, grown = tmp_path / "small", tmp_path / "grown"
    small.write_bytes(b"x")
    with grown.open("wb") as file:
        file.truncate(1 << 40)
    real = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **how: real(small if path == grown else path, **how))
    with pytest.raises(UnreadableFileError, match="more than 64 KiB"):
        read_bounded(grown, 1 << 16)


@pytest.mark.parametrize("size", [0, 9, 10])
def test_up_to_the_limit_all_of_a_file_is_read(tmp_path, size):
    (tmp_path / "f").write_bytes(b"x" * size)
    assert read_bounded(tmp_path / "f", 10) == b"x" * size
    if size == 10:
        with pytest.raises(UnreadableFileError, match="more than"):
            read_bounded(tmp_path / "f", 9)


def zipped(members) -> bytearray:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content)
    return bytearray(file.getvalue())


def overlapping(members) -> bytes:
    """A zip in which each member but the last is made to hold all that follow: sizes of central entries are changed."""
    content = zipped(members)
    ends = zipfile.ZipFile(io.BytesIO(bytes(content))).start_dir
    with zipfile.ZipFile(io.BytesIO(bytes(content))) as archive:
        place = ends
        for info in archive.infolist():
            size = ends - info.header_offset - 30 - len(info.filename)
            content[place + 20 : place + 28] = size.to_bytes(4, "little") * 2
            content[place + 16 : place + 20] = zipfile.crc32(bytes(content[ends - size : ends])).to_bytes(4, "little")
            place += 46 + len(info.filename)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (zipped([("a", b"1"), ("a", b"2")]), "twice"),
        (zipped([("../a", b"1")]), "leads out"),
        (zipped([("b/../../a", b"1")]), "leads out"),
        (zipped([("b\\..\\a", b"1")]), "leads out"),
        (zipped([("/a", b"1")]), "leads out"),
        (overlapping([("a", b"1"), ("b", b"2")]), "overlap"),
    ],
)
def test_zips_that_lie_are_refused(content, problem):
    with pytest.raises(zipfile.BadZipFile, match=problem):
        UntrustedZip(io.BytesIO(content))


def test_honest_zips_are_read(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"in front" + zipped([("a", b"1"), ("b/c..d", b"2"), ("é", b"")]))
    with UntrustedZip(path) as archive:
        assert [archive.read(name) for name in archive.namelist()] == [b"1", b"2", b""]


def test_a_combined_release_of_overlapping_parts_is_refused(tmp_path):
    """8 MiB that would be read as 400 times that."""
    parts = [(f"{i}.sfm", b"\0" * (8 << 20 if i == 400 else 0)) for i in range(1, 401)]
    costs = [{"sha256": "0" * 64, "n": 1, "method": "m", "epsilon": 1.0, "delta": 1e-6}] * 400
    listed = {"format": "sfumato combination 1", "parts": costs}
    path = tmp_path / "all.sfm"
    path.write_bytes(overlapping([*parts, ("combination.json", json.dumps(listed))]))
    assert path.stat().st_size < 10 << 20
    for problem in outcomes(*(READERS[reader].format(path=str(path)) for reader in ("combined", "release", "parts"))):
        assert "members that overlap" in problem


@pytest.mark.parametrize("shape", ["chain", "star", "circle"])
def test_schemas_of_thousands_of_tables_are_refused(tmp_path, shape):
    above = {"chain": lambda i: f"t{i - 1}", "star": lambda _: "t0", "circle": lambda i: f"t{i % 2999 + 1}"}[shape]
    tables = {f"t{i}": {"of": above(i), "key": f"k{i}", "max_rows": 1, "columns": []} for i in range(1, 3000)}
    document = {"columns": {"a": "boolean"}, "tables": {"t0": {"key": "k0", "rows": 9, "columns": ["a"]}, **tables}}
    path = tmp_path / "schema.yaml"
    path.write_text(json.dumps(document))
    assert "at most 200 tables" in outcomes(loading(path))[0]


def test_documents_that_would_grow_are_refused(tmp_path):
    texts = [
        "columns: " + "[" * 100_000 + "]" * 100_000,
        "columns: {a: {kind: integer, lower: 0, upper: " + "9" * 10**6 + "}}",
        "columns: {a: {kind: integer, lower: 0, upper: " + "9" * 4000 + "}}",
        "a0: &a0 [x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 20)),
        "columns: {" + ", ".join(f"c{i}_1..c{i}_9999: boolean" for i in range(400)) + "}",
    ]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yaml").write_text(text)
    outcomes(*(loading(tmp_path / f"{number}.yaml") for number in range(len(texts))))


@pytest.mark.parametrize("name", ["../codes.csv", "/etc/passwd", "link.csv", "sub/../../codes.csv"])
@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_names_files_of_its_own_folder_alone(tmp_path, name, kind):
    (tmp_path / "codes.csv").write_text("code\nx\ny\n")
    folder = tmp_path / "schemas"
    (folder / "sub").mkdir(parents=True)
    (folder / "link.csv").symlink_to("../codes.csv")
    (folder / "schema.yaml").write_text(SCHEMAS[kind].replace("PLACE", name))
    with pytest.raises(SchemaError, match="lies outside"):
        Schema.load(folder / "schema.yaml")


def test_a_schema_names_files_of_folders_below(tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "codes.csv").write_text("code\nx\ny\n")
    path = Path(tmp_path / "schema.yaml")
    path.write_text(SCHEMAS["categories"].replace("PLACE", "lists/codes.csv"))
    assert Schema.load(path).columns["a"].categories == ("x", "y")
