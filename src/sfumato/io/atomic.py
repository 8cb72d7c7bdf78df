"""Outputs that are there whole or not at all: written beside their place, then renamed.

Ctrl-C, held back where it may not come in between.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

from sfumato.errors import OutputError, SfumatoError

Handler: TypeAlias = Callable[[int, FrameType | None], Any]


def current_handler() -> Handler | None:
    """Return Python's handler of Ctrl-C; None where the system ignores it, or ends the process."""
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None


def set_handler(handler: Handler | signal.Handlers) -> bool:
    """Set what comes of Ctrl-C; return whether that is possible: in the main thread only, which alone it reaches."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, handler)
        return True
    return False


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, well or not; then it comes."""
    before = current_handler()
    signals: list[tuple[int, FrameType | None]] = []
    if before is None or not set_handler(lambda *came: signals.append(came)):
        yield
        return
    try:
        yield
    finally:
        set_handler(before)
        if signals:
            before(*signals[0])


SECRET = 0o600
"""Rights of files that must not be published: read and written by their owner alone."""

Marker: TypeAlias = str | tuple[str, ...]
_OF_THE_SYSTEM = (".DS_Store", "Thumbs.db", "desktop.ini")  # what file managers put into any folder
_tell: ContextVar[tuple[tuple[Path, Callable[[], None]], ...]] = ContextVar("tell", default=())


def refuse_inputs(path: Path, **inputs: str | os.PathLike[str] | None) -> None:
    """Raise if an output would replace a file that the same call reads or keeps.

    Args:
        path: the file or directory to write.
        inputs: what they are called in the message, and where they are; None where there is none.

    Raises:
        OutputError: it is one of them, or a folder that one of them lies in.
    """
    place = Path(os.path.realpath(path))
    for name, given in inputs.items():
        if given is None:
            continue
        taken = Path(os.path.realpath(given))
        beside = [taken.with_name(f"{taken.name}.lock")] if name == "ledger" else []
        if place in (taken, *taken.parents, *beside):
            raise OutputError(
                f"Expected an output of its own, got {path}, which is the {name} of this call or holds it. Choose "
                "another name."
            )


def refuse_existing(path: Path, *, overwrite: bool, marker: Marker | None = None) -> None:
    """Raise unless an output may be written to `path`.

    Args:
        path: the file or directory to write.
        overwrite: whether an existing output may be replaced.
        marker: for a directory: the file by which one of our own outputs is known, or all of its files. A
            directory without them, or with others beside all of its files, is never replaced, unless it is empty.

    Raises:
        OutputError: it exists and may not be replaced, or its folder does not exist or
            may not be written.
    """
    if not path.name or not path.parent.is_dir():
        raise OutputError(f"Expected the folder of {path} to exist. Create it first.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"Expected the folder of {path} to be writable. Choose another.")
    if not os.path.lexists(path):
        return
    if path.is_dir() and any(path.iterdir()) and (marker is None or not _is_ours(path, marker)):
        rule = f"Expected a free name for the output, got the directory {path}"
        raise OutputError(f"{rule}, which holds what Sfumato did not write. Choose another name.")
    if not overwrite:
        raise OutputError(f"Expected no output yet, got {path}, which exists. Pass --overwrite (overwrite=True).")


def _is_ours(path: Path, marker: Marker) -> bool:
    if isinstance(marker, str):
        return (path / marker).is_file()
    names = {item.name for item in path.iterdir()}
    return {*marker} <= names <= {*marker, *_OF_THE_SYSTEM}


@contextlib.contextmanager
def atomic_path(path: Path, *, overwrite: bool, marker: Marker | None = None, secret: bool = False) -> Iterator[Path]:
    """Give a temporary path in the same folder; rename what is there to `path` on success.

    The block makes a file or a directory at the temporary path. It is written to disk before it
    is renamed; when the block fails it is removed and `path` stays as it was. A process that is
    killed leaves a name that begins with "." and ends in ".partial". Ctrl-C comes before the renaming
    or after it, never in between.

    Args:
        path: the file or directory to write.
        overwrite: whether an existing output may be replaced.
        marker: as in `refuse_existing`.
        secret: of a file that must not be published: from its first byte on, only its owner may read it.

    Raises:
        OutputError: `path` exists and may not be replaced, or cannot be written.
    """
    refuse_existing(path, overwrite=overwrite, marker=marker)
    partial = path.with_name(f".{path.name[:40]}.{uuid.uuid4().hex[:12]}.partial")
    try:
        if secret:
            # empty, for the block to fill; Windows keeps to the folder's rights
            write_or_refuse(path, lambda: os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, SECRET)))
        yield partial
        write_or_refuse(path, lambda: _publish(partial, path, overwrite=overwrite, marker=marker))
    finally:
        with undisturbed():
            _remove(partial)


@contextlib.contextmanager
def telling(output: Path, written: Callable[[], None]) -> Iterator[None]:
    """Call `written` when the output is in place, not files on its way; no Ctrl-C comes in between."""
    token = _tell.set(((output, written),))
    try:
        yield
    finally:
        _tell.reset(token)


def write_or_refuse(output: object, write: Callable[[], object], consequence: str = "") -> None:
    """Write an output.

    Args:
        output: its name in the message.
        write: writes it.
        consequence: of a failure, a sentence.

    Raises:
        OutputError: the system or the format refuses.
    """
    if failure := reason_of(write):
        raise OutputError(f"Cannot write {output}: {failure}. {consequence}".rstrip())


def reason_of(act: Callable[[], object]) -> str | None:
    """Do it; return why the system or the format refuses, never in the library's own words."""
    import pyarrow as pa  # not before an output is written: `sfumato --help` needs no format

    try:
        act()
    except SfumatoError:
        raise
    except OSError as error:
        return error.strerror or "the system refused"
    except pa.ArrowException:
        return "a batch does not fit the format or the batches before it"
    return None


def _publish(partial: Path, path: Path, *, overwrite: bool, marker: Marker | None) -> None:
    """Flush `partial` to disk and give it its name."""
    tree = sorted(partial.rglob("*"), reverse=True) if partial.is_dir() else []
    for item in [*tree, partial]:
        _flush(item)
    with undisturbed():
        refuse_existing(path, overwrite=overwrite, marker=marker)
        _rename(partial, path)
        _flush(path.parent)
        for output, written in _tell.get():
            if output.exists() and output.samefile(path):
                written()


def _rename(partial: Path, path: Path) -> None:
    if os.path.lexists(path) and (path.is_dir() or partial.is_dir()):
        # a directory takes no other's place by renaming: what is there steps aside first
        old = path.with_name(f"{partial.name.removesuffix('.partial')}.old.partial")
        path.rename(old)
        try:
            partial.rename(path)
        except OSError:
            old.rename(path)
            raise
        _remove(old)
    else:
        partial.replace(path)


def _flush(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # Windows opens no directories
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
