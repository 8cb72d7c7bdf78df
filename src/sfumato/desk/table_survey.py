"""What the records of one table show: of each column a kind, with a line on why, and notes beside it. Not private.

Notes count cells and show their values: for the data holder's own screen.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
from pyarrow import types

from sfumato.columns.canonical import canonical
from sfumato.columns.cells import is_text
from sfumato.columns.date_text import has_date, parse_dates
from sfumato.columns.facts import EPOCH
from sfumato.columns.kinds import (
    Boolean,
    Categorical,
    ColumnKind,
    Continuous,
    DateTime,
    Identifier,
    Image,
    Integer,
    ItemSet,
)
from sfumato.columns.open import Open
from sfumato.columns.text_forms import MISSING_MARKS, MISSING_TOKENS, is_duration, odd_numbers
from sfumato.columns.wall_clock import MICROSECONDS, moment_of, step_of
from sfumato.columns.written import Written
from sfumato.desk.proposals import Guesses, beside_images
from sfumato.desk.sentinels import settle_marks, settle_texts
from sfumato.desk.survey import CLOCK, MOST_DISTINCT, ColumnSurvey, TimeSpan, set_hint, survey_columns
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Source, attempt
from sfumato.io.picture_cells import files_in, holds_files, with_pictures
from sfumato.io.pictures import read_header, require_pillow, unheard
from sfumato.io.sources import require_names
from sfumato.schema.reader import Reader

_DAY, _MONTH = re.compile("%-?d"), re.compile("%-?m")
_FEW_NUMBERS = 12  # whole numbers with at most so many values are codes
_LARGEST_WHOLE = 2**63 - 1
_FEW_LABELS = 50  # text with at most so many values is a list of labels
_SPARSEST = 4  # whole numbers of which fewer than one in so many are items are names, not places in a list
_WRITTEN = (("FALSE", "TRUE"), ("False", "True"))
_LOGICAL = ({"true", "false"}, *map(set, _WRITTEN))
_MOST_SHOWN = 5
_LONGEST = 30
_MOST_WORDS = 20  # of odd cells that a draft takes for missing
_ODD_FORMS = {
    "limit": "values of their own where `atoms` lists them, else read as missing",
    "marked": "no plain numbers, so read as missing. To keep them, take the mark out",
    "infinite": "clamped to the nearest bound",
    "word": "read as missing; `atoms` in place of `missing` makes values of them",
}
_OFTEN, _FEW_ATOMS = 10, 12  # rows of a word beside numbers, and such words, that a draft proposes


@dataclass(frozen=True, slots=True, repr=False)
class TableSurvey:
    """What the records of one table show. Not private.

    Attributes:
        source: where they lie.
        columns: surveys by column.
        guesses: by column, a kind with the facts of the records, and a line on why.
        missing_of: of some columns, texts that stand for no value.
        reader: how its cells are written.
        left_out: one line a problem of records that are not read.
    """

    source: Source
    columns: Mapping[str, ColumnSurvey]
    guesses: Guesses
    missing_of: Mapping[str, tuple[str, ...]]
    reader: Reader
    left_out: tuple[str, ...]

    @classmethod
    def read(cls, source: Source, *, names_are_public: bool) -> TableSurvey:
        """Read a table in one pass; arguments and errors as `draft_schema`."""
        if not names_are_public:
            require_names(source)
        source = _with_likely_pictures(source.measured())
        surveys = survey_columns(source)
        decimal = settle_texts(source, surveys)
        settle_marks(surveys)
        lines = left_out(source, surveys)
        guesses = {name: _guess(survey) for name, survey in surveys.items()}
        if any(isinstance(kind, Image) for kind, _ in guesses.values()):
            guesses = beside_images(surveys, guesses, left_out=sum(1 for _ in source.notes("skipped")))
        missing_of = {name: texts for name, survey in surveys.items() if (texts := missing_texts(survey))}
        return cls(source, surveys, guesses, missing_of, _reader(source, decimal), lines)

    @property
    def is_table(self) -> bool:
        """Whether it has neither images nor sets."""
        return not any(isinstance(kind, Image | ItemSet) for kind, _ in self.guesses.values())

    @property
    def n_rows(self) -> int | None:
        """How many rows it has; None without any."""
        return max((survey.n_cells for survey in self.columns.values()), default=0) or None

    def note(self, name: str, note: str) -> str:
        """Return the comment of a column, which begins with a note."""
        return f"{note}{column_note(self.columns[name])}{set_hint(self.columns[name])}"


def _with_likely_pictures(source: Source) -> Source:
    """Return a source in which columns whose cells mostly are pictures are decoded.

    The size is the most frequent one.
    """
    names = [name for name, storage in source.storage.items() if holds_files(storage)]
    if not names:
        return source
    require_pillow()
    return attempt(lambda: with_pictures(source, _likely_pictures(source, names)), source.unreadable)


def _likely_pictures(source: Source, names: list[str]) -> dict[str, Image]:
    kinds: dict[str, Counter[Image | None]] = {name: Counter() for name in names}
    with unheard():
        for chunk in source.chunks(names):
            for name in names:
                kinds[name].update(read_header(file) for file in files_in(chunk.columns[name]) if file is not None)
    likely = {}
    for name, counts in kinds.items():
        pictures = {kind: n for kind, n in counts.items() if kind is not None}
        if sum(pictures.values()) > counts[None]:
            likely[name] = max(pictures, key=lambda kind: (pictures[kind], repr(kind)))
    return likely


def _reader(source: Source, decimal: str | None) -> Reader:
    """Return the reader of the whole table: its decimal mark, and the form of the file."""
    form = source.found_form()
    written = Written(decimal=decimal) if decimal not in (None, ".") else Written()
    return Reader(written=written, delimiter=form.delimiter, encoding=form.encoding)


def as_written(kind: ColumnKind, survey: ColumnSurvey) -> ColumnKind:
    """Return a kind of numbers with the form in which they were found, and with words beside them."""
    if isinstance(kind, Integer | Continuous) and (words := _atoms(survey)):
        kind = dataclasses.replace(kind, written=survey.written, atoms=words)
    if survey.written is None:
        return kind
    if isinstance(kind, Integer | Continuous) or (isinstance(kind, Open) and kind.may_be_number):
        return dataclasses.replace(kind, written=survey.written)
    return kind


def _guess(survey: ColumnSurvey) -> tuple[ColumnKind, str]:
    """Return a kind for a column, and a line on why."""
    try:
        kind, note = _guess_kind(survey)
    except (SchemaError, OverflowError):
        if isinstance(survey.storage, pa.FixedShapeTensorType):
            raise  # images whose channels come first: no record says so
        kind, note = Identifier(), "no kind fits its values: not released"
    return as_written(kind, survey), note


def _guess_kind(survey: ColumnSurvey) -> tuple[ColumnKind, str]:
    storage = survey.storage
    if isinstance(storage, pa.FixedShapeTensorType):
        return _image(survey, storage)
    if survey.items is not None and survey.items.n_values:
        return _sets(survey.items, survey.longest)
    if not survey.n_values or survey.items is not None:
        return Identifier(), "no value seen: not released"
    if _is_logical(survey):
        words = next((pair for pair in _WRITTEN if survey.distinct == set(pair)), None)
        return Boolean(text=words, nullable=survey.has_missing), "two truth values"
    if survey.is_number and survey.lowest is not None and survey.highest is not None:
        return _number(survey, survey.lowest, survey.highest)
    if survey.moments is not None:
        return _datetime(survey, survey.moments)
    if survey.distinct is None and not is_text(storage):
        return Identifier(), f"type {storage} is not modelled: not released"
    return _labels(survey)


def _image(survey: ColumnSurvey, storage: pa.FixedShapeTensorType) -> tuple[ColumnKind, str]:
    dtype = str(storage.value_type.to_pandas_dtype().__name__)
    lower, upper = min(0.0, survey.lowest or 0.0), max(1.0, survey.highest or 0.0)
    if dtype == "uint8":
        lower, upper = 0.0, 255.0
    return Image(shape=tuple(storage.shape), dtype=dtype, lower=lower, upper=upper), "images: check the bounds"


def _sets(items: ColumnSurvey, longest: int) -> tuple[ColumnKind, str]:
    lowest, highest = items.lowest, items.highest
    distinct = items.distinct
    if items.is_number and items.is_whole and lowest is not None and highest is not None and lowest >= 0:
        n_items = int(highest) + 1
        if n_items <= ItemSet.MOST_ITEMS and (distinct is None or n_items <= _SPARSEST * len(distinct)):
            note = "sets of the numbers 0 to n_items - 1: replace both by public facts; or list the items"
            return ItemSet(n_items=n_items, max_length=longest), note
    if distinct is None:
        return Identifier(), f"sets of more than {MOST_DISTINCT} different items: not released; list those to keep"
    labels = sorted(distinct, key=float) if items.is_number else sorted(distinct)
    return ItemSet(items=tuple(labels), max_length=longest), (
        "sets: replace by the full public list and a public length; `other: <item>` takes the rest"
    )


def _is_logical(survey: ColumnSurvey) -> bool:
    storage = survey.storage
    storage = storage.value_type if types.is_dictionary(storage) else storage
    return types.is_boolean(storage) or (survey.distinct is not None and survey.distinct in _LOGICAL)


def _number(survey: ColumnSurvey, lowest: float, highest: float) -> tuple[ColumnKind, str]:
    nullable = survey.has_missing
    if not survey.is_whole:
        resolution = None if survey.decimals is None else float(f"1e-{survey.decimals}")
        kind = Continuous(lower=lowest, upper=highest, resolution=resolution, nullable=nullable)
        return kind, "numbers: replace the bounds; the resolution is that of the values seen"
    distinct = survey.distinct
    is_repeated = survey.written is None and distinct is not None and survey.n_values >= 5 * len(distinct)
    if distinct is not None and is_repeated and len(distinct) <= _FEW_NUMBERS:
        texts = set(canonical(pa.array(list(distinct), pa.string())).to_pylist())
        labels = sorted(distinct if None in texts else texts, key=float)
        note = "few whole numbers: codes; if they count something, write kind: integer"
        return Categorical.of_text(labels, nullable=nullable), note
    if highest >= _LARGEST_WHOLE:  # what is larger is read as this
        return Identifier(), "whole numbers beyond 63 bits: not released; store them as text if they are codes"
    kind = Integer(lower=int(lowest), upper=int(highest), nullable=nullable)
    if distinct is not None and len(distinct) == survey.n_values > _FEW_LABELS:
        return kind, "every value differs: if it names a record, write kind: identifier"
    return kind, "whole numbers: replace the bounds"


def _datetime(survey: ColumnSurvey, moments: TimeSpan) -> tuple[ColumnKind, str]:
    format = CLOCK if types.is_time(survey.storage) else None if survey.date is None else survey.date.format
    resolution = moments.resolution if survey.date is None else survey.date.resolution
    if format is not None and not has_date(format):
        resolution = min(resolution, "hour", key=MICROSECONDS.__getitem__)
        lower, upper = (
            (EPOCH + timedelta(microseconds=moment)).time().isoformat() for moment in (moments.earliest, moments.latest)
        )
        kind = DateTime(lower=lower, upper=upper, resolution=resolution, format=format, nullable=survey.has_missing)
        return kind, "times of day: replace the bounds"
    lower, upper = (
        (EPOCH + timedelta(microseconds=moment_of(step_of(moment, resolution), resolution))).isoformat(" ")
        for moment in (moments.earliest, moments.latest)
    )
    if MICROSECONDS[resolution] >= MICROSECONDS["day"]:
        lower, upper = lower[:10], upper[:10]
    format = None if format == "%Y-%m-%d" else format
    kind = DateTime(lower=lower, upper=upper, resolution=resolution, format=format, nullable=survey.has_missing)
    return kind, f"dates: replace the bounds{_other_format(survey)}"


def _other_format(survey: ColumnSurvey) -> str:
    """Return the words on another format under which all dates read too: days and months the other way round."""
    distinct, format = survey.distinct, "" if survey.date is None else survey.date.format
    if not distinct or not (_DAY.search(format) and _MONTH.search(format)) or format.startswith("%Y-"):
        return ""
    swapped = format.replace("%d", "%\0").replace("%-d", "%-\0")
    swapped = swapped.replace("%m", "%d").replace("%-m", "%-d").replace("%\0", "%m").replace("%-\0", "%-m")
    texts = [text for text in distinct if text not in survey.odd]
    if swapped == format or not parse_dates(pa.array(texts, pa.string()), swapped)[1].all():
        return ""
    return f"; the format could also be {swapped}"


def _labels(survey: ColumnSurvey) -> tuple[ColumnKind, str]:
    distinct = survey.distinct
    if distinct is None:
        return Identifier(), f"more than {MOST_DISTINCT} different texts: not released"
    if len(distinct) > _FEW_LABELS and len(distinct) > survey.n_values / 2:
        return Identifier(), "most texts differ: not released"
    kind = Categorical.of_text(sorted(distinct), nullable=survey.has_missing)
    return kind, "labels: replace by the full public list; `other: <label>` takes the rest"


def missing_texts(survey: ColumnSurvey) -> tuple[str, ...] | None:
    """Return texts that stand for no value in a column, the one that samples get first; None where the usual ones do.

    Beside the usual ones that are no answers here, those are marks such as `k.A.`, odd words, and values such as -99.
    A cell that is empty comes first: it says the least.
    """
    if not is_text(survey.storage):
        return None
    labels = {} if survey.counts is None else survey.counts.counts
    usual = [token for token in survey.usual if not (token and token in labels)]
    words = [word for word in survey.odd if _form(word) == "word"][:_MOST_WORDS]
    own = [mark for mark in (*survey.marks, *words, *survey.tokens) if mark not in survey.usual]
    if not own and len(usual) == len(survey.usual):
        return None
    return tuple(dict.fromkeys([*usual, *own] if survey.has_blanks else [*own, *usual]))


def _atoms(survey: ColumnSurvey) -> tuple[str, ...]:
    """Return limits and marked numbers that many rows share, the commonest first, if they are few."""
    words = tuple(w for w, n in survey.odd.items() if n >= _OFTEN and _form(w) in ("limit", "marked"))
    return words if survey.is_number and is_text(survey.storage) and len(words) <= _FEW_ATOMS else ()


def _form(text: str) -> str:
    """Return the form of an odd cell: `limit` (`<5`), `marked` (`~5`), `infinite`; else `word`."""
    form = odd_numbers(pa.array([text], pa.string()))[0].as_py()
    return form if form in _ODD_FORMS else "word"


def column_note(survey: ColumnSurvey) -> str:
    """Return the note on a column's odd cells and on values that stand for none; empty without any."""
    odd: dict[str, dict[str, int]] = {}
    for text, count in survey.odd.items():
        odd.setdefault(_form(text), {})[text] = count
    note = "".join(f". Beside them {_shown(odd[form])}: {fate}" for form, fate in _ODD_FORMS.items() if form in odd)
    if survey.is_number and survey.text is not None and survey.text.numbers.is_either(survey.written):
        note += ". A point or a comma before three digits may part thousands or be decimal: see `written`"
    if _holds_durations(survey):
        note += ". They are durations, which have no kind: write them in a copy as numbers of one unit, such as hours"
    if survey.tokens:
        note += _token_note(survey)
    labels = {} if survey.text is None or survey.counts is None else survey.counts.counts
    answers = [mark for mark in (*MISSING_TOKENS, *MISSING_MARKS) if mark and mark in labels]
    if answers:
        listed = ", ".join(map(repr, answers))
        note += f". {listed} is taken for an answer: if it stands for no value, put it into `missing`"
    return note


