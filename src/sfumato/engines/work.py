"""A worker's task: sum a statistic over its piece of the records, and answer with masked numbers or a code.

A worker never raises: an exception's text may hold a cell, and engines write exceptions to logs, send them to drivers,
and try again. It never warns either. Work and answers are bytes, so that an engine has nothing of them to show.

    masked = (partial sum, 0, 0) + pad(key, piece)   mod 2^64

The pad is an AES-256 key stream, keyed anew for every pass and begun anew for every piece. What lies in a spill file or
an object store is therefore random bits. The driver adds what came, takes every piece's pad off, and the last two words
must be 0: a piece that came twice, not at all, or of another pass leaves them random. A wrong sum passes with
probability 2^-128.

It guards against disks and logs. Who rules the workers sees their records, and their keys, anyway.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib
import pickle
import platform
import secrets  # noqa: TID251 - keys of pads, which no noise is made of
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
import scipy
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato._version import __version__
from sfumato.errors import DataError
from sfumato.records.engine import InParts, Records, Statistic, partial_sum

TAG_WORDS = 2
_ZEROS = bytes(1 << 20)
_HEAD = struct.Struct("<BQ32s")  # code, piece, kind of machine


def new_key() -> bytes:
    """Return the secret key of one pass."""
    return secrets.token_bytes(32)


def masked(partial: np.ndarray, key: bytes, piece: int) -> np.ndarray:
    """Return a partial sum under the pad of its piece.

    Args:
        partial: whole numbers, int64, any shape of w numbers.
        key: of the pass.
        piece: number of the piece, below 2^64.

    Returns:
        uint64, shape (w + 2,).

    Example:
        >>> key = new_key()
        >>> sums = [np.array([1, -2]), np.array([3, 4])]
        >>> total = sum(masked(some, key, i) for i, some in enumerate(sums))
        >>> unmasked(total, key, [0, 1]).tolist()
        [4, 2]
    """
    flat = partial.reshape(-1).view(np.uint64)
    result = pad(key, piece, flat.size + TAG_WORDS)
    result[: flat.size] += flat
    return result


def unmasked(total: np.ndarray, key: bytes, pieces: list[int]) -> np.ndarray | None:
    """Return a sum of masked partial sums as it is, int64; None unless it is of these pieces, each once."""
    total = total.copy()
    for piece in pieces:
        total -= pad(key, piece, total.size)
    return None if total[-TAG_WORDS:].any() else total[:-TAG_WORDS].view(np.int64)


def pad(key: bytes, piece: int, words: int) -> np.ndarray:
    """Return so many words of the key stream of a piece, uint64."""
    start = piece.to_bytes(8, "big") + bytes(8)  # the lower half counts blocks: no two pieces meet
    stream = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor()
    result = np.empty(words, dtype="<u8")
    room = result.view(np.uint8)
    for at in range(0, room.size, len(_ZEROS)):
        part = room[at : at + len(_ZEROS)]
        part[:] = np.frombuffer(stream.update(_ZEROS[: part.size]), dtype=np.uint8)
    return result


class Outcome(enum.IntEnum):
    """How a piece of work ended: all that a worker says of what went wrong."""

    DONE = 0
    UNREADABLE = 1
    NO_MEMORY = 2
    OTHER_VERSION = 3
    FAILED = 4


@final
@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The answer of a worker.

    Attributes:
        outcome: how it ended.
        piece: which piece it was.
        machine: kind of processor and versions of libraries, hashed.
        words: masked partial sum, uint64; none unless it was done.
    """

    outcome: Outcome
    piece: int
    machine: bytes
    words: np.ndarray

    def packed(self) -> bytes:
        """Return the answer as bytes."""
        return _HEAD.pack(self.outcome, self.piece, self.machine) + self.words.astype("<u8", copy=False).tobytes()

    @classmethod
    def of(cls, packed: bytes) -> Answer:
        """Read an answer. Bytes that are none are a failure of piece 0."""
        if len(packed) < _HEAD.size or (len(packed) - _HEAD.size) % 8 or packed[0] > max(Outcome):
            return cls(Outcome.FAILED, 0, bytes(32), np.empty(0, np.uint64))
        code, piece, machine = _HEAD.unpack_from(packed)
        words = np.frombuffer(packed, dtype="<u8", offset=_HEAD.size).astype(np.uint64, copy=False)
        return cls(Outcome(code), piece, machine, words)


