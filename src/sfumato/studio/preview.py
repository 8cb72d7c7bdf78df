"""A picture of what noise does to a column, made of public facts: invented shares, the forecast error, no record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.maths.streams import public_stream
from sfumato.schema.schema import Schema

_MOST_BARS = 8
_MOST_COLUMNS = 12


class PreviewBar(NamedTuple):
    """One invented share and what its noise makes of it, as percentages of the column's tallest bar."""

    before: float
    after: float


class Preview(NamedTuple):
    """A column's name, its bars, and the forecast error beside a share of one cell in `len(bars)`."""

    name: str
    bars: tuple[PreviewBar, ...]
    relative: float


def previews(schema: Schema, share_error: float) -> list[Preview]:
    """Return pictures of the first columns. The shares are invented (falling as 1/rank), and so is the draw of noise.

    Args:
        schema: what is public.
        share_error: forecast standard error of a share of a column.
    """
    pictures = []
    for index, name in enumerate(schema.released[:_MOST_COLUMNS]):
        kind = schema.columns[name]
        n_bars = min(len(getattr(kind, "labels", ())) or _MOST_BARS, _MOST_BARS)
        before = 1.0 / np.arange(1, n_bars + 1)
        before /= before.sum()
        after = np.clip(before + share_error * public_stream(0, index).standard_normal(n_bars), 0.0, None)
        top = max(before.max(), after.max())
        bars = tuple(PreviewBar(float(b / top * 100), float(a / top * 100)) for b, a in zip(before, after, strict=True))
        pictures.append(Preview(name, bars, share_error * n_bars))
    return pictures
