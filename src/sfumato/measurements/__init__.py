"""Measurements: queries as data, and noisy answers to them."""

from sfumato.measurements.cells import Cells
from sfumato.measurements.item_queries import ItemPairQuery, ItemQuery, SetsOf
from sfumato.measurements.measurement import Measurement
from sfumato.measurements.queries import CellEntries, MarginalQuery, MomentBits, MomentQuery, Query

__all__ = [
    "CellEntries", "Cells", "ItemPairQuery", "ItemQuery", "MarginalQuery", "Measurement", "MomentBits", "MomentQuery",
    "Query", "SetsOf",
]  # fmt: skip
