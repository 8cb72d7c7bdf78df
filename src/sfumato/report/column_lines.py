"""Columns of a release, a line each: what was known or estimated, what is kept, what is lost, what would keep it.

The one home of these lines: command line, cards, report, pack and studio ask here. All is a function of the release:
its schema, and rows of its model from a fixed seed. No record is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sfumato.cards.html import shown
from sfumato.columns.facts import grouped
from sfumato.columns.kinds import Boolean, Categorical, ColumnKind, Identifier, NumericKind
from sfumato.columns.levels import LevelKind
from sfumato.columns.roles import names_people
from sfumato.columns.words_beside import FIRST_WORD
from sfumato.errors import EstimateError
from sfumato.inference.estimated_bounds import estimated_bounds, is_clock, most
from sfumato.inference.joint_errors import deviations
from sfumato.inference.linked_rows import questions_of
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.release.model import ReleaseValue
from sfumato.release.unit_releases import table_of
from sfumato.schema.sources import DATA, DISCOVERED, FactSource
from sfumato.schema.word_columns import word_name

ROWS = 4_096
"""Rows of the model by which shares are told."""
FEW, MANY = 0.05, 0.5
"""Shares of a column's rows from which on it is kept in part, and not."""

_SEED = 0
_FEWEST = 0.005  # a share that is told
_STANDS_OUT = 2.0  # standard deviations of noise
_IN_PART = 0.49  # most that is lost of labels that are known together
_MOST_LABELS, _LONGEST_LABELS = 6, 60
_MOST_FREQUENT, _MANY_VALUES = 5, 20  # that are named, of a column of more values
_SHARED, _LEVEL = 0.02, 0.95  # of all rows, that a named value has; of its interval
_SOURCE_WORDS = {DISCOVERED: "estimated", DATA: "read off the records"}
_DECLARED = "declared"
_BOUNDS, _GROUPS = "lower and upper", "parents for groups of its rare labels"
_LARGER = "fewer codes in keep, or parents of more codes each"
_LISTED = "categories: {file: CODES.csv, column: CODE}, a public list, or parents for groups of codes"


@dataclass(frozen=True, slots=True)
class ColumnLine:
    """A column of a release.

    Attributes:
        name: of the column.
        kind: of its cells, in a word.
        known: declared, or estimated by the fit with part of the budget, or read off the records; or one per fact.
        kept: bounds, or how many labels, in words.
        lost: the share of the column's rows that tell nothing of the records' own values, in [0, 1]: those in `other`,
            or all of a column that has one value or was left out; at most .49 for labels that are each rarer than the
            noise, but known together.
        loss: that in words; empty where nothing is lost.
        cure: what to declare to keep it; empty where nothing is lost.
        is_number: whether its cells are numbers.
    """

    name: str
    kind: str
    known: str
    kept: str
    lost: float = 0.0
    loss: str = ""
    cure: str = ""
    is_number: bool = False

    @property
    def text(self) -> str:
        """The line as a sentence or two."""
        loss = f"; {self.loss}" if self.loss else ""
        cure = f" Declare this to keep it: {self.cure}." if self.cure else ""
        return f"{shown(self.name)}: {self.known}; {self.kept}{loss}.{cure}"


def column_lines(release: ReleaseValue, rows: pa.Table | None = None) -> tuple[ColumnLine, ...]:
    """Return a line for each released column and each that a fit left out, in the schema's order. Free.

    Args:
        release: whose columns.
        rows: some of its rows, where there are some already.
    """
    schema = release.schema
    if schema.tree is not None:
        own, within = schema.table_columns, {branch.order for branch in schema.tree.branches if branch.within}
        parts = {name: column_lines(table_of(release, name)) for name in own}
        lines = {line.name: line for name, part in parts.items() for line in part if line.name in own[name]}
        # of what lies between two columns its place is modelled, of totals nothing: lines say what they are between
        alone = {*within, *schema.tree.totals}
        names = [name for columns in own.values() for name in columns]
        return tuple(_line(release, name, None) if name in alone else lines[name] for name in names)
    # of pictures, many would be drawn for their labels alone
    has_shares = not release.is_data_set and not schema.images
    if rows is None and has_shares:
        rows = pa.concat_tables(release.batches(ROWS, seed=_SEED)).slice(0, ROWS)
    left_out = {name for name, kind in schema.columns.items() if isinstance(kind, Identifier)}
    left_out = {name for name in left_out if schema.sources.get(name) == DISCOVERED}
    names = [name for name in schema.columns if name in schema.released or name in left_out]
    measured = _measured(release) if rows is not None else None
    lines = {name: _line(release, name, rows, measured) for name in names}
    for name, stands in (_standing_out(measured) if measured is not None else {}).items():
        if name in lines:
            lines[name] = _with_hidden(lines[name], schema.columns[name], rows, stands)
    return tuple(lines.values())


