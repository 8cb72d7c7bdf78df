"""The files that may be tables in a folder of this machine: what a file picker shows, without an upload."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sfumato.errors import ConfigError
from sfumato.io.sources import STREAMED

MOST_SHOWN = 300
_SUFFIXES = tuple(f".{form}" for form in STREAMED)


class FolderListing(NamedTuple):
    """A folder: its path, the folders and tables in it by name, and whether it has more than are shown."""

    path: Path
    folders: list[Path]
    tables: list[Path]
    has_more: bool


def listing_of(folder: str | Path) -> FolderListing:
    """Return what a folder holds, hidden names left out. No file is opened.

    Raises:
        ConfigError: it is no folder that may be read.
    """
    path = Path(folder).expanduser().absolute()
    try:
        entries = sorted((e for e in path.iterdir() if not e.name.startswith(".")), key=lambda e: e.name.lower())
        folders = [entry for entry in entries if entry.is_dir()]
    except (OSError, ValueError):
        raise ConfigError("Expected a folder of this machine that may be read. Choose another one.") from None
    tables = [entry for entry in entries if entry.name.lower().endswith(_SUFFIXES) and entry not in folders]
    has_more = max(len(folders), len(tables)) > MOST_SHOWN
    return FolderListing(path, folders[:MOST_SHOWN], tables[:MOST_SHOWN], has_more)
