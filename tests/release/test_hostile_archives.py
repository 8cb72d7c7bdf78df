"""A stranger's arrays and archives: they load and sample, or are a ReleaseError; soon, and in little memory."""

import hashlib
import json
import os
import random
import struct
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from fixtures.costly import slow_after
from fixtures.hostile import archive, saved, survives, write
from sfumato.errors import ReleaseError
from sfumato.release.files import ARRAYS, MANIFEST, read_files

__all__ = ["saved", "survives"]


@pytest.mark.usefixtures("small_blocks")
def test_arrays_of_other_values_types_and_shapes(saved, survives, tmp_path):
    manifest, arrays = saved
    wrong = []
    for name, array in arrays.items():
        wrong.append({k: v for k, v in arrays.items() if k != name})
        for dtype in (np.float32, np.float16, np.int32, np.uint64, np.bool_, np.int64, np.float64):
            if array.dtype != dtype:
                with np.errstate(over="ignore"):
                    wrong.append({**arrays, name: array.astype(dtype)})
        for bad in (np.nan, np.inf, -np.inf):
            worse = array.astype(np.float64)
            worse.flat[0] = bad
            wrong.append({**arrays, name: worse})
        wrong.append({**arrays, name: array[..., None].copy()})
        wrong.append({**arrays, name: array.ravel()[:-1].copy()})
        wrong.append({**arrays, name: np.zeros((0,), array.dtype)})
    loaded = [survives(write(tmp_path / "r", manifest, changed)) for changed in wrong]
    # a measurement may have any shape: nothing is built from it
    assert sum(loaded) < len(loaded) / 3


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("scale", slow_after(3, [-1.0, 1e-320, 1e290, 0.0, 1e-9, 1e9, 1e150]))
def test_arrays_of_absurd_size(saved, survives, tmp_path, scale):
    manifest, arrays = saved
    for name, array in arrays.items():
        if array.dtype == np.float64:
            survives(write(tmp_path / "r", manifest, {**arrays, name: array * scale}))


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes_and_cuts(saved, survives, tmp_path, seed):
    rng = random.Random(seed)
    folder = write(tmp_path / "r", *saved)
    parts = {name: (folder / name).read_bytes() for name in (MANIFEST, ARRAYS)}
    whole = archive(tmp_path / "whole.sfm", parts.items()).read_bytes()
    for _ in range(15):
        for content, place in [(whole, tmp_path / "x.sfm"), *((parts[n], folder / n) for n in parts)]:
            damaged = bytearray(content)
            if rng.random() < 0.3:
                del damaged[rng.randrange(len(damaged)) :]
            else:
                for _ in range(rng.choice([1, 1, 8])):
                    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            place.write_bytes(damaged)
            survives(place if place.suffix == ".sfm" else folder)
            if place.suffix != ".sfm":
                place.write_bytes(content)


@pytest.mark.parametrize("seed", range(3))
def test_flipped_bytes_under_a_true_checksum(saved, survives, tmp_path, seed):
    rng = random.Random(seed)
    packed = safetensors.numpy.save(saved[1])
    header = 8 + struct.unpack("<Q", packed[:8])[0]
    for _ in range(20):
        damaged = bytearray(packed)
        end = rng.choice([8, header, len(packed)])
        for _ in range(rng.choice([1, 4])):
            damaged[rng.randrange(end)] ^= 1 << rng.randrange(8)
        survives(write(tmp_path / "r", saved[0], packed=bytes(damaged)))


