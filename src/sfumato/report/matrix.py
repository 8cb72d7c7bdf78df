"""How strongly all columns go together, as one picture: Pearson's correlation, Cramér's V, the correlation ratio.

With real rows the figures are NOT private; of synthetic rows alone they are functions of the release.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.desk.validation import NOWHERE
from sfumato.evaluate.coded_tables import CodedTable, table_kinds
from sfumato.privacy.words import shown
from sfumato.schema.schema import Schema

FEWEST, MOST_COLUMNS = 3, 60
"""Columns that make a matrix; of more, the first ones and the target."""

MOST_LEVELS = 20
"""Labels beyond the commonest count as one, as in `Release.association`."""

LISTED_PAIRS = 60
STRENGTHS = 10
"""Steps of the colour."""

_CELLS = ((12, 24.0), (24, 16.0), (MOST_COLUMNS, 12.0))  # up to so many columns: the side of a cell
_ROOM = 104.0  # beside and above the cells, for names
_LEAST_WRITTEN = 0.05
_FONT = 9.0
_MEASURES = {2: "correlation", 1: "correlation ratio", 0: "Cramér’s V"}

Sign = Literal["more", "less"]


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """A pair of columns: its measure, and the association of synthetic and, if there are any, of real rows."""

    names: tuple[str, str]
    measure: str
    synthetic: float
    real: float | None


@dataclass(frozen=True, slots=True)
class Shade:
    """Cells of one colour: `path` in cells, from 1 to 10 how strong."""

    kind: Sign
    strength: int
    path: str


@dataclass(frozen=True, slots=True)
class Name:
    """A column's name, shortened to its room, and the middle of its row and of its column."""

    text: str
    place: float