def worst(lines: Sequence[ColumnLine]) -> list[ColumnLine]:
    """Return the lines of columns that are not or only in part kept, what is lost most first."""
    return sorted((line for line in lines if line.lost >= FEW), key=lambda line: -line.lost)


def cures(lines: Sequence[ColumnLine]) -> dict[str, list[str]]:
    """Return declarations with the columns that each keeps, in the order of the lines."""
    names: dict[str, list[str]] = {}
    for line in lines:
        if line.cure:
            names.setdefault(line.cure, []).append(line.name)
    return names


def _line(
    release: ReleaseValue, name: str, rows: pa.Table | None, measured: TableMeasurements | None = None
) -> ColumnLine:
    kind, known = release.schema.columns[name], _known(release.schema.sources.get(name, ""))
    if isinstance(kind, Identifier):
        if names_people(name):
            return ColumnLine(name, kind.name, known, "left out, as names and record numbers should be")
        loss = "left out: nothing of it stood out of the noise"
        return ColumnLine(name, kind.name, known, "nothing kept", 1.0, loss, "its kind, with public labels or bounds")
    if isinstance(kind, LevelKind):
        return _labels(name, kind, known, rows)
    frequent = "" if rows is None or not isinstance(kind, NumericKind) else _frequent(rows, name, kind, measured)
    line = _numbers(name, kind, known, frequent)
    if not line.is_number or line.loss or _SOURCE_WORDS[DISCOVERED] not in known or is_clock(kind):
        return line
    return _with_beyond(line, release)


def _labels(name: str, kind: LevelKind, known: str, rows: pa.Table | None) -> ColumnLine:
    other = None if isinstance(kind, Boolean) else getattr(kind, "other", None)
    labels = [label for label in kind.labels if label != other]
    words = f"{len(labels)} label{'' if len(labels) == 1 else 's'}"
    listed = ", ".join(shown(label) for label in labels)
    if 0 < len(labels) <= _MOST_LABELS and len(listed) <= _LONGEST_LABELS:
        words += f" ({listed})"
    words += "" if other is None else f" and {shown(other)!r}"
    words += "; anything else counted for no label" if kind.hides_blank else ""
    cure = _LISTED if known != _DECLARED else f"the labels that are read as {shown(other)!r}"
    if not labels or (len(labels) == 1 and other is None and known != _DECLARED):
        return ColumnLine(name, kind.name, known, words, 1.0, "every row has the same label", cure)
    if known == _DECLARED and other in getattr(kind, "categories", ()):
        return ColumnLine(name, kind.name, known, words)  # an answer among others, as the holder says
    share = 0.0
    if other is not None and rows is not None:
        share = _share(rows, name, kind, np.array([kind.labels.index(other)]))
    if share < _FEWEST:
        return ColumnLine(name, kind.name, known, words)
    return ColumnLine(name, kind.name, known, words, share, f"{percent(share)} of rows are {shown(other)!r}", cure)


def _with_hidden(line: ColumnLine, kind: ColumnKind, rows: pa.Table, stands: np.ndarray) -> ColumnLine:
    """Return the line of a column of labels with those that are rarer than the noise of their counts.

    All of them together are known, each is not: at most to be used with care.
    """
    if not isinstance(kind, LevelKind) or isinstance(kind, Boolean) or len(stands) != kind.n_levels or line.loss:
        return line
    labels = np.arange(len(kind.labels))
    hidden = labels[~stands[: len(labels)]]
    share = _share(rows, line.name, kind, hidden)
    if not hidden.size or share < _FEWEST:
        return line
    some = "1 label" if hidden.size == 1 else f"{hidden.size} labels"
    are = "is" if hidden.size == 1 else "are each"
    loss = f"{some}, {percent(share)} of rows, {are} rarer than the noise"
    cure = "fewer labels" if not isinstance(kind, Categorical) else _LARGER if kind.parents else _GROUPS
    return replace(line, lost=min(share, _IN_PART), loss=loss, cure=cure)


def _numbers(name: str, kind: ColumnKind, known: str, frequent: str) -> ColumnLine:
    facts = kind.to_dict()
    if not {"lower", "upper"} <= facts.keys():
        return ColumnLine(name, kind.name, known, f"{kind.holds}")
    lower, upper = facts["lower"], facts["upper"]
    listed = f"{len(facts['values'])} values, " if facts.get("values") else ""
    words = f"{listed}{_bound(lower)} to {_bound(upper)}{frequent}"
    line = ColumnLine(name, kind.name, known, words, is_number=True)
    if _SOURCE_WORDS[DISCOVERED] in known and lower == upper:
        return replace(line, lost=1.0, loss="every row has the same value", cure=_BOUNDS)
    return line


