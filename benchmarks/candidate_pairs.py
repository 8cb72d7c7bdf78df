"""The candidate's tables of pairs: today's third stage, which asks its moments in place of those of the product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from candidate_moments import Evidence, shrunk_moments

from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.pair_tables import chosen_pairs

_chosen = chosen_pairs  # the product's own: `candidate.py` puts the one below in its place


def chosen(columns: Sequence[ColumnShares], found: Evidence, total: float, std: float) -> list[Any]:
    """Stand in for `chosen_pairs`: by moments from which clipping is taken as guessed, and their variances."""
    moments = found.guessed(total).counted(found, columns)
    means, spreads = shrunk_moments(moments, found, columns)
    known: Any = SimpleNamespace(means=means, spreads=spreads, variances=moments.variances)
    return _chosen(columns, known, total, std)


def with_runs(columns: Sequence[ColumnShares], found: Evidence, places: object) -> tuple[Any, Evidence]:
    """Stand in for that of the product: a number's waves tell its runs apart."""
    del places
    return columns, found


def with_laws(
    found: Evidence,
    columns: object,
    laws: Mapping[tuple[int, int], tuple[np.ndarray, np.ndarray]],
    *noise: float,
    **more: bool,
) -> Evidence:
    """Stand in for that of the product: the mixture is fitted to the laws' moments."""
    del columns, noise, more
    return replace(found, tables=laws)
