"""One-time pads for partial sums on their way to the driver, and the words that tell whether each came once.

    masked = (partial sum, 0, 0) + pad(key, piece)   mod 2^64

The pad is an AES-256 key stream, keyed anew for every pass and begun anew for every piece. What lies in a spill file or
an object store is therefore random bits. The driver adds what came, takes every piece's pad off, and the last two words
must be 0: a piece that came twice, not at all, or of another pass leaves them random. A wrong sum passes with
probability 2^-128.

It guards against disks and logs. Who rules the workers sees their records, and their keys, anyway.
"""

from __future__ import annotations

import secrets  # noqa: TID251 - keys of pads, which no noise is made of

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

TAG_WORDS = 2
_ZEROS = bytes(1 << 20)


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
