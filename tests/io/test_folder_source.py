"""Folders of images: what is read, and that no single file changes more than its own row."""

import io
import logging
import struct
import sys
import warnings
import zlib

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image as Pictures

from sfumato.columns.kinds import Categorical, Identifier, Image
from sfumato.desk.drafting import draft_schema
from sfumato.desk.validation import validate
from sfumato.errors import ConfigError, DataError, SchemaError, SfumatoError
from sfumato.io.image_arrays import array_of
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema

KIND = Image(shape=(3, 4))
LABELS = Categorical(categories=("cat", "dog"), other="other")
SCHEMA = Schema(columns={"x": KIND, "y": LABELS}, rows=10)


def picture(value=0, shape=(3, 4), dtype=np.uint8):
    return Pictures.fromarray(np.full(shape, value, dtype))


def put(path, image=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(image, bytes):
        path.write_bytes(image)
    else:
        (image or picture()).save(path, format="PNG")
    return path


def read(folder, schema=SCHEMA, chunk_rows=65_536):
    source = open_source(folder, chunk_rows=chunk_rows).under(schema.columns)
    chunks = list(source.chunks())
    x = np.concatenate([array_of(chunk.columns["x"]) for chunk in chunks]) if chunks else np.empty(0)
    return x, [label for chunk in chunks for label in chunk.columns["y"].to_pylist()]


def one(tmp_path, image, kind):
    """What becomes of one picture."""
    put(tmp_path / "f" / "a.png", image)
    found, _ = read(tmp_path / "f", Schema(columns={"x": kind}, rows=1))
    return found


@pytest.fixture
def animals(tmp_path):
    for i, label in enumerate(["dog", "cat", "dog", "cat", "bird"]):
        put(tmp_path / "animals" / label / f"{i}.png", picture(i))
    return tmp_path / "animals"


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
def test_folders_are_labels_in_the_order_of_names(animals, chunk_rows):
    put(animals / "9.PNG", picture(9))
    x, y = read(animals, chunk_rows=chunk_rows)
    assert y == [None, "bird", "cat", "cat", "dog", "dog"]
    assert x.dtype == np.uint8
    assert x.shape == (6, 3, 4)
    assert x[:, 0, 0].tolist() == [9, 4, 1, 3, 0, 2]


def test_metadata_do_not_depend_on_the_files(animals, tmp_path):
    (tmp_path / "void").mkdir()
    for folder in (animals, tmp_path / "void"):
        source = open_source(folder)
        assert source.container == "folder"
        assert source.storage == {"x": pa.null(), "y": pa.string()}
        bound = source.under(SCHEMA.columns)
        assert bound.storage == {"x": pa.fixed_shape_tensor(pa.uint8(), [3, 4]), "y": pa.string()}
        assert "cat" not in repr(bound) + repr(PrivateData(source, SCHEMA))
    assert list(open_source(tmp_path / "void").under(SCHEMA.columns).chunks()) == []


def test_unknown_labels_are_coded_totally(animals):
    (rows,) = PrivateData(open_source(animals), SCHEMA).coded()
    assert rows["y"].tolist() == [2, 0, 0, 1, 1]


@pytest.mark.parametrize("columns", [["x"], ["y"], ["y", "x"]])
def test_rows_are_the_same_whichever_columns_are_read(animals, columns):
    put(animals / "cat" / "odd.png", picture(shape=(4, 4)))
    (chunk,) = open_source(animals).under(SCHEMA.columns).chunks(columns)
    assert list(chunk.columns) == columns
    assert chunk.n_rows == 5


def test_without_a_schema_there_are_labels_alone(animals):
    (chunk,) = open_source(animals).chunks()
    assert chunk.n_rows == chunk.columns["x"].null_count == 5


def png(size=(4, 3), pixels=b"", chunks=()):
    """The bytes of a grey PNG file that says it has this size."""

    def part(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = part(b"IHDR", struct.pack(">IIBBBBB", *size, 8, 0, 0, 0, 0))
    body = b"".join(part(kind, content) for kind, content in chunks)
    return b"\x89PNG\r\n\x1a\n" + head + body + part(b"IDAT", zlib.compress(pixels)) + part(b"IEND", b"")


def file_bytes(image, **options):
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


WHOLE = file_bytes(picture(7), format="PNG")
ODD = {
    "empty": b"",
    "text": b"Ada Lovelace",
    "truncated": WHOLE[:-30],
    "flipped": WHOLE[:45] + bytes([WHOLE[45] ^ 255]) + WHOLE[46:],
    "another size": file_bytes(picture(shape=(4, 3)), format="PNG"),
    "another format": file_bytes(picture(), format="ICO"),
    "a truncated JPEG": file_bytes(Pictures.effect_noise((4, 3), 90), format="JPEG")[:-20],
    "a TIFF of real numbers": file_bytes(Pictures.new("F", (4, 3), 0.5), format="TIFF"),
    "a bomb": png((100_000, 100_000), b"\0" * 1000),
    "a small bomb": png((10_000, 9_500)),
    "no pixels": png((4, 3)),
    "a bomb of text": png(pixels=b"\0" * 15, chunks=[(b"zTXt", b"Ada\0\0" + zlib.compress(b"Lovelace" * 10_000_000))]),
    "endless": WHOLE[:33] + b"\x7f\xff\xff\xfftEXt" + b"a" * 3_000_000,
}


@pytest.mark.parametrize("name", ODD)
def test_a_file_that_is_no_such_picture_is_left_out_in_silence(animals, name, capsys, caplog):
    before = read(animals)
    put(animals / "cat" / "0.png", ODD[name])
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        after = read(animals)
    assert heard == []
    assert caplog.records == []
    assert capsys.readouterr() == ("", "")
    assert np.array_equal(before[0], after[0])
    assert before[1] == after[1]
    validate(open_source(animals), SCHEMA)


def test_one_odd_file_among_many_does_not_change_the_others(tmp_path):
    for i in range(5):
        put(tmp_path / f"{i}.png", ODD["a bomb"] if i == 2 else picture(i))
    x, _ = read(tmp_path, chunk_rows=1)
    assert x[:, 0, 0].tolist() == [0, 1, 3, 4]


def test_what_is_not_of_the_folder_is_not_read(animals, tmp_path):
    before = read(animals)[1]
    put(tmp_path / "outside" / "a.png")
    (animals / "cat" / "link.png").symlink_to(tmp_path / "outside" / "a.png")
    (animals / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    put(animals / ".hidden.png")
    put(animals / ".git" / "a.png")
    put(animals / "cat" / "deeper" / "a.png")
    (animals / "cat" / "notes.txt").write_text("a")
    (animals / "cat" / "folder.png").mkdir()
    assert read(animals)[1] == before


class TestPixels:
    @pytest.mark.parametrize("shape", [(3, 4), (3, 4, 1), (3, 4, 3)])
    @pytest.mark.parametrize("dtype", ["uint8", "uint16"])
    @pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
    def test_white_is_white(self, tmp_path, shape, dtype, mode):
        white = picture(65535, dtype=np.uint16) if mode == "I;16" else picture(255).convert(mode)
        most = np.iinfo(dtype).max
        found = one(tmp_path, white, Image(shape=shape, dtype=dtype, upper=float(most)))
        assert found.dtype == dtype
        assert found.shape == (1, *shape)
        assert (found == most).all()

    def test_sixteen_bits(self, tmp_path):
        grey = picture(0x1234, dtype=np.uint16)
        assert (one(tmp_path, grey, Image(shape=(3, 4), dtype="uint16")) == 0x1234).all()
        assert (one(tmp_path, grey, KIND) == 0x12).all()

    def test_alpha_is_dropped(self, tmp_path):
        clear = Pictures.new("RGBA", (4, 3), (10, 20, 30, 0))
        assert one(tmp_path, clear, Image(shape=(3, 4, 3)))[0, 0, 0].tolist() == [10, 20, 30]

    def test_a_palette_with_transparency(self, tmp_path):
        indexed = Pictures.new("P", (4, 3), 1)
        indexed.putpalette([0, 0, 0, 10, 20, 30])
        image = file_bytes(indexed, format="PNG", transparency=b"\x00\x10")
        assert one(tmp_path, image, Image(shape=(3, 4, 3)))[0, 0, 0].tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    "kind",
    [Image(shape=(12,)), Image(shape=(3, 4, 4)), Image(shape=(1, 3, 4, 3)), Image(shape=(3, 4), dtype="float32")],
)
def test_a_schema_of_other_images_is_refused(animals, kind):
    with pytest.raises(SchemaError, match="'x'"):
        PrivateData(open_source(animals), Schema(columns={"x": kind}, rows=10))


def test_draft_takes_the_most_frequent_size(animals):
    put(animals / "cat" / "odd.png", picture(shape=(9, 9)))
    put(animals / "cat" / "bad.png", b"")
    schema = draft_schema(open_source(animals)).schema
    assert schema.columns["x"] == KIND
    assert schema.columns["y"] == Categorical(categories=("bird", "cat", "dog"))
    assert schema.rows == 5


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        (picture(3, (3, 4, 3)), Image(shape=(3, 4, 3))),
        (picture(300, dtype=np.uint16), Image(shape=(3, 4), dtype="uint16", upper=300)),
    ],
)
def test_draft_without_labels(tmp_path, image, kind):
    put(tmp_path / "a.png", image)
    schema = draft_schema(open_source(tmp_path)).schema
    assert schema.columns == {"x": kind, "y": Identifier()}


