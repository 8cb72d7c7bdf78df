"""Full disks, files that go away, too little memory: one line of error, nothing half-written, one charge.

Ctrl-C is in test_interrupts.py, `kill -9` in test_kill.py and test_ledger.py.
"""

import json
import sys
from pathlib import Path

import pytest

from fixtures import tables
from fixtures.costly import slow_after
from fixtures.processes import serving
from sfumato import create_ledger, load, read_ledger

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and limits of processes")

# One process imports the package and does the accounting; every run is a child of its, in which the fault happens.
DRIVER = """
import json, os, resource, signal, sys
from pathlib import Path
from sfumato.cli.app import run
from sfumato.privacy.ledger import Ledger
import sfumato.evaluate, sfumato.release.files, sfumato.io.sinks, sfumato.report.write
from sfumato.release import blocks
from fixtures import tables
from fixtures.accounting import remember
import pytest
from fixtures.sampling import little_effort
from sfumato import MaxEntropy, PrivacyBudget

remember(setattr)
little_effort(pytest.MonkeyPatch())
blocks.SAMPLE_BLOCK = 128
for schema in (tables.schema(), tables.image_schema()):
    MaxEntropy(epsilon=1).describe_plan(schema)
    Ledger(MaxEntropy(epsilon=1).plan(schema), PrivacyBudget(1, 1e-5))

def at_first_charge(act):
    charge = Ledger.charge
    def charging(self, *arguments, **options):
        stage = charge(self, *arguments, **options)
        Ledger.charge = charge
        act()
        return stage
    Ledger.charge = charging

def arm(fault, value, arguments):
    if fault == "disk":  # Python ignores the signal, so that writing raises
        resource.setrlimit(resource.RLIMIT_FSIZE, (value, value))
    elif fault == "memory":
        # modules that are loaded when needed, and threads of pyarrow, which waits for ever where it can start none
        assert run([*arguments[:arguments.index("--ledger")], "--seed", "0"]) == 0
        os.rename(arguments[arguments.index("--out") + 1], arguments[1] + ".first")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + value, used + value))
    elif fault == "gone":
        at_first_charge(lambda: Path(value).rename(value + ".gone"))
    elif fault == "cut":
        at_first_charge(lambda: os.truncate(value, os.path.getsize(value) // 2))

for line in sys.stdin:
    fault, value, arguments = json.loads(line)
    said, saying = os.pipe()  # no file: its size would be limited too
    child = os.fork()
    if child == 0:
        os.dup2(saying, 1)
        os.dup2(saying, 2)
        signal.alarm(300)  # ends what hangs; nothing that works takes so long
        arm(fault, value, arguments)
        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os.close(saying)
    text = os.fdopen(said).read()
    _, status = os.waitpid(child, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), text]), flush=True)
"""


@pytest.fixture(scope="module")
def driver():
    with serving(DRIVER, COLUMNS="200") as process:
        yield process


@pytest.fixture
def faulty(driver):
    """Run a command in which a fault happens; return its exit code and what it said, which is at most one error."""

    def run(fault: str, value: object, *arguments: object) -> tuple[int, str]:
        driver.stdin.write(json.dumps([fault, value, [str(a) for a in arguments]]) + "\n")
        driver.stdin.flush()
        code, said = json.loads(driver.stdout.readline())
        if fault == "memory":  # a fit went before, without a limit
            assert "NOT private" in said
        assert "Traceback" not in said
        assert "unexpected error" not in said, said
        assert code in {0, 1, 2}, (code, said)
        assert said.count("Error: ") == bool(code), said
        return code, said

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables.write_csv(tmp_path / "people.csv")
    tables.write_npz(tmp_path / "pictures.npz")
    tables.write_parquet(tmp_path / "people.parquet")
    (tmp_path / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    (tmp_path / "pictures.yaml").write_text(tables.IMAGE_SCHEMA_TEXT, encoding="utf-8")
    create_ledger(tmp_path / "l", epsilon=5, delta=1e-5)
    (tmp_path / "l.lock").touch()
    return tmp_path


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def fit(folder: Path, out: str = "r", data: str = "people.csv") -> list[object]:
    schema = "pictures.yaml" if data.startswith("pictures") else "schema.yaml"
    options = ["--epsilon", 1, "--delta", 1e-5, "--out", folder / out]
    return ["fit", folder / data, "--schema", folder / schema, *options]


class TestFullDisk:
    @pytest.mark.slow
    @pytest.mark.parametrize("room", [0, 3_000])
    @pytest.mark.parametrize("out", ["r", "r.sfm"])
    def test_a_release(self, faulty, folder, out, room):
        before = names(folder)
        code, said = faulty("disk", room, *fit(folder, out))
        assert code == 2
        assert "Cannot write" in said
        assert names(folder) == before

    @pytest.mark.parametrize("out", ["s.csv", "s.parquet", "s"])
    def test_a_sample(self, faulty, folder, out):
        data = "people.csv" if "." in out else "pictures.npz"
        assert faulty("", None, *fit(folder, data=data))[0] == 0
        before = names(folder)
        for room in (0, 20):
            code, said = faulty("disk", room, "sample", folder / "r", "-n", 300, "--out", folder / out)
            assert (code, "Cannot write" in said or "too large" in said) == (2, True), said
            assert names(folder) == before

    def test_pictures_in_one_file(self, faulty, folder):
        assert faulty("", None, *fit(folder, data="pictures.npz"))[0] == 0
        before = names(folder)
        code, _ = faulty("disk", 1_000, "sample", folder / "r", "-n", 3_000, "--out", folder / "s.npz")
        assert code == 2
        assert names(folder) == before

    def test_a_ledger(self, faulty, folder):
        """Nothing is charged that is not on the disk, and a fit that is not charged reads nothing."""
        before = (folder / "l").read_bytes(), names(folder)
        code, said = faulty("disk", 100, *fit(folder), "--ledger", folder / "l")
        assert code == 2
        assert "Nothing was charged" in said
        assert ((folder / "l").read_bytes(), names(folder)) == before
        assert faulty("disk", 0, "ledger", "create", folder / "m", "--epsilon", 1, "--delta", 1e-6)[0] == 2
        assert names(folder) - {"m.lock"} == before[1]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "command",
        [("schema", "draft", "people.csv", "--out", "d.yaml"), ("report", "r", "--out", "page.html")],
        ids=["schema draft", "report"],
    )
    def test_other_files(self, faulty, folder, command):
        assert faulty("", None, *fit(folder))[0] == 0
        before = names(folder)
        code, _ = faulty("disk", 10, *(folder / part if "." in part or part == "r" else part for part in command))
        assert code == 2
        assert names(folder) == before


