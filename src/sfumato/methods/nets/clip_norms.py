"""Where gradients are clipped: at a fixed norm, or at one that follows noisy histograms of their norms.

    step t    counts of norms and clipped sum of one Poisson sample, jointly: P(q, G(m))
    free      C for step t + 1, per part, from the histograms of steps 1 … t

A clip norm taken from the steps before is independent of who is in this one, given the releases, so one pass over a
batch is enough. Acs et al. 2018 (DPNorm) take it from the batch itself. Proof: docs/proofs/clip_norms.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.errors import ConfigError, require_open_unit, require_positive

_OUT_OF_NOISE = 2.0  # standard deviations above which a bin counts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveClip:
    """Clip norms that follow the norms of gradients.

    Attributes:
        edges: public upper ends of the histogram's bins, ascending. Zeros are in the first bin, and whatever is longer
            than the last edge in the last one.
        share: of each step's squared budget that the histogram takes; the gradient has the rest.
        rank: which quantile of the norms is the clip norm, in (0, 1); None takes the fullest bin, as published.
        memory: weight of the past in the running histogram, in [0, 1); 0 keeps the last step alone.
        start: clip norm of the first step; None is the middle edge.
    """

    edges: tuple[float, ...] = tuple(2.0 ** (j / 2) for j in range(-8, 14))
    share: float = 0.02
    rank: float | None = 0.5
    memory: float = 0.95
    start: float | None = None

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.float64)
        if (
            edges.ndim != 1
            or edges.size < 2
            or not np.isfinite(edges).all()
            or not (np.diff(edges, prepend=0) > 0).all()
        ):
            raise ConfigError("Expected edges to be two or more numbers above 0, ascending, got others.")
        require_open_unit(share=self.share)
        if self.rank is not None:
            require_open_unit(rank=self.rank)
        if not 0 <= self.memory < 1:
            raise ConfigError(f"Expected memory in [0, 1), got memory={self.memory!r}.")
        if self.start is not None:
            require_positive(start=self.start)

    @classmethod
    def published(cls, *, most: float = 10.0, bins: int = 100, share: float = 1 / 17) -> AdaptiveClip:
        """Return the setting of Acs et al.: equal bins up to `most`, the fullest one, multipliers 4 and 1 (share 1/17).

        Only the lag of one step differs.
        """
        return cls(
            edges=tuple(most * (j + 1) / bins for j in range(bins)), share=share, rank=None, memory=0.0, start=most / 2
        )


class ClipNorms:
    """The clip norm of each part, as histograms come in. Functions of released values alone.

    Args:
        settings: public.
        n_parts: k.
    """

    def __init__(self, settings: AdaptiveClip, n_parts: int) -> None:
        self._settings = settings
        self.edges = np.asarray(settings.edges, dtype=np.float64)
        start = self.edges[self.edges.size // 2] if settings.start is None else settings.start
        self.norms = np.full(n_parts, start)
        self._counts = np.zeros((n_parts, self.edges.size))
        self._variance = 0.0

    def update(self, counts: np.ndarray, noise_std: float) -> None:
        """Take in noisy counts, shape (k, bins). Free."""
        memory = self._settings.memory
        self._counts = memory * self._counts + counts
        self._variance = memory**2 * self._variance + noise_std**2
        for part, running in enumerate(self._counts):
            if self._settings.rank is None:
                self.norms[part] = self.edges[np.argmax(running)]
                continue
            heavy = np.where(running > _OUT_OF_NOISE * np.sqrt(self._variance), running, 0.0)
            if heavy.any():  # of noise alone nothing is learned: the clip norm stays
                below = np.cumsum(heavy) / heavy.sum()
                self.norms[part] = self.edges[np.searchsorted(below, self._settings.rank)]

    def keep(self) -> dict[str, np.ndarray]:
        """Return all that is needed to go on."""
        return {"norms": self.norms, "counts": self._counts, "variance": np.array([self._variance])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `keep` returned."""
        self.norms, self._counts = arrays["norms"].copy(), arrays["counts"].copy()
        self._variance = float(arrays["variance"][0])
