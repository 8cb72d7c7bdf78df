"""Sets of items as arrays in CSR form: `indptr`, `indices`, `n_items`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from sfumato.columns.set_codes import list_parts
from sfumato.errors import ConfigError

N_ITEMS = b"n_items"
"""Key of a field's metadata: the public number of items, which no sample tells."""


def csr_arrays(table: pa.Table) -> dict[str, np.ndarray]:
    """Return the one column of a table, which holds sets, as arrays.

    Raises:
        ConfigError: the items are no whole numbers.
    """
    field = table.schema.field(0)
    parts = [csr_part(field, chunk) for chunk in table.column(0).chunks]
    lengths = np.concatenate([np.zeros(0, np.int64), *(lengths for lengths, _ in parts)])
    items = field.type.value_type.to_pandas_dtype()
    indices = np.concatenate([np.zeros(0, items), *(values for _, values in parts)])
    return {
        "indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "indices": indices,
        "n_items": np.array(n_items_of(field, [indices]), dtype=np.int64),
    }


def csr_part(field: pa.Field, lists: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return lengths and items of some sets.

    Raises:
        ConfigError: the items are no whole numbers.
    """
    if not pa.types.is_integer(field.type.value_type):
        raise ConfigError(
            f"Expected items that are whole numbers in an .npz file, got type {field.type.value_type} in column "
            f"{field.name!r}. Write .parquet or .dat."
        )
    lengths, values = list_parts(lists)
    return lengths, values.to_numpy(zero_copy_only=False)


def n_items_of(field: pa.Field, parts: Iterable[np.ndarray]) -> int:
    """Return the public number of items if the column says it, else that of the items there are."""
    if field.metadata and N_ITEMS in field.metadata:
        return int(field.metadata[N_ITEMS])
    return max((int(part.max()) + 1 for part in parts if part.size), default=0)
