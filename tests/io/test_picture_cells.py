"""Tables with files of pictures in their cells: as bytes, and as Hugging Face writes them."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as Pictures
from pyarrow import feather

from sfumato import MaxEntropy
from sfumato.columns.kinds import Categorical, Image
from sfumato.desk.drafting import draft_schema
from sfumato.desk.validation import validate
from sfumato.errors import SchemaError
from sfumato.io.picture_cells import with_pictures
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema

N = 40
SCHEMA = Schema(columns={"image": Image(shape=(4, 6)), "label": Categorical(categories=("0", "1"), other="1")}, rows=N)


def file_of(pixels, format="PNG"):
    file = io.BytesIO()
    Pictures.fromarray(pixels).save(file, format=format, **({"quality": 100} if format == "JPEG" else {}))
    return file.getvalue()


@pytest.fixture
def pixels():
    return np.random.default_rng(3).integers(0, 256, (N, 4, 6), dtype=np.uint8)


@pytest.fixture
def files(pixels):
    return [file_of(image) for image in pixels]


LABELS = pa.array([i % 2 for i in range(N)])


def forms(files, folder):
    """One table in all its forms."""
    plain = pa.table({"image": pa.array(files, pa.binary()), "label": LABELS})
    kept = [None if file is None else {"bytes": file, "path": "a.png"} for file in files]
    nested = pa.table(
        {"image": pa.array(kept, pa.struct({"bytes": pa.binary(), "path": pa.string()})), "label": LABELS}
    )
    for name, table in {"plain": plain, "nested": nested}.items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=7)
        feather.write_feather(table, str(folder / f"{name}.feather"))
        yield from (table, folder / f"{name}.parquet", folder / f"{name}.feather", table.to_reader())
        yield from (pd.read_parquet(folder / f"{name}.parquet"), pl.DataFrame(table))


def coded(data, schema=SCHEMA, chunk_rows=65_536):
    chunks = list(PrivateData(open_source(data, chunk_rows=chunk_rows), schema).coded())
    return [np.concatenate([np.asarray(chunk[name]) for chunk in chunks]) for name in schema.released]


def test_every_form_gives_the_pixels(pixels, files, tmp_path):
    for data in forms(files, tmp_path):
        x, y = coded(data, chunk_rows=9)
        assert np.array_equal(x, pixels)
        assert y.tolist() == LABELS.to_pylist()


def test_a_row_without_such_a_picture_is_left_out_alone(pixels, files, tmp_path):
    for i, odd in {2: None, 7: b"", 11: b"Ada Lovelace", 13: file_of(pixels[0].T), 39: files[0][:50]}.items():
        files[i] = odd
    kept = [i for i in range(N) if i not in (2, 7, 11, 13, 39)]
    for data in forms(files, tmp_path):
        x, y = coded(data, chunk_rows=5)
        assert np.array_equal(x, pixels[kept])
        assert y.tolist() == [i % 2 for i in kept]
    source = open_source(tmp_path / "nested.parquet", chunk_rows=5)
    labels = with_pictures(source, SCHEMA.columns).chunks(["label"])  # rows are those with a picture all the same
    assert [cell for chunk in labels for cell in chunk.columns["label"].to_pylist()] == y.tolist()
    (found,) = (f for f in validate(source, SCHEMA) if f.problem == "unparseable")
    assert (found.count, found.examples) == (5, ["row 3", "row 8", "row 12", "row 14", "row 40"])
    assert "5 not read" in draft_schema(source).notes["image"]


def test_a_draft_offers_an_image_column(files, tmp_path):
    for data in forms([None, *files[1:]], tmp_path):
        columns = draft_schema(open_source(data)).schema.columns
        assert columns["image"] == SCHEMA.columns["image"]
        assert columns["label"].labels == ("0", "1")


def test_bytes_that_are_no_pictures_are_drafted_as_before():
    table = pa.table({"a": pa.array([b"Riga", b"Oslo"] * 30), "b": pa.array([{"bytes": b"x"}] * 60)})
    columns = draft_schema(open_source(table), exact=True).schema.columns
    assert columns["a"] == Categorical(categories=("Oslo", "Riga"))
    assert not isinstance(columns["b"], Image)


def test_other_types_and_shapes_are_refused_by_type(files):
    table = pa.table({"image": pa.array(files), "label": LABELS})
    for kind in (Image(shape=(24,)), Image(shape=(4, 6), dtype="float32")):
        with pytest.raises(SchemaError, match="'image'"):
            coded(table, Schema(columns={"image": kind}, rows=N))
    with pytest.raises(SchemaError, match="hold images"):
        coded(
            pa.table({"image": pa.array([{"path": "a.png"}])}), Schema(columns={"image": Image(shape=(4, 6))}, rows=1)
        )


@pytest.mark.slow
def test_release_is_that_of_the_arrays(pixels, files, tmp_path):
    method = MaxEntropy(epsilon=5)
    schema = Schema(columns={"x": SCHEMA.columns["image"], "y": SCHEMA.columns["label"]}, rows=N)
    expected = method.fit((pixels, LABELS.to_numpy()), schema=schema, seed=1).sample(5, seed=2)["x"]
    for data in forms(files, tmp_path):
        sample = method.fit(data, schema=SCHEMA, seed=1).sample(5, seed=2)
        if isinstance(sample, pa.Table):
            assert np.array_equal(sample["image"].combine_chunks().to_numpy_ndarray(), expected)
        assert len(sample) == 5


class TestLabelsBesideImages:
    @pytest.mark.parametrize("n_classes", [26, 200])
    def test_whole_numbers_are_labels(self, n_classes):
        x = np.zeros((n_classes * 6, 4, 4), np.uint8)
        draft = draft_schema(open_source((x, np.arange(len(x)) % n_classes)))
        assert draft.schema.columns["y"].labels == tuple(map(str, range(n_classes)))

    def test_numbers_that_differ_from_image_to_image_are_none(self):
        x = np.zeros((100, 4, 4), np.uint8)
        assert draft_schema(open_source((x, np.arange(100)))).schema.columns["y"].name == "integer"

    def test_one_column_of_labels_is_modelled(self, files):
        table = pa.table({"image": pa.array(files), "label": LABELS, "split": pa.array(["a"] * N)})
        notes = draft_schema(open_source(table)).notes
        assert "identifier" in notes["split"]
        assert "identifier" not in notes["label"]

    def test_declared_integer_is_refused_with_what_to_do(self):
        schema = Schema.from_dict(
            {"columns": {"x": {"kind": "image", "shape": [4, 4]}, "y": {"kind": "integer", "lower": 0, "upper": 25}},
             "rows": 100}
        )  # fmt: skip
        with pytest.raises(Exception, match=r"'y' \(integer\)\. Declare labels that are numbers categorical"):
            MaxEntropy(epsilon=1).fit((np.zeros((100, 4, 4), np.uint8), np.zeros(100)), schema=schema)
