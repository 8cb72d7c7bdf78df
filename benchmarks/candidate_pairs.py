"""The candidate's third stage: today's tables of the pairs of columns that moments leave least known."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from candidate_moments import Evidence, shrunk_moments

from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.mechanisms.statistics import QueryCounts
from sfumato.methods.tables.pair_counts import law_of
from sfumato.methods.tables.pair_tables import NAME, chosen_pairs
from sfumato.methods.tables.second_stage import FirstRelease, SecondRelease


def with_pair_tables(fit: Any, first: FirstRelease, released: SecondRelease) -> tuple[Any, SecondRelease]:
    """Stand in for that of the product: the same choice and counts, by the candidate's moments."""
    columns, total, found = first.columns, float(first.class_counts.sum()), released.moments
    assert isinstance(found, Evidence)
    std = 0.0 if fit.noise.silent else fit.plan[NAME].noise_multiplier * fit.facts.unit_rows
    moments = found.guessed(total).counted(found, columns)
    means, spreads = shrunk_moments(moments, found, columns)
    known: Any = SimpleNamespace(means=means, spreads=spreads, variances=moments.variances)
    pairs = chosen_pairs(columns, known, total, std)
    cells = {j: Cells.of(first.layout.features[j], columns[j].drawn) for pair in pairs for j in pair.columns}
    tables = tuple((cells[i], cells[j]) for i, j in (pair.columns for pair in pairs))
    query = MarginalQuery(tables or ((Cells.of(first.layout.features[0], columns[0].drawn),),))
    noisy = fit.measure(NAME, QueryCounts(query, NAME))
    laws = {
        pair.columns: law_of(pair, table, noisy.noise_std, *(columns[j].pooled() for j in pair.columns))
        for pair, table in zip(pairs, query.split(noisy.value), strict=False)
    }
    return columns, SecondRelease((*released.measurements, (NAME, noisy)), replace(found, tables=laws))  # type: ignore[arg-type]
