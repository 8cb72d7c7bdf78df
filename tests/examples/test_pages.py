"""What `make docs` checks of the pages that it built finds each fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / ".ci" / "pages.py"
GOOD = (
    '<a href="b.html#here">b</a><a href="#top"></a><p id="top"><img src="c.png" alt="c"><a href="https://x.org/">x</a>'
)


def _check(folder: Path, page: str) -> tuple[int, str]:
    (folder / "a.html").write_text(page, encoding="utf-8")
    (folder / "b.html").write_text('<p id="here">', encoding="utf-8")
    (folder / "c.png").touch()
    done = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


def test_whole_pages_pass(tmp_path: Path) -> None:
    assert _check(tmp_path, GOOD) == (0, "2 pages: every link leads somewhere.")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ('<a href="none.html">', "a.html: none.html leads nowhere"),
        ('<a href="b.html#gone">', "a.html: no such place: b.html#gone"),
        ('<img src="c.png">', "a.html: no text for the picture c.png"),
        ('<img src="d.png" alt="d">', "a.html: d.png leads nowhere"),
        ('<script src="https://cdn.org/x.js"></script>', "a.html: loads https://cdn.org/x.js"),
        ('<link rel="stylesheet" href="//cdn.org/x.css">', "a.html: loads //cdn.org/x.css"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, fault: str, said: str) -> None:
    assert _check(tmp_path, GOOD + fault) == (1, said)