def shared_part(key: bytes, statistic: Statistic, width: int | None) -> tuple[bytes, bytes, str]:
    """Return the part of a pass that all its pieces share, as built-in types: readable by a worker of any version.

    Args:
        key: of the pads of this pass.
        statistic: to sum.
        width: as of `InParts`.

    Returns:
        The key; statistic and width, pickled; the version of Sfumato at the driver.
    """
    return key, pickle.dumps((statistic, width), protocol=5), __version__


@final
class _Silence:
    """No warning is shown while any thread is in the block.

    The filters belong to the process, and a worker of Dask has several threads: if each put back what it found, the
    first to end would let the others' warnings out.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._filters.__exit__(None, None, None)


_SILENCE = _Silence()


def work(shared: tuple[bytes, bytes, str], piece: int, records: bytes) -> bytes:
    """Sum over a piece of the records, and answer.

    Args:
        shared: `shared_part` of the pass.
        piece: its number.
        records: its records, coded, pickled.

    Returns:
        `Answer.packed()`.
    """
    return answered(shared, piece, lambda: pickle.loads(records))


def answered(shared: tuple[bytes, bytes, str], piece: int, opened: Callable[[], Records]) -> bytes:
    """Answer with the sum over the records that `opened()` returns."""
    outcome, words = Outcome.FAILED, np.empty(0, np.uint64)
    try:
        with _SILENCE:  # a warning may show a cell
            outcome, words = _sum(shared, piece, opened)
    except BaseException as error:  # noqa: BLE001 - whatever it is, its text stays here
        outcome, words = _outcome_of(error), np.empty(0, np.uint64)
    return Answer(outcome, piece, machine(), words).packed()


def _sum(shared: tuple[bytes, bytes, str], piece: int, opened: Callable[[], Records]) -> tuple[Outcome, np.ndarray]:
    key, body, version = shared
    if version != __version__:  # before anything is unpickled
        return Outcome.OTHER_VERSION, np.empty(0, np.uint64)
    statistic, width = _unpacked(body)
    records: Records = opened()
    if width is not None:
        records = InParts(records, width)
    return Outcome.DONE, masked(partial_sum(statistic, records), key, piece)


@functools.lru_cache(maxsize=1)
def _unpacked(body: bytes) -> tuple[Statistic, int | None]:
    return pickle.loads(body)


def _outcome_of(error: BaseException) -> Outcome:
    if isinstance(error, MemoryError):
        return Outcome.NO_MEMORY
    return Outcome.UNREADABLE if isinstance(error, DataError | OSError) else Outcome.FAILED


@functools.cache
def machine() -> bytes:
    """Return the kind of this machine: what may change the last bit of a float.

    A record's contribution must not depend on which worker sees it, or records that are added, and shift others from
    one worker to the next, would change what those others add.
    """
    facts = [
        platform.machine(),
        *platform.libc_ver(),
        sys.version,
        np.__version__,
        scipy.__version__,
        pa.__version__,
        *_features(),
        *_libraries(),
    ]
    return hashlib.sha256("\n".join(facts).encode()).digest()


def _features() -> Iterator[str]:
    """Yield the instruction sets that numpy chooses its loops by."""
    core = importlib.import_module("numpy._core._multiarray_umath")  # numpy.show_config() prints the same
    yield from sorted(name for name, present in core.__cpu_features__.items() if present)


def _libraries() -> Iterator[str]:
    """Yield the linear algebra that products are made with."""
    import scipy.linalg  # noqa: F401 - it brings its own
    from threadpoolctl import threadpool_info

    blas = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    yield from sorted({f"{b.get('internal_api')} {b.get('version')} {b.get('architecture')}" for b in blas})
