"""Measurements: queries as data, and noisy answers to them."""

from sfumato.measurements.cells import Cells
from sfumato.measurements.item_queries import ItemPairQuery, ItemQuery, SetsOf
from sfumato.measurements.queries import CellEntries, MarginalQuery, Measurement, MomentBits, MomentQuery, Query
from sfumato.measurements.score_query import ScoreQuery

__all__ = [
    "CellEntries", "Cells", "ItemPairQuery", "ItemQuery", "MarginalQuery", "Measurement", "MomentBits", "MomentQuery",
    "Query", "ScoreQuery", "SetsOf",
]  # fmt: skip
