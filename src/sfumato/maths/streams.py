"""Public randomness: what sampling from a release and scoring use. It protects nobody and may be predicted.

Privacy noise is drawn in `sfumato.mechanisms.noise`, from another generator, and nowhere else.
"""

from __future__ import annotations

import numpy as np


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
