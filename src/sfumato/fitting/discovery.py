"""Bounds, categories and missing cells of columns of which only name and kind are public, bought with one release.

    counts of the cells of a public grid (numbers), of missing cells, and of words    G(σ/√c) and an additive δ

Everything else is read off the noisy counts, for free: the span of the cells that stand out, the words above their
threshold, and whether a column has a missing value at all. Proof: docs/proofs/discovery.md.

Buying what a schema leaves open: the stages it costs, and the schema that comes of it.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtri

from sfumato.columns.kinds import Boolean, Categorical, ColumnKind, Continuous, DateTime, Identifier, Integer
from sfumato.columns.open import YEARS, Open, OpenKind
from sfumato.columns.written import Written
from sfumato.errors import SchemaWarning
from sfumato.fitting.account import Account
from sfumato.io.sources import Source
from sfumato.mechanisms.queries import Noisy, origin_of
from sfumato.mechanisms.statistics import Counts
from sfumato.mechanisms.words import NoisyTally, Tally, noisy_words
from sfumato.privacy.plan import Stage, multiplier_for_share
from sfumato.records.engine import Engine, Rows, tally
from sfumato.records.open_data import OpenData, numbers_of
from sfumato.schema.schema import Schema

_FIRST, _LAST = -20, 53  # octaves of the grid: from 2^-20 to 2^53
_PARTS = 4  # cells of an octave
_SIDE = (_LAST - _FIRST) * _PARTS
N_CELLS = 2 * _SIDE + 1  # negative numbers, 0, positive numbers
_FALSE_CELLS = 1e-3  # expected empty cells, of all columns together, that stand out
_WIDTHS = (1, 2, 4, 8, 16)  # cells that are looked at together
_UNSEEN = 1024.0  # bound of numbers of which nothing is seen: most columns of tables of people are below it
_MIDDLE_YEAR = 2000  # of the grid of years, which has as many cells as that of numbers
_UNSEEN_YEARS = (1900, 2099)
_LIKELY = 2.0  # standard deviations by which the octave beside the span has to be above nothing
_PRESENT = 4.0  # standard deviations at which missing cells, or a rest, are taken to exist
_MOST_WORDS = 900
OTHER = "other"
_MOST_DECIMALS = 6
_MISSING, _WHOLE, _DECIMALS, _CODE, _TEXT = 0, 1, 2, _MOST_DECIMALS + 3, _MOST_DECIMALS + 4
_KIND_CELLS = _TEXT + 1
"""Missing, whole number, number of 1 to 6 decimals and of more, text of digits and letters, other text."""
_NUMERIC_SHARE = 0.9
_FRACTION_SHARE = 0.01  # of numbers that may have more decimals than the rest, and of texts that look like codes
_SPARSE = 0.1  # share of cells with a word of their own below which a column of labels is left out


def cells_of(values: np.ndarray) -> np.ndarray:
    """Return the cell of each number on the public grid, int64; what is no finite number is in cell `N_CELLS`.

    Cell `_SIDE` holds 0; beyond it an octave [2^e, 2^(e+1)) is cut into four equal parts, and so for negative numbers.
    Numbers beyond the grid are in its last cells, and those nearer to 0 than 2^-20 in the cells beside that of 0.
    """
    size = np.abs(values)
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, size, 1.0))  # size = mantissa · 2^exponent, mantissa in [0.5, 1)
    place = (exponent - 1 - _FIRST) * _PARTS + np.floor((2 * mantissa - 1) * _PARTS).astype(np.int64)
    place = np.clip(place, 0, _SIDE - 1) + 1
    signed = _SIDE + np.where(values < 0, -place, place)
    return np.where(finite, np.where(size == 0, _SIDE, signed), N_CELLS).astype(np.int64)


def cell_span(cell: int) -> tuple[float, float]:
    """Return the lower and upper edge of a cell of the grid."""
    if cell == _SIDE:
        return 0.0, 0.0
    octave, part = divmod(abs(cell - _SIDE) - 1, _PARTS)
    near, far = (2.0 ** (octave + _FIRST) * (1 + (part + i) / _PARTS) for i in (0, 1))
    near = near if octave or part else 0.0  # the innermost cell also takes what is nearer to 0
    return (near, far) if cell > _SIDE else (-far, -near)


def year_cells(years: np.ndarray) -> np.ndarray:
    """Return the cell of each year on the public grid of years, int64; NaN is in cell `N_CELLS`.

    Years beyond the grid are in its last cells.
    """
    known = ~np.isnan(years)
    place = np.clip(np.where(known, years, 0) - _MIDDLE_YEAR + _SIDE, 0, N_CELLS - 1)
    return np.where(known, place, N_CELLS).astype(np.int64)


@dataclass(frozen=True)
class KindCounts(Counts):
    """Per column, how many cells are missing, whole numbers, numbers of 1, 2, … decimals, codes, and other texts.

    One record adds a single 1 to each of the c columns: norm √c. Value: shape (c, 11).
    """

    columns: tuple[str, ...]
    name: str = "counts of cells that parse"
    step: float = 1.0
    written: Mapping[str, Written | None] = field(default_factory=dict)

    @property
    def squares(self) -> float:
        """The number of columns."""
        return len(self.columns)

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros((len(self.columns), _KIND_CELLS))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        for i, name in enumerate(self.columns):
            total[i] += np.bincount(_parsed(rows[name], self.written.get(name)), minlength=_KIND_CELLS)


_SIGN_AND_WHOLE = r"^\s*[+-]?[0-9]*\.?"
_PLAIN = r"^\s*[+-]?[0-9]*\.?[0-9]*\s*$"


def _parsed(texts: np.ndarray, written: Written | None) -> np.ndarray:
    """Return the cell of each text, int64 of shape (n,): a function of that text alone."""
    present = np.array([text is not None for text in texts], dtype=bool)
    numbers = numbers_of(texts, written)
    whole = np.isfinite(numbers) & (numbers == np.rint(numbers))
    cells = pa.array(texts, pa.string())
    cells = cells if written is None else written.plain(cells)
    decimals = pc.utf8_length(pc.utf8_trim_whitespace(pc.replace_substring_regex(cells, _SIGN_AND_WHOLE, "")))
    plain = pc.match_substring_regex(cells, _PLAIN)
    count = pc.if_else(plain, decimals, _MOST_DECIMALS + 1).fill_null(0).to_numpy(zero_copy_only=False)
    count = np.clip(count.astype(np.int64), 1, _MOST_DECIMALS + 1)
    coded = [pc.match_substring_regex(cells, part).fill_null(False) for part in (r"[0-9]", r"\p{L}")]
    is_code = np.logical_and(*(mask.to_numpy(zero_copy_only=False) for mask in coded))
    text = np.where(is_code, _CODE, _TEXT)
    number = np.where(whole, _WHOLE, _DECIMALS + count - 1)
    return np.where(~present, _MISSING, np.where(np.isnan(numbers), text, number)).astype(np.int64)


def kinds_of(noisy: Noisy, columns: tuple[str, ...]) -> dict[str, OpenKind]:
    """Return the kind of each column by its noisy counts. Free.

    Numbers if nine in ten present cells are, unless texts of digits and letters stand out beside them, as `V57` beside
    `788`: those are codes, and labels. Whole if at most one number of a hundred, or what noise may be, is not.
    """
    found: dict[str, OpenKind] = {}
    for name, counts in zip(columns, noisy.value, strict=True):
        whole, fraction, code, text = counts[_WHOLE], counts[_DECIMALS:_CODE].sum(), counts[_CODE], counts[_TEXT]
        numbers, noise = whole + fraction, _PRESENT * noisy.noise_std
        texts = max(code, 0.0) + max(text, 0.0)
        codes = code > max(_FRACTION_SHARE * numbers, noise)
        if numbers < noise or numbers < _NUMERIC_SHARE * (numbers + texts) or codes:
            found[name] = "categorical"
        else:
            few = max(_FRACTION_SHARE * numbers, noise * math.sqrt(_MOST_DECIMALS + 1))
            found[name] = "integer" if fraction <= few else "continuous"
    return found


def resolutions_of(noisy: Noisy, columns: tuple[str, ...]) -> dict[str, float]:
    """Return the resolution of columns whose numbers have at most so many decimals, by the noisy counts. Free.

    That of cents is 0.01. A column of which numbers with more than six decimals stand out has none.
    """
    found: dict[str, float] = {}
    for name, counts in zip(columns, noisy.value, strict=True):
        by_decimals = counts[_DECIMALS:_CODE]
        numbers = max(float(counts[_WHOLE] + by_decimals.sum()), 0.0)
        for decimals in range(1, _MOST_DECIMALS + 1):
            more = by_decimals[decimals:]
            if more.sum() <= max(_FRACTION_SHARE * numbers, _PRESENT * noisy.noise_std * math.sqrt(more.size)):
                found[name] = float(f"1e-{decimals}")
                break
    return found


@dataclass(frozen=True)
class DomainCounts(Counts):
    """Per open column, how many records lie in each cell of the public grid, are missing, or hold each word.

    One record adds a single 1 to each of the c columns: norm √c. Two records are at most √(2c) apart. Value: a `Tally`.

    Attributes:
        kinds: the open columns with their kinds, none unknown.
        unit_rows: most rows of a unit.
        written: how the numbers of some are written as text.
    """

    kinds: Mapping[str, OpenKind]
    unit_rows: int = 1
    name: str = "counts of open columns"
    written: Mapping[str, Written | None] = field(default_factory=dict)

    @property
    def squares(self) -> float:
        """The number of columns."""
        return len(self.kinds)

    @property
    def worded(self) -> tuple[str, ...]:
        """Columns with words."""
        return tuple(name for name, kind in self.kinds.items() if kind == "categorical")

    @property
    def ends(self) -> np.ndarray:
        """Where each column's listed cells end: the grid and missing; missing; or present and missing."""
        sizes = {"categorical": 1, "boolean": 2}
        return np.cumsum([sizes.get(kind, N_CELLS + 1) for kind in self.kinds.values()])

    def zero(self) -> Tally:
        """Return an empty tally."""
        return Tally(np.zeros(self.ends[-1]), {name: Counter() for name in self.worded}, self.unit_rows)

    def add(self, total: Tally, rows: Rows) -> None:
        """Count some records."""
        parts = np.split(total.listed, self.ends[:-1])
        for part, (name, kind) in zip(parts, self.kinds.items(), strict=True):
            column = rows[name]
            if kind in ("integer", "continuous"):
                numbers = column if column.dtype.kind == "f" else numbers_of(column, self.written.get(name))
                part += np.bincount(cells_of(numbers), minlength=N_CELLS + 1)
                continue
            if kind == "datetime":
                part += np.bincount(year_cells(column), minlength=N_CELLS + 1)
                continue
            texts = [text.strip() if text is not None else "" for text in column]
            missing = sum(not text for text in texts)
            part[-1] += missing
            if kind == "boolean":
                part[0] += len(texts) - missing
            else:
                total.words[name].update(text for text in texts if text)


