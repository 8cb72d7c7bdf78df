"""Each planted bug makes the test bench of privacy fail, in a copy of the package; without a bug the copy passes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato
from bugs.planted import BUGS, HELPERS, PlantedBug

pytestmark = [pytest.mark.audit, pytest.mark.slow]

PACKAGE = Path(sfumato.__file__).parent
ROOT = Path(__file__).parents[2]
PASSED, FAILED = 0, 1  # of pytest; anything else says that the tests did not run
MOST_BYTES = 6 << 30  # of a process under a bug that asks for all there are
FINDERS: list[str] = []


@pytest.fixture
def copy(tmp_path):
    """A copy of the package in a folder of its own."""
    home = tmp_path / "home"
    shutil.copytree(PACKAGE, home / "sfumato")  # with what is compiled: a file that is changed is compiled anew
    return home


def run(home: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests against the package in a folder, until one fails."""
    environment = {**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["HYPOTHESIS_STORAGE_DIRECTORY"] = str(home / "hypothesis")
    program = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, ({MOST_BYTES}, {MOST_BYTES})); "
        "import sfumato, pytest; print(sfumato.__file__, flush=True); sys.exit(pytest.main())"
    )
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not browser and (audit or not slow)"]
    found = subprocess.run(
        [sys.executable, "-c", program, *options, *tests],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stdout.startswith(str(home)), f"the tests ran on another package: {found.stdout[:200]}{found.stderr}"
    return found


def arguments_of(found_by: str) -> list[str]:
    """Files, and what of them."""
    files, _, chosen = found_by.partition(" -k ")
    return [*files.split(" "), *(["-k", chosen] if chosen else [])]


def plant(bug: PlantedBug, home: Path) -> None:
    path = home / "sfumato" / bug.file
    text = path.read_text(encoding="utf-8")
    assert bug.text in text, f"{bug.name}: its text is no longer in {bug.file}; plant it anew"
    wrong = text.replace(bug.text, bug.wrong) + HELPERS.get(bug.name, "")
    compile(wrong, bug.file, "exec")
    path.write_text(wrong, encoding="utf-8")


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_the_bug_is_found(copy, bug):
    plant(bug, copy)
    found = run(copy, *arguments_of(bug.found_by))
    assert found.returncode == FAILED, f"{bug.name} was not found by {bug.found_by}:\n{found.stdout[-2000:]}"
    (line,) = [line for line in found.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    assert line.startswith("FAILED "), f"{bug.name}: {line}"
    FINDERS.append(line.removeprefix("FAILED ").partition(" - ")[0])


def test_without_a_bug_they_pass(copy):
    """The very tests that found the bugs, on the package as it is, from a copy as well."""
    assert FINDERS, "no bug was planted in this run"
    found = run(copy, *sorted(set(FINDERS)))
    assert found.returncode == PASSED, found.stdout[-2000:]
