"""Mixtures of random records: sums of few records divided by a public constant, with noise.

    x'_t = (1/ℓ) Σ_{i ∈ S_t} x_i + N(0, σ_X²),   y'_t = (1/ℓ) Σ_{i ∈ S_t} y_i + N(0, σ_Y²),   t = 1 … T

‖x‖ ≤ C_X, ‖y‖ ≤ C_Y. One mixture is one Gaussian release of multiplier z = ℓ/√(C_X²/σ_X² + C_Y²/σ_Y²); a share f of the
squared budget goes to labels: σ_X = z·C_X/(ℓ√(1−f)), σ_Y = z·C_Y/(ℓ√f). The divisor is the constant ℓ, never the number
of members. Proofs: docs/proofs/mixing.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NoReturn, final

import numpy as np
from scipy import sparse

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.mechanisms.contributions import step_of, whole_rows
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import on_grid
from sfumato.privacy.ledger import GaussianEvent, Ledger, Noised
from sfumato.privacy.plan import Stage, Subset

NON_NEGATIVE_DISTANCE = math.sqrt(2)  # of two vectors without negative entries ÷ their norm bound
_BLOCK_NUMBERS = 1 << 22
_COLUMNS_AT_ONCE = 64
_BITS = 22  # of a whole number of a row: 2^31 members add up exactly


def _stage(name: str, measures: str, degree: int, n_mixtures: int, n_public: int) -> Stage:
    """Return what the stages of all mixings have, after checking ℓ and T."""
    require_integer(at_least=1, n_mixtures=n_mixtures)
    if require_integer(at_least=1, mixture_degree=degree) > n_public:
        raise ConfigError(
            f"Expected a mixture_degree of at most the public number of units, got mixture_degree={degree!r}. Lower it."
        )
    return Stage(name=name, noise_multiplier=1.0, replace_distance=NON_NEGATIVE_DISTANCE, measures=measures)


@final
@dataclass(frozen=True, slots=True)
class PoissonMixing:
    """Every unit joins every mixture with probability ℓ/n_public, independently. The default; add/remove."""

    def stage(self, name: str, *, degree: int, n_mixtures: int, n_public: int, measures: str = "") -> Stage:
        """Return the stage of T mixtures, with the relative noise multiplier 1."""
        shared = _stage(name, measures, degree, n_mixtures, n_public)
        return replace(shared, sampling_probability=degree / n_public, count=n_mixtures)


@final
@dataclass(frozen=True, slots=True)
class SubsetMixing:
    """Every mixture is of ℓ of the n_public units, without replacement, as published. Replace-one only."""

    def stage(self, name: str, *, degree: int, n_mixtures: int, n_public: int, measures: str = "") -> Stage:
        """Return the stage of T mixtures, with the relative noise multiplier 1."""
        shared = _stage(name, measures, degree, n_mixtures, n_public)
        return replace(shared, subset=Subset(degree, n_public), count=n_mixtures)


@final
@dataclass(frozen=True, slots=True)
class FixedDegreeMixing:
    """Every unit joins exactly r = Tℓ/n_public of the T mixtures, rounded. One Gaussian release, no amplification."""

    def stage(self, name: str, *, degree: int, n_mixtures: int, n_public: int, measures: str = "") -> Stage:
        """Return the stage of all mixtures together, with the relative noise multiplier 1 = z/√r."""
        return _stage(name, measures, degree, n_mixtures, n_public)


Mixing = PoissonMixing | SubsetMixing | FixedDegreeMixing


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureSettings:
    """Public settings of T mixtures.

    Attributes:
        mixing: who joins a mixture.
        degree: ℓ, the mean number of members, and the divisor.
        n_mixtures: T.
        n_public: the public number of units.
        label_share: f, the share of the squared budget that labels get, in [0, 1]; 0 without labels.
    """

    mixing: Mixing
    degree: int
    n_mixtures: int
    n_public: int
    label_share: float

    @property
    def repeats(self) -> int:
        """In how many mixtures of one event a unit is: r of fixed degree, at least 1 and at most T, else 1."""
        if not isinstance(self.mixing, FixedDegreeMixing):
            return 1
        return min(max(round(self.n_mixtures * self.degree / self.n_public), 1), self.n_mixtures)

    def multiplier(self, stage: Stage) -> float:
        """Return z, the noise multiplier of one mixture."""
        return stage.noise_multiplier * math.sqrt(self.repeats)

    def noise_stds(self, stage: Stage, feature_norm: float, label_norm: float) -> tuple[float, float]:
        """Return (σ_X, σ_Y): what a mixture's noise is, in the units of features and labels."""
        each = self.multiplier(stage) / self.degree
        x = each * feature_norm / math.sqrt(1 - self.label_share) if self.label_share < 1 else 0.0
        y = each * label_norm / math.sqrt(self.label_share) if self.label_share > 0 else 0.0
        return x, y

    def event(self, stds: tuple[float, float], records: MixableRecords) -> GaussianEvent:
        """Return the event of mixing these records with noise of (σ_X, σ_Y): contributions √r C/ℓ, no negative entries.

        Raises:
            LedgerError: features, or labels where there are some, without noise.
        """
        own = self.mixing.stage("", degree=self.degree, n_mixtures=self.n_mixtures, n_public=self.n_public)
        factor = math.sqrt(self.repeats) / self.degree
        blocks = zip(stds, (records.feature_norm, records.label_norm), (True, records.n_labels > 0), strict=True)
        parts = (Noised(s, factor * c, NON_NEGATIVE_DISTANCE * factor * c) for s, c, released in blocks if released)
        return GaussianEvent(tuple(parts), own.sampling_probability, own.subset, own.count)


