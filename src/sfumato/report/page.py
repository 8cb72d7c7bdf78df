"""The template and its tools: everything that comes from outside is escaped.

Numbers become rectangles of small pictures, sampled pictures PNG sheets; pictures of records are never shown.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.columns.kinds import Image, LevelKind
from sfumato.io.pictures import channels_of, png_bytes, require_pillow
from sfumato.privacy.words import figure, sentence, shown
from sfumato.release.model import ReleaseValue
from sfumato.report import page as charts
from sfumato.report.columns import Bin

if TYPE_CHECKING:
    import jinja2


PER_CLASS, MOST_CLASSES = 8, 12


@dataclass(frozen=True, slots=True)
class Sheet:
    """Pictures side by side: a data URI, its size in pixels, and what it shows."""

    uri: str
    width: int
    height: int
    shows: str


def image_column(release: ReleaseValue) -> str | None:
    """Return the name of the column of images, or None."""
    return next(iter(release.schema.images), None)


def sheets(release: ReleaseValue, *, seed: int) -> list[Sheet]:
    """Draw a few pictures per class, or a few if there are no classes; none of shapes that are no pictures.

    Raises:
        ConfigError: Pillow is not installed.
    """
    name = image_column(release)
    kind = None if name is None else release.schema.of_kind(Image)[name]
    if name is None or kind is None or len(kind.shape) not in {2, 3} or channels_of(kind.shape) > 3:
        return []
    if channels_of(kind.shape) == 2 or release.is_data_set:
        return []
    require_pillow()
    labels = next(iter(release.schema.of_kind(LevelKind).values()), None)
    if labels is None:
        return [_sheet(_draw(release, name, PER_CLASS, None, seed), kind, "samples")]
    return [
        _sheet(_draw(release, name, PER_CLASS, label, seed), kind, f"samples of class {label}")
        for label in labels.labels[:MOST_CLASSES]
    ]


def _draw(release: ReleaseValue, name: str, n: int, label: str | None, seed: int) -> np.ndarray:
    counts = None if label is None else {label: n}
    table = pa.concat_tables(release.batches(n if label is None else None, seed=seed, class_counts=counts))
    return np.concatenate([chunk.to_numpy_ndarray() for chunk in table[name].chunks])


def _sheet(images: np.ndarray, kind: Image, shows: str) -> Sheet:
    scaled = (np.asarray(images, dtype=np.float64) - kind.lower) / (kind.upper - kind.lower)
    pixels = np.round(255 * np.clip(scaled, 0, 1)).astype(np.uint8)
    strip = np.concatenate(list(pixels), axis=1)
    uri = "data:image/png;base64," + base64.b64encode(png_bytes(strip)).decode("ascii")
    return Sheet(uri, strip.shape[1], strip.shape[0], f"{len(images)} {shows}")


def render(content: Mapping[str, Any]) -> str:
    """Return the page. Names and labels of a stranger's schema cannot leave their place in it."""
    return templates("sfumato.report").get_template("page.html").render(**content, charts=charts)


