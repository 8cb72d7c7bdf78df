"""The one source of secret randomness: Gaussian noise and Bernoulli membership from a cryptographic generator.

Bits are AES-256 key streams in counter mode, keyed by the operating system, again and again. Normals are made from
them in float64 by the ziggurat method (Marsaglia and Tsang 2000, doi:10.18637/jss.v005.i08), with 256 layers,
vectorised: about 99 % of draws cost one table look-up and one product. Of the 64 bits of a draw, 8 choose the layer,
1 the sign and 53 the position in it.

Statistics in whole numbers get `rounded_gaussian`, whose law is exact. The other noise, of gradients, is continuous
Gaussian up to floating point; `docs/sharp_edges.md` says what that leaves open.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
from typing import NoReturn, Protocol, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import sparse

from sfumato.errors import ConfigError, require_integer, require_open_unit
from sfumato.mechanisms.rounded import LARGEST_SCALE, LEAST_SCALE, binomial_counts, rounded_normals, uniform_subsets

Step = float | np.ndarray

_BLOCK = 1 << 14  # draws at a time: the work arrays stay in the processor's cache
_NORMALS_AT_ONCE = 1 << 16  # in two threads: fewer, longer calls hand the interpreter over less often
_ZEROS = bytes(8 * _BLOCK)
_UPWARD = 1 + 2.0**-50  # what a scale may lose to rounding is far less: the noise is never smaller than charged
_LAYERS = 256
_TAIL_START = 3.6541528853610088  # r of the 256-layer ziggurat for exp(-x²/2)
_LAYER_AREA = 0.004928673233974655  # v: area of every layer, tail included


def _ziggurat() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return per layer: width, the share of it that is always inside, and the density at its bottom and top.

    Layer 0 is the base strip: a rectangle of the width v/f(r), of which the part beyond r stands for the tail.
    """
    edges = np.empty(_LAYERS + 1)
    density = np.exp(-(_TAIL_START**2) / 2)
    edges[0], edges[1] = _LAYER_AREA / density, _TAIL_START
    for layer in range(2, _LAYERS):
        density += _LAYER_AREA / edges[layer - 1]
        edges[layer] = np.sqrt(-2 * np.log(density))
    edges[_LAYERS] = 0.0
    heights = np.exp(-(edges**2) / 2)
    return edges[:-1], edges[1:] / edges[:-1], heights[:-1], heights[1:]


_WIDTH, _INSIDE, _BOTTOM, _TOP = _ziggurat()
_WIDTH_PER_UNIT = _WIDTH * 2.0**-53
_INSIDE_UNITS = _INSIDE * 2.0**53


_forks = 0


