"""Planted bugs can still be planted: the default run notices code that moved away from one, not the next audit."""

from pathlib import Path

import pytest

import sfumato
from bugs.planted import BUGS, HELPERS, PlantedBug

PACKAGE = Path(sfumato.__file__).parent
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_its_text_is_still_there(bug: PlantedBug):
    text = (PACKAGE / bug.file).read_text(encoding="utf-8")
    assert bug.text in text, f"{bug.name}: its text is no longer in {bug.file}; plant it anew"
    compile(text.replace(bug.text, bug.wrong), bug.file, "exec")


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_its_finders_can_be_run(bug: PlantedBug):
    files, _, chosen = bug.found_by.partition(" -k ")
    assert all((ROOT / file.partition("::")[0]).exists() for file in files.split(" "))
    assert not {"'", '"'} & set(chosen), f"{bug.name}: no shell takes the quotes off"


def test_names_are_different():
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert HELPERS.keys() <= {bug.name for bug in BUGS}
