"""Columns of images: arrays of one fixed shape."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import valid_mask
from sfumato.columns.facts import real_number, shown, whole_number
from sfumato.columns.kind import ColumnKind, Fault, refuse, settle

IMAGE_DTYPES = ("uint8", "uint16", "int16", "int32", "float16", "float32", "float64")

_CHANNELS = (1, 3, 4)  # of pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class Image(ColumnKind):
    """A picture, or any array of one fixed shape.

    Attributes:
        shape: height, width and, if any, channels, in this order; or a single length.
        dtype: how pixels are stored.
        lower: smallest pixel; smaller ones are clamped to it.
        upper: largest pixel; larger ones are clamped to it.

    Example:
        >>> Image(shape=(28, 28)).upper
        255.0
    """

    name: ClassVar[str] = "image"
    holds: ClassVar[str] = "images"

    shape: tuple[int, ...]
    dtype: str = "uint8"
    lower: float = 0
    upper: float = 255

    MAX_DIMENSIONS: ClassVar[int] = 4
    MAX_PIXELS: ClassVar[int] = 2**26

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = real_number("lower", self.lower, faults)
        upper = real_number("upper", self.upper, faults)
        shape = self._checked_shape(faults)
        if self.dtype not in IMAGE_DTYPES:
            known = ", ".join(IMAGE_DTYPES)
            faults.append(f"Expected dtype to be one of {known}, got {shown(self.dtype)}.")
        if not faults and not lower < upper:
            faults.append(f"Expected lower < upper, got lower={lower:g}, upper={upper:g}.")
        refuse(faults)
        settle(self, shape=shape, lower=lower, upper=upper)

    def _checked_shape(self, faults: list[str]) -> tuple[int, ...]:
        if isinstance(self.shape, str) or not isinstance(self.shape, Iterable):
            faults.append(f"Expected shape to be a list of sizes, got {shown(self.shape)}.")
            return ()
        shape = tuple(whole_number("shape", size, faults) for size in self.shape)
        fits = 1 <= len(shape) <= self.MAX_DIMENSIONS and all(size >= 1 for size in shape)
        if not faults and not (fits and math.prod(shape) <= self.MAX_PIXELS):
            faults.append(
                f"Expected shape to be 1 to {self.MAX_DIMENSIONS} sizes of at least 1, and at most 2^26 pixels."
            )
        if not faults and len(shape) == 3 and shape[0] in _CHANNELS and min(shape[1:]) > max(_CHANNELS):
            height, width = shape[1:]
            faults.append(
                f"Expected shape [height, width, channels], got {list(shape)}, whose channels come first. Turn the "
                f"images, in numpy by `x.transpose(0, 2, 3, 1)`, and declare [{height}, {width}, {shape[0]}]."
            )
        return shape

    def code(self, column: pa.Array | pa.ChunkedArray | np.ndarray, *, missing: Sequence[str] = ()) -> np.ndarray:
        """Return images as one numpy array of shape (n, *shape), as stored; totally.

        A missing image, and a missing value of an image, are at the lower bound: whether there is one must not decide
        whether a fit succeeds.
        """
        del missing
        if isinstance(column, np.ndarray):
            return column
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if not isinstance(array, pa.FixedShapeTensorArray):
            raise self._uncoded()
        numbers, present = _numbers(array)
        with np.errstate(all="ignore"):
            fill = np.asarray(self.lower).astype(numbers.dtype)
        values = pa.array(np.where(present, numbers, fill), array.type.value_type)
        filled = pa.FixedSizeListArray.from_arrays(values, int(np.prod(array.type.shape)))
        return pa.ExtensionArray.from_storage(array.type, filled).to_numpy_ndarray()

    def decode(self, codes: np.ndarray, storage: pa.DataType) -> pa.Array:
        """Return images of shape (n, *shape) as tensors of their own type."""
        del storage
        if np.ndim(codes) != 1 + len(self.shape):
            raise self._uncoded()
        return pa.FixedShapeTensorArray.from_numpy_ndarray(codes)

    def reading_fault(self, storage: pa.DataType) -> str | None:
        """Return why a type holds no such images."""
        return self.storage_fault(storage)

    @property
    def sample_type(self) -> pa.DataType:
        """Images of the declared shape and type of pixels."""
        return pa.fixed_shape_tensor(pa.from_numpy_dtype(np.dtype(self.dtype)), self.shape)

    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return why such images cannot be stored in a type, or None if they can."""
        if not isinstance(storage, pa.FixedShapeTensorType):
            return f"Expected the column to hold images, got cells of type {storage}."
        if tuple(storage.shape) != self.shape:
            return (
                f"Expected images of shape {list(self.shape)}, got shape {list(storage.shape)}. Correct the schema's "
                "`shape`."
            )
        if pa.types.is_floating(storage.value_type) and not self.dtype.startswith("float"):
            return (
                f"Expected images of whole numbers, as the dtype is {self.dtype}, got cells of type "
                f"{storage.value_type}. Declare `dtype: float32` and the bounds of a pixel, such as "
                "`lower: 0, upper: 1`."
            )
        return None

    def problems(
        self, column: pa.ChunkedArray | np.ndarray, missing: Sequence[str]
    ) -> Iterator[tuple[Fault, pa.Array]]:
        """Yield pixels outside the bounds, and those that are no numbers."""
        del missing
        if isinstance(column, np.ndarray):
            yield "clamped", pa.array(column[(column < self.lower) | (column > self.upper)])
            if column.dtype.kind == "f":
                yield "unparseable", pa.array(column[np.isnan(column)])

    def becomes(self, fault: Fault) -> str:
        """Say what a fit makes of a pixel with a fault."""
        return "the nearest bound" if fault == "clamped" else "the lower bound"

    def corner(self, share: float) -> np.ndarray:
        """Return an image of the smallest pixels or of the largest."""
        return np.full((1, *self.shape), self.lower + share * (self.upper - self.lower), dtype=self.dtype)


def image_numbers(column: pa.ChunkedArray | np.ndarray) -> np.ndarray:
    """Return an image column as float64, NaN where an image or a value of it is missing; total, as their codes are."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    numbers, present = _numbers(column.combine_chunks())
    return np.where(present, numbers.astype(np.float64), np.nan)


def _numbers(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of `pa.fixed_shape_tensor` cells, and which are there, in the order of storage."""
    cells, size = array.storage, int(np.prod(array.type.shape))
    values = cells.values.slice(cells.offset * size, len(cells) * size)
    # what lies under a null is undefined: it is looked at as a number only to be overwritten
    whole = pa.Array.from_buffers(values.type, len(values), [None, values.buffers()[1]], 0, values.offset)
    return whole.to_numpy(zero_copy_only=False), valid_mask(values) & np.repeat(valid_mask(cells), size)
