"""Bounds, categories and missing cells of columns of which only name and kind are public, estimated by one release.

    counts of the cells of a public grid (numbers), of missing cells, and of words    G(σ/√c) and an additive δ

Of a unit one row is read. The rest is read off the noisy counts, for free: the span of the cells that stand out, the
words above their threshold, and whether a column has a missing value at all. Proof: docs/proofs/discovery.md.

Estimation of what a schema leaves open: the stages it costs, and the schema that comes of it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sfumato.columns.bounded import (
    BEYOND,
    MIDDLE_YEAR,
    OPEN_UNITS,
    PARTS,
    SIDE,
    cell_span,
    cells_of,
    counts_name,
    open_edges,
)
from sfumato.columns.kinds import Boolean, Categorical, ColumnKind, Continuous, DateTime, Identifier, Integer
from sfumato.columns.numbers import MOST_LISTED, are_apart
from sfumato.columns.open import YEARS, Open, OpenKind
from sfumato.columns.roles import PEOPLE, numbers_people, role_of
from sfumato.columns.text_forms import MISSING_MARKS, floats, is_code
from sfumato.columns.words_beside import MOST_ATOMS, are_words, no_word
from sfumato.errors import SchemaWarning
from sfumato.fitting.account import Account
from sfumato.fitting.domain_counts import (
    LARGEST,
    PRESENT,
    DomainCounts,
    KindCounts,
    coded_of,
    domain_counts,
    kinds_of,
    one_row_a_unit,
    reasons_of,
    resolutions_of,
    texts_of,
)
from sfumato.io.sources import Source
from sfumato.maths.outer_mass import NoisyColumn, span
from sfumato.mechanisms.queries import Noisy, origin_of
from sfumato.mechanisms.unlisted_words import NoisyTally, noisy_words, threshold_of
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.records.engine import Engine, tally
from sfumato.records.private import OpenData
from sfumato.schema.linked import new_name
from sfumato.schema.ruled import closed
from sfumato.schema.schema import Schema
from sfumato.schema.set_columns import itemised
from sfumato.schema.word_columns import word_name

_MOST_WORDS = 900
_TRUTHS = {"false", "true"}
OTHER = "other"
_FEW_BEYOND = 0.01  # share of numbers beyond the grid that are clamped to what is found
_SPARSE = 0.1  # share of cells with a word of their own below which a column of labels is left out
_CODED = 0.95  # the same of a column of codes
_CENTS = 0.009  # resolution: of finer numbers there are too many for the fit to count each value
_AMONG_MANY = 1.5  # times as far from the noise, where hundreds of cells are looked at
_ANSWERS = 2  # to whether somebody is or has what a column names: `veteran`, `email`
_MOST_NAMES = 6
_NUMBERS = ("integer", "continuous")


def kinds_of_counts(
    noisy: NoisyTally, counts: DomainCounts, n: int, texts: Mapping[str, float] | None = None
) -> dict[str, ColumnKind]:
    """Return the kinds that the noisy counts make, but for numbers and dates of which none stands out. Free.

    Beside numbers, words that are not published are missing.

    Args:
        noisy: the released tally.
        counts: what was counted.
        n: public or measured number of rows.
        texts: of columns of unknown kind, how many cells stood out that are no numbers.
    """
    std = noisy.listed.noise_std
    kinds: dict[str, ColumnKind] = {}
    for part, name, kind in counts.columns(noisy.listed.value):
        nullable = bool(part[-1] > PRESENT * std)
        if kind == "categorical":
            kinds[name] = _labels(noisy.words[name], n - float(part[-1]), std, nullable)
        elif kind == "boolean":
            kinds[name] = Boolean(nullable=nullable)
        else:
            numbers, beside = _parted(noisy.words.get(name, {}))
            words = sum(beside.values())
            unseen = max((texts or {}).get(name, 0.0) - words, 0.0) if name in counts.beside else 0.0
            nullable |= unseen > 0
            whole, size = kind != "continuous", n - float(part[-1]) - words - unseen
            edges, columns = open_edges(kind), len(counts.kinds)
            counted = NoisyColumn.counted(part[:BEYOND], std, edges, whole=whole, columns=columns, n=size)
            cells = span(counted)
            if cells is None or counted.sure is None:
                continue
            kinds[name] = _bounded(kind, cells, nullable)
            values = _listed(numbers, part[:BEYOND], counted.sure, size, std) if kind == "continuous" else None
            if values:
                kinds[name] = Continuous(lower=values[0], upper=values[-1], values=values, nullable=nullable)
    return kinds


def _parted(words: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return published words that are numbers counted one by one, and those that are words beside numbers."""
    values = floats(pa.array(list(words), pa.string())).tolist()
    numbers = {word: words[word] for word, value in zip(words, values, strict=True) if repr(value) == word}
    return numbers, {word: count for word, count in words.items() if word not in numbers}


