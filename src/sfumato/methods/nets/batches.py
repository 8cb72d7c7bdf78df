"""Poisson batches of records that need not fit into memory.

The membership of several steps is drawn in one pass over the source, and only members are kept: as many steps at a
time as fit into the memory that the caller grants, reckoned from the public number of records. Membership does not
depend on what steps release, so it may be drawn before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from sfumato.errors import ConfigError
from sfumato.plugins import Ledger, NoiseSource, Records, Rows, poisson_member_sets, sampling_probability

HELD_BYTES = 128 << 20
_MOST_STEPS = 4096


class VectorEncoder(Protocol):
    """Records as vectors, one by one and totally."""

    @property
    def dimension(self) -> int:
        """Number of entries d of a vector."""
        ...

    def encode(self, rows: Rows) -> np.ndarray:
        """Return n coded rows as vectors, shape (n, d)."""
        ...


def require_single_records(max_rows_per_unit: int) -> None:
    """Refuse units of several records: units, not records, would have to be sampled.

    Raises:
        ConfigError: a unit may have more than one record.
    """
    if max_rows_per_unit != 1:
        raise ConfigError(
            "Expected one row per unit for a method that samples rows, got a schema of up to "
            f"{max_rows_per_unit} rows per unit. Set `max_rows: 1` in its `unit`, or use the method max-entropy."
        )


def poisson_batches(
    records: Records,
    encoder: VectorEncoder,
    n_steps: int,
    *,
    stage: str,
    ledger: Ledger,
    noise: NoiseSource,
    n_public: float,
    held_bytes: int = HELD_BYTES,
) -> Iterator[np.ndarray]:
    """Yield one Poisson sample of the records per step, as vectors.

    Args:
        records: coded records, one per unit.
        encoder: of coded rows.
        n_steps: how many samples to draw.
        stage: names the sampling probability in the ledger's plan; nothing is charged here.
        ledger: holds the plan.
        noise: the source of randomness.
        n_public: public number of records, for reckoning memory alone.
        held_bytes: about how many bytes of members to hold at a time.

    Yields:
        Members of one step, shape (b, d), float32; b is as private as the records, and may be 0.

    Raises:
        ConfigError: a unit may have more than one record.
    """
    require_single_records(records.max_rows_per_unit)
    step_bytes = 4 * encoder.dimension * max(sampling_probability(stage, ledger) * n_public, 1.0)
    at_once = int(np.clip(held_bytes / step_bytes, 1, _MOST_STEPS))
    for start in range(0, n_steps, at_once):
        gathered: list[list[np.ndarray]] = [[] for _ in range(min(at_once, n_steps - start))]
        for rows in records.coded():
            with np.errstate(all="ignore"):  # a warning of numpy's would say something of a record
                vectors = encoder.encode(rows).astype(np.float32, copy=False)
            member_sets = poisson_member_sets(len(vectors), len(gathered), stage=stage, ledger=ledger, noise=noise)
            for members, chosen in zip(gathered, member_sets, strict=True):
                members.append(vectors[chosen])
        gathered.reverse()
        while gathered:  # a step's members are let go when the next step asks for its own
            yield np.concatenate([np.empty((0, encoder.dimension), np.float32), *gathered.pop()])
