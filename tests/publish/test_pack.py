"""The folder to publish: whole, true to the release, and no name in it leaves its place."""

import csv
import hashlib
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import sfumato
from fixtures.publish_names import LABELS, NAMES, TITLE
from sfumato import IndependentItems, MaxEntropy, Schema
from sfumato.columns import Categorical, Image, ItemSet
from sfumato.errors import ConfigError, OutputError, ReleaseError

FILES = {
    "README.md", "SHA256SUMS", "categories.csv", "certificate.json", "codebook.csv", "counts.csv", "croissant.json",
    "pairs.csv", "registry.yaml", "release.sfm", "release.sfm.sig", "rows.csv", "rows.parquet", "schema.yaml",
}  # fmt: skip


def _rows(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _plain(text):
    """A cell without the apostrophe before what a spreadsheet would compute."""
    return text[1:] if text.startswith("'") else text


def test_all_files_are_there_and_their_sums_hold(folder):
    assert {item.name for item in folder.iterdir()} - {"report.html"} == FILES
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} == {item.name for item in folder.iterdir()} - {"SHA256SUMS"}
    for line in lines:
        found, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == found


def test_the_release_in_it_is_the_signed_one(folder, hostile):
    assert sfumato.load(folder / "release.sfm").certificate == hostile.certificate
    sfumato.verify_release(folder / "release.sfm", folder.parent / "key.pub")


def test_rows_are_the_release_s_own_in_both_formats(folder, hostile):
    expected = hostile.sample(50, seed=3)
    table = pq.read_table(folder / "rows.parquet")
    assert table.column_names == list(NAMES)
    assert table.column(NAMES[0]).to_pylist() == expected[NAMES[0]].tolist()
    rows = _rows(folder / "rows.csv")
    assert [row[NAMES[0]] for row in rows] == expected[NAMES[0]].tolist()


def test_the_codebook_has_every_fact(folder):
    rows = _rows(folder / "codebook.csv")
    assert [_plain(row["column"]) for row in rows] == list(NAMES)
    assert (rows[1]["kind"], rows[1]["lower"], rows[1]["upper"]) == ("integer", "0", "9")
    assert rows[1]["source"] == "lower: law; upper: codebook"
    assert [_plain(row["category"]) for row in _rows(folder / "categories.csv")][:4] == list(LABELS)
    assert list(sfumato.Schema.load(folder / "schema.yaml").columns) == list(NAMES)


def test_counts_are_the_release_s_estimates(folder, hostile):
    rows = [row for row in _rows(folder / "counts.csv") if _plain(row["column"]) == NAMES[0]]
    for row, label in zip(rows, LABELS, strict=True):
        expected = hostile.count({NAMES[0]: label})
        assert float(row["count"]) == pytest.approx(expected.value)
        assert float(row["std_error"]) == pytest.approx(expected.std_error)
    whole = [row for row in _rows(folder / "counts.csv") if _plain(row["column"]) == NAMES[1]]
    assert [(row["lower"], row["upper"]) for row in whole] == [(str(i), str(i)) for i in range(10)]
    assert all(float(row["std_error"]) > 0 for row in whole)
    pairs = {
        (_plain(row["first_value"]), row["second_value"]): float(row["count"])
        for row in _rows(folder / "pairs.csv")
        if _plain(row["first_column"]) == NAMES[0] and row["second_column"] == NAMES[5]
    }
    expected = {key: e.value for key, e in hostile.crosstab(NAMES[0], NAMES[5]).items()}
    assert pairs == pytest.approx(expected)


@pytest.mark.parametrize("name", ["codebook.csv", "categories.csv", "counts.csv", "pairs.csv"])
def test_no_cell_of_a_description_is_a_formula(folder, name):
    for row in _rows(folder / name):
        for cell in row.values():
            assert not re.match(r"\s*[=+@]|-[^0-9]", cell), cell


def test_names_stay_in_their_place_in_the_card(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    _, front, body = re.split(r"^---\n", text, maxsplit=2, flags=re.M)
    said = yaml.safe_load(front)
    assert said["pretty_name"] == TITLE
    assert said["license"] == "cc-by-4.0"
    assert not re.search(r"(?<!\\)<\w|(?<!\\)\]\(", body)
    assert "\u202e" not in body
    headings = [line for line in body.splitlines() if line.startswith("#")]
    assert len(headings) == 8  # the title and seven parts: none from a name
    table = [line for line in body.splitlines() if line.startswith("| ")]
    assert len(table) == 1 + len(NAMES)
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 6 for line in table)


def test_the_card_says_what_it_cost(folder, hostile):
    text = (folder / "README.md").read_text(encoding="utf-8").replace("\\", "")
    assert "epsilon = 1, delta = " in text
    assert "Nothing computed from the records was published besides this release." in text
    assert "Office (2026)" in text


