"""Whether a newcomer gets on: `make newcomer`, or `python .ci/newcomer.py [PATH ...]`.

Installs the package as README says into a clean environment, and does there, on made-up tables, what four people do
first (`paths.py`): a data holder at the command line and in the studio, an analyst in Python, a reviewer who gets a
release, an engineer with many rows. Ends with 1 where one of them would be stuck. It needs the package index.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from extras import LINES, ROOT, run, wheel
from paths import PATHS

EXTRAS = "evaluate,regression,studio,report"


def main() -> None:
    """Print a line for each path."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"of {', '.join(PATHS)}; by default all")
    chosen = parser.parse_args().paths or list(PATHS)
    if unknown := sorted(set(chosen) - set(PATHS)):
        parser.error(f"expected paths of {', '.join(PATHS)}; got {', '.join(unknown)}")
    stuck = []
    with tempfile.TemporaryDirectory() as place:
        folder, python = Path(place), Path(place) / "environment" / "bin" / "python"
        package = f"{wheel(folder)}[{EXTRAS}]"
        install = (python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", package)
        for call in ((sys.executable, "-m", "venv", folder / "environment"), install):
            done = run(*call, folder=folder)
            if done.returncode:
                sys.exit(done.stdout)
        script = shutil.copy(ROOT / ".ci" / "paths.py", folder)
        for path in chosen:
            work = folder / path
            work.mkdir()
            done = run(python, script, path, folder=work)
            print(f"{path:12} {'stuck' if done.returncode else 'gets on'}", flush=True)
            if done.returncode:
                stuck.append(path)
                print("\n".join(done.stdout.splitlines()[-LINES:]), flush=True)
    sys.exit(f"Stuck: {', '.join(stuck)}." if stuck else 0)


if __name__ == "__main__":
    main()
