"""Public randomness: what sampling from a release and scoring use. It protects nobody and may be predicted.

Privacy noise is drawn in `sfumato.mechanisms.noise`, from another generator, and nowhere else.
"""

from __future__ import annotations

import numpy as np

from sfumato.errors import ConfigError, require_integer

_LARGEST_SEED = 2**63 - 1


def public_stream(seed: int | None, *key: int) -> np.random.Generator:
    """Return the random stream of a seed and a key; streams of different keys are independent.

    Args:
        seed: at least 0; None takes fresh entropy from the operating system.
        key: numbers that name the stream, such as the index of a block of rows.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=key)
    return np.random.Generator(np.random.PCG64(sequence))


def fresh_seed() -> int:
    """Return a seed that nobody chose, below 2^63."""
    return int(public_stream(None).integers(2**63))


def seed_of(seed: int | None) -> int:
    """Return a caller's seed, or a fresh one.

    Raises:
        ConfigError: it is no whole number from 0, below 2^63.
    """
    if seed is None:
        return fresh_seed()
    if require_integer(at_least=0, seed=seed) > _LARGEST_SEED:
        raise ConfigError(f"Expected seed below 2^63, got {seed=}.")
    return seed
