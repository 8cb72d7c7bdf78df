"""Files behind a text: a path, a glob, a folder of Parquet or of images, or the URL of a remote store."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from sfumato._lazy import later
from sfumato.columns.facts import shown
from sfumato.errors import ConfigError, DataError
from sfumato.io.chunks import attempt
from sfumato.io.stored import StoredFile, stored_file

if TYPE_CHECKING:
    from pyarrow import fs
else:  # it brings ssl
    fs = later("pyarrow.fs")

_OWN_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "file")  # which pyarrow reads itself, where it was built so
_FSSPEC = {"https": "aiohttp", "http": "aiohttp", "az": "adlfs", "abfs": "adlfs", "gs": "gcsfs", "s3": "s3fs"}
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WILD, _HIDDEN = re.compile(r"[*?\[]"), re.compile(r"(^|/)[._]")


@final
@dataclass(frozen=True, slots=True)
class DataFiles:
    """The files of a data set, sorted by path.

    Attributes:
        label: what messages call them.
        files: at least one.
        folders: for each file, the columns that its folders name.
    """

    label: str
    files: tuple[StoredFile, ...]
    folders: tuple[Mapping[str, str | None], ...]


def scheme_of(text: str) -> str | None:
    """Return the scheme of a URL, in small letters; None for a path, and for a drive of Windows."""
    match = re.match(r"([A-Za-z][A-Za-z0-9+.\-]+)://", text)
    return match[1].lower() if match else None


def find_glob(pattern: str) -> DataFiles | None:
    """Return the files that a pattern names; None if it is a plain path.

    Raises:
        DataError: no file matches.
    """
    if not _WILD.search(pattern) or os.path.lexists(pattern):
        return None
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    label = Path(pattern).name
    if not paths:
        raise DataError(f"Expected files that match {label}, got none. Check the pattern.")
    return _data_files(label, paths, [_below(path, _fixed(pattern)) for path in paths])


def find_list(paths: Sequence[str | os.PathLike[str]]) -> DataFiles:
    """Return the files of a list, sorted by path.

    Raises:
        DataError: one is no file.
    """
    texts = sorted(os.fspath(path) for path in paths)
    for text in texts:
        if not os.path.isfile(text):
            raise DataError(f"Expected a list of files that exist, got {Path(text).name}. Check the path.")
    return _data_files("the list of files", texts, texts)


def find_folder(folder: Path) -> DataFiles | None:
    """Return the Parquet files of a folder and those below it; None if it holds none, or images beside them."""
    if any(_walk(folder, ".png")):
        return None
    paths = sorted(_walk(folder, ".parquet"))
    below = [_below(path, str(folder)) for path in paths]
    return _data_files(folder.name or "the folder", paths, below) if paths else None


def find_remote(url: str) -> DataFiles:
    """Return the files of a URL on a remote store: one, the files that match, or a folder's Parquet files.

    Raises:
        ConfigError: no library for the scheme is installed.
        DataError: nothing is there, or the store cannot be reached.
    """
    scheme = scheme_of(url) or ""
    label = f"{Path(urlsplit(url).path).name or 'the folder'} of {scheme}"
    pattern = bool(_WILD.search(url)) and scheme not in ("http", "https")  # a ? there begins a query
    base = _fixed(url) if pattern else url
    system, path = _connect(base, scheme, label)
    message = f"Cannot reach {label}. Check the address, the network and the credentials."
    if not pattern:
        info = attempt(lambda: system.get_file_info(path), message)
        if info.type == fs.FileType.File:
            file = attempt(lambda: stored_file(path, system=system, name=Path(urlsplit(url).path).name), message)
            return DataFiles(label, (file,), ({},))
    infos = attempt(lambda: system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True)), message)
    files = sorted(info.path for info in infos if info.type == fs.FileType.File)
    if pattern:
        chosen = _matching(url[len(base) :].lstrip("/"), [_below(file, path) for file in files])
        files = [file for file, matches in zip(files, chosen, strict=True) if matches]
    else:
        files = [file for file in files if file.lower().endswith(".parquet") and not _HIDDEN.search(_below(file, path))]
    if not files:
        raise DataError(f"Expected a file, files that match, or a folder of Parquet files as {label}, got none.")
    return attempt(lambda: _data_files(label, files, [_below(file, path) for file in files], system), message)


def _connect(url: str, scheme: str, label: str) -> tuple[fs.FileSystem, str]:
    if scheme in _OWN_SCHEMES:
        # the error holds the address, which may hold a key; or pyarrow was built without it
        with contextlib.suppress(Exception):
            return fs.FileSystem.from_uri(url)
    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(system)), path
    except (ImportError, ValueError):
        absent = ConfigError(
            f"Expected a library that reads {scheme}:// to be installed, got none. Run pip install 'sfumato[remote]' "
            f"{_FSSPEC.get(scheme, '')}".rstrip()
            + "."
        )
    except Exception:  # noqa: BLE001
        absent = DataError(f"Cannot reach {label}. Check the address, the network and the credentials.")
    raise absent


def _data_files(
    label: str, paths: Sequence[str], below: Sequence[str], system: fs.FileSystem | None = None
) -> DataFiles:
    files = tuple(stored_file(path, system=system) for path in paths)
    return DataFiles(label, files, tuple(_partition(path) for path in below))


def _partition(path: str) -> dict[str, str | None]:
    """Return the columns that folders such as `year=2024` give."""
    columns: dict[str, str | None] = {}
    for part in re.split(r"[/\\]", path)[:-1]:
        name, equals, value = part.partition("=")
        if equals and name:
            columns[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return columns


def _walk(folder: Path, suffix: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in files:
            if name.lower().endswith(suffix) and not name.startswith((".", "_")):
                yield os.path.join(place, name)


def _fixed(pattern: str) -> str:
    """Return the folder before the first wildcard."""
    start = _WILD.search(pattern)
    assert start is not None
    before = pattern[: start.start()]
    return before[: max(before.rfind("/"), before.rfind(os.sep)) + 1]


def _below(path: str, base: str) -> str:
    return path.removeprefix(base).lstrip("/" + os.sep)


def _matching(pattern: str, paths: Sequence[str]) -> list[bool]:
    """Return which paths match a pattern, in linear time: `**/` is any folders, and `*` and `?` hold no `/`."""
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", pattern, re.DOTALL)
    classes = {part: part.replace("[!", "[^", 1) for part in parts if len(part) > 1 and part.startswith("[")}
    whole = "".join((wild | classes).get(part, re.escape(part)) for part in parts)
    texts = pa.array(paths, pa.string())
    message = f"Expected a pattern of files, got {shown(pattern)}. Correct its brackets."
    return attempt(lambda: pc.match_substring_regex(texts, f"(?s)^(?:{whole})$").to_pylist(), message)
