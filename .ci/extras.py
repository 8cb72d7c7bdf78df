"""Whether each extra brings what it promises: `make extras`, or `python .ci/extras.py [EXTRA ...]`.

Each is installed alone, with the core, from a wheel and with the versions of `constraints.txt`, into an environment of
its own in a temporary folder; then its modules are imported, and what it is for is done once on a tiny table
(`promises.py`). `core` is no extra at all. Ends with 1 if one fails. It needs the package index, some minutes, and a
few gigabytes for a while.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = "core"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = 25  # of an output that went wrong
# Nothing of this environment is found from the new one.
INHERITED = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def run(*call: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever it is."""
    return subprocess.run(
        [str(part) for part in call], cwd=folder, env=INHERITED, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def wheel(folder: Path) -> Path:
    """Build the package once for all environments."""
    call = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    done = run(*call, folder=folder)
    if done.returncode:
        raise SystemExit(done.stdout)
    (path,) = folder.glob("*.whl")
    return path


def failure(extra: str, package: Path) -> str | None:
    """Install an extra alone and try what it promises; what went wrong, or None."""
    with tempfile.TemporaryDirectory() as place:
        folder, work = Path(place) / "environment", Path(place) / "work"
        work.mkdir()
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        wanted = str(package) if extra == CORE else f"{package}[{extra}]"
        install = (python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wanted)
        promises = shutil.copy(ROOT / ".ci" / "promises.py", work)
        for call in (
            (sys.executable, "-m", "venv", folder), install, (python, "-m", "pip", "check"),
            (python, promises, extra, ROOT),
        ):  # fmt: skip
            done = run(*call, folder=work)
            if done.returncode:
                return "\n".join(done.stdout.splitlines()[-LINES:])
    return None


def main() -> None:
    """Print a line for each extra."""
    known = [CORE, *PROJECT["optional-dependencies"]]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=f"of {', '.join(known)}; by default all")
    chosen = parser.parse_args().extras or known
    if unknown := sorted(set(chosen) - set(known)):
        parser.error(f"expected extras of {', '.join(known)}; got {', '.join(unknown)}")
    failed = []
    with tempfile.TemporaryDirectory() as place:
        package = wheel(Path(place))
        for extra in chosen:
            wrong = failure(extra, package)
            print(f"{extra:12} {'as promised' if wrong is None else 'FAILED'}", flush=True)
            if wrong is not None:
                failed.append(extra)
                print(wrong, flush=True)
    sys.exit(f"Not as promised: {', '.join(failed)}." if failed else 0)


if __name__ == "__main__":
    main()
