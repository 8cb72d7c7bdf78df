"""Notes of a draft beside its columns: odd cells, values that stand for none, records that are not read.

It counts cells and shows their values: for the data holder's own screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from sfumato.columns.cells import is_text
from sfumato.columns.text_forms import MISSING_MARKS, MISSING_TOKENS, is_duration, odd_numbers
from sfumato.desk.survey import ColumnSurvey
from sfumato.errors import DataError
from sfumato.io.chunks import Source

_MOST_SHOWN = 5
_LONGEST = 30
_MOST_WORDS = 20  # of odd cells that a draft takes for missing
_ODD_FORMS = {
    "limit": "no numbers, so read as missing. To keep a limit, write its number in a copy of the data (it is clamped "
    "to the bounds), or declare kind: categorical with `other`",
    "marked": "no plain numbers, so read as missing. To keep them, take the mark out",
    "infinite": "clamped to the nearest bound",
    "word": "read as missing",
}


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
    words = [f"{_short(text)!r} ({count:,} cell{'' if count == 1 else 's'})" for text, count in some]
    more = len(texts) - len(some)
    return ", ".join(words) + (f" and {more:,} more" if more else "")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


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
