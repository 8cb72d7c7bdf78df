"""Cells that say whose a row is, as clean text or numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sfumato.columns.cells import is_text, plain, read_text, without_tokens


def unit_names(cells: pa.Array, missing: Sequence[str]) -> pa.Array:
    """Return unit cells as valid text or as numbers; whatever a cell holds, it can be read as a Python value."""
    cells = plain(cells)
    if isinstance(cells, pa.DictionaryArray):
        return unit_names(cells.dictionary_decode(), missing)
    if is_text(cells.type):
        return without_tokens(read_text(cells), missing)
    if pa.types.is_date32(cells.type) or pa.types.is_time32(cells.type):
        cells = cells.cast(pa.int32())
    return cells.cast(pa.int64()) if pa.types.is_temporal(cells.type) else cells