def _count_fork() -> None:
    """Note, in a forked child, that it is not the process in which older sources were keyed."""
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class NoiseSource(Protocol):
    """Where a mechanism gets its randomness.

    Attributes:
        private: True only if nobody can predict what is drawn.
        silent: True if the Gaussian noise is always zero.
    """

    private: bool
    silent: bool

    def gaussian(self, shape: int | tuple[int, ...], noise_std: float) -> np.ndarray:
        """Return independent N(0, noise_std²) draws, float64."""
        ...

    def rounded_gaussian(self, shape: int | tuple[int, ...], noise_std: float, step: Step) -> np.ndarray:
        """Return independent N(0, noise_std²) draws, each rounded to whole numbers of its step, int64."""
        ...

    def normals(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Return standard normals that are part of a randomised contribution; never silent."""
        ...

    def bernoulli(self, n: int, probability: float) -> np.ndarray:
        """Return n independent booleans, each True with the given probability."""
        ...

    def poisson_samples(self, n: int, probability: float, size: int) -> sparse.csr_array:
        """Return `size` independent samples of n units, each unit in each with the given probability, as rows."""
        ...

    def subsets(self, n: int, members: int, size: int) -> sparse.csr_array:
        """Return `size` independent uniform subsets of `members` of n units, as rows."""
        ...


class _KeyStream:
    """Gaussian and Bernoulli draws from an AES-256-CTR key stream."""

    def __init__(self, key: bytes) -> None:
        self._lock = threading.Lock()
        self._start(key)

    def _start(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def bits(self, n: int) -> np.ndarray:
        """Return n words of 64 random bits."""
        if n > _BLOCK:
            return np.concatenate([self.bits(min(_BLOCK, n - start)) for start in range(0, n, _BLOCK)])
        with self._lock:
            return self._stream(n)

    def _stream(self, n: int) -> np.ndarray:
        return np.frombuffer(self._encryptor.update(memoryview(_ZEROS)[: 8 * n]), dtype="<u8")

    def uniform(self, n: int) -> np.ndarray:
        """Return n draws from (0, 1], at the middles of 2^53 equal parts."""
        return ((self.bits(n) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53

    def normal(self, n: int) -> np.ndarray:
        """Return n standard normals."""
        result = np.empty(n)
        edges, layers = [], []
        for start in range(0, n, _NORMALS_AT_ONCE):
            block = result[start : start + _NORMALS_AT_ONCE]
            outside, layer = self._inner(block)
            edges.append(start + outside)
            layers.append(layer)
        # the one draw in a hundred that is left is settled for all blocks at once: small arrays are slow
        if edges:
            index = np.concatenate(edges)
            draws = result[index]
            result[index] = np.copysign(self._edge(np.concatenate(layers), np.abs(draws)), draws)
        return result

    def _inner(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fill a block with signed positions in random layers; return which lie outside the sure part, and layers."""
        words = self.bits(block.size)
        # indices are bytes, so always valid: "clip" only spares numpy a buffered check
        layer = words.astype(np.uint8).astype(np.intp)
        position = (words >> np.uint64(11)).astype(np.float64)
        position += 0.5
        outside = np.flatnonzero(position > np.take(_INSIDE_UNITS, layer, mode="clip"))
        position *= np.take(_WIDTH_PER_UNIT, layer, mode="clip")
        # the sign is bit 8 of the word: moved to the sign bit of the float
        words = words << np.uint64(55)
        words &= np.uint64(1 << 63)
        words |= position.view(np.uint64)
        block[:] = words.view(np.float64)
        return outside, layer[outside]

    def _edge(self, layer: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Settle the |draws| that fell outside their layer's inner rectangle: tail, accept, or draw again."""
        result = draws.copy()
        tail = layer == 0
        result[tail] = self._tail(int(tail.sum()))
        wedge = np.flatnonzero(~tail)
        height = _BOTTOM[layer[wedge]]
        height = height + self.uniform(wedge.size) * (_TOP[layer[wedge]] - height)
        again = wedge[height >= np.exp(-(draws[wedge] ** 2) / 2)]
        if again.size:
            result[again] = np.abs(self.normal(again.size))
        return result

    def _tail(self, n: int) -> np.ndarray:
        """Return n draws of a normal given that it is above the tail's start (Marsaglia 1964)."""
        result = np.empty(n)
        waiting = np.arange(n)
        while waiting.size:
            excess = -np.log(self.uniform(waiting.size)) / _TAIL_START
            accepted = -2 * np.log(self.uniform(waiting.size)) > excess**2
            result[waiting[accepted]] = _TAIL_START + excess[accepted]
            waiting = waiting[~accepted]
        return result

    def gaussian(self, shape: int | tuple[int, ...], noise_std: float) -> np.ndarray:
        """Return independent N(0, noise_std²) draws of the given shape, float64."""
        _require_std(noise_std)
        return scaled_normals(self.normal(_size(shape)), noise_std).reshape(shape)

    def rounded_gaussian(self, shape: int | tuple[int, ...], noise_std: float, step: Step) -> np.ndarray:
        """Return independent draws of round(X/step), X ~ N(0, noise_std²), int64: exact, whatever the step.

        The law is that of a standard deviation up to 2^-49 above noise_std, never below it, up to 2^-100 per draw in
        total variation (`sfumato.mechanisms.rounded`).

        Args:
            shape: of the result.
            noise_std: above 0, data units.
            step: of each number, data units; broadcast to the shape. At most noise_std, at least 2^-54 of it.
        """
        _require_std(noise_std)
        steps, places = np.unique(np.asarray(step, dtype=np.float64), return_inverse=True)
        with np.errstate(all="ignore"):
            scales = noise_std / steps * _UPWARD
        if not ((scales >= LEAST_SCALE) & (scales <= LARGEST_SCALE)).all():
            raise ConfigError("Expected steps of the size of the noise at most, and 2^-54 of it at least.")
        if scales.size == 1:
            return rounded_normals(self.bits, _size(shape), float(scales[0])).reshape(shape)
        result = np.empty(shape, dtype=np.int64)
        places = np.broadcast_to(places.reshape(np.shape(step)), shape)
        for i, scale in enumerate(scales):
            here = places == i
            result[here] = rounded_normals(self.bits, int(here.sum()), float(scale))
        return result

    def normals(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Return standard normals, float64, for what one record contributes at random."""
        return self.normal(_size(shape)).reshape(shape)

    def bernoulli(self, n: int, probability: float) -> np.ndarray:
        """Return n independent booleans, True with the given probability up to 2^-64 (never more than it)."""
        require_integer(at_least=0, n=n)
        if probability == 1:
            return np.ones(n, dtype=bool)
        require_open_unit(probability=probability)
        threshold = np.uint64(int(probability * 2.0**64))
        result = np.empty(n, dtype=bool)
        for start in range(0, n, _BLOCK):
            block = result[start : start + _BLOCK]
            np.less(self.bits(block.size), threshold, out=block)
        return result

    def poisson_samples(self, n: int, probability: float, size: int) -> sparse.csr_array:
        """Return `size` independent Poisson samples of n units as rows of ones, shape (size, n).

        Every unit is in every sample with the given probability, independently, up to 2^-110 in total variation per
        sample (`sfumato.mechanisms.rounded`). Takes time and memory for the members only.
        """
        require_integer(at_least=0, n=n)
        if probability != 1:
            require_open_unit(probability=probability)
        return uniform_subsets(self.bits, n, binomial_counts(self.bits, n, probability, size))

    def subsets(self, n: int, members: int, size: int) -> sparse.csr_array:
        """Return `size` independent uniform subsets of `members` of n units as rows of ones, shape (size, n)."""
        if not 0 <= members <= n:
            raise ConfigError("Expected subsets of at most as many units as there are.")
        return uniform_subsets(self.bits, n, np.full(size, members, dtype=np.int64))

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: a copy would draw the same noise twice."""
        raise TypeError(f"{type(self).__name__} is not picklable or copyable: a copy would repeat its noise.")


def scaled_normals(normals: np.ndarray, noise_std: float) -> np.ndarray:
    """Return standard normals times a standard deviation, in place."""
    _require_std(noise_std)
    normals *= noise_std
    return normals


def _size(shape: int | tuple[int, ...]) -> int:
    return math.prod(shape) if isinstance(shape, tuple) else shape


def _require_std(noise_std: float) -> None:
    if not (np.isfinite(noise_std) and noise_std > 0):
        raise ConfigError(f"Expected noise_std to be a finite number above 0, got noise_std={noise_std!r}.")


@final
class SecureNoise(_KeyStream):
    """Noise from the operating system's randomness, of which more is folded in before every 128 KiB of the stream.

    chain, key ← SHA-512(chain, 32 bytes of the system):  one key for one call's bits. Whoever is given a copy of this
    source, as a forked process or a snapshot of a virtual machine is, draws other noise from its next call on; and what
    the system gives later does not tell what was drawn before.
    """

    private = True
    silent = False

    def __init__(self) -> None:
        self._chain = os.urandom(32)
        super().__init__(os.urandom(32))
        self._fork = _forks

    def apart(self) -> SecureNoise:
        """Return another source, for another thread: with fresh randomness of the system."""
        return SecureNoise()

    def bits(self, n: int) -> np.ndarray:
        """Return n words of 64 random bits, of a key of their own for each 16,384."""
        if self._fork != _forks:  # another thread of the parent may have held the lock
            self._lock = threading.Lock()
            self._fork = _forks
        if n <= _BLOCK:
            with self._lock:
                digest = hashlib.sha512(self._chain + os.urandom(32)).digest()
                self._chain = digest[:32]
                self._start(digest[32:])
                return self._stream(n)
        return super().bits(n)


@final
class SeededNoise(_KeyStream):
    """Reproducible noise for tests and papers: whoever knows the seed can take it off again. Never private."""

    private = False
    silent = False

    def __init__(self, seed: int) -> None:
        require_integer(at_least=0, seed=seed)
        super().__init__(_seeded_key(seed))

    def apart(self) -> SeededNoise:
        """Return another source, for another thread: what it draws follows from the seed and from what was drawn."""
        return SeededNoise(int.from_bytes(self.bits(4).tobytes(), "little"))


def _seeded_key(seed: int) -> bytes:
    return hashlib.sha256(f"sfumato seeded noise {int(seed)}".encode()).digest()


@final
class NoNoise(_KeyStream):
    """No noise at all, loudly: for measuring what the noise costs. Batches are still drawn at random. Never private."""

    private = False
    silent = True

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(os.urandom(32) if seed is None else _seeded_key(seed))

    def gaussian(self, shape: int | tuple[int, ...], noise_std: float) -> np.ndarray:
        """Return zeros."""
        return np.zeros(shape)

    def rounded_gaussian(self, shape: int | tuple[int, ...], noise_std: float, step: Step) -> np.ndarray:
        """Return zeros."""
        return np.zeros(shape, dtype=np.int64)
