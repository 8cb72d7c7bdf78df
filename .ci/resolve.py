"""Whether Sfumato can be installed, from wheels alone, on each system and each Python: `make resolve`.

Nothing is installed: uv resolves the requirements for each platform against the package index, which has to be
reachable. Prints a table, and ends with 1 if a cell fails.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PLATFORMS = {
    "Linux x86-64": "x86_64-unknown-linux-gnu",
    "Linux ARM64": "aarch64-unknown-linux-gnu",
    "macOS ARM64": "aarch64-apple-darwin",
    "macOS x86-64": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("evaluate", "regression", "demo")
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def resolves(requirements: list[str], platform: str, python: str) -> tuple[bool, int]:
    """Return whether wheels of all requirements are there, and of how many packages."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate",
        "--only-binary", ":all:", "--no-python-downloads", "--python-platform", platform, "--python-version", python,
    ]  # fmt: skip
    done = subprocess.run(command, input="\n".join(requirements), capture_output=True, text=True, check=False)
    return done.returncode == 0, len(done.stdout.splitlines())


def main() -> None:
    """Print the table."""
    extras = PROJECT["optional-dependencies"]
    cases = {"core": PROJECT["dependencies"]}
    cases |= {"with extras": [*PROJECT["dependencies"], *(r for extra in EXTRAS for r in extras[extra])]}
    failed = False
    print("| system | what |", " | ".join(PYTHONS), "|")
    print("|---|---|" + "---|" * len(PYTHONS))
    for system, platform in PLATFORMS.items():
        for what, requirements in cases.items():
            found = [resolves(requirements, platform, python) for python in PYTHONS]
            failed |= not all(done for done, _ in found)
            cells = [f"{n} packages" if done else "NO" for done, n in found]
            print(f"| {system} | {what} |", " | ".join(cells), "|", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