def _with_words(name: str, kind: ColumnKind, published: Mapping[str, float], schema: Schema) -> ColumnKind:
    """Return a kind of numbers with the words that were published beside them, the most frequent first.

    Texts that stand for no value are missing, and so are words that have no room in the schema.
    """
    assert isinstance(kind, Integer | Continuous)
    words = _parted(published)[1]
    marks = (*MISSING_MARKS, *schema.missing_of.get(name, schema.missing))
    texts = dict.fromkeys(word.strip() for word in sorted(words, key=lambda word: -words[word]))
    atoms = [word for word in texts if word and no_word((word,), marks) is None and are_words([word])[0]]
    atoms = [word for word in atoms if not kind.read(pa.array([word], pa.string()), ())[1].any()][:MOST_ATOMS]
    if word_name(name) in {*schema.columns, *itemised(schema)}:
        atoms = []
    return replace(kind, atoms=tuple(atoms), nullable=kind.nullable or len(atoms) < len(words))


def _listed(
    words: Mapping[str, float], counts: np.ndarray, span: tuple[int, int], present: float, std: float
) -> list[float] | None:
    """Return the published numbers, if they are all there are as far as counts tell: 99 %, and all that is seen.

    There surely are values at or below the first cell of the span, and at or above the second.
    """
    known = {float(word): count for word, count in words.items()}
    numbers = sorted(number for number in known if abs(number) < LARGEST)
    if not 1 < len(numbers) <= MOST_LISTED or not _may_be_all(words, present, std, 1 - _FEW_BEYOND):
        return None
    cells = cells_of(np.array(numbers))
    rest = counts - np.bincount(cells, [known[number] for number in numbers], counts.size)
    beside = rest > _AMONG_MANY * PRESENT * std * np.sqrt(1 + np.bincount(cells, minlength=counts.size))
    within = cells[0] <= span[0] and span[1] <= cells[-1]
    return numbers if within and not beside.any() and are_apart(numbers) else None


def _may_be_all(words: Mapping[str, float], present: float, std: float, part: float = _CODED) -> bool:
    """Whether published words are this part of the cells, with what a deviation of their noise may have hidden."""
    return sum(words.values()) + std * math.sqrt(len(words) + 1) >= part * max(present, 1.0)


def _bounded(kind: OpenKind, cells: tuple[int, int], nullable: bool) -> Integer | Continuous | DateTime:
    """Return the kind of numbers or dates between two cells; of dates, whole years."""
    if kind == "datetime":
        years = [cell - SIDE + MIDDLE_YEAR for cell in cells]
        first, last = (min(max(year, YEARS[0]), YEARS[1]) for year in years)
        return Open(kind="datetime").between(first, last, nullable=nullable)
    lower, upper = cell_span(cells[0])[0], cell_span(cells[1])[1]
    if kind == "continuous":
        return Continuous(lower=lower, upper=upper, nullable=nullable)
    # the edge of a cell that is farther from 0 is not in it
    first = math.ceil(lower) if lower >= 0 else math.floor(lower) + 1
    last = math.floor(upper) if upper <= 0 else math.ceil(upper) - 1
    limits = np.iinfo(np.int64)  # an edge of the grid may lie beyond
    first, last = (min(max(bound, limits.min), limits.max) for bound in (first, max(last, first)))
    return Integer(lower=first, upper=last, nullable=nullable)


def _as_declared(kind: ColumnKind, declared: Open) -> ColumnKind:
    """Return a kind that was found, with what was declared of how its cells are written."""
    if isinstance(kind, DateTime):
        return declared.between(int(kind.lower[:4]), int(kind.upper[:4]), nullable=kind.nullable)
    if isinstance(kind, Integer | Continuous):
        nullable = kind.nullable or bool(declared.atoms)  # rules may name it, to which a word is a missing cell
        return replace(kind, written=declared.written, atoms=declared.atoms, nullable=nullable)
    return kind


