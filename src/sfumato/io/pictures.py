"""Pictures in files as arrays, arrays as PNG, and labels as names of folders.

Pillow reads and writes the files. It is imported here only, and when it is needed.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import numpy as np

from sfumato.columns.images import Image
from sfumato.errors import ConfigError, SchemaError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

SUFFIX = ".png"  # of what is written
_SUFFIXES = {
    "PNG": (".png",),
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "WEBP": (".webp",),
    "TIFF": (".tif", ".tiff"),
    "BMP": (".bmp",),
    "GIF": (".gif",),
    "PPM": (".pgm", ".ppm", ".pbm", ".pnm"),
}
SUFFIXES = tuple(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
"""Of files that are read as pictures, in small letters."""
_DTYPES = ("uint8", "uint16")
_CHANNELS = (1, 3)
_SPARE_BYTES = 1 << 20  # colour profiles, text
_DRAFT_BYTES = 1 << 28
_ORIENTATION, _ON_ITS_SIDE = 0x0112, (5, 6, 7, 8)  # of a camera, when it took the picture
_TURNED = ("JPEG", "MPO", "WEBP")  # TIFF files are turned as they are opened
_EMPTY = "%"  # no other label is encoded so: the sign itself becomes %25
_PLAIN = frozenset(" .-_+=,;@()[]{}!#$&'~^")


def require_pillow() -> None:
    """Refuse to go on without Pillow.

    Raises:
        ConfigError: it is not installed.
    """
    with contextlib.suppress(ImportError):
        import PIL.PngImagePlugin  # noqa: F401

        return
    raise ConfigError("Expected Pillow to be installed, to read and write pictures. Install sfumato[images].")


def check_picture(name: str, kind: Image) -> None:
    """Refuse a kind whose values are no pictures in files.

    Raises:
        SchemaError: the shape or the dtype is another.
    """
    shape = kind.shape
    if len(shape) not in {2, 3} or channels_of(shape) not in _CHANNELS:
        raise SchemaError(
            f"Expected shape [height, width], [height, width, 1] or [height, width, 3] of pictures in column "
            f"{name!r}, got {list(shape)}."
        )
    if kind.dtype not in _DTYPES:
        raise SchemaError(f"Expected dtype uint8 or uint16 of pictures in column {name!r}, got {kind.dtype}.")


def channels_of(shape: tuple[int, ...]) -> int:
    """Return the number of channels of images of a shape (height, width[, channels])."""
    return shape[2] if len(shape) == 3 else 1


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Keep Pillow's warnings and debug log to itself: they would tell of single files, and of how many there are."""
    _formats()  # whose loggers are there from now on
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("PIL.")]
    before = [logger.disabled for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.disabled = True
        try:
            yield
        finally:
            for logger, disabled in zip(loggers, before, strict=True):
                logger.disabled = disabled


def read_picture(file: Path | bytes, kind: Image) -> np.ndarray | None:
    """Return a picture as an array of the kind's shape and dtype, or None if a file or its bytes hold no such one.

    Whatever the file holds, there is no exception and no message. Colours become the declared number of channels, 8
    bits become 16 (× 257) or 16 become 8 (the high byte), so that white stays white; alpha is dropped; of several
    pictures in a file the first is read, turned as its camera says. A picture of another size is never decoded, however
    large it says it is.
    """
    try:
        # from public facts, and far more than it needs
        with _opened(file, most=32 * math.prod(kind.shape) + _SPARE_BYTES) as picture:
            if _size(picture) != (kind.shape[1], kind.shape[0]):
                return None
            return _pixels(picture, kind)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  a damaged file: what Pillow says of it stays here
        return None


def read_header(file: Path | bytes) -> Image | None:
    """Return the kind of image that a file's header tells, or None. Not private: for drafts alone."""
    try:
        with _opened(file, most=_DRAFT_BYTES) as picture:
            deep, colour = _is_deep(picture), picture.mode not in {"1", "L", "LA"}
            width, height = _size(picture)
            if picture.mode == "F":
                return None
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001
        return None
    try:
        shape = (height, width, 3) if colour and not deep else (height, width)
        return Image(shape=shape, dtype="uint16" if deep else "uint8", upper=65535 if deep else 255)
    except SchemaError:  # larger than any image may be
        return None


def png_bytes(image: np.ndarray) -> bytes:
    """Return an image of shape (h, w), (h, w, 1) or (h, w, 3) as a PNG file; uint16 has one channel.

    Raises:
        ConfigError: PNG files hold no such images.
    """
    from PIL import Image as Pictures

    channels = channels_of(image.shape) if image.ndim in {2, 3} else 0
    if channels not in _CHANNELS or image.dtype not in _DTYPES or (channels == 3 and image.dtype == np.uint16):
        raise ConfigError(
            "Expected images of dtype uint8 with 1 or 3 channels, or uint16 with 1, for PNG files, got dtype "
            f"{image.dtype}, shape {list(image.shape)}. Write .npz."
        )
    flat = image[:, :, 0] if image.ndim == 3 and channels == 1 else image
    file = io.BytesIO()
    Pictures.fromarray(np.ascontiguousarray(flat)).save(file, format="PNG")
    return file.getvalue()


def folder_of_label(label: str) -> str:
    """Return a label as the name of a folder: letters and digits stay, what a path may not hold is percent-encoded.

    One folder stands for one label, and `label_of_folder` gives it back.
    """
    if not label:
        return _EMPTY
    name = [char if char.isalnum() or char in _PLAIN else quote(char, safe="") for char in label]
    for end in (0, -1):  # hidden on some systems, cut off on others; this covers "." and ".."
        if label[end] in ". ":
            name[end] = f"%{ord(label[end]):02X}"
    return "".join(name)


def label_of_folder(name: str) -> str:
    """Return the label that the name of a folder stands for; total, the inverse of `folder_of_label`."""
    if name == _EMPTY:
        return ""
    text = os.fsencode(name).decode("utf-8", "replace")
    return unquote(text, errors="replace")


@lru_cache(maxsize=1)
def _formats() -> tuple[str, ...]:
    """Return the formats that this Pillow can read."""
    from PIL import Image as Pictures

    Pictures.init()
    return tuple(name for name in _SUFFIXES if name in Pictures.OPEN)


def _opened(file: Path | bytes, most: int) -> Picture:
    from PIL import Image as Pictures

    if isinstance(file, bytes):
        return Pictures.open(io.BytesIO(file[:most]), formats=_formats())
    with file.open("rb") as stream:
        return Pictures.open(io.BytesIO(stream.read(most)), formats=_formats())


def _size(picture: Picture) -> tuple[int, int]:
    """Return width and height of a picture as it is to be seen; nothing is decoded."""
    width, height = picture.size
    is_on_its_side = picture.format in _TURNED and picture.getexif().get(_ORIENTATION) in _ON_ITS_SIDE
    return (height, width) if is_on_its_side else (width, height)


def _is_deep(picture: Picture) -> bool:
    """Whether a grey picture has 16 bits, which older versions of Pillow call I."""
    return picture.mode.startswith("I")


def _pixels(picture: Picture, kind: Image) -> np.ndarray | None:
    from PIL import ImageOps

    channels = channels_of(kind.shape)
    if picture.mode == "F":  # numbers of any size, which no bound says how to see
        return None
    if picture.format in _TURNED:
        picture = ImageOps.exif_transpose(picture)
    if _is_deep(picture):
        grey = np.clip(np.asarray(picture), 0, 65535).astype(np.uint16)
        values = np.repeat(grey[:, :, None], channels, axis=2)
        values = values if kind.dtype == "uint16" else (values >> 8).astype(np.uint8)
    else:
        if picture.mode in {"P", "PA"}:  # its transparency goes with the alpha channel
            picture = picture.convert("RGBA")
        values = np.asarray(picture.convert("L" if channels == 1 else "RGB"))
        values = values if kind.dtype == "uint8" else values.astype(np.uint16) * np.uint16(257)
    return values.reshape(kind.shape)
