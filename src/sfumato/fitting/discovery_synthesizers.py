"""Buying what a schema leaves open: the stages it costs, and the schema that comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from pyarrow import types

from sfumato.columns.kinds import Integer
from sfumato.fitting.discovery import DomainCounts, KindCounts, discovered, kinds_of
from sfumato.io.sources import Source
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy, noisy_histogram
from sfumato.mechanisms.words import noisy_words
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Stage, multiplier_for_share
from sfumato.records.engine import reduce
from sfumato.records.open_data import OpenData
from sfumato.schema.open_schema import OpenKind, OpenSchema
from sfumato.schema.schema import Schema

KINDS, DOMAINS = "kinds of columns", "discovery"
DOMAIN_SHARE = 0.1
_KIND_SHARE = 0.02
_DELTA_SHARE = 0.1  # part of δ for words that one unit alone brings


def discovery_stages(schema: OpenSchema, delta: float) -> list[Stage]:
    """Return what discovery costs: kinds where a column has none, then the domains of all open columns."""
    stages = []
    ratio = 2**0.5
    if "unknown" in schema.open.values():
        stages.append(
            Stage(
                name=KINDS,
                noise_multiplier=multiplier_for_share(_KIND_SHARE),
                replace_distance=ratio,
                measures="per column of no declared kind, how many cells are numbers, texts or missing",
            )
        )
    worded = {"unknown", "categorical"} & set(schema.open.values())
    if schema.open:
        stages.append(
            Stage(
                name=DOMAINS,
                noise_multiplier=multiplier_for_share(DOMAIN_SHARE),
                replace_distance=ratio,
                extra_delta=_DELTA_SHARE * delta if worded else 0.0,
                measures="bounds, categories and missing cells of the columns that the schema leaves open",
            )
        )
    return stages


def discover(
    source: Source,
    schema: OpenSchema,
    *,
    n: int,
    ledger: Ledger,
    noise: NoiseSource,
    measured: list[tuple[str, Noisy]],
) -> Schema:
    """Buy what is open; return the schema.

    Args:
        source: where the records lie.
        schema: what is public of them.
        n: the public or bought number of rows.
        ledger: charged before noise is drawn.
        noise: the door of randomness.
        measured: takes in what was measured.
    """
    kinds: dict[str, OpenKind] = dict(schema.open)
    unknown = tuple(name for name, kind in kinds.items() if kind == "unknown")
    if unknown:
        statistic = KindCounts(unknown)
        noisy = noisy_histogram(reduce(statistic, OpenData(source, schema)), stage=KINDS, ledger=ledger, noise=noise)
        kinds |= kinds_of(noisy, unknown)
        measured.append((statistic.name, noisy))
    counts = DomainCounts(kinds, 1 if schema.nominal.unit is None else schema.nominal.unit.max_rows)
    tally = noisy_words(reduce(cast(Any, counts), OpenData(source, schema)), stage=DOMAINS, ledger=ledger, noise=noise)
    measured.append((counts.name, tally.listed))
    found = discovered(tally, counts, n)
    columns = {name: found.get(name, kind) for name, kind in schema.nominal.columns.items()}
    for name, kind in columns.items():
        if name in found and isinstance(kind, Integer):
            columns[name] = _storable(kind, source, name)
    return replace(schema.nominal, columns=columns)


def _storable(kind: Integer, source: Source, name: str) -> Integer:
    """Return the bounds that a column's own type can hold: an edge of the grid may lie beyond."""
    storage = source.storage[name]
    if not types.is_integer(storage):
        return kind
    limits = np.iinfo(storage.to_pandas_dtype())
    lower, upper = (int(min(max(bound, limits.min), limits.max)) for bound in (kind.lower, kind.upper))
    return replace(kind, lower=lower, upper=upper)
