r"""The canonical text of a cell: one text for one value, whatever program wrote it, and whatever stood beside it.

Programs choose how to write a column by all of its cells: pandas writes `2021-01-01` while all moments of a column are
midnights, and `2021-01-01 00:00:00` as soon as one is not. Where a cell is a label, a unit or a key, one record would
decide what the others say. So all of these are one text:

    7   7.0   7e+00   7.0E0                                             7
    1.5   1.50                                                          1.5
    2021-01-01   2021-01-01 00:00:00.000   2021-01-01T00:00             2021-01-01
    2021-01-01 08:30   2021-01-01T08:30:00.000                          2021-01-01 08:30:00
    2 days   2 days 00:00:00.000   2 days, 0:00:00                      2 days
    8:15:00   0 days 08:15:00.000000                                    08:15:00
    (0, 10]   (0.0, 10.0]                                               (0, 10]
    0.1   0.10000000149011612, as which 32 bits hold it                 0.1
    true   True   TRUE                                                  true

Zeros before digits are kept (`007`), and so is what is no such value. Whole numbers of 2^53 and more have no canonical
text: as floats, which one missing cell makes of them, each may be any of several. A column that was text from the
start, so that nothing was written anew, is declared `exact`: its texts are compared letter by letter.

All functions are elementwise: what a text is never depends on the texts beside it. Proof: docs/proofs/cells.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.facts import LARGEST_EXACT, canonical_number, shown
from sfumato.columns.text_forms import each_word

_DAY, _CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{2}:[0-9]{2}:[0-9]{2}"
_MOMENT = f"^{_DAY}[T ][0-9]{{2}}:[0-9]{{2}}"
_NEEDED = (
    (rf"^({_DAY} [0-9]{{2}}:[0-9]{{2}})$", r"\1:00"),
    (rf"^({_DAY}[T ]{_CLOCK}\.(?:[0-9]{{3}})*[0-9]{{2}})($|[Z+-].*)", r"\10\2"),
    (rf"^({_DAY}[T ]{_CLOCK}\.(?:[0-9]{{3}})*[0-9])($|[Z+-].*)", r"\100\2"),
    (rf"^({_DAY}[T ]{_CLOCK})\.0+($|[Z+-].*)", r"\1\2"),
    (rf"^({_DAY}[T ]{_CLOCK}\.[0-9]{{6}})000($|[Z+-].*)", r"\1\2"),
    (rf"^({_DAY}[T ]{_CLOCK}\.[0-9]{{3}})000($|[Z+-].*)", r"\1\2"),
    (rf"^({_DAY})[T ]00:00:00$", r"\1"),
)
"""What a moment needs, step by step: seconds, their parts by threes where there are any, a time but midnight."""

_ODD = (
    r"^-?[0-9]+\.0*$|^-0$|^-?[0-9](?:\.[0-9]*)?[eE][+-]?[0-9]{1,3}$|^-?[0-9]{16,}$|^-?[0-9]*\.[0-9]{4,}$"
    r"|^-?[0-9]+ days?(?:,| |$)|^[0-9]{1,9}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?$|^[\[(].*, .*[\])]$"
    r"|^(?:True|False|TRUE|FALSE)$"
)
"""Texts that may not be canonical, moments apart."""
_MORE_THAN_DIGITS = r"[^0-9]|[0-9]{16}"
BEYOND = str(LARGEST_EXACT + 1)
"""What stands for any whole number that has no canonical text."""
_WRITTEN_OTHERWISE = re.compile("[0-9]|^(?i:true|false)$")
_ROUNDED = r"^-?[0-9]+\.0*$|^-?[0-9](?:\.[0-9]*[eE][+-]?|[eE]\+|e)[0-9]{1,3}$"
"""Texts that programs write of floats that are whole."""
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)(?:\.0*)?")
_POWER = re.compile(r"-?[0-9](\.[0-9]*)?([eE])([+-]?)[0-9]{1,3}")  # as programs write floats: one digit before
_FRACTION = re.compile(r"-?[0-9]*\.[0-9]+")
_DURATION = re.compile(r"(?:(-?[0-9]{1,9}) days?(?:,? \+?|$))?(?:([0-9]{1,9}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?)?")
_TRAILING_ZEROS = r"^(-?(?:0|[1-9][0-9]*)?\.[0-9]*[1-9])0+$"  # one decimal more in a column asks for them
_TRAILING = re.compile(_TRAILING_ZEROS)
_INTERVAL = re.compile(r"([\[(])([^\[\](),]*), ([^\[\](),]*)([\])])")
_LONGEST = len(str(LARGEST_EXACT))
_KEPT = 15  # digits of a decimal fraction that all programs keep
_MOST_DIGITS = 9  # of a decimal fraction that 32 bits tell from its neighbours


def canonical(text: pa.Array, *, exact: bool = False) -> pa.Array:
    """Return the canonical text of texts without white space around them; null where one has none.

    Privacy: none (a function of each cell).

    Args:
        text: of any length n.
        exact: whether the cells were text from the start: they stay as they are, floats of 2^53 and more apart.

    Example:
        >>> canonical(pa.array(["7.0", "007", "1e+05", "2021-01-01 00:00:00", "0 days 05:00:00", "red"])).to_pylist()
        ['7', '007', '100000', '2021-01-01', '05:00:00', 'red']
        >>> canonical(pa.array(["110101199003070000"])).to_pylist()
        [None]
    """
    if exact:
        return _replaced(text, _ROUNDED, lambda word: word if abs(float(word)) <= LARGEST_EXACT else None)
    if not _any(pc.match_substring_regex(text, _MORE_THAN_DIGITS)):  # so are most ids: this is for speed alone
        return text
    if _any(pc.match_substring_regex(text, _MOMENT)):
        text = needed_time(pc.replace_substring_regex(text, rf"^({_DAY})T([0-9]{{2}}:[0-9]{{2}})", r"\1 \2"))
    return _replaced(_without_zeros(text), _ODD, _word)


def canonical_faults(labels: Sequence[str]) -> list[str]:
    """Return why labels cannot be told apart by their canonical texts, if they cannot."""
    if not any(may_be_written_otherwise(label) for label in labels):
        return []
    texts = canonical(pa.array(labels, pa.string())).to_pylist()
    if None in texts:
        wide = labels[texts.index(None)]
        return [
            f"Expected `exact: true` beside labels that are numbers of 2^53 and more, such as {shown(wide)}, which a "
            "program may have rounded. Declare it if the column was text from the start."
        ]
    first: dict[str | None, str] = {}
    for label, text in zip(labels, texts, strict=True):
        if first.setdefault(text, label) != label:
            return [
                f"Expected labels that are different values, got {shown(first[text])} and {shown(label)}, which a "
                "program may write for each other. Remove one, or declare `exact: true` if the column was text from "
                "the start."
            ]
    return []


def may_be_written_otherwise(text: str) -> bool:
    """Whether a text may not be the only one for its value."""
    return _WRITTEN_OTHERWISE.search(text) is not None


def form_text(text: pa.Array) -> pa.Array:
    """Return texts by which the form of a cell is told: canonical, but a time stays behind the mark that it has.

    A whole number of 2^53 or more is `BEYOND`, and a moment is told to the microsecond.

    Example:
        >>> form_text(pa.array(["2021-01-01T08:00:00", "2021-01-01 00:00:00", "7.0", "1.1e+17"])).to_pylist()
        ['2021-01-01T08:00:00', '2021-01-01', '7', '9007199254740992']
    """
    text = pc.replace_substring_regex(text, rf"^({_DAY}[T ]{_CLOCK}\.[0-9]{{6}})[0-9]+($|[Z+-].*)", replacement=r"\1\2")
    return _replaced(_without_zeros(needed_time(text)), _ODD, lambda word: _word(word) or BEYOND)


def needed_time(text: pa.Array) -> pa.Array:
    """Return texts, of moments no more than they need: no midnight, and no parts of a second that are 0.

    Example:
        >>> needed_time(pa.array(["2021-01-01 00:00:00.000", "2021-01-01 08:30:00.500000", "2021-01-01"])).to_pylist()
        ['2021-01-01', '2021-01-01 08:30:00.500', '2021-01-01']
    """
    for pattern, needed in _NEEDED:
        text = pc.replace_substring_regex(text, pattern=pattern, replacement=needed)
    return text


def _without_zeros(text: pa.Array) -> pa.Array:
    """Return decimal fractions without zeros at their end."""
    return pc.replace_substring_regex(text, pattern=_TRAILING_ZEROS, replacement=r"\1")


def _replaced(text: pa.Array, pattern: str, word: Callable[[str], str | None]) -> pa.Array:
    """Return texts, those of a pattern by a function of one text, called once for each distinct one."""
    odd = pc.fill_null(pc.match_substring_regex(text, pattern), False)
    if not _any(odd):
        return text
    return pc.replace_with_mask(text, odd, each_word(text.filter(odd), text.type, word))


def _any(mask: pa.Array) -> bool:
    return pc.any(mask).as_py() is True


def _word(word: str) -> str | None:
    """Return the canonical text of one text; None if it has none."""
    if word in ("True", "False", "TRUE", "FALSE"):
        return word.lower()
    if match := _WHOLE.fullmatch(word):
        digits = match[1]
        if len(digits) > _LONGEST or int(digits) > LARGEST_EXACT:
            return None
        return digits if digits == "0" or word[0] != "-" else f"-{digits}"
    if match := _POWER.fullmatch(word):
        return _number_of_power(word, *match.groups())
    if _FRACTION.fullmatch(word):
        return _short(word)
    if match := _INTERVAL.fullmatch(word):
        lower, upper = map(_end, match.group(2, 3))
        return None if lower is None or upper is None else f"{match[1]}{lower}, {upper}{match[4]}"
    match = _DURATION.fullmatch(word)
    return _duration(word, *match.groups()) if match else word


def _end(word: str) -> str | None:
    """Return the canonical text of an end of an interval."""
    is_moment = word[4:5] == "-"
    return canonical(pa.array([word], pa.string()))[0].as_py() if is_moment else _word(_TRAILING.sub(r"\1", word))


def _number_of_power(word: str, part: str | None, mark: str, sign: str) -> str | None:
    """Return a number with an exponent without it; None beyond 2^53. `1E20` alone is a code."""
    number = float(word)
    if abs(number) > LARGEST_EXACT:
        return None if sign or part or mark == "e" else word
    return canonical_number(float(_short(word))) if sign or part else word


def _short(word: str) -> str:
    """Return a decimal fraction of many digits with 15; one that 32 bits hold, with the digits that tell it there."""
    number = float(word)
    if sum(map(str.isdigit, word.partition("e")[0])) <= _MOST_DIGITS or number.is_integer():
        return word
    with np.errstate(over="ignore"):
        narrow = np.float32(number)
    rounded = f"{number:.{_KEPT}g}"
    return canonical_number(float(str(narrow) if f"{narrow:.{_KEPT}g}" == rounded else rounded))


def _duration(word: str, days: str | None, hours: str, minutes: str, seconds: str, part: str | None) -> str:
    """Return a length of time in days and a clock; one below a day as a clock alone."""
    if days is None and hours is None:
        return word
    whole, hour = divmod(int(hours or 0), 24)
    whole += int(days or 0)
    clock = f"{hour:02}:{minutes or '00'}:{seconds or '00'}"
    clock += f".{part.rstrip('0')}" if part and part.strip("0") else ""
    if not whole:
        return clock
    day = "day" if whole == 1 else "days"
    return f"{whole} {day}" if clock == "00:00:00" else f"{whole} {day} {clock}"