def templates(*packages: str) -> jinja2.Environment:
    """Return the templates of packages, the first one's first; they escape everything that they are given."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"text": shown, "sentence": sentence, "marked": marked, "figure": figure, "whole": whole}
    environment.filters.update(filters)
    return environment


def marked(text: object) -> str:
    """Return a sentence as HTML: escaped, and what stands between backticks as code."""
    from markupsafe import Markup, escape  # jinja2's own, which only pages need

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(sentence(text)))))


def whole(text: object) -> str:
    """Return text as HTML in which no line breaks within a number or before its percent sign."""
    from markupsafe import Markup, escape

    markup = str(escape(text)).replace(" %", "\N{NO-BREAK SPACE}%")
    return Markup(re.sub(r"(?<![\d.])\d[\d.]*+e-\d+", r'<span class="whole">\g<0></span>', markup))


WIDTH, HEIGHT = 240.0, 90.0
SIDE = 160.0
_FAINTEST = 0.02
_LINE, _CAP = 1.0, 1.0  # widths of the lines of an interval
_HEADROOM = 1.05  # above the highest of them
_BEHIND = 0.6  # opacity of bars on which lines have to be seen


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle of a class of the style sheet; `opacity` in [0, 1]."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    opacity: float = 1.0


def rectangle(kind: str, *numbers: float) -> Rectangle:
    """Return a rectangle of these numbers, in the order of its fields, in two decimals."""
    return Rectangle(kind, *(round(float(number), 2) for number in numbers))


def bars(bins: Sequence[Bin]) -> list[Rectangle]:
    """Shares as bars: the real ones wide and behind, the synthetic ones narrow and before; intervals as lines."""
    tallest = max((max(b.synthetic, b.real or 0.0, _HEADROOM * (b.high or 0.0)) for b in bins), default=0.0) or 1.0
    measured = any(b.high is not None for b in bins)
    step = WIDTH / max(1, len(bins))
    rectangles = []
    for i, b in enumerate(bins):
        for kind, share, width in (("real", b.real, 0.9), ("synthetic", b.synthetic, 0.9 if b.real is None else 0.45)):
            if share:
                height = HEIGHT * share / tallest
                left = i * step + step * (1 - width) / 2
                strength = _BEHIND if measured else 1.0
                rectangles.append(rectangle(kind, left, HEIGHT - height, step * width, height, strength))
        if b.low is not None and b.high is not None:
            rectangles += _whisker(i * step + step / 2, step, HEIGHT * b.low / tallest, HEIGHT * b.high / tallest)
    return rectangles


def _whisker(middle: float, step: float, low: float, high: float) -> list[Rectangle]:
    """Return an interval of a bar as a line with ends: `low` and `high` above the ground."""
    across = min(step * 0.5, 8.0)
    line = rectangle("interval", middle - _LINE / 2, HEIGHT - high, _LINE, high - low)
    caps = (min(max(HEIGHT - end - _CAP / 2, 0.0), HEIGHT - _CAP) for end in (low, high))
    return [line, *(rectangle("interval", middle - across / 2, top, across, _CAP) for top in caps)]


def interval(low: float, value: float, high: float) -> list[Rectangle]:
    """A number with its interval, all in [-1, 1], on a line from -1 to 1 with a mark at 0."""

    def place(number: float) -> float:
        return WIDTH * (1 + min(max(number, -1.0), 1.0)) / 2

    left, right = place(low), place(high)
    return [
        rectangle("axis", 0.0, 11.5, WIDTH, 1.0),
        rectangle("axis", WIDTH / 2 - 0.5, 2.0, 1.0, 20.0),
        rectangle("synthetic", left, 7.0, max(right - left, 1.0), 10.0),
        rectangle("interval", place(value) - 0.75, 4.0, 1.5, 16.0),
    ]


def heat(differences: np.ndarray) -> list[Rectangle]:
    """Differences of shares as cells, stronger where larger, in two colours; shape (rows, columns)."""
    largest = float(np.abs(differences).max(initial=0.0)) or 1.0
    height, width = SIDE / differences.shape[0], SIDE / differences.shape[1]
    rectangles = []
    for (row, column), value in np.ndenumerate(differences):
        strength = abs(float(value)) / largest
        if strength >= _FAINTEST:
            kind = "more" if value > 0 else "less"
            rectangles.append(rectangle(kind, column * width, row * height, width, height, strength))
    return rectangles


def stages(shares: Sequence[float]) -> list[Rectangle]:
    """Shares of a budget as one bar of parts, class `stage0` to `stage5` and round again."""
    rectangles, left = [], 0.0
    for i, share in enumerate(shares):
        width = WIDTH * share
        rectangles.append(rectangle(f"stage{i % 6}", left, 0.0, max(0.0, width - 1), 24.0))
        left += width
    return rectangles
