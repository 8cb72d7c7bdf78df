"""Where DPGM's outputs start, and what brings its samples to the means that were released. Free."""

from __future__ import annotations

import numpy as np
from scipy import special

from sfumato.maths.streams import public_stream
from sfumato.methods.dpgm.profiles import Profiles
from sfumato.models.nets.decoder import Calibration
from sfumato.models.nets.ensemble import Decoders, Machines
from sfumato.models.nets.flat import AnyVectors, RankVectors

_CALIBRATION_SEED = 2
_DRAWS, _TABLE_DRAWS = 8192, 20_000
_ROUNDS, _CLOSE, _LARGEST_SHIFT = 20, 1e-3, 8.0


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
    if isinstance(vectors, RankVectors):
        rng = public_stream(_CALIBRATION_SEED, k)
        chosen = rng.choice(k, size=_TABLE_DRAWS, p=profiles.shares)
        draws = [networks.outputs(c, int((chosen == c).sum()), public_stream(_CALIBRATION_SEED, c)) for c in range(k)]
        fitted = Calibration.of(np.nan_to_num(np.concatenate(draws)), vectors.parts, vectors.targets(), rng)
        return {"component_shifts": shifts, **fitted.to_arrays()}
    for c in range(k):
        outputs = np.nan_to_num(networks.outputs(c, _DRAWS, public_stream(_CALIBRATION_SEED, c)))
        for part in vectors.parts:
            entries = part.entries
            shifts[c, entries] = _shift(outputs[:, entries], profiles.means[c, entries], levels=part.levels)
    return {"component_shifts": shifts}


def _shift(outputs: np.ndarray, means: np.ndarray, *, levels: bool) -> np.ndarray:
    """Return what to add to outputs (n, e) so that their logistic, or softmax, has given means (e,)."""
    shift = np.zeros(means.size)
    wanted = np.log(means) if levels else special.logit(means)
    for _ in range(_ROUNDS):
        moved = outputs + shift.astype(outputs.dtype)
        if levels:
            step = wanted - np.log(np.maximum(special.softmax(moved, axis=1).mean(axis=0), 1e-12))
        else:
            now = special.expit(moved).mean(axis=0, dtype=np.float64)
            step = wanted - special.logit(np.clip(now, 1e-9, 1 - 1e-9))
        shift = np.clip(shift + step, -_LARGEST_SHIFT, _LARGEST_SHIFT)
        if np.abs(step).max() < _CLOSE:
            break
    return shift
