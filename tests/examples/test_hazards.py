"""The page on hazards names tests: they have to be there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hazards.md"


def test_every_test_it_names_is_there():
    named = set(re.findall(r"`((?:tests/)?[\w/*]*test_[\w*]+\.py|tests/\w+)[^`]*`", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 20
    missing = [
        name
        for name in sorted(named)
        if not (list(ROOT.glob(name)) if name.startswith("tests/") else list((ROOT / "tests").rglob(name)))
    ]
    assert not missing


def test_every_hazard_says_what_shows_it_or_that_it_is_left():
    rows = [line.split("|")[1:-1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    hazards = [row for row in rows if row[0].strip() != "hazard"]
    assert len(hazards) > 25
    for name, does, shown, left in hazards:
        assert shown.strip() != "–" or left.strip() != "–" or does.strip() != "–", name
        assert (shown.strip() == "–") <= (left.strip() != "–" or "certificate" in does), name
