"""Files that somebody else may have written: how much of one is read is known before, whatever it says of itself.

Only regular files are read: a pipe may never end, a device never does. A zip has plain names, each once, and members
that lie apart from each other, so that all of them together are no larger than the file.
"""

from __future__ import annotations

import errno
import os
import stat
import zipfile
from pathlib import Path
from typing import IO

_HEADER_BYTES = 30  # of a member, before its name
_SMALL = 1 << 16
_NOT_REGULAR = "no regular file"


class UnreadableFileError(ValueError):
    """Why a file is not read, in a few words that show nothing of it."""


def read_bounded(path: str | os.PathLike[str], most: int, *, links: bool = True) -> bytes:
    """Return the bytes of a regular file.

    Args:
        path: of the file.
        most: how many bytes it may have.
        links: whether the path may be a symbolic link.

    Raises:
        UnreadableFileError: it is no regular file, is larger, or the system refuses.

    Example:
        >>> read_bounded("/dev/zero", 100)
        Traceback (most recent call last):
            ...
        sfumato.io.untrusted.UnreadableFileError: no regular file
    """
    reason = ""
    try:
        status = os.stat(path, follow_symlinks=links)
        if stat.S_ISDIR(status.st_mode):
            reason = "is a directory"
        elif not stat.S_ISREG(status.st_mode):
            reason = _NOT_REGULAR
        elif status.st_size <= most:
            most = min(most, max(status.st_size, _SMALL))  # so much memory is taken before anything is read
            with open(path, "rb", opener=_open_regular) as file:
                content = file.read(most + 1)
            if len(content) <= most:
                return content
        reason = reason or (f"more than {most >> 20} MiB" if most >> 20 else f"more than {most >> 10} KiB")
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "no usable file name").lower()
    raise UnreadableFileError(reason)


def _open_regular(path: str, flags: int) -> int:
    """Open a file; what has become a pipe meanwhile does not wait for its writer."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, _NOT_REGULAR)


class UntrustedZip(zipfile.ZipFile):
    """A zip that is open to be read.

    Raises:
        zipfile.BadZipFile: it is none, or its members are not what they say.
    """

    def __init__(self, file: Path | IO[bytes]) -> None:
        super().__init__(file)
        problem = _problem(self.infolist(), self.start_dir)
        if problem:
            self.close()
            raise zipfile.BadZipFile(problem)


def _problem(members: list[zipfile.ZipInfo], end: int) -> str:
    """Return what is wrong with the members of a zip, whose list of them begins at `end`; empty if nothing is."""
    names = {member.filename for member in members}
    if len(names) < len(members):
        return "a name that stands twice"
    if any(name.startswith("/") or ".." in name.replace("\\", "/").split("/") for name in names):
        return "a name that leads out of it"
    for member in sorted(members, key=lambda member: member.header_offset, reverse=True):
        if member.header_offset + _HEADER_BYTES + len(member.filename) + member.compress_size > end:
            return "members that overlap"
        end = member.header_offset
    return ""
