"""The two files of a release: `make dist`, or `python .ci/dist.py [FOLDER]`.

Builds the archive of the source, and the wheel out of that archive; looks into both and checks their metadata; installs
each alone into a clean environment, which does what the core promises (`promises.py`). They are put into `dist` only
if all of it went well. It needs the package index and some minutes.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from extras import CORE, ROOT, failure, run

NEEDED = (
    "sfumato/py.typed", "sfumato/__main__.py", "sfumato/schema/lists/iso-3166-1.csv",
    "sfumato/report/templates/page.html",
)  # fmt: skip
SOURCE_ALONE = ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "src/sfumato/py.typed")


def build(folder: Path) -> tuple[Path, Path]:
    """Return the archive and the wheel, built by an environment of its own."""
    tools = folder / "tools"
    python = tools / "bin" / "python"
    for call in (
        (sys.executable, "-m", "venv", tools), (python, "-m", "pip", "install", "--quiet", "build", "twine"),
        (python, "-m", "build", "--outdir", folder / "built", ROOT),
    ):  # fmt: skip
        done = run(*call, folder=folder)
        if done.returncode:
            raise SystemExit(done.stdout)
    (archive,), (wheel,) = folder.glob("built/*.tar.gz"), folder.glob("built/*.whl")
    done = run(python, "-m", "twine", "check", "--strict", archive, wheel, folder=folder)
    if done.returncode:
        raise SystemExit(done.stdout)
    return archive, wheel


def faults(archive: Path, wheel: Path) -> list[str]:
    """Return what is missing in the two files, and what should not be there."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    with tarfile.open(archive) as opened:
        sources = [name.partition("/")[2] for name in opened.getnames()]
    others = {name.partition("/")[0] for name in names} - {"sfumato"}
    return [
        *(f"{wheel.name}: no {name}" for name in NEEDED if name not in names),
        *(f"{wheel.name}: {name}" for name in others if not name.endswith(".dist-info")),
        *(f"{archive.name}: no {name}" for name in SOURCE_ALONE if name not in sources),
        *(f"{archive.name}: {name}" for name in sources if name.partition("/")[0] in {".venv", "dist", "shared"}),
    ]


def main() -> None:
    """Print a line for each step."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"
    with tempfile.TemporaryDirectory() as place:
        archive, wheel = build(Path(place))
        print(f"built and checked: {archive.name} and {wheel.name}", flush=True)
        wrong = faults(archive, wheel)
        for package in () if wrong else (archive, wheel):
            failed = failure(CORE, package)
            wrong += [] if failed is None else [f"{package.name}, installed alone:\n{failed}"]
            print(f"installed alone: {package.name}: {'as promised' if failed is None else 'FAILED'}", flush=True)
        if wrong:
            sys.exit("\n".join(wrong))
        out.mkdir(exist_ok=True)
        for package in (archive, wheel):
            shutil.copy(package, out)
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
