"""The file of a combined release: a zip with the `.sfm` file of each part, whole and unchanged, and their hashes.

The parts are `1.sfm`, `2.sfm`, … as their holders wrote them: `unzip` gives them back, and their signatures hold.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sfumato.errors import OutputError, ReleaseError
from sfumato.io.atomic import atomic_path, reason_of
from sfumato.io.strict_json import parse_object
from sfumato.privacy.combined_certificate import PartCost
from sfumato.privacy.reading import Place, document, entry, many, one_of, plain, reader
from sfumato.release.files import ARCHIVE_SUFFIX, COMBINATION, FILES, LARGEST_ARCHIVE, read_bytes, write_archive

MOST_PARTS = 1_000
_FORMAT = "sfumato combination 1"
_LARGEST = 1 << 20


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
            return path.read_bytes()
        file = io.BytesIO()
        write_archive(dict(zip(FILES, read_bytes(path), strict=True)), file)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    else:
        return file.getvalue()
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
        failure = reason_of(lambda: write_archive(contents, partial))
        if failure:
            raise OutputError(f"Cannot write {path}: {failure}.")


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
        _refuse("It is no combined release")
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: info for info in archive.infolist()}
        for name, info in members.items():
            largest = _LARGEST if name == COMBINATION else LARGEST_ARCHIVE
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > largest:
                _refuse("It has a member that is compressed or too large")
        listed = reader(_Combination)(parse_object(archive.read(COMBINATION)), Place("combination"))
        names = [_member(i) for i in range(1, len(listed.parts) + 1)]
        if set(members) != {COMBINATION, *names} or len(archive.infolist()) != len(members):
            _refuse(f"Expected exactly {COMBINATION} and the parts that it lists in the archive")
        contents = [archive.read(name) for name in names]
    for name, content, part in zip(names, contents, listed.parts, strict=True):
        if file_hash(content) != part.sha256:
            _refuse(f"The part {name} is not the one that was combined: it was changed since")
    return contents, listed.parts


def _member(place: int) -> str:
    return f"{place}{ARCHIVE_SUFFIX}"


def _refuse(problem: str) -> NoReturn:
    raise ReleaseError(f"{problem}.")
