"""A manifest and arrays on disk: `manifest.json` and `arrays.safetensors` in a directory, or in one uncompressed zip.

Nothing is unpickled and no path inside an archive is followed. A file from a stranger is measured before it is read.
What the manifest says is read in `manifest.py`.

A combined release is a zip with the `.sfm` file of each part, whole and unchanged, and their hashes. The parts are
`1.sfm`, `2.sfm`, … as their holders wrote them: `unzip` gives them back, and their signatures hold.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import safetensors.numpy

from sfumato.columns.facts import shown
from sfumato.errors import OutputError, ReleaseError
from sfumato.io.atomic import atomic_path, refuse_existing, write_or_refuse
from sfumato.io.stored import format_suffix
from sfumato.io.strict_json import parse_object
from sfumato.io.untrusted import UnreadableFileError, UntrustedZip, read_bounded
from sfumato.privacy.combined_certificate import PartCost
from sfumato.privacy.reading import Place, document, entry, many, one_of, plain, reader

FORMAT_VERSION = 3
MANIFEST, ARRAYS = "manifest.json", "arrays.safetensors"
FILES = (MANIFEST, ARRAYS)
COMBINATION = "combination.json"
"""The member that an archive of several releases has in place of these."""
ARCHIVE_SUFFIX = ".sfm"
_OF_ROWS = ".csv .tsv .tab .parquet .npz .dat .json .jsonl .ndjson .xlsx .feather .arrow"
_LARGEST = {MANIFEST: 1 << 26, ARRAYS: 1 << 33, COMBINATION: 1 << 20}
LARGEST_ARCHIVE = sum(_LARGEST.values()) + (1 << 12)
"""Bytes of the largest `.sfm` file."""
_LARGEST_HEADER = 1 << 24  # names and shapes of arrays
_DTYPES = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64))
MOST_PARTS = 1_000
_FORMAT = "sfumato combination 1"


def packed_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays as they are written: the same arrays give the same bytes."""
    return safetensors.numpy.save({name: np.asarray(value, order="C") for name, value in arrays.items()})


def write_files(path: Path, content: Mapping[str, Any], packed: bytes, *, overwrite: bool = False) -> None:
    """Write a manifest and arrays; they are there whole or not at all.

    Args:
        path: a directory to make, or a file name that ends in `.sfm`.
        content: what the manifest says; the format's version and the arrays' checksum are added.
        packed: the arrays, of `packed_arrays`.
        overwrite: whether an existing release may be replaced.

    Raises:
        OutputError: the path exists and may not be replaced, or cannot be written.
    """
    refuse_place(path, overwrite=overwrite)
    contents = _contents(content, packed)
    with atomic_path(path, overwrite=overwrite, marker=FILES) as partial:
        write_or_refuse(path, lambda: _write(contents, partial, archive=path.suffix == ARCHIVE_SUFFIX))


def refuse_place(path: Path, *, overwrite: bool) -> None:
    """Refuse a place where no release is written.

    Raises:
        OutputError: its name is that of a file of rows, or it exists and may not be replaced.
    """
    if format_suffix(path.name) in _OF_ROWS.split():
        raise OutputError(
            f"Expected a folder or a file name that ends in {ARCHIVE_SUFFIX} for a release, got {path.name!r}, a name "
            f"of rows. Name another, and write rows by release.write_sample({path.name!r}) or `sfumato sample`."
        )
    refuse_existing(path, overwrite=overwrite, marker=FILES)


def archive_bytes(content: Mapping[str, Any], packed: bytes) -> bytes:
    """Return the bytes of the `.sfm` file that `write_files` writes."""
    file = io.BytesIO()
    write_archive(_contents(content, packed), file)
    return file.getvalue()


def write_archive(contents: Mapping[str, bytes], file: Path | BinaryIO) -> None:
    """Write an uncompressed zip: the same contents give the same bytes."""
    with zipfile.ZipFile(file, "x", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def _contents(content: Mapping[str, Any], packed: bytes) -> dict[str, bytes]:
    checksum = {"file": ARRAYS, "sha256": hashlib.sha256(packed).hexdigest()}
    manifest = {"format_version": FORMAT_VERSION, **content, "arrays": checksum}
    return {MANIFEST: json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False).encode(), ARRAYS: packed}


def _write(contents: Mapping[str, bytes], partial: Path, *, archive: bool) -> None:
    if archive:
        write_archive(contents, partial)
    else:
        partial.mkdir()
        for name, content in contents.items():
            (partial / name).write_bytes(content)