def discovered(
    noisy: NoisyTally, counts: DomainCounts, n: int, unseen: list[str] | None = None
) -> dict[str, ColumnKind]:
    """Return the kinds that the noisy counts make. Free.

    Args:
        noisy: the released tally.
        counts: what was counted.
        n: public or bought number of rows.
        unseen: takes in the columns of which no number stands out from the noise.
    """
    std = noisy.listed.noise_std
    parts = np.split(noisy.listed.value, counts.ends[:-1])
    found: dict[str, ColumnKind] = {}
    for part, (name, kind) in zip(parts, counts.kinds.items(), strict=True):
        nullable = bool(part[-1] > _PRESENT * std)
        if kind == "categorical":
            found[name] = _labels(noisy.words[name], n - float(part[-1]), std, nullable)
        elif kind == "boolean":
            found[name] = Boolean(nullable=nullable)
        else:
            cells = _span(part[:-1], std, len(counts.kinds))
            if cells is None and unseen is not None:
                unseen.append(name)
            if kind == "datetime":
                found[name] = _dates(cells, nullable)
                continue
            lower, upper = (cell_span(cells[0])[0], cell_span(cells[1])[1]) if cells else (-_UNSEEN, _UNSEEN)
            if kind == "integer":
                # the edge of a cell that is farther from 0 is not in it
                first = math.ceil(lower) if lower >= 0 else math.floor(lower) + 1
                last = math.floor(upper) if upper <= 0 else math.ceil(upper) - 1
                found[name] = _whole(first, max(last, first), nullable)
            else:
                found[name] = Continuous(lower=lower, upper=upper, nullable=nullable)
    return found


