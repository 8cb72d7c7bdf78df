"""The noise of the next release, drawn in a second thread while the present one is computed.

How many numbers a step's noise has is known before the step. Standard normals that were drawn and not yet added to
anything are nothing that was released: they are charged for when they are asked for, as by any other source. The second
thread has a source of its own, so no source is used by two threads, and what is drawn does not depend on timing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from sfumato.errors import TrainingError
from sfumato.mechanisms.noise import NoiseSource, SecureNoise, SeededNoise, scaled_normals


@contextmanager
def drawn_ahead(noise: NoiseSource, size: int, draws: int) -> Iterator[NoiseSource]:
    """Give a source of randomness whose next Gaussian noise is drawn while the caller computes.

    Any other source than the package's own secret and seeded ones is given back as it is. Where a process has one core,
    the second source draws the same numbers when they are asked for: threads that take turns only lose time.

    Args:
        noise: the source; a second source of its kind is made here, in the caller's thread.
        size: numbers in each release's noise.
        draws: how many releases there will be at most: no noise is drawn for more.

    Yields:
        The source with noise drawn ahead, for use in one thread and in this context alone.
    """
    if draws < 1 or not isinstance(noise, SecureNoise | SeededNoise):
        yield noise
        return
    if _cores() == 1:
        yield _Ahead(noise, None, size, draws)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="sfumato-noise") as pool:
        yield _Ahead(noise, pool, size, draws)


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Ahead:
    """A source with noise drawn ahead."""

    def __init__(
        self, noise: SecureNoise | SeededNoise, pool: ThreadPoolExecutor | None, size: int, draws: int
    ) -> None:
        self.private, self.silent = noise.private, noise.silent
        self._noise, self._pool, self._size, self._left = noise, pool, size, draws
        # what is not Gaussian noise of a release is drawn as it is asked for
        self.rounded_gaussian, self.normals, self.bernoulli = noise.rounded_gaussian, noise.normals, noise.bernoulli
        self.poisson_samples, self.subsets = noise.poisson_samples, noise.subsets
        self._source = noise.apart()  # of the second thread alone
        self._next: Future[np.ndarray] | None = None
        self._draw_next()

    def _draw_next(self) -> None:
        if self._pool is not None:
            self._next = self._pool.submit(self._source.normals, self._size) if self._left else None
        self._left -= 1

    def gaussian(self, shape: int | tuple[int, ...], noise_std: float) -> np.ndarray:
        """Return the noise that was drawn ahead; of another size, or for more releases than said, new noise."""
        if self._left < 0 or np.prod(shape) != self._size:
            return self._noise.gaussian(shape, noise_std)
        try:
            normals = self._source.normals(self._size) if self._next is None else self._next.result()
        except (MemoryError, OSError, RuntimeError):
            normals = None
        if normals is None:
            raise TrainingError("Noise could not be drawn. Nothing of this step was released. Is there enough memory?")
        self._draw_next()
        return scaled_normals(normals, noise_std).reshape(shape)