@dataclass(frozen=True, slots=True)
class CellText:
    """The value of a cell as text, and the middle of its foot."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class MatrixPicture:
    """A square of cells; `top` is the value of the strongest colour, `values` are those of few columns."""

    title: str
    says: str
    top: float
    shades: tuple[Shade, ...]
    values: tuple[CellText, ...] = ()


@dataclass(frozen=True, slots=True)
class Matrix:
    """One picture of synthetic rows, or three, and the strongest or worst pairs.

    `cell` is the side of a cell and `side` of a picture, with `room` for names; `ground` is the path of all its cells.
    """

    pictures: tuple[MatrixPicture, ...]
    names: tuple[Name, ...]
    lines: tuple[MatrixLine, ...]
    n_pairs: int
    n_left_out: int
    cell: float
    room: float
    side: float
    ground: str


def matrix_of(
    synthetic: CodedTable, real: CodedTable | None, schema: Schema, target: str | None = None
) -> Matrix | None:
    """Return the matrix of tables that were read with `read_codes`; None of fewer than three columns.

    Correlations are of the rows where neither number is missing; a missing label is a label. Cramér's V and the
    correlation ratio are less the bias of finitely many rows, so that labels without bearing on each other are near 0.

    Args:
        synthetic: rows of the release.
        real: real rows; the figures are then NOT private.
        schema: of both.
        target: a column that is shown wherever it stands.

    Reference: Pearson 1895; Bergsma 2013 (V less its bias); Kelley 1935 (the correlation ratio less its bias).
    """
    kinds = table_kinds(schema)
    names = list(kinds)[:MOST_COLUMNS]
    if target in kinds and target not in names:
        names[-1] = target
    if len(names) < FEWEST:
        return None
    tables = [synthetic] if real is None else [synthetic, real]
    columns = [_columns(table, names, kinds, tables) for table in tables]
    associations = [_associations(of_table) for of_table in columns]
    lines = tuple(_lines(names, kinds, associations))
    n, cell = len(names), next(side for most, side in _CELLS if len(names) <= most)
    pictures = _pictures(associations, lines, cell)
    return Matrix(
        pictures,
        tuple(Name(fit_name(shown(name)), _ROOM + cell * (i + 0.5)) for i, name in enumerate(names)),
        lines[:LISTED_PAIRS],
        len(lines),
        len(kinds) - n,
        cell,
        _ROOM,
        _ROOM + cell * n,
        f"M0 0h{n}v{n}h-{n}z" + "".join(f"M0 {i}h{n}M{i} 0v{n}" for i in range(1, n)),  # a square, lines between cells
    )


def _columns(
    table: CodedTable, names: Sequence[str], kinds: Mapping[str, TabularKind], tables: Sequence[CodedTable]
) -> list[np.ndarray]:
    """Return numbers as floats, NaN where there is none; labels as small integers, the same for all tables."""
    columns = []
    for name in names:
        codes, marks = table.columns[name], table.outside.get(name)
        if kinds[name].is_numeric:
            columns.append(codes if marks is None else np.where(marks == NOWHERE, np.nan, codes))
            continue
        size = kinds[name].width + 1  # the last for what the schema has no place for
        shares = np.sum([np.bincount(t.columns[name], minlength=size) / t.n_rows for t in tables], axis=0)
        merge = np.full(size, min(MOST_LEVELS, size - 1))
        commonest = np.argsort(-shares[: size - 1], kind="stable")[:MOST_LEVELS]
        merge[commonest] = np.arange(len(commonest))
        levels = codes.astype(np.int64) if marks is None else np.where(marks == NOWHERE, size - 1, codes)
        columns.append(merge[levels])
    return columns


def _associations(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return the associations of columns with each other, shape (d, d), the upper triangle left at 0."""
    table = np.zeros((len(columns), len(columns)))
    for j, i in combinations(range(len(columns)), 2):
        one, other = columns[i], columns[j]
        labels = [column.dtype.kind != "f" for column in (one, other)]
        if all(labels):
            table[i, j] = cramers_v(one, other)
        elif any(labels):
            table[i, j] = correlation_ratio(*((one, other) if labels[0] else (other, one)))
        else:
            table[i, j] = correlation(one, other)
    return table


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Pearson's correlation of the rows where neither is NaN; 0 of a constant column. Shapes (n,)."""
    known = ~(np.isnan(first) | np.isnan(second))
    if not known.all():
        first, second = first[known], second[known]
    if len(first) < 2 or first.min() == first.max() or second.min() == second.max():
        return 0.0
    return float(np.clip(np.corrcoef(first, second)[0, 1], -1.0, 1.0))


def correlation_ratio(labels: np.ndarray, numbers: np.ndarray) -> float:
    """Return the correlation ratio of numbers on labels less its bias, in [0, 1]. Shapes (n,)."""
    known = ~np.isnan(numbers)
    labels, numbers = labels[known], numbers[known]
    n = len(numbers)
    if n < 2 or numbers.min() == numbers.max():
        return 0.0
    counts = np.bincount(labels)
    levels = int(np.count_nonzero(counts))
    if levels < 2 or levels >= n:
        return 0.0
    centred = numbers - numbers.mean()
    sums = np.bincount(labels, weights=centred)
    explained = float(np.sum(sums**2 / np.maximum(counts, 1))) / float(centred @ centred)
    return math.sqrt(min(max(1 - (1 - explained) * (n - 1) / (n - levels), 0.0), 1.0))


def cramers_v(first: np.ndarray, second: np.ndarray) -> float:
    """Return Cramér's V of two columns of labels, whole numbers, less its bias, in [0, 1]. Shapes (n,)."""
    n, width = len(first), int(second.max()) + 1
    counts = np.bincount(first * width + second).astype(np.float64)
    table = np.pad(counts, (0, -len(counts) % width)).reshape(-1, width)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    rows, columns = table.shape
    if min(rows, columns) < 2 or n < 2:
        return 0.0
    expected = np.multiply.outer(table.sum(axis=1), table.sum(axis=0)) / n
    square = float(np.sum(table**2 / expected)) / n - 1 - (rows - 1) * (columns - 1) / (n - 1)
    most = min(side - (side - 1) ** 2 / (n - 1) for side in (rows, columns)) - 1
    return math.sqrt(min(max(square, 0.0) / most, 1.0)) if most > 0 else 0.0