def test_draft_of_nothing(tmp_path):
    (tmp_path / "a.svg").write_text("<svg/>")
    put(tmp_path / "b.png", b"no picture")
    with pytest.raises(DataError, match=r"Expected images in .*\.jpg"):
        draft_schema(open_source(tmp_path))


def test_validate_names_the_files_that_are_left_out(animals):
    put(animals / "cat" / "odd.png", picture(shape=(9, 9)))
    findings = {(f.column, f.problem): f for f in validate(open_source(animals), SCHEMA)}
    assert set(findings) == {("x", "unparseable"), ("y", "unknown")}
    found = findings["x", "unparseable"]
    assert (found.count, found.becomes) == (1, "left out, whole records")
    assert found.examples[0].replace("\\", "/") == "cat/odd.png"
    assert findings["y", "unknown"].examples == ["'bird'"]


def test_what_is_not_read_is_counted_for_the_holder(animals):
    (animals / "readme.txt").write_text("a")
    (animals / "cat" / "a.heic").write_bytes(b"a")
    (animals / "cat" / "deeper").mkdir()
    put(animals / "cat" / "odd.png", picture(shape=(9, 9)))
    put(animals / ".hidden.txt", b"")
    (found,) = (f for f in validate(open_source(animals), SCHEMA) if f.problem == "unparseable")
    names = [text.replace("\\", "/") for text in found.examples]
    assert (found.count, names) == (4, ["readme.txt", "cat/a.heic", "cat/deeper", "cat/odd.png"])
    assert "4 not read" in draft_schema(open_source(animals)).notes["x"]