def read_files(path: Path | BinaryIO) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a manifest and arrays, from anyone.

    Args:
        path: a directory or a `.sfm` file that `write_files` wrote, or the opened bytes of one.

    Returns:
        What the manifest says, yet to be checked; and finite arrays of known types, by name.

    Raises:
        ReleaseError: not a release, damaged, or of a format that this version does not know. What else a hostile file
            provokes is the caller's to catch.
    """
    manifest_bytes, packed = read_bytes(path)
    manifest = _parse(manifest_bytes)
    version = manifest.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:  # neither true nor 1.0
        rule = f"Expected format_version {FORMAT_VERSION}, got {shown(version)}"
        _refuse(f"{rule}: made by another version of Sfumato. Fit again, or ask for another file.")
    if hashlib.sha256(packed).hexdigest() != manifest["arrays"]["sha256"]:
        _refuse("The arrays are not those the manifest describes: the file is damaged.")
    if int.from_bytes(packed[:8], "little") > _LARGEST_HEADER:
        _refuse(f"Expected a header of at most {_LARGEST_HEADER} bytes in {ARRAYS}.")
    arrays = safetensors.numpy.load(packed)
    for name, array in arrays.items():
        if array.dtype not in _DTYPES or not np.isfinite(array).all():
            _refuse(f"Expected finite numbers of a known type in the array {shown(name)}.")
    return manifest, arrays


def _parse(content: bytes) -> dict[str, Any]:
    try:
        return parse_object(content)
    except ValueError as error:
        problem = str(error)
    raise ReleaseError(f"Expected a manifest in JSON, got {problem}.")


def read_bytes(path: Path | BinaryIO) -> tuple[bytes, bytes]:
    """Return the manifest and the arrays as they are on disk, unread; errors as `read_files`."""
    if isinstance(path, Path) and path.is_dir():
        return _read_file(path / MANIFEST), _read_file(path / ARRAYS)
    if isinstance(path, Path) and not path.is_file():
        _refuse("There is no such file or directory.")
    if not zipfile.is_zipfile(path):
        _refuse("It is neither a directory nor a .sfm archive.")
    with _opened(path) as archive:
        members = _stored(archive)
        if COMBINATION in members:
            _refuse(
                "It holds several releases combined, which sfumato.CombinedRelease.load reads, and of the commands "
                "sample, estimate and certificate: take one of its parts."
            )
        if set(members) != {MANIFEST, ARRAYS}:
            _refuse(f"Expected exactly {MANIFEST} and {ARRAYS} in the archive.")
        return archive.read(MANIFEST), archive.read(ARRAYS)


def _opened(path: Path | BinaryIO) -> UntrustedZip:
    try:
        return UntrustedZip(path)
    except zipfile.BadZipFile as error:
        problem = str(error)
    raise ReleaseError(f"Expected a zip whose members are what they say, got {shown(problem)}.")


def _stored(archive: UntrustedZip) -> Mapping[str, zipfile.ZipInfo]:
    """Return the members of an archive by name, none of them packed or too large."""
    members = {info.filename: info for info in archive.infolist()}
    for name, info in members.items():
        most = _LARGEST.get(name, LARGEST_ARCHIVE)
        if info.compress_type != zipfile.ZIP_STORED or max(info.file_size, info.compress_size) > most:
            _refuse(f"Expected {shown(name)} to be stored uncompressed and of at most {most} bytes.")
    return members


def _read_file(path: Path) -> bytes:
    try:
        return read_bounded(path, _LARGEST[path.name], links=False)
    except UnreadableFileError as error:
        problem = str(error)
    raise ReleaseError(f"Expected {path.name} in the directory, got: {problem}.")


def _refuse(problem: str) -> NoReturn:
    raise ReleaseError(problem)


@document
class _Combination:
    format: str = entry(one_of(_FORMAT))
    parts: tuple[PartCost, ...] = entry(many(PartCost, MOST_PARTS))


def file_hash(content: bytes) -> str:
    """Return the hash of a part's file, SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def part_bytes(path: Path) -> bytes:
    """Return the bytes of a `.sfm` file as they are on disk; of a directory, those of its two files as one.

    Raises:
        ReleaseError: it cannot be read.
    """
    try:
        if not path.is_dir():
            return read_bounded(path, LARGEST_ARCHIVE)
        file = io.BytesIO()
        write_archive(dict(zip(FILES, read_bytes(path), strict=True)), file)
        return file.getvalue()
    except UnreadableFileError as error:
        problem = str(error)
    raise ReleaseError(f"Cannot read the release {path}: {problem}.")


def write_parts(path: Path, parts: Sequence[bytes], costs: Sequence[PartCost], *, overwrite: bool) -> None:
    """Write the files of parts into one; it is there whole or not at all.

    Raises:
        OutputError: the path ends otherwise than in `.sfm`, exists and may not be replaced, or cannot be written.
    """
    require_archive(path)
    text = json.dumps(plain(_Combination(format=_FORMAT, parts=tuple(costs))), indent=1)
    contents = {COMBINATION: text.encode(), **{_member(i): part for i, part in enumerate(parts, 1)}}
    with atomic_path(path, overwrite=overwrite) as partial:
        write_or_refuse(path, lambda: write_archive(contents, partial))


def require_archive(path: Path) -> None:
    """Refuse a path that is not that of a `.sfm` file.

    Raises:
        OutputError: it is none.
    """
    if path.suffix != ARCHIVE_SUFFIX:
        raise OutputError(
            f"Expected a file name that ends in {ARCHIVE_SUFFIX} for a combined release, got {path.name!r}."
        )


def is_combination(path: Path) -> bool:
    """Whether a path is that of a combined release."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return COMBINATION in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def read_parts(path: Path) -> tuple[list[bytes], tuple[PartCost, ...]]:
    """Read the files of parts, whose hashes are those that are listed, and what is said of them.

    Raises:
        ReleaseError: no combined release, or damaged. What else a hostile file provokes is the caller's to catch.
    """
    if not is_combination(path):
        _refuse("It is no combined release.")
    with _opened(path) as archive:
        members = _stored(archive)
        listed = reader(_Combination)(parse_object(archive.read(COMBINATION)), Place("combination"))
        names = [_member(i) for i in range(1, len(listed.parts) + 1)]
        if set(members) != {COMBINATION, *names}:
            _refuse(f"Expected exactly {COMBINATION} and the parts that it lists in the archive.")
        contents = [archive.read(name) for name in names]
    for name, content, part in zip(names, contents, listed.parts, strict=True):
        if file_hash(content) != part.sha256:
            _refuse(f"The part {name} is not the one that was combined: it was changed since.")
    return contents, listed.parts


def _member(place: int) -> str:
    return f"{place}{ARCHIVE_SUFFIX}"