def _dates(cells: tuple[int, int] | None, nullable: bool) -> DateTime:
    """Return whole years."""
    found = _UNSEEN_YEARS if cells is None else [cell - _SIDE + _MIDDLE_YEAR for cell in cells]
    first, last = (min(max(year, YEARS[0]), YEARS[1]) for year in found)
    return Open(kind="datetime").between(first, last, nullable=nullable)


def _as_declared(kind: ColumnKind, declared: Open) -> ColumnKind:
    """Return a kind that was found, with what was declared of how its cells are written."""
    if isinstance(kind, DateTime):
        return declared.between(int(kind.lower[:4]), int(kind.upper[:4]), nullable=kind.nullable)
    return replace(kind, written=declared.written) if isinstance(kind, Integer | Continuous) else kind


def _left_out(schema: Schema, sparse: list[str]) -> list[str]:
    """Say which columns are left out; something has to be left."""
    if len(sparse) == len(schema.released):
        sparse = sparse[:-1]
    if sparse:
        warnings.warn(
            f"Nearly all values of {', '.join(map(repr, sparse))} are too rare to tell from the noise, as names and "
            "record numbers are: left out of the release. Declare them to keep them, or spend a larger epsilon.",
            SchemaWarning,
            7,
        )
    return sparse


def _sparse(noisy: NoisyTally, counts: DomainCounts, n: int) -> list[str]:
    """Return the columns of labels of which the published words make up next to nothing. Free."""
    parts = dict(zip(counts.kinds, np.split(noisy.listed.value, counts.ends[:-1]), strict=True))
    return [
        name
        for name in counts.worded
        if sum(noisy.words[name].values()) < _SPARSE * max(n - float(parts[name][-1]), 1.0)
    ]