@pytest.mark.parametrize("fault", ["gone", "cut"])
@pytest.mark.parametrize("data", ["people.csv", "people.parquet", "pictures.npz"])
def test_a_file_that_goes_away(faulty, folder, data, fault):
    """Between two statistics. The charge stands, and whoever asks is told that the fit failed."""
    before = names(folder)
    code, said = faulty(fault, str(folder / data), *fit(folder, data=data), "--ledger", folder / "l")
    (entry,) = read_ledger(folder / "l").fits
    if code:
        assert data in said
        assert entry.status == "failed"
        assert "r" not in names(folder)
        assert len(names(folder)) == len(before)
    else:  # what is left of a CSV file is a CSV file
        assert fault == "cut"
        assert entry.status == "finished"
        assert load(folder / "r").certificate.private


@pytest.mark.parametrize("megabytes", [1, 16])
@pytest.mark.parametrize("data", slow_after(1, ["people.csv", "people.parquet", "pictures.npz"]))
def test_too_little_memory(faulty, folder, data, megabytes):
    before = names(folder)
    kept = {f"{data}.first/{name}" for name in ("manifest.json", "arrays.safetensors")} | {f"{data}.first"}
    code, said = faulty("memory", megabytes << 20, *fit(folder, data=data), "--ledger", folder / "l")
    if code:
        assert "emory" in said
        assert names(folder) - kept == before
        assert {entry.status for entry in read_ledger(folder / "l").fits} <= {"failed"}
    else:
        assert load(folder / "r").certificate.private


@pytest.mark.slow
class TestGoingOn:
    """A long fit that was stopped, whatever stopped it, goes on with its checkpoint under the charge it has."""

    def fit(self, folder: Path, progress=None):
        from sfumato import P3GM

        return P3GM(epsilon=1.0, delta=1e-5, latent_dim=3, hidden=8, epochs=40, batch_size=100).fit(
            tables.frame(), schema=tables.schema(), checkpoint=folder / "c", ledger=folder / "l", progress=progress
        )

    def stopped(self, folder: Path, error: BaseException, after: int):
        seen = []

        def progress(stage):
            seen.append(stage)
            if len(seen) == after:
                raise error

        with pytest.raises(type(error)):
            self.fit(folder, progress)

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=["Ctrl-C", "memory"])
    def test_after_an_error(self, folder, error):
        pytest.importorskip("torch", reason="networks need the extra nets")
        self.stopped(folder, error, 60)
        (entry,) = read_ledger(folder / "l").fits
        assert entry.status == "failed"
        release = self.fit(folder)
        (entry,) = read_ledger(folder / "l").fits
        assert entry.status == "finished"
        assert read_ledger(folder / "l").spent() <= 1 + 1e-9
        assert release.certificate.private

    def test_after_a_full_disk(self, folder, monkeypatch):
        """A checkpoint that cannot be written ends the fit with a clear error; the one before it is whole."""
        pytest.importorskip("torch", reason="networks need the extra nets")
        from sfumato.errors import OutputError

        write, done = Path.write_bytes, []

        def full(path, content):
            done.append(path)
            if len(done) > 3:
                write(path, content[: len(content) // 2])
                raise OSError(28, "No space left on device")
            return write(path, content)

        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(OutputError, match="No space left"):
            self.fit(folder)
        monkeypatch.undo()
        assert not [name for name in names(folder) if name.endswith(".partial")]
        assert read_ledger(folder / "l").fits[0].status == "failed"
        self.fit(folder)
        assert [entry.status for entry in read_ledger(folder / "l").fits] == ["finished"]
