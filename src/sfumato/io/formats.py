"""File formats of other packages, by suffix: what reads such a file in chunks, and what writes one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from sfumato.entry_points import find, names
from sfumato.errors import DataError
from sfumato.io.chunks import Source, attempt

CONTAINERS = ("csv", "parquet", "npz", "fimi")
"""Files that Sfumato writes itself: the form in which samples of records from another kind of file come back."""

Opener: TypeAlias = Callable[[Path, int], Source]
Writer: TypeAlias = Callable[[Iterator[pa.Table], Path], None]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format that another package brings: what an entry point of the group `sfumato.formats` names.

    The entry point's name is the suffix without its dot, in small letters.

    Attributes:
        open: makes a source of a path and the most rows of a chunk. It may read headers and has to check what it can
            before a record is read: a `DataError` of its own is shown, of any other exception nothing.
        write: writes tables, at least one, all with the columns of the first, to a path where nothing is; None if the
            format is for reading alone. Samples come here, no records.

    Example:
        >>> Format(open=lambda path, chunk_rows: ..., write=None).write is None
        True
    """

    open: Opener
    write: Writer | None = None


def format_of(suffix: str, own: Collection[str]) -> Format | None:
    """Return the format that another package brings for a suffix such as `.dbf`; None if none does.

    Raises:
        ConfigError: two packages claim the suffix, or the one that does cannot be imported or names something else.
    """
    plugin = find("format", suffix.removeprefix("."), [name.removeprefix(".") for name in own])
    form = None if plugin is None else plugin.load()
    if plugin is not None and not isinstance(form, Format):
        raise plugin.wrong("a sfumato.plugins.Format")
    return form


def suffixes(own: Collection[str]) -> list[str]:
    """Return Sfumato's own suffixes and those of plugins, which are not loaded."""
    mine = [suffix for suffix in own if suffix]
    return [*mine, *(f".{name}" for name in names("format", [suffix.removeprefix(".") for suffix in mine]))]


def open_with(form: Format, path: Path, chunk_rows: int) -> Source:
    """Open a file by another package's format; nothing of what goes wrong is shown, as it may hold a cell.

    Raises:
        DataError: the file cannot be read, or becomes something else than a source.
    """
    source = attempt(
        lambda: form.open(path, chunk_rows),
        f"Cannot read {path.name}: it is damaged, or not in the format of its suffix.",
    )
    if not isinstance(source, Source) or source.container not in CONTAINERS:
        raise DataError(
            f"Expected {path.name} to be opened as a Source whose container is {', '.join(CONTAINERS)}, got something "
            "else. Ask the authors of that format."
        )
    return source