def _rounded(kind: ColumnKind, resolution: float | None) -> ColumnKind:
    """Return a kind of numbers with the resolution that was bought, where its bounds have room for it."""
    if not isinstance(kind, Continuous) or resolution is None or resolution > kind.upper - kind.lower:
        return kind
    return replace(kind, resolution=resolution)


def _whole(lower: int, upper: int, nullable: bool) -> Integer:
    """Return bounds that 64 bits hold: an edge of the grid may lie beyond."""
    limits = np.iinfo(np.int64)
    first, last = (min(max(bound, limits.min), limits.max) for bound in (lower, upper))
    return Integer(lower=first, upper=last, nullable=nullable)


_TRUTH_VALUES = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))


def _labels(words: Mapping[str, float], present: float, std: float, nullable: bool) -> Categorical | Boolean:
    """Return the published words, and `other` where a rest stands out from the noise; the most frequent word first.

    Two words for false and true are a truth value, which keeps its spelling.
    """
    frequent = sorted(words, key=lambda word: -words[word])[:_MOST_WORDS]
    rest = present - sum(words[word] for word in frequent)
    has_rest = not frequent or rest > _PRESENT * std * math.sqrt(len(frequent) + 2)
    logical = next((pair for pair in _TRUTH_VALUES if set(pair) == set(frequent)), None)
    if not has_rest and logical is not None:
        return Boolean(text=None if logical == _TRUTH_VALUES[0] else logical, nullable=nullable)
    if not has_rest:
        return Categorical(categories=tuple(frequent), nullable=nullable)
    return Categorical(categories=tuple(dict.fromkeys([*frequent, OTHER])), other=OTHER, nullable=nullable)


def _span(cells: np.ndarray, std: float, columns: int) -> tuple[int, int] | None:
    """Return first and last of the cells that stand out, with what likely lies beside them; None if nothing does.

    Where no cell stands out, several together may: half an octave, one, two, four.
    """
    sums = np.concatenate([[0.0], np.cumsum(cells)])
    for width in _WIDTHS:
        least = -std * math.sqrt(width) * ndtri(_FALSE_CELLS / (width * N_CELLS * columns))
        sure = np.flatnonzero(sums[width:] - sums[:-width] > least)
        if sure.size:
            break
    else:
        return None
    first, last = int(sure[0]), int(sure[-1]) + width - 1
    while (step := _beyond(cells[last + 1 :], std)) > 0:
        last += step
    while (step := _beyond(cells[:first][::-1], std)) > 0:
        first -= step
    return first, last