def _holds_durations(survey: ColumnSurvey) -> bool:
    """Whether most texts of a column that is neither numbers nor dates are lengths of time."""
    if survey.text is None or survey.is_number or survey.date is not None or not survey.text.others.counts:
        return False
    counts = survey.text.others.counts
    some = is_duration(pa.array(list(counts), pa.string())).tolist()
    durations = sum(count for count, is_one in zip(counts.values(), some, strict=True) if is_one)
    return durations > 0.5 * counts.total()


def _token_note(survey: ColumnSurvey) -> str:
    listed = ", ".join(survey.tokens[:_MOST_SHOWN])
    if not is_text(survey.storage):
        return f". {listed} stands for no value, it seems: make such cells missing in the data, where no text says so"
    return f". {listed} stands for no value, it seems: it is under `missing`; take it out there if it is one"


def _shown(texts: Mapping[str, int]) -> str:
    """Return some texts with how many cells hold each."""
    some = list(texts.items())[:_MOST_SHOWN]
    short = {text: text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..." for text, _ in some}
    words = [f"{short[text]!r} ({count:,} cell{'' if count == 1 else 's'})" for text, count in some]
    more = len(texts) - len(some)
    return ", ".join(words) + (f" and {more:,} more" if more else "")


def left_out(source: Source, surveys: Mapping[str, ColumnSurvey]) -> tuple[str, ...]:
    """Return a line for each part of a source that is not read: for a draft's head.

    Raises:
        DataError: most records of a CSV are not, or most of a workbook only in part.
    """
    skipped, shortened = _count(source.notes("skipped")), _count(source.notes("shortened"))
    lines = []
    n_read = max((survey.n_cells for survey in surveys.values()), default=0)
    if source.container == "csv" and (skipped[0] > n_read or _is_undivided(surveys)):
        raise DataError(
            f"Expected the lines of {source.label} to have as many cells as the first one, got others in most. If "
            "lines above the header say something else (a title, a date), take them out; or declare the delimiter."
        )
    beside, first = _count(source.notes("beside"))
    if beside > 0.5 * n_read:
        raise DataError(
            f"Expected the first row of {source.label} that is not empty to name every column, got cells under no name "
            "beside most records. If rows above the names say something else (a title, a date), take them out."
        )
    if beside:
        lines.append(f"cells under no name beside {beside:,} records are not read ({first}, ...)")
    if skipped[0]:
        lines.append(f"{skipped[0]:,} records cannot be read ({skipped[1]}, ...): they are left out")
    if shortened[0]:
        lines.append(f"empty cells beyond the header at the end of {shortened[0]:,} records")
    unnamed = [name for place, name in enumerate(source.names, 1) if name == f"column_{place}"]
    if source.container == "csv" and unnamed:
        lines.append(
            f"the header leaves {', '.join(unnamed)} without a name: perhaps an index written beside the data, "
            "or a title above the names. Name it in the file, declare it `identifier`, or take the title out"
        )
    return tuple(lines)


def _is_undivided(surveys: Mapping[str, ColumnSurvey]) -> bool:
    """Whether there is one column, most of whose cells hold a delimiter: the first line is no header."""
    counts = [survey.counts.counts for survey in surveys.values() if survey.counts is not None]
    if len(surveys) != 1 or not counts or not counts[0]:
        return False
    divided = sum(count for text, count in counts[0].items() if any(mark in text for mark in ";\t|,"))
    return divided > 0.5 * sum(counts[0].values())


def _count(names: Iterable[str]) -> tuple[int, str]:
    count, first = 0, ""
    for name in names:
        count, first = count + 1, first or name
    return count, first
