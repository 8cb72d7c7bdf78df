"""Secret draws of a search: how often it repeats, and which candidate a repetition fits. Proof: docs/proofs/tune.md."""

from __future__ import annotations

from sfumato.errors import require_integer
from sfumato.mechanisms.noise import NoiseSource
from sfumato.privacy.repetitions import Repetitions


def drawn_repetitions(law: Repetitions, noise: NoiseSource) -> int:
    """Return a draw of K, at least 1: one coin per repetition says whether it is the last.

    Every coin is exact up to 2^-64 (`NoiseSource.bernoulli`). The draw is to be kept secret.

    Args:
        law: of K.
        noise: the door of randomness.
    """
    k = 1
    while not noise.bernoulli(1, law.last(k))[0]:
        k += 1
    return k


def drawn_candidate(n: int, noise: NoiseSource) -> int:
    """Return a uniform draw of 0, …, n − 1.

    Args:
        n: number of candidates.
        noise: the door of randomness.
    """
    return int(noise.subsets(require_integer(at_least=1, n_candidates=n), 1, 1).indices[0])