def test_nothing_is_promised_of_rows_that_epsilon_does_not_bound(folder):
    for name in ("README.md", "croissant.json"):
        text = (folder / name).read_text(encoding="utf-8")
        assert "noisy measurements of the records" in text
        assert "best attacker" in text
        assert not re.search(r"no row (is|says)|such a person exists|re-identif", text, re.IGNORECASE)


def test_the_registry_s_record(folder, hostile):
    said = yaml.safe_load((folder / "registry.yaml").read_text(encoding="utf-8"))["deployment"]
    assert said["privacy_loss"]["privacy_parameters"]["epsilon"] == hostile.certificate.epsilon
    assert said["basic"]["data_product_type"] == "Synthetic data"
    assert said["basic"]["publication_date"] == "2026-01-02"
    assert said["administrative"]["status"] == "Draft"


def test_nothing_is_replaced_and_nothing_is_left_behind(folder, hostile, tmp_path):
    before = (folder / "README.md").read_bytes()
    with pytest.raises(OutputError):
        sfumato.pack(hostile, folder)
    assert (folder / "README.md").read_bytes() == before
    with pytest.raises(ConfigError, match="formats"):
        sfumato.pack(hostile, tmp_path / "new", formats=("xlsx",))
    with pytest.raises(ConfigError, match="publication"):
        sfumato.pack(hostile, tmp_path / "new", publication={"name": "x"})
    with pytest.raises(ConfigError, match="url"):
        sfumato.pack(hostile, tmp_path / "new", publication={"url": "javascript:alert(1)"})
    with pytest.raises(ConfigError, match="date"):
        sfumato.pack(hostile, tmp_path / "new", publication={"date": "tomorrow"})
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_key_stops_it(folder, tmp_path):
    sfumato.new_key(tmp_path / "other")
    with pytest.raises(ReleaseError, match="signature"):
        sfumato.pack(folder / "release.sfm", tmp_path / "new", public_key=tmp_path / "other.pub")
    assert not (tmp_path / "new").exists()


def test_a_release_that_is_not_private_is_not_published(tmp_path):
    from fixtures.releases import SMALL, fit, small_frame

    seeded = fit(small_frame(), SMALL, target="label")
    with pytest.raises(ConfigError, match="not private"):
        sfumato.pack(seeded, tmp_path / "new")
    with pytest.raises(ConfigError, match="not private"):
        sfumato.export(seeded, "registry")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_commands(call, folder, tmp_path):
    release = folder / "release.sfm"
    done = call(
        "publish", "pack", release, "--out", tmp_path / "p", "-n", 5, "--title", "T", "--license", "MIT", "--json"
    )
    assert done.code == 0
    assert {"rows.csv", "croissant.json"} <= {item.name for item in (tmp_path / "p").iterdir()}
    assert done.json == {
        "written": str(tmp_path / "p"),
        "files": sorted(item.name for item in (tmp_path / "p").iterdir()),
    }
    assert call("publish", "pack", release, "--out", tmp_path / "p").code == 2
    for form in ("croissant", "huggingface", "registry", "datacard", "schema", "certificate"):
        assert call("publish", "export", release, "--as", form, "--title", TITLE).out
    assert call("publish", "export", release, "--as", "certificate").json == json.loads(
        (folder / "certificate.json").read_text()
    )
    assert call("publish", "export", release, "--as", "croissant", "--out", tmp_path / "c.json").code == 0
    assert call("publish", "export", release, "--as", "croissant", "--out", tmp_path / "c.json").code == 2


@pytest.mark.slow
def test_images_and_sets_have_their_own_formats(tmp_path):
    rng = np.random.default_rng(0)
    images = {"x": rng.random((200, 8, 8)).astype(np.float32), "y": rng.integers(0, 2, 200)}
    columns = {"x": Image(shape=(8, 8), lower=0, upper=1, dtype="float32"), "y": Categorical(categories=("0", "1"))}
    pictures = MaxEntropy(epsilon=1.0).fit(images, schema=Schema(columns=columns, rows=200), target="y")
    sfumato.pack(pictures, tmp_path / "pictures", n=5)
    assert np.load(tmp_path / "pictures" / "rows.npz")["x"].shape == (5, 8, 8)
    assert "There are no noisy tables" in (tmp_path / "pictures" / "README.md").read_text().replace("\\", "")
    with pytest.raises(ConfigError, match="npz"):
        sfumato.pack(pictures, tmp_path / "more", formats=("parquet",))
    baskets = pa.table({"basket": [["a"], ["a", "b"], [], ["c"]] * 50})
    schema = Schema(columns={"basket": ItemSet(max_length=3, items=("a", "b", "c"))}, rows=200)
    sets = IndependentItems(epsilon=1.0).fit(baskets, schema=schema)
    sfumato.pack(sets, tmp_path / "sets", n=7)
    assert pq.read_table(tmp_path / "sets" / "rows.parquet").num_rows == 7
    assert {item.name for item in tmp_path.iterdir()} == {"pictures", "sets"}