_LEFT_OUT = {
    "empty": "Nothing but missing cells of {} stood out from the noise, which lists are, too, if they are no sets,",
    "large": "{} holds numbers beyond 2^53, which are not told apart where bounds are estimated",
    "rare": "Nearly all values of {} are too rare to tell from the noise, as names, record numbers and durations are",
    "codes": "Less than 95 % of {} are codes that can be told from the noise, as where they are numbers of persons",
    "people": "The name of {} says that it names people",
    "unseen": "No value of {} stood out from the noise",
    "one": "Of {} no more than one value stood out from the noise, and what the others are is hidden",
}
_OF_LABELS = ("rare", "codes", "people")
_HOW_TO_KEEP = {"large": ", as labels or between public bounds", "people": ", as labels, if they name nobody"}


def _names_to_leave_out(schema: Schema, reasons: Mapping[str, str]) -> list[str]:
    """Say which columns are left out, and why; something has to be left."""
    names = list(reasons)
    if len(names) == len(schema.released):
        names = names[:-1]
    for reason, sentence in _LEFT_OUT.items():
        some = [repr(name) for name in names if reasons[name] == reason]
        if some:
            warnings.warn(
                f"{sentence.format(', '.join(some))}: left out of the release. Declare them to keep them"
                f"{_HOW_TO_KEEP.get(reason, ', or spend a larger epsilon')}.",
                SchemaWarning,
                7,
            )
    return names


def _reasons(
    noisy: NoisyTally,
    counts: DomainCounts,
    n: int,
    kinds: Mapping[str, ColumnKind],
    known: _Known,
) -> dict[str, str]:
    """Return the reasons to leave columns out, such as labels of which published words make up next to nothing. Free.

    Whose a row is becomes a label by the holder's word alone: what a name says, and codes with a long tail, does not.

    Args:
        noisy: the released tally.
        counts: what was counted.
        n: public or measured number of rows.
        kinds: that were found, none where nothing stood out.
        known: by the counts of kinds.
    """
    reasons: dict[str, str] = {}
    std = noisy.listed.noise_std
    for part, name, kind in counts.columns(noisy.listed.value):
        present = max(n - float(part[-1]), 1.0)
        if kind == "categorical":
            words = noisy.words[name]
            share = sum(words.values()) / present
            if _are_people(name, words):
                reasons[name] = "people"
            elif share < _SPARSE:
                reasons[name] = known.reasons.get(name, "rare")
            elif name in known.coded and not isinstance(kinds[name], Boolean) and not _may_be_all(words, present, std):
                reasons[name] = "codes"
        elif kind in _NUMBERS and part[BEYOND] > max(PRESENT * std, _FEW_BEYOND * present):
            reasons[name] = "large"
        elif name not in kinds:
            reasons[name] = "unseen"
        elif not isinstance(kinds[name], Boolean) and _is_constant(kinds[name]):
            reasons[name] = "one"
    return reasons


def _are_people(name: str, words: Collection[str]) -> bool:
    """Whether published words are people, by the column's name: but `member` or `phone` may say yes or no."""
    may_answer = len(words) <= _ANSWERS and role_of(name) != "name" and not numbers_people(name)
    return role_of(name) in PEOPLE and (not may_answer or bool(is_code(pa.array(list(words), pa.string())).any()))


def _with_resolution(kind: ColumnKind, resolution: float | None) -> ColumnKind:
    """Return a kind of numbers with the measured resolution, where its bounds have room for it."""
    if not isinstance(kind, Continuous) or kind.values or resolution is None or resolution > kind.upper - kind.lower:
        return kind
    return replace(kind, resolution=resolution)


def _labels(words: Mapping[str, float], present: float, std: float, nullable: bool) -> Categorical | Boolean:
    """Return the published words, the most frequent first, and `other` for whatever else there is.

    However little that is: read as one of the words, it would be counted as that. Words for false and true, however
    they are spelled, are a truth value: what is neither is missing. Where both are published and more stands out beside
    them, they are labels.
    """
    frequent = sorted(words, key=lambda word: -words[word])[:_MOST_WORDS]
    rest = present - sum(words[word] for word in frequent)
    has_rest = rest > PRESENT * std * math.sqrt(len(frequent) + 2)
    if frequent and set(frequent) <= _TRUTHS and not (has_rest and len(frequent) == len(_TRUTHS)):
        return Boolean(nullable=True)
    return Categorical(categories=tuple(dict.fromkeys([*frequent, OTHER])), other=OTHER, nullable=nullable)


KINDS, DOMAINS = "kinds of columns", "discovery"
WORDED = {"unknown", "categorical"}
"""Kinds that may be found to be labels, or to have words beside numbers."""
DOMAIN_SHARE = 0.18
_KIND_SHARE = 0.05
_DELTA_SHARE = 0.1  # part of δ for words that one unit alone brings