@final
class MixableRecords:
    """Clipped records, one row per unit: what mixtures are made of. It shows nothing and cannot be pickled.

    Args:
        features: one row per unit and feature, ≥ 0, shape (n, d_X). With units of m records, their sums.
        labels: shape (n, d_Y), ≥ 0; d_Y may be 0.
        feature_norm: C_X > 0: rows are clipped to it (to m·C_X, for units of up to m records: pass that).
        label_norm: C_Y > 0.
    """

    __slots__ = ("__rows", "feature_norm", "label_norm", "n_features", "n_labels")

    def __init__(self, features: np.ndarray, labels: np.ndarray, *, feature_norm: float, label_norm: float) -> None:
        self.feature_norm = require_positive(feature_norm=feature_norm)
        self.label_norm = require_positive(label_norm=label_norm)
        self.n_features, self.n_labels = features.shape[1], labels.shape[1]
        # whole numbers of up to 22 bits, which 32-bit floats hold exactly; the replace distance of √2 rests on it that
        # none is negative
        rows = np.empty((len(features), self.n_features + self.n_labels), dtype=np.float32)
        rows[:, : self.n_features] = whole_rows(np.maximum(features, 0.0), feature_norm, _BITS)
        rows[:, self.n_features :] = whole_rows(np.maximum(labels, 0.0), label_norm, _BITS)
        self.__rows = rows

    @classmethod
    def of_chunks(
        cls,
        chunks: Iterable[tuple[np.ndarray, np.ndarray]],
        *,
        n_features: int,
        n_labels: int,
        feature_norm: float,
        label_norm: float,
    ) -> MixableRecords:
        """Return the records of chunks of features and labels, of which one is held in 64 bits at a time."""
        norms = {"feature_norm": feature_norm, "label_norm": label_norm}
        records = cls(np.zeros((0, n_features)), np.zeros((0, n_labels)), **norms)
        parts = [cls(features, labels, **norms).__rows for features, labels in chunks]
        records.__rows = np.concatenate([records.__rows, *parts])
        return records

    def settled(self, n: int) -> MixableRecords:
        """Return n records, the first ones; where there are fewer, records of zeros for those that are missing.

        For sources of which a record's cells say whether it is one: where it cannot be read, it becomes a default
        record, so that the number of records, which is public under replace-one, does not tell of it.
        """
        records = MixableRecords(
            np.zeros((0, self.n_features)), np.zeros((0, self.n_labels)),
            feature_norm=self.feature_norm, label_norm=self.label_norm,
        )  # fmt: skip
        missing = np.zeros((max(n - len(self.__rows), 0), self.__rows.shape[1]), dtype=np.float32)
        records.__rows = np.concatenate([self.__rows, missing]) if len(missing) else self.__rows[:n]
        return records

    @property
    def steps(self) -> tuple[float, float]:
        """The worth of a 1 in the rows: C_X/2^22 and C_Y/2^22."""
        return step_of(self.feature_norm, _BITS), step_of(self.label_norm, _BITS)

    def open_in_mechanism(self) -> np.ndarray:
        """Hand the rows, whole numbers, to a mechanism that has charged the ledger. Nothing else may call this."""
        return self.__rows

    def __repr__(self) -> str:
        return "MixableRecords()"

    def __getstate__(self) -> NoReturn:
        return self.__reduce__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("MixableRecords are not picklable or copyable: records leave through a mechanism only.")

    __array__ = None  # numpy must not look inside either


@final
@dataclass(frozen=True, slots=True)
class MixtureBlock:
    """Some released mixtures: features (b, d_X) and labels (b, d_Y), float64, noisy."""

    features: np.ndarray
    labels: np.ndarray