def _beyond(outer: np.ndarray, std: float) -> int:
    """Return how many of the next cells to take in: an octave at most, up to the last of them that counts."""
    near = outer[:_PARTS]
    if near.size and near.sum() > _LIKELY * std * math.sqrt(near.size):
        return int(np.argmax(np.cumsum(near))) + 1
    return 0


KINDS, DOMAINS = "kinds of columns", "discovery"
DOMAIN_SHARE = 0.1
_KIND_SHARE = 0.02
_DELTA_SHARE = 0.1  # part of δ for words that one unit alone brings


def discovery_stages(schema: Schema, delta: float) -> list[Stage]:
    """Return what discovery costs: kinds where a column has none, then the domains of all open columns."""
    stages = []
    ratio = 2**0.5
    if "unknown" in schema.open.values():
        stages.append(
            Stage(
                name=KINDS,
                noise_multiplier=multiplier_for_share(_KIND_SHARE),
                replace_distance=ratio,
                measures="per column of no declared kind, how many cells are numbers, texts or missing",
            )
        )
    worded = {"unknown", "categorical"} & set(schema.open.values())
    if schema.open:
        stages.append(
            Stage(
                name=DOMAINS,
                noise_multiplier=multiplier_for_share(DOMAIN_SHARE),
                replace_distance=ratio,
                extra_delta=_DELTA_SHARE * delta if worded else 0.0,
                measures="bounds, categories and missing cells of the columns that the schema leaves open",
            )
        )
    return stages


def discover(
    source: Source,
    schema: Schema,
    *,
    n: int,
    account: Account,
    measured: list[tuple[str, Noisy]],
    engine: Engine | None = None,
    target: str | None = None,
) -> Schema:
    """Buy what is open; return the schema. Columns of unknown kind whose labels are nearly all rare are left out.

    Args:
        source: where the records lie.
        schema: what is public of them.
        n: the public or bought number of rows.
        account: charged before noise is drawn.
        measured: takes in what was measured.
        engine: sums over the records; words that nobody listed are counted here.
        target: is not left out.
    """
    records = OpenData(source, schema, engine)
    kinds: dict[str, OpenKind] = dict(schema.open)
    written = {name: kind.written for name, kind in schema.of_kind(Open).items()}
    unknown = tuple(name for name, kind in kinds.items() if kind == "unknown")
    resolutions: dict[str, float] = {}
    if unknown:
        statistic = KindCounts(unknown, written=written)
        noisy = account.measure(KINDS, statistic, records)
        kinds |= kinds_of(noisy, unknown)
        resolutions = resolutions_of(noisy, unknown)
        measured.append((statistic.name, noisy))
    counts = DomainCounts(kinds, 1 if schema.unit is None else schema.unit.max_rows, written=written)
    exact = tally(counts, records)
    released = noisy_words(exact, stage=DOMAINS, ledger=account.ledger, noise=account.noise)
    listed = replace(released.listed, origin=origin_of(exact, DOMAINS, released.listed.noise_std))
    measured.append((counts.name, listed))
    unseen: list[str] = []
    made = discovered(released, counts, n, unseen)
    if unseen:
        warnings.warn(
            f"No cell of {', '.join(map(repr, unseen))} stood out from the noise: bounds of about "
            f"{-_UNSEEN:.0f} and {_UNSEEN:.0f} were taken (of dates, {_UNSEEN_YEARS[0]} and {_UNSEEN_YEARS[1]}). "
            "Declare bounds, or spend a larger epsilon.",
            SchemaWarning,
            6,
        )
    sparse = _left_out(schema, [name for name in _sparse(released, counts, n) if name in unknown and name != target])
    made |= dict.fromkeys(sparse, Identifier())
    declared = schema.of_kind(Open)
    found = {name: _as_declared(kind, declared[name]) for name, kind in made.items()}
    found = {name: _rounded(kind, resolutions.get(name)) for name, kind in found.items()}
    columns = {name: found.get(name, kind) for name, kind in schema.columns.items()}
    return replace(schema, columns=columns)