def discovery_stages(schema: Schema, delta: float) -> list[Stage]:
    """Return the stages of discovery: kinds where a column has none, then the domains of all open columns."""
    worded = (WORDED | {"continuous"}) & set(schema.open.values())
    kinds = Stage(
        name=KINDS,
        noise_multiplier=multiplier_for_share(_KIND_SHARE),
        replace_distance=2**0.5,
        measures="per column of no declared kind or resolution, how many cells are numbers, dates or texts",
    )
    domains = Stage(
        name=DOMAINS,
        noise_multiplier=multiplier_for_share(DOMAIN_SHARE),
        replace_distance=2**0.5,
        extra_delta=_DELTA_SHARE * delta if worded else 0.0,
        measures="bounds, categories and missing cells of the columns that the schema leaves open",
    )
    return [*([kinds] if _of_unknown_form(schema) else []), *([domains] if schema.open else [])]


def _of_unknown_form(schema: Schema) -> tuple[str, ...]:
    """Return the columns whose forms of cells are counted: of no kind, or numbers of unknown decimals."""
    return tuple(name for name, kind in schema.open.items() if kind in ("unknown", "continuous"))


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
    """Estimate what is open; return the schema. Columns of unknown kind whose labels are nearly all rare are left out.

    Args:
        source: where the records lie.
        schema: what is public of them.
        n: the public or measured number of rows; where units have several, their number is measured.
        account: charged before noise is drawn.
        measured: takes in what was measured.
        engine: sums over the records; words that nobody listed are counted here.
        target: is not left out.
    """
    records = OpenData(source, one_row_a_unit(schema), engine)
    opened, known = _opened(records, schema, account, measured)
    unknown = {name for name, kind in schema.open.items() if kind == "unknown"}
    kinds: dict[str, OpenKind] = {name: kind.kind for name, kind in opened.items()}
    numbers = [name for name, kind in kinds.items() if kind == "continuous"]
    single = frozenset(name for name in numbers if known.resolutions.get(name, 0.0) < _CENTS)
    taken = set(schema.columns)
    beside = {name: new_name(taken, name) for name, kind in kinds.items() if name in unknown and kind in _NUMBERS}
    counts = replace(domain_counts(schema, kinds), unit_rows=records.max_rows_per_unit, single=single, beside=beside)
    released, n = _measure(counts, records.read_as(opened, beside), n, account, measured)
    facts = {
        name: _as_declared(kind, opened[name])
        for name, kind in kinds_of_counts(released, counts, n, known.texts).items()
    }
    facts |= {name: _with_words(name, facts[name], released.words[name], schema) for name in beside if name in facts}
    _say_beyond(released, counts, n)
    left = _reasons(released, counts, n, facts, known)
    left = {name: why for name, why in left.items() if name != target and (name in unknown or why not in _OF_LABELS)}
    nothing = Categorical(categories=(OTHER,), other=OTHER, nullable=True)
    closed_kinds: dict[str, ColumnKind] = {name: opened[name].narrowest for name in schema.open} | facts
    closed_kinds |= {name: nothing for name, why in left.items() if why in _OF_LABELS}
    closed_kinds |= dict.fromkeys(_names_to_leave_out(schema, left), Identifier())
    _say_constant({name: facts.get(name) for name, kind in closed_kinds.items() if kind.is_released})
    estimated = {n: _with_resolution(k, known.resolutions.get(n)) for n, k in closed_kinds.items()}
    return closed(schema, {name: estimated.get(name, kind) for name, kind in schema.columns.items()})


@dataclass(frozen=True, slots=True)
class _Known:
    """What counts of cells that parse say of columns, but their kinds: resolutions, codes, what is wrong, texts."""

    resolutions: Mapping[str, float]
    coded: Collection[str]
    reasons: Mapping[str, str]
    texts: Mapping[str, float]


def _opened(
    records: OpenData, schema: Schema, account: Account, measured: list[tuple[str, Noisy]]
) -> tuple[dict[str, Open], _Known]:
    """Return the open columns, none of unknown kind, and what else is known of them."""
    opened = dict(schema.of_kind(Open))
    if not (some := _of_unknown_form(schema)):
        return opened, _Known({}, frozenset(), {}, {})
    statistic = KindCounts(some, written={name: kind.written for name, kind in opened.items()})
    noisy = account.measure(KINDS, statistic, records)
    measured.append((statistic.name, noisy))
    for name, form in kinds_of(noisy, some).items():
        if opened[name].kind == "unknown":
            opened[name] = replace(form, written=opened[name].written if form.may_be_number else None)
    reasons = {name: why for name, why in reasons_of(noisy, some).items() if schema.open[name] == "unknown"}
    known = resolutions_of(noisy, some), coded_of(noisy, some), reasons, texts_of(noisy, some)
    return opened, _Known(*known)