def noisy_mixtures(
    records: MixableRecords, settings: MixtureSettings, *, stage: str, ledger: Ledger, noise: NoiseSource
) -> Iterator[MixtureBlock]:
    """Release T mixtures, a block at a time: only one block is in memory.

    Privacy: T events of the stage, all charged before this returns. With z the stage's noise multiplier:
        Poisson: `PoissonSampled(ℓ/n_public, Gaussian(z))` × T; sensitivity C/ℓ in each block under add/remove, √2 times
        that under replace-one. Subsets: `SampledWithoutReplacement(n, ℓ, Gaussian(z/√2))` × T, replace-one only. Fixed
        degree: one `Gaussian(z/√r)`. Proof: docs/proofs/mixing.md.

    Args:
        records: clipped records.
        settings: public; they have to be those of the stage.
        stage: name of the stage to charge.
        ledger: charged for all mixtures before the first is drawn.
        noise: the source of randomness: membership and noise.

    Returns:
        An iterator of blocks, T mixtures in all.

    Raises:
        ConfigError: labels without a share, or a share without labels; or, for subsets, the number of units, which is
            public under replace-one, is not `n_public`. Nothing was charged.
        LedgerError: the plan has another stage next, or the settings are not those of the stage. Nothing was released.
    Reference: Lee, Kim, Lee, Suh and Ramchandran 2019 (DPMix), with the divisor and the accounts of the proof.
    """
    planned = ledger.plan[stage]
    if (settings.label_share > 0) != (records.n_labels > 0):
        raise ConfigError("Expected a label_share above 0 where there are labels, and 0 where there are none.")
    rows = records.open_in_mechanism()
    if planned.subset is not None and len(rows) != planned.subset.source_size:
        raise ConfigError(
            "Expected as many units as declared: under replace-one their number is public, and subsets without "
            "replacement need the true one. Declare it, or use PoissonMixing()."
        )
    event = settings.event(settings.noise_stds(planned, records.feature_norm, records.label_norm), records)
    ledger.charge(stage, event)
    return _draw(rows, records, settings, event, noise)


def _draw(
    rows: np.ndarray, records: MixableRecords, settings: MixtureSettings, event: GaussianEvent, noise: NoiseSource
) -> Iterator[MixtureBlock]:
    d = records.n_features
    stds = [0.0 if noise.silent else part.noise_std for part in event.parts] + [0.0] * (len(event.parts) < 2)
    # blocks by public sizes: members and numbers of a block both stay small
    size = max(1, _BLOCK_NUMBERS // max(rows.shape[1], 4 * settings.degree))
    for members in _members(len(rows), settings, event, noise, size):
        # members @ rows in float64, exact sums of whole numbers: some columns are widened at a time
        sums = np.empty((members.indptr.size - 1, rows.shape[1]))
        for start in range(0, rows.shape[1], _COLUMNS_AT_ONCE):
            columns = slice(start, start + _COLUMNS_AT_ONCE)
            sums[:, columns] = members @ rows[:, columns].astype(np.float64)
        blocks = [
            on_grid(block.astype(np.int64), step / settings.degree, noise_std, noise)
            for block, step, noise_std in zip((sums[:, :d], sums[:, d:]), records.steps, stds, strict=True)
        ]
        yield MixtureBlock(blocks[0], blocks[1])


def _members(
    n: int, settings: MixtureSettings, event: GaussianEvent, noise: NoiseSource, size: int
) -> Iterator[sparse.csr_array]:
    """Yield who is in which mixture, a block of mixtures at a time, shape (block, n)."""
    total = settings.n_mixtures
    if isinstance(settings.mixing, FixedDegreeMixing):
        whole = noise.subsets(total, settings.repeats, n).T.tocsr()  # not in constant memory
        for start in range(0, total, size):
            yield whole[start : start + size]
        return
    for start in range(0, total, size):
        block = min(size, total - start)
        if event.sampling_probability is not None:
            yield noise.poisson_samples(n, event.sampling_probability, block)
        else:
            yield noise.subsets(n, settings.degree, block)


def label_share(*, multiplier: float, degree: int, n_features: int, n_labels: int) -> float:
    """Return the share f of the squared budget for labels that estimates their products with features best.

    Per entry, a mixture's signal has variance C²/(dℓ) in its block, and its noise σ², so the variance of an estimated
    product of a feature and a label is proportional to (1 + a/(1−f))·(1 + b/f), with a = d_X z²/ℓ and b = d_Y z²/ℓ. Its
    minimum solves a quadratic. Public facts alone: the clip norms cancel.

    Args:
        multiplier: z of one mixture.
        degree: ℓ.
        n_features: d_X, at least 1.
        n_labels: d_Y; 0 gives f = 0.
    """
    if not n_labels:
        return 0.0
    a, b = (d * multiplier**2 / degree for d in (n_features, n_labels))
    p, q, r = a - b, 2 * b * (1 + a), b * (1 + a)
    # of p f² + q f = r, in a form without cancellation
    return 2 * r / (q + math.sqrt(q * q + 4 * p * r))


def product_error(*, multiplier: float, degree: int, n_features: int, n_labels: int) -> float:
    """Return (1 + a/(1−f))·(1 + b/f) at the best f: how much noise adds to the variance of estimated products."""
    a, b = (d * multiplier**2 / degree for d in (n_features, n_labels))
    f = label_share(multiplier=multiplier, degree=degree, n_features=n_features, n_labels=n_labels)
    return (1 + a / (1 - f)) * (1 + b / f if n_labels else 1.0)
