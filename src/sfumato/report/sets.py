"""Sets of items on the page: how many items sets hold, and which.

With real sets the figures are NOT private; of synthetic sets alone they are functions of the release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.columns.sets import ItemSet
from sfumato.evaluate.counting_queries import counting_query_errors, read_sets
from sfumato.models.sets import SetEncoder
from sfumato.report.columns import ColumnFigure, share_bins
from sfumato.schema.schema import Schema

MOST_ITEMS = 20
MOST_LENGTHS = 21
_FREQUENT, _FEWEST_ITEMS = 100, 3


def set_content(synthetic: object, real: object, *, schema: Schema, seed: int) -> dict[str, Any]:
    """Return the page's content on sets: figures of the one column, and errors of counting queries beside real sets.

    Raises:
        SchemaError, DataError: the real sets cannot be read under the schema.
    """
    encoder = SetEncoder.of(schema)
    matrices = [read_sets(synthetic, schema, encoder)]
    if real is not None:
        matrices.append(read_sets(real, schema, encoder))
    figures = [_lengths(matrices, encoder), _items(matrices, encoder)]
    content: dict[str, Any] = {"columns": sorted(figures, key=lambda figure: -(figure.distance or 0.0))}
    if real is not None and encoder.dimension >= _FEWEST_ITEMS:
        frequent = min(_FREQUENT, encoder.dimension)
        content["frequent_items"] = frequent
        content["queries"] = counting_query_errors(real, synthetic, schema=schema, n_frequent=frequent, seed=seed)
    return content


def _lengths(matrices: list[sparse.csr_array], encoder: SetEncoder) -> ColumnFigure:
    """How many items a set holds: total variation, and shares of sets."""
    longest = min(encoder.kind.max_length, MOST_LENGTHS - 1)
    shares = [_shares(np.minimum(np.diff(m.indptr), longest), longest + 1) for m in matrices]
    last = f"{longest} or more" if longest < encoder.kind.max_length else f"{longest}"
    return _figure(f"{encoder.name}: how many items", "lengths", [*map(str, range(longest)), last], shares)


def _items(matrices: list[sparse.csr_array], encoder: SetEncoder) -> ColumnFigure:
    """Which items the sets' places hold: total variation over all items, pictured for the commonest."""
    totals = [np.asarray(m.sum(axis=0), dtype=np.float64).ravel() for m in matrices]
    shares = [total / max(1.0, float(total.sum())) for total in totals]
    commonest = np.sort(np.argsort(-np.sum(shares, axis=0), kind="stable")[:MOST_ITEMS])
    labels = [_label(encoder.kind, int(i)) for i in commonest]
    others = len(commonest) < encoder.dimension
    rest = [max(0.0, float(share.sum() - share[commonest].sum())) for share in shares]
    shown = [
        np.append(share[commonest], left) if others else share[commonest]
        for share, left in zip(shares, rest, strict=True)
    ]
    empty = [not total.any() for total in totals]
    distance = None
    if len(shares) == 2:  # nothing is as far as can be from something
        distance = float(empty[0] != empty[1]) if any(empty) else 0.5 * float(np.abs(shares[0] - shares[1]).sum())
    figure = _figure(f"{encoder.name}: which items", "items", [*labels, *(["all others"] if others else [])], shown)
    return replace(figure, distance=distance)


def _label(kind: ItemSet, code: int) -> str:
    return str(code) if kind.labels is None else kind.labels[code]


def _shares(values: np.ndarray, size: int) -> np.ndarray:
    return np.bincount(values, minlength=size) / max(1, len(values))


def _figure(name: str, kind: str, labels: list[str], shares: list[np.ndarray]) -> ColumnFigure:
    """Of shares of synthetic sets, and of real ones if there are any."""
    distance = None if len(shares) == 1 else 0.5 * float(np.abs(shares[0] - shares[1]).sum())
    return ColumnFigure(name, kind, distance, share_bins(labels, shares))