def _measure(
    counts: DomainCounts, records: OpenData, n: int, account: Account, measured: list[tuple[str, Noisy]]
) -> tuple[NoisyTally, int]:
    """Return the released tally of the columns, and the number of its records: `n`, or where not public a noisy one."""
    exact = tally(counts, records)
    released = noisy_words(exact, stage=DOMAINS, ledger=account.ledger, noise=account.noise)
    listed = replace(released.listed, origin=origin_of(exact, DOMAINS, released.listed.noise_std))
    parts = np.split(listed.value, counts.ends)
    for name, part in zip(counts.kinds, parts, strict=False):
        if name in counts.beside:  # behind missing cells those words that were published: they are no numbers either
            part = np.append(part, list(_parted(released.words[name])[1].values()))
        measured.append((counts_name(name), replace(listed, value=part)))
    if not counts.with_records:
        return released, n
    measured.append((OPEN_UNITS, replace(listed, value=parts[-1])))
    columns = replace(listed, value=listed.value[:-1])
    return replace(released, listed=columns), max(round(float(listed.value[-1])), 1)


def _say_beyond(noisy: NoisyTally, counts: DomainCounts, n: int) -> None:
    """Warn of columns of dates of which some beyond the grid stand out."""
    least = max(PRESENT * noisy.listed.noise_std, _FEW_BEYOND * n)
    columns = counts.columns(noisy.listed.value)
    beyond = [repr(name) for part, name, kind in columns if kind == "datetime" and part[BEYOND] > least]
    if beyond:
        warnings.warn(
            f"Dates of {', '.join(beyond)} lie beyond {YEARS[0]} and {YEARS[1]}, as 9999-12-31 does, and are read as "
            "the nearest bound. Declare such a date under missing, if it stands for none.",
            SchemaWarning,
            6,
        )


def _say_constant(kinds: Mapping[str, ColumnKind | None]) -> None:
    """Warn of columns that are released though one value was found, or none."""
    if constant := [repr(name) for name, kind in kinds.items() if kind is None or _is_constant(kind)]:
        warnings.warn(
            f"Of {', '.join(constant)} no more than one value stood out from the noise: what samples have there says "
            "nothing of the others. Declare bounds or labels, or spend a larger epsilon.",
            SchemaWarning,
            6,
        )


def _is_constant(kind: ColumnKind) -> bool:
    """Whether every cell of a column that was found is the same, but for what is nearly 0, or missing."""
    if isinstance(kind, Categorical):
        return kind.categories == (OTHER,)
    return isinstance(kind, Integer | Continuous) and kind.upper - kind.lower <= cell_span(SIDE + PARTS)[1]


def label_threshold(plan: Plan, schema: Schema) -> float | None:
    """Return the noisy count from which on a fit keeps a label that nobody listed; half of those with so many are kept.

    A constant of plan and schema; with each column of numbers that are counted one by one it is higher. It counts
    rows, or units, of which discovery reads one row each. None where no column may hold such labels.

    Args:
        plan: calibrated, of a method that discovers.
        schema: what is public of the table.
    """
    worded = [name for name, kind in schema.open.items() if kind in WORDED]
    if not worded:
        return None
    kinds: dict[str, OpenKind] = {name: "categorical" if name in worded else k for name, k in schema.open.items()}
    stage = plan[DOMAINS]
    noise_std = stage.noise_multiplier * domain_counts(schema, kinds).norm_bound
    return threshold_of(stage.extra_delta, noise_std=noise_std, columns=len(worded), unit_rows=1)


def label_forecast(plan: Plan, schema: Schema) -> str:
    """Say how rare a label may be that nobody listed, and still be kept; nothing where no column may hold such."""
    least = label_threshold(plan, schema)
    if least is None:
        return ""
    names = [repr(name) for name, kind in schema.open.items() if kind in WORDED]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    tail = f". A column found to be of codes, of which they are less than {_CODED:.0%}, is left out"
    tail = tail if "unknown" in schema.open.values() else ""
    records = "rows" if schema.unit is None else f"units (one row of each {schema.unit.column!r} is read)"
    return (
        f"labels of {', '.join(names[:_MOST_NAMES])}{more} are kept from about {least:.0f} {records} on; rarer ones "
        f"become {OTHER!r}, unless `categories` lists them or `parents` groups them{tail}"
    )
