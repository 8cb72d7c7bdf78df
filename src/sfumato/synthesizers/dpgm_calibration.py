"""Where DPGM's outputs start, and what brings its samples to the means that were released. Free."""

from __future__ import annotations

import numpy as np
from scipy import special

from sfumato.encoders.flat import AnyVectors, RankVectors
from sfumato.learners.profiles import Profiles
from sfumato.models.latent import Calibration
from sfumato.models.streams import public_stream
from sfumato.release.mixture_sampler import Decoders, Machines

_CALIBRATION_SEED = 2
_CALIBRATION_DRAWS, _CALIBRATION_ROUNDS, _LARGEST_SHIFT = 2048, 12, 8.0


def links(means: np.ndarray, vectors: AnyVectors) -> np.ndarray:
    """Return outputs that stand for a mean vector: logits of numbers, logarithms of shares of levels."""
    outputs = special.logit(means)
    for part in vectors.parts:
        if part.levels:
            outputs[part.entries] = np.log(means[part.entries])
    return outputs


def calibrated(networks: Decoders | Machines, vectors: AnyVectors, profiles: Profiles) -> dict[str, np.ndarray]:
    """Return what brings samples to the released means: shifts per component, or, of a table, its marginals. Free."""
    k, m = profiles.means.shape
    shifts = np.zeros((k, m))
    draws = [
        networks.outputs(c, _CALIBRATION_DRAWS, public_stream(_CALIBRATION_SEED, c)).astype(np.float64)
        for c in range(k)
    ]
    if isinstance(vectors, RankVectors):
        rng = public_stream(_CALIBRATION_SEED, k)
        chosen = rng.choice(k, size=k * _CALIBRATION_DRAWS, p=profiles.shares)
        outputs = np.concatenate(draws)[
            chosen * _CALIBRATION_DRAWS + rng.integers(_CALIBRATION_DRAWS, size=chosen.size)
        ]
        fitted = Calibration.of(np.nan_to_num(outputs), vectors.parts, vectors.targets(), rng)
        return {"component_shifts": shifts, **fitted.to_arrays()}
    for outputs, means, shift in zip(draws, profiles.means, shifts, strict=True):
        for part in vectors.parts:
            entries = part.entries
            for _ in range(_CALIBRATION_ROUNDS):
                moved = np.nan_to_num(outputs[:, entries] + shift[entries])
                if part.levels:
                    now = special.softmax(moved, axis=1).mean(axis=0)
                    step = np.log(means[entries]) - np.log(np.maximum(now, 1e-12))
                else:
                    now = np.clip(special.expit(moved).mean(axis=0), 1e-9, 1 - 1e-9)
                    step = special.logit(means[entries]) - special.logit(now)
                shift[entries] = np.clip(shift[entries] + step, -_LARGEST_SHIFT, _LARGEST_SHIFT)
    return {"component_shifts": shifts}
