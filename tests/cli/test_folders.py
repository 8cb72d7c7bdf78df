"""Folders of PNG images on the command line: from the draft to synthetic pictures."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fixtures import tables
from sfumato.release_front import load
from sfumato.schema.schema import Schema

FIT = ("--schema", "pictures.yaml", "--epsilon", 1, "--target", "y")


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pictures.yaml").write_text(tables.IMAGE_SCHEMA_TEXT, encoding="utf-8")
    tables.write_npz(Path("pictures.npz"))
    return tables.write_folder(Path("pictures"))


def made(folder):
    return sorted(str(file.relative_to(folder).as_posix()) for file in Path(folder).rglob("*.png"))


def test_draft_check_and_validate(pictures, call):
    assert call("schema", "draft", "pictures", "--out", "draft.yaml").code == 0
    draft, known = Schema.load("draft.yaml"), Schema.load("pictures.yaml")
    assert (draft.rows, dict(draft.columns)) == (known.rows, dict(known.columns))
    assert call("schema", "check", "pictures.yaml", "pictures").code == 0
    (pictures / "0" / "torn.png").write_bytes(b"Ada")
    findings = json.loads(call("schema", "validate", "pictures", "--schema", "pictures.yaml", "--json").out)["findings"]
    assert [(f["column"], f["problem"], f["count"]) for f in findings] == [("x", "unparseable", 1)]


def test_the_release_is_that_of_the_same_pictures_in_an_npz(pictures, call):
    """The order of the records differs, hence sums may differ in their last bits."""
    (pictures / "0" / "torn.png").write_bytes(b"Ada")
    for data in ("pictures", "pictures.npz"):
        assert call("fit", data, *FIT, "--seed", 1, "--out", f"r_{len(Path(data).suffix)}").code == 0
    ours, theirs = load("r_0"), load("r_4")
    for one, other in zip(ours.measurements, theirs.measurements, strict=True):
        assert np.allclose(one.value, other.value, rtol=1e-9, atol=1e-9)
    assert ours.form.container == "folder"
    arrays = ours.sample(7, seed=1)
    assert (arrays["x"].shape, arrays["x"].dtype) == ((7, 4, 4), np.uint8)
    assert set(arrays["y"]) <= {"0", "1", "2"}


@pytest.mark.parametrize("data", ["pictures", "pictures.npz"])
def test_samples_as_folders_and_as_npz(pictures, call, data):
    assert call("fit", data, *FIT, "--out", "r").code == 0
    assert call("sample", "r", "-n", 9, "--seed", 1, "--out", "out").code == 0
    assert call("sample", "r", "-n", 9, "--seed", 1, "--out", "out.npz").code == 0
    with np.load("out.npz") as arrays:
        assert made("out") == sorted(f"{label}/{i:06d}.png" for i, label in enumerate(arrays["y"].tolist(), start=1))
        for i, (pixels, label) in enumerate(zip(arrays["x"], arrays["y"], strict=True), start=1):
            with Image.open(f"out/{label}/{i:06d}.png") as image:
                assert np.array_equal(np.asarray(image), pixels)
    # what was written is a source again
    assert call("fit", "out", *FIT, "--out", "r2").code == 0


def test_an_existing_output_and_overwrite(pictures, call):
    assert call("fit", "pictures", *FIT, "--out", "r").code == 0
    assert call("sample", "r", "-n", 9, "--out", "out").code == 0
    assert call("sample", "r", "-n", 2, "--out", "out").code == 2
    assert len(made("out")) == 9
    assert call("sample", "r", "-n", 2, "--out", "out", "--overwrite").code == 0
    assert len(made("out")) == 2
    assert "did not write" in call("sample", "r", "-n", 2, "--out", "pictures", "--overwrite").err
    load("r").write_sample("again", 2, class_counts=None)
    assert len(made("again")) == 2


def test_without_labels(pictures, call):
    Path("pictures.yaml").write_text(tables.IMAGE_SCHEMA_TEXT.split("  y:")[0], encoding="utf-8")
    result = call("fit", "pictures", *FIT[:-2], "--out", "r")
    assert result.code == 0
    assert "1 column that the schema does not name" in result.err
    assert set(load("r").sample(2)) == {"x"}
    assert call("sample", "r", "-n", 2, "--out", "out").code == 0
    assert made("out") == ["000001.png", "000002.png"]


def test_a_table_is_no_folder_of_images(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    tables.write_csv(Path("people.csv"))
    Path("schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    assert call("fit", "people.csv", "--schema", "schema.yaml", "--epsilon", 1, "--out", "r").code == 0
    result = call("sample", "r", "-n", 2, "--out", "out")
    assert result.code == 2
    assert "one image column" in result.err
    assert not Path("out").exists()


def test_wrong_shape_is_refused_before_anything_is_read(pictures, call):
    text = tables.IMAGE_SCHEMA_TEXT.replace("[4, 4]", "[4, 4, 2]")
    Path("pictures.yaml").write_text(text, encoding="utf-8")
    result = call("fit", "pictures", *FIT, "--out", "r")
    assert result.code == 2
    assert "[4, 4, 2]" in result.err