def _frequent(rows: pa.Table, name: str, kind: NumericKind, measured: TableMeasurements | None) -> str:
    """Return which values and words of a column many rows of the model share, in words: those of 2 % and more.

    With where the records' share lies by the value's own noisy count, at 95 %.
    """
    if is_clock(kind) or (kind.steps.last < _MANY_VALUES and not kind.words):
        return ""
    codes, counted = kind.code(rows[name], missing=()), _counted(name, kind, measured)
    codes, counts = np.unique(codes[~np.isnan(codes)], return_counts=True)
    most = np.argsort(-counts, kind="stable")
    most = most[counts[most] >= _SHARED * rows.num_rows]
    storage = pa.string() if pa.types.is_temporal(rows[name].type) else rows[name].type
    values = kind.decode(codes[most], storage).to_pylist()
    texts = []
    for place, value in zip(most[:_MOST_FREQUENT], values, strict=False):
        text = f"{_bound(value)} in {percent(counts[place] / rows.num_rows)}"
        code = float(codes[place])  # of words from FIRST_WORD on: steps -1, -2 and so on
        step = round(FIRST_WORD - 1 - code) if code >= FIRST_WORD else int(kind.steps.at(np.array(code)))
        if (ends := counted.get(step)) is not None:
            text += " ({} to {})".format(*map(percent, ends))
        texts.append(text)
    more = f", and {most.size - _MOST_FREQUENT} more values" if most.size > _MOST_FREQUENT else ""
    return f", {', '.join(texts)} of rows{more}" if texts else ""


def _counted(name: str, kind: NumericKind, measured: TableMeasurements | None) -> dict[int, list[float]]:
    """Return the interval of the share of rows of each value and each word that was counted, by its place."""
    if measured is None:
        return {}
    steps, counts, std = measured.counted(name)
    parts = [(steps, counts, std)]
    words = measured.counts(word_name(name)) if kind.words and word_name(name) in measured.columns else None
    if words is not None:
        parts.append((-1 - np.arange(len(kind.words)), words.cells[: len(kind.words)], words.cell_variance**0.5))
    ends = {}
    for places, own, noise in parts:
        around = own[:, None] + deviations(_LEVEL) * noise * np.array([-1, 1])
        ends |= dict(zip(places.tolist(), np.clip(around / measured.size, 0.0, 1.0).tolist(), strict=True))
    return ends


def _with_beyond(line: ColumnLine, release: ReleaseValue) -> ColumnLine:
    """Return the line of estimated bounds with the share of values that may lie beyond, which are read as a bound."""
    try:
        bounds = estimated_bounds(release, line.name)
    except EstimateError:
        loss = "made-up or too noisy bounds: nothing says what lies beyond"
        return replace(line, lost=_IN_PART, loss=loss, cure=_BOUNDS)
    if bounds is None:  # the release does not hold the counts that they were estimated by
        return replace(line, loss="what lies beyond is read as a bound", cure=_BOUNDS)
    expected = sum(share.value for share in bounds.shares)
    largest = min(sum(map(most, bounds.shares)), 1.0)
    if largest < _FEWEST:
        return line
    about = f"about {percent(expected)} of values lie beyond, " if expected >= _FEWEST else ""
    up_to = f"up to {percent(largest)}" if about else f"up to {percent(largest)} of values may lie beyond"
    return replace(line, lost=expected, loss=about + up_to, cure=_BOUNDS)


def _measured(release: ReleaseValue) -> TableMeasurements | None:
    """Return what a release measured; None where it holds nothing that questions can rest on."""
    try:
        return questions_of(release).measured
    except EstimateError:
        return None


def _standing_out(measured: TableMeasurements) -> dict[str, np.ndarray]:
    """Return which noisy counts of each column's cells stand out of their noise."""
    known = {name: counts for name in measured.names if (counts := measured.counts(name)) is not None}
    return {name: counts.cells > _STANDS_OUT * counts.cell_variance**0.5 for name, counts in known.items()}


def _share(rows: pa.Table, name: str, kind: LevelKind, labels: np.ndarray) -> float:
    """Return the share of rows whose label is one of these, by their places."""
    return float(np.isin(kind.code(rows[name], missing=()), labels).mean()) if rows.num_rows else 0.0


def _known(source: FactSource) -> str:
    if isinstance(source, str):
        return _SOURCE_WORDS.get(source, _DECLARED)
    words: dict[str, list[str]] = {}
    for fact, word in source.items():
        words.setdefault(_SOURCE_WORDS.get(word, _DECLARED), []).append(fact)
    parts = (f"{', '.join(facts)} {word}" for word, facts in words.items())
    return _DECLARED if set(words) == {_DECLARED} else ", ".join(parts)


def _bound(value: object) -> str:
    if isinstance(value, int | float):
        return grouped(value, ".12g" if isinstance(value, float) else "")
    return shown(value)


def percent(share: float) -> str:
    """Return a share in per cent, whole but for small ones."""
    percentage = 100 * share
    if 99.5 <= percentage < 100:
        return "more than 99 %"
    return f"{percentage:.0f} %" if percentage >= 1 or share == 0 else f"{percentage:.1f} %"
