"""Files that are read in several passes: on this machine or on a remote store, compressed or not.

Every pass has to read the same bytes: a file whose size or time of change is another than when it was opened is
refused.

Lines of a text file are read each by itself: one that is too long is none, and stops no other.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, final

import pyarrow as pa

from sfumato.errors import DataError
from sfumato.io.chunks import Source
from sfumato.io.untrusted import UntrustedZip

if TYPE_CHECKING:
    from pyarrow import fs
    from typing_extensions import Buffer


LONGEST_LINE = 4 << 20
"""Bytes of the longest line that is read, in UTF-8: as of a record of CSV."""
Compression: TypeAlias = Literal["gzip", "zstd", "zip"]
COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zip": "zip"}
_DEFLATED = 1032
_PACKED = 8  # times that text becomes smaller, roughly
_NO_MEMBERS = ("__MACOSX/", ".")  # what file managers put into archives


def bounded_lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Yield lines without their ends, and None for one that is longer than `LONGEST_LINE`, in its place."""
    while line := stream.readline(LONGEST_LINE + 1):
        if line.endswith(b"\n"):
            yield line[:-1]
        elif len(line) <= LONGEST_LINE:  # the last
            yield line
        else:
            while line and not line.endswith(b"\n"):
                line = stream.readline(LONGEST_LINE + 1)
            yield None


@final
class BlockStream(io.RawIOBase):
    """Blocks of bytes as a file to read; closing it closes the file that they come from."""

    def __init__(self, file: IO[bytes], blocks: Iterator[bytes]) -> None:
        self._file, self._blocks = file, blocks
        self._pending = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer; return how many bytes it got."""
        while not self._pending:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._pending = memoryview(block)
        target = memoryview(buffer)
        count = min(len(target), len(self._pending))
        target[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()


@final
@dataclass(frozen=True, slots=True, repr=False)
class StoredFile:
    """A file, and how it looked when it was opened.

    Attributes:
        path: where it is in its file system.
        name: what messages call it; no part of a folder's name, which may hold a value.
        system: the file system; None for that of this machine.
        compression: how its bytes are packed.
        stamp: its size in bytes and its time of change in nanoseconds, as far as the file system tells.
        kept_by: what removes the file when nobody holds it any more.
    """

    path: str
    name: str
    system: fs.FileSystem | None = None
    compression: Compression | None = None
    stamp: tuple[int | None, int | None] = (None, None)
    kept_by: object = None

    @property
    def size(self) -> int:
        """Bytes, about so many where they are packed; 0 where the file system does not tell."""
        return (self.stamp[0] or 0) * (1 if self.compression is None else _PACKED)

    @contextlib.contextmanager
    def reading(self) -> Iterator[IO[bytes]]:
        """Open the file for one pass over its unpacked bytes.

        Raises:
            DataError: it is another file than when it was opened.
        """
        self._check()
        with contextlib.ExitStack() as stack:
            raw: Any = pa.OSFile(self.path) if self.system is None else self.system.open_input_file(self.path)
            stack.enter_context(raw)
            if self.compression == "zip":
                archive = stack.enter_context(UntrustedZip(raw))
                raw = stack.enter_context(open_member(archive, _only_member(archive, self.name)))
            elif self.compression is not None:
                raw = stack.enter_context(pa.CompressedInputStream(raw, self.compression))
            yield raw
        self._check()

    def _check(self) -> None:
        if _stamp(self.path, self.system) != self.stamp:
            raise DataError(f"Expected {self.name} to stay as it was when it was opened, but it changed. Fit a copy.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FileSource(Source):
    """A file that any process which sees it can read.

    Attributes:
        file: where it is.
    """

    file: StoredFile

    @property
    def in_files(self) -> bool:
        """Whether other processes can read it."""
        return self.file.kept_by is None

    def size(self) -> int:
        """Bytes of the file."""
        return self.file.size


def stored_file(path: str | Path, *, system: fs.FileSystem | None = None, name: str | None = None) -> StoredFile:
    """Take note of a file. Its last suffix says whether it is compressed."""
    place = PurePosixPath(path) if system is not None else Path(path)
    return StoredFile(
        path=str(path),
        name=name or place.name,
        system=system,
        compression=COMPRESSIONS.get(place.suffix.lower()),
        stamp=_stamp(str(path), system),
    )


def open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member of an archive to be read from front to back, in little memory.

    Raises:
        DataError: it is packed in a way that may ask for gigabytes before its first byte (LZMA), or encrypted.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
        raise DataError("Expected an archive packed by deflate and without a password, got another. Unpack it.")
    return archive.open(member)


def most_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return how many bytes a member can have at the most, whatever its archive says: deflate packs 1,032 into one."""
    file = archive.fp
    assert file is not None
    place = file.tell()
    packed = min(member.compress_size, file.seek(0, io.SEEK_END))
    file.seek(place)
    return min(member.file_size, packed * (1 if member.compress_type == zipfile.ZIP_STORED else _DEFLATED) + 64)


def format_suffix(name: str) -> str:
    """Return the suffix that says a file's format, in small letters: `.csv` for `people.csv.gz`."""
    path = PurePosixPath(name)
    if path.suffix.lower() in COMPRESSIONS:
        path = PurePosixPath(path.stem)
    return path.suffix.lower()


def _stamp(path: str, system: fs.FileSystem | None) -> tuple[int | None, int | None]:
    if system is None:
        status = Path(path).stat()
        return status.st_size, status.st_mtime_ns
    info = system.get_file_info(path)
    return info.size, info.mtime_ns


def _only_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir()
        and not member.filename.startswith(_NO_MEMBERS[0])
        and not PurePosixPath(member.filename).name.startswith(_NO_MEMBERS[1])
    ]
    if len(members) != 1:
        raise DataError(f"Expected one file in the archive {name}, got none or several. Unpack it.")
    return members[0]