JPEG = {"quality": 100, "subsampling": 0}
FILES = {
    "a.jpg": ("JPEG", JPEG),
    "b.JPG": ("JPEG", JPEG),
    "c.jpeg": ("JPEG", JPEG),
    "d.webp": ("WEBP", {"lossless": True}),
    "e.tiff": ("TIFF", {}),
    "f.TIF": ("TIFF", {"compression": "tiff_lzw"}),
    "g.bmp": ("BMP", {}),
    "h.ppm": ("PPM", {}),
    "i.png": ("PNG", {}),
}


class TestFormats:
    """Whatever the format of a file, its picture is the one that was put there."""

    IMAGE = Image(shape=(8, 16, 3))

    @pytest.fixture
    def pixels(self):
        ramp = np.linspace(0, 255, 16)
        return np.stack([np.tile(ramp, (8, 1)), np.full((8, 16), 90), np.tile(ramp[::-1], (8, 1))], 2).astype(np.uint8)

    def test_each_is_read(self, tmp_path, pixels):
        image = Pictures.fromarray(pixels)
        for name, (format, options) in FILES.items():
            put(tmp_path / "pets" / name, file_bytes(image, format=format, **options))
        x, y = read(tmp_path, Schema(columns={"x": self.IMAGE}, rows=9))
        assert y == ["pets"] * len(FILES)
        assert np.abs(x.astype(int) - pixels).max() <= 3
        assert draft_schema(open_source(tmp_path)).schema.columns["x"] == self.IMAGE

    def test_a_fit_of_jpeg_files_is_that_of_the_pixels(self, tmp_path, pixels):
        for i, level in enumerate((0, 128, 255)):
            image = Pictures.fromarray(np.full((8, 16), level, np.uint8))
            put(tmp_path / f"{i}.jpeg", file_bytes(image, format="JPEG"))
        x, _ = read(tmp_path, Schema(columns={"x": Image(shape=(8, 16))}, rows=3))
        assert x.mean((1, 2)).tolist() == [0, 128, 255]

    def test_a_gif_is_its_first_frame(self, tmp_path):
        frames = [Pictures.new("L", (4, 3), level) for level in (200, 10)]
        put(tmp_path / "a.gif", file_bytes(frames[0], format="GIF", save_all=True, append_images=frames[1:]))
        x, _ = read(tmp_path)
        assert (x == 200).all()

    def test_cmyk_and_turned(self, tmp_path, pixels):
        upright = Pictures.fromarray(pixels)
        put(tmp_path / "a.jpg", file_bytes(upright.convert("CMYK"), format="JPEG", **JPEG))
        turned = upright.transpose(Pictures.Transpose.ROTATE_90)
        exif = Pictures.Exif()
        exif[0x0112] = 6  # turn it right by 90 degrees to see it
        for name, format in (("b.jpg", "JPEG"), ("c.tif", "TIFF"), ("d.webp", "WEBP")):
            put(tmp_path / name, file_bytes(turned, format=format, exif=exif, **(JPEG if format == "JPEG" else {})))
        x, _ = read(tmp_path, Schema(columns={"x": self.IMAGE}, rows=3))
        assert len(x) == 4
        assert np.abs(x[1:3].astype(int) - pixels).max() <= 3
        assert np.abs(x.astype(int) - pixels).mean() < 12
        assert draft_schema(open_source(tmp_path)).schema.columns["x"] == self.IMAGE

    def test_sixteen_bits_of_tiff(self, tmp_path):
        deep = Image(shape=(3, 4), dtype="uint16", upper=65535)
        for name, value, dtype in (("a.tif", 0x1234, np.uint16), ("b.tif", 70_000, np.int32), ("c.tif", -5, np.int32)):
            put(tmp_path / name, file_bytes(picture(value, dtype=dtype), format="TIFF"))
        x, _ = read(tmp_path, Schema(columns={"x": deep}, rows=3))
        assert x[:, 0, 0].tolist() == [0x1234, 65535, 0]


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="their names of files are Unicode")
def test_names_that_are_not_unicode_have_a_label(tmp_path):
    put(tmp_path / "f" / "a\udcff" / "a.png")
    put(tmp_path / "f" / "%ff" / "b\udcff.png")
    assert read(tmp_path / "f")[1] == ["�", "a�"]


def test_an_error_does_not_name_a_file(animals, monkeypatch):
    source = open_source(animals).under(SCHEMA.columns)
    chunks = source.chunks()
    for file in animals.rglob("*.png"):
        file.unlink()
    for label in animals.iterdir():
        label.rmdir()
    animals.rmdir()
    with pytest.raises(SfumatoError) as failure:
        list(chunks)
    assert str(failure.value) == "Cannot read animals: it is damaged, or it changed while it was read."
    assert failure.value.__context__ is None


def test_without_pillow(animals, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.PngImagePlugin", None)
    with pytest.raises(ConfigError, match=r"sfumato\[images\]"):
        open_source(animals)