def test_headers_that_promise_too_much(saved, survives, tmp_path):
    for entry in (
        {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]},
        {"dtype": "F64", "shape": [2**62, 2**62], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [0, 2**62], "data_offsets": [0, 0]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]},
        {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
        {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
    ):
        header = json.dumps({"parameters.factors": entry}).encode()
        packed = struct.pack("<Q", len(header)) + header + b"\0" * 8
        assert not survives(write(tmp_path / "r", saved[0], packed=packed))
    for size in (0, 2**20, 2**63):
        packed = struct.pack("<Q", size) + b"{}"
        assert not survives(write(tmp_path / "r", saved[0], packed=packed))


def test_archives_that_are_not_ours(saved, survives, tmp_path):
    folder = write(tmp_path / "r", *saved)
    manifest, packed = (folder / MANIFEST).read_bytes(), (folder / ARRAYS).read_bytes()
    good = [(MANIFEST, manifest), (ARRAYS, packed)]
    path = tmp_path / "x.sfm"
    assert survives(archive(path, good))
    for members in (
        [], good[:1], good[1:], [*good, ("extra.txt", b"")], [*good, good[0]], [*good, good[1]],
        [("../" + MANIFEST, manifest), good[1]], [("/" + MANIFEST, manifest), good[1]],
        [("r/" + MANIFEST, manifest), ("r/" + ARRAYS, packed)], [*good, ("../evil", b"x")],
        [*good, ("sub/", b"")], [(MANIFEST.upper(), manifest), good[1]],
    ):  # fmt: skip
        assert not survives(archive(path, members))
    assert sorted(os.listdir(tmp_path)) == ["again.sfm", "r", "x.sfm"]


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=str)
def test_bombs_are_not_opened(survives, tmp_path, method):
    bomb = b"\0" * (1 << 28 if method == zipfile.ZIP_DEFLATED else 1 << 24)
    path = archive(tmp_path / "x.sfm", [(MANIFEST, b"{}"), (ARRAYS, bomb)], method)
    assert path.stat().st_size < 1 << 20
    assert not survives(path)


def test_members_that_say_they_are_larger_or_smaller_than_they_are(saved, survives, tmp_path):
    folder = write(tmp_path / "r", *saved)
    members = [(name, (folder / name).read_bytes()) for name in (MANIFEST, ARRAYS)]
    good = archive(tmp_path / "x.sfm", members).read_bytes()
    size = struct.pack("<I", len(members[1][1]))
    for other in (0, 1, 2**31, 2**32 - 1):
        (tmp_path / "x.sfm").write_bytes(good.replace(size, struct.pack("<I", other)))
        assert not survives(tmp_path / "x.sfm")


@pytest.mark.parametrize("name", [MANIFEST, ARRAYS])
def test_links_and_special_files_are_not_followed(saved, survives, tmp_path, name):
    folder = write(tmp_path / "r", *saved)
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert not survives(folder)
    (folder / name).unlink()
    assert not survives(folder)
    (folder / name).symlink_to("/dev/zero")
    assert not survives(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert not survives(folder)
    (folder / name).unlink()
    (folder / name).mkdir()
    assert not survives(folder)
    (folder / name).rmdir()
    os.mkfifo(tmp_path / "pipe.sfm")
    assert not survives(tmp_path / "pipe.sfm")


def test_a_manifest_larger_than_any_is_not_read(saved, survives, tmp_path):
    folder = write(tmp_path / "r", *saved)
    with (folder / MANIFEST).open("r+b") as file:
        file.truncate((1 << 26) + 1)  # sparse: no disk is used
    assert not survives(folder)
    with (folder / ARRAYS).open("r+b") as file:
        file.truncate(1 << 40)
    assert not survives(folder)


def test_a_header_of_many_arrays(saved, survives, tmp_path):
    """Names and shapes of arrays without numbers: a file of 17 MB would be a hundred times as much in memory."""
    manifest, arrays = saved
    folder = write(tmp_path / "r", manifest, arrays)
    header = b'{"a":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}'.ljust((1 << 24) + 1)
    packed = struct.pack("<Q", len(header)) + header
    (folder / ARRAYS).write_bytes(packed)
    found = json.loads((folder / MANIFEST).read_text())
    found["arrays"]["sha256"] = hashlib.sha256(packed).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(found))
    with pytest.raises(ReleaseError, match="a header of at most"):
        read_files(folder)
    assert not survives(folder)
