"""Images written as folders of PNG files, whole or not at all, and read back."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.columns.kinds import Categorical, Image
from sfumato.errors import ConfigError, OutputError, SfumatoError
from sfumato.io.chunks import Chunk
from sfumato.io.image_arrays import array_of
from sfumato.io.pictures import folder_of_label, label_of_folder
from sfumato.io.sinks import write_table
from sfumato.io.sources import open_source

HOSTILE = [
    "",
    ".",
    "..",
    "../up",
    "a/b",
    "a\\b",
    "%",
    "%2F",
    "50%",
    ".hidden",
    "end.",
    "a:b*?",
    "\0",
    "ü",
    "日本",
]


def batch(images, labels=None):
    columns = {"x": images}
    if labels is not None:
        columns["y"] = pa.chunked_array([pa.array(labels)])
    return Chunk(columns=columns, n_rows=len(images))


def pixels(n, shape=(3, 4), dtype=np.uint8):
    return (np.arange(n * np.prod(shape)).reshape(n, *shape) % 251).astype(dtype)


def read(folder, kind):
    source = open_source(folder).under({"x": kind, "y": Categorical(categories=("a",))})
    chunks = list(source.chunks())
    x = np.concatenate([array_of(chunk.columns["x"]) for chunk in chunks])
    return x, [label for chunk in chunks for label in chunk.columns["y"].to_pylist()]


@pytest.mark.parametrize(
    ("shape", "dtype"), [((3, 4), "uint8"), ((3, 4, 1), "uint8"), ((3, 4, 3), "uint8"), ((3, 4), "uint16")]
)
def test_there_and_back(tmp_path, shape, dtype):
    images = pixels(5, shape, dtype)
    write_table([batch(images[:3], ["b", "a", None]), batch(images[3:], ["a", "b"])], tmp_path / "out")
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.png")} == {
        "out/000003.png", "out/a/000002.png", "out/a/000004.png", "out/b/000001.png", "out/b/000005.png",
    }  # fmt: skip
    x, y = read(tmp_path / "out", Image(shape=shape, dtype=dtype))
    assert np.array_equal(x, images[[2, 1, 3, 0, 4]])
    assert y == [None, "a", "a", "b", "b"]


def test_without_labels_and_as_a_table(tmp_path):
    images = pixels(4)
    write_table([pa.table({"x": pa.FixedShapeTensorArray.from_numpy_ndarray(images)})], tmp_path / "out")
    x, y = read(tmp_path / "out", Image(shape=(3, 4)))
    assert np.array_equal(x, images)
    assert y == [None] * 4


@pytest.mark.parametrize(
    ("labels", "names"),
    [([1, 2], {"1", "2"}), ([True, False], {"true", "false"}), ([1.0, 2.5], {"1", "2.5"}),
     (pa.array(["a", "b"]).dictionary_encode(), {"a", "b"}), (pa.array(["a", "b"], pa.string_view()), {"a", "b"})],
)  # fmt: skip
def test_labels_of_other_types(tmp_path, labels, names):
    write_table([batch(pixels(2), labels)], tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()} == names


def test_hostile_labels_stay_inside(tmp_path):
    write_table([batch(pixels(len(HOSTILE)), HOSTILE)], tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert sorted(read(tmp_path / "out", Image(shape=(3, 4)))[1]) == sorted(HOSTILE)


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_a_label_is_one_folder(label):
    name = folder_of_label(label)
    assert label_of_folder(name) == label
    assert name not in {"", ".", ".."}
    assert not name.startswith(".")
    assert not set(name) & set('/\\\0:*?"<>|\n')


@pytest.mark.parametrize("rows", [0, 1])
def test_an_existing_output(tmp_path, rows):
    out = tmp_path / "out"
    write_table([batch(pixels(3))], out)
    with pytest.raises(OutputError, match="overwrite"):
        write_table([batch(pixels(1))], out)
    assert len(list(out.glob("*.png"))) == 3
    write_table([batch(pixels(rows), ["a"] * rows)], out, overwrite=True)
    assert len(list(out.rglob("*.png"))) == rows
    write_table([batch(pixels(1))], out, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_of_others_is_never_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match="did not write"):
        write_table([batch(pixels(1))], tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "batches",
    [
        [batch(pixels(1).astype(np.float32))],
        [batch(pixels(1, (12,)))],
        [batch(pixels(1, (3, 4, 4)))],
        [batch(pixels(1, (3, 4, 3), np.uint16))],
        [pa.table({"a": [1]})],
        [pa.table({"a": [1], "b": [1]})],
        [Chunk(columns={"x": pixels(1), "z": pixels(1)}, n_rows=1)],
        [],
    ],
)
def test_what_is_no_picture_is_refused_and_leaves_nothing(tmp_path, batches):
    with pytest.raises(ConfigError):
        write_table(batches, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_leaves_nothing(tmp_path):
    def failing():
        yield batch(pixels(2), ["a", "b"])
        assert [path.suffix for path in tmp_path.iterdir()] == [".partial"]
        raise ConfigError("stop")

    with pytest.raises(SfumatoError, match="stop"):
        write_table(failing(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_name_too_long_is_told_in_the_words_of_the_system(tmp_path):
    with pytest.raises(OutputError, match="too long"):
        write_table([batch(pixels(1), ["a" * 300])], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
