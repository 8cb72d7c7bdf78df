"""A release with sets beside other columns, written on 2026-11-24, loads and samples for ever."""

import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato

SETS = Path(__file__).parent / "fixtures" / "format_1_sets.sfm"


@pytest.fixture(scope="module")
def release():
    return sfumato.load(SETS)


def test_it_samples_in_its_domain_and_keeps_what_goes_with_what(release):
    table = release.sample(5_000, seed=3)
    assert table.schema.field("ill").type == pa.list_(pa.string())
    assert release.sample(5_000, seed=3).equals(table)
    assert release.sample(10, seed=3).equals(table.slice(0, 10))
    rows = table.to_pandas()
    assert {item for cell in rows["ill"] for item in cell} == {"I10", "J45", "another"}
    assert rows["ill"].map(len).max() == 2
    held = rows["ill"].map(lambda cell: "I10" in cell)
    assert rows["age"][held].mean() > rows["age"][~held].mean() + 10


def test_items_are_given_and_asked_for(release):
    found = release.sample(200, seed=0, given={"ill": {"I10": True}, "ill: another": False, "member": True}).to_pandas()
    assert found["ill"].map(lambda cell: "I10" in cell and "another" not in cell).all()
    assert found["member"].all()
    assert abs(release.share({"ill": "I10"}).value - 0.3) < 0.1


def test_it_is_written_again_byte_for_byte(release, tmp_path):
    release.save(tmp_path / "again.sfm")
    with zipfile.ZipFile(SETS) as before, zipfile.ZipFile(tmp_path / "again.sfm") as after:
        assert before.namelist() == after.namelist()
        assert all(before.read(name) == after.read(name) for name in before.namelist())
    release.certificate.verify()
    assert release.certificate.recompute() == pytest.approx(release.certificate.epsilon, abs=1e-6)