def _lines(
    names: Sequence[str], kinds: Mapping[str, TabularKind], associations: Sequence[np.ndarray]
) -> list[MatrixLine]:
    """Return all pairs: where there are real rows those first that differ most, else the strongest."""
    lines = []
    for j, i in combinations(range(len(names)), 2):
        measure = _MEASURES[sum(kinds[names[k]].is_numeric for k in (i, j))]
        values = [float(table[i, j]) for table in associations]
        lines.append(MatrixLine((names[j], names[i]), measure, values[0], values[1] if len(values) > 1 else None))
    return sorted(lines, key=lambda line: -abs(line.synthetic - (line.real or 0.0)))


def _pictures(
    associations: Sequence[np.ndarray], lines: Sequence[MatrixLine], cell: float
) -> tuple[MatrixPicture, ...]:
    top = _top(associations)
    worst, strongest = lines[0], max(lines, key=lambda line: abs(line.synthetic))
    strong = f"strongest: {_pair_name(strongest)}, {strongest.synthetic:.2f}"
    pictures = [_picture("Synthetic rows", strong, associations[0], top, cell)]
    if len(associations) > 1:
        real = max(lines, key=lambda line: abs(line.real or 0.0))
        strong_real = f"strongest: {_pair_name(real)}, {real.real or 0.0:.2f}"
        apart, most = associations[0] - associations[1], _top([associations[0] - associations[1]])
        far = f"largest: {_pair_name(worst)}, {worst.synthetic - (worst.real or 0.0):+.2f}"
        pictures.insert(0, _picture("Real rows", strong_real, associations[1], top, cell))
        pictures.append(_picture("Synthetic less real", far, apart, most, cell))
    return tuple(pictures)


def _picture(title: str, says: str, values: np.ndarray, top: float, cell: float) -> MatrixPicture:
    texts = []
    if len(values) <= _CELLS[0][0]:
        large = np.argwhere(np.abs(values) >= _LEAST_WRITTEN).tolist()
        for row, column in [*large, *((column, row) for row, column in large)]:
            text = f"{values[max(row, column), min(row, column)]:.2f}".replace("0.", ".").replace("-", "−")
            texts.append(CellText(text, _ROOM + cell * (column + 0.5), _ROOM + cell * (row + 0.5) + 3))
    return MatrixPicture(title, says, top, _shades(values, top), tuple(texts))


def _pair_name(line: MatrixLine) -> str:
    return " and ".join(shown(name, 40) for name in line.names)


def _top(tables: Sequence[np.ndarray]) -> float:
    """Return the largest absolute value, rounded up to a tenth, at least 0.1."""
    return max(math.ceil(10 * max(float(np.abs(table).max()) for table in tables) - 1e-9), 1) / 10


def _shades(values: np.ndarray, top: float) -> tuple[Shade, ...]:
    """Return the cells beside the diagonal by colour: one path a colour, so that 60 columns stay small."""
    steps = np.rint(np.abs(values) / top * STRENGTHS).astype(int)
    shades: list[Shade] = []
    sides: tuple[tuple[Sign, np.ndarray], ...] = (("more", values > 0), ("less", values < 0))
    for kind, side in sides:
        for strength in range(1, STRENGTHS + 1):
            cells = np.argwhere((steps == strength) & side)
            if len(cells):
                both = [*cells.tolist(), *cells[:, ::-1].tolist()]
                path = "".join(f"M{column} {row}h1v1h-1z" for row, column in both)
                shades.append(Shade(kind, strength, path))
    return tuple(shades)


def fit_name(name: str) -> str:
    """Return a name that its room beside the picture holds, shortened where it is longer."""
    room, used = _ROOM / _FONT - 1.5, 0.0
    for i, sign in enumerate(name):
        used += 1.0 if unicodedata.east_asian_width(sign) in "WF" or sign.isupper() or sign in "mw@%—" else 0.62
        if used > room:
            return name[:i] + "…"
    return name
