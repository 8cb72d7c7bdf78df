"""What the noise of a budget means for each column, from public facts alone: forecasts beside the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq

from sfumato.columns.kind import TabularKind
from sfumato.columns.levels import LevelKind
from sfumato.columns.open import Open
from sfumato.privacy.pld import gaussian_delta
from sfumato.schema.schema import Schema

Strength = Literal["clear", "rough", "hidden"]

PARTS = 10
"""Of the span of a number: the noise is told beside a tenth of the rows."""

_HIDDEN, _CLEAR = 2.0, 10.0  # standard errors of a part's count
_MOST_DISTANCE = 200.0


class ColumnForecast(NamedTuple):
    """A column: how strongly a part of it stands out if all parts have as many rows, and that in words."""

    name: str
    strength: Strength
    words: str


class Outlook(NamedTuple):
    """What an ε gives: the standard error of a share, how many rows a group needs to be seen, and each column."""

    epsilon: float
    share_error: float
    group: int
    columns: list[ColumnForecast]


def outlooks(
    schema: Schema, rows: int, share_error: float, threshold: float | None, *, epsilon: float, delta: float,
    scale: Sequence[float],
) -> list[Outlook]:  # fmt: skip
    """Return what each ε of a scale gives, from the forecast of one: the noise of others is about that of one Gaussian.

    Args:
        schema: what is public.
        rows: the public number of rows.
        share_error: forecast standard error of a share of a column, at `epsilon`.
        threshold: from how many rows on an estimated label is kept, at `epsilon`; None where none is estimated.
        epsilon: of these forecasts.
        delta: of all.
        scale: the ε to forecast.
    """
    answers = []
    for other in scale:
        ratio = 1.0 if other == epsilon else _distance(epsilon, delta) / _distance(other, delta)
        error = share_error * ratio
        least = None if threshold is None else threshold * ratio
        answers.append(
            Outlook(other, error, round(_HIDDEN * error * rows), column_forecasts(schema, rows, error * rows, least))
        )
    return answers


def _distance(epsilon: float, delta: float) -> float:
    """Return how far one Gaussian may shift, in units of its noise, under (ε, δ)."""
    at = np.array([epsilon])
    return float(brentq(lambda shift: gaussian_delta(shift, at)[0] - delta, 1e-9, _MOST_DISTANCE))  # type: ignore[arg-type]


def column_forecasts(schema: Schema, rows: int, error: float, threshold: float | None) -> list[ColumnForecast]:
    """Return a forecast for each released column of labels, numbers or dates.

    Args:
        schema: what is public.
        rows: the public number of rows.
        error: standard error of the count of a part, in rows.
        threshold: from how many rows on an estimated label is kept; None where none is estimated.

    Example:
        >>> from sfumato import Schema
        >>> schema = Schema.from_dict({"columns": {"member": "boolean"}, "rows": 1000})
        >>> column_forecasts(schema, 1000, 12.3, None)[0].words
        'one of 2 labels, if all are alike: 500 rows ± 12'
    """
    counted = "rows" if schema.unit is None else "units, one row of each,"
    forecasts = []
    for name in schema.released:
        kind = schema.columns[name]
        if isinstance(kind, Open) and kind.kind in ("categorical", "unknown") and threshold is not None:
            words = f"labels are estimated: those of more than about {threshold:,.0f} {counted} are kept"
            forecasts.append(ColumnForecast(name, "rough" if 2 * threshold < rows else "hidden", words))
            continue
        if not isinstance(kind, TabularKind | Open):
            continue
        labels = len(kind.labels) if isinstance(kind, LevelKind) else 0
        part = rows / max(labels or PARTS, 1)
        what = (
            f"one of {labels} label{'s' if labels > 1 else ''}, if all are alike" if labels else "a tenth of the rows"
        )
        words = f"{what}: {part:,.0f} rows ± {error:,.2g}" if error < 10 else f"{what}: {part:,.0f} rows ± {error:,.0f}"
        if isinstance(kind, Open):
            words = f"{'values' if kind.kind == 'boolean' else 'bounds'} are estimated first; then {words}"
        forecasts.append(ColumnForecast(name, _strength(part, error), words))
    return forecasts


def _strength(part: float, error: float) -> Strength:
    ratio = part / error if error else _CLEAR
    return "clear" if ratio >= _CLEAR else "rough" if ratio >= _HIDDEN else "hidden"
