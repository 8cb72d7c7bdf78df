"""What a caller hands to a fit, checked: schema, number of rows, target, and noise as budget and seed ask for it.

How many records there are: for those who do not declare a public number.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from sfumato.errors import ConfigError, SchemaError, require_integer
from sfumato.mechanisms.noise import NoiseSource, NoNoise, SecureNoise, SeededNoise
from sfumato.privacy.budget import BuyCount, PrivacyBudget, default_delta
from sfumato.records.engine import Rows
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema, SchemaLike, read_schema

_NOMINAL_EPSILON = 1.0  # only shapes the plan of a fit without noise


def open_schema(schema: SchemaLike) -> Schema:
    """Return the public description of the data, which may leave columns open."""
    if isinstance(schema, str | os.PathLike):
        return OpenSchema.load(os.fspath(schema))
    return schema if isinstance(schema, Schema) else read_schema(schema)


def row_count(schema: Schema, n_public: int | BuyCount | None) -> int | None:
    """Return the declared number of rows, or None if it is to be bought."""
    if isinstance(n_public, BuyCount):
        return None
    rows = schema.rows if n_public is None else n_public
    if rows is None:
        raise ConfigError(
            "Expected a public number of rows, got none. Put `rows:` into the schema, pass n_public=... (--rows), "
            "or buy a noisy count: n_public=BuyCount() (--buy-rows)."
        )
    return require_integer(at_least=1, n_public=rows)


def check_target(schema: Schema, target: str | None) -> None:
    """Refuse a target that is no released column."""
    if target is None:
        return
    if target not in schema.released:
        raise SchemaError(
            f"Expected target to be a released column of the schema, got target={target!r}. "
            f"It has {', '.join(map(repr, schema.released))}."
        )


def nominal_budget(rows: int | None) -> PrivacyBudget:
    """Return the budget that shapes the plan of a fit without noise."""
    return PrivacyBudget(_NOMINAL_EPSILON, default_delta(rows or 100_000))


def check_progress(progress: object) -> None:
    """Refuse what cannot be told the name of a stage."""
    if progress is not None and not callable(progress):
        # its type only: what was passed by mistake may be records
        raise ConfigError(f"Expected progress to be a function of a stage's name, got {type(progress).__name__}.")


def noise_door(budget: PrivacyBudget | None, seed: int | None) -> NoiseSource:
    """Return the door of randomness: secret, of a seed, or without noise."""
    if seed is not None:
        require_integer(at_least=0, seed=seed)
    if budget is None:
        return NoNoise(seed)
    return SecureNoise() if seed is None else SeededNoise(seed)


@dataclass(frozen=True)
class RowCount:
    """The number of records. One record adds 1; under replace-one nothing changes. Value: shape ()."""

    name: str = "number of rows"
    norm_bound: float = 1.0
    replace_bound: float = 1.0
    step: float = 1.0

    def zero(self) -> np.ndarray:
        """Return 0."""
        return np.zeros(())

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        total += len(next(iter(rows.values())))
