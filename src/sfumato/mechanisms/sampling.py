"""Who is in a batch: Poisson sampling, drawn where noise is drawn.

Amplification by sampling is lost if membership can be predicted, so it comes from the one source of secret randomness,
at the probability that the plan charges. Proof: docs/proofs/sampled_gradients.md.

Secret draws of a search: how often it repeats, and which candidate a repetition fits. Proof: docs/proofs/tune.md.
"""

from __future__ import annotations

import numpy as np

from sfumato.errors import ConfigError, require_integer
from sfumato.mechanisms.noise import NoiseSource
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.repetitions import Repetitions

_CELLS = 1 << 22  # records times samples that are drawn at once: samples of more than half are written out


def sampling_probability(stage: str, ledger: Ledger) -> float:
    """Return the probability at which the plan samples records for a stage.

    Raises:
        ConfigError: the stage is planned without sampling.
    """
    probability = ledger.plan[stage].sampling_probability
    if probability is None:
        raise ConfigError(f"Expected stage {stage!r} to be planned with Poisson sampling, got one of all records.")
    return probability


def poisson_members(n: int, *, stage: str, ledger: Ledger, noise: NoiseSource) -> np.ndarray:
    """Return the indices of the members of a Poisson sample of n records, ascending.

    Every record is a member independently, with the probability that the stage is charged for; members are neither
    capped nor filled up. The indices are as private as the records: they may only choose what is summed.
    """
    return poisson_member_sets(n, 1, stage=stage, ledger=ledger, noise=noise)[0]


def poisson_member_sets(n: int, size: int, *, stage: str, ledger: Ledger, noise: NoiseSource) -> list[np.ndarray]:
    """Return the members of `size` independent Poisson samples of n records: indices, each ascending.

    As `poisson_members`, for several steps at once. What is drawn is how many members a sample has, and which: about
    q·n words of bits instead of n, with the law of n independent coins up to 2^-110 in total variation per sample
    (`sfumato.mechanisms.rounded`).
    """
    probability = sampling_probability(stage, ledger)
    at_once = max(1, _CELLS // max(n, 1))
    members: list[np.ndarray] = []
    for start in range(0, size, at_once):
        samples = noise.poisson_samples(n, probability, min(at_once, size - start))
        members += np.split(samples.indices, samples.indptr[1:-1])
    return members


def drawn_repetitions(law: Repetitions, noise: NoiseSource) -> int:
    """Return a draw of K, at least 1: one coin per repetition says whether it is the last.

    Every coin is exact up to 2^-64 (`NoiseSource.bernoulli`). The draw is to be kept secret.

    Args:
        law: of K.
        noise: the source of randomness.
    """
    k = 1
    while not noise.bernoulli(1, law.last(k))[0]:
        k += 1
    return k


def drawn_candidate(n: int, noise: NoiseSource) -> int:
    """Return a uniform draw of 0, …, n − 1.

    Args:
        n: number of candidates.
        noise: the source of randomness.
    """
    return int(noise.subsets(require_integer(at_least=1, n_candidates=n), 1, 1).indices[0])
